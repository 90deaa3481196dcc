/*
 * Sums (products, extremes, means) of rows that share a segment: the ops whose
 * segment ids are sorted, with rows as they lie or picked by indices (Sparse).
 *
 * The loops are those of the reductions (reduce.h): a segment is started, rows
 * are added, it is finished. Work is split by columns, so threads need not
 * agree on anything. Ids and indices are checked before; they are read again
 * here and may be a variable that changes, so each is checked when used, too.
 */
#include "kernel/segment.h"

#include "kernel/reduce.h"

struct segments {
    const struct reduce *r;
    const struct tensor *data, *indices, *ids;
    struct tensor *out;
    size_t size;
    int64_t inner; /* elements of a row */
};

/* Rows [begin, end) of ids, all of one segment, for some columns. */
static void add_rows(const struct segments *s, int64_t begin, int64_t end,
                     int64_t col, int64_t cols, void *acc)
{
    const char *data = (const char *)s->data->data + (size_t)col * s->size;

    if (!s->indices) {
        s->r->cols(acc, data + (size_t)(begin * s->inner) * s->size,
                   end - begin, s->inner, cols);
        return;
    }
    for (int64_t i = begin; i < end; i++) {
        int64_t at = tensor_int(s->indices, i);

        if (at >= 0 && at < s->data->dims[0])
            s->r->cols(acc, data + (size_t)(at * s->inner) * s->size, 1,
                       s->inner, cols);
    }
}

static void do_tile(const struct segments *s, int64_t col, int64_t cols)
{
    _Alignas(64) char acc[REDUCE_COLS_MAX * REDUCE_ACC_MAX];
    char *out = (char *)s->out->data + (size_t)col * s->size;
    int64_t n = s->ids->count, end;

    for (int64_t begin = 0; begin < n; begin = end) {
        int64_t id = tensor_int(s->ids, begin);

        end = begin + 1;
        while (end < n && tensor_int(s->ids, end) == id)
            end++;
        if (id < 0 || id >= s->out->dims[0])
            continue;
        s->r->start(acc, cols);
        add_rows(s, begin, end, col, cols, acc);
        s->r->finish(out + (size_t)(id * s->inner) * s->size, acc, cols,
                     end - begin);
    }
}

static void do_columns(void *arg, int64_t begin, int64_t end)
{
    for (int64_t col = begin; col < end; col += REDUCE_COLS_MAX)
        do_tile(arg, col, MIN(end - col, REDUCE_COLS_MAX));
}

/* ---- checks ---- */

/* Sorted, and within [0, rows). */
static enum mst_code check_ids(struct op_ctx *c, const struct tensor *ids,
                               int64_t rows)
{
    for (int64_t i = 0; i < ids->count; i++) {
        int64_t id = tensor_int(ids, i);

        if (i + 1 < ids->count && tensor_int(ids, i + 1) < id)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "segment ids are not increasing");
        if (id < 0 || id >= rows)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Segment id %lld out of range [0, %lld), possibly "
                           "because 'segment_ids' input is not sorted.",
                           (long long)id, (long long)rows);
    }
    return MST_OK;
}

static enum mst_code check_indices(struct op_ctx *c,
                                   const struct tensor *indices, int64_t rows)
{
    for (int64_t i = 0; i < indices->count; i++) {
        int64_t at = tensor_int(indices, i);

        if (at < 0 || at >= rows)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Bad: indices[%lld] == %lld out of range [0, %lld)",
                           (long long)i, (long long)at, (long long)rows);
    }
    return MST_OK;
}

/* One row for each id up to the last, or as many as the op is told. */
static enum mst_code out_rows(struct op_ctx *c, const struct tensor *ids,
                              int64_t *ret)
{
    int64_t last = ids->count ? tensor_int(ids, ids->count - 1) : -1, num;
    const struct tensor *t = op_in(c, 3);
    char text[SHAPE_TEXT_MAX];

    if (c->node->in_count < 4) {
        bool dense = c->node->in_count == 2; /* not picked by indices */

        if (last < -1 || last == INT64_MAX || (dense && ids->count && last < 0))
            return op_fail(c, MST_INVALID_ARGUMENT, "segment ids must be >= 0");
        *ret = last + 1;
        return MST_OK;
    }
    if (t->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "num_segments should be a scalar, not shape %s",
                       tensor_shape_text(t, text));
    num = tensor_int(t, 0);
    if (num < 0)
        return op_fail(c, MST_INVALID_ARGUMENT, "segment ids must be >= 0");
    if (last >= num)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "segment ids must be < num_segments");
    *ret = num;
    return MST_OK;
}

/* ---- running; input 0 is the data, the last of the others the ids ---- */

static enum mst_code run(struct op_ctx *c, enum reduce_op op,
                         const struct tensor *indices, const struct tensor *ids)
{
    const struct tensor *data = op_in(c, 0);
    struct segments s = { .data = data, .indices = indices, .ids = ids };
    int64_t dims[TENSOR_RANK_MAX];
    enum mst_code rc;

    memcpy(dims, data->dims, sizeof(dims));
    rc = out_rows(c, ids, &dims[0]);
    if (!rc)
        rc = check_ids(c, ids, dims[0]);
    if (!rc && indices)
        rc = check_indices(c, indices, data->dims[0]);
    if (!rc)
        rc = op_out_new(c, 0, data->ndim, dims);
    if (rc || !op_out(c, 0)->count)
        return rc;
    s.r = reduce_of(op, (enum dtype)data->dtype);
    s.out = op_out(c, 0);
    s.size = dtype_size((enum dtype)data->dtype);
    s.inner = s.out->count / s.out->dims[0];
    segment_fill(s.out, op == REDUCE_PROD); /* what no row falls into */
    op_for(c, s.inner, 1 + 0.5 * (double)ids->count, do_columns, &s);
    return MST_OK;
}

static enum mst_code segment_run(struct op_ctx *c, enum reduce_op op)
{
    const struct tensor *data = op_in(c, 0), *ids = op_in(c, 1);

    if (ids->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "segment_ids should be a vector.");
    if (!data->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "input must be at least rank 1");
    if (data->dims[0] != ids->count)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "segment_ids should be the same size as dimension 0 of "
                       "input.");
    return run(c, op, NULL, ids);
}

static enum mst_code sparse_run(struct op_ctx *c, enum reduce_op op)
{
    if (!op_in(c, 0)->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Shape must be at least rank 1");
    if (op_in(c, 1)->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT, "indices should be a vector.");
    if (op_in(c, 2)->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "segment_ids should be a vector.");
    if (op_in(c, 1)->count != op_in(c, 2)->count)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "segment_ids and indices should have same size.");
    return run(c, op, op_in(c, 1), op_in(c, 2));
}

#define SEGMENT_RUN(name, OP)                                                  \
    static enum mst_code segment_##name(struct op_ctx *c)                      \
    {                                                                          \
        return segment_run(c, OP);                                             \
    }
#define SPARSE_RUN(name, OP)                                                   \
    static enum mst_code sparse_##name(struct op_ctx *c)                       \
    {                                                                          \
        return sparse_run(c, OP);                                              \
    }
SEGMENT_RUN(sum, REDUCE_SUM)
SEGMENT_RUN(mean, REDUCE_MEAN)
SEGMENT_RUN(prod, REDUCE_PROD)
SEGMENT_RUN(max, REDUCE_MAX)
SEGMENT_RUN(min, REDUCE_MIN)
SPARSE_RUN(sum, REDUCE_SUM)
SPARSE_RUN(mean, REDUCE_MEAN)
SPARSE_RUN(sqrt_n, REDUCE_SQRT_N)

/* One function for all types, which have a row each all the same. */
#define ROW_OF(s, T, A, DT, LD, ST, fn) { DT, fn },

#define SEGMENT_DEF(stem, NAME, SET, TYPES)                                    \
    const struct op_def def_segment_##stem = {                                 \
        .name = NAME,                                                          \
        .in = "data: T, segment_ids: Tindices",                                \
        .out = "output: T",                                                    \
        .attr = "T: " SET "; Tindices: {int32, int64}",                        \
        .kernel = KERNELS(TYPES(ROW_OF, segment_##stem)),                      \
    }
SEGMENT_DEF(sum, "SegmentSum", "numbertype", TYPES_NUMBER);
SEGMENT_DEF(mean, "SegmentMean", "numbertype", TYPES_NUMBER);
SEGMENT_DEF(prod, "SegmentProd", "numbertype", TYPES_NUMBER);
SEGMENT_DEF(max, "SegmentMax", "realnumbertype", TYPES_REAL);
SEGMENT_DEF(min, "SegmentMin", "realnumbertype", TYPES_REAL);

#define SPARSE_DEF(stem, NAME, SET, TYPES)                                     \
    const struct op_def def_sparse_segment_##stem = {                          \
        .name = NAME,                                                          \
        .in = "data: T, indices: Tidx, segment_ids: Tsegmentids",              \
        .out = "output: T",                                                    \
        .attr = "T: " SET "; Tidx: {int32, int64} = int32; "                   \
                "Tsegmentids: {int32, int64} = int32; "                        \
                "sparse_gradient: bool = false",                               \
        .kernel = KERNELS(TYPES(ROW_OF, sparse_##stem)),                       \
    };                                                                         \
    const struct op_def def_sparse_segment_##stem##_with_num_segments = {      \
        .name = NAME "WithNumSegments",                                        \
        .in = "data: T, indices: Tidx, segment_ids: Tsegmentids, "             \
              "num_segments: Tnumsegments",                                    \
        .out = "output: T",                                                    \
        .attr = "T: " SET "; Tidx: {int32, int64} = int32; "                   \
                "Tnumsegments: {int32, int64} = int32; "                       \
                "Tsegmentids: {int32, int64} = int32; "                        \
                "sparse_gradient: bool = false",                               \
        .kernel = KERNELS(TYPES(ROW_OF, sparse_##stem)),                       \
    }
#define SET_SPARSE "{bfloat16, half, float, double}"
SPARSE_DEF(sum, "SparseSegmentSum", "realnumbertype", TYPES_REAL);
SPARSE_DEF(mean, "SparseSegmentMean", SET_SPARSE, TYPES_FLOAT);
SPARSE_DEF(sqrt_n, "SparseSegmentSqrtN", SET_SPARSE, TYPES_FLOAT);
