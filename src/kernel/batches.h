/*
 * Batches of matrices that are broadcast: all but the last two dimensions of
 * two tensors, as NumPy does it.
 */
#ifndef KERNEL_BATCHES_H
#define KERNEL_BATCHES_H

#include "op/op.h"

/* Dimension i of a batch of ndim, of which t may have fewer. */
static inline int64_t batches_dim(const struct tensor *t, int i, int ndim)
{
    i -= ndim - (t->ndim - 2);
    return i < 0 ? 1 : t->dims[i];
}

/* The batch of both; false when they do not go together. */
static inline bool batches_shape(const struct tensor *x, const struct tensor *y,
                                 struct shape *ret)
{
    ret->ndim = MAX(x->ndim, y->ndim) - 2;
    for (int i = 0; i < ret->ndim; i++) {
        int64_t dx = batches_dim(x, i, ret->ndim);
        int64_t dy = batches_dim(y, i, ret->ndim);

        if (dx != dy && dx != 1 && dy != 1)
            return false;
        ret->dims[i] = dx == 1 ? dy : dx;
    }
    return true;
}

/* Where in t matrix b of the batch begins, in elements. */
static inline int64_t batches_at(const struct tensor *t,
                                 const struct shape *batch, int64_t b)
{
    int64_t step = t->dims[t->ndim - 2] * t->dims[t->ndim - 1], at = 0;

    for (int i = batch->ndim - 1; i >= 0; i--) {
        int64_t d = batches_dim(t, i, batch->ndim);

        if (d != 1)
            at += b % batch->dims[i] * step;
        b /= batch->dims[i];
        step *= d;
    }
    return at;
}

#endif
