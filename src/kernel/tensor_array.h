/*
 * A tensor array: tensors by number, each written once and read once or more.
 * Loops of graphs pass their inputs and outputs through such arrays.
 *
 * An array and its gradient arrays belong to one step. Values of that step
 * lead to them, and the forward array to its gradients, which are found there
 * by the name of the gradient's source; no table knows them.
 *
 * A gradient array sums up what is written to one place. It begins with the
 * shapes of the forward array, and a place that nothing was written to reads
 * as zeros of that shape.
 *
 * Threads: any; the array's lock guards all of it.
 */
#ifndef KERNEL_TENSOR_ARRAY_H
#define KERNEL_TENSOR_ARRAY_H

#include <pthread.h>

#include "op/op.h"

/* More places than this no program has; a peer may still ask for them. */
#define TENSOR_ARRAY_MAX (1 << 24)

/* A place. If it is written but t is none, t's dimensions are a shape that
 * stands for zeros. */
struct array_place {
    struct tensor t;
    bool written, read, cleared;
};

struct tensor_array {
    struct object o; /* kind: &tensor_array_kind */
    char *name;
    int dtype;
    bool clear_after_read;
    bool same_shapes; /* the first write says all elements' shape */
    bool is_grad;     /* several writes to a place are added up */
    pthread_mutex_t lock;
    /* All under lock. */
    struct shape shape; /* of the elements, as far as known */
    bool dynamic, closed;
    bool summed; /* there was more than one write to some place */
    int64_t size;
    int64_t marked_size; /* what a split of the forward array filled, or -1 */
    struct array_place *places;
    int64_t room; /* places that have memory yet, up to size */
    struct array_grad {
        char *source;
        struct tensor_array *array;
    } * grads;
    int grad_count, grad_room;
};

extern const struct object_kind tensor_array_kind;

/* name is moved in. */
struct tensor_array *tensor_array_new(char *name, int dtype, int64_t size,
                                      const struct shape *shape);
/* The gradient array of that source, made if it is new, with a reference for
 * the caller. `front` are dimensions to put in front of all shapes. */
enum mst_code tensor_array_grad(struct tensor_array *a, struct op_ctx *c,
                                const char *source, const struct shape *front,
                                struct tensor_array **ret) MUST_USE;
void tensor_array_close(struct tensor_array *a);

/* ---- under the lock ---- */

enum mst_code tensor_array_check_open(struct tensor_array *a,
                                      struct op_ctx *c) MUST_USE;
enum mst_code tensor_array_write(struct tensor_array *a, struct op_ctx *c,
                                 int64_t index,
                                 const struct tensor *value) MUST_USE;
/* *ret gets a reference. */
enum mst_code tensor_array_read(struct tensor_array *a, struct op_ctx *c,
                                int64_t index, struct tensor *ret) MUST_USE;

/* ---- for kernels ---- */

/* The array of input 0, with a reference for the caller. */
enum mst_code tensor_array_get(struct op_ctx *c,
                               struct tensor_array **ret) MUST_USE;
/* The value, or output 0, has the array's type. */
enum mst_code tensor_array_check_write(struct op_ctx *c,
                                       const struct tensor_array *a,
                                       const struct tensor *value) MUST_USE;
enum mst_code tensor_array_check_read(struct op_ctx *c,
                                      const struct tensor_array *a) MUST_USE;

/* Two forms of an op: the second declares its handle as a string, the third as
 * a resource; between our kernels both are the same handle. */
#define TENSOR_ARRAY_OP(stem, text, more_in, out_, attr_, key_, init_)         \
    const struct op_def def_tensor_array_##stem##_v2 = {                       \
        .name = text "V2",                                                     \
        .in = "handle: string" more_in,                                        \
        .out = out_,                                                           \
        .attr = attr_,                                                         \
        .flags = OP_STATEFUL,                                                  \
        .key = key_,                                                           \
        .init = init_,                                                         \
        .kernel = (const struct op_kernel[]){ { DT_ANY, stem##_run }, { 0 } }, \
    };                                                                         \
    const struct op_def def_tensor_array_##stem##_v3 = {                       \
        .name = text "V3",                                                     \
        .in = "handle: resource" more_in,                                      \
        .out = out_,                                                           \
        .attr = attr_,                                                         \
        .flags = OP_STATEFUL,                                                  \
        .key = key_,                                                           \
        .init = init_,                                                         \
        .kernel = (const struct op_kernel[]){ { DT_ANY, stem##_run }, { 0 } }, \
    };

#endif
