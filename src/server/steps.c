#include "server/steps.h"

#include "base/mem.h"

void steps_init(struct steps *s, struct pool *pool)
{
    s->pool = pool;
    pthread_mutex_init(&s->lock, NULL);
    map_init(&s->by_id);
}

void steps_done(struct steps *s)
{
    struct status why = STATUS_INIT;
    struct map_slot *slot;
    size_t at = 0;

    status_set(&why, MST_ABORTED, "The server stops");
    while ((slot = map_next(&s->by_id, &at))) {
        exchange_abort(slot->value, &why, true);
        exchange_unref(slot->value);
    }
    map_done(&s->by_id);
    pthread_mutex_destroy(&s->lock);
}

static void drop_orphan(void *arg, struct exchange *x)
{
    struct steps *s = arg;
    struct exchange *gone = NULL;

    pthread_mutex_lock(&s->lock);
    if (map_get_num(&s->by_id, (uint64_t)exchange_step_id(x)) == x &&
        exchange_is_empty(x))
        gone = map_take_num(&s->by_id, (uint64_t)exchange_step_id(x));
    pthread_mutex_unlock(&s->lock);
    exchange_unref(gone);
}

struct exchange *steps_get(struct steps *s, int64_t id)
{
    struct exchange *x;

    pthread_mutex_lock(&s->lock);
    x = map_get_num(&s->by_id, (uint64_t)id);
    if (!x) {
        x = exchange_new(id, s->pool, drop_orphan, s);
        map_put_num(&s->by_id, (uint64_t)id, x);
    }
    exchange_ref(x);
    pthread_mutex_unlock(&s->lock);
    return x;
}

struct exchange *steps_find(struct steps *s, int64_t id)
{
    struct exchange *x;

    pthread_mutex_lock(&s->lock);
    x = map_get_num(&s->by_id, (uint64_t)id);
    if (x)
        exchange_ref(x);
    pthread_mutex_unlock(&s->lock);
    return x;
}

void steps_cleanup(struct steps *s, int64_t id, const struct status *why)
{
    struct exchange *x;

    pthread_mutex_lock(&s->lock);
    x = map_take_num(&s->by_id, (uint64_t)id);
    pthread_mutex_unlock(&s->lock);
    if (!x)
        return;
    exchange_abort(x, why, true);
    exchange_unref(x);
}

void steps_cleanup_owner(struct steps *s, const void *owner)
{
    struct status why = STATUS_INIT;
    struct map_slot *slot;
    size_t at = 0, n = 0;
    int64_t *ids;

    pthread_mutex_lock(&s->lock);
    ids = mem_array(s->by_id.count, sizeof(*ids));
    while ((slot = map_next(&s->by_id, &at)))
        if (exchange_owned_by(slot->value, owner))
            ids[n++] = exchange_step_id(slot->value);
    pthread_mutex_unlock(&s->lock);
    status_set(&why, MST_ABORTED, "The session of this step is gone");
    for (size_t i = 0; i < n; i++)
        steps_cleanup(s, ids[i], &why);
    mem_free(ids);
}

size_t steps_count(struct steps *s)
{
    size_t n;

    pthread_mutex_lock(&s->lock);
    n = s->by_id.count;
    pthread_mutex_unlock(&s->lock);
    return n;
}
