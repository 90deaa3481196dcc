/*
 * Half and bfloat16 by the piece: widened to float, worked on by a loop for
 * float, narrowed again. It spares the many loops over these types a version
 * of their own, and a piece stays in the first cache meanwhile.
 */
#ifndef KERNEL_NARROW_H
#define KERNEL_NARROW_H

#include "tensor/dtype.h"

#define NARROW_PIECE 512

static inline bool narrow_is(enum dtype dt)
{
    return dt == DT_HALF || dt == DT_BFLOAT16;
}

void narrow_load(enum dtype dt, float *to, const void *from, int64_t n);
/* The same for so many rows of n, which lie to_row and from_row apart. */
void narrow_load_rows(enum dtype dt, float *to, int64_t to_row,
                      const uint16_t *from, int64_t from_row, int64_t rows,
                      int64_t n);
void narrow_store(enum dtype dt, void *to, const float *from, int64_t n);

#endif
