/*
 * The one machine for moving elements about: transposing, slicing, padding,
 * reversing, tiling, joining and splitting are all a nest of loops that copies
 * elements from one tensor's strides to another's.
 *
 *   struct strided s = { .to_at = …, .from_at = … };
 *   strided_dim(&s, n, to, from);    the outermost loop first
 *   strided_copy(c, op_out(c, 0), op_in(c, 0), &s);
 *
 * Strides and places count elements; they may be negative (reverse), and those
 * of `from` may be 0 (repeat). The caller answers for staying inside of both
 * tensors and for writing no element twice. Elements of any type.
 */
#ifndef KERNEL_STRIDED_H
#define KERNEL_STRIDED_H

#include "op/op.h"

#define STRIDED_MAX (2 * TENSOR_RANK_MAX)

struct strided {
    int ndim;
    struct {
        int64_t n, to, from;
    } dim[STRIDED_MAX];
    int64_t to_at, from_at;
};

static inline void strided_dim(struct strided *s, int64_t n, int64_t to,
                               int64_t from)
{
    CHECK(s->ndim < STRIDED_MAX);
    s->dim[s->ndim].n = n;
    s->dim[s->ndim].to = to;
    s->dim[s->ndim++].from = from;
}

/* The strides of a tensor without gaps. */
static inline void strided_of(int ndim, const int64_t *dims, int64_t *ret)
{
    int64_t step = 1;

    for (int i = ndim - 1; i >= 0; i--) {
        ret[i] = step;
        step *= dims[i];
    }
}

void strided_copy(const struct op_ctx *c, struct tensor *to,
                  const struct tensor *from, struct strided *s);

/*
 * Output i is a view of `in` of the given dimensions, whose element at index 0
 * is `at` and whose steps are given: the input's own bytes if they lie so,
 * else a copy.
 */
enum mst_code strided_view(struct op_ctx *c, int i, const struct tensor *in,
                           int ndim, const int64_t *dims, const int64_t *step,
                           int64_t at) MUST_USE;

/* All elements of t become element 0 of value. */
void strided_fill(const struct op_ctx *c, struct tensor *t,
                  const struct tensor *value);

#endif
