/*
 * The steps that this task has heard of: step id -> exchange. An entry is made
 * by the first RunGraph or RecvTensor that names it, and ended by CleanupGraph,
 * or when nobody is left who could use it.
 */
#ifndef SERVER_STEPS_H
#define SERVER_STEPS_H

#include <pthread.h>

#include "base/map.h"
#include "server/exchange.h"

struct steps {
    pthread_mutex_t lock;
    struct map by_id; /* under lock; id -> exchange, one reference each */
    struct pool *pool;
};

void steps_init(struct steps *s, struct pool *pool);
void steps_done(struct steps *s);
/* One reference for the caller. */
struct exchange *steps_get(struct steps *s, int64_t id);
/* The same, but NULL when nobody has heard of it, or it is over. */
struct exchange *steps_find(struct steps *s, int64_t id);
/* Ends the step: what still waits gets ABORTED. */
void steps_cleanup(struct steps *s, int64_t id, const struct status *why);
/* The steps of a session that is gone. */
void steps_cleanup_owner(struct steps *s, const void *owner);
size_t steps_count(struct steps *s);

#endif
