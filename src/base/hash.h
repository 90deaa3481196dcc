/*
 * The hash of the tree: MurmurHash64A. TensorFlow names the frames of its
 * loops with it on the wire (docs/compatibility.md), so the seed is its own.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include "base/base.h"

#define HASH_SEED 0xDECAFCAFFEull

uint64_t hash_bytes(const void *data, size_t len, uint64_t seed);
uint64_t hash_str(const char *text);
/* TensorFlow's way to join two hashes; the order matters. */
uint64_t hash_combine(uint64_t a, uint64_t b);

#endif
