/*
 * Ragged tensors: values, and for each ragged dimension the row splits, where
 * row i is [splits[i], splits[i + 1]) of the next level. Splits are int32 or
 * int64 and come from the network: every level is checked against the next
 * before it is followed.
 */
#include "base/mem.h"
#include "kernel/types.h"

/* ---- to a sparse tensor ---- */

static enum mst_code to_sparse_check(struct op_ctx *c, int levels)
{
    const struct tensor *values = op_in(c, levels);

    for (int i = 0; i < levels; i++) {
        const struct tensor *s = op_in(c, i);
        int64_t next = i + 1 < levels ? op_in(c, i + 1)->count - 1
                       : values->ndim ? values->dims[0]
                                      : -1;

        if (!s->count)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "ragged splits may not be empty.");
        if (tensor_int(s, 0))
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "First value of ragged splits must be 0.");
        for (int64_t k = 1; k < s->count; k++)
            if (tensor_int(s, k - 1) > tensor_int(s, k))
                return op_fail(c, MST_INVALID_ARGUMENT,
                               "Ragged splits should be non decreasing, but "
                               "we got %lld followed by %lld",
                               (long long)tensor_int(s, k - 1),
                               (long long)tensor_int(s, k));
        if (tensor_int(s, s->count - 1) != next)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Final value of ragged splits must match the "
                           "length the corresponding ragged values.");
    }
    if (levels + values->ndim > TENSOR_RANK_MAX)
        return op_fail(c, MST_UNIMPLEMENTED,
                       "Tensors of rank %d are not supported, only up to %d",
                       levels + values->ndim, TENSOR_RANK_MAX);
    return MST_OK;
}

/* Element i of the values: its place in each ragged dimension. row[] is where
 * the walk stands, and only moves on. */
static void to_sparse_index(struct op_ctx *c, int levels, int64_t i,
                            int64_t *row, int64_t *index)
{
    int64_t at = i;

    for (int d = levels - 1; d >= 0; d--) {
        const struct tensor *s = op_in(c, d);

        while (tensor_int(s, row[d] + 1) <= at)
            row[d]++;
        index[d + 1] = at - tensor_int(s, row[d]);
        at = row[d];
    }
    index[0] = at;
}

static void to_sparse_rows(struct op_ctx *c, int levels)
{
    const struct tensor *values = op_in(c, levels);
    int64_t rows = values->dims[0], inner = rows ? values->count / rows : 0;
    int64_t row[TENSOR_RANK_MAX] = { 0 }, index[TENSOR_RANK_MAX];
    int64_t *to = op_out(c, 0)->data;
    int ndim = levels + values->ndim;

    for (int64_t i = 0; i < rows && inner; i++) {
        to_sparse_index(c, levels, i, row, index);
        for (int64_t k = 0; k < inner; k++, to += ndim) {
            int64_t rest = k;

            for (int d = values->ndim - 1; d > 0; d--) {
                index[levels + d] = rest % values->dims[d];
                rest /= values->dims[d];
            }
            memcpy(to, index, (size_t)ndim * sizeof(*to));
        }
    }
}

static enum mst_code ragged_to_sparse(struct op_ctx *c)
{
    int levels = c->node->in_count - 1;
    const struct tensor *values = op_in(c, levels);
    int64_t ndim = levels + values->ndim, *dims;
    enum mst_code rc = to_sparse_check(c, levels);

    if (!rc)
        rc = op_out_new(c, 0, 2, (int64_t[]){ values->count, ndim });
    if (!rc)
        rc = op_out_new(c, 2, 1, &ndim);
    if (rc)
        return rc;
    tensor_reshape(op_out(c, 1), values, 1, &values->count);
    to_sparse_rows(c, levels);
    dims = op_out(c, 2)->data;
    dims[0] = op_in(c, 0)->count - 1;
    for (int i = 0; i < levels; i++) {
        dims[i + 1] = 0;
        for (int64_t k = 1; k < op_in(c, i)->count; k++)
            dims[i + 1] = MAX(dims[i + 1], tensor_int(op_in(c, i), k) -
                                               tensor_int(op_in(c, i), k - 1));
    }
    for (int d = 1; d < values->ndim; d++)
        dims[levels + d] = values->dims[d];
    return MST_OK;
}

const struct op_def def_ragged_tensor_to_sparse = {
    .name = "RaggedTensorToSparse",
    .in = "rt_nested_splits: RAGGED_RANK * Tsplits, rt_dense_values: T",
    .out = "sparse_indices: int64, sparse_values: T, sparse_dense_shape: int64",
    .attr = "RAGGED_RANK: int >= 1; T: type; Tsplits: {int32, int64} = int64",
    .kernel = (const struct op_kernel[]){ { DT_ANY, ragged_to_sparse }, { 0 } },
};

/* ---- ranges ---- */

static enum mst_code range_check(struct op_ctx *c, int64_t *ret_rows)
{
    static const char *const names[] = { "starts", "limits", "deltas" };
    int64_t rows = -1;

    for (int i = 0; i < 3; i++)
        if (op_in(c, i)->ndim > 1)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "%s must be a scalar or vector", names[i]);
    for (int i = 0; i < 3; i++) {
        if (!op_in(c, i)->ndim)
            continue;
        if (rows >= 0 && rows != op_in(c, i)->count)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "starts, limits, and deltas must have the same "
                           "shape");
        rows = op_in(c, i)->count;
    }
    *ret_rows = rows < 0 ? 1 : rows;
    return op_out_new(c, 0, 1, (int64_t[]){ *ret_rows + 1 });
}

static enum mst_code split_put(struct op_ctx *c, int64_t i, int64_t at)
{
    struct tensor *t = op_out(c, 0);

    if (t->dtype == DT_INT64)
        TENSOR_DATA(t, int64_t)[i] = at;
    else if (at <= INT32_MAX)
        TENSOR_DATA(t, int32_t)[i] = (int32_t)at;
    else
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "The total range size overflowed. Consider using int64 "
                       "instead of int32 for row_splits_dtype.");
    return MST_OK;
}

/* How many steps; a double is exact enough for what fits into memory. */
#define STEPS_FLOAT(s, l, d)                                                   \
    (((d) > 0 && (s) >= (l)) || ((d) < 0 && (s) <= (l))                        \
         ? 0.0                                                                 \
         : ceil(fabs(((double)(l) - (double)(s)) / (double)(d))))
#define STEPS_f32  STEPS_FLOAT
#define STEPS_f64  STEPS_FLOAT
#define STEPS_bf16 STEPS_FLOAT
#define STEPS_INT(s, l, d)                                                     \
    (((d) > 0 && (s) >= (l)) || ((d) < 0 && (s) <= (l))                        \
         ? 0                                                                   \
         : (double)((((d) > 0 ? (__int128)(l) - (s) : (__int128)(s) - (l)) +   \
                     ((d) > 0 ? (__int128)(d) : -(__int128)(d)) - 1) /         \
                    ((d) > 0 ? (__int128)(d) : -(__int128)(d))))
#define STEPS_i32       STEPS_INT
#define STEPS_i64       STEPS_INT
#define NEXT_f32(x, d)  ((x) + (d))
#define NEXT_f64(x, d)  ((x) + (d))
#define NEXT_bf16(x, d) bf16_load(bf16_store((x) + (d)))
#define NEXT_i32(x, d)  (int32_t)((uint32_t)(x) + (uint32_t)(d))
#define NEXT_i64(x, d)  (int64_t)((uint64_t)(x) + (uint64_t)(d))

#define RANGE(s, T, A, DT, LD, ST)                                             \
    static A range_at_##s(struct op_ctx *c, int k, int64_t i)                  \
    {                                                                          \
        return LD(TENSOR_DATA(op_in(c, k), T)[op_in(c, k)->ndim ? i : 0]);     \
    }                                                                          \
    static enum mst_code ragged_range_##s(struct op_ctx *c)                    \
    {                                                                          \
        int64_t rows, at = 0;                                                  \
        T *to;                                                                 \
        enum mst_code rc = range_check(c, &rows);                              \
                                                                               \
        if (!rc)                                                               \
            rc = split_put(c, 0, 0);                                           \
        for (int64_t i = 0; i < rows && !rc; i++) {                            \
            A start = range_at_##s(c, 0, i), limit = range_at_##s(c, 1, i);    \
            A delta = range_at_##s(c, 2, i);                                   \
            double n;                                                          \
                                                                               \
            if (delta == 0)                                                    \
                return op_fail(c, MST_INVALID_ARGUMENT,                        \
                               "Requires delta != 0");                         \
            n = STEPS_##s(start, limit, delta);                                \
            if (!(n + (double)at < 0x1p60))                                    \
                return op_fail(c, MST_INVALID_ARGUMENT,                        \
                               "Requires ((limit - start) / delta) <= %lld",   \
                               (long long)INT64_MAX);                          \
            at += (int64_t)n;                                                  \
            rc = split_put(c, i + 1, at);                                      \
        }                                                                      \
        if (!rc)                                                               \
            rc = op_out_new(c, 1, 1, &at);                                     \
        if (rc)                                                                \
            return rc;                                                         \
        to = op_out(c, 1)->data;                                               \
        for (int64_t i = 0; i < rows; i++) {                                   \
            A x = range_at_##s(c, 0, i), delta = range_at_##s(c, 2, i);        \
                                                                               \
            for (int64_t k = tensor_int(op_out(c, 0), i);                      \
                 k < tensor_int(op_out(c, 0), i + 1); k++) {                   \
                *to++ = ST(x);                                                 \
                x = NEXT_##s(x, delta);                                        \
            }                                                                  \
        }                                                                      \
        return MST_OK;                                                         \
    }

TYPES_FLOAT_WIDE(RANGE)
TYPES_BFLOAT16(RANGE)
TYPES_INDEX(RANGE)

const struct op_def def_ragged_range = {
    .name = "RaggedRange",
    .in = "starts: T, limits: T, deltas: T",
    .out = "rt_nested_splits: Tsplits, rt_dense_values: T",
    .attr = "T: {bfloat16, float, double, int32, int64} = int32; "
            "Tsplits: {int32, int64} = int64",
    .kernel = KERNELS(TYPES_FLOAT_WIDE(ROW, ragged_range) TYPES_BFLOAT16(
        ROW, ragged_range) TYPES_INDEX(ROW, ragged_range)),
};

/* ---- rows by number ---- */

struct gather {
    int levels; /* of the parameters */
    const struct tensor *values, *indices;
    int64_t **splits; /* of each level of the output that is not uniform */
    size_t *count, *room;
    int64_t (*spans)[2]; /* of the values */
    size_t span_count, span_room;
    int64_t total;
};

static enum mst_code gather_check(struct op_ctx *c, struct gather *g)
{
    int64_t rows = op_in(c, 0)->count - 1;
    int first = g->indices->ndim - 1;

    if (!g->values->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT, "params.rank must be nonzero");
    for (int64_t i = 0; i < g->indices->count; i++) {
        int64_t k = tensor_int(g->indices, i);

        if (k < 0 || k >= rows)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "indices[%lld] = %lld is not in [0, %lld)",
                           (long long)i, (long long)k, (long long)rows);
    }
    for (int d = 0; d < g->levels; d++) {
        const struct tensor *s = op_in(c, d);
        int64_t next =
            d + 1 < g->levels ? op_in(c, d + 1)->count - 1 : g->values->dims[0];

        if (!s->count)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Ragged splits must be non-empty");
        if (tensor_int(s, 0) < 0)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Ragged splits must be non-negative");
        if (tensor_int(s, s->count - 1) > next)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Ragged splits must not point past values");
        for (int64_t k = 1; k < s->count; k++)
            if (tensor_int(s, k - 1) > tensor_int(s, k))
                return op_fail(c, MST_INVALID_ARGUMENT,
                               "Ragged splits must be sorted");
    }
    if (c->node->out_count - 1 != g->levels + first)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "OUTPUT_RAGGED_RANK is %d, not %d",
                       c->node->out_count - 1, g->levels + first);
    return MST_OK;
}

/* The row `at`, and what is below it, at the end of the output. */
static void gather_row(struct op_ctx *c, struct gather *g, int64_t at)
{
    int64_t begin = at, end = at + 1;

    for (int d = 0; d < g->levels; d++) {
        const struct tensor *s = op_in(c, d);
        bool skip = g->indices->ndim == 0 && d == 0; /* no such level */

        for (int64_t r = begin; r < end && !skip; r++) {
            int64_t last = g->splits[d][g->count[d] - 1];

            *MEM_PUSH(g->splits[d], g->count[d], g->room[d]) =
                last + tensor_int(s, r + 1) - tensor_int(s, r);
        }
        begin = tensor_int(s, begin);
        end = tensor_int(s, end);
    }
    if (begin < end) {
        int64_t(*span)[2] = MEM_PUSH(g->spans, g->span_count, g->span_room);

        (*span)[0] = begin;
        (*span)[1] = end - begin;
        g->total += end - begin;
    }
}

static enum mst_code gather_splits(struct op_ctx *c, int out, const int64_t *v,
                                   int64_t n, int64_t step)
{
    enum mst_code rc = op_out_new(c, out, 1, &n);

    for (int64_t i = 0; i < n && !rc; i++) {
        int64_t x = v ? v[i] : i * step;

        if (op_out(c, out)->dtype == DT_INT64)
            TENSOR_DATA(op_out(c, out), int64_t)[i] = x;
        else
            TENSOR_DATA(op_out(c, out), int32_t)[i] = (int32_t)x;
    }
    return rc;
}

static enum mst_code gather_put(struct op_ctx *c, struct gather *g)
{
    int lead = g->indices->ndim - 1, out = 0;
    int64_t dims[TENSOR_RANK_MAX], rows = 1, at = 0, inner;
    enum mst_code rc = MST_OK;

    for (int d = 0; d < lead && !rc; d++) {
        rows *= g->indices->dims[d];
        rc = gather_splits(c, out++, NULL, rows + 1, g->indices->dims[d + 1]);
    }
    for (int d = lead < 0; d < g->levels && !rc; d++)
        rc = gather_splits(c, out++, g->splits[d], (int64_t)g->count[d], 0);
    memcpy(dims, g->values->dims, sizeof(dims));
    dims[0] = g->total;
    if (!rc)
        rc = op_out_new(c, out, g->values->ndim, dims);
    if (rc)
        return rc;
    inner = g->values->dims[0] ? g->values->count / g->values->dims[0] : 0;
    for (size_t i = 0; i < g->span_count; i++) {
        tensor_copy_elems(op_out(c, out), at, g->values, g->spans[i][0] * inner,
                          g->spans[i][1] * inner);
        at += g->spans[i][1] * inner;
    }
    return MST_OK;
}

static enum mst_code ragged_gather(struct op_ctx *c)
{
    int n = c->node->in_count - 2;
    struct gather g = { .levels = n,
                        .values = op_in(c, n),
                        .indices = op_in(c, n + 1) };
    enum mst_code rc = gather_check(c, &g);

    if (rc)
        return rc;
    g.splits = mem_array((size_t)n, sizeof(*g.splits));
    g.count = mem_array((size_t)n, sizeof(*g.count));
    g.room = mem_array((size_t)n, sizeof(*g.room));
    for (int d = 0; d < n; d++)
        *MEM_PUSH(g.splits[d], g.count[d], g.room[d]) = 0;
    for (int64_t i = 0; i < g.indices->count; i++)
        gather_row(c, &g, tensor_int(g.indices, i));
    rc = gather_put(c, &g);
    for (int d = 0; d < n; d++)
        mem_free(g.splits[d]);
    mem_free(g.splits);
    mem_free(g.count);
    mem_free(g.room);
    mem_free(g.spans);
    return rc;
}

const struct op_def def_ragged_gather = {
    .name = "RaggedGather",
    .in = "params_nested_splits: PARAMS_RAGGED_RANK * Tsplits, "
          "params_dense_values: Tvalues, indices: Tindices",
    .out = "output_nested_splits: OUTPUT_RAGGED_RANK * Tsplits, "
           "output_dense_values: Tvalues",
    .attr = "Tvalues: type; Tindices: {int32, int64}; "
            "Tsplits: {int32, int64} = int64; PARAMS_RAGGED_RANK: int >= 1; "
            "OUTPUT_RAGGED_RANK: int >= 0",
    .key = "Tvalues",
    .kernel = (const struct op_kernel[]){ { DT_ANY, ragged_gather }, { 0 } },
};
