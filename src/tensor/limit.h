/*
 * The largest tensor that this thread may make. Kernels that run before anyone
 * asked for their result (exec/fold.c) are kept from making large ones.
 */
#ifndef TENSOR_LIMIT_H
#define TENSOR_LIMIT_H

#include <stddef.h>

/* SIZE_MAX, as at first: no limit. */
void tensor_limit(size_t bytes);

#endif
