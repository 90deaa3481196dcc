/*
 * Random numbers that nobody has to reproduce: identifiers, nonces, jitter.
 * (The streams of TensorFlow's random ops are kernel/random's matter.)
 */
#ifndef BASE_RNG_H
#define BASE_RNG_H

#include "base/base.h"

/* From the kernel's generator; any thread. Never 0. */
uint64_t rng_u64(void);

/* A seeded stream for simulations and tests: splitmix64. */
static inline uint64_t rng_next(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15ull);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

#endif
