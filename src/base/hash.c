#include "base/hash.h"

#include <string.h>

uint64_t hash_bytes(const void *data, size_t len, uint64_t seed)
{
    const uint64_t m = 0xc6a4a7935bd1e995ull;
    const uint8_t *p = data;
    uint64_t h = seed ^ (len * m);

    for (; len >= 8; p += 8, len -= 8) {
        uint64_t k;

        memcpy(&k, p, 8);
        k *= m;
        k ^= k >> 47;
        k *= m;
        h ^= k;
        h *= m;
    }
    if (len) {
        uint64_t tail = 0;

        for (size_t i = 0; i < len; i++)
            tail |= (uint64_t)p[i] << (8 * i);
        h ^= tail;
        h *= m;
    }
    h ^= h >> 47;
    h *= m;
    h ^= h >> 47;
    return h;
}

uint64_t hash_str(const char *text)
{
    return hash_bytes(text, strlen(text), HASH_SEED);
}

uint64_t hash_combine(uint64_t a, uint64_t b)
{
    return a ^ (b + 0x9e3779b97f4a7800ull + (a << 10) + (a >> 4));
}
