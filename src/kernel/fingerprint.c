/*
 * FarmHash's 64-bit fingerprint (Geoff Pike, 2014) treats strings of up to 16,
 * 32 and 64 bytes each in a way of its own, by products of overlapping words
 * from both ends; longer ones go 64 bytes at a time through a state of seven
 * words. SipHash is Aumasson and Bernstein's.
 */
#include "kernel/fingerprint.h"

#include <string.h>

#define K0 0xc3a5c85c97cb3127ull
#define K1 0xb492b66fbe98f273ull
#define K2 0x9ae16a3b2f90404full

static inline uint64_t load64(const uint8_t *p)
{
    uint64_t v;

    memcpy(&v, p, sizeof(v));
    return v;
}

static inline uint64_t load32(const uint8_t *p)
{
    uint32_t v;

    memcpy(&v, p, sizeof(v));
    return v;
}

static inline uint64_t right(uint64_t v, int bits)
{
    return v >> bits | v << (64 - bits);
}

static inline uint64_t fold(uint64_t v)
{
    return v ^ v >> 47;
}

static uint64_t join(uint64_t u, uint64_t v, uint64_t mul)
{
    uint64_t a = fold((u ^ v) * mul);

    return fold((v ^ a) * mul) * mul;
}

static uint64_t up_to_16(const uint8_t *s, size_t len)
{
    uint64_t mul = K2 + len * 2;

    if (len >= 8) {
        uint64_t a = load64(s) + K2, b = load64(s + len - 8);

        return join(right(b, 37) * mul + a, (right(a, 25) + b) * mul, mul);
    }
    if (len >= 4)
        return join(len + (load32(s) << 3), load32(s + len - 4), mul);
    if (len > 0) {
        uint64_t y = s[0] + ((uint32_t)s[len >> 1] << 8);
        uint64_t z = len + ((uint32_t)s[len - 1] << 2);

        return fold(y * K2 ^ z * K0) * K2;
    }
    return K2;
}

static uint64_t up_to_32(const uint8_t *s, size_t len)
{
    uint64_t mul = K2 + len * 2;
    uint64_t a = load64(s) * K1, b = load64(s + 8);
    uint64_t c = load64(s + len - 8) * mul, d = load64(s + len - 16) * K2;

    return join(right(a + b, 43) + right(c, 30) + d, a + right(b + K2, 18) + c,
                mul);
}

static uint64_t up_to_64(const uint8_t *s, size_t len)
{
    uint64_t mul = K2 + len * 2;
    uint64_t a = load64(s) * K2, b = load64(s + 8);
    uint64_t c = load64(s + len - 8) * mul, d = load64(s + len - 16) * K2;
    uint64_t y = right(a + b, 43) + right(c, 30) + d;
    uint64_t z = join(y, a + right(b + K2, 18) + c, mul);
    uint64_t e = load64(s + 16) * mul, f = load64(s + 24);
    uint64_t g = (y + load64(s + len - 32)) * mul;
    uint64_t h = (z + load64(s + len - 24)) * mul;

    return join(right(e + f, 43) + right(g, 30) + h, e + right(f + a, 18) + g,
                mul);
}

struct pair {
    uint64_t a, b;
};

/* 32 bytes into two seeds. */
static struct pair weak(const uint8_t *s, uint64_t a, uint64_t b)
{
    uint64_t z = load64(s + 24), c;

    a += load64(s);
    b = right(b + a + z, 21);
    c = a;
    a += load64(s + 8);
    a += load64(s + 16);
    b += right(a, 44);
    return (struct pair){ a + z, b + c };
}

struct state {
    uint64_t x, y, z;
    struct pair v, w;
};

/* 64 bytes into the state; the last ones with other factors. */
static void block(struct state *t, const uint8_t *s, uint64_t mul, uint64_t by)
{
    uint64_t x;

    t->x = right(t->x + t->y + t->v.a + load64(s + 8), 37) * mul;
    t->y = right(t->y + t->v.b + load64(s + 48), 42) * mul;
    t->x ^= t->w.b * by;
    t->y += t->v.a * by + load64(s + 40);
    t->z = right(t->z + t->w.a, 33) * mul;
    t->v = weak(s, t->v.b * mul, t->x + t->w.a);
    t->w = weak(s + 32, t->z + t->w.b, t->y + load64(s + 16));
    x = t->x;
    t->x = t->z;
    t->z = x;
}

uint64_t fingerprint64(const void *data, size_t len)
{
    const uint8_t *s = data, *end, *last;
    const uint64_t seed = 81;
    struct state t = { .x = seed, .y = seed * K1 + 113 };
    uint64_t mul;

    if (len <= 16)
        return up_to_16(s, len);
    if (len <= 32)
        return up_to_32(s, len);
    if (len <= 64)
        return up_to_64(s, len);
    t.z = fold(t.y * K2 + 113) * K2;
    t.x = t.x * K2 + load64(s);
    end = s + (len - 1) / 64 * 64;
    last = s + len - 64;
    for (; s != end; s += 64)
        block(&t, s, K1, 1);
    mul = K1 + ((t.z & 0xff) << 1);
    t.w.a += (len - 1) & 63;
    t.v.a += t.w.a;
    t.w.a += t.v.a;
    block(&t, last, mul, 9);
    return join(join(t.v.a, t.w.a, mul) + fold(t.y) * K0 + t.z,
                join(t.v.b, t.w.b, mul) + t.x, mul);
}

/* ---- SipHash-2-4 ---- */

static void sip_rounds(uint64_t v[4], int rounds)
{
    while (rounds--) {
        v[0] += v[1];
        v[1] = right(v[1], 51) ^ v[0];
        v[0] = right(v[0], 32);
        v[2] += v[3];
        v[3] = right(v[3], 48) ^ v[2];
        v[0] += v[3];
        v[3] = right(v[3], 43) ^ v[0];
        v[2] += v[1];
        v[1] = right(v[1], 47) ^ v[2];
        v[2] = right(v[2], 32);
    }
}

static void sip_word(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    sip_rounds(v, 2);
    v[0] ^= word;
}

uint64_t fingerprint_keyed(const uint64_t key[2], const void *data, size_t len)
{
    const uint8_t *s = data;
    uint64_t v[4] = { key[0] ^ 0x736f6d6570736575ull,
                      key[1] ^ 0x646f72616e646f6dull,
                      key[0] ^ 0x6c7967656e657261ull,
                      key[1] ^ 0x7465646279746573ull };
    uint64_t tail = (uint64_t)len << 56;
    size_t i;

    for (i = 0; i + 8 <= len; i += 8)
        sip_word(v, load64(s + i));
    for (size_t k = 0; i + k < len; k++)
        tail |= (uint64_t)s[i + k] << 8 * k;
    sip_word(v, tail);
    v[2] ^= 0xff;
    sip_rounds(v, 4);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static uint64_t shift_mix47(uint64_t x)
{
    return x ^ (x >> 47);
}

uint64_t fingerprint_cat(uint64_t a, uint64_t b)
{
    const uint64_t mul = 0xc6a4a7935bd1e995u;

    a ^= mul;
    a ^= shift_mix47(b * mul) * mul;
    a *= mul;
    return shift_mix47(shift_mix47(a) * mul);
}
