/*
 * A conditional accumulator: gradients of several workers go in, their mean or
 * sum comes out once there are enough of them. It is what makes training
 * synchronous (SyncReplicasOptimizer).
 *
 * A gradient says at which step it was computed. One that is older than the
 * accumulator's own step is dropped, without an error. Each take ends a step:
 * the count goes to 0, the step up by one.
 *
 * Dense gradients are added element by element. Sparse ones are rows with
 * their indices; two lists of rows are merged as if both were sorted, which
 * TensorFlow does whether they are or not, and the mean of a row is over the
 * gradients that had it.
 *
 * Threads: any. Takers wait in line (kernel/wait.h). The sum changes under the
 * lock; what a taker gets is divided after the lock is released.
 */
#ifndef KERNEL_ACCUMULATOR_H
#define KERNEL_ACCUMULATOR_H

#include "kernel/wait.h"

struct accumulator_math;

/* What has been added up. */
struct accumulator_sum {
    struct tensor values;
    /* Sparse: the index of each row, and how many gradients had it. */
    int64_t *rows;
    int32_t *hits;
};

struct accumulator_config {
    int dtype;
    struct shape shape;
    bool mean, sparse;
};

struct accumulator {
    struct object o; /* kind: &accumulator_kind */
    struct accumulator_config config;
    const struct accumulator_math *math;
    pthread_mutex_t lock;
    /* All under lock. */
    int64_t count, step;
    struct accumulator_sum sum; /* something, if count > 0 */
    struct wait_line takes;
};

extern const struct object_kind accumulator_kind;

struct accumulator *accumulator_new(const struct accumulator_config *config);
/* Adds the gradient in the op's inputs from 2 on (moved if possible). Sparse:
 * indices, values, and the shape if known_shape. */
enum mst_code accumulator_apply(struct accumulator *a, struct op_ctx *c,
                                int64_t step, bool known_shape) MUST_USE;
/* The outputs get the result, now or later. Takes over a reference of a. */
enum mst_code accumulator_take(struct accumulator *a, struct op_ctx *c,
                               int64_t required) MUST_USE;
void accumulator_set_step(struct accumulator *a, int64_t step);
int64_t accumulator_count(struct accumulator *a);

/* ---- arithmetic, by element type ---- */

struct accumulator_math {
    /* out[i] = a[i] + b[i], and x[i] /= count, over a range: see op_for(). */
    void (*add)(void *arg, int64_t begin, int64_t end);
    void (*divide)(void *arg, int64_t begin, int64_t end);
};

struct accumulator_add {
    void *out;
    const void *a, *b;
};

struct accumulator_divide {
    void *x;
    int64_t count;
};

/* NULL when there is none for the type. */
const struct accumulator_math *accumulator_math(int dtype);

/* ---- sparse sums: accumulator_sparse.c, under the lock ---- */

enum mst_code accumulator_sparse_check(struct accumulator *a, struct op_ctx *c,
                                       bool known_shape) MUST_USE;
enum mst_code accumulator_sparse_add(struct accumulator *a,
                                     struct op_ctx *c) MUST_USE;
/* Divides and sets the outputs; needs no lock. */
enum mst_code accumulator_sparse_give(const struct accumulator *a,
                                      struct op_ctx *c,
                                      struct accumulator_sum *sum) MUST_USE;

#endif
