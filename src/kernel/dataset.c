#include "kernel/dataset.h"

#include "base/mem.h"

/* ---- datasets ---- */

static void dataset_free(struct object *o)
{
    struct dataset *d = CONTAINER(o, struct dataset, o);

    for (int i = 0; i < d->input_count; i++)
        dataset_unref(d->inputs[i]);
    for (int i = 0; i < d->tensor_count; i++)
        tensor_unref(&d->tensors[i]);
    for (int i = 0; i < d->func.captured_count; i++)
        tensor_unref(&d->func.captured[i]);
    for (int64_t i = 0; d->cache && i < d->cached; i++)
        tensor_unref(&d->cache[i]);
    if (d->func.callee)
        d->func.calls->unref(d->func.callee);
    mem_free(d->inputs);
    mem_free(d->tensors);
    mem_free(d->func.captured);
    mem_free(d->cache);
    pthread_mutex_destroy(&d->lock);
    mem_free(d);
}

const struct object_kind dataset_object_kind = {
    "tensorflow::DatasetVariantWrapper", dataset_free
};

struct dataset *dataset_new(const struct dataset_kind *kind, int inputs,
                            int tensors)
{
    struct dataset *d = MEM_NEW(struct dataset);

    object_init(&d->o, &dataset_object_kind);
    pthread_mutex_init(&d->lock, NULL);
    d->kind = kind;
    d->inputs = mem_array((size_t)inputs, sizeof(*d->inputs));
    d->input_count = inputs;
    d->tensors = mem_array((size_t)tensors, sizeof(*d->tensors));
    d->tensor_count = tensors;
    d->cached = -1;
    return d;
}

struct dataset *dataset_ref(struct dataset *d)
{
    object_ref(&d->o);
    return d;
}

void dataset_unref(struct dataset *d)
{
    if (d)
        object_unref(&d->o);
}

struct dataset *dataset_of(const struct tensor *t)
{
    struct object *o =
        t->dtype == DT_VARIANT && !t->ndim ? *tensor_object(t, 0) : NULL;

    return o && o->kind == &dataset_object_kind
               ? CONTAINER(o, struct dataset, o)
               : NULL;
}

int64_t dataset_cardinality(const struct dataset *d)
{
    return d->kind->cardinality ? d->kind->cardinality(d) : DATASET_UNKNOWN;
}

/* ---- iterators ---- */

struct dataset_iter *dataset_iter_new(struct dataset *d)
{
    struct dataset_iter *it = mem_new(d->kind->iter_size);

    it->d = dataset_ref(d);
    it->in = mem_array((size_t)d->input_count, sizeof(*it->in));
    return it;
}

static void drop_args(struct dataset_iter *it)
{
    for (int i = 0; i < it->arg_count; i++) {
        tensor_unref(&it->args[i].t);
        variable_unref(it->args[i].ref);
    }
    mem_free(it->args);
    it->args = NULL;
    it->arg_count = 0;
}

void dataset_iter_free(struct dataset_iter *it)
{
    if (!it)
        return;
    if (it->d->kind->iter_done)
        it->d->kind->iter_done(it);
    for (int i = 0; i < it->d->input_count; i++)
        dataset_iter_free(it->in[i]);
    mem_free(it->in);
    dataset_room(it, 0);
    drop_args(it);
    dataset_unref(it->d);
    mem_free(it);
}

struct dataset_iter *dataset_iter_input(struct dataset_iter *it, int i)
{
    if (!it->in[i])
        it->in[i] = dataset_iter_new(it->d->inputs[i]);
    return it->in[i];
}

void dataset_iter_drop_input(struct dataset_iter *it, int i)
{
    dataset_iter_free(it->in[i]);
    it->in[i] = NULL;
}

void dataset_room(struct dataset_iter *it, int count)
{
    for (int i = 0; i < it->count; i++)
        tensor_unref(&it->out[i]);
    mem_free(it->out);
    it->out = count ? mem_array((size_t)count, sizeof(*it->out)) : NULL;
    it->count = count;
}

void dataset_take(struct dataset_iter *it, struct dataset_iter *from)
{
    dataset_room(it, 0);
    it->out = from->out;
    it->count = from->count;
    from->out = NULL;
    from->count = 0;
}

static enum mst_code begin(struct dataset_iter *it)
{
    it->end = false;
    it->stage = 0;
    dataset_room(it, 0);
    return it->d->kind->go(it, DATASET_FRESH);
}

/* Some datasets pull and pull before they give anything, or for ever: here a
 * cancelled step ends. */
enum mst_code dataset_pull(struct dataset_iter *in, struct dataset_iter *it)
{
    in->up = it;
    in->c = it->c;
    if (cancel_is_set(it->c->step->cancel))
        return op_fail(it->c, MST_CANCELLED, "Iterator was cancelled");
    return begin(in);
}

enum mst_code dataset_pull_root(struct dataset_iter *it, struct op_ctx *c,
                                void (*finish)(struct dataset_iter *it,
                                               enum mst_code code),
                                void *arg)
{
    it->up = NULL;
    it->c = c;
    it->finish = finish;
    it->arg = arg;
    return begin(it);
}

void dataset_resume(struct dataset_iter *it, enum mst_code code)
{
    for (;;) {
        code = it->d->kind->go(it, code);
        if (code == OP_LATER)
            return;
        if (!it->up) {
            it->finish(it, code);
            return;
        }
        it = it->up;
    }
}

/* ---- functions ---- */

static void call_done(struct op_ctx *c, void *arg, enum mst_code code,
                      struct op_value *results, int count)
{
    struct dataset_iter *it = arg;

    (void)c;
    drop_args(it);
    if (!code) {
        dataset_room(it, count);
        for (int i = 0; i < count; i++)
            tensor_move(&it->out[i], &results[i].t);
    }
    it->called = code;
    /* The second of who called and who was told goes on. */
    if (atomic_fetch_add(&it->turn, 1) != 0)
        dataset_resume(it, code);
}

enum mst_code dataset_call(struct dataset_iter *it,
                           const struct dataset_func *f, struct tensor *args,
                           int count)
{
    it->arg_count = count + f->captured_count;
    it->args = mem_array((size_t)it->arg_count, sizeof(*it->args));
    for (int i = 0; i < count; i++)
        tensor_move(&it->args[i].t, &args[i]);
    for (int i = 0; i < f->captured_count; i++)
        it->args[count + i].t = tensor_ref(&f->captured[i]);
    atomic_store(&it->turn, 0);
    f->calls->start(f->callee, it->c, it->args, it->arg_count, call_done, it);
    return atomic_fetch_add(&it->turn, 1) != 0 ? it->called : OP_LATER;
}

/* ---- for ops ---- */

enum mst_code dataset_put(struct op_ctx *c, struct dataset *d)
{
    enum mst_code rc = op_out_new(c, 0, 0, NULL);

    if (rc)
        dataset_unref(d);
    else
        *tensor_object(op_out(c, 0), 0) = &d->o;
    return rc;
}

enum mst_code dataset_make(struct op_ctx *c, const struct dataset_kind *kind,
                           int inputs, int tensors, struct dataset **ret)
{
    struct dataset *d;

    for (int i = 0; i < inputs; i++)
        if (!dataset_of(op_in(c, i)))
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "The given variant tensor is not a dataset.");
    d = dataset_new(kind, inputs, tensors);
    for (int i = 0; i < inputs; i++)
        d->inputs[i] = dataset_ref(dataset_of(op_in(c, i)));
    *ret = d;
    return MST_OK;
}

enum mst_code dataset_give(struct op_ctx *c, struct dataset_iter *root)
{
    const struct op_node *n = c->node;

    if (root->count != n->out_count)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Number of components does not match: expected %d types "
                       "but got %d.",
                       n->out_count, root->count);
    for (int i = 0; i < root->count; i++)
        if (root->out[i].dtype != n->out_types[i])
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Data type mismatch at component %d: expected %s "
                           "but got %s.",
                           i, dtype_name(n->out_types[i]),
                           dtype_name(root->out[i].dtype));
    for (int i = 0; i < root->count; i++)
        tensor_move(op_out(c, i), &root->out[i]);
    return MST_OK;
}

enum mst_code dataset_number(struct op_ctx *c, int i, const char *name,
                             int64_t *ret)
{
    if (op_in(c, i)->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT, "%s must be a scalar", name);
    *ret = tensor_int(op_in(c, i), 0);
    return MST_OK;
}

enum mst_code dataset_func_init(struct op_node *n, const char *attr,
                                struct status *st)
{
    if (!n->env->calls)
        return status_set(st, MST_UNIMPLEMENTED,
                          "{{node %s}} calls a function, and there are none",
                          n->name);
    return n->env->calls->find(n, op_attr(n, attr)->value,
                               (struct callee **)&n->state, st);
}

void dataset_capture(struct op_ctx *c, struct dataset *d, int first, int count)
{
    struct dataset_func *f = &d->func;

    f->calls = c->node->env->calls;
    f->callee = c->node->state;
    f->calls->ref(f->callee);
    f->captured = mem_array((size_t)count, sizeof(*f->captured));
    f->captured_count = count;
    for (int i = 0; i < count; i++)
        f->captured[i] = tensor_ref(op_in(c, first + i));
}
