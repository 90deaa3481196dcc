/*
 * Control messages, through protobuf-c. That library recurses as deep as a
 * message says and allocates as much as it asks for, so the bytes are walked
 * first along the message's own description: nesting, number of fields and
 * lengths are known to be sane before it sees them.
 */
#ifndef WIRE_CONTROL_H
#define WIRE_CONTROL_H

#include <protobuf-c/protobuf-c.h>

#include "base/base.h"

/* A message of that type, or NULL when it is malformed or beyond the limits.
 * To be freed with protobuf_c_message_free_unpacked(). */
ProtobufCMessage *control_unpack(const ProtobufCMessageDescriptor *type,
                                 const void *data, size_t len);

#define CONTROL_UNPACK(name, data, len)                                        \
    ((void *)control_unpack(&name##__descriptor, (data), (len)))

void control_free(void *message); /* accepts NULL */

#endif
