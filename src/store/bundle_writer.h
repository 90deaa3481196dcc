/*
 * Writes a checkpoint of one shard: PREFIX.index and PREFIX.data-00000-of-00001
 * (see bundle_entry.h), byte for byte as TensorFlow's SaveV2 does. Both appear
 * when it finishes, or neither does. Tensors are streamed to the file as they
 * are added, and may be changing meanwhile (see file.h).
 *
 * Threads: one.
 */
#ifndef STORE_BUNDLE_WRITER_H
#define STORE_BUNDLE_WRITER_H

#include "store/bundle_index.h"

struct bundle_writer {
    char *prefix;
    struct file_out data;
    struct bundle_index index;
};

/* Makes the directories that are missing. */
enum mst_code bundle_writer_open(struct bundle_writer *w, const char *prefix,
                                 struct status *st) MUST_USE;
/* A whole tensor. */
enum mst_code bundle_writer_add(struct bundle_writer *w, const char *name,
                                size_t name_len, const struct tensor *t,
                                struct status *st) MUST_USE;
/* A slice of a tensor of that whole shape; t has the slice's elements. */
enum mst_code bundle_writer_add_slice(struct bundle_writer *w, const char *name,
                                      size_t name_len,
                                      const struct shape *whole,
                                      const struct slice *slice,
                                      const struct tensor *t,
                                      struct status *st) MUST_USE;
enum mst_code bundle_writer_finish(struct bundle_writer *w,
                                   struct status *st) MUST_USE;
/* In any case; without a finish it leaves nothing behind. */
void bundle_writer_done(struct bundle_writer *w);

#endif
