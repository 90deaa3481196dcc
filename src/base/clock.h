/* Time: monotonic for intervals, wall for stamps that leave the process. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <time.h>

#include "base/base.h"

static inline uint64_t clock_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline uint64_t clock_ms(void)
{
    return clock_ns() / 1000000u;
}

static inline uint64_t clock_wall_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
}

#endif
