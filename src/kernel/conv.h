/*
 * Convolutions of volumes with the channels last, and their gradients, for
 * float, double and int32. docs/adr/0012-convolution.md says why this is our
 * own code.
 *
 * x [batch, in…, channels], w [size…, channels / groups, filters],
 * y [batch, out…, filters], with in, out and size of three dimensions.
 */
#ifndef KERNEL_CONV_H
#define KERNEL_CONV_H

#include "kernel/window.h"

struct conv {
    enum dtype dtype;
    struct window_fit fit;
    int64_t filters, groups;
    const void *x, *w, *y; /* the two that are inputs */
    void *out;             /* the third */
};

enum mst_code conv_forward(struct op_ctx *c, const struct conv *v) MUST_USE;
/* x from w and y: the gradient of the input. */
enum mst_code conv_back_input(struct op_ctx *c, const struct conv *v) MUST_USE;
/* w from x and y: the gradient of the filter. */
enum mst_code conv_back_filter(struct op_ctx *c, const struct conv *v) MUST_USE;

/*
 * A box of a volume [.., h, w, channels] (one of a batch) with zeros where it
 * reaches beyond: to[n[0]][n[1]][n[2]][channels].
 */
void conv_strip(char *to, const int64_t n[3], const char *from,
                const int64_t dims[3], const int64_t start[3], size_t bytes);

#endif
