#include "base/map.h"

#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

/* A key as it is looked for. */
struct wanted {
    const char *key;
    size_t len;
    uint64_t number, hash;
};

static struct wanted want_bytes(const void *key, size_t len)
{
    return (struct wanted){ .key = key,
                            .len = len,
                            .hash = hash_bytes(key, len, HASH_SEED) };
}

static struct wanted want_num(uint64_t number)
{
    uint64_t h = number * 0x9e3779b97f4a7c15ull;

    return (struct wanted){ .number = number, .hash = h ^ (h >> 32) };
}

void map_init(struct map *m)
{
    *m = (struct map){ 0 };
}

void map_done(struct map *m)
{
    for (size_t i = 0; i < m->room; i++)
        mem_free(m->slots[i].key);
    mem_free(m->slots);
    map_init(m);
}

static bool slot_is(const struct map_slot *s, const struct wanted *w)
{
    if (s->hash != w->hash)
        return false;
    if (!w->key)
        return !s->key && s->number == w->number;
    return s->key && s->key_len == w->len && !memcmp(s->key, w->key, w->len);
}

static struct map_slot *find(const struct map *m, const struct wanted *w)
{
    size_t mask = m->room - 1;

    if (!m->room)
        return NULL;
    for (size_t i = w->hash & mask;; i = (i + 1) & mask) {
        struct map_slot *s = &m->slots[i];

        if (!s->value || slot_is(s, w))
            return s;
    }
}

static void grow(struct map *m)
{
    struct map_slot *old = m->slots;
    size_t old_room = m->room;

    m->room = old_room ? old_room * 2 : 16;
    m->slots = mem_array(m->room, sizeof(*m->slots));
    for (size_t i = 0; i < old_room; i++) {
        size_t at = old[i].hash & (m->room - 1);

        if (!old[i].value)
            continue;
        while (m->slots[at].value)
            at = (at + 1) & (m->room - 1);
        m->slots[at] = old[i];
    }
    mem_free(old);
}

static void *put(struct map *m, const struct wanted *w, void *value)
{
    struct map_slot *s;
    void *old;

    CHECK(value);
    if ((m->count + 1) * 4 > m->room * 3)
        grow(m);
    s = find(m, w);
    old = s->value;
    s->value = value;
    if (old)
        return old;
    s->hash = w->hash;
    s->number = w->number;
    s->key = w->key ? mem_strn(w->key, w->len) : NULL;
    s->key_len = w->len;
    m->count++;
    return NULL;
}

/* Closes the gap at `hole`, so that probing never meets a false end. */
static void close_gap(struct map *m, size_t hole)
{
    size_t mask = m->room - 1;

    for (size_t i = (hole + 1) & mask; m->slots[i].value; i = (i + 1) & mask) {
        size_t home = m->slots[i].hash & mask;

        if (((i - home) & mask) < ((i - hole) & mask))
            continue;
        m->slots[hole] = m->slots[i];
        hole = i;
    }
    m->slots[hole] = (struct map_slot){ 0 };
}

static void *take(struct map *m, const struct wanted *w)
{
    struct map_slot *s = find(m, w);
    void *value;

    if (!s || !s->value)
        return NULL;
    value = s->value;
    mem_free(s->key);
    s->key = NULL;
    m->count--;
    close_gap(m, (size_t)(s - m->slots));
    return value;
}

static void *get(const struct map *m, const struct wanted *w)
{
    struct map_slot *s = find(m, w);

    return s ? s->value : NULL;
}

void *map_get(const struct map *m, const void *key, size_t len)
{
    struct wanted w = want_bytes(key, len);

    return get(m, &w);
}

void *map_get_str(const struct map *m, const char *key)
{
    return map_get(m, key, strlen(key));
}

void *map_put(struct map *m, const void *key, size_t len, void *value)
{
    struct wanted w = want_bytes(key, len);

    return put(m, &w, value);
}

void *map_put_str(struct map *m, const char *key, void *value)
{
    return map_put(m, key, strlen(key), value);
}

void *map_take(struct map *m, const void *key, size_t len)
{
    struct wanted w = want_bytes(key, len);

    return take(m, &w);
}

void *map_take_str(struct map *m, const char *key)
{
    return map_take(m, key, strlen(key));
}

void *map_get_num(const struct map *m, uint64_t key)
{
    struct wanted w = want_num(key);

    return get(m, &w);
}

void *map_put_num(struct map *m, uint64_t key, void *value)
{
    struct wanted w = want_num(key);

    return put(m, &w, value);
}

void *map_take_num(struct map *m, uint64_t key)
{
    struct wanted w = want_num(key);

    return take(m, &w);
}

struct map_slot *map_next(const struct map *m, size_t *at)
{
    while (*at < m->room) {
        struct map_slot *s = &m->slots[(*at)++];

        if (s->value)
            return s;
    }
    return NULL;
}
