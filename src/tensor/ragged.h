/*
 * A ragged value as one element of a DT_VARIANT tensor: how it goes through
 * loops and datasets, which know nothing but tensors.
 */
#ifndef TENSOR_RAGGED_H
#define TENSOR_RAGGED_H

#include "tensor/variant.h"

/* Never changes once it is made. */
struct ragged_value {
    struct object o; /* kind: &ragged_kind */
    struct tensor values;
    int rank;               /* number of splits */
    struct tensor splits[]; /* the outermost first */
};

extern const struct object_kind ragged_kind;
extern const struct variant_codec ragged_codec;

/* Its tensors are none. */
struct ragged_value *ragged_value_new(int rank);

#endif
