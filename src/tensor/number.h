/*
 * A number in a variant: the one kind of variant that a TensorProto can hold
 * and that is no container of the runtime's own (lists, optionals, datasets
 * never leave the process that made them).
 */
#ifndef TENSOR_NUMBER_H
#define TENSOR_NUMBER_H

#include "tensor/tensor.h"

struct number {
    struct object o;     /* kind: &number_kind */
    struct tensor value; /* a scalar */
};

extern const struct object_kind number_kind;

struct number *number_new(struct tensor value); /* moved */
/* From a VariantTensorDataProto; NULL if it is anything else than an int, a
 * float, a double or a bool. */
struct number *number_from_proto(const void *data, size_t len);

#endif
