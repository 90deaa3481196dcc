/*
 * Ops of linear algebra: the last two dimensions of their inputs are matrices,
 * those in front a batch that all inputs share. A kernel says what becomes of
 * one matrix; this runs it over the batch, on the node's threads.
 */
#ifndef KERNEL_LINALG_H
#define KERNEL_LINALG_H

#include "kernel/dense.h"

#define LINALG_ARGS 4

struct linalg {
    struct op_ctx *c;
    int in_count;
    int64_t rows[LINALG_ARGS], cols[LINALG_ARGS]; /* of the inputs' matrices */
    int64_t out_size[LINALG_ARGS];                /* elements of an output's */
    struct shape batch;
    int64_t count;     /* matrices in the batch */
    int64_t work_size; /* the kernel's own: elements of its work space */
};

/* One of the batch. What has no elements is NULL. */
struct linalg_one {
    const struct linalg *l;
    const void *in[LINALG_ARGS];
    void *out[LINALG_ARGS];
    void *scratch; /* as many bytes as linalg_run() was told, aligned */
};

/* Looks at the first in_count inputs: their ranks and batches. */
enum mst_code linalg_begin(struct linalg *l, struct op_ctx *c,
                           int in_count) MUST_USE;
/* Input 0 is square. */
enum mst_code linalg_square(const struct linalg *l) MUST_USE;
/* Output i gets matrices of that many dimensions: none, a, or a and b. */
enum mst_code linalg_out(struct linalg *l, int i, int ndim, int64_t a,
                         int64_t b) MUST_USE;
/* Output i is not asked for: a scalar zero. */
enum mst_code linalg_out_none(struct linalg *l, int i) MUST_USE;
/*
 * fn for each matrix; it returns NULL or what is wrong with its input. cost:
 * about the nanoseconds of one. Scratch is `elems` of elem_size bytes.
 */
enum mst_code
linalg_run(struct linalg *l, double cost_ns, int64_t elems, size_t elem_size,
           const char *(*fn)(const struct linalg_one *m)) MUST_USE;

/* The kernel of float, for half: everything is converted there and back. */
enum mst_code linalg_half(struct op_ctx *c,
                          enum mst_code (*run)(struct op_ctx *c)) MUST_USE;

#endif
