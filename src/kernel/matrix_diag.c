/*
 * Diagonals of matrices, the innermost two dimensions of a tensor: taken out,
 * put in, made a matrix of.
 *
 * A band is the diagonals from `lower` to `upper`, 0 being the main one and
 * those above it positive. As a tensor it has a row a diagonal, the upper
 * first, all as long as the longest; `align` says at which end a shorter one
 * stands, the rest is padding. A band of one diagonal has no dimension for it.
 */
#include <string.h>

#include "kernel/args.h"
#include "kernel/strided.h"

/* At which end of their rows diagonals above and below the main one begin. */
struct align {
    bool left_above, left_below;
};

static const struct align left_left = { true, true };

struct band {
    int64_t lower, upper;
    int64_t rows, cols; /* of the matrix */
    int64_t length;     /* of the longest diagonal */
};

static int64_t band_count(const struct band *b)
{
    return b->upper - b->lower + 1;
}

static int64_t diag_length(const struct band *b, int64_t d)
{
    return MAX(MIN(b->rows + MIN(d, 0), b->cols - MAX(d, 0)), 0);
}

/* Copies every diagonal of the band: out of matrices, or into them. */
static void copy_band(struct op_ctx *c, const struct band *b, bool into,
                      struct tensor *to, const struct tensor *from)
{
    const struct align *align = c->node->state ? c->node->state : &left_left;
    int64_t matrix = b->rows * b->cols, band = band_count(b) * b->length;
    int64_t batches = matrix ? (into ? to : from)->count / matrix : 0;

    if (!to->count || !from->count) /* there may be many empty diagonals */
        return;
    for (int64_t i = 0; i < band_count(b); i++) {
        int64_t d = b->upper - i, n = diag_length(b, d);
        bool left =
            (d >= 0 && align->left_above) || (d <= 0 && align->left_below);
        int64_t in_band = i * b->length + (left ? 0 : b->length - n);
        int64_t in_matrix = MAX(-d, 0) * b->cols + MAX(d, 0);
        struct strided s = { 0 };

        s.to_at = into ? in_matrix : in_band;
        s.from_at = into ? in_band : in_matrix;
        strided_dim(&s, batches, into ? matrix : band, into ? band : matrix);
        strided_dim(&s, n, into ? b->cols + 1 : 1, into ? 1 : b->cols + 1);
        strided_copy(c, to, from, &s);
    }
}

/* k, input i: one diagonal, or the first and last of a band. */
static enum mst_code read_k(struct op_ctx *c, int i, bool set, struct band *b)
{
    const struct tensor *k = op_in(c, i);
    char text[SHAPE_TEXT_MAX];

    if (!k->count)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       set ? "diag_index must have at least one element"
                           : "Expected diag_index to have at least 1 element");
    if (k->ndim > 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "diag_index must be a scalar or vector, received shape: "
                       "%s",
                       tensor_shape_text(k, text));
    if (k->count > 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "diag_index must have only one or two elements, "
                       "received %lld elements.",
                       (long long)k->count);
    b->lower = tensor_int(k, 0);
    b->upper = tensor_int(k, k->count - 1);
    return MST_OK;
}

static enum mst_code check_order(struct op_ctx *c, const struct band *b)
{
    if (b->lower > b->upper)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "lower_diag_index must not be larger than "
                       "upper_diag_index: %lld > %lld",
                       (long long)b->lower, (long long)b->upper);
    return MST_OK;
}

/* The band lies inside of the matrices of input 0. */
static enum mst_code band_inside(struct op_ctx *c, bool set, struct band *b)
{
    const struct tensor *in = op_in(c, 0);
    const int64_t *dims = in->dims + in->ndim - 2;

    b->rows = dims[0];
    b->cols = dims[1];
    if (b->lower && (b->lower <= -b->rows || b->lower >= b->cols))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "lower_diag_index is out of bound: %lld%s It must be "
                       "between %lld and %lld",
                       (long long)b->lower, set ? "" : ".", (long long)-b->rows,
                       (long long)b->cols);
    if (b->upper && (b->upper <= -b->rows || b->upper >= b->cols))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "upper_diag_index is out of bound: %lld It must be "
                       "between %lld and %lld",
                       (long long)b->upper, (long long)-b->rows,
                       (long long)b->cols);
    b->length = MIN(b->rows + MIN(b->upper, 0), b->cols - MAX(b->lower, 0));
    return check_order(c, b);
}

static enum mst_code check_matrix(struct op_ctx *c)
{
    char text[SHAPE_TEXT_MAX];

    if (op_in(c, 0)->ndim < 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "input must be at least 2-dim, received shape: %s",
                       tensor_shape_text(op_in(c, 0), text));
    return MST_OK;
}

/* Output 0 of that shape, filled with input `pad`, or zeros if it is -1. */
static enum mst_code out_padded(struct op_ctx *c, const struct shape *s,
                                int pad)
{
    enum mst_code rc = op_out_new(c, 0, s->ndim, s->dims);

    if (!rc && pad < 0)
        tensor_zero(op_out(c, 0));
    else if (!rc)
        strided_fill(c, op_out(c, 0), op_in(c, pad));
    return rc;
}

/* ---- out of matrices ---- */

static enum mst_code diag_part(struct op_ctx *c, struct band *b, int pad)
{
    const struct tensor *in = op_in(c, 0);
    struct shape s = { .ndim = in->ndim - 2 };
    enum mst_code rc = band_inside(c, false, b);

    if (rc)
        return rc;
    memcpy(s.dims, in->dims, sizeof(s.dims));
    if (band_count(b) > 1)
        s.dims[s.ndim++] = band_count(b);
    s.dims[s.ndim++] = b->length;
    rc = out_padded(c, &s, pad);
    if (!rc)
        copy_band(c, b, false, op_out(c, 0), in);
    return rc;
}

static enum mst_code matrix_diag_part(struct op_ctx *c)
{
    struct band b = { 0 };
    enum mst_code rc = check_matrix(c);

    return rc ? rc : diag_part(c, &b, -1);
}

static enum mst_code matrix_diag_part_v2(struct op_ctx *c)
{
    struct band b;
    enum mst_code rc = read_k(c, 1, false, &b);

    if (!rc && !op_in(c, 2)->count)
        rc = op_fail(c, MST_INVALID_ARGUMENT,
                     "Expected padding_value to have at least 1 element");
    if (!rc)
        rc = check_matrix(c);
    return rc ? rc : diag_part(c, &b, 2);
}

/* ---- into matrices ---- */

static enum mst_code set_diag(struct op_ctx *c, struct band *b)
{
    const struct tensor *in = op_in(c, 0), *diag = op_in(c, 1);
    char t[3][SHAPE_TEXT_MAX];
    struct shape want = { .ndim = in->ndim - 2 };
    enum mst_code rc = band_inside(c, true, b);

    if (rc)
        return rc;
    if (band_count(b) > 1 &&
        (diag->ndim != in->ndim || diag->dims[diag->ndim - 2] != band_count(b)))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "The number of diagonals provided in `diag` is not "
                       "consistent with `lower_diag_index` and "
                       "`upper_diag_index`");
    memcpy(want.dims, in->dims, sizeof(want.dims));
    if (band_count(b) > 1)
        want.dims[want.ndim++] = band_count(b);
    want.dims[want.ndim++] = b->length;
    if (!shape_compatible(&want, diag))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Either first dimensions of diagonal don't match "
                       "input.shape[:-2], or diagonal.shape[:-1] is not equal "
                       "to the longests diagonal in range "
                       "[lower_diag_index:upper_diag_index].\nInput shape: "
                       "%s\nDiagonal shape: %s\nExpected diagonal shape: %s",
                       tensor_shape_text(in, t[0]),
                       tensor_shape_text(diag, t[1]),
                       shape_text(want.ndim, want.dims, t[2]));
    rc = op_out_forward(c, 0, 0);
    if (rc)
        return rc;
    if (op_out(c, 0)->data != in->data)
        tensor_copy_elems(op_out(c, 0), 0, in, 0, in->count);
    copy_band(c, b, true, op_out(c, 0), diag);
    return MST_OK;
}

static enum mst_code check_diagonal(struct op_ctx *c, int i)
{
    char text[SHAPE_TEXT_MAX];

    if (!op_in(c, i)->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "diagonal must be at least 1-dim, received shape: %s",
                       tensor_shape_text(op_in(c, i), text));
    return MST_OK;
}

static enum mst_code matrix_set_diag(struct op_ctx *c)
{
    struct band b = { 0 };
    enum mst_code rc = MST_OK;

    if (c->node->in_count == 3)
        rc = read_k(c, 2, true, &b);
    if (!rc)
        rc = check_matrix(c);
    if (!rc)
        rc = check_diagonal(c, 1);
    return rc ? rc : set_diag(c, &b);
}

/* ---- a matrix of them ---- */

static enum mst_code check_size(struct op_ctx *c, int64_t rows, int64_t cols,
                                struct band *b)
{
    int64_t rows_min = b->length - MIN(b->upper, 0);
    int64_t cols_min = b->length + MAX(b->lower, 0);

    if (rows == -1 && cols == -1)
        rows = cols = MAX(rows_min, cols_min);
    b->rows = rows == -1 ? rows_min : rows;
    b->cols = cols == -1 ? cols_min : cols;
    if (b->rows < rows_min)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "The number of rows is too small.");
    if (b->cols < cols_min)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "The number of columns is too small.");
    if (b->rows != rows_min && b->cols != cols_min)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "The number of rows or columns is not consistent with "
                       "the specified d_lower, d_upper, and diagonal.");
    return MST_OK;
}

static enum mst_code make_matrix(struct op_ctx *c, int64_t rows, int64_t cols,
                                 struct band *b, int pad)
{
    const struct tensor *diag = op_in(c, 0);
    struct shape s = { .ndim = diag->ndim - 1 };
    enum mst_code rc;

    if (b->upper != b->lower) {
        s.ndim--;
        if (s.ndim < 0 || diag->dims[s.ndim] != band_count(b))
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "The number of diagonals provided in the input does "
                           "not match the lower_diag_index and "
                           "upper_diag_index range.");
    }
    b->length = diag->dims[diag->ndim - 1];
    rc = check_size(c, rows, cols, b);
    if (rc)
        return rc;
    memcpy(s.dims, diag->dims, (size_t)s.ndim * sizeof(s.dims[0]));
    if (s.ndim + 2 > TENSOR_RANK_MAX)
        return op_fail(c, MST_UNIMPLEMENTED,
                       "Tensors of rank %d are not supported, only up to %d",
                       s.ndim + 2, TENSOR_RANK_MAX);
    s.dims[s.ndim++] = b->rows;
    s.dims[s.ndim++] = b->cols;
    rc = out_padded(c, &s, pad);
    if (!rc && op_out(c, 0)->count)
        copy_band(c, b, true, op_out(c, 0), diag);
    return rc;
}

static enum mst_code matrix_diag(struct op_ctx *c)
{
    struct band b = { 0 };
    enum mst_code rc = check_diagonal(c, 0);

    return rc ? rc : make_matrix(c, -1, -1, &b, -1);
}

static enum mst_code matrix_diag_v2(struct op_ctx *c)
{
    static const char *const names[] = { "num_rows", "num_cols",
                                         "padding_value" };
    struct band b;
    enum mst_code rc = read_k(c, 1, false, &b);

    for (int i = 0; i < 3 && !rc; i++)
        if (op_in(c, 2 + i)->ndim)
            rc = op_fail(c, MST_INVALID_ARGUMENT, "%s must be a scalar",
                         names[i]);
    if (!rc)
        rc = check_diagonal(c, 0);
    if (!rc)
        rc = check_order(c, &b);
    return rc ? rc
              : make_matrix(c, tensor_int(op_in(c, 2), 0),
                            tensor_int(op_in(c, 3), 0), &b, 4);
}

static enum mst_code align_init(struct op_node *n, struct status *st)
{
    const char *align = op_attr_str(n, "align").data;
    struct align *a = ARENA_NEW(n->arena, struct align);

    (void)st;
    a->left_above = !strncmp(align, "LEFT_", 5);
    a->left_below = !strcmp(strchr(align, '_'), "_LEFT");
    n->state = a;
    return MST_OK;
}

#define ALIGN                                                                  \
    "align: {'LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', 'RIGHT_RIGHT'} = "       \
    "'RIGHT_LEFT'"

const struct op_def def_matrix_diag_part = {
    .name = "MatrixDiagPart",
    .in = "input: T",
    .out = "diagonal: T",
    .attr = "T: type",
    .kernel = (const struct op_kernel[]){ { DT_ANY, matrix_diag_part }, { 0 } },
};

const struct op_def def_matrix_diag_part_v2 = {
    .name = "MatrixDiagPartV2",
    .in = "input: T, k: int32, padding_value: T",
    .out = "diagonal: T",
    .attr = "T: type",
    .kernel =
        (const struct op_kernel[]){ { DT_ANY, matrix_diag_part_v2 }, { 0 } },
};

const struct op_def def_matrix_diag_part_v3 = {
    .name = "MatrixDiagPartV3",
    .in = "input: T, k: int32, padding_value: T",
    .out = "diagonal: T",
    .attr = "T: type; " ALIGN,
    .init = align_init,
    .kernel =
        (const struct op_kernel[]){ { DT_ANY, matrix_diag_part_v2 }, { 0 } },
};

const struct op_def def_matrix_set_diag = {
    .name = "MatrixSetDiag",
    .in = "input: T, diagonal: T",
    .out = "output: T",
    .attr = "T: type",
    .kernel = (const struct op_kernel[]){ { DT_ANY, matrix_set_diag }, { 0 } },
};

const struct op_def def_matrix_set_diag_v2 = {
    .name = "MatrixSetDiagV2",
    .in = "input: T, diagonal: T, k: int32",
    .out = "output: T",
    .attr = "T: type",
    .kernel = (const struct op_kernel[]){ { DT_ANY, matrix_set_diag }, { 0 } },
};

const struct op_def def_matrix_set_diag_v3 = {
    .name = "MatrixSetDiagV3",
    .in = "input: T, diagonal: T, k: int32",
    .out = "output: T",
    .attr = "T: type; " ALIGN,
    .init = align_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, matrix_set_diag }, { 0 } },
};

const struct op_def def_matrix_diag = {
    .name = "MatrixDiag",
    .in = "diagonal: T",
    .out = "output: T",
    .attr = "T: type",
    .kernel = (const struct op_kernel[]){ { DT_ANY, matrix_diag }, { 0 } },
};

const struct op_def def_matrix_diag_v2 = {
    .name = "MatrixDiagV2",
    .in = "diagonal: T, k: int32, num_rows: int32, num_cols: int32, "
          "padding_value: T",
    .out = "output: T",
    .attr = "T: type",
    .kernel = (const struct op_kernel[]){ { DT_ANY, matrix_diag_v2 }, { 0 } },
};

const struct op_def def_matrix_diag_v3 = {
    .name = "MatrixDiagV3",
    .in = "diagonal: T, k: int32, num_rows: int32, num_cols: int32, "
          "padding_value: T",
    .out = "output: T",
    .attr = "T: type; " ALIGN,
    .init = align_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, matrix_diag_v2 }, { 0 } },
};

/* Their names before TensorFlow 1.0. */
const struct op_def def_batch_matrix_diag = {
    .name = "BatchMatrixDiag",
    .in = "diagonal: T",
    .out = "output: T",
    .attr = "T: type",
    .kernel = (const struct op_kernel[]){ { DT_ANY, matrix_diag }, { 0 } },
};

const struct op_def def_batch_matrix_diag_part = {
    .name = "BatchMatrixDiagPart",
    .in = "input: T",
    .out = "diagonal: T",
    .attr = "T: type",
    .kernel = (const struct op_kernel[]){ { DT_ANY, matrix_diag_part }, { 0 } },
};

const struct op_def def_batch_matrix_set_diag = {
    .name = "BatchMatrixSetDiag",
    .in = "input: T, diagonal: T",
    .out = "output: T",
    .attr = "T: type",
    .kernel = (const struct op_kernel[]){ { DT_ANY, matrix_set_diag }, { 0 } },
};
