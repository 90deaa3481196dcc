/*
 * TensorProto, in every legal encoding, both directions, and shapes.
 *
 * Reading: raw content or typed fields; typed fields may be fewer than the
 * elements (the last is repeated, none is zero; of variants, what is not there
 * holds nothing). Writing: always as raw content, the head and the elements
 * apart, so that the elements go out from where they lie.
 */
#ifndef TENSOR_PROTO_H
#define TENSOR_PROTO_H

#include "tensor/tensor.h"
#include "wire/pb.h"

/* owner: the buffer that data lies in, or NULL. When the content is aligned it
 * is not copied but shared. INVALID_ARGUMENT when the message is malformed or
 * contradicts itself. */
enum mst_code tensor_from_proto(struct tensor *t, const void *data, size_t len,
                                struct buffer *owner,
                                struct status *st) MUST_USE;

/* TensorShapeProto. Dimensions may be -1. */
enum mst_code shape_from_proto(struct shape *s, const void *data, size_t len,
                               struct status *st) MUST_USE;
void shape_put_proto(struct pb_out *o, const struct shape *s);

/*
 * The start of a TensorProto, as far as its bytes are there: for reading a
 * tensor from the socket into its place. True when everything before the raw
 * content was seen and makes sense; *ret_at is the content's offset.
 */
struct tensor_head {
    enum dtype dtype;
    struct shape shape;
    size_t content_at, content_len;
};
bool tensor_proto_head(struct tensor_head *h, const uint8_t *data, size_t have);

/* Bytes of the raw elements, and of what comes before them. */
struct tensor_proto_size {
    size_t head, content;
};
struct tensor_proto_size tensor_proto_size(const struct tensor *t);
/* Writes the head; the caller lets the content follow: for plain types the
 * tensor's bytes as they lie will do. The shape of a scalar is left out, as
 * TensorFlow does. */
void tensor_proto_put_head(struct pb_out *o, const struct tensor *t,
                           struct tensor_proto_size size);
void tensor_proto_put_content(struct pb_out *o, const struct tensor *t);

/* ---- for variant.c: tensors within so many variants ---- */

struct variant_walk;
enum mst_code tensor_from_proto_within(struct tensor *t, const void *data,
                                       size_t len, struct buffer *owner,
                                       int depth, struct status *st) MUST_USE;
size_t tensor_proto_size_within(const struct tensor *t, struct variant_walk *w);
/* Its size, and then the whole. */
void tensor_proto_put_within(struct pb_out *o, const struct tensor *t,
                             int depth);

#endif
