/*
 * Diagonals of whole tensors (Diag, DiagPart) and bands of matrices
 * (MatrixBandPart); matrix_diag.c has those of matrices.
 */
#include <string.h>

#include "kernel/args.h"
#include "kernel/strided.h"

static enum mst_code diag(struct op_ctx *c)
{
    const struct tensor *in = op_in(c, 0);
    int64_t dims[2 * TENSOR_RANK_MAX];
    struct strided s = { 0 };
    enum mst_code rc;

    if (!in->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input must be at least rank 1, got 0");
    memcpy(dims, in->dims, (size_t)in->ndim * sizeof(dims[0]));
    memcpy(dims + in->ndim, in->dims, (size_t)in->ndim * sizeof(dims[0]));
    rc = op_out_new(c, 0, 2 * in->ndim, dims);
    if (rc)
        return rc;
    tensor_zero(op_out(c, 0));
    strided_dim(&s, in->count, in->count + 1, 1);
    strided_copy(c, op_out(c, 0), in, &s);
    return MST_OK;
}

static enum mst_code diag_part(struct op_ctx *c)
{
    const struct tensor *in = op_in(c, 0);
    char text[SHAPE_TEXT_MAX];
    int half = in->ndim / 2;
    struct strided s = { 0 };
    enum mst_code rc;

    if (in->ndim % 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "The rank of the tensor should be                       "
                       "                   even and positive, got shape %s",
                       tensor_shape_text(in, text));
    for (int i = 0; i < half; i++)
        if (in->dims[i] != in->dims[i + half])
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Invalid shape %s: dimensions %d and %d do not "
                           "match.",
                           tensor_shape_text(in, text), i, i + half);
    rc = op_out_new(c, 0, half, in->dims);
    if (rc)
        return rc;
    strided_dim(&s, op_out(c, 0)->count, 1, op_out(c, 0)->count + 1);
    strided_copy(c, op_out(c, 0), in, &s);
    return MST_OK;
}

#define DIAG_TYPES                                                             \
    "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}"

const struct op_def def_diag = {
    .name = "Diag",
    .in = "diagonal: T",
    .out = "output: T",
    .attr = DIAG_TYPES,
    .kernel = (const struct op_kernel[]){ { DT_ANY, diag }, { 0 } },
};

const struct op_def def_diag_part = {
    .name = "DiagPart",
    .in = "input: T",
    .out = "diagonal: T",
    .attr = DIAG_TYPES,
    .kernel = (const struct op_kernel[]){ { DT_ANY, diag_part }, { 0 } },
};

/* ---- bands ---- */

struct band_arg {
    const struct tensor *in;
    struct tensor *out;
    int64_t rows, cols, lower, upper;
};

/* Rows [begin, end) of all matrices. */
static void band_rows(void *arg, int64_t begin, int64_t end)
{
    const struct band_arg *b = arg;
    size_t size = dtype_size((enum dtype)b->in->dtype);

    for (int64_t r = begin; r < end; r++) {
        int64_t row = r % b->rows, first, last;
        uint8_t *out = (uint8_t *)b->out->data + (size_t)(r * b->cols) * size;
        const uint8_t *in =
            (const uint8_t *)b->in->data + (size_t)(r * b->cols) * size;

        first = b->lower < 0 ? 0 : MIN(MAX(row - b->lower, 0), b->cols);
        last = b->upper < 0 ? b->cols : MIN(row + b->upper + 1, b->cols);
        last = MAX(last, first);
        memset(out, 0, (size_t)first * size);
        if (out != in)
            memcpy(out + (size_t)first * size, in + (size_t)first * size,
                   (size_t)(last - first) * size);
        memset(out + (size_t)last * size, 0, (size_t)(b->cols - last) * size);
    }
}

static enum mst_code band_limit(struct op_ctx *c, int i, const char *name,
                                const char *what, int64_t max, int64_t *ret)
{
    char text[SHAPE_TEXT_MAX];

    if (op_in(c, i)->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "%s must be scalar, got shape "
                       "%s",
                       name, tensor_shape_text(op_in(c, i), text));
    *ret = tensor_int(op_in(c, i), 0);
    if (*ret > max)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "%s must be negative or less or equal to number of %s "
                       "(%lld) got: %lld",
                       name, what, (long long)max, (long long)*ret);
    return MST_OK;
}

static enum mst_code matrix_band_part(struct op_ctx *c)
{
    const struct tensor *in = op_in(c, 0);
    struct band_arg b = { .in = in, .out = op_out(c, 0) };
    char text[SHAPE_TEXT_MAX];
    enum mst_code rc;

    if (in->ndim < 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "input must be at least 2-dim, received shape: %s",
                       tensor_shape_text(in, text));
    if (!dtype_is_plain((enum dtype)in->dtype))
        return op_fail(c, MST_UNIMPLEMENTED, "No band of type %s",
                       dtype_name(in->dtype));
    b.rows = in->dims[in->ndim - 2];
    b.cols = in->dims[in->ndim - 1];
    rc = band_limit(c, 1, "num_lower", "rows", b.rows, &b.lower);
    if (!rc)
        rc = band_limit(c, 2, "num_upper", "columns", b.cols, &b.upper);
    if (!rc)
        rc = op_out_forward(c, 0, 0);
    if (!rc && in->count)
        op_for(c, in->count / b.cols, (double)b.cols * 0.3 + 10, band_rows, &b);
    return rc;
}

const struct op_def def_matrix_band_part = {
    .name = "MatrixBandPart",
    .in = "input: T, num_lower: Tindex, num_upper: Tindex",
    .out = "band: T",
    .attr = "T: type; Tindex: {int32, int64} = int64",
    .kernel = (const struct op_kernel[]){ { DT_ANY, matrix_band_part }, { 0 } },
};

/* Its name before TensorFlow 1.0. */
const struct op_def def_batch_matrix_band_part = {
    .name = "BatchMatrixBandPart",
    .in = "input: T, num_lower: int64, num_upper: int64",
    .out = "band: T",
    .attr = "T: type",
    .kernel = (const struct op_kernel[]){ { DT_ANY, matrix_band_part }, { 0 } },
};
