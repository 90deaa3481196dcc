/*
 * A tensor as an element of a DT_VARIANT tensor: how a sparse or ragged value
 * travels where only one tensor can.
 */
#ifndef TENSOR_BOXED_H
#define TENSOR_BOXED_H

#include "tensor/variant.h"

/* Never changes once it is made. */
struct boxed {
    struct object o; /* kind: &boxed_kind */
    struct tensor t;
};

extern const struct object_kind boxed_kind;

extern const struct variant_codec boxed_codec;

/* With one more reference to the tensor. */
struct object *boxed_new(const struct tensor *t);
/* The tensor in it, borrowed; NULL when it is none. */
const struct tensor *boxed_get(const struct object *o);

#endif
