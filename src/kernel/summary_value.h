/*
 * What TensorBoard shows, as messages: Summary { 1 value { 1 tag,
 * 2 simple_value, 4 image, 5 histo, 6 audio, 7 node_name, 8 tensor,
 * 9 metadata } }. Each function adds values to a Summary under construction;
 * the ops that return summaries and those that write them to files share them.
 */
#ifndef KERNEL_SUMMARY_VALUE_H
#define KERNEL_SUMMARY_VALUE_H

#include "op/op.h"
#include "wire/pb.h"

void summary_put_scalar(struct pb_out *o, const struct str *tag, float value);
/* INVALID_ARGUMENT for a NaN or an infinity. Any real type, or bool. */
enum mst_code summary_put_histogram(struct op_ctx *c, struct pb_out *o,
                                    const struct str *tag,
                                    const struct tensor *values) MUST_USE;
/* tag or node_name may be NULL. */
enum mst_code summary_put_tensor(struct op_ctx *c, struct pb_out *o,
                                 const struct str *tag, const char *node_name,
                                 const struct tensor *t,
                                 const struct str *metadata) MUST_USE;
/* At most `most` of a batch of images, as PNG; bad_color is a uint8 tensor for
 * pixels that are not finite. */
enum mst_code summary_put_images(struct op_ctx *c, struct pb_out *o,
                                 const struct str *tag, const struct tensor *t,
                                 int64_t most,
                                 const struct tensor *bad_color) MUST_USE;
/* … of sounds, as WAV. */
enum mst_code summary_put_audio(struct op_ctx *c, struct pb_out *o,
                                const struct str *tag, const struct tensor *t,
                                int64_t most, float sample_rate) MUST_USE;

/* An element of any real type, or bool, as a double. */
double summary_number(const struct tensor *t, int64_t i);

#endif
