/*
 * Segment ops that add each row to the output's as it comes: ids in any order
 * (UnsortedSegment*), where those below zero are left out, and the gradients of
 * the sparse ones. Work is split by columns.
 */
#include <float.h>

#include "kernel/segment.h"
#include "kernel/types.h"

#define FILL(s, T, A, DT, LD, ST)                                              \
    case DT:                                                                   \
        for (int64_t i = 0; i < t->count; i++)                                 \
            TENSOR_DATA(t, T)[i] = (T)ST((A)1);                                \
        return;

void segment_fill(struct tensor *t, bool one)
{
    if (!one) {
        tensor_zero(t);
        return;
    }
    switch (t->dtype) {
        TYPES_NUMBER(FILL)
    }
}

/* ---- UnsortedSegment* ---- */

struct unsorted {
    void (*start)(void *out, int64_t n);
    void (*add)(void *out, const void *in, int64_t n);
    const struct tensor *ids;
    const char *in;
    char *out;
    size_t size;
    int64_t inner, rows;
};

static void add_columns(void *arg, int64_t begin, int64_t end)
{
    const struct unsorted *u = arg;

    for (int64_t i = 0; i < u->ids->count; i++) {
        int64_t id = tensor_int(u->ids, i);

        if (id >= 0 && id < u->rows)
            u->add(u->out + (size_t)(id * u->inner + begin) * u->size,
                   u->in + (size_t)(i * u->inner + begin) * u->size,
                   end - begin);
    }
}

/* "1,2": where in a tensor of that shape element i lies. */
static const char *place_text(const struct tensor *t, int64_t i, char *text)
{
    int64_t pos[TENSOR_RANK_MAX];

    for (int d = t->ndim - 1; d >= 0; d--) {
        pos[d] = i % t->dims[d];
        i /= t->dims[d];
    }
    shape_text(t->ndim, pos, text);
    return text;
}

static enum mst_code unsorted_check(struct op_ctx *c, int64_t *ret_rows)
{
    const struct tensor *data = op_in(c, 0), *ids = op_in(c, 1);
    const struct tensor *num = op_in(c, 2);
    char dt[SHAPE_TEXT_MAX], it[SHAPE_TEXT_MAX];
    bool starts = ids->ndim <= data->ndim;

    if (num->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "num_segments should be a scalar, not shape %s",
                       tensor_shape_text(num, dt));
    for (int i = 0; i < ids->ndim && starts; i++)
        starts = ids->dims[i] == data->dims[i];
    if (!starts)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "data.shape = %s does not start with segment_ids.shape "
                       "= %s",
                       tensor_shape_text(data, dt), tensor_shape_text(ids, it));
    *ret_rows = tensor_int(num, 0);
    if (*ret_rows < 0)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input num_segments == %lld must not be negative.",
                       (long long)*ret_rows);
    for (int64_t i = 0; i < ids->count; i++)
        if (tensor_int(ids, i) >= *ret_rows)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "segment_ids%s = %lld is out of range [0, %lld)",
                           place_text(ids, i, it),
                           (long long)tensor_int(ids, i), (long long)*ret_rows);
    return MST_OK;
}

static enum mst_code unsorted_run(struct op_ctx *c, struct unsorted *u)
{
    const struct tensor *data = op_in(c, 0), *ids = op_in(c, 1);
    int64_t dims[TENSOR_RANK_MAX + 1];
    enum mst_code rc = unsorted_check(c, &dims[0]);
    int ndim = 1;

    if (rc)
        return rc;
    for (int i = ids->ndim; i < data->ndim; i++)
        dims[ndim++] = data->dims[i];
    rc = op_out_new(c, 0, ndim, dims);
    if (rc || !op_out(c, 0)->count)
        return rc;
    u->rows = dims[0];
    u->inner = op_out(c, 0)->count / u->rows;
    u->ids = ids;
    u->in = data->data;
    u->out = op_out(c, 0)->data;
    u->size = dtype_size((enum dtype)data->dtype);
    u->start(u->out, op_out(c, 0)->count);
    if (data->count)
        op_for(c, u->inner, 1 + 0.5 * (double)ids->count, add_columns, u);
    return MST_OK;
}

#define UNSORTED(s, T, A, DT, LD, ST, op, START, STEP)                         \
    static void op##_start_##s(void *out_, int64_t n)                          \
    {                                                                          \
        T *out = out_;                                                         \
                                                                               \
        for (int64_t i = 0; i < n; i++)                                        \
            out[i] = (T)ST((A)(START));                                        \
    }                                                                          \
    CLONES_##s static void op##_add_##s(void *out_, const void *in_,           \
                                        int64_t n)                             \
    {                                                                          \
        const T *in = in_;                                                     \
        T *out = out_;                                                         \
                                                                               \
        LOOP_IN_PLACE                                                          \
        for (int64_t i = 0; i < n; i++) {                                      \
            A x = LD(out[i]), y = LD(in[i]);                                   \
                                                                               \
            out[i] = (T)ST((A)(STEP));                                         \
        }                                                                      \
    }                                                                          \
    static enum mst_code op##_##s(struct op_ctx *c)                            \
    {                                                                          \
        struct unsorted u = { .start = op##_start_##s, .add = op##_add_##s };  \
                                                                               \
        return unsorted_run(c, &u);                                            \
    }
#define UNSORTED_DEF(stem, NAME, SET, IDS, ...)                                \
    const struct op_def def_##stem = {                                         \
        .name = NAME,                                                          \
        .in = "data: T, segment_ids: Tindices, num_segments: Tnumsegments",    \
        .out = "output: T",                                                    \
        .attr = "T: " SET "; Tindices: " IDS                                   \
                "; Tnumsegments: {int32, int64} = int32",                      \
        .kernel = KERNELS(__VA_ARGS__),                                        \
    }
#define WRAP_ROWS(op)                                                          \
    TYPES_FLOAT(ROW, op)                                                       \
    TYPES_UNSIGNED(ROW, op)                                                    \
    TYPES_SIGNED_WRAP(ROW, op) TYPES_COMPLEX(ROW, op)

TYPES_FLOAT(UNSORTED, unsorted_segment_sum, 0, x + y)
TYPES_UNSIGNED(UNSORTED, unsorted_segment_sum, 0, x + y)
TYPES_COMPLEX(UNSORTED, unsorted_segment_sum, 0, x + y)
UNSORTED_DEF(unsorted_segment_sum, "UnsortedSegmentSum", "numbertype",
             "{int16, int32, int64}", WRAP_ROWS(unsorted_segment_sum));

TYPES_FLOAT(UNSORTED, unsorted_segment_prod, 1, x *y)
TYPES_UNSIGNED(UNSORTED, unsorted_segment_prod, 1, 1u * x * y)
TYPES_COMPLEX(UNSORTED, unsorted_segment_prod, 1, x *y)
UNSORTED_DEF(unsorted_segment_prod, "UnsortedSegmentProd", "numbertype",
             "{int32, int64}", WRAP_ROWS(unsorted_segment_prod));

/* An empty segment has the least finite number, not minus infinity. */
#define FINITE_f32  FLT_MAX
#define FINITE_f64  DBL_MAX
#define FINITE_f16  65504.0f
#define FINITE_bf16 3.38953139e38f
#define EXTREME_FLOAT(s, T, A, DT, LD, ST, op, SIGN, STEP)                     \
    UNSORTED(s, T, A, DT, LD, ST, op, SIGN FINITE_##s, STEP)
#define EXTREME_INT(s, T, A, DT, LD, ST, op, LIMIT, STEP)                      \
    UNSORTED(s, T, A, DT, LD, ST, op, LIMIT##_##s, STEP)
TYPES_FLOAT(EXTREME_FLOAT, unsorted_segment_max, -, x > y ? x : y)
TYPES_INT(EXTREME_INT, unsorted_segment_max, LEAST, x > y ? x : y)
UNSORTED_DEF(unsorted_segment_max, "UnsortedSegmentMax", "realnumbertype",
             "{int32, int64}", TYPES_REAL(ROW, unsorted_segment_max));

TYPES_FLOAT(EXTREME_FLOAT, unsorted_segment_min, +, x < y ? x : y)
TYPES_INT(EXTREME_INT, unsorted_segment_min, GREATEST, x < y ? x : y)
UNSORTED_DEF(unsorted_segment_min, "UnsortedSegmentMin", "realnumbertype",
             "{int32, int64}", TYPES_REAL(ROW, unsorted_segment_min));

/* ---- gradients of SparseSegmentSum, Mean, SqrtN ---- */

enum scaling { SCALE_NONE, SCALE_MEAN, SCALE_SQRT_N };

struct sparse_grad {
    /* out += in * factor */
    void (*add)(void *out, const void *in, double factor, int64_t n);
    const struct tensor *grad, *indices, *ids;
    struct tensor *out;
    const double *factor; /* of each segment */
    size_t size;
    int64_t inner;
};

static void grad_columns(void *arg, int64_t begin, int64_t end)
{
    const struct sparse_grad *g = arg;

    for (int64_t i = 0; i < g->ids->count; i++) {
        int64_t id = tensor_int(g->ids, i), at = tensor_int(g->indices, i);

        if (id < 0 || id >= g->grad->dims[0] || at < 0 || at >= g->out->dims[0])
            continue;
        g->add((char *)g->out->data + (size_t)(at * g->inner + begin) * g->size,
               (const char *)g->grad->data +
                   (size_t)(id * g->inner + begin) * g->size,
               g->factor[id], end - begin);
    }
}

static enum mst_code grad_check(struct op_ctx *c, int64_t *ret_rows)
{
    const struct tensor *grad = op_in(c, 0), *indices = op_in(c, 1);
    const struct tensor *ids = op_in(c, 2), *rows = op_in(c, 3);

    if (!grad->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Shape must be at least rank 1");
    if (indices->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT, "indices should be a vector.");
    if (ids->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "segment_ids should be a vector.");
    if (rows->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "output_dim0 should be a scalar.");
    if (indices->count != ids->count)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "segment_ids and indices should have same size.");
    *ret_rows = tensor_int(rows, 0);
    if (*ret_rows < 0)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Expected a non-negative size, got %lld",
                       (long long)*ret_rows);
    if (ids->count && tensor_int(ids, ids->count - 1) >= grad->dims[0])
        return op_fail(c, MST_INVALID_ARGUMENT, "Invalid number of segments");
    for (int64_t i = 0; i < ids->count; i++) {
        int64_t id = tensor_int(ids, i), at = tensor_int(indices, i);

        if (id < 0 || id >= grad->dims[0])
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Segment id %lld out of range [0, %lld).",
                           (long long)id, (long long)grad->dims[0]);
        if (at < 0 || at >= *ret_rows)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Index %lld out of range [0, %lld).", (long long)at,
                           (long long)*ret_rows);
    }
    return MST_OK;
}

/* One over the count of each segment, or over its root. */
static enum mst_code grad_factors(struct op_ctx *c, enum scaling scaling,
                                  struct tensor *ret)
{
    const struct tensor *ids = op_in(c, 2);
    int64_t n = op_in(c, 0)->dims[0];
    enum mst_code rc = tensor_new(ret, DT_DOUBLE, 1, &n, c->st);
    double *factor;

    if (rc)
        return rc;
    tensor_zero(ret);
    factor = ret->data;
    for (int64_t i = 0; i < ids->count; i++) {
        int64_t id = tensor_int(ids, i);

        if (id >= 0 && id < n)
            factor[id]++;
    }
    for (int64_t i = 0; i < n; i++)
        factor[i] = scaling == SCALE_NONE   ? 1
                    : scaling == SCALE_MEAN ? 1 / MAX(factor[i], 1)
                                            : 1 / sqrt(MAX(factor[i], 1));
    return MST_OK;
}

static enum mst_code grad_run(struct op_ctx *c, enum scaling scaling,
                              struct sparse_grad *g)
{
    const struct tensor *grad = op_in(c, 0);
    int64_t dims[TENSOR_RANK_MAX];
    struct tensor factors = { 0 };
    enum mst_code rc;

    memcpy(dims, grad->dims, sizeof(dims));
    rc = grad_check(c, &dims[0]);
    if (!rc)
        rc = op_out_new(c, 0, grad->ndim, dims);
    if (rc || !op_out(c, 0)->count)
        return rc;
    rc = grad_factors(c, scaling, &factors);
    if (rc)
        return rc;
    tensor_zero(op_out(c, 0));
    g->grad = grad;
    g->indices = op_in(c, 1);
    g->ids = op_in(c, 2);
    g->out = op_out(c, 0);
    g->factor = factors.data;
    g->size = dtype_size((enum dtype)grad->dtype);
    g->inner = g->out->count / dims[0];
    op_for(c, g->inner, 1 + 0.5 * (double)g->ids->count, grad_columns, g);
    tensor_unref(&factors);
    return MST_OK;
}

#define GRAD_ADD(s, T, A, DT, LD, ST)                                          \
    CLONES_##s static void grad_add_##s(void *out_, const void *in_,           \
                                        double factor, int64_t n)              \
    {                                                                          \
        const T *in = in_;                                                     \
        T *out = out_;                                                         \
        A f = (A)factor;                                                       \
                                                                               \
        LOOP_IN_PLACE                                                          \
        for (int64_t i = 0; i < n; i++)                                        \
            out[i] = (T)ST((A)(LD(out[i]) + LD(in[i]) * f));                   \
    }
TYPES_FLOAT(GRAD_ADD)

#define GRAD_RUN(s, T, A, DT, LD, ST, op, scaling)                             \
    static enum mst_code op##_##s(struct op_ctx *c)                            \
    {                                                                          \
        struct sparse_grad g = { .add = grad_add_##s };                        \
                                                                               \
        return grad_run(c, scaling, &g);                                       \
    }
#define GRAD_DEF(stem, NAME, scaling)                                          \
    TYPES_FLOAT(GRAD_RUN, stem, scaling)                                       \
    const struct op_def def_##stem = {                                         \
        .name = NAME,                                                          \
        .in = "grad: T, indices: Tidx, segment_ids: Tsegmentids, "             \
              "output_dim0: int32",                                            \
        .out = "output: T",                                                    \
        .attr = "T: {bfloat16, half, float, double}; "                         \
                "Tidx: {int32, int64} = int32; "                               \
                "Tsegmentids: {int32, int64} = int32",                         \
        .kernel = KERNELS(TYPES_FLOAT(ROW, stem)),                             \
    }
GRAD_DEF(sparse_segment_sum_grad, "SparseSegmentSumGrad", SCALE_NONE);
GRAD_DEF(sparse_segment_mean_grad, "SparseSegmentMeanGrad", SCALE_MEAN);
GRAD_DEF(sparse_segment_sqrt_n_grad, "SparseSegmentSqrtNGrad", SCALE_SQRT_N);
