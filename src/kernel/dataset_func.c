/*
 * Datasets that call a function for each element: map, filter, take while.
 * Parallel maps read ahead.
 */
#include "kernel/dataset_func.h"
#include "base/mem.h"
#include "kernel/dataset_ahead.h"
#include "kernel/dataset_batch.h"
#include "kernel/types.h"

enum mst_code dataset_call_each(struct dataset_iter *it, enum mst_code got)
{
    struct dataset_iter *in = dataset_iter_input(it, 0);

    if (got == DATASET_FRESH) {
        it->stage = DATASET_INPUT;
        got = dataset_pull(in, it);
    }
    if (got || it->stage == DATASET_CALL)
        return got;
    if (in->end)
        return dataset_end(it);
    it->stage = DATASET_CALL;
    return dataset_call(it, &it->d->func, in->out, in->count);
}

enum mst_code dataset_func_make(struct op_ctx *c,
                                const struct dataset_kind *kind, int numbers,
                                struct dataset **ret)
{
    enum mst_code rc = dataset_make(c, kind, 1, 0, ret);

    if (!rc)
        dataset_capture(c, *ret, 1, c->node->in_count - 1 - numbers);
    return rc;
}

enum mst_code dataset_f_init(struct op_node *n, struct status *st)
{
    return dataset_func_init(n, "f", st);
}

static enum mst_code predicate_init(struct op_node *n, struct status *st)
{
    return dataset_func_init(n, "predicate", st);
}

/* ---- map ---- */

/* OUT_OF_RANGE of a function is an end of its own. */
static enum mst_code map_go(struct dataset_iter *it, enum mst_code got)
{
    got = dataset_call_each(it, got);
    if (got == MST_OUT_OF_RANGE && it->stage == DATASET_CALL)
        return dataset_end(it);
    return got;
}

static int64_t map_count(const struct dataset *d)
{
    return d->flag ? dataset_cardinality(d->inputs[0]) : DATASET_UNKNOWN;
}

static const struct dataset_kind map_kind = { sizeof(struct dataset_iter),
                                              map_go, NULL, map_count };

static enum mst_code map_run(struct op_ctx *c)
{
    struct dataset *d;
    enum mst_code rc = dataset_func_make(c, &map_kind, 0, &d);

    if (rc)
        return rc;
    d->flag = op_attr_bool(c->node, "preserve_cardinality");
    return dataset_put(c, d);
}

/* Input i, up to us when it is -1. */
static enum mst_code parallel_calls(struct op_ctx *c, int i, int64_t *ret)
{
    enum mst_code rc = dataset_number(c, i, "num_parallel_calls", ret);

    if (!rc && *ret <= 0 && *ret != -1)
        rc = op_fail(c, MST_INVALID_ARGUMENT,
                     "num_parallel_calls must be greater than zero.");
    return rc;
}

static enum mst_code parallel_map_make(struct op_ctx *c, int numbers,
                                       int64_t calls, struct dataset **ret)
{
    struct pool *pool = c->node->env->pool;
    enum mst_code rc = dataset_func_make(
        c, pool ? &dataset_ahead_kind : &map_kind, numbers, ret);

    if (rc)
        return rc;
    (*ret)->pool = pool;
    (*ret)->n[0] = pool ? dataset_ahead_most(pool, calls) : 0;
    (*ret)->flag = op_attr_bool(c->node, "preserve_cardinality");
    return MST_OK;
}

static enum mst_code parallel_map_run(struct op_ctx *c)
{
    struct dataset *d;
    int64_t calls;
    enum mst_code rc = parallel_calls(c, c->node->in_count - 1, &calls);

    if (!rc)
        rc = parallel_map_make(c, 1, calls, &d);
    return rc ? rc : dataset_put(c, d);
}

static enum mst_code map_and_batch_run(struct op_ctx *c)
{
    int at = c->node->in_count - 3;
    struct dataset *d;
    int64_t size, calls;
    bool drop;
    enum mst_code rc = dataset_batch_args(c, at, at + 2, &size, &drop);

    if (!rc)
        rc = parallel_calls(c, at + 1, &calls);
    if (!rc)
        rc = parallel_map_make(c, 3, calls, &d);
    return rc ? rc : dataset_put(c, dataset_batch_new(d, size, drop));
}

#define MAP_ATTRS                                                              \
    "; use_inter_op_parallelism: bool = true; "                                \
    "preserve_cardinality: bool = false"

DATASET_FUNC(map_dataset, "MapDataset", "",
             MAP_ATTRS "; force_synchronous: bool = false", "f", dataset_f_init,
             map_run)
DATASET_FUNC(parallel_map_dataset, "ParallelMapDataset",
             ", num_parallel_calls: int32", MAP_ATTRS "; sloppy: bool = false",
             "f", dataset_f_init, parallel_map_run)
DATASET_FUNC(parallel_map_dataset_v2, "ParallelMapDatasetV2",
             ", num_parallel_calls: int64",
             MAP_ATTRS "; deterministic: string = 'default'; "
                       "use_unbounded_threadpool: bool = false",
             "f", dataset_f_init, parallel_map_run)
DATASET_FUNC(map_and_batch_dataset, "MapAndBatchDataset",
             ", batch_size: int64, num_parallel_calls: int64, "
             "drop_remainder: bool",
             "; preserve_cardinality: bool = false", "f", dataset_f_init,
             map_and_batch_run)

/* ---- filter, take while (d->flag) ---- */

struct filter_iter {
    struct dataset_iter it;
    struct tensor *kept; /* the element that the predicate is asked about */
    int count;
    bool over;
};

static void filter_drop(struct filter_iter *f)
{
    for (int i = 0; i < f->count; i++)
        tensor_unref(&f->kept[i]);
    mem_free(f->kept);
    f->kept = NULL;
    f->count = 0;
}

/* Asks about the element of the input, and keeps it meanwhile. */
static enum mst_code filter_ask(struct filter_iter *f)
{
    struct dataset_iter *it = &f->it, *in = it->in[0];

    f->count = in->count;
    f->kept = mem_array((size_t)in->count, sizeof(*f->kept));
    for (int i = 0; i < in->count; i++)
        f->kept[i] = tensor_ref(&in->out[i]);
    it->stage = DATASET_CALL;
    return dataset_call(it, &it->d->func, in->out, in->count);
}

static enum mst_code filter_go(struct dataset_iter *it, enum mst_code got)
{
    struct filter_iter *f = CONTAINER(it, struct filter_iter, it);

    for (;; got = DATASET_FRESH) {
        struct dataset_iter *in = dataset_iter_input(it, 0);
        bool yes;

        if (f->over)
            return dataset_end(it);
        if (got == DATASET_FRESH) {
            filter_drop(f);
            it->stage = DATASET_INPUT;
            got = dataset_pull(in, it);
        }
        if (!got && it->stage == DATASET_INPUT) {
            if (in->end)
                return dataset_end(it);
            got = filter_ask(f);
        }
        if (got)
            return got;
        if (it->count != 1 || it->out[0].dtype != DT_BOOL ||
            it->out[0].count != 1)
            return status_set(it->c->st, MST_INVALID_ARGUMENT,
                              "Filter predicate `predicate` must return a "
                              "scalar bool.");
        yes = *TENSOR_DATA(&it->out[0], bool);
        f->over = it->d->flag && !yes;
        if (yes)
            break;
    }
    dataset_room(it, 0);
    it->out = f->kept;
    it->count = f->count;
    f->kept = NULL;
    f->count = 0;
    return MST_OK;
}

static void filter_iter_done(struct dataset_iter *it)
{
    filter_drop(CONTAINER(it, struct filter_iter, it));
}

static const struct dataset_kind filter_kind = { sizeof(struct filter_iter),
                                                 filter_go, filter_iter_done,
                                                 NULL };

static enum mst_code filter_run(struct op_ctx *c)
{
    struct dataset *d;
    enum mst_code rc = dataset_func_make(c, &filter_kind, 0, &d);

    return rc ? rc : dataset_put(c, d);
}

static enum mst_code take_while_run(struct op_ctx *c)
{
    struct dataset *d;
    enum mst_code rc = dataset_func_make(c, &filter_kind, 0, &d);

    if (rc)
        return rc;
    d->flag = true;
    return dataset_put(c, d);
}

DATASET_FUNC(filter_dataset, "FilterDataset", "", "", "predicate",
             predicate_init, filter_run)
DATASET_FUNC(take_while_dataset, "TakeWhileDataset", "", "", "predicate",
             predicate_init, take_while_run)
