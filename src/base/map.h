/*
 * A map from byte strings or 64-bit numbers to pointers: open addressing,
 * linear probing. Keys are copied in unless they are numbers. The owner
 * brings the lock.
 */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include "base/base.h"

struct map_slot {
    uint64_t hash;
    char *key; /* NULL: a number, which is then in `number` */
    size_t key_len;
    uint64_t number;
    void *value; /* NULL: free */
};

struct map {
    struct map_slot *slots;
    size_t room, count;
};

void map_init(struct map *m);
void map_done(struct map *m);

void *map_get(const struct map *m, const void *key, size_t len);
void *map_get_str(const struct map *m, const char *key);
/* value is not NULL. Returns what stood there before, or NULL. */
void *map_put(struct map *m, const void *key, size_t len, void *value);
void *map_put_str(struct map *m, const char *key, void *value);
void *map_take(struct map *m, const void *key, size_t len);
void *map_take_str(struct map *m, const char *key);

void *map_get_num(const struct map *m, uint64_t key);
void *map_put_num(struct map *m, uint64_t key, void *value);
void *map_take_num(struct map *m, uint64_t key);

/* The slots in no order: start with *at = 0; NULL at the end. Nothing may be
 * put or taken meanwhile. */
struct map_slot *map_next(const struct map *m, size_t *at);

#endif
