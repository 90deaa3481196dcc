#include "kernel/narrow.h"

VECTOR_CLONES RACY void narrow_load(enum dtype dt, float *to, const void *from,
                                    int64_t n)
{
    const uint16_t *bits = from;

    if (dt == DT_HALF)
        for (int64_t i = 0; i < n; i++)
            to[i] = half_load(bits[i]);
    else
        for (int64_t i = 0; i < n; i++)
            to[i] = bf16_load(bits[i]);
}

VECTOR_CLONES RACY void narrow_store(enum dtype dt, void *to, const float *from,
                                     int64_t n)
{
    uint16_t *bits = to;

    if (dt == DT_HALF)
        for (int64_t i = 0; i < n; i++)
            bits[i] = half_store(from[i]);
    else
        for (int64_t i = 0; i < n; i++)
            bits[i] = bf16_store(from[i]);
}
