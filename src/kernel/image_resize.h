/*
 * What the ops that resize images share: their attributes, and checks of
 * images and sizes.
 */
#ifndef KERNEL_IMAGE_RESIZE_H
#define KERNEL_IMAGE_RESIZE_H

#include "op/op.h"

struct resize_node {
    bool align, half;
};

/* For init(): node->state becomes a struct resize_node. */
enum mst_code image_resize_init(struct op_node *n, struct status *st);
/* How many old pixels a new one takes. */
float image_resize_scale(const struct resize_node *s, int64_t in, int64_t out);
/* Images in input 0, their new size in input i; dims: of the result. */
enum mst_code image_resize_dims(struct op_ctx *c, int i,
                                int64_t *dims) MUST_USE;
/* The gradient in input 0 fits the images in input 1. */
enum mst_code image_resize_check_grad(struct op_ctx *c) MUST_USE;
/* The images of input 0 in float, with a reference for the caller. */
enum mst_code image_resize_images(struct op_ctx *c,
                                  struct tensor *ret) MUST_USE;

#endif
