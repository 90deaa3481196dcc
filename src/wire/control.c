#include "wire/control.h"

#include "wire/pb.h"

#define DEPTH_MAX  100
#define FIELDS_MAX (32u << 20)

static bool walk(const ProtobufCMessageDescriptor *type, const uint8_t *data,
                 size_t len, int depth, uint32_t *fields)
{
    struct pb_in in = pb_in(data, len);
    struct pb_field f;

    if (depth > DEPTH_MAX)
        return false;
    while (pb_next(&in, &f)) {
        const ProtobufCFieldDescriptor *d;

        if (++*fields > FIELDS_MAX)
            return false;
        if (f.wire != PB_LEN)
            continue;
        d = protobuf_c_message_descriptor_get_field(type, f.number);
        if (d && d->type == PROTOBUF_C_TYPE_MESSAGE &&
            !walk(d->descriptor, f.data, f.len, depth + 1, fields))
            return false;
    }
    return !in.bad;
}

ProtobufCMessage *control_unpack(const ProtobufCMessageDescriptor *type,
                                 const void *data, size_t len)
{
    uint32_t fields = 0;

    if (!walk(type, data, len, 1, &fields))
        return NULL;
    return protobuf_c_message_unpack(type, NULL, len, data);
}

void control_free(void *message)
{
    if (message)
        protobuf_c_message_free_unpacked(message, NULL);
}
