/*
 * Functions that carry a state from element to element: ScanDataset, whose
 * elements are what the function gives besides the state, and ReduceDataset,
 * an op whose outputs are the last state. DatasetToSingleElement is of the
 * same kind: an op that goes through a dataset by itself.
 *
 * Such an op makes an iterator of its own, asks it for one element and is
 * done. d->tensors are the first state.
 */
#include "base/mem.h"
#include "kernel/dataset.h"
#include "kernel/types.h"

enum { INPUT, CALL };

struct state_iter {
    struct dataset_iter it;
    struct tensor *state;
};

static void state_set(struct state_iter *s, struct tensor *from)
{
    int n = s->it.d->tensor_count;

    if (!s->state)
        s->state = mem_array((size_t)n, sizeof(*s->state));
    for (int i = 0; i < n; i++) {
        tensor_unref(&s->state[i]);
        tensor_move(&s->state[i], &from[i]);
    }
}

static void state_iter_done(struct dataset_iter *it)
{
    struct state_iter *s = CONTAINER(it, struct state_iter, it);

    for (int i = 0; s->state && i < it->d->tensor_count; i++)
        tensor_unref(&s->state[i]);
    mem_free(s->state);
}

/* Calls the function with the state and the element of the input. */
static enum mst_code state_call(struct state_iter *s)
{
    struct dataset_iter *it = &s->it, *in = it->in[0];
    int n = it->d->tensor_count, total = n + in->count;
    struct tensor *args = mem_array((size_t)total, sizeof(*args));
    enum mst_code rc;

    for (int i = 0; i < n; i++)
        args[i] = tensor_ref(s->state ? &s->state[i] : &it->d->tensors[i]);
    for (int i = 0; i < in->count; i++)
        tensor_move(&args[n + i], &in->out[i]);
    it->stage = CALL;
    rc = dataset_call(it, &it->d->func, args, total);
    mem_free(args); /* they were moved */
    return rc;
}

/* One element further; the results are in it->out, or it->end is set. */
static enum mst_code state_step(struct state_iter *s, enum mst_code got)
{
    struct dataset_iter *it = &s->it, *in = dataset_iter_input(it, 0);

    if (got == DATASET_FRESH) {
        it->stage = INPUT;
        got = dataset_pull(in, it);
    }
    if (got)
        return got;
    if (it->stage == INPUT) {
        if (in->end)
            return dataset_end(it);
        got = state_call(s);
        if (got)
            return got;
    }
    if (it->count < it->d->tensor_count)
        return status_set(it->c->st, MST_INVALID_ARGUMENT,
                          "The function must return at least the state, %d "
                          "tensors, and returns %d",
                          it->d->tensor_count, it->count);
    state_set(s, it->out);
    return MST_OK;
}

static enum mst_code scan_go(struct dataset_iter *it, enum mst_code got)
{
    int n = it->d->tensor_count;
    enum mst_code rc = state_step(CONTAINER(it, struct state_iter, it), got);

    if (rc || it->end)
        return rc;
    for (int i = n; i < it->count; i++)
        tensor_move(&it->out[i - n], &it->out[i]);
    it->count -= n;
    return MST_OK;
}

static int64_t scan_count(const struct dataset *d)
{
    return d->flag ? dataset_cardinality(d->inputs[0]) : DATASET_UNKNOWN;
}

static const struct dataset_kind scan_kind = { sizeof(struct state_iter),
                                               scan_go, state_iter_done,
                                               scan_count };

static enum mst_code reduce_go(struct dataset_iter *it, enum mst_code got)
{
    struct state_iter *s = CONTAINER(it, struct state_iter, it);
    int n = it->d->tensor_count;

    while (!it->end) {
        got = state_step(s, got);
        if (got)
            return got;
        got = DATASET_FRESH;
    }
    it->end = false;
    dataset_room(it, n);
    for (int i = 0; i < n; i++)
        it->out[i] = tensor_ref(s->state ? &s->state[i] : &it->d->tensors[i]);
    return MST_OK;
}

static const struct dataset_kind reduce_kind = { sizeof(struct state_iter),
                                                 reduce_go, state_iter_done,
                                                 NULL };

/* Exactly one element: the second pull must find the end. */
static enum mst_code single_go(struct dataset_iter *it, enum mst_code got)
{
    struct dataset_iter *in = dataset_iter_input(it, 0);

    for (; it->stage < 2; it->stage++) {
        if (got == DATASET_FRESH)
            got = dataset_pull(in, it);
        if (got)
            return got;
        if (!it->stage && in->end)
            return status_set(it->c->st, MST_INVALID_ARGUMENT,
                              "Dataset was empty.");
        if (it->stage && !in->end)
            return status_set(it->c->st, MST_INVALID_ARGUMENT,
                              "Dataset had more than one element.");
        if (!it->stage)
            dataset_take(it, in);
        got = DATASET_FRESH;
    }
    return MST_OK;
}

static const struct dataset_kind single_kind = { sizeof(struct dataset_iter),
                                                 single_go, NULL, NULL };

/* ---- ops ---- */

static void on_element(struct dataset_iter *root, enum mst_code code)
{
    struct op_ctx *c = root->c;

    if (!code)
        code = dataset_give(c, root);
    dataset_iter_free(root);
    op_finish(c, code);
}

/* Goes through d, whose one reference is taken over. */
static enum mst_code run_once(struct op_ctx *c, struct dataset *d)
{
    struct dataset_iter *root = dataset_iter_new(d);
    enum mst_code rc;

    dataset_unref(d);
    rc = dataset_pull_root(root, c, on_element, NULL);
    if (rc == OP_LATER)
        return rc;
    if (!rc)
        rc = dataset_give(c, root);
    dataset_iter_free(root);
    return rc;
}

static enum mst_code state_init(struct op_node *n, struct status *st)
{
    return dataset_func_init(n, "f", st);
}

static enum mst_code state_make(struct op_ctx *c,
                                const struct dataset_kind *kind,
                                struct dataset **ret)
{
    int n = op_attr(c->node, "Tstate")->count;
    enum mst_code rc = dataset_make(c, kind, 1, n, ret);

    if (rc)
        return rc;
    for (int i = 0; i < n; i++)
        (*ret)->tensors[i] = tensor_ref(op_in(c, 1 + i));
    dataset_capture(c, *ret, 1 + n, c->node->in_count - 1 - n);
    return MST_OK;
}

static enum mst_code scan_run(struct op_ctx *c)
{
    struct dataset *d;
    enum mst_code rc = state_make(c, &scan_kind, &d);

    if (rc)
        return rc;
    d->flag = op_attr_bool(c->node, "preserve_cardinality");
    return dataset_put(c, d);
}

static enum mst_code reduce_run(struct op_ctx *c)
{
    struct dataset *d;
    enum mst_code rc = state_make(c, &reduce_kind, &d);

    return rc ? rc : run_once(c, d);
}

static enum mst_code single_run(struct op_ctx *c)
{
    struct dataset *d;
    enum mst_code rc = dataset_make(c, &single_kind, 1, 0, &d);

    return rc ? rc : run_once(c, d);
}

#define STATE_IN                                                               \
    "input_dataset: variant, initial_state: Tstate, "                          \
    "other_arguments: Targuments"
#define STATE_ATTRS                                                            \
    "f: func; Tstate: list(type) >= 1; Targuments: list(type) >= "             \
    "0; " DATASET_ATTRS

const struct op_def def_scan_dataset = {
    .name = "ScanDataset",
    .in = STATE_IN,
    .out = "handle: variant",
    .attr = STATE_ATTRS "; preserve_cardinality: bool = false; "
                        "use_default_device: bool = true" DATASET_META,
    .init = state_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, scan_run }, { 0 } },
};

const struct op_def def_reduce_dataset = {
    .name = "ReduceDataset",
    .in = STATE_IN,
    .out = "components: output_types",
    .attr = STATE_ATTRS "; use_inter_op_parallelism: bool = true" DATASET_META,
    .flags = OP_STATEFUL | OP_ASYNC | OP_BLOCKING,
    .init = state_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, reduce_run }, { 0 } },
};

const struct op_def def_dataset_to_single_element = {
    .name = "DatasetToSingleElement",
    .in = "dataset: variant",
    .out = "components: output_types",
    .attr = DATASET_ATTRS DATASET_META,
    .flags = OP_STATEFUL | OP_ASYNC | OP_BLOCKING,
    .kernel = (const struct op_kernel[]){ { DT_ANY, single_run }, { 0 } },
};
