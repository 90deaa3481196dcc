/*
 * EditDistance: Levenshtein's, between the sequences that lie in the last
 * dimension of two sparse tensors. The indices are sorted, or the result means
 * nothing, as in TensorFlow.
 */
#include "base/mem.h"
#include "kernel/types.h"

enum { H_INDICES, H_VALUES, H_SHAPE, T_INDICES, T_VALUES, T_SHAPE };

/* The sequences of one of the two tensors, one after the other. */
struct side {
    const int64_t *indices;
    const struct tensor *values;
    int rank; /* columns of the indices, of which the last is in a sequence */
    int64_t rows;
    int64_t begin, end; /* the current sequence */
};

static enum mst_code check_kind(struct op_ctx *c, int i, const char *name,
                                int rank)
{
    char text[SHAPE_TEXT_MAX];

    if (op_in(c, i)->ndim == rank)
        return MST_OK;
    return op_fail(
        c, MST_INVALID_ARGUMENT, "%s should be a %s, but got shape: %s", name,
        rank == 2 ? "matrix" : "vector", tensor_shape_text(op_in(c, i), text));
}

static enum mst_code check_columns(struct op_ctx *c, int shape, int indices,
                                   const char *who)
{
    char a[SHAPE_TEXT_MAX], b[SHAPE_TEXT_MAX];

    if (op_in(c, shape)->count == op_in(c, indices)->dims[1])
        return MST_OK;
    return op_fail(c, MST_INVALID_ARGUMENT,
                   "Expected %s_shape.NumElements == #cols(%s_indices), their "
                   "shapes are: %s and %s",
                   who, who, tensor_shape_text(op_in(c, shape), a),
                   tensor_shape_text(op_in(c, indices), b));
}

static enum mst_code check_rows(struct op_ctx *c, int values, int indices,
                                const char *who)
{
    char a[SHAPE_TEXT_MAX], b[SHAPE_TEXT_MAX];

    if (op_in(c, values)->count == op_in(c, indices)->dims[0])
        return MST_OK;
    return op_fail(c, MST_INVALID_ARGUMENT,
                   "Expected %s_values.NumElements == #rows(%s_indices), their "
                   "shapes are: %s and %s",
                   who, who, tensor_shape_text(op_in(c, values), a),
                   tensor_shape_text(op_in(c, indices), b));
}

static enum mst_code check(struct op_ctx *c)
{
    static const struct {
        int in, rank;
        const char *name;
    } kinds[] = {
        { H_INDICES, 2, "hypothesis_indices" },
        { T_INDICES, 2, "truth_indices" },
        { H_VALUES, 1, "hypothesis_values" },
        { T_VALUES, 1, "truth_values" },
        { H_SHAPE, 1, "hypothesis_shape" },
        { T_SHAPE, 1, "truth_shape" },
    };
    char a[SHAPE_TEXT_MAX], b[SHAPE_TEXT_MAX];
    enum mst_code rc = MST_OK;

    for (size_t i = 0; i < COUNT(kinds) && !rc; i++)
        rc = check_kind(c, kinds[i].in, kinds[i].name, kinds[i].rank);
    if (!rc)
        rc = check_rows(c, H_VALUES, H_INDICES, "hypothesis");
    if (!rc)
        rc = check_columns(c, H_SHAPE, H_INDICES, "hypothesis");
    if (rc)
        return rc;
    if (op_in(c, T_SHAPE)->count < 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input SparseTensors must have rank at least 2, but "
                       "truth_shape rank is: %lld",
                       (long long)op_in(c, T_SHAPE)->count);
    rc = check_rows(c, T_VALUES, T_INDICES, "truth");
    if (!rc)
        rc = check_columns(c, T_SHAPE, T_INDICES, "truth");
    if (!rc && op_in(c, T_SHAPE)->count != op_in(c, H_SHAPE)->count)
        rc = op_fail(c, MST_INVALID_ARGUMENT,
                     "Expected truth and hypothesis to have matching ranks, "
                     "but their shapes are: %s and %s",
                     tensor_shape_text(op_in(c, T_SHAPE), a),
                     tensor_shape_text(op_in(c, H_SHAPE), b));
    return rc;
}

/* ---- sequences ---- */

static int compare_groups(const int64_t *a, const int64_t *b, int n)
{
    for (int i = 0; i < n; i++)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return 0;
}

/* On to the next sequence; false at the end. */
static bool next(struct side *s)
{
    const int64_t *first = s->indices + s->end * s->rank;

    s->begin = s->end;
    while (s->end < s->rows &&
           !compare_groups(first, s->indices + s->end * s->rank, s->rank - 1))
        s->end++;
    return s->begin < s->end;
}

static bool same_value(const struct tensor *a, int64_t i,
                       const struct tensor *b, int64_t k)
{
    size_t size = dtype_size((enum dtype)a->dtype);

    switch (a->dtype) {
    case DT_FLOAT:
        return TENSOR_DATA(a, float)[i] == TENSOR_DATA(b, float)[k];
    case DT_DOUBLE:
        return TENSOR_DATA(a, double)[i] == TENSOR_DATA(b, double)[k];
    case DT_HALF:
        return half_load(TENSOR_DATA(a, half_bits)[i]) ==
               half_load(TENSOR_DATA(b, half_bits)[k]);
    case DT_BFLOAT16:
        return bf16_load(TENSOR_DATA(a, bf16_bits)[i]) ==
               bf16_load(TENSOR_DATA(b, bf16_bits)[k]);
    case DT_COMPLEX64:
        return TENSOR_DATA(a, float complex)[i] ==
               TENSOR_DATA(b, float complex)[k];
    case DT_COMPLEX128:
        return TENSOR_DATA(a, double complex)[i] ==
               TENSOR_DATA(b, double complex)[k];
    case DT_STRING:
        return tensor_str(a, i)->len == tensor_str(b, k)->len &&
               (!tensor_str(a, i)->len ||
                !memcmp(tensor_str(a, i)->data, tensor_str(b, k)->data,
                        tensor_str(a, i)->len));
    default:
        return !memcmp((char *)a->data + (size_t)i * size,
                       (char *)b->data + (size_t)k * size, size);
    }
}

/* row has room for as many numbers as y has elements, and one more. */
static int64_t distance(const struct side *x, const struct side *y,
                        int64_t *row)
{
    int64_t nx = x->end - x->begin, ny = y->end - y->begin;

    for (int64_t k = 0; k <= ny; k++)
        row[k] = k;
    for (int64_t i = 0; i < nx; i++) {
        int64_t above_left = row[0];

        row[0] = i + 1;
        for (int64_t k = 0; k < ny; k++) {
            int64_t cost = above_left + !same_value(x->values, x->begin + i,
                                                    y->values, y->begin + k);

            above_left = row[k + 1];
            row[k + 1] = MIN(cost, MIN(row[k], above_left) + 1);
        }
    }
    return row[ny];
}

/* Where a sequence's result goes. */
static enum mst_code place(struct op_ctx *c, const struct side *s, int64_t *ret)
{
    const struct tensor *out = op_out(c, 0);
    const int64_t *group = s->indices + s->begin * s->rank;
    uint64_t at = 0;
    bool inside = true;

    for (int d = 0; d < out->ndim; d++) {
        inside &= group[d] >= 0 && group[d] < out->dims[d];
        at = at * (uint64_t)out->dims[d] + (uint64_t)group[d];
    }
    *ret = (int64_t)at;
    if (inside)
        return MST_OK;
    return op_fail(c, MST_INTERNAL,
                   "Got an inner product %lld which would require writing to "
                   "outside of the buffer for the output tensor (max elements "
                   "%lld)",
                   (long long)at, (long long)out->count);
}

static enum mst_code compare_all(struct op_ctx *c, struct side *h,
                                 struct side *t, int64_t *row)
{
    bool normalize = c->node->state != NULL;
    bool more_h = next(h), more_t = next(t);

    while (more_h || more_t) {
        int order = !more_t   ? -1
                    : !more_h ? 1
                              : compare_groups(h->indices + h->begin * h->rank,
                                               t->indices + t->begin * t->rank,
                                               t->rank - 1);
        const struct side *who = order < 0 ? h : t;
        float value = (float)(who->end - who->begin);
        int64_t at;
        enum mst_code rc = place(c, who, &at);

        if (rc)
            return rc;
        if (!order) {
            value = (float)distance(t, h, row);
            if (normalize)
                value /= (float)(t->end - t->begin);
        } else if (normalize) {
            value = order < 0 ? INFINITY : 1;
        }
        TENSOR_DATA(op_out(c, 0), float)[at] = value;
        if (order <= 0)
            more_h = next(h);
        if (order >= 0)
            more_t = next(t);
    }
    return MST_OK;
}

static struct side side_of(struct op_ctx *c, int indices)
{
    const struct tensor *t = op_in(c, indices);

    return (struct side){ .indices = t->data,
                          .values = op_in(c, indices + 1),
                          .rank = (int)t->dims[1],
                          .rows = t->dims[0] };
}

static enum mst_code edit_distance(struct op_ctx *c)
{
    int64_t dims[TENSOR_RANK_MAX + 1], *row;
    struct side h, t;
    enum mst_code rc = check(c);
    int n;

    if (rc)
        return rc;
    if (op_in(c, T_SHAPE)->count > TENSOR_RANK_MAX)
        return op_fail(c, MST_UNIMPLEMENTED, "SparseTensors of rank %lld",
                       (long long)op_in(c, T_SHAPE)->count);
    n = (int)op_in(c, T_SHAPE)->count;
    for (int i = 0; i < n; i++)
        dims[i] = MAX(tensor_int(op_in(c, H_SHAPE), i),
                      tensor_int(op_in(c, T_SHAPE), i));
    rc = op_out_new(c, 0, n - 1, dims);
    if (rc)
        return rc;
    tensor_zero(op_out(c, 0));
    h = side_of(c, H_INDICES);
    t = side_of(c, T_INDICES);
    row = mem_array((size_t)h.rows + 1, sizeof(*row));
    rc = compare_all(c, &h, &t, row);
    mem_free(row);
    return rc;
}

static enum mst_code edit_init(struct op_node *n, struct status *st)
{
    (void)st;
    if (op_attr_bool(n, "normalize"))
        n->state = n;
    return MST_OK;
}

/* One function for all types. */
#define ALL_ROW(s, T, A, DT, LD, ST, op) { DT, op },

const struct op_def def_edit_distance = {
    .name = "EditDistance",
    .in = "hypothesis_indices: int64, hypothesis_values: T, "
          "hypothesis_shape: int64, truth_indices: int64, truth_values: T, "
          "truth_shape: int64",
    .out = "output: float",
    .attr = "normalize: bool = true; T: type",
    .flags = OP_EXPENSIVE,
    .init = edit_init,
    .kernel = KERNELS({ DT_BOOL, edit_distance }, { DT_STRING, edit_distance },
                      TYPES_NUMBER(ALL_ROW, edit_distance)),
};
