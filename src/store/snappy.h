/* Snappy's block format, the reading half: some writers compress the blocks of
 * their tables with it. */
#ifndef STORE_SNAPPY_H
#define STORE_SNAPPY_H

#include "base/base.h"

/* What the bytes say they unpack to; false when they cannot: no compressed
 * byte stands for more than a few dozen. */
bool snappy_length(const void *data, size_t len, size_t *ret);
/* Unpacks into exactly out_len bytes; false when the input is damaged. */
bool snappy_unpack(const void *data, size_t len, void *out, size_t out_len);

#endif
