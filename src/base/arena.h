/*
 * Memory that ends all at once: what belongs to a graph, or to one call. A
 * reset keeps the first block, so that a steady user allocates nothing.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include "base/base.h"

struct arena_block;

struct arena {
    struct arena_block *first; /* the newest block */
    size_t bytes;              /* in all blocks */
};

void arena_init(struct arena *a);
void arena_done(struct arena *a);
void arena_reset(struct arena *a);
void *arena_alloc(struct arena *a, size_t size); /* zeroed, 16-byte aligned */
void *arena_copy(struct arena *a, const void *data, size_t size);
char *arena_str(struct arena *a, const char *text);
char *arena_strn(struct arena *a, const char *text, size_t len);
char *arena_printf(struct arena *a, const char *fmt, ...) PRINTF(2, 3);

#define ARENA_NEW(a, type) ((type *)arena_alloc((a), sizeof(type)))
#define ARENA_ARRAY(a, type, n)                                                \
    ((type *)arena_alloc((a), sizeof(type) * (size_t)(n)))

#endif
