/*
 * Pooling: a window that is summed up, or its greatest element found, for each
 * channel by itself; and the ways back.
 *
 * All of it is one walk: for each line of the output and each tap of the
 * window, the pixels of that line that have the tap inside of the input. Both
 * sides are contiguous or evenly spaced there, and a loop handles the line.
 */
#ifndef KERNEL_POOLING_H
#define KERNEL_POOLING_H

#include "kernel/window.h"

/* One tap over part of one line. Places are in elements; pixels on the side of
 * the output, y, follow each other, on that of the input, x, are apart. */
struct pooling_span {
    int64_t y, x;     /* where the first pixel is */
    int64_t line;     /* where it is in its line, in elements */
    int64_t n, apart; /* pixels; distance of them in x */
    int64_t channels;
    int64_t tap;
};

struct pooling_walk {
    const struct window_fit *fit;
    bool backwards; /* the last tap first */
};

/* What a node is, out of its attributes. */
struct pooling_node {
    struct window w;
    bool from_inputs; /* the window is in the inputs after `tensors` */
    int tensors;
    bool batch_in_index;
};

typedef void pooling_fn(void *arg, const struct pooling_span *s);

/* Calls fn for every tap of line `line` of all lines [batch, depth, height] of
 * the output. */
void pooling_walk(const struct pooling_walk *w, int64_t line, pooling_fn *fn,
                  void *arg);
/* The places in the input of all pixels under the window at column x of that
 * line, in the order of taps; how many. */
int64_t pooling_places(const struct window_fit *f, int64_t line, int64_t x,
                       int64_t *ret);
/* How many columns from x on have the same places, each a stride further. */
int64_t pooling_alike(const struct window_fit *f, int64_t x);
/* How many there may be. */
int64_t pooling_places_max(const struct window_fit *f);
/* How many elements of the input the window covers at column x of that line. */
int64_t pooling_covered(const struct window_fit *f, int64_t line, int64_t x);

enum mst_code pooling_init(struct op_node *n, struct status *st) MUST_USE;
/* The node's window over an input of those dimensions, checked. */
enum mst_code pooling_fit(struct op_ctx *c, const struct tensor *in,
                          const int64_t *dims, struct window *w,
                          struct window_fit *ret) MUST_USE;
/* t is input i with its channels last, in float if it is a 16-bit one. */
enum mst_code pooling_in(struct op_ctx *c, const struct window *w, int i,
                         struct tensor *t) MUST_USE;
/* Output i becomes t, of the node's type and format; t is taken over. */
enum mst_code pooling_out(struct op_ctx *c, const struct window *w,
                          struct tensor *t, int i) MUST_USE;
/* float or double for the types that the loops have, else the type. */
enum dtype pooling_type(enum dtype dt);

static inline int64_t pooling_lines(const struct window_fit *f)
{
    return f->batch * f->dim[0].out * f->dim[1].out;
}

#endif
