/*
 * Windows that slide over images and volumes: what convolutions and pooling
 * have in common.
 *
 * Everything is seen in three dimensions, depth, height and width; an image
 * has depth 1. Tensors are [batch, depth, height, width, channels] here; those
 * with the channels in front are turned before and after.
 *
 * Position o of the output sees elements o * stride - before + k * dilation of
 * the input, for k of the window's size; those outside of the input are the
 * padding.
 */
#ifndef KERNEL_WINDOW_H
#define KERNEL_WINDOW_H

#include "op/op.h"

enum window_padding { WINDOW_VALID, WINDOW_SAME, WINDOW_EXPLICIT };

/* What the node's attributes say. */
struct window {
    int nd; /* spatial dimensions: 2 or 3 */
    bool channels_first;
    enum window_padding padding;
    /* By depth, height, width; those that there are not: 1 and 0. */
    int64_t size[3], stride[3], dilation[3];
    int64_t before[3], after[3]; /* WINDOW_EXPLICIT only */
    int64_t batch_size, batch_stride, channel_size, channel_stride;
};

/* One of its dimensions over a tensor. */
struct window_dim {
    int64_t in, out, size, stride, dilation, before;
};

/* The window over a tensor. */
struct window_fit {
    int64_t batch, channels; /* of the input */
    struct window_dim dim[3];
};

/*
 * Reads strides, dilations, padding, explicit_paddings, data_format and ksize,
 * as far as the definition has them, with TensorFlow's checks of them.
 */
enum mst_code window_init(struct op_node *n, int nd, struct window *w,
                          struct status *st) MUST_USE;
/* Another data format, window or strides: those of list[nd + 2]. */
void window_set(struct window *w, const int64_t *list, int64_t *ret,
                int64_t *ret_batch, int64_t *ret_channels);

/* The output's size and the padding, from in, size, stride and dilation. */
enum mst_code window_fit_dim(struct op_ctx *c, const struct window *w, int i,
                             struct window_dim *d) MUST_USE;
/* For pooling: of a tensor of those dimensions, in the node's format. */
enum mst_code window_fit(struct op_ctx *c, const struct window *w,
                         const int64_t *dims, struct window_fit *ret) MUST_USE;
/* The dimensions of an output of that many channels, in the node's format. */
void window_dims(const struct window *w, const struct window_fit *f,
                 int64_t channels, bool input, int64_t *ret);

/*
 * *ret is t with its channels last: another reference when they are, or a
 * turned copy. And back: `out` gets `t`, whose channels are last.
 */
enum mst_code window_in(struct op_ctx *c, const struct window *w,
                        const struct tensor *t, struct tensor *ret) MUST_USE;
enum mst_code window_out(struct op_ctx *c, const struct window *w,
                         struct tensor *t, struct tensor *out) MUST_USE;

#endif
