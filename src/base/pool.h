/*
 * A pool of threads for work that computes. Nothing that runs here may wait
 * for a peer, a queue or another job: what waits is a callback.
 *
 * pool_for() splits one loop over the pool and the caller, who always takes
 * part, so it makes progress also when every thread is busy. Threads that help
 * leave it between two pieces when a job is posted, and come back when there
 * is none: a large loop takes all threads only as long as nobody else wants
 * one.
 *
 * Neither allocates, and a thread is woken only when one is asleep.
 */
#ifndef BASE_POOL_H
#define BASE_POOL_H

#include "base/base.h"

struct pool;

/* A job lies inside of whatever is to be done; the pool only links it. */
struct pool_job {
    struct pool_job *next;
    void (*run)(struct pool_job *);
};

struct pool *pool_new(int threads);
/* Finishes what was posted, then ends the threads. */
void pool_free(struct pool *p);
int pool_threads(const struct pool *p);
/* True once pool_free() was called: what posts itself again and again ends. */
bool pool_stopping(struct pool *p);
/* Threads that have nothing to do, as of a moment ago. */
int pool_idle(struct pool *p);
/* Whether threads that are called come at once, going by the last that were:
 * then shorter loops are worth splitting. Where the cores are busy they come
 * late, or when the work is over. Now and then it is true all the same, so that
 * a change is seen. */
bool pool_prompt(struct pool *p);
void pool_post(struct pool *p, struct pool_job *job);

/*
 * A thread that is about to have nothing to do but wait can take jobs itself
 * that are made on it: between pool_keep() and pool_keep_end() those that are
 * posted near are kept, and pool_kept_run() runs them, with what they in turn
 * post near going to the pool as ever.
 */
struct pool_kept {
    struct pool_job *first, **last;
};
void pool_post_near(struct pool *p, struct pool_job *job);
void pool_keep(struct pool_kept *k);
void pool_keep_end(void);
/* True when there was one. */
bool pool_kept_run(struct pool_kept *k);

/* Calls fn(arg, begin, end) for pieces that cover [0, n), none shorter than
 * grain but the last. Returns when all are done. p may be NULL. */
void pool_for(struct pool *p, int64_t n, int64_t grain,
              void (*fn)(void *arg, int64_t begin, int64_t end), void *arg);

#endif
