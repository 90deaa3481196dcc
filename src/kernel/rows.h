/*
 * Rows of a tensor that an index tensor names: what scatter, gather and the
 * sparse updates of optimizers have in common.
 *
 * A row is named by `depth` numbers, one for each of the tensor's first
 * dimensions, and is whatever lies below them: `size` elements. Scatter and
 * sparse apply have depth 1, the Nd ops any.
 *
 * The numbers come from the network, and an index tensor may lie in the memory
 * of a variable that changes as it is read. So each is checked at the moment
 * of its use: rows_at() gives no place outside of the tensor, whatever
 * rows_bad() said before.
 *
 * Updates of rows keep the order in which the rows are named, since a row may
 * be named twice. They still run on several threads: each takes the rows whose
 * first number falls into its part, so one row has one thread (rows_each).
 */
#ifndef KERNEL_ROWS_H
#define KERNEL_ROWS_H

#include "op/op.h"

struct rows {
    const void *index;
    enum dtype type; /* of the index: int16, uint16, int32 or int64 */
    int depth;
    int64_t count; /* of rows that are named */
    int64_t size;  /* elements of one */
    int64_t part, part_mask;
    int64_t dims[TENSOR_RANK_MAX], steps[TENSOR_RANK_MAX];
};

/* The rows of a tensor of such dims that `index` names, `depth` numbers each;
 * depth is at most ndim, and divides the count of index. With depth 0 the only
 * row is the tensor itself, and the caller says how often it is meant. */
void rows_init(struct rows *r, const struct tensor *index, int depth, int ndim,
               const int64_t *dims);

static inline int64_t rows_number(const struct rows *r, int64_t at)
{
    switch (r->type) {
    case DT_INT16:
        return ((const int16_t *)r->index)[at];
    case DT_UINT16:
        return ((const uint16_t *)r->index)[at];
    case DT_INT32:
        return ((const int32_t *)r->index)[at];
    default:
        return ((const int64_t *)r->index)[at];
    }
}

/* Where row i begins, in elements; -1 when there is no such row, or when it is
 * another part's. */
static inline int64_t rows_at(const struct rows *r, int64_t i)
{
    int64_t at = 0;

    for (int k = 0; k < r->depth; k++) {
        int64_t n = rows_number(r, i * r->depth + k);

        if ((uint64_t)n >= (uint64_t)r->dims[k] ||
            (k == 0 && (n & r->part_mask) != r->part))
            return -1;
        at += n * r->steps[k];
    }
    return at;
}

/* A row that is named: where it begins in the tensor, and where the one that is
 * meant for it begins among `count` others, both in elements. */
struct rows_span {
    int64_t at, from;
};

#define ROWS_SOME 256

/* The next rows from *next on that are there, of this part: up to ROWS_SOME,
 * none at the end. What rows_at() says of each, at a fraction of its cost. */
int64_t rows_some(const struct rows *r, int64_t *next, struct rows_span *ret);

/* The first i that names no row, or -1. */
int64_t rows_bad(const struct rows *r);

/* The place of element i in the first dimensions of a tensor, as "1,0". */
const char *rows_place(char *text, size_t room, const struct tensor *index,
                       int ndim, int64_t i);
/* "indices[1,0] = 9 is not in [0, 3)", TensorFlow's words for rows of depth 1;
 * bad is what rows_bad() said. */
enum mst_code rows_fail(struct op_ctx *c, const struct rows *r,
                        const struct tensor *index, int64_t bad);
/* "indices[1] = [2, 9] does not index into <what>shape [3,2]" for the others;
 * what is "" or "param ". */
enum mst_code rows_fail_nd(struct op_ctx *c, const struct rows *r,
                           const struct tensor *index, int64_t bad,
                           const char *what, int ndim, const int64_t *dims);

/* Copies bytes that may change meanwhile, or overlap. */
void rows_copy(void *to, const void *from, size_t bytes);
/* The same for so many rows of so many bytes each, elements of `size` bytes. */
void rows_copy_spans(void *to, const void *from, const struct rows_span *spans,
                     int64_t count, size_t size, size_t bytes);

/* Calls fn for parts of r that are disjoint in the rows they touch, on the
 * node's threads when count * size elements at cost_ns are worth it. */
void rows_each(const struct op_ctx *c, const struct rows *r, double cost_ns,
               void (*fn)(void *arg, const struct rows *part), void *arg);

#endif
