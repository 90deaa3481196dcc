/*
 * What the two files of segment ops share.
 */
#ifndef KERNEL_SEGMENT_H
#define KERNEL_SEGMENT_H

#include "op/op.h"

/* All elements 0, or 1. */
void segment_fill(struct tensor *t, bool one);

#endif
