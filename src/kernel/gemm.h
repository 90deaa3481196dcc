/*
 * Matrix products: C = A B, for a batch of matrices.
 *
 * A is m by k, B is k by n, C is m by n with contiguous rows. A and B have
 * strides, in elements, so that a transposed matrix is the same call. One
 * element's sum is always taken in the same order, whatever the number of
 * threads; docs/adr/0010-matmul.md says why this is our own code.
 */
#ifndef KERNEL_GEMM_H
#define KERNEL_GEMM_H

#include "op/op.h"

struct gemm {
    int64_t m, n, k;
    const void *a, *b;
    int64_t a_row, a_col, b_row, b_col;
    void *c;
    int64_t c_row;
    bool add; /* C += A B */
    /* Half or bfloat16 if that is what B is while the others are float, and its
     * rows are contiguous; else 0. */
    enum dtype b_type;
    /* Which matrices the i-th of a batch takes, as offsets in elements; NULL
     * and 1 for a single product. */
    int64_t batch;
    const int64_t *a_at, *b_at, *c_at;
};

/* float, double, int32 or int64 (which wrap). */
enum mst_code gemm_run(struct op_ctx *c, enum dtype dt,
                       const struct gemm *g) MUST_USE;

/* How C is cut into blocks that threads take: `m_count` by `n_count` of at most
 * m by n elements for each matrix of the batch. */
struct gemm_blocks {
    int64_t m, n, m_count, n_count;
    double cost_ns; /* of one, about */
};

/* Blocks no larger than m by n, and small enough that every thread gets some,
 * if it is worth it at so many operations a nanosecond. */
struct gemm_blocks gemm_cut(const struct op_ctx *c, const struct gemm *g,
                            int64_t m, int64_t n, double per_ns);

/* One of them: its row and column in C, its size, and where it begins in A and
 * B and its matrix in C, in elements. */
struct gemm_block {
    int64_t i, j, m, n;
    int64_t a, b, c;
};

struct gemm_block gemm_block(const struct gemm *g,
                             const struct gemm_blocks *cut, int64_t i);

#endif
