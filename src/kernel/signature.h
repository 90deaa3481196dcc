/*
 * The types of an op's edges against what an object (a queue, a table) wants
 * of it, with TensorFlow's text.
 */
#ifndef KERNEL_SIGNATURE_H
#define KERNEL_SIGNATURE_H

#include "op/op.h"

/* A list of types. */
struct signature {
    const int *types;
    int count;
};

/* The op's inputs from `fixed` on are those of `in`, its outputs those of
 * `out`. */
enum mst_code signature_check(struct op_ctx *c, int fixed, struct signature in,
                              struct signature out) MUST_USE;
/* "int32, float", to the end of a message. */
void signature_append(struct status *st, const int *types, int count);

#endif
