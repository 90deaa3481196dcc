/*
 * TFRecord files of tf.train.Examples as arrays: a feature of each example
 * becomes a row. All examples have the same number of values of a feature.
 */
#ifndef TRAIN_EXAMPLES_H
#define TRAIN_EXAMPLES_H

#include "train/data.h"

/* What stands for the record itself, as a string. */
#define EXAMPLES_RECORD "@record"

/* files is a list with commas; a name may have wildcards. The arrays are of
 * the features' types: float, int64 or string. */
enum mst_code examples_read(const char *files, const struct data_feed *feeds,
                            int count, struct tensor *arrays,
                            struct status *st) MUST_USE;

#endif
