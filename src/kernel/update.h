/*
 * What all kernels that update variables begin with: finding the variable of
 * an input and checking that it is what the op takes it for.
 */
#ifndef KERNEL_UPDATE_H
#define KERNEL_UPDATE_H

#include "op/op.h"

/* The variable of input i, in either form. A resource that is not there is
 * NOT_FOUND, in TensorFlow's words. */
enum mst_code update_variable(struct op_ctx *c, int i,
                              struct variable **ret) MUST_USE;
/* Under the variable's lock: it still has a value, of the type of input
 * `value`; text is what TensorFlow says if not. */
enum mst_code update_check(struct op_ctx *c, const struct variable *v,
                           int value, const char *text) MUST_USE;
/* Under the lock, for ops that read: the value is of the type of output 0. */
enum mst_code update_check_read(struct op_ctx *c,
                                const struct variable *v) MUST_USE;
/* Under the lock: rows of v->t may be written in place from now on. */
enum mst_code update_prepare_rows(struct op_ctx *c,
                                  struct variable *v) MUST_USE;

#endif
