/*
 * Hashes of strings that TensorFlow promises not to change, because models
 * are trained with the buckets they give: FarmHash's Fingerprint64, and
 * SipHash-2-4 with a key.
 */
#ifndef KERNEL_FINGERPRINT_H
#define KERNEL_FINGERPRINT_H

#include "base/base.h"

uint64_t fingerprint64(const void *data, size_t len);
uint64_t fingerprint_keyed(const uint64_t key[2], const void *data, size_t len);
/* Of two fingerprints, in that order: how crosses of features are hashed. */
uint64_t fingerprint_cat(uint64_t a, uint64_t b);

#endif
