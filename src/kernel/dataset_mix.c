/*
 * Datasets whose function makes a dataset of each element: n[0] of those are
 * gone through in turn, n[1] elements each.
 *
 * The parallel forms (d->flag) read n[2] elements of each ahead. They open the
 * next one as soon as there is a place, not only when its turn comes; as places
 * become free in the order of their turns, the order of elements is the same.
 * What goes wrong in opening is said when the turn comes.
 */
#include "base/mem.h"
#include "kernel/dataset_ahead.h"
#include "kernel/dataset_func.h"
#include "kernel/types.h"

/* What go() does next, besides the stages of dataset_func.h. */
enum { INNER = DATASET_CALL + 1, LATE, END };

struct mix_iter {
    struct dataset_iter it;
    struct dataset_iter **open; /* n[0] places */
    int64_t place, taken;       /* whose turn it is, and how far it got */
    int64_t open_count;
    int64_t want;        /* the place that the next dataset is for, or -1 */
    int64_t filled;      /* places that had one */
    struct status *late; /* of the place `want`, or NULL */
    bool over;           /* of the input */
};

static void mix_turn(struct mix_iter *m)
{
    m->place = (m->place + 1) % m->it.d->n[0];
    m->taken = 0;
}

static int mix_stage(struct mix_iter *m)
{
    for (;; mix_turn(m)) {
        if (m->late && m->place == m->want)
            return LATE;
        if (!m->open[m->place] && m->want < 0 && !m->over)
            m->want = m->place;
        if (m->want >= 0 && !m->late)
            return DATASET_INPUT;
        if (m->open[m->place])
            return INNER;
        if (!m->open_count && !m->late)
            return END;
    }
}

static enum mst_code mix_late(struct mix_iter *m)
{
    enum mst_code rc = status_copy(m->it.c->st, m->late);

    mem_free(m->late);
    m->late = NULL;
    mix_turn(m);
    return rc;
}

static enum mst_code mix_open(struct mix_iter *m)
{
    struct dataset *d = m->it.count == 1 ? dataset_of(&m->it.out[0]) : NULL;
    struct dataset_iter *in;

    if (!d)
        return status_set(m->it.c->st, MST_INVALID_ARGUMENT,
                          "The function must return a single scalar of dtype "
                          "DT_VARIANT, a dataset.");
    dataset_ref(d);
    if (m->it.d->flag)
        d = dataset_ahead_new(d, m->it.d->pool, m->it.d->n[2]);
    in = dataset_iter_new(d);
    dataset_unref(d);
    if (m->it.d->flag)
        dataset_ahead_start(in);
    m->open[m->want] = in;
    m->open_count++;
    return MST_OK;
}

/* Opens a dataset at the place that wants one. */
static enum mst_code mix_fill(struct mix_iter *m, enum mst_code got)
{
    struct dataset_iter *it = &m->it;

    got = dataset_call_each(it, got);
    if (got == OP_LATER)
        return got;
    if (!got && !it->end)
        got = mix_open(m);
    if (got && got != MST_CANCELLED && it->d->flag) {
        m->late = MEM_NEW(struct status);
        status_copy(m->late, it->c->st);
        m->late->code = got;
        status_clear(it->c->st);
        return MST_OK;
    }
    if (got)
        return got;
    m->over = it->end;
    it->end = false;
    m->filled++;
    m->want =
        it->d->flag && !m->over && m->filled < it->d->n[0] ? m->filled : -1;
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
        if (m->it.d->flag && m->want < 0 && !m->over)
            m->want = m->place;
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

    if (!m->open) {
        m->open = mem_array((size_t)it->d->n[0], sizeof(*m->open));
        m->want = -1;
    }
    for (;; got = DATASET_FRESH) {
        if (got == DATASET_FRESH) {
            it->stage = mix_stage(m);
            if (it->stage == END)
                return dataset_end(it);
            if (it->stage == LATE)
                return mix_late(m);
            if (it->stage == INNER)
                got = dataset_pull(m->open[m->place], it);
            if (got == OP_LATER)
                return got;
        }
        if (it->stage != INNER) {
            got = mix_fill(m, got);
            if (got)
                return got;
        } else if (got) {
            return got;
        } else if (mix_took(m)) {
            return MST_OK;
        }
    }
}

static void mix_iter_done(struct dataset_iter *it)
{
    struct mix_iter *m = CONTAINER(it, struct mix_iter, it);

    for (int64_t i = 0; m->open && i < it->d->n[0]; i++)
        dataset_iter_free(m->open[i]);
    mem_free(m->open);
    mem_free(m->late);
}

static const struct dataset_kind mix_kind = { sizeof(struct mix_iter), mix_go,
                                              mix_iter_done, NULL };

static enum mst_code flat_map_run(struct op_ctx *c)
{
    struct dataset *d;
    enum mst_code rc = dataset_func_make(c, &mix_kind, 0, &d);

    if (rc)
        return rc;
    d->n[0] = 1;
    return dataset_put(c, d); /* n[1] of 0 is never reached: to the end */
}

DATASET_FUNC(flat_map_dataset, "FlatMapDataset", "", "", "f", dataset_f_init,
             flat_map_run)

#define CYCLE_MAX (1 << 20)

/* `numbers` inputs at the end; the first two are cycle and block length, the
 * one of that index, if it is not 0, how many elements are read ahead. */
static enum mst_code interleave(struct op_ctx *c, int numbers, int buffer)
{
    struct dataset *d;
    int at = c->node->in_count - numbers;
    int64_t cycle, block, ahead = -1;
    enum mst_code rc = dataset_number(c, at, "cycle_length", &cycle);

    if (!rc)
        rc = dataset_number(c, at + 1, "block_length", &block);
    if (!rc && buffer)
        rc = dataset_number(c, at + buffer, "buffer_output_elements", &ahead);
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
    rc = dataset_func_make(c, &mix_kind, numbers, &d);
    if (rc)
        return rc;
    d->n[0] = cycle;
    d->n[1] = block;
    d->n[2] = MIN(MAX(ahead, block), CYCLE_MAX);
    d->pool = c->node->env->pool;
    d->flag = numbers > 2 && d->pool;
    return dataset_put(c, d);
}

static enum mst_code interleave_run(struct op_ctx *c)
{
    return interleave(c, 2, 0);
}

static enum mst_code interleave_v2_run(struct op_ctx *c)
{
    return interleave(c, 3, 0);
}

static enum mst_code interleave_legacy_run(struct op_ctx *c)
{
    return interleave(c, 4, 2);
}

static enum mst_code interleave_v4_run(struct op_ctx *c)
{
    return interleave(c, 5, 2);
}

static enum mst_code interleave_sloppy_run(struct op_ctx *c)
{
    return interleave(c, 5, 3);
}

#define CYCLE ", cycle_length: int64, block_length: int64"

DATASET_FUNC(interleave_dataset, "InterleaveDataset", CYCLE, "", "f",
             dataset_f_init, interleave_run)
DATASET_FUNC(parallel_interleave_dataset_v2, "ParallelInterleaveDatasetV2",
             CYCLE ", num_parallel_calls: int64", "; sloppy: bool = false", "f",
             dataset_f_init, interleave_v2_run)
DATASET_FUNC(parallel_interleave_dataset_v3, "ParallelInterleaveDatasetV3",
             CYCLE ", num_parallel_calls: int64",
             "; deterministic: string = 'default'", "f", dataset_f_init,
             interleave_v2_run)
DATASET_FUNC(parallel_interleave_dataset_v4, "ParallelInterleaveDatasetV4",
             CYCLE ", buffer_output_elements: int64, "
                   "prefetch_input_elements: int64, num_parallel_calls: int64",
             "; deterministic: string = 'default'", "f", dataset_f_init,
             interleave_v4_run)
DATASET_FUNC(parallel_interleave_dataset, "ParallelInterleaveDataset",
             CYCLE ", sloppy: bool, buffer_output_elements: int64, "
                   "prefetch_input_elements: int64",
             "", "f", dataset_f_init, interleave_sloppy_run)
DATASET_FUNC(legacy_parallel_interleave_dataset_v2,
             "LegacyParallelInterleaveDatasetV2",
             CYCLE ", buffer_output_elements: int64, "
                   "prefetch_input_elements: int64",
             "; deterministic: string = 'default'", "f", dataset_f_init,
             interleave_legacy_run)
