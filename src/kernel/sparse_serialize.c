/*
 * Sparse tensors as vectors of three: their indices, values and shape, each a
 * serialised TensorProto or a tensor in a variant. Many of them are rows of a
 * matrix; what is read back is stacked.
 */
#include "base/mem.h"
#include "kernel/sparse_batch.h"
#include "kernel/types.h"
#include "tensor/boxed.h"
#include "tensor/proto.h"

/* ---- out ---- */

static void put_proto(struct str *s, const struct tensor *t)
{
    struct tensor_proto_size size = tensor_proto_size(t);
    struct pb_out o;

    pb_out_init(&o);
    tensor_proto_put_head(&o, t, size);
    tensor_proto_put_content(&o, t);
    str_set(s, o.data, o.len);
    pb_out_done(&o);
}

/* Elements [at, at + 3) of the output are that sparse tensor. */
static void put(struct op_ctx *c, int64_t at, const struct tensor *indices,
                const struct tensor *values, const struct tensor *shape)
{
    const struct tensor *parts[] = { indices, values, shape };
    struct tensor *out = op_out(c, 0);

    for (int i = 0; i < 3; i++)
        if (out->dtype == DT_STRING)
            put_proto(tensor_str(out, at + i), parts[i]);
        else
            *tensor_object(out, at + i) = boxed_new(parts[i]);
}

static enum mst_code check_type(struct op_ctx *c)
{
    enum dtype dt = (enum dtype)op_in(c, 1)->dtype;

    if (c->node->out_types[0] == DT_STRING && !dtype_is_plain(dt) &&
        dt != DT_STRING)
        return op_fail(c, MST_UNIMPLEMENTED,
                       "Sparse tensors of type %s are not serialized",
                       dtype_name(dt));
    return MST_OK;
}

static enum mst_code serialize_sparse(struct op_ctx *c)
{
    enum mst_code rc = sparse_batch_ranks(c);

    if (!rc)
        rc = check_type(c);
    if (!rc)
        rc = op_out_new(c, 0, 1, (int64_t[]){ 3 });
    if (!rc)
        put(c, 0, op_in(c, 0), op_in(c, 1), op_in(c, 2));
    return rc;
}

static enum mst_code serialize_rows(struct op_ctx *c, const struct sparse *s)
{
    int64_t rows = tensor_int(s->shape, 0), at = 0;
    enum mst_code rc = op_out_new(c, 0, 2, (int64_t[]){ rows, 3 });

    for (int64_t i = 0; i < rows && !rc; i++) {
        struct sparse_part p;

        rc = sparse_batch_cut(c, s, i, &at, &p);
        if (rc)
            break;
        put(c, 3 * i, &p.indices, &p.values, &p.shape);
        sparse_part_done(&p);
    }
    return rc;
}

static enum mst_code serialize_many_sparse(struct op_ctx *c)
{
    struct tensor own = { 0 };
    struct sparse s;
    enum mst_code rc = sparse_batch_in(c, &s, &own);

    if (!rc)
        rc = check_type(c);
    if (!rc)
        rc = serialize_rows(c, &s);
    tensor_unref(&own);
    return rc;
}

#define SERIALIZE(stem, text)                                                  \
    const struct op_def def_##stem = {                                         \
        .name = text,                                                          \
        .in = "sparse_indices: int64, sparse_values: T, sparse_shape: int64",  \
        .out = "serialized_sparse: out_type",                                  \
        .attr = "T: type; out_type: {string, variant} = string",               \
        .kernel = (const struct op_kernel[]){ { DT_ANY, stem }, { 0 } },       \
    };

SERIALIZE(serialize_sparse, "SerializeSparse")
SERIALIZE(serialize_many_sparse, "SerializeManySparse")

/* ---- in ---- */

static enum mst_code get_tensor(struct op_ctx *c, int64_t number, int column,
                                struct tensor *ret)
{
    const struct tensor *in = op_in(c, 0), *t;
    const struct str *s;
    struct status st;

    if (in->dtype == DT_VARIANT) {
        t = boxed_get(*tensor_object(in, 3 * number + column));
        if (!t)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Could not get a tensor from "
                           "serialized_sparse[%lld, %d]",
                           (long long)number, column);
        *ret = tensor_ref(t);
        return MST_OK;
    }
    s = tensor_str(in, 3 * number + column);
    if (tensor_from_proto(ret, s->len ? s->data : "", s->len, NULL, &st))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       st.code == MST_INVALID_ARGUMENT
                           ? "Could not parse serialized proto"
                           : "Could not construct tensor from proto");
    return MST_OK;
}

/* The dtype and the rank that a part must have. */
static enum mst_code check_part(struct op_ctx *c, long long number, int column,
                                const struct tensor *t)
{
    char text[SHAPE_TEXT_MAX];

    tensor_shape_text(t, text);
    if (column != 1 && t->dtype != DT_INT64)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Expected serialized_sparse[%lld, %d] to be a %s of "
                       "DT_INT64 but received dtype %s",
                       number, column, column ? "vector" : "matrix",
                       dtype_name(t->dtype));
    if (column == 0 && t->ndim != 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Expected serialized_sparse[%lld, 0] to represent an "
                       "index matrix but received shape %s",
                       number, text);
    if (column == 1 && t->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Expected serialized_sparse[%lld, 1] to represent a "
                       "values vector but received shape %s",
                       number, text);
    if (column == 2 && t->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Expected serialized_sparse[%lld, %d] to be a shape "
                       "vector but its shape is %s",
                       number, op_in(c, 0)->dtype == DT_STRING ? 1 : 2, text);
    if (column == 1 && t->dtype != c->node->out_types[1])
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Requested SparseTensor of type %s but "
                       "SparseTensor[%lld].values.dtype() == %s",
                       dtype_name(c->node->out_types[1]), number,
                       dtype_name(t->dtype));
    return MST_OK;
}

static enum mst_code check_sizes(struct op_ctx *c, long long n,
                                 const struct sparse_part *p)
{
    if (p->indices.dims[0] != p->values.count)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Expected row counts of SparseTensor[%lld].indices and "
                       "SparseTensor[%lld].values to match but they do not: "
                       "%lld vs. %lld",
                       n, n, (long long)p->indices.dims[0],
                       (long long)p->values.count);
    if (p->indices.dims[1] != p->shape.count)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Expected column counts of SparseTensor[%lld].indices "
                       "to match size of SparseTensor[%lld].shape but they do "
                       "not: %lld vs. %lld",
                       n, n, (long long)p->indices.dims[1],
                       (long long)p->shape.count);
    return MST_OK;
}

static enum mst_code get(struct op_ctx *c, int64_t number,
                         struct sparse_part *ret)
{
    struct tensor *parts[] = { &ret->indices, &ret->values, &ret->shape };
    enum mst_code rc = MST_OK;

    for (int i = 0; i < 3 && !rc; i++) {
        rc = get_tensor(c, number, i, parts[i]);
        if (!rc)
            rc = check_part(c, number, i, parts[i]);
    }
    return rc ? rc : check_sizes(c, number, ret);
}

static enum mst_code check_in(struct op_ctx *c)
{
    const struct tensor *t = op_in(c, 0);
    char text[SHAPE_TEXT_MAX];

    tensor_shape_text(t, text);
    if (!t->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Serialized sparse should have non-zero rank %s", text);
    if (t->dims[t->ndim - 1] != 3)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Serialized sparse should have 3 as the last dimension "
                       "%s",
                       text);
    if (!t->count)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Serialized sparse should have at least 1 serialized "
                       "tensor, but has a zero dimension %s",
                       text);
    return MST_OK;
}

static enum mst_code get_all(struct op_ctx *c, struct sparse_part *parts,
                             int64_t n)
{
    enum mst_code rc = MST_OK;

    for (int64_t i = 0; i < n && !rc; i++) {
        rc = get(c, i, &parts[i]);
        if (!rc && parts[i].shape.count != parts[0].shape.count)
            rc = op_fail(c, MST_INVALID_ARGUMENT,
                         "Inconsistent shape across SparseTensors: rank prior "
                         "to SparseTensor[%lld] was: %lld but rank of "
                         "SparseTensor[%lld] is: %lld",
                         (long long)i, (long long)parts[0].shape.count,
                         (long long)i, (long long)parts[i].shape.count);
    }
    return rc;
}

static enum mst_code deserialize_sparse(struct op_ctx *c)
{
    const struct tensor *in = op_in(c, 0);
    int64_t n = in->count / 3;
    struct sparse_part *parts;
    enum mst_code rc = check_in(c);

    if (rc)
        return rc;
    parts = mem_array((size_t)n, sizeof(*parts));
    rc = get_all(c, parts, n);
    if (!rc && in->ndim == 1) {
        tensor_move(op_out(c, 0), &parts->indices);
        tensor_move(op_out(c, 1), &parts->values);
        tensor_move(op_out(c, 2), &parts->shape);
    } else if (!rc) {
        rc = sparse_batch_stack(c, parts, n, in->ndim - 1, in->dims);
    }
    for (int64_t i = 0; i < n; i++)
        sparse_part_done(&parts[i]);
    mem_free(parts);
    return rc;
}

#define DESERIALIZE(stem, text, type, more)                                    \
    const struct op_def def_##stem = {                                         \
        .name = text,                                                          \
        .in = "serialized_sparse: " type,                                      \
        .out = "sparse_indices: int64, sparse_values: dtype, "                 \
               "sparse_shape: int64",                                          \
        .attr = "dtype: type" more,                                            \
        .kernel = (const struct op_kernel[]){ { DT_ANY, deserialize_sparse },  \
                                              { 0 } },                         \
    };

DESERIALIZE(deserialize_sparse, "DeserializeSparse", "Tserialized",
            "; Tserialized: {string, variant} = string")
DESERIALIZE(deserialize_many_sparse, "DeserializeManySparse", "string", "")
