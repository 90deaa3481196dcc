#include "op/cancel.h"

void cancel_init(struct cancel *c)
{
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->idle, NULL);
    c->head.prev = c->head.next = &c->head;
    c->running = NULL;
    c->cancelled = false;
}

void cancel_done(struct cancel *c)
{
    CHECK(c->head.next == &c->head);
    pthread_mutex_destroy(&c->lock);
    pthread_cond_destroy(&c->idle);
}

bool cancel_add(struct cancel *c, struct cancel_item *item,
                void (*fn)(struct cancel_item *))
{
    bool added;

    pthread_mutex_lock(&c->lock);
    added = !c->cancelled;
    if (added) {
        item->fn = fn;
        item->prev = c->head.prev;
        item->next = &c->head;
        item->prev->next = item;
        c->head.prev = item;
    }
    pthread_mutex_unlock(&c->lock);
    return added;
}

static void unlink_item(struct cancel_item *item)
{
    item->prev->next = item->next;
    item->next->prev = item->prev;
    item->prev = item->next = NULL;
}

bool cancel_remove(struct cancel *c, struct cancel_item *item)
{
    bool removed;

    pthread_mutex_lock(&c->lock);
    removed = item->next != NULL;
    if (removed)
        unlink_item(item);
    else if (!(c->running == item && pthread_equal(c->runner, pthread_self())))
        while (c->running == item)
            pthread_cond_wait(&c->idle, &c->lock);
    pthread_mutex_unlock(&c->lock);
    return removed;
}

void cancel_all(struct cancel *c)
{
    pthread_mutex_lock(&c->lock);
    c->cancelled = true;
    /* One canceller at a time: a second one finds the list being emptied. */
    while (!c->running && c->head.next != &c->head) {
        struct cancel_item *item = c->head.next;

        unlink_item(item);
        c->running = item;
        c->runner = pthread_self();
        pthread_mutex_unlock(&c->lock);
        item->fn(item);
        pthread_mutex_lock(&c->lock);
        c->running = NULL;
        pthread_cond_broadcast(&c->idle);
    }
    pthread_mutex_unlock(&c->lock);
}

bool cancel_is_set(struct cancel *c)
{
    bool set;

    pthread_mutex_lock(&c->lock);
    set = c->cancelled;
    pthread_mutex_unlock(&c->lock);
    return set;
}
