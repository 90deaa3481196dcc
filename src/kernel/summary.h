/*
 * A tensor as a text for a person: "[[1 2 3 ... 7 8 9]]", the first and last
 * few of each dimension, as TensorFlow's StringFormat and PrintV2 write it.
 */
#ifndef KERNEL_SUMMARY_H
#define KERNEL_SUMMARY_H

#include "kernel/text.h"

/* ends: how many at each end; negative for all. */
void summary_add(struct text *t, const struct tensor *x, int64_t ends);
/* The older form, "1 2 3..." or "[1 2][3...]...": the first `most` elements,
 * as Assert and Print write them; negative for all. */
void summary_add_first(struct text *t, const struct tensor *x, int64_t most);

#endif
