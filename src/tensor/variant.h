/*
 * Variants in messages. TensorFlow's VariantTensorDataProto is the name of a
 * type, some bytes about the value (its metadata), and the tensors in it; those
 * may hold variants in turn. What stands in the metadata differs between types
 * and is told beside each codec.
 *
 * Writing always succeeds. Of an object without a codec (a dataset, a lock)
 * only its type is written, as TensorFlow does it, and who reads it says that
 * it cannot. A tensor in which variants lie too deep, or that is too large for
 * a message, is written so that nobody can read it: as a whole, since
 * TensorFlow passes over tensors within variants that it cannot read.
 *
 * A codec is a const record beside its kind; variant.c has the list.
 */
#ifndef TENSOR_VARIANT_H
#define TENSOR_VARIANT_H

#include "tensor/tensor.h"
#include "wire/pb.h"

/* Variants in variants, the outermost counted. Protobuf reads messages that are
 * nested a hundred times, and each level takes two. */
#define VARIANT_DEPTH_MAX 49
/* What a message of protobuf can be. One small list that lies in many places of
 * another comes to this quickly. */
#define VARIANT_BYTES_MAX ((size_t)INT32_MAX)

/* A variant as it was read: its tensors are the reader's, to move out of. */
struct variant_parts {
    const uint8_t *meta;
    size_t meta_len;
    struct tensor *tensors;
    int64_t count;
};

struct variant_codec {
    const struct object_kind *kind;
    /* NULL: without metadata. */
    void (*put_meta)(const struct object *o, struct pb_out *out);
    /* The tensor behind *at, which is 0 at first and moved on; NULL at the end.
     * NULL: without tensors. */
    const struct tensor *(*next)(const struct object *o, int64_t *at);
    /* INVALID_ARGUMENT when the parts make no such value. */
    enum mst_code (*make)(const struct variant_parts *p, struct object **ret,
                          struct status *st);
};

/* ---- for proto.c ---- */

/* How far a measurement has come: how deep it is, and how much may follow. */
struct variant_walk {
    int depth;
    size_t left;
    bool too_large; /* or too deep */
};

void variant_walk_take(struct variant_walk *w, size_t bytes);
/* Bytes of the VariantTensorDataProto, which are taken from what is left. */
size_t variant_proto_size(const struct object *o, struct variant_walk *w);
/* Writes just so many. For what was not found too large. */
void variant_put_proto(struct pb_out *out, const struct object *o, int depth);
/* NULL is a variant that holds nothing. The owner is as in proto.h. */
enum mst_code variant_from_proto(struct object **ret, const void *data,
                                 size_t len, struct buffer *owner, int depth,
                                 struct status *st) MUST_USE;

#endif
