/* CRC-32C (Castagnoli), with the CPU's instruction where it has one, and the
 * mask that TensorFlow's files put over it. */
#ifndef BASE_CRC32C_H
#define BASE_CRC32C_H

#include "base/base.h"

/* Continues a checksum; begin with 0. */
uint32_t crc32c(uint32_t crc, const void *data, size_t len);
/* The checksum of a followed by b, from those of the two; b has b_len bytes. */
uint32_t crc32c_join(uint32_t a, uint32_t b, uint64_t b_len);

static inline uint32_t crc32c_mask(uint32_t crc)
{
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

static inline uint32_t crc32c_unmask(uint32_t masked)
{
    uint32_t rot = masked - 0xa282ead8u;

    return (rot >> 17) | (rot << 15);
}

#endif
