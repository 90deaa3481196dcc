/*
 * Matrices that are transposed through registers.
 */
#ifndef KERNEL_TURN_H
#define KERNEL_TURN_H

#include <stdint.h>

/* to[i * a + j] = from[i + j * b] for i < rows and j < cols: rows of `to`, a
 * apart, are columns of `from`, whose rows are b apart. */
void turn_32(uint32_t *to, int64_t a, const uint32_t *from, int64_t b,
             int64_t rows, int64_t cols);
void turn_64(uint64_t *to, int64_t a, const uint64_t *from, int64_t b,
             int64_t rows, int64_t cols);

#endif
