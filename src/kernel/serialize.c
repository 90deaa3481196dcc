#include "kernel/serialize.h"

#include "tensor/proto.h"

static void put_type_and_shape(struct pb_out *o, const struct tensor *t)
{
    struct pb_out dims, dim;

    pb_out_init(&dims);
    pb_out_init(&dim);
    for (int i = 0; i < t->ndim; i++) {
        dim.len = 0;
        if (t->dims[i])
            pb_put_uint(&dim, 1, (uint64_t)t->dims[i]);
        pb_put_bytes(&dims, 2, dim.data, dim.len);
    }
    pb_put_uint(o, 1, t->dtype);
    pb_put_bytes(o, 2, dims.data, dims.len);
    pb_out_done(&dims);
    pb_out_done(&dim);
}

static void put_strings(struct pb_out *o, const struct tensor *t)
{
    for (int64_t i = 0; i < t->count; i++)
        pb_put_bytes(o, 8, tensor_str(t, i)->data, tensor_str(t, i)->len);
}

enum mst_code serialize_tensor(const struct tensor *t, struct text *ret,
                               struct status *st)
{
    size_t content = tensor_proto_size(t).content;
    struct pb_out o;

    if (t->dtype == DT_RESOURCE)
        return status_set(st, MST_UNIMPLEMENTED,
                          "Tensors of type %s cannot be serialized",
                          dtype_name(t->dtype));
    pb_out_init(&o);
    put_type_and_shape(&o, t);
    if (t->dtype == DT_STRING) {
        put_strings(&o, t);
    } else if (t->count) {
        pb_put_tag(&o, 4, PB_LEN);
        pb_put_varint(&o, content);
    }
    if (t->dtype == DT_VARIANT)
        tensor_proto_put_content(&o, t);
    text_add(ret, o.data, o.len);
    pb_out_done(&o);
    if (dtype_is_plain((enum dtype)t->dtype))
        text_add(ret, t->data, tensor_bytes(t));
    return MST_OK;
}
