#include "server/dedup.h"

#include "base/mem.h"

#define ROOM (1u << 18)

void dedup_init(struct dedup *d)
{
    pthread_mutex_init(&d->lock, NULL);
    d->set = mem_array(ROOM, sizeof(*d->set));
    d->ring = mem_array(DEDUP_COUNT, sizeof(*d->ring));
    d->at = 0;
}

void dedup_done(struct dedup *d)
{
    pthread_mutex_destroy(&d->lock);
    mem_free(d->set);
    mem_free(d->ring);
}

static uint32_t home(uint64_t id)
{
    return (uint32_t)((id * 0x9e3779b97f4a7c15ull) >> 46);
}

static uint32_t find(const struct dedup *d, uint64_t id)
{
    uint32_t i = home(id);

    while (d->set[i] && d->set[i] != id)
        i = (i + 1) & (ROOM - 1);
    return i;
}

static void forget(struct dedup *d, uint64_t id)
{
    uint32_t hole = find(d, id), i;

    for (i = (hole + 1) & (ROOM - 1); d->set[i]; i = (i + 1) & (ROOM - 1)) {
        uint32_t from = home(d->set[i]);

        if (((i - from) & (ROOM - 1)) < ((i - hole) & (ROOM - 1)))
            continue;
        d->set[hole] = d->set[i];
        hole = i;
    }
    d->set[hole] = 0;
}

bool dedup_add(struct dedup *d, int64_t id)
{
    uint64_t key = (uint64_t)id;
    uint32_t i;
    bool fresh;

    if (!id)
        return true;
    pthread_mutex_lock(&d->lock);
    i = find(d, key);
    fresh = !d->set[i];
    if (fresh) {
        d->set[i] = key;
        if (d->ring[d->at])
            forget(d, d->ring[d->at]);
        d->ring[d->at] = key;
        d->at = (d->at + 1) % DEDUP_COUNT;
    }
    pthread_mutex_unlock(&d->lock);
    return fresh;
}
