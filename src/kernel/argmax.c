/*
 * ArgMax and ArgMin: the place of the first extreme along one axis. NaN is
 * never an extreme; where there is nothing else, the place is 0.
 *
 * Along the last axis the extreme is found first, by lanes, then its place.
 * Along another one all columns go down the rows side by side.
 */
#include "kernel/types.h"

#define LANES    32
#define COLS_MAX 512

/* What is done with places: row: one of n elements; cols: of n columns, each
 * of `rows` elements. */
struct arg_loops {
    int64_t (*row)(const void *in, int64_t n);
    void (*cols)(int64_t *place, const void *in, int64_t rows, int64_t stride,
                 int64_t n);
};

struct arg_job {
    const struct arg_loops *loops;
    const char *in;
    struct tensor *out;
    size_t size;
    int64_t n, inner, tiles;
};

static void store(struct tensor *out, int64_t at, const int64_t *place,
                  int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (out->dtype == DT_INT64)
            TENSOR_DATA(out, int64_t)[at + i] = place[i];
        else if (out->dtype == DT_INT32)
            TENSOR_DATA(out, int32_t)[at + i] = (int32_t)place[i];
        else
            TENSOR_DATA(out, uint16_t)[at + i] = (uint16_t)place[i];
    }
}

/* Unit: a row, or a tile of columns. */
static void arg_piece(void *p, int64_t begin, int64_t end)
{
    const struct arg_job *j = p;
    int64_t place[COLS_MAX];

    for (int64_t u = begin; u < end; u++) {
        int64_t outer = u / j->tiles, col = u % j->tiles * COLS_MAX;
        int64_t cols = MIN(j->inner - col, COLS_MAX);
        const char *in =
            j->in + (size_t)(outer * j->n * j->inner + col) * j->size;

        if (j->inner == 1)
            place[0] = j->loops->row(in, j->n);
        else
            j->loops->cols(place, in, j->n, j->inner, cols);
        store(j->out, outer * j->inner + col, place, cols);
    }
}

static enum mst_code arg_axis(struct op_ctx *c, int *ret)
{
    const struct tensor *in = op_in(c, 0), *dim = op_in(c, 1);
    char text[SHAPE_TEXT_MAX];
    int64_t axis;

    if (dim->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "dim must be a scalar, but received tensor of shape: %s",
                       tensor_shape_text(dim, text));
    axis = tensor_int(dim, 0);
    if (axis < -in->ndim || axis >= in->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Expected dimension in the range [%d, %d), but got %lld",
                       -in->ndim, in->ndim, (long long)axis);
    *ret = (int)(axis < 0 ? axis + in->ndim : axis);
    if (!in->dims[*ret])
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Reduction axis %lld is empty in shape %s",
                       (long long)axis, tensor_shape_text(in, text));
    return MST_OK;
}

static enum mst_code arg_run(struct op_ctx *c, const struct arg_loops *loops)
{
    const struct tensor *in = op_in(c, 0);
    struct arg_job j = { .loops = loops, .inner = 1 };
    int64_t dims[TENSOR_RANK_MAX], units;
    enum mst_code rc;
    int axis = 0, n = 0;

    rc = arg_axis(c, &axis);
    if (rc)
        return rc;
    for (int i = 0; i < in->ndim; i++) {
        if (i != axis)
            dims[n++] = in->dims[i];
        if (i > axis)
            j.inner *= in->dims[i];
    }
    rc = op_out_new(c, 0, n, dims);
    if (rc || !op_out(c, 0)->count)
        return rc;
    j.in = in->data;
    j.out = op_out(c, 0);
    j.size = dtype_size((enum dtype)in->dtype);
    j.n = in->dims[axis];
    j.tiles = (j.inner + COLS_MAX - 1) / COLS_MAX;
    units = op_out(c, 0)->count / j.inner * j.tiles;
    op_for(c, units, 0.3 * (double)(in->count / units), arg_piece, &j);
    return MST_OK;
}

/* BETTER(x, y): x comes before y. LIMIT: what everything is better than. */
#define ARG(s, T, A, DT, LD, ST, op, BETTER, LIMIT)                            \
    CLONES_##s static int64_t op##_row_##s(const void *in_, int64_t n)         \
    {                                                                          \
        const T *in = in_;                                                     \
        A lane[LANES], best = LIMIT##_##s;                                     \
        int64_t i;                                                             \
                                                                               \
        for (int k = 0; k < LANES; k++)                                        \
            lane[k] = best;                                                    \
        for (i = 0; i + LANES <= n; i += LANES)                                \
            for (int k = 0; k < LANES; k++) {                                  \
                A x = LD(in[i + k]);                                           \
                                                                               \
                lane[k] = BETTER(x, lane[k]) ? x : lane[k];                    \
            }                                                                  \
        for (int k = 0; k < LANES; k++)                                        \
            best = BETTER(lane[k], best) ? lane[k] : best;                     \
        for (; i < n; i++)                                                     \
            best = BETTER(LD(in[i]), best) ? LD(in[i]) : best;                 \
        for (i = 0; i < n; i++)                                                \
            if (LD(in[i]) == best)                                             \
                return i;                                                      \
        return 0;                                                              \
    }                                                                          \
    CLONES_##s static void op##_cols_##s(int64_t *place, const void *in_,      \
                                         int64_t rows, int64_t stride,         \
                                         int64_t n)                            \
    {                                                                          \
        const T *in = in_;                                                     \
        A best[COLS_MAX];                                                      \
                                                                               \
        for (int64_t k = 0; k < n; k++) {                                      \
            best[k] = LIMIT##_##s;                                             \
            place[k] = 0;                                                      \
        }                                                                      \
        for (int64_t i = 0; i < rows; i++, in += stride)                       \
            for (int64_t k = 0; k < n; k++) {                                  \
                A x = LD(in[k]);                                               \
                bool better = BETTER(x, best[k]);                              \
                                                                               \
                best[k] = better ? x : best[k];                                \
                place[k] = better ? i : place[k];                              \
            }                                                                  \
    }                                                                          \
    static enum mst_code op##_##s(struct op_ctx *c)                            \
    {                                                                          \
        static const struct arg_loops loops = { op##_row_##s, op##_cols_##s }; \
                                                                               \
        return arg_run(c, &loops);                                             \
    }

#define ABOVE(x, y) ((x) > (y))
#define BELOW(x, y) ((x) < (y))
#define LEAST_b     0
#define GREATEST_b  1
#define SET_ARG                                                                \
    "{float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, "     \
    "half, uint32, uint64, qint8, quint8, qint32, qint16, quint16, bool}"

TYPES_REAL(ARG, arg_max, ABOVE, LEAST)
TYPES_BOOL(ARG, arg_max, ABOVE, LEAST)

const struct op_def def_arg_max = {
    .name = "ArgMax",
    .in = "input: T, dimension: Tidx",
    .out = "output: output_type",
    .attr = "T: " SET_ARG "; Tidx: {int16, int32, int64} = int32; "
            "output_type: {int16, uint16, int32, int64} = int64",
    .kernel = KERNELS(TYPES_REAL(ROW, arg_max) TYPES_BOOL(ROW, arg_max)),
};

TYPES_REAL(ARG, arg_min, BELOW, GREATEST)
TYPES_BOOL(ARG, arg_min, BELOW, GREATEST)

const struct op_def def_arg_min = {
    .name = "ArgMin",
    .in = "input: T, dimension: Tidx",
    .out = "output: output_type",
    .attr = "T: " SET_ARG "; Tidx: {int32, int64} = int32; "
            "output_type: {int32, int64} = int64",
    .kernel = KERNELS(TYPES_REAL(ROW, arg_min) TYPES_BOOL(ROW, arg_min)),
};
