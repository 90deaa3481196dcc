/* Compressed messages: TensorFlow's clients send them if told to. */
#ifndef RPC_INFLATE_H
#define RPC_INFLATE_H

#include "base/buffer.h"
#include "base/status.h"

enum inflate_codec {
    INFLATE_IDENTITY,
    INFLATE_GZIP,
    INFLATE_DEFLATE, /* gRPC means zlib's format */
    INFLATE_UNKNOWN,
};

enum inflate_codec inflate_codec_of(const char *name, size_t len);

/* A buffer of exactly the inflated size; no more than `max`. RESOURCE_EXHAUSTED
 * if it would be more or there is no memory, INTERNAL if the bytes are bad. */
enum mst_code inflate_message(enum inflate_codec codec, const uint8_t *data,
                              size_t len, size_t max, struct buffer **ret,
                              struct status *st) MUST_USE;

#endif
