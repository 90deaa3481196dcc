/*
 * The timers of a loop: a binary heap of pointers, earliest first. A timer
 * knows its place in the heap, so that it can be taken out of the middle.
 */
#ifndef IO_HEAP_H
#define IO_HEAP_H

#include "io/loop.h"

struct heap {
    struct loop_timer **slots;
    size_t count, room;
};

void heap_done(struct heap *h);
/* Puts the timer in, or moves it after its when_ns has changed. */
void heap_put(struct heap *h, struct loop_timer *t);
void heap_take(struct heap *h, struct loop_timer *t); /* if it is in */
struct loop_timer *heap_first(const struct heap *h);  /* NULL when empty */

#endif
