/*
 * Datasets that call a function for each element: map, filter, take while;
 * and those whose function makes a dataset of each, which are then gone
 * through one after the other or in turn.
 *
 * The stage says what go() waits for: an element of the input, the function,
 * or an element of a dataset that the function made.
 */
#include "base/mem.h"
#include "kernel/dataset.h"
#include "kernel/types.h"

enum { INPUT, CALL, INNER };

/* Waits for the input and then for the function; it->out are its results. At
 * the end of the input it->end is set. */
static enum mst_code call_each(struct dataset_iter *it, enum mst_code got)
{
    struct dataset_iter *in = dataset_iter_input(it, 0);

    if (got == DATASET_FRESH) {
        it->stage = INPUT;
        got = dataset_pull(in, it);
    }
    if (got || it->stage == CALL)
        return got;
    if (in->end)
        return dataset_end(it);
    it->stage = CALL;
    return dataset_call(it, &it->d->func, in->out, in->count);
}

static enum mst_code func_make(struct op_ctx *c,
                               const struct dataset_kind *kind, int numbers,
                               struct dataset **ret)
{
    enum mst_code rc = dataset_make(c, kind, 1, 0, ret);

    if (!rc)
        dataset_capture(c, *ret, 1, c->node->in_count - 1 - numbers);
    return rc;
}

static enum mst_code f_init(struct op_node *n, struct status *st)
{
    return dataset_func_init(n, "f", st);
}

static enum mst_code predicate_init(struct op_node *n, struct status *st)
{
    return dataset_func_init(n, "predicate", st);
}

#define FUNC_DEF(stem, text, in_, more, func, init_, fn)                       \
    const struct op_def def_##stem = {                                         \
        .name = text,                                                          \
        .in = "input_dataset: variant, other_arguments: Targuments" in_,       \
        .out = "handle: variant",                                              \
        .attr =                                                                \
            func ": func; Targuments: list(type) >= 0; " DATASET_ATTRS more    \
                DATASET_META,                                                  \
        .init = init_,                                                         \
        .kernel = (const struct op_kernel[]){ { DT_ANY, fn }, { 0 } },         \
    };

/* ---- map ---- */

/* OUT_OF_RANGE of a function is an end of its own. */
static enum mst_code map_go(struct dataset_iter *it, enum mst_code got)
{
    got = call_each(it, got);
    if (got == MST_OUT_OF_RANGE && it->stage == CALL)
        return dataset_end(it);
    return got;
}

static int64_t map_count(const struct dataset *d)
{
    return d->flag ? dataset_cardinality(d->inputs[0]) : DATASET_UNKNOWN;
}

static const struct dataset_kind map_kind = { sizeof(struct dataset_iter),
                                              map_go, NULL, map_count };

static enum mst_code map_make(struct op_ctx *c, int numbers)
{
    struct dataset *d;
    enum mst_code rc = func_make(c, &map_kind, numbers, &d);

    if (rc)
        return rc;
    d->flag = op_attr_bool(c->node, "preserve_cardinality");
    return dataset_put(c, d);
}

static enum mst_code map_run(struct op_ctx *c)
{
    return map_make(c, 0);
}

static enum mst_code parallel_map_run(struct op_ctx *c)
{
    int last = c->node->in_count - 1;
    int64_t n;
    enum mst_code rc = dataset_number(c, last, "num_parallel_calls", &n);

    if (rc)
        return rc;
    if (n <= 0 && n != -1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "num_parallel_calls must be greater than zero.");
    return map_make(c, 1);
}

#define MAP_ATTRS                                                              \
    "; use_inter_op_parallelism: bool = true; "                                \
    "preserve_cardinality: bool = false"

FUNC_DEF(map_dataset, "MapDataset", "",
         MAP_ATTRS "; force_synchronous: bool = false", "f", f_init, map_run)
FUNC_DEF(parallel_map_dataset, "ParallelMapDataset",
         ", num_parallel_calls: int32", MAP_ATTRS "; sloppy: bool = false", "f",
         f_init, parallel_map_run)
FUNC_DEF(parallel_map_dataset_v2, "ParallelMapDatasetV2",
         ", num_parallel_calls: int64",
         MAP_ATTRS "; deterministic: string = 'default'; "
                   "use_unbounded_threadpool: bool = false",
         "f", f_init, parallel_map_run)

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
    it->stage = CALL;
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
            it->stage = INPUT;
            got = dataset_pull(in, it);
        }
        if (!got && it->stage == INPUT) {
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
    enum mst_code rc = func_make(c, &filter_kind, 0, &d);

    return rc ? rc : dataset_put(c, d);
}

static enum mst_code take_while_run(struct op_ctx *c)
{
    struct dataset *d;
    enum mst_code rc = func_make(c, &filter_kind, 0, &d);

    if (rc)
        return rc;
    d->flag = true;
    return dataset_put(c, d);
}

FUNC_DEF(filter_dataset, "FilterDataset", "", "", "predicate", predicate_init,
         filter_run)
FUNC_DEF(take_while_dataset, "TakeWhileDataset", "", "", "predicate",
         predicate_init, take_while_run)

/* ---- datasets of elements, n[0] of them in turn, n[1] elements each ---- */

struct mix_iter {
    struct dataset_iter it;
    struct dataset_iter **open; /* n[0] places */
    int64_t place, taken;       /* whose turn it is, and how far it got */
    int64_t open_count;
    bool over; /* of the input */
};

static void mix_turn(struct mix_iter *m)
{
    m->place = (m->place + 1) % m->it.d->n[0];
    m->taken = 0;
}

static enum mst_code mix_open(struct mix_iter *m)
{
    struct dataset *d = m->it.count == 1 ? dataset_of(&m->it.out[0]) : NULL;

    if (!d)
        return status_set(m->it.c->st, MST_INVALID_ARGUMENT,
                          "The function must return a single scalar of dtype "
                          "DT_VARIANT, a dataset.");
    m->open[m->place] = dataset_iter_new(d);
    m->open_count++;
    return MST_OK;
}

/* After an element, or the end, of the dataset whose turn it is. True when
 * that is the element. */
static bool mix_took(struct mix_iter *m)
{
    struct dataset_iter *in = m->open[m->place];

    if (in->end) {
        dataset_iter_free(in);
        m->open[m->place] = NULL;
        m->open_count--;
        mix_turn(m);
        return false;
    }
    dataset_take(&m->it, in);
    if (++m->taken == m->it.d->n[1])
        mix_turn(m);
    return true;
}

static enum mst_code mix_go(struct dataset_iter *it, enum mst_code got)
{
    struct mix_iter *m = CONTAINER(it, struct mix_iter, it);

    if (!m->open)
        m->open = mem_array((size_t)it->d->n[0], sizeof(*m->open));
    for (;; got = DATASET_FRESH) {
        if (got == DATASET_FRESH && m->open[m->place]) {
            it->stage = INNER;
            got = dataset_pull(m->open[m->place], it);
        } else if (it->stage != INNER || got == DATASET_FRESH) {
            if (m->over && !m->open_count)
                return dataset_end(it);
            if (m->over) {
                mix_turn(m);
                continue;
            }
            got = call_each(it, got);
            if (!got && !it->end)
                got = mix_open(m);
            if (got)
                return got;
            m->over = it->end;
            it->end = false;
            continue;
        }
        if (got)
            return got;
        if (mix_took(m))
            return MST_OK;
    }
}

static void mix_iter_done(struct dataset_iter *it)
{
    struct mix_iter *m = CONTAINER(it, struct mix_iter, it);

    for (int64_t i = 0; m->open && i < it->d->n[0]; i++)
        dataset_iter_free(m->open[i]);
    mem_free(m->open);
}

static const struct dataset_kind mix_kind = { sizeof(struct mix_iter), mix_go,
                                              mix_iter_done, NULL };

static enum mst_code flat_map_run(struct op_ctx *c)
{
    struct dataset *d;
    enum mst_code rc = func_make(c, &mix_kind, 0, &d);

    if (rc)
        return rc;
    d->n[0] = 1;
    return dataset_put(c, d); /* n[1] of 0 is never reached: to the end */
}

FUNC_DEF(flat_map_dataset, "FlatMapDataset", "", "", "f", f_init, flat_map_run)

#define CYCLE_MAX (1 << 20)

/* `numbers` inputs at the end; the first two are cycle and block length. */
static enum mst_code interleave(struct op_ctx *c, int numbers)
{
    struct dataset *d;
    int at = c->node->in_count - numbers;
    int64_t cycle, block;
    enum mst_code rc = dataset_number(c, at, "cycle_length", &cycle);

    if (!rc)
        rc = dataset_number(c, at + 1, "block_length", &block);
    if (rc)
        return rc;
    if (numbers > 2 && cycle == -1)
        cycle = 4; /* up to us */
    if (cycle <= 0)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "cycle_length must be greater than zero.");
    if (block <= 0)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "block_length must be greater than zero.");
    if (cycle > CYCLE_MAX)
        return op_fail(c, MST_RESOURCE_EXHAUSTED,
                       "cycle_length must be at most %d", CYCLE_MAX);
    rc = func_make(c, &mix_kind, numbers, &d);
    if (rc)
        return rc;
    d->n[0] = cycle;
    d->n[1] = block;
    return dataset_put(c, d);
}

static enum mst_code interleave_run(struct op_ctx *c)
{
    return interleave(c, 2);
}

static enum mst_code interleave_v2_run(struct op_ctx *c)
{
    return interleave(c, 3);
}

static enum mst_code interleave_legacy_run(struct op_ctx *c)
{
    return interleave(c, 4);
}

static enum mst_code interleave_v4_run(struct op_ctx *c)
{
    return interleave(c, 5);
}

#define CYCLE ", cycle_length: int64, block_length: int64"

FUNC_DEF(interleave_dataset, "InterleaveDataset", CYCLE, "", "f", f_init,
         interleave_run)
FUNC_DEF(parallel_interleave_dataset_v2, "ParallelInterleaveDatasetV2",
         CYCLE ", num_parallel_calls: int64", "; sloppy: bool = false", "f",
         f_init, interleave_v2_run)
FUNC_DEF(parallel_interleave_dataset_v3, "ParallelInterleaveDatasetV3",
         CYCLE ", num_parallel_calls: int64",
         "; deterministic: string = 'default'", "f", f_init, interleave_v2_run)
FUNC_DEF(parallel_interleave_dataset_v4, "ParallelInterleaveDatasetV4",
         CYCLE ", buffer_output_elements: int64, "
               "prefetch_input_elements: int64, num_parallel_calls: int64",
         "; deterministic: string = 'default'", "f", f_init, interleave_v4_run)
FUNC_DEF(parallel_interleave_dataset, "ParallelInterleaveDataset",
         CYCLE ", sloppy: bool, buffer_output_elements: int64, "
               "prefetch_input_elements: int64",
         "", "f", f_init, interleave_v4_run)
FUNC_DEF(legacy_parallel_interleave_dataset_v2,
         "LegacyParallelInterleaveDatasetV2",
         CYCLE ", buffer_output_elements: int64, "
               "prefetch_input_elements: int64",
         "; deterministic: string = 'default'", "f", f_init,
         interleave_legacy_run)
