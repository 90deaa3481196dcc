/*
 * RaggedTensorToVariant, RaggedTensorFromVariant and the gradient of the
 * former. A batch of ragged values is a tensor of variants, one for each row of
 * the outermost dimension; putting it together again adds one level of splits
 * for each dimension of that tensor.
 */
#include <string.h>

#include "base/mem.h"
#include "kernel/args.h"
#include "kernel/types.h"
#include "tensor/ragged.h"

extern const struct op_def def_ragged_tensor_to_variant;
extern const struct op_def def_ragged_tensor_from_variant;

static int64_t split_at(const struct tensor *t, int64_t i)
{
    return tensor_int(t, i);
}

static void put_split(struct tensor *t, int64_t i, int64_t x)
{
    if (t->dtype == DT_INT32)
        TENSOR_DATA(t, int32_t)[i] = (int32_t)x;
    else
        TENSOR_DATA(t, int64_t)[i] = x;
}

/* What a node says; an op has only some of it. */
struct ragged_node {
    bool batched;
    int in_rank, out_rank, splits, values;
};

static enum mst_code ragged_init(struct op_node *n, struct status *st)
{
    struct ragged_node *s = ARENA_NEW(n->arena, struct ragged_node);

    (void)st;
    s->splits = op_attr_type(n, "Tsplits");
    s->values = op_attr_type(n, "Tvalues");
    if (n->def == &def_ragged_tensor_to_variant)
        s->batched = op_attr_bool(n, "batched_input");
    if (n->def == &def_ragged_tensor_from_variant) {
        s->in_rank = (int)op_attr_int(n, "input_ragged_rank");
        s->out_rank = (int)op_attr_int(n, "output_ragged_rank");
    }
    n->state = s;
    return MST_OK;
}

/* ---- to variants ---- */

#define BAD_SPLITS "Invalid ragged splits: "

/* Splits begin with 0, never fall, and end with the number of rows below. */
static enum mst_code check_one(struct op_ctx *c, const struct tensor *s,
                               int64_t below)
{
    if (s->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       BAD_SPLITS "ragged splits must be rank 1 but is rank %d",
                       s->ndim);
    if (s->count < 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       BAD_SPLITS "ragged splits must have at least one "
                                  "splits, but is empty");
    if (split_at(s, 0) != 0)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       BAD_SPLITS "first element of ragged splits  must be 0 "
                                  "but is %lld",
                       (long long)split_at(s, 0));
    for (int64_t i = 1; i < s->count; i++)
        if (split_at(s, i) < split_at(s, i - 1))
            return op_fail(c, MST_INVALID_ARGUMENT,
                           BAD_SPLITS
                           "ragged splits must be monotonically increasing, "
                           "but ragged_splits[%lld]=%lld is smaller than "
                           "row_splits[%lld]=%lld",
                           (long long)i, (long long)split_at(s, i),
                           (long long)i - 1, (long long)split_at(s, i - 1));
    if (split_at(s, s->count - 1) != below)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       BAD_SPLITS "last element of ragged splits must be the "
                                  "number of ragged values(%lld) but is %lld",
                       (long long)below, (long long)split_at(s, s->count - 1));
    return MST_OK;
}

/* From the innermost on: what is below an outer one is a vector by then. */
static enum mst_code check_splits(struct op_ctx *c, int rank)
{
    const struct tensor *values = op_in(c, rank);
    enum mst_code rc = MST_OK;

    if (rank && values->ndim < 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Requires flat_values to have rank>=1 when "
                       "nested_row_splits is not empty, but is 0.");
    for (int k = rank - 1; k >= 0 && !rc; k--)
        rc = check_one(c, op_in(c, k),
                       k + 1 < rank ? op_in(c, k + 1)->count - 1
                                    : values->dims[0]);
    return rc;
}

/* Row i of the outermost splits, without them. */
static enum mst_code take_row(struct op_ctx *c, int rank, int64_t i,
                              struct ragged_value **ret)
{
    struct ragged_value *r = ragged_value_new(rank - 1);
    int64_t begin = split_at(op_in(c, 0), i);
    int64_t end = split_at(op_in(c, 0), i + 1);
    enum mst_code rc = MST_OK;

    for (int k = 1; k < rank && !rc; k++) {
        const struct tensor *s = op_in(c, k);
        int64_t n = end - begin + 1, first = split_at(s, begin);

        rc = tensor_new(&r->splits[k - 1], (enum dtype)s->dtype, 1, &n, c->st);
        for (int64_t j = 0; j < n && !rc; j++)
            put_split(&r->splits[k - 1], j, split_at(s, begin + j) - first);
        begin = first;
        end = split_at(s, end);
    }
    if (!rc)
        rc =
            tensor_slice(&r->values, op_in(c, rank), begin, end - begin, c->st);
    if (rc)
        object_unref(&r->o);
    else
        *ret = r;
    return rc;
}

static enum mst_code whole(struct op_ctx *c, int rank)
{
    struct ragged_value *r = ragged_value_new(rank);
    enum mst_code rc = op_out_new(c, 0, 0, NULL);

    r->values = tensor_ref(op_in(c, rank));
    for (int k = 0; k < rank; k++)
        r->splits[k] = tensor_ref(op_in(c, k));
    if (rc)
        object_unref(&r->o);
    else
        *tensor_object(op_out(c, 0), 0) = &r->o;
    return rc;
}

static enum mst_code to_variant(struct op_ctx *c)
{
    const struct ragged_node *s = c->node->state;
    int rank = c->node->in_count - 1;
    int64_t rows;
    enum mst_code rc = check_splits(c, rank);

    if (rc)
        return rc;
    if (!s->batched)
        return whole(c, rank);
    if (!rank) {
        const struct tensor *v = op_in(c, 0);

        if (v->ndim < 1)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "rt_dense_values must have at least one dimension");
        rows = v->dims[0];
    } else {
        rows = op_in(c, 0)->count - 1;
    }
    rc = op_out_new(c, 0, 1, &rows);
    for (int64_t i = 0; i < rows && !rc; i++) {
        struct ragged_value *r = NULL;
        struct tensor row = { 0 };

        if (rank) {
            rc = take_row(c, rank, i, &r);
        } else {
            rc = tensor_slice(&row, op_in(c, 0), i, 1, c->st);
            if (!rc) {
                r = ragged_value_new(0);
                tensor_reshape(&r->values, &row, row.ndim - 1, row.dims + 1);
            }
            tensor_unref(&row);
        }
        if (!rc)
            *tensor_object(op_out(c, 0), i) = &r->o;
    }
    return rc;
}

const struct op_def def_ragged_tensor_to_variant = {
    .name = "RaggedTensorToVariant",
    .in = "rt_nested_splits: RAGGED_RANK * Tsplits, rt_dense_values: Tvalues",
    .out = "encoded_ragged: variant",
    .attr = "RAGGED_RANK: int >= 0; Tvalues: type; "
            "Tsplits: {int32, int64} = int64; batched_input: bool",
    .key = "Tvalues",
    .init = ragged_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, to_variant }, { 0 } },
};

/* ---- from variants ---- */

static enum mst_code value_at(struct op_ctx *c, int64_t i, int rank, int splits,
                              int values, const struct ragged_value **ret)
{
    const struct object *o = *tensor_object(op_in(c, 0), i);
    const struct ragged_value *r;

    if (!o || o->kind != &ragged_kind)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input Variant element at index %lld doesn't hold a "
                       "RaggedTensorVariant: %s",
                       (long long)i, o ? o->kind->name : "nothing");
    r = CONTAINER(o, struct ragged_value, o);
    if (r->values.dtype != values)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Expected values Tensor dtype: %s, found: %s",
                       dtype_name(values), dtype_name(r->values.dtype));
    if (rank && r->values.ndim < 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Ragged values must have rank >= 1; encoded scalar "
                       "element at index %lld has values Tensor of rank 0",
                       (long long)i);
    if (r->rank != rank)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Encoded input RaggedTensorVariant has ragged_rank=%d.  "
                       "Expected ragged_rank=%d.",
                       r->rank, rank);
    for (int k = 0; k < rank; k++) {
        const struct tensor *s = &r->splits[k];
        char text[SHAPE_TEXT_MAX];

        if (s->dtype != splits)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Expected row_splits Tensor dtype: %s, found: %s",
                           dtype_name(splits), dtype_name(s->dtype));
        if (s->ndim != 1 || !s->count)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Row splits of the element at index %lld must be a "
                           "vector that is not empty, found: %s",
                           (long long)i, tensor_shape_text(s, text));
    }
    *ret = r;
    return MST_OK;
}

struct joining {
    const struct ragged_value **part;
    int64_t count;
    int dims, rank; /* of the tensor of variants, of each of them */
    int splits, values;
};

/* Rows that a value brings to splits k of its own (k == rank: of values). */
static int64_t rows_of(const struct ragged_value *r, int k)
{
    if (k < r->rank)
        return r->splits[k].count - 1;
    return r->values.ndim ? r->values.dims[0] : 1;
}

/* Output k is the splits of dimension k of the tensor of variants. */
static enum mst_code outer_splits(struct op_ctx *c, const struct joining *j,
                                  int k)
{
    const struct tensor *in = op_in(c, 0);
    int64_t rows = args_product(in->dims, 0, k + 1) + 1, at = 0;
    enum mst_code rc = op_out_new(c, k, 1, &rows);

    for (int64_t i = 0; i < rows && !rc; i++) {
        put_split(op_out(c, k), i, at);
        if (k + 1 < j->dims)
            at += in->dims[k + 1];
        else if (i + 1 < rows)
            at += rows_of(j->part[i], 0);
    }
    return rc;
}

/* Output dims + k is splits k of all values, one behind the other. */
static enum mst_code inner_splits(struct op_ctx *c, const struct joining *j,
                                  int k)
{
    struct tensor *out = op_out(c, j->dims + k);
    int64_t rows = 1, at = 0, n = 1;
    enum mst_code rc;

    for (int64_t i = 0; i < j->count; i++)
        rows += rows_of(j->part[i], k);
    rc = op_out_new(c, j->dims + k, 1, &rows);
    if (rc)
        return rc;
    put_split(out, 0, 0);
    for (int64_t i = 0; i < j->count; i++) {
        const struct tensor *s = &j->part[i]->splits[k];

        for (int64_t r = 1; r < s->count; r++)
            put_split(out, n++, at + split_at(s, r));
        if (s->count > 1)
            at += split_at(s, s->count - 1);
    }
    return MST_OK;
}

static enum mst_code join_values(struct op_ctx *c, const struct joining *j,
                                 int out)
{
    struct shape s = { .ndim = 1 };
    int64_t at = 0;
    enum mst_code rc;

    for (int64_t i = 0; i < j->count; i++) {
        const struct tensor *v = &j->part[i]->values;
        bool flat = v->ndim == 0; /* rows of a batch without splits */

        if (!i)
            s = (struct shape){ .ndim = flat ? 1 : v->ndim };
        if (!i && !flat)
            memcpy(s.dims, v->dims, (size_t)v->ndim * sizeof(s.dims[0]));
        if ((flat ? 1 : v->ndim) != s.ndim ||
            (!flat && memcmp(s.dims + 1, v->dims + 1,
                             (size_t)(s.ndim - 1) * sizeof(s.dims[0]))))
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Shape of component values must match in all but "
                           "the first dimension");
        at += flat ? 1 : v->dims[0];
    }
    s.dims[0] = at;
    rc = op_out_new(c, out, s.ndim, s.dims);
    at = 0;
    for (int64_t i = 0; i < j->count && !rc; i++) {
        const struct tensor *v = &j->part[i]->values;

        tensor_copy_elems(op_out(c, out), at, v, 0, v->count);
        at += v->count;
    }
    return rc;
}

/* A scalar variant is the value itself. */
static enum mst_code give_whole(struct op_ctx *c, const struct joining *j)
{
    const struct ragged_value *r = j->part[0];

    for (int k = 0; k < j->rank; k++)
        *op_out(c, k) = tensor_ref(&r->splits[k]);
    *op_out(c, j->rank) = tensor_ref(&r->values);
    return MST_OK;
}

static enum mst_code join(struct op_ctx *c, struct joining *j)
{
    enum mst_code rc = MST_OK;

    for (int64_t i = 0; i < j->count && !rc; i++)
        rc = value_at(c, i, j->rank, j->splits, j->values, &j->part[i]);
    if (rc)
        return rc;
    if (!j->dims)
        return give_whole(c, j);
    for (int k = 0; k < j->dims && !rc; k++)
        rc = outer_splits(c, j, k);
    for (int k = 0; k < j->rank && !rc; k++)
        rc = inner_splits(c, j, k);
    return rc ? rc : join_values(c, j, j->dims + j->rank);
}

static enum mst_code from_variant(struct op_ctx *c)
{
    const struct ragged_node *s = c->node->state;
    const struct tensor *in = op_in(c, 0);
    int given = s->in_rank, want = s->out_rank;
    struct joining j = { .count = in->count,
                         .dims = in->ndim,
                         .rank = given < 0 ? want - in->ndim : given,
                         .splits = s->splits,
                         .values = s->values };
    enum mst_code rc;

    if (given < 0 && j.rank < 0)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Inferred input_ragged_rank (output_ragged_rank - "
                       "encoded_variant.dims()) must be >= 0, found "
                       "output_ragged_rank: %d, encoded_variant.dims(): %d, "
                       "inferred input_ragged_rank: %d",
                       want, in->ndim, j.rank);
    if (want != j.rank + in->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "output_ragged_rank must be equal to input_ragged_rank "
                       "+ encoded_ragged.dims(); output_ragged_rank: %d, "
                       "input_ragged_rank: %d, encoded_variant.dims(): %d",
                       want, j.rank, in->ndim);
    j.part = mem_array((size_t)MAX(in->count, 1), sizeof(j.part[0]));
    rc = join(c, &j);
    mem_free(j.part);
    return rc;
}

const struct op_def def_ragged_tensor_from_variant = {
    .name = "RaggedTensorFromVariant",
    .in = "encoded_ragged: variant",
    .out = "output_nested_splits: output_ragged_rank * Tsplits, "
           "output_dense_values: Tvalues",
    .attr = "input_ragged_rank: int >= -1; output_ragged_rank: int >= 0; "
            "Tvalues: type; Tsplits: {int32, int64} = int64",
    .key = "Tvalues",
    .init = ragged_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, from_variant }, { 0 } },
};

/* ---- the gradient: values alone, put together again ---- */

static enum mst_code to_variant_grad(struct op_ctx *c)
{
    const struct tensor *in = op_in(c, 0);
    const struct ragged_node *n = c->node->state;
    struct shape s;
    int64_t at = 0;
    enum mst_code rc = args_shape(c, 2, "dense_values_shape", &s);

    if (!rc)
        rc = op_out_new(c, 0, s.ndim, s.dims);
    if (rc)
        return rc;
    tensor_zero(op_out(c, 0));
    for (int64_t i = 0; i < in->count; i++) {
        const struct object *o = *tensor_object(in, i);
        const struct tensor *v;

        if (!o || o->kind != &ragged_kind)
            return op_fail(
                c, MST_INVALID_ARGUMENT,
                "encoded_ragged_grad must hold RaggedTensorVariants");
        v = &CONTAINER(o, struct ragged_value, o)->values;
        if (v->dtype != n->values || v->count > op_out(c, 0)->count - at)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "The gradient's values do not fit "
                           "dense_values_shape");
        tensor_copy_elems(op_out(c, 0), at, v, 0, v->count);
        at += v->count;
    }
    if (at != op_out(c, 0)->count)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "The gradient has %lld values, dense_values_shape %lld",
                       (long long)at, (long long)op_out(c, 0)->count);
    return MST_OK;
}

const struct op_def def_ragged_tensor_to_variant_gradient = {
    .name = "RaggedTensorToVariantGradient",
    .in = "encoded_ragged_grad: variant, row_splits: Tsplits, "
          "dense_values_shape: int32",
    .out = "dense_values_grad: Tvalues",
    .attr = "Tvalues: type; Tsplits: {int32, int64} = int64",
    .key = "Tvalues",
    .init = ragged_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, to_variant_grad }, { 0 } },
};
