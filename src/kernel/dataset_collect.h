/*
 * Elements of a dataset that were collected, for batches, windows and caches.
 */
#ifndef KERNEL_DATASET_COLLECT_H
#define KERNEL_DATASET_COLLECT_H

#include "kernel/dataset.h"

struct collected {
    struct tensor *items; /* `width` tensors an element */
    size_t count, room;   /* of tensors */
    int width;
};

/* Takes over the element that `in` has. */
void collected_add(struct collected *s, struct dataset_iter *in);
void collected_done(struct collected *s);

static inline int64_t collected_count(const struct collected *s)
{
    return s->width ? (int64_t)s->count / s->width : 0;
}

static inline struct tensor *collected_at(const struct collected *s, int64_t i,
                                          int k)
{
    return &s->items[i * s->width + k];
}

#endif
