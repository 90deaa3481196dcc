/*
 * Place i has its children at 2i+1 and 2i+2. A timer stores its place plus
 * one, so that a zeroed timer is one that is not set.
 */
#include "io/heap.h"

#include "base/mem.h"

static void place(struct heap *h, size_t i, struct loop_timer *t)
{
    h->slots[i] = t;
    t->at = i + 1;
}

/* Moves t, which belongs at i or nearer to the root, to its place. */
static void rise(struct heap *h, size_t i, struct loop_timer *t)
{
    while (i > 0) {
        size_t parent = (i - 1) / 2;

        if (h->slots[parent]->when_ns <= t->when_ns)
            break;
        place(h, i, h->slots[parent]);
        i = parent;
    }
    place(h, i, t);
}

static void sink(struct heap *h, size_t i, struct loop_timer *t)
{
    for (;;) {
        size_t child = 2 * i + 1;

        if (child >= h->count)
            break;
        if (child + 1 < h->count &&
            h->slots[child + 1]->when_ns < h->slots[child]->when_ns)
            child++;
        if (t->when_ns <= h->slots[child]->when_ns)
            break;
        place(h, i, h->slots[child]);
        i = child;
    }
    place(h, i, t);
}

static void settle(struct heap *h, size_t i, struct loop_timer *t)
{
    if (i > 0 && t->when_ns < h->slots[(i - 1) / 2]->when_ns)
        rise(h, i, t);
    else
        sink(h, i, t);
}

void heap_done(struct heap *h)
{
    mem_free(h->slots);
    *h = (struct heap){ 0 };
}

void heap_put(struct heap *h, struct loop_timer *t)
{
    if (t->at) {
        settle(h, t->at - 1, t);
        return;
    }
    (void)MEM_PUSH(h->slots, h->count, h->room);
    rise(h, h->count - 1, t);
}

void heap_take(struct heap *h, struct loop_timer *t)
{
    size_t i = t->at - 1;
    struct loop_timer *last;

    if (!t->at)
        return;
    t->at = 0;
    last = h->slots[--h->count];
    if (last != t)
        settle(h, i, last);
}

struct loop_timer *heap_first(const struct heap *h)
{
    return h->count ? h->slots[0] : NULL;
}
