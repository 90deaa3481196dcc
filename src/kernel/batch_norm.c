/*
 * Batch normalisation over all but the last dimension, training and inference,
 * and its gradient, in float; 16-bit inputs are widened.
 *
 * A tensor is rows of channels. Mean and variance are found in one pass: each
 * chunk of rows, which stays in the first cache, has its own mean and the
 * squares around it, and chunks are joined in double, always in the same
 * order.
 */
#include <string.h>

#include "kernel/cast.h"
#include "kernel/types.h"
#include "kernel/window.h"

#define CHUNK_BYTES (24 << 10)

struct norm_node {
    bool channels_first, training;
    float epsilon, factor;
};

static enum mst_code norm_init(struct op_node *n, struct status *st)
{
    struct norm_node *s = ARENA_NEW(n->arena, struct norm_node);
    const struct attr *factor = op_attr(n, "exponential_avg_factor");

    s->channels_first = op_attr_str(n, "data_format").data[1] == 'C';
    s->training = op_attr_bool(n, "is_training");
    s->epsilon = op_attr_float(n, "epsilon");
    s->factor = factor ? factor->value->f : 1;
    n->state = s;
    return MST_OK;
}

/* ---- loops over rows of channels ---- */

VECTOR_CLONES static void row_sums(float *sum, const float *x, int64_t rows,
                                   int64_t n)
{
    for (int64_t i = 0; i < rows; i++, x += n)
        for (int64_t c = 0; c < n; c++)
            sum[c] += x[c];
}

VECTOR_CLONES static void row_squares(float *sum, const float *x,
                                      const float *mean, int64_t rows,
                                      int64_t n)
{
    for (int64_t i = 0; i < rows; i++, x += n)
        for (int64_t c = 0; c < n; c++)
            sum[c] += (x[c] - mean[c]) * (x[c] - mean[c]);
}

VECTOR_CLONES static void row_scale(float *y, const float *x, const float *mean,
                                    const float *scale, const float *offset,
                                    int64_t rows, int64_t n)
{
    for (int64_t i = 0; i < rows; i++, x += n, y += n) {
        LOOP_IN_PLACE
        for (int64_t c = 0; c < n; c++)
            y[c] = (x[c] - mean[c]) * scale[c] + offset[c];
    }
}

/* Sums of dy and of dy * (x - mean). */
VECTOR_CLONES static void row_grads(float *sum, float *product, const float *dy,
                                    const float *x, const float *mean,
                                    int64_t rows, int64_t n)
{
    for (int64_t i = 0; i < rows; i++, x += n, dy += n)
        for (int64_t c = 0; c < n; c++) {
            sum[c] += dy[c];
            product[c] += dy[c] * (x[c] - mean[c]);
        }
}

/* dx = (dy - shift - (x - mean) * slope) * scale. */
VECTOR_CLONES static void row_back(float *dx, const float *dy, const float *x,
                                   const float *mean, const float *shift,
                                   const float *slope, const float *scale,
                                   int64_t rows, int64_t n)
{
    for (int64_t i = 0; i < rows; i++, x += n, dy += n, dx += n) {
        LOOP_IN_PLACE
        for (int64_t c = 0; c < n; c++)
            dx[c] = (dy[c] - shift[c] - (x[c] - mean[c]) * slope[c]) * scale[c];
    }
}

/* ---- statistics ---- */

struct norm_job {
    int64_t rows, n, chunk, chunks;
    const float *x, *dy;
    float *y;
    float *part; /* [chunks][2][n]: mean and squares, or the two sums */
    const float *mean, *scale, *offset, *shift, *slope;
};

static void stat_chunks(void *arg, int64_t begin, int64_t end)
{
    const struct norm_job *j = arg;

    for (int64_t k = begin; k < end; k++) {
        int64_t first = k * j->chunk, rows = MIN(j->rows - first, j->chunk);
        float *mean = j->part + 2 * k * j->n, *square = mean + j->n;

        memset(mean, 0, 2 * (size_t)j->n * sizeof(*mean));
        if (j->dy) {
            row_grads(mean, square, j->dy + first * j->n, j->x + first * j->n,
                      j->mean, rows, j->n);
            continue;
        }
        row_sums(mean, j->x + first * j->n, rows, j->n);
        for (int64_t c = 0; c < j->n; c++)
            mean[c] /= (float)rows;
        row_squares(square, j->x + first * j->n, mean, rows, j->n);
    }
}

/* Chunks of means and squares as one: the squares around a common mean are
 * those around each own one, and the distance of the two for each row. */
static void join_stats(const struct norm_job *j, float *mean, float *variance)
{
    for (int64_t c = 0; c < j->n; c++) {
        double sum = 0, square = 0, m;

        for (int64_t k = 0; k < j->chunks; k++)
            sum += (double)j->part[2 * k * j->n + c] *
                   (double)MIN(j->rows - k * j->chunk, j->chunk);
        m = sum / (double)j->rows;
        for (int64_t k = 0; k < j->chunks; k++) {
            double d = (double)j->part[2 * k * j->n + c] - m;

            square += (double)j->part[(2 * k + 1) * j->n + c] +
                      d * d * (double)MIN(j->rows - k * j->chunk, j->chunk);
        }
        mean[c] = (float)m;
        variance[c] = (float)(square / (double)j->rows);
    }
}

static void join_sums(const struct norm_job *j, float *first, float *second)
{
    for (int64_t c = 0; c < j->n; c++) {
        double a = 0, b = 0;

        for (int64_t k = 0; k < j->chunks; k++) {
            a += (double)j->part[2 * k * j->n + c];
            b += (double)j->part[(2 * k + 1) * j->n + c];
        }
        first[c] = (float)a;
        second[c] = (float)b;
    }
}

/* Runs the chunks; the memory is the caller's to release. */
static enum mst_code stats(struct op_ctx *c, struct norm_job *j,
                           struct buffer **ret)
{
    j->chunk = MAX(CHUNK_BYTES / (int64_t)sizeof(float) / j->n, 16);
    j->chunks = (j->rows + j->chunk - 1) / j->chunk;
    *ret = buffer_new((size_t)(j->chunks * 2 * j->n) * sizeof(float));
    if (!*ret)
        return op_fail(c, MST_RESOURCE_EXHAUSTED, "OOM in normalisation");
    j->part = (float *)(*ret)->data;
    op_for(c, j->chunks, 0.3 * (double)(j->chunk * j->n), stat_chunks, j);
    return MST_OK;
}

static void scale_rows(void *arg, int64_t begin, int64_t end)
{
    const struct norm_job *j = arg;

    row_scale(j->y + begin * j->n, j->x + begin * j->n, j->mean, j->scale,
              j->offset, end - begin, j->n);
}

static void back_rows(void *arg, int64_t begin, int64_t end)
{
    const struct norm_job *j = arg;

    row_back(j->y + begin * j->n, j->dy + begin * j->n, j->x + begin * j->n,
             j->mean, j->shift, j->slope, j->scale, end - begin, j->n);
}

/* ---- inputs and outputs ---- */

static struct window format_of(const struct norm_node *s, int ndim)
{
    return (struct window){ .nd = ndim - 2,
                            .channels_first = s->channels_first };
}

static enum mst_code wide(struct op_ctx *c, int i, struct tensor *ret)
{
    struct window w = format_of(c->node->state, op_in(c, i)->ndim);
    struct tensor t = { 0 };
    enum mst_code rc = window_in(c, &w, op_in(c, i), &t);

    if (!rc && t.dtype == DT_FLOAT)
        tensor_move(ret, &t);
    else if (!rc)
        rc = cast_tensor(c, ret, DT_FLOAT, &t);
    tensor_unref(&t);
    return rc;
}

static enum mst_code deliver(struct op_ctx *c, struct tensor *t)
{
    struct window w = format_of(c->node->state, t->ndim);
    enum dtype type = dtype_base(c->node->out_types[0]);
    struct tensor u = { 0 };
    enum mst_code rc;

    if (t->dtype != type) {
        rc = cast_tensor(c, &u, type, t);
        tensor_unref(t);
        if (rc)
            return rc;
        tensor_move(t, &u);
    }
    return window_out(c, &w, t, op_out(c, 0));
}

static enum mst_code check_vector(struct op_ctx *c, int i, const char *name)
{
    char text[SHAPE_TEXT_MAX];

    if (op_in(c, i)->ndim == 1)
        return MST_OK;
    return op_fail(c, MST_INVALID_ARGUMENT, "%s must be 1-dimensional%s", name,
                   tensor_shape_text(op_in(c, i), text));
}

static enum mst_code check_image(struct op_ctx *c, int i, int64_t *ret_n)
{
    const struct norm_node *s = c->node->state;
    const struct tensor *t = op_in(c, i);
    char text[SHAPE_TEXT_MAX];

    if (t->ndim != 4 && t->ndim != 5)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "input must be 4 or 5-dimensional%s",
                       tensor_shape_text(t, text));
    *ret_n = t->dims[s->channels_first ? 1 : t->ndim - 1];
    return MST_OK;
}

static enum mst_code check_length(struct op_ctx *c, int i, const char *text,
                                  int64_t n)
{
    if (op_in(c, i)->count == n)
        return MST_OK;
    return op_fail(c, MST_INVALID_ARGUMENT,
                   "%s must have the same number of elements as the channels "
                   "of x, got %lld and %lld",
                   text, (long long)op_in(c, i)->count, (long long)n);
}

/* ---- forward ---- */

static enum mst_code check_norm(struct op_ctx *c, int64_t *n)
{
    static const char *const names[] = { "scale", "offset", "estimated_mean",
                                         "estimated_variance" };
    const struct norm_node *s = c->node->state;
    enum mst_code rc = check_image(c, 0, n);

    for (int i = 1; i < 5 && !rc; i++)
        rc = check_vector(c, i, names[i - 1]);
    if (!rc)
        rc = check_length(c, 1, "scale", *n);
    if (!rc)
        rc = check_length(c, 2, "offset", *n);
    if (!rc && (!s->training || s->factor != 1)) {
        rc = check_length(
            c, 3, s->training ? "mean" : "When is_training=false, mean", *n);
        if (!rc)
            rc = check_length(c, 4,
                              s->training ? "variance"
                                          : "When is_training=false, variance",
                              *n);
    }
    return rc;
}

/* Outputs 1 and 2: the running ones; 3 and 4: those of this batch. */
static enum mst_code new_stats(struct op_ctx *c, int64_t n)
{
    enum mst_code rc = MST_OK;

    for (int i = 1; i < 5 && !rc; i++)
        rc = op_out_new(c, i, 1, &n);
    if (!rc && c->node->out_count == 6) {
        rc = op_out_new(c, 5, 0, NULL);
        if (!rc)
            tensor_zero(op_out(c, 5));
    }
    return rc;
}

static void running(struct op_ctx *c, const struct norm_job *j)
{
    const struct norm_node *s = c->node->state;
    const float *old_mean = op_in(c, 3)->data, *old_var = op_in(c, 4)->data;
    float *mean = op_out(c, 1)->data, *var = op_out(c, 2)->data;
    const float *batch_mean = op_out(c, 3)->data;
    const float *batch_var = op_out(c, 4)->data;
    float adjust = (float)j->rows / (float)MAX(j->rows - 1, 1);

    for (int64_t i = 0; i < j->n; i++) {
        if (s->factor == 1) {
            mean[i] = batch_mean[i];
            var[i] = batch_var[i] * adjust;
        } else {
            mean[i] = (1 - s->factor) * old_mean[i] + s->factor * batch_mean[i];
            var[i] = (1 - s->factor) * old_var[i] +
                     s->factor * adjust * batch_var[i];
        }
    }
}

static enum mst_code normalise(struct op_ctx *c, struct norm_job *j,
                               struct tensor *y)
{
    const struct norm_node *s = c->node->state;
    const float *gamma = op_in(c, 1)->data, *var;
    struct buffer *memory = NULL;
    float *scale;
    enum mst_code rc = MST_OK;

    if (s->training) {
        rc = stats(c, j, &memory);
        if (rc)
            return rc;
        join_stats(j, op_out(c, 3)->data, op_out(c, 4)->data);
        running(c, j);
    } else {
        for (int i = 1; i < 5; i++)
            memcpy(op_out(c, i)->data, op_in(c, i % 2 ? 3 : 4)->data,
                   (size_t)j->n * sizeof(float));
        memory = buffer_new((size_t)j->n * sizeof(float));
        if (!memory)
            return op_fail(c, MST_RESOURCE_EXHAUSTED, "OOM in normalisation");
    }
    j->mean = op_out(c, 3)->data;
    var = op_out(c, 4)->data;
    scale = (float *)memory->data;
    for (int64_t i = 0; i < j->n; i++)
        scale[i] = gamma[i] / sqrtf(var[i] + s->epsilon);
    j->scale = scale;
    j->offset = op_in(c, 2)->data;
    j->y = y->data;
    op_for(c, j->rows, 0.2 * (double)j->n, scale_rows, j);
    buffer_unref(memory);
    return MST_OK;
}

static enum mst_code fused_norm(struct op_ctx *c)
{
    struct tensor x = { 0 }, y = { 0 };
    struct norm_job j = { 0 };
    enum mst_code rc = check_norm(c, &j.n);

    if (!rc)
        rc = new_stats(c, j.n);
    if (rc)
        return rc;
    if (!op_in(c, 0)->count) {
        for (int i = 1; i < 5; i++)
            for (int64_t k = 0; k < j.n; k++)
                TENSOR_DATA(op_out(c, i), float)[k] = i < 3 ? NAN : 0;
        return op_out_like(c, 0, op_in(c, 0));
    }
    rc = wide(c, 0, &x);
    if (!rc)
        rc = tensor_new_like(&y, DT_FLOAT, &x, c->st);
    if (!rc) {
        j.rows = x.count / j.n;
        j.x = x.data;
        rc = normalise(c, &j, &y);
    }
    if (!rc)
        rc = deliver(c, &y);
    tensor_unref(&x);
    tensor_unref(&y);
    return rc;
}

/* ---- backward: y_backprop, x, scale, mean, variance ---- */

static enum mst_code check_grad(struct op_ctx *c, int64_t *n)
{
    char a[SHAPE_TEXT_MAX], b[SHAPE_TEXT_MAX];
    enum mst_code rc = check_image(c, 0, n);

    if (!rc)
        rc = check_image(c, 1, n);
    if (!rc)
        rc = check_vector(c, 2, "scale");
    if (!rc)
        rc = check_vector(c, 3, "saved mean");
    if (!rc)
        rc = check_vector(c, 4, "saved variance");
    if (!rc && !tensor_same_shape(op_in(c, 0), op_in(c, 1)))
        rc = op_fail(c, MST_INVALID_ARGUMENT,
                     "x and y_backprop must have same shape, but x has shape "
                     "%s and y_backprop has shape %s",
                     tensor_shape_text(op_in(c, 1), a),
                     tensor_shape_text(op_in(c, 0), b));
    if (!rc)
        rc = check_length(c, 2, "scale", *n);
    if (!rc)
        rc = check_length(c, 3, "reserve_space_1", *n);
    if (!rc)
        rc = check_length(c, 4, "reserve_space_2", *n);
    return rc;
}

static enum mst_code go_back(struct op_ctx *c, struct norm_job *j)
{
    const struct norm_node *s = c->node->state;
    const float *gamma = op_in(c, 2)->data, *var = op_in(c, 4)->data;
    float *dscale = op_out(c, 1)->data, *doffset = op_out(c, 2)->data;
    float *shift, *slope, *scale;
    struct buffer *memory;
    enum mst_code rc;

    j->mean = op_in(c, 3)->data;
    rc = stats(c, j, &memory);
    if (rc)
        return rc;
    join_sums(j, doffset, dscale);
    buffer_unref(memory);
    memory = buffer_new(3 * (size_t)j->n * sizeof(float));
    if (!memory)
        return op_fail(c, MST_RESOURCE_EXHAUSTED, "OOM in normalisation");
    shift = (float *)memory->data;
    slope = shift + j->n;
    scale = slope + j->n;
    for (int64_t i = 0; i < j->n; i++) {
        float inverse = 1 / sqrtf(var[i] + s->epsilon);
        float rows = (float)j->rows;

        shift[i] = s->training ? doffset[i] / rows : 0;
        slope[i] = s->training ? dscale[i] / rows / (var[i] + s->epsilon) : 0;
        scale[i] = gamma[i] * inverse;
        dscale[i] *= inverse;
    }
    j->shift = shift;
    j->slope = slope;
    j->scale = scale;
    op_for(c, j->rows, 0.3 * (double)j->n, back_rows, j);
    buffer_unref(memory);
    return MST_OK;
}

static enum mst_code fused_norm_grad(struct op_ctx *c)
{
    struct tensor dy = { 0 }, x = { 0 }, dx = { 0 };
    struct norm_job j = { 0 };
    enum mst_code rc = check_grad(c, &j.n);

    for (int i = 1; i < 5 && !rc; i++) {
        rc = i < 3 ? op_out_new(c, i, 1, &j.n) : op_out_new(c, i, 0, NULL);
        if (!rc)
            tensor_zero(op_out(c, i));
    }
    if (rc)
        return rc;
    if (!op_in(c, 0)->count)
        return op_out_like(c, 0, op_in(c, 0));
    rc = wide(c, 0, &dy);
    if (!rc)
        rc = wide(c, 1, &x);
    if (!rc)
        rc = tensor_new_like(&dx, DT_FLOAT, &x, c->st);
    if (!rc) {
        j.rows = x.count / j.n;
        j.x = x.data;
        j.dy = dy.data;
        j.y = dx.data;
        rc = go_back(c, &j);
    }
    if (!rc)
        rc = deliver(c, &dx);
    tensor_unref(&dy);
    tensor_unref(&x);
    tensor_unref(&dx);
    return rc;
}

/* ---- records ---- */

#define NORM_IN(U)                                                             \
    "x: T, scale: " U ", offset: " U ", mean: " U ", variance: " U
#define NORM_OUT(U)                                                            \
    "y: T, batch_mean: " U ", batch_variance: " U ", reserve_space_1: " U      \
    ", reserve_space_2: " U
#define NORM_ATTRS(FORMATS)                                                    \
    "epsilon: float = 0.0001; exponential_avg_factor: float = 1; "             \
    "data_format: {" FORMATS "} = 'NHWC'; is_training: bool = true"
#define GRAD_ATTRS(FORMATS)                                                    \
    "epsilon: float = 0.0001; data_format: {" FORMATS "} = 'NHWC'; "           \
    "is_training: bool = true"
#define FORMATS2 "'NHWC', 'NCHW'"
#define FORMATS3 "'NHWC', 'NCHW', 'NDHWC', 'NCDHW'"
#define NORM_KERNELS(fn)                                                       \
    KERNELS({ DT_FLOAT, fn }, { DT_HALF, fn }, { DT_BFLOAT16, fn }, )

#define NORM_DEF(stem, NAME, IN, OUT, ATTR, FN)                                \
    const struct op_def def_##stem = {                                         \
        .name = NAME,                                                          \
        .in = IN,                                                              \
        .out = OUT,                                                            \
        .attr = ATTR,                                                          \
        .init = norm_init,                                                     \
        .kernel = NORM_KERNELS(FN),                                            \
    }

NORM_DEF(fused_batch_norm, "FusedBatchNorm", NORM_IN("T"), NORM_OUT("T"),
         "T: {float}; " NORM_ATTRS(FORMATS2), fused_norm);
NORM_DEF(fused_batch_norm_v2, "FusedBatchNormV2", NORM_IN("U"), NORM_OUT("U"),
         "T: {half, bfloat16, float}; U: {float}; " NORM_ATTRS(FORMATS2),
         fused_norm);
NORM_DEF(fused_batch_norm_v3, "FusedBatchNormV3", NORM_IN("U"),
         NORM_OUT("U") ", reserve_space_3: U",
         "T: {half, bfloat16, float}; U: {float}; " NORM_ATTRS(FORMATS3),
         fused_norm);
NORM_DEF(fused_batch_norm_grad, "FusedBatchNormGrad",
         "y_backprop: T, x: T, scale: T, reserve_space_1: T, "
         "reserve_space_2: T",
         "x_backprop: T, scale_backprop: T, offset_backprop: T, "
         "reserve_space_3: T, reserve_space_4: T",
         "T: {float}; " GRAD_ATTRS(FORMATS2), fused_norm_grad);
NORM_DEF(fused_batch_norm_grad_v2, "FusedBatchNormGradV2",
         "y_backprop: T, x: T, scale: float, reserve_space_1: U, "
         "reserve_space_2: U",
         "x_backprop: T, scale_backprop: U, offset_backprop: U, "
         "reserve_space_3: U, reserve_space_4: U",
         "T: {half, bfloat16, float}; U: {float}; " GRAD_ATTRS(FORMATS2),
         fused_norm_grad);
NORM_DEF(fused_batch_norm_grad_v3, "FusedBatchNormGradV3",
         "y_backprop: T, x: T, scale: float, reserve_space_1: U, "
         "reserve_space_2: U, reserve_space_3: U",
         "x_backprop: T, scale_backprop: U, offset_backprop: U, "
         "reserve_space_4: U, reserve_space_5: U",
         "T: {half, bfloat16, float}; U: {float}; " GRAD_ATTRS(FORMATS3),
         fused_norm_grad);
