/*
 * TensorProto in whatever encoding. What is accepted must be whole, and must
 * come back the same after being written and read again.
 */
#include <string.h>

#include "tensor/proto.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write(struct pb_out *o, const struct tensor *t,
                  struct tensor_proto_size size)
{
    pb_out_init(o);
    tensor_proto_put_head(o, t, size);
    CHECK(o->len == size.head);
    tensor_proto_put_content(o, t);
    CHECK(o->len == size.head + size.content);
}

static void write_again(const struct tensor *t)
{
    struct tensor_proto_size size = tensor_proto_size(t);
    struct status st = STATUS_INIT;
    struct tensor back;
    struct pb_out o, again;

    write(&o, t, size);
    CHECK(!tensor_from_proto(&back, o.data, o.len, NULL, &st));
    CHECK(back.dtype == t->dtype && tensor_same_shape(&back, t));
    write(&again, &back, tensor_proto_size(&back));
    CHECK(again.len == o.len && !memcmp(again.data, o.data, o.len));
    tensor_unref(&back);
    pb_out_done(&again);
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
