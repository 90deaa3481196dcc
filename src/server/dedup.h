/*
 * The last request ids, so that a request that arrives twice runs once. A set
 * with a ring beside it: when the ring is full the oldest is forgotten. Its
 * memory is asked for at once and touched as it fills.
 */
#ifndef SERVER_DEDUP_H
#define SERVER_DEDUP_H

#include <pthread.h>

#include "base/base.h"

#define DEDUP_COUNT 100000

struct dedup {
    pthread_mutex_t lock;
    uint64_t *set; /* 0: free */
    uint64_t *ring;
    uint32_t at;
};

void dedup_init(struct dedup *d);
void dedup_done(struct dedup *d);
/* True when the id is new, or 0, which is never checked. */
bool dedup_add(struct dedup *d, int64_t id) MUST_USE;

#endif
