/*
 * Softmax, LogSoftmax and the two cross entropies with logits.
 *
 * All of them work on rows: the greatest logit is found and taken off, so that
 * no exponential overflows. Half and bfloat16 are computed as float tensors.
 */
#include "kernel/cast.h"
#include "kernel/types.h"
#include "kernel/vmath.h"

/* Neighbours that are joined at once, and short rows' elements that are. */
#define LANES 64
#define SHORT 512

/* ---- rows ---- */

/* x <= 0 */
#define EXP_f32(x) vmath_exp_below(x)
#define EXP_f64(x) exp(x)

/* Joins lanes[LANES] in pairs. */
#define JOIN(lane, STEP)                                                       \
    for (int w = LANES / 2; w; w /= 2)                                         \
        for (int k = 0; k < w; k++)                                            \
    lane[k] = STEP(lane[k], lane[k + w])
#define MORE(a, b) ((b) > (a) ? (b) : (a))
#define ADD(a, b)  ((a) + (b))

#define ROWS(s, T, A, DT, LD, ST)                                              \
    /* NaN is passed over. */                                                  \
    static T short_max_##s(const T *x, int64_t n, T max)                       \
    {                                                                          \
        for (int64_t i = 0; i < n; i++)                                        \
            max = MORE(max, x[i]);                                             \
        return max;                                                            \
    }                                                                          \
    /* Keeps lanes apart, so that it is a vector. */                           \
    CLONES_##s static T long_max_##s(const T *x, int64_t n)                    \
    {                                                                          \
        T lane[LANES];                                                         \
        int64_t i;                                                             \
                                                                               \
        for (int k = 0; k < LANES; k++)                                        \
            lane[k] = x[k] > -INFINITY ? x[k] : -INFINITY;                     \
        for (i = LANES; i + LANES <= n; i += LANES)                            \
            for (int k = 0; k < LANES; k++)                                    \
                lane[k] = MORE(lane[k], x[i + k]);                             \
        /* The last ones, some of them again. */                               \
        for (int k = 0; k < LANES; k++)                                        \
            lane[k] = MORE(lane[k], x[n - LANES + k]);                         \
        JOIN(lane, MORE);                                                      \
        return lane[0];                                                        \
    }                                                                          \
    static T row_max_##s(const T *x, int64_t n)                                \
    {                                                                          \
        return n < LANES ? short_max_##s(x, n, -INFINITY)                      \
                         : long_max_##s(x, n);                                 \
    }                                                                          \
    static T short_sum_##s(const T *x, int64_t n)                              \
    {                                                                          \
        T sum = 0;                                                             \
                                                                               \
        for (int64_t i = 0; i < n; i++)                                        \
            sum += x[i];                                                       \
        return sum;                                                            \
    }                                                                          \
    /* out = exp(x - max), and their sum. */                                   \
    CLONES_##s static T row_exp_##s(T *out, const T *x, T max, int64_t n)      \
    {                                                                          \
        T lane[LANES] = { 0 }, sum = 0;                                        \
        int64_t i;                                                             \
                                                                               \
        for (i = 0; i + LANES <= n; i += LANES) {                              \
            LOOP_IN_PLACE                                                      \
            for (int k = 0; k < LANES; k++) {                                  \
                T e = EXP_##s(x[i + k] - max);                                 \
                                                                               \
                out[i + k] = e;                                                \
                lane[k] += e;                                                  \
            }                                                                  \
        }                                                                      \
        if (i) {                                                               \
            JOIN(lane, ADD);                                                   \
            sum = lane[0];                                                     \
        }                                                                      \
        LOOP_IN_PLACE                                                          \
        for (int64_t k = i; k < n; k++)                                        \
            out[k] = EXP_##s(x[k] - max);                                      \
        for (; i < n; i++)                                                     \
            sum += out[i];                                                     \
        return sum;                                                            \
    }                                                                          \
    CLONES_##s static void row_scale_##s(T *out, T factor, int64_t n)          \
    {                                                                          \
        for (int64_t i = 0; i < n; i++)                                        \
            out[i] *= factor;                                                  \
    }                                                                          \
    CLONES_##s static void row_shift_##s(T *out, const T *x, T by, int64_t n)  \
    {                                                                          \
        LOOP_IN_PLACE                                                          \
        for (int64_t i = 0; i < n; i++)                                        \
            out[i] = x[i] - by;                                                \
    }                                                                          \
    /* The sum of exponentials, block by block: nothing is stored. */          \
    static T row_exp_sum_##s(const T *x, T max, int64_t n)                     \
    {                                                                          \
        T block[256], sum = 0;                                                 \
                                                                               \
        for (int64_t i = 0; i < n; i += 256)                                   \
            sum += row_exp_##s(block, x + i, max, MIN(n - i, 256));            \
        return sum;                                                            \
    }                                                                          \
    static void softmax_long_##s(T *out, const T *in, int64_t rows, int64_t n) \
    {                                                                          \
        for (int64_t r = 0; r < rows; r++, in += n, out += n) {                \
            T sum = row_exp_##s(out, in, row_max_##s(in, n), n);               \
                                                                               \
            row_scale_##s(out, 1 / sum, n);                                    \
        }                                                                      \
    }                                                                          \
    /* Short rows, several at once, whose elements are one loop. */            \
    CLONES_##s static void softmax_short_##s(T *out, const T *in,              \
                                             int64_t rows, int64_t n)          \
    {                                                                          \
        int64_t count = rows * n;                                              \
                                                                               \
        for (int64_t i = 0; i < count; i += n) {                               \
            T max = short_max_##s(in + i, n, -INFINITY);                       \
                                                                               \
            LOOP_IN_PLACE                                                      \
            for (int64_t k = i; k < i + n; k++)                                \
                out[k] = in[k] - max;                                          \
        }                                                                      \
        for (int64_t i = 0; i < count; i++)                                    \
            out[i] = EXP_##s(out[i]);                                          \
        for (int64_t i = 0; i < count; i += n) {                               \
            T factor = 1 / short_sum_##s(out + i, n);                          \
                                                                               \
            for (int64_t k = i; k < i + n; k++)                                \
                out[k] *= factor;                                              \
        }                                                                      \
    }                                                                          \
    static void softmax_rows_##s(void *out_, const void *in_, int64_t rows,    \
                                 int64_t n)                                    \
    {                                                                          \
        const T *in = in_;                                                     \
        T *out = out_;                                                         \
        int64_t step = MAX(SHORT / n, 1), m;                                   \
                                                                               \
        if (n >= LANES) {                                                      \
            softmax_long_##s(out, in, rows, n);                                \
            return;                                                            \
        }                                                                      \
        for (int64_t r = 0; r < rows; r += m) {                                \
            m = MIN(step, rows - r);                                           \
            softmax_short_##s(out + r * n, in + r * n, m, n);                  \
        }                                                                      \
    }                                                                          \
    static void log_softmax_rows_##s(void *out_, const void *in_,              \
                                     int64_t rows, int64_t n)                  \
    {                                                                          \
        const T *in = in_;                                                     \
        T *out = out_;                                                         \
                                                                               \
        for (int64_t r = 0; r < rows; r++, in += n, out += n) {                \
            T max = row_max_##s(in, n), sum = row_exp_sum_##s(in, max, n);     \
                                                                               \
            row_shift_##s(out, in, max + log(sum), n);                         \
        }                                                                      \
    }
TYPES_FLOAT_WIDE(ROWS)

/* ---- Softmax, LogSoftmax ---- */

typedef void softmax_fn(void *out, const void *in, int64_t rows, int64_t n);

struct softmax_job {
    softmax_fn *fn;
    const char *in;
    char *out;
    size_t bytes; /* of a row */
    int64_t n;
};

static void softmax_rows(void *arg, int64_t begin, int64_t end)
{
    const struct softmax_job *j = arg;

    j->fn(j->out + (size_t)begin * j->bytes, j->in + (size_t)begin * j->bytes,
          end - begin, j->n);
}

static void softmax_all(const struct op_ctx *c, struct tensor *out,
                        const struct tensor *in, softmax_fn *fn)
{
    struct softmax_job j = { fn, in->data, out->data, 0,
                             in->dims[in->ndim - 1] };

    if (!in->count)
        return;
    j.bytes = (size_t)j.n * dtype_size((enum dtype)in->dtype);
    op_for(c, in->count / j.n, 2 * (double)j.n, softmax_rows, &j);
}

static enum mst_code softmax_run(struct op_ctx *c, softmax_fn *fn)
{
    char text[SHAPE_TEXT_MAX];
    struct tensor wide;
    enum mst_code rc;

    if (!op_in(c, 0)->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "logits must have >= 1 dimension, got %s",
                       tensor_shape_text(op_in(c, 0), text));
    if (op_in(c, 0)->dtype == DT_FLOAT || op_in(c, 0)->dtype == DT_DOUBLE) {
        rc = op_out_forward(c, 0, 0);
        if (!rc)
            softmax_all(c, op_out(c, 0), op_in(c, 0), fn);
        return rc;
    }
    rc = cast_tensor(c, &wide, DT_FLOAT, op_in(c, 0));
    if (rc)
        return rc;
    softmax_all(c, &wide, &wide, fn);
    rc = cast_tensor(c, op_out(c, 0), dtype_base(c->node->out_types[0]), &wide);
    tensor_unref(&wide);
    return rc;
}

#define SOFTMAX(s, T, A, DT, LD, ST, op)                                       \
    static enum mst_code op##_##s(struct op_ctx *c)                            \
    {                                                                          \
        return softmax_run(c, op##_rows_##s);                                  \
    }
#define SOFTMAX_DEF(stem, NAME, OUT)                                           \
    TYPES_FLOAT_WIDE(SOFTMAX, stem)                                            \
    const struct op_def def_##stem = {                                         \
        .name = NAME,                                                          \
        .in = "logits: T",                                                     \
        .out = OUT ": T",                                                      \
        .attr = "T: {half, bfloat16, float, double}",                          \
        .kernel = KERNELS(TYPES_FLOAT_WIDE(ROW, stem){ DT_HALF, stem##_f32 },  \
                          { DT_BFLOAT16, stem##_f32 }, ),                      \
    }
SOFTMAX_DEF(softmax, "Softmax", "softmax");
SOFTMAX_DEF(log_softmax, "LogSoftmax", "logsoftmax");

/* ---- cross entropy ---- */

/* Both inputs are two-dimensional, perhaps by broadcasting; steps are 0 where
 * a dimension is. */
struct entropy {
    int64_t rows, n;
    int64_t x_row, x_col, y_row, y_col;
    const void *x, *y; /* logits, and labels of either kind */
    void *loss, *back;
};

#define ENTROPY(s, T, A, DT, LD, ST)                                           \
    static void gather_##s(T *out, const T *in, int64_t step, int64_t n)       \
    {                                                                          \
        for (int64_t i = 0; i < n; i++)                                        \
            out[i] = in[i * step];                                             \
    }                                                                          \
    /* The loss of a row, of logits with the maximum taken off. A label of     \
     * zero counts nothing, whatever its logit. */                             \
    static T entropy_loss_##s(const T *x, const T *y, int64_t step, T log_sum, \
                              int64_t n)                                       \
    {                                                                          \
        T loss = 0;                                                            \
                                                                               \
        for (int64_t i = 0; i < n; i++)                                        \
            loss += y[i * step] == 0 ? 0 : y[i * step] * (log_sum - x[i]);     \
        return loss;                                                           \
    }                                                                          \
    CLONES_##s static void entropy_back_##s(T *back, const T *y, int64_t step, \
                                            T factor, int64_t n)               \
    {                                                                          \
        LOOP_IN_PLACE                                                          \
        for (int64_t i = 0; i < n; i++)                                        \
            back[i] = EXP_##s(back[i]) * factor - y[i * step];                 \
    }                                                                          \
    static void entropy_rows_##s(void *arg, int64_t begin, int64_t end)        \
    {                                                                          \
        const struct entropy *e = arg;                                         \
                                                                               \
        for (int64_t r = begin; r < end; r++) {                                \
            const T *x = (const T *)e->x + r * e->x_row;                       \
            const T *y = (const T *)e->y + r * e->y_row;                       \
            T *back = (T *)e->back + r * e->n, max, sum;                       \
                                                                               \
            if (e->x_col != 1) {                                               \
                gather_##s(back, x, e->x_col, e->n);                           \
                x = back;                                                      \
            }                                                                  \
            max = row_max_##s(x, e->n);                                        \
            row_shift_##s(back, x, max, e->n);                                 \
            sum = row_exp_sum_##s(back, 0, e->n);                              \
            ((T *)e->loss)[r] =                                                \
                entropy_loss_##s(back, y, e->y_col, log(sum), e->n);           \
            entropy_back_##s(back, y, e->y_col, 1 / sum, e->n);                \
        }                                                                      \
    }                                                                          \
    /* Labels are class numbers in e->y, as int64. They were checked, but may  \
     * be a variable that changes meanwhile. */                                \
    static void sparse_rows_##s(void *arg, int64_t begin, int64_t end)         \
    {                                                                          \
        const struct entropy *e = arg;                                         \
                                                                               \
        for (int64_t r = begin; r < end; r++) {                                \
            const T *x = (const T *)e->x + r * e->n;                           \
            int64_t label = ((const int64_t *)e->y)[r];                        \
            T *back = (T *)e->back + r * e->n;                                 \
            T max = row_max_##s(x, e->n), at, sum;                             \
                                                                               \
            label = label >= 0 && label < e->n ? label : 0;                    \
            at = x[label] - max;                                               \
            sum = row_exp_##s(back, x, max, e->n);                             \
            row_scale_##s(back, 1 / sum, e->n);                                \
            back[label] -= 1;                                                  \
            ((T *)e->loss)[r] = log(sum) - at;                                 \
        }                                                                      \
    }
TYPES_FLOAT_WIDE(ENTROPY)

static enum mst_code entropy_shape(struct op_ctx *c, struct entropy *e)
{
    const struct tensor *x = op_in(c, 0), *y = op_in(c, 1);
    char xt[SHAPE_TEXT_MAX], yt[SHAPE_TEXT_MAX];
    struct shape s;

    if (!shape_broadcast(x, y, &s))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "logits and labels must be broadcastable: "
                       "logits_size=%s labels_size=%s",
                       tensor_shape_text(x, xt), tensor_shape_text(y, yt));
    if (s.ndim != 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "logits and labels must be either 2-dimensional, or "
                       "broadcasted to be 2-dimensional");
    e->rows = s.dims[0];
    e->n = s.dims[1];
    for (int i = 0; i < 2; i++) {
        const struct tensor *t = op_in(c, i);
        int64_t cols = t->ndim ? t->dims[t->ndim - 1] : 1;
        int64_t rows = t->ndim > 1 ? t->dims[0] : 1;

        *(i ? &e->y_col : &e->x_col) = cols == e->n;
        *(i ? &e->y_row : &e->x_row) =
            rows == e->rows && e->rows > 1 ? cols : 0;
    }
    return MST_OK;
}

/* Inputs as the loops want them: the logits, and the dense labels, in float
 * for half; class numbers as int64. t: two tensors that the caller releases. */
static enum mst_code entropy_inputs(struct op_ctx *c, struct tensor *t,
                                    bool sparse)
{
    for (int i = 0; i < 2; i++) {
        const struct tensor *in = op_in(c, i);
        enum dtype want = sparse && i              ? DT_INT64
                          : in->dtype == DT_DOUBLE ? DT_DOUBLE
                                                   : DT_FLOAT;
        enum mst_code rc;

        if (in->dtype == want) {
            t[i] = tensor_ref(in);
            continue;
        }
        rc = cast_tensor(c, &t[i], want, in);
        if (rc)
            return rc;
    }
    return MST_OK;
}

/* Runs the rows into fresh outputs, loss [rows] and backprop [rows, n]. */
static enum mst_code entropy_go(struct op_ctx *c, struct entropy *e,
                                struct tensor *t, bool sparse)
{
    bool is_double = t[0].dtype == DT_DOUBLE;
    enum dtype want = is_double ? DT_DOUBLE : DT_FLOAT;
    enum dtype out = dtype_base(c->node->out_types[0]);
    struct tensor r[2] = { { 0 } };
    enum mst_code rc = tensor_new(&r[0], want, 1, &e->rows, c->st);

    if (!rc)
        rc = tensor_new(&r[1], want, 2, (int64_t[]){ e->rows, e->n }, c->st);
    if (!rc) {
        e->x = t[0].data;
        e->y = t[1].data;
        e->loss = r[0].data;
        e->back = r[1].data;
        if (sparse)
            op_for(c, e->rows, 2 * (double)e->n,
                   is_double ? sparse_rows_f64 : sparse_rows_f32, e);
        else
            op_for(c, e->rows, 3 * (double)e->n,
                   is_double ? entropy_rows_f64 : entropy_rows_f32, e);
    }
    for (int i = 0; i < 2 && !rc; i++) {
        if (out == want)
            tensor_move(op_out(c, i), &r[i]);
        else
            rc = cast_tensor(c, op_out(c, i), out, &r[i]);
    }
    tensor_unref(&r[0]);
    tensor_unref(&r[1]);
    return rc;
}

static enum mst_code entropy(struct op_ctx *c)
{
    struct tensor t[2] = { { 0 } };
    struct entropy e = { 0 };
    enum mst_code rc = entropy_shape(c, &e);

    if (!rc)
        rc = entropy_inputs(c, t, false);
    if (!rc)
        rc = entropy_go(c, &e, t, false);
    tensor_unref(&t[0]);
    tensor_unref(&t[1]);
    return rc;
}

const struct op_def def_softmax_cross_entropy_with_logits = {
    .name = "SoftmaxCrossEntropyWithLogits",
    .in = "features: T, labels: T",
    .out = "loss: T, backprop: T",
    .attr = "T: {half, bfloat16, float, double}",
    .kernel = KERNELS({ DT_ANY, entropy }, ),
};

/* ---- with class numbers ---- */

static enum mst_code sparse_shape(struct op_ctx *c, struct entropy *e)
{
    const struct tensor *x = op_in(c, 0), *y = op_in(c, 1);
    char xt[SHAPE_TEXT_MAX], yt[SHAPE_TEXT_MAX];

    tensor_shape_text(x, xt);
    tensor_shape_text(y, yt);
    if (x->ndim != 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "logits must be 2-D, but got shape %s", xt);
    if (y->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "labels must be 1-D, but got shape %s", yt);
    if (x->dims[0] != y->dims[0])
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "logits and labels must have the same first dimension, "
                       "got logits shape %s and labels shape %s",
                       xt, yt);
    if (!x->dims[1])
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Must have at least one class, but got logits shape %s",
                       xt);
    e->rows = x->dims[0];
    e->n = x->dims[1];
    return MST_OK;
}

static enum mst_code check_labels(struct op_ctx *c, const struct tensor *t,
                                  int64_t classes)
{
    const int64_t *label = t->data;

    for (int64_t i = 0; i < t->count; i++) {
        if (label[i] >= 0 && label[i] < classes)
            continue;
        status_set(c->st, MST_INVALID_ARGUMENT,
                   "Received a label value of %lld which is outside the valid "
                   "range of [0, %lld).  Label values:",
                   (long long)label[i], (long long)classes);
        for (int64_t k = 0; k < MIN(t->count, 128); k++)
            status_append(c->st, " %lld", (long long)label[k]);
        return MST_INVALID_ARGUMENT;
    }
    return MST_OK;
}

static enum mst_code sparse_entropy(struct op_ctx *c)
{
    struct tensor t[2] = { { 0 } };
    struct entropy e = { 0 };
    enum mst_code rc = sparse_shape(c, &e);

    if (!rc)
        rc = entropy_inputs(c, t, true);
    if (!rc)
        rc = check_labels(c, &t[1], e.n);
    if (!rc)
        rc = entropy_go(c, &e, t, true);
    tensor_unref(&t[0]);
    tensor_unref(&t[1]);
    return rc;
}

const struct op_def def_sparse_softmax_cross_entropy_with_logits = {
    .name = "SparseSoftmaxCrossEntropyWithLogits",
    .in = "features: T, labels: Tlabels",
    .out = "loss: T, backprop: T",
    .attr = "T: {half, bfloat16, float, double}; "
            "Tlabels: {int32, int64} = int64",
    .kernel = KERNELS({ DT_ANY, sparse_entropy }, ),
};
