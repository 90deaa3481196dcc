/* What a tensor of the public API is inside: one of ours. */
#ifndef API_TENSOR_H
#define API_TENSOR_H

#include "muster/tensor.h"
#include "tensor/tensor.h"

struct mst_tensor {
    struct tensor t;
};

/* Takes the reference over. */
mst_tensor *tensor_to_api(struct tensor *t);

#endif
