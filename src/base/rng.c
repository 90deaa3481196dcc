#include "base/rng.h"

#include <sys/random.h>

#include "base/clock.h"

/* Each thread asks the kernel once and goes on from there. */
static _Thread_local uint64_t state;

uint64_t rng_u64(void)
{
    uint64_t value;

    if (!state && getrandom(&state, sizeof(state), 0) != sizeof(state))
        state = clock_ns() ^ (uint64_t)(uintptr_t)&value;
    do
        value = rng_next(&state);
    while (!value);
    return value;
}
