/*
 * TensorProto in whatever encoding. What is accepted must be whole, and must
 * come back the same after being written and read again.
 */
#include <string.h>

#include "tensor/proto.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_again(const struct tensor *t)
{
    struct tensor_proto_size size = tensor_proto_size(t);
    struct status st = STATUS_INIT;
    struct tensor back;
    struct pb_out o;

    pb_out_init(&o);
    tensor_proto_put_head(&o, t, size);
    CHECK(o.len == size.head);
    if (t->dtype == DT_STRING)
        tensor_proto_put_strings(&o, t);
    else
        pb_put_raw(&o, t->data, size.content);
    CHECK(o.len == size.head + size.content);
    CHECK(!tensor_from_proto(&back, o.data, o.len, NULL, &st));
    CHECK(back.dtype == t->dtype && tensor_same_shape(&back, t));
    if (t->dtype != DT_STRING && t->count)
        CHECK(!memcmp(back.data, t->data, tensor_bytes(t)));
    tensor_unref(&back);
    pb_out_done(&o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct status st = STATUS_INIT;
    struct tensor_head head;
    struct buffer *owner;
    struct tensor t;

    buffer_limit((size_t)256 << 20);
    (void)tensor_proto_head(&head, data, size);
    owner = buffer_new(size);
    if (size)
        memcpy(owner->data, data, size);
    if (!tensor_from_proto(&t, owner->data, size, owner, &st)) {
        if (tensor_bytes(&t) < 1 << 20)
            write_again(&t);
        tensor_unref(&t);
    }
    buffer_unref(owner);
    return 0;
}
