/*
 * Philox 4x32-10, the counter-based generator under all of TensorFlow's random
 * ops: a block cipher of ten rounds turns a 128-bit counter into four words,
 * under a 64-bit key. Any place of a stream is reached by adding to the
 * counter, so that work can be split over threads without changing a value.
 *
 * Word 0 of the counter is the lowest. Seeds, and which words go where, are
 * TensorFlow's: a graph that was seeded there must begin with the same weights
 * here, bit for bit.
 */
#ifndef KERNEL_PHILOX_H
#define KERNEL_PHILOX_H

#include "base/base.h"

struct philox {
    uint32_t counter[4];
    uint32_t key[2];
};

/* The stream of a node's attributes seed and seed2. */
static inline struct philox philox_seeded(uint64_t seed, uint64_t seed2)
{
    return (struct philox){
        .counter = { 0, 0, (uint32_t)seed2, (uint32_t)(seed2 >> 32) },
        .key = { (uint32_t)seed, (uint32_t)(seed >> 32) },
    };
}

/* Leaves `blocks` of four words out. */
static inline void philox_skip(struct philox *p, uint64_t blocks)
{
    uint64_t low = p->counter[0] | (uint64_t)p->counter[1] << 32;
    uint64_t high = p->counter[2] | (uint64_t)p->counter[3] << 32;

    high += __builtin_add_overflow(low, blocks, &low);
    p->counter[0] = (uint32_t)low;
    p->counter[1] = (uint32_t)(low >> 32);
    p->counter[2] = (uint32_t)high;
    p->counter[3] = (uint32_t)(high >> 32);
}

/* The next four words. */
static inline void philox_next(struct philox *p, uint32_t ret[4])
{
    uint32_t c0 = p->counter[0], c1 = p->counter[1];
    uint32_t c2 = p->counter[2], c3 = p->counter[3];
    uint32_t k0 = p->key[0], k1 = p->key[1];

    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)c0 * 0xd2511f53u;
        uint64_t b = (uint64_t)c2 * 0xcd9e8d57u;

        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)b;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)a;
        k0 += 0x9e3779b9u;
        k1 += 0xbb67ae85u;
    }
    ret[0] = c0;
    ret[1] = c1;
    ret[2] = c2;
    ret[3] = c3;
    philox_skip(p, 1);
}

/* The words of a stream one by one. */
struct philox_words {
    struct philox gen;
    uint32_t word[4];
    int used;
};

static inline struct philox_words philox_words(struct philox gen)
{
    return (struct philox_words){ .gen = gen, .used = 4 };
}

static inline uint32_t philox_word(struct philox_words *w)
{
    if (w->used == 4) {
        philox_next(&w->gen, w->word);
        w->used = 0;
    }
    return w->word[w->used++];
}

/* A whole number in [0, n), each as likely; n > 0. */
static inline uint32_t philox_below(struct philox_words *w, uint32_t n)
{
    uint32_t rest = UINT32_MAX % n + 1, r;

    if (!(n & (n - 1)))
        return philox_word(w) & (n - 1);
    do {
        r = philox_word(w);
    } while (r < rest);
    return r % n;
}

/* ---- words as numbers in [0, 1): mantissa bits of a number in [1, 2) ---- */

static inline float philox_float(uint32_t word)
{
    union {
        uint32_t u;
        float f;
    } x = { .u = (word & 0x7fffffu) | 0x3f800000u };

    return x.f - 1.0f;
}

static inline double philox_double(uint32_t high, uint32_t low)
{
    union {
        uint64_t u;
        double f;
    } x = { .u = (uint64_t)(high & 0xfffffu) << 32 | low |
                 (uint64_t)1023 << 52 };

    return x.f - 1.0;
}

#endif
