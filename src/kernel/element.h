/*
 * What tensor arrays, tensor lists and queues need of their elements: partial
 * shapes, and elements as rows of a larger tensor.
 */
#ifndef KERNEL_ELEMENT_H
#define KERNEL_ELEMENT_H

#include "op/op.h"

/* All dimensions are known. */
bool element_shape_known(const struct shape *s);
struct shape element_shape_of(const struct tensor *t);
/* What is known from either; false when they contradict each other. */
bool element_shape_merge(const struct shape *a, const struct shape *b,
                         struct shape *ret);
/* The same into *a, for an op; the text is TensorFlow's. */
enum mst_code element_shape_join(struct op_ctx *c, struct shape *a,
                                 const struct shape *b) MUST_USE;
/* The shape without its first dimension, and with one in front. The latter
 * is false for a rank that no tensor has. */
struct shape element_shape_tail(const struct shape *s);
bool element_shape_batch(const struct shape *s, int64_t n, struct shape *ret);

/* Row i of t, as a tensor of one dimension less; shares t's bytes if it can. */
enum mst_code element_row(const struct tensor *t, int64_t i, struct tensor *ret,
                          struct status *st) MUST_USE;

#endif
