/*
 * Refcounted memory: what tensors lie in and what sockets read into and write
 * from, so that the two towers share bytes without a copy.
 *
 * Buffers come from a pool. What is kept, and for how long:
 *
 * Small ones are powers of two. The thread that ends one keeps it, up to 1 MB
 * of a class. Of those that another thread made it keeps 64 KB of a class; the
 * rest goes back to where it came from, by one atomic operation and without a
 * lock: values that are always made on one thread and ended on another
 * circulate. A thread is owed up to 4 MB; what is beyond all this is freed. A
 * thread's end frees what it kept.
 *
 * Large ones (from BUFFER_LARGE) are kept for all threads, under locks by size
 * class, eight classes a power of two; with huge pages where the kernel has
 * them, because fresh pages cost more than the network does. Those that nobody
 * asked for in the last seconds go back to the system, see buffer_trim().
 *
 * Sanitizer builds do not pool, so that they see every end of life.
 *
 * Threads: all functions may be called from any.
 */
#ifndef BASE_BUFFER_H
#define BASE_BUFFER_H

#include <stdatomic.h>

#include "base/base.h"

#define BUFFER_ALIGN 64
#define BUFFER_LARGE (64u << 10)
/* Of a small buffer: its data lies so far behind its record. */
#define BUFFER_HEAD                                                            \
    ((sizeof(struct buffer) + BUFFER_ALIGN - 1) & ~(size_t)(BUFFER_ALIGN - 1))

struct buffer {
    atomic_uint refs;
    uint8_t *data;
    size_t size; /* bytes that the owner asked for */
    /* The rest belongs to the pool, or to the one who wrapped. */
    size_t room;
    void (*release)(struct buffer *);
    void *arg;
    struct buffer *next;
    uint64_t idle_since_ms;
};

/* One reference; data aligned to BUFFER_ALIGN, not zeroed. NULL when there is
 * no such amount of memory. */
struct buffer *buffer_new(size_t size);
/* Memory of someone else's: free_fn(arg) is called with the last reference. */
struct buffer *buffer_wrap(void *data, size_t size, void (*free_fn)(void *),
                           void *arg);

/* Nobody else holds it: it may be written in place. */
static inline bool buffer_unique(const struct buffer *b)
{
    return atomic_load_explicit(&((struct buffer *)b)->refs,
                                memory_order_acquire) == 1;
}

static inline struct buffer *buffer_ref(struct buffer *b) /* accepts NULL */
{
    if (b)
        atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
    return b;
}

void buffer_end(struct buffer *b); /* after the last reference: unref's */

/* Accepts NULL. Who has the only reference needs no atomic operation to give
 * it up: nobody is left who could take another. */
static inline void buffer_unref(struct buffer *b)
{
    if (b && (buffer_unique(b) || atomic_fetch_sub_explicit(
                                      &b->refs, 1, memory_order_acq_rel) == 1))
        buffer_end(b);
}

/* What all live buffers together may come to; beyond it buffer_new() answers
 * no. At first it is nine tenths of the machine's memory. */
void buffer_limit(size_t bytes);
/* Such an amount would still be within it. */
bool buffer_within_limit(size_t bytes);
/* Gives large buffers back that were idle for longer than age_ms. */
void buffer_trim(uint64_t age_ms);
/* Bytes in use by live buffers, and bytes kept for reuse. */
void buffer_usage(size_t *ret_live, size_t *ret_idle);

#endif
