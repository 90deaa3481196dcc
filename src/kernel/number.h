/*
 * A number out of a text, by TensorFlow's rules: the whole text but for space
 * around it, and nothing that does not fit the type.
 */
#ifndef KERNEL_NUMBER_H
#define KERNEL_NUMBER_H

#include "tensor/tensor.h"

/* float, double, int32, int64, uint32 or uint64. */
bool number_read(const struct str *s, enum dtype dt, void *ret);

#endif
