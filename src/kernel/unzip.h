/*
 * Compressed bytes to plain ones, in memory: zlib's format or gzip's. What
 * comes out is bounded, because a few bytes may stand for any number.
 */
#ifndef KERNEL_UNZIP_H
#define KERNEL_UNZIP_H

#include "kernel/text.h"
#include "op/op.h"

enum unzip_format { UNZIP_NONE, UNZIP_ZLIB, UNZIP_GZIP };

/* "", "ZLIB", "GZIP"; false for anything else. */
bool unzip_format_of(struct attr_text name, enum unzip_format *ret);
/* Adds to ret. A stream that ends too early gives what there is, as in
 * TensorFlow. DATA_LOSS for what is no such stream. */
enum mst_code unzip_all(enum unzip_format format, const void *data, size_t len,
                        struct text *ret, struct status *st) MUST_USE;
/* All bytes of a file, added to ret. */
enum mst_code unzip_file(enum unzip_format format, const char *path,
                         struct text *ret, struct status *st) MUST_USE;

#endif
