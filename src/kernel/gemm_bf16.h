/*
 * Products of matrices of bfloat16 without a detour over float matrices.
 */
#ifndef KERNEL_GEMM_BF16_H
#define KERNEL_GEMM_BF16_H

#include "kernel/gemm.h"

/* Whether this CPU has instructions for it. */
bool gemm_bf16_can(void);
/* As gemm_run(), of bfloat16 into bfloat16 or float; it does not add to C. */
enum mst_code gemm_bf16_run(struct op_ctx *c, enum dtype out,
                            const struct gemm *g) MUST_USE;

#endif
