/*
 * Running sums along an axis: Cumsum, Cumprod, CumulativeLogsumexp.
 *
 * The tensor is outer x n x inner. Along n a row of up to TILE inner elements
 * goes on; the next row of the output is the one before it and a row of the
 * input, so the output is never made over the input.
 */
#include "kernel/types.h"
#include "kernel/vmath.h"

#define TILE 1024

struct scan_state {
    bool exclusive, reverse;
};

static enum mst_code scan_init(struct op_node *n, struct status *st)
{
    struct scan_state *s = ARENA_NEW(n->arena, struct scan_state);

    s->exclusive = op_attr_bool(n, "exclusive");
    s->reverse = op_attr_bool(n, "reverse");
    n->state = s;
    return MST_OK;
}

struct scan_job {
    /* The neutral element; out = before joined with in; a whole row when
     * inner is 1: n elements, `step` apart. */
    void (*start)(void *out, int64_t n);
    void (*join)(void *out, const void *before, const void *in, int64_t n);
    void (*line)(void *out, const void *in, int64_t n, int64_t step,
                 bool exclusive);
    const struct scan_state *s;
    const char *in;
    char *out;
    size_t size;
    int64_t n, inner, tiles;
};

static void scan_tile(const struct scan_job *j, size_t at, int64_t cols)
{
    int64_t step = (j->s->reverse ? -1 : 1) * j->inner * (int64_t)j->size;
    char *out = j->out + at;
    const char *in = j->in + at;

    if (j->s->reverse) {
        out -= (j->n - 1) * step;
        in -= (j->n - 1) * step;
    }
    if (j->s->exclusive)
        j->start(out, cols);
    else
        memcpy(out, in, (size_t)cols * j->size);
    for (int64_t i = 1; i < j->n; i++) {
        out += step;
        if (!j->s->exclusive)
            in += step;
        j->join(out, out - step, in, cols);
        if (j->s->exclusive)
            in += step;
    }
}

static void scan_piece(void *arg, int64_t begin, int64_t end)
{
    const struct scan_job *j = arg;

    for (int64_t u = begin; u < end; u++) {
        int64_t col = u % j->tiles * TILE, outer = u / j->tiles;
        size_t at = (size_t)(outer * j->n * j->inner + col) * j->size;

        if (j->inner > 1)
            scan_tile(j, at, MIN(j->inner - col, TILE));
        else if (j->s->reverse)
            j->line(j->out + at + (size_t)(j->n - 1) * j->size,
                    j->in + at + (size_t)(j->n - 1) * j->size, j->n, -1,
                    j->s->exclusive);
        else
            j->line(j->out + at, j->in + at, j->n, 1, j->s->exclusive);
    }
}

static enum mst_code scan_run(struct op_ctx *c, struct scan_job *j)
{
    const struct tensor *in = op_in(c, 0), *axis = op_in(c, 1);
    char text[SHAPE_TEXT_MAX];
    enum mst_code rc;
    int64_t at;

    if (axis->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "ScanOp: axis must be a scalar, not %s",
                       tensor_shape_text(axis, text));
    at = tensor_int(axis, 0);
    at += at < 0 ? in->ndim : 0;
    if (at < 0 || at >= in->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "ScanOp: Expected scan axis in the range [%d, %d), but "
                       "got %lld",
                       -in->ndim, in->ndim, (long long)at);
    rc = op_out_like(c, 0, in);
    if (rc || !in->count)
        return rc;
    j->s = c->node->state;
    j->in = in->data;
    j->out = op_out(c, 0)->data;
    j->size = dtype_size((enum dtype)in->dtype);
    j->n = in->dims[at];
    j->inner = 1;
    for (int i = (int)at + 1; i < in->ndim; i++)
        j->inner *= in->dims[i];
    j->tiles = (j->inner + TILE - 1) / TILE;
    op_for(c, in->count / j->n / j->inner * j->tiles,
           (double)(j->n * MIN(j->inner, TILE)), scan_piece, j);
    return MST_OK;
}

/* JOIN(a, b) of two A; each result is rounded to T before it goes on. */
#define SCAN(s, T, A, DT, LD, ST, op, NEUTRAL, JOIN)                           \
    static void op##_start_##s(void *out_, int64_t n)                          \
    {                                                                          \
        T *out = out_;                                                         \
                                                                               \
        for (int64_t i = 0; i < n; i++)                                        \
            out[i] = (T)ST((A)(NEUTRAL));                                      \
    }                                                                          \
    CLONES_##s static void op##_join_##s(void *out_, const void *before_,      \
                                         const void *in_, int64_t n)           \
    {                                                                          \
        const T *before = before_, *in = in_;                                  \
        T *out = out_;                                                         \
                                                                               \
        LOOP_IN_PLACE                                                          \
        for (int64_t i = 0; i < n; i++)                                        \
            out[i] = (T)ST((A)(JOIN(LD(before[i]), LD(in[i]))));               \
    }                                                                          \
    static void op##_line_##s(void *out_, const void *in_, int64_t n,          \
                              int64_t step, bool exclusive)                    \
    {                                                                          \
        const T *in = in_;                                                     \
        T *out = out_, sum = (T)ST((A)(NEUTRAL));                              \
                                                                               \
        for (int64_t i = 0; i < n; i++, in += step, out += step) {             \
            if (exclusive)                                                     \
                *out = sum;                                                    \
            sum = (T)ST((A)(JOIN(LD(sum), LD(*in))));                          \
            if (!exclusive)                                                    \
                *out = sum;                                                    \
        }                                                                      \
    }                                                                          \
    static enum mst_code op##_##s(struct op_ctx *c)                            \
    {                                                                          \
        struct scan_job j = { .start = op##_start_##s,                         \
                              .join = op##_join_##s,                           \
                              .line = op##_line_##s };                         \
                                                                               \
        return scan_run(c, &j);                                                \
    }
#define SCAN_DEF(stem, NAME, SET, ...)                                         \
    const struct op_def def_##stem = {                                         \
        .name = NAME,                                                          \
        .in = "x: T, axis: Tidx",                                              \
        .out = "out: T",                                                       \
        .attr = "exclusive: bool = false; reverse: bool = false; T: " SET      \
                "; Tidx: {int32, int64} = int32",                              \
        .init = scan_init,                                                     \
        .kernel = KERNELS(__VA_ARGS__),                                        \
    }
#define SCAN_ROWS(op)                                                          \
    TYPES_FLOAT(ROW, op)                                                       \
    TYPES_UNSIGNED(ROW, op)                                                    \
    TYPES_SIGNED_WRAP(ROW, op) TYPES_COMPLEX(ROW, op)

#define PLUS(a, b)    ((a) + (b))
#define TIMES(a, b)   ((a) * (b))
#define TIMES_U(a, b) (1u * (a) * (b))

TYPES_FLOAT(SCAN, cumsum, 0, PLUS)
TYPES_UNSIGNED(SCAN, cumsum, 0, PLUS)
TYPES_COMPLEX(SCAN, cumsum, 0, PLUS)
SCAN_DEF(cumsum, "Cumsum", "numbertype", SCAN_ROWS(cumsum));

TYPES_FLOAT(SCAN, cumprod, 1, TIMES)
TYPES_UNSIGNED(SCAN, cumprod, 1, TIMES_U)
TYPES_COMPLEX(SCAN, cumprod, 1, TIMES)
SCAN_DEF(cumprod, "Cumprod", "numbertype", SCAN_ROWS(cumprod));

/* log(exp(a) + exp(b)), without leaving the range of the type. */
#define LOG_SUM_EXP(x, y)                                                      \
    ({                                                                         \
        __typeof__((x) + 0) a_ = (x), b_ = (y);                                \
        __typeof__(a_) m_ = a_ > b_ ? a_ : b_, n_ = a_ > b_ ? b_ : a_;         \
        __typeof__(a_) l_ = m_ + log1p(exp(n_ - m_));                          \
        n_ == -INFINITY ? m_ : l_;                                             \
    })
TYPES_FLOAT(SCAN, cumulative_logsumexp, -INFINITY, LOG_SUM_EXP)
SCAN_DEF(cumulative_logsumexp, "CumulativeLogsumexp",
         "{bfloat16, half, float, double}",
         TYPES_FLOAT(ROW, cumulative_logsumexp));
