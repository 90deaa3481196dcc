/*
 * A number in a variant. Its kind says which: to TensorFlow an int and a float
 * in variants are of different types.
 */
#ifndef TENSOR_NUMBER_H
#define TENSOR_NUMBER_H

#include "tensor/variant.h"

struct number {
    struct object o;     /* kind: one of four */
    struct tensor value; /* a scalar: int32, float, double or bool */
};

extern const struct variant_codec number_int_codec, number_float_codec,
    number_double_codec, number_bool_codec;

struct number *number_new(struct tensor value); /* moved */
/* The number that it is; NULL when it is none. */
const struct number *number_of(const struct object *o);

#endif
