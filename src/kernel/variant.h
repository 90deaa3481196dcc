/*
 * Sums and zeros of variants: what AddN and ZerosLike do with the lists and
 * optionals in which the gradients of functions travel.
 */
#ifndef KERNEL_VARIANT_H
#define KERNEL_VARIANT_H

#include "op/op.h"

/* Kernels of AddN and ZerosLike for DT_VARIANT. */
enum mst_code variant_add_n(struct op_ctx *c) MUST_USE;
enum mst_code variant_zeros_like(struct op_ctx *c) MUST_USE;

#endif
