/*
 * The innermost loops of products of bfloat16, which are summed as float, on
 * CPUs that have instructions for them.
 *
 * Both inputs are packed into squares of 16 by 16 pairs of elements that follow
 * one another in the sum: a square of A has a row of A in each of its rows, one
 * of B a column of B in each of its columns. A step is the 32 products of a
 * square; the squares of a step, one or two of A and one or two of B, follow
 * one another.
 */
#ifndef KERNEL_BF16_TILE_H
#define KERNEL_BF16_TILE_H

#include "base/base.h"

#define BF16_TILE_ROWS  16   /* of a square, and its columns */
#define BF16_TILE_STEP  32   /* products */
#define BF16_TILE_BYTES 1024 /* of a square */

enum bf16_tile_kind {
    BF16_TILE_NONE,
    BF16_TILE_AVX512, /* products of pairs */
    BF16_TILE_AMX,    /* of squares */
};

/* c[r * c_row + j] (+)= the sum over all steps, for 16 times `high` rows and 16
 * times `wide` columns. */
#define BF16_TILE_ARGS                                                         \
    int64_t steps, const void *a, int high, const void *b, int wide, float *c, \
        int64_t c_row, bool add

struct bf16_tiles {
    /* Around the calls that a thread makes in one go; may be NULL. */
    void (*begin)(void), (*end)(void);
    void (*tile)(BF16_TILE_ARGS);
};

/* The best that this CPU and its system have; NULL if there is none. */
const struct bf16_tiles *bf16_tile_best(void);
/* From now on nothing better than that: for tests. */
void bf16_tile_limit(enum bf16_tile_kind most);

#endif
