/* A tensor as a TensorProto, in the bytes that TensorFlow writes; but tensors
 * within variants have raw content, too. */
#ifndef KERNEL_SERIALIZE_H
#define KERNEL_SERIALIZE_H

#include "kernel/text.h"

/* Adds to ret. UNIMPLEMENTED for resources. */
enum mst_code serialize_tensor(const struct tensor *t, struct text *ret,
                               struct status *st) MUST_USE;

#endif
