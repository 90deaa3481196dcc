#include "server/peers.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/map.h"
#include "base/mem.h"

struct peers {
    atomic_int refs;
    struct loop_group *loops;
    struct cluster_spec spec;
    pthread_mutex_t lock;
    struct map channels; /* address -> channel, under lock */
};

struct peers *peers_new(struct loop_group *loops,
                        const struct cluster_spec *spec)
{
    struct peers *p = MEM_NEW(struct peers);

    atomic_init(&p->refs, 1);
    p->loops = loops;
    cluster_spec_copy(&p->spec, spec);
    pthread_mutex_init(&p->lock, NULL);
    map_init(&p->channels);
    return p;
}

struct peers *peers_ref(struct peers *p)
{
    atomic_fetch_add(&p->refs, 1);
    return p;
}

void peers_unref(struct peers *p)
{
    struct map_slot *s;
    size_t at = 0;

    if (!p || atomic_fetch_sub(&p->refs, 1) != 1)
        return;
    while ((s = map_next(&p->channels, &at))) {
        rpc_channel_close(s->value, NULL, NULL);
        rpc_channel_unref(s->value);
    }
    map_done(&p->channels);
    cluster_spec_done(&p->spec);
    pthread_mutex_destroy(&p->lock);
    mem_free(p);
}

struct rpc_channel *peers_channel(struct peers *p, const char *job, int task)
{
    const char *address = cluster_spec_address(&p->spec, job, task);
    struct rpc_channel *c;

    if (!address)
        return NULL;
    pthread_mutex_lock(&p->lock);
    c = map_get_str(&p->channels, address);
    if (!c) {
        c = rpc_channel_new(p->loops, address, NULL);
        map_put_str(&p->channels, address, c);
    }
    rpc_channel_ref(c);
    pthread_mutex_unlock(&p->lock);
    return c;
}
