/*
 * Reductions of any shape by the two loops of an op: see reduce.h.
 *
 * A unit of work is one output element (rows), or up to REDUCE_COLS_MAX
 * neighbouring ones (columns). Units are split over the pool. When there are
 * few units and each is long, the last reduced dimension is cut into parts
 * whose accumulators are joined in the end.
 */
#include "kernel/reduce.h"

#include "base/mem.h"

/* A part is worth its joining from about this many elements on. */
#define PART_MIN  32768
#define PARTS_MAX 16

enum mst_code reduce_shape_of(struct op_ctx *c, const struct tensor *in,
                              const struct tensor *axes, bool keep_dims,
                              struct reduce_shape *ret)
{
    bool mask[TENSOR_RANK_MAX] = { false };

    for (int64_t i = 0; i < axes->count; i++) {
        int64_t axis = tensor_int(axes, i);

        if (axis < -in->ndim || axis >= in->ndim)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Invalid reduction dimension (%lld for input with "
                           "%d dimension(s)",
                           (long long)axis, in->ndim);
        axis += axis < 0 ? in->ndim : 0;
        if (mask[axis])
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Invalid reduction arguments: Axes contains "
                           "duplicate dimension: %lld",
                           (long long)axis);
        mask[axis] = true;
    }
    reduce_shape_mask(in, mask, keep_dims, ret);
    return MST_OK;
}

void reduce_shape_mask(const struct tensor *in, const bool *mask,
                       bool keep_dims, struct reduce_shape *ret)
{
    int n = 0, out = 0;

    for (int i = 0; i < in->ndim; i++) {
        if (!mask[i])
            ret->out.dims[out++] = in->dims[i];
        else if (keep_dims)
            ret->out.dims[out++] = 1;
        if (in->dims[i] == 1)
            continue;
        if (n && ret->reduced[n - 1] == mask[i]) {
            ret->dims[n - 1] *= in->dims[i];
        } else {
            ret->dims[n] = in->dims[i];
            ret->reduced[n++] = mask[i];
        }
    }
    if (!n || (n == 1 && !ret->reduced[0])) { /* rows of one element */
        ret->dims[n] = 1;
        ret->reduced[n++] = true;
    }
    ret->ndim = n;
    ret->out.ndim = out;
}

int64_t reduce_count(const struct reduce_shape *s)
{
    int64_t count = 1;

    for (int i = 0; i < s->ndim; i++)
        if (s->reduced[i])
            count *= s->dims[i];
    return count;
}

/* ---- running ---- */

struct job {
    const struct reduce *r;
    const struct reduce_shape *s;
    const char *in;
    char *out;
    size_t size;   /* of an element */
    bool rows;     /* the last dimension is reduced */
    int64_t tiles; /* of the last dimension, when it is kept */
    int64_t units;
    int64_t count; /* elements that become one */
    int64_t step[TENSOR_RANK_MAX];
    int last; /* the last reduced dimension, which may be cut */
    int64_t parts;
    char *part_acc;
    size_t part_size; /* of the accumulators of one */
};

/* Where in the input the unit begins, and its columns. */
static int64_t unit_begin(const struct job *j, int64_t unit, int64_t *ret_col,
                          int64_t *ret_cols)
{
    const struct reduce_shape *s = j->s;
    int64_t tile = unit % j->tiles, rest = unit / j->tiles, at = 0;

    for (int i = s->ndim - (j->rows ? 1 : 2); i >= 0; i--)
        if (!s->reduced[i]) {
            at += rest % s->dims[i] * j->step[i];
            rest /= s->dims[i];
        }
    *ret_col = *ret_cols = 0;
    if (!j->rows) {
        *ret_col = tile * REDUCE_COLS_MAX;
        *ret_cols = MIN(s->dims[s->ndim - 1] - *ret_col, REDUCE_COLS_MAX);
    }
    return at + *ret_col;
}

/* All reduced dimensions but the last, by an odometer, and of the last the
 * range [begin, end). */
static void unit_part(const struct job *j, int64_t at, int64_t cols,
                      int64_t begin, int64_t end, void *acc)
{
    const struct reduce_shape *s = j->s;
    int64_t pos[TENSOR_RANK_MAX] = { 0 };
    int i;

    do {
        const char *in =
            j->in + (size_t)(at + begin * j->step[j->last]) * j->size;

        if (j->rows)
            j->r->row(acc, in, end - begin);
        else
            j->r->cols(acc, in, end - begin, j->step[j->last], cols);
        for (i = j->last - 2; i >= 0; i -= 2) {
            at += j->step[i];
            if (++pos[i] < s->dims[i])
                break;
            at -= pos[i] * j->step[i];
            pos[i] = 0;
        }
    } while (i >= 0);
}

static void unit_finish(const struct job *j, int64_t unit, int64_t col,
                        int64_t cols, const void *acc)
{
    int64_t at = unit;

    if (!j->rows)
        at = unit / j->tiles * j->s->dims[j->s->ndim - 1] + col;
    j->r->finish(j->out + (size_t)at * j->size, acc, MAX(cols, 1), j->count);
}

/* The usual case: rows that lie one after the other, a value each. */
static void run_rows(void *arg, int64_t begin, int64_t end)
{
    const struct job *j = arg;
    _Alignas(64) char acc[REDUCE_COLS_MAX * REDUCE_ACC_MAX];
    int64_t n = j->s->dims[j->last];

    for (int64_t u = begin; u < end; u += REDUCE_COLS_MAX) {
        int64_t count = MIN(end - u, REDUCE_COLS_MAX);
        const char *in = j->in + (size_t)(u * n) * j->size;

        j->r->start(acc, count);
        for (int64_t i = 0; i < count; i++)
            j->r->row(acc + (size_t)i * j->r->acc_size,
                      in + (size_t)(i * n) * j->size, n);
        j->r->finish(j->out + (size_t)u * j->size, acc, count, n);
    }
}

static void run_units(void *arg, int64_t begin, int64_t end)
{
    const struct job *j = arg;
    _Alignas(64) char acc[REDUCE_COLS_MAX * REDUCE_ACC_MAX];

    for (int64_t u = begin; u < end; u++) {
        int64_t col, cols, at = unit_begin(j, u, &col, &cols);

        j->r->start(acc, MAX(cols, 1));
        if (j->count)
            unit_part(j, at, cols, 0, j->s->dims[j->last], acc);
        unit_finish(j, u, col, cols, acc);
    }
}

static void *part_acc(const struct job *j, int64_t unit, int64_t part)
{
    return j->part_acc + (size_t)(unit * j->parts + part) * j->part_size;
}

static void run_parts(void *arg, int64_t begin, int64_t end)
{
    const struct job *j = arg;
    int64_t n = j->s->dims[j->last], grain = (n + j->parts - 1) / j->parts;

    for (int64_t k = begin; k < end; k++) {
        int64_t u = k / j->parts, part = k % j->parts, col, cols;
        int64_t at = unit_begin(j, u, &col, &cols), from = part * grain;

        j->r->start(part_acc(j, u, part), MAX(cols, 1));
        if (from < n)
            unit_part(j, at, cols, from, MIN(from + grain, n),
                      part_acc(j, u, part));
    }
}

static void join_parts(struct job *j)
{
    for (int64_t u = 0; u < j->units; u++) {
        int64_t col, cols;

        unit_begin(j, u, &col, &cols);
        for (int64_t p = 1; p < j->parts; p++)
            j->r->join(part_acc(j, u, 0), part_acc(j, u, p), MAX(cols, 1));
        unit_finish(j, u, col, cols, part_acc(j, u, 0));
    }
}

static void prepare(struct job *j)
{
    const struct reduce_shape *s = j->s;
    int64_t step = 1, n = s->dims[s->ndim - 1];

    j->rows = s->reduced[s->ndim - 1];
    j->last = s->ndim - (j->rows ? 1 : 2);
    j->tiles = j->rows ? 1 : (n + REDUCE_COLS_MAX - 1) / REDUCE_COLS_MAX;
    j->units = j->tiles;
    j->count = reduce_count(s);
    for (int i = s->ndim - 1; i >= 0; i--) {
        j->step[i] = step;
        step *= s->dims[i];
        if (!s->reduced[i] && i < s->ndim - (j->rows ? 0 : 1))
            j->units *= s->dims[i];
    }
}

void reduce_run(const struct op_ctx *c, const struct reduce *r,
                const struct reduce_shape *s, const struct tensor *in,
                void *out, double cost_ns)
{
    struct job j = { .r = r, .s = s, .in = in->data, .out = out };
    double unit_cost;
    int64_t cols;

    j.size = dtype_size((enum dtype)in->dtype);
    prepare(&j);
    if (!j.units)
        return;
    cols = j.rows ? 1 : MIN(s->dims[s->ndim - 1], REDUCE_COLS_MAX);
    unit_cost = cost_ns * (double)j.count * (double)cols;
    j.parts = j.units < PARTS_MAX / 2 && in->count / j.units >= 2 * PART_MIN
                  ? MIN(in->count / j.units / PART_MIN, PARTS_MAX)
                  : 1;
    j.parts = MIN(j.parts, s->dims[j.last]);
    if (j.parts <= 1 || !j.count) {
        op_for(c, j.units, unit_cost + 3,
               j.rows && s->ndim <= 2 ? run_rows : run_units, &j);
        return;
    }
    j.part_size = (size_t)cols * r->acc_size;
    j.part_acc = mem_array((size_t)(j.units * j.parts), j.part_size);
    op_for(c, j.units * j.parts, unit_cost / (double)j.parts, run_parts, &j);
    join_parts(&j);
    mem_free(j.part_acc);
}
