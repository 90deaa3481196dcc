/*
 * An optional: some tensors, or nothing. The branches of a function that is
 * differentiated hand each other their values in such.
 */
#ifndef TENSOR_OPTIONAL_H
#define TENSOR_OPTIONAL_H

#include "tensor/variant.h"

/* Never changes once it is made. */
struct optional {
    struct object o; /* kind: &optional_kind */
    int count;       /* -1: nothing */
    struct tensor values[];
};

extern const struct object_kind optional_kind;
extern const struct variant_codec optional_codec;

/* Its values are none. */
struct optional *optional_new(int count);

#endif
