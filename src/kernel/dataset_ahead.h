/*
 * Reading ahead: the elements of a dataset are made on the pool before they
 * are asked for, in order, up to d->n[0] of them.
 *
 * A `struct ahead` is what goes on behind an iterator: the iterator of the
 * input, a step of its own under which that is pulled and functions are
 * called, and the line of elements that were made. PrefetchDataset has no
 * function: an element is pulled and put in line. A parallel map has one: an
 * element gets its place in the line when it is pulled, its function runs
 * beside those of the elements after it, and it is given when its turn comes.
 * docs/adr/0017-read-ahead.md has the reasons.
 *
 * The work begins with the first element that is asked for. One pull is under
 * way at a time, as an iterator requires. Whoever asks and finds its element
 * not ready waits as a callback, and is cancelled with its own step; the
 * element stays for the next who asks. An error takes the place of its
 * element.
 *
 * The end of the iterator cancels what is under way and does not wait for it:
 * each pull and each call has a reference to the ahead, and the last frees it.
 *
 * Threads: any; what is shared is under the ahead's lock. The lock comes before
 * that of a step's cancellation.
 */
#ifndef KERNEL_DATASET_AHEAD_H
#define KERNEL_DATASET_AHEAD_H

#include "kernel/dataset.h"

extern const struct dataset_kind dataset_ahead_kind;

/* How many elements: `asked`, or a few when that is up to us (-1). */
int64_t dataset_ahead_most(const struct pool *pool, int64_t asked);
/* What reads `most` elements of input ahead; one reference of input is taken
 * over. Without a pool it is the input itself. */
struct dataset *dataset_ahead_new(struct dataset *input, struct pool *pool,
                                  int64_t most);
/* Begins before the first element is asked for. */
void dataset_ahead_start(struct dataset_iter *it);

#endif
