/* Batches, for the other ops that make them. */
#ifndef KERNEL_DATASET_BATCH_H
#define KERNEL_DATASET_BATCH_H

#include "kernel/dataset.h"

/* Of the inputs of those numbers; `drop` of 0 is none: a rest is a batch. */
enum mst_code dataset_batch_args(struct op_ctx *c, int size, int drop,
                                 int64_t *ret_size, bool *ret_drop) MUST_USE;
/* Takes over one reference of input. */
struct dataset *dataset_batch_new(struct dataset *input, int64_t size,
                                  bool drop);

#endif
