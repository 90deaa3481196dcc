/*
 * Writes a checkpoint of the first format (V1), which Saver wrote before
 * TensorFlow 0.12 and still does when it is told to. One file: a table whose
 * first value lists all tensors and their slices (SavedTensorSlices.meta), and
 * whose others hold a slice each, elements and all (SavedTensorSlices.data),
 * under the same keys as in store/slice.h.
 *
 * The whole file is put together in the order of its keys, one slice in memory
 * at a time.
 *
 * Threads: one.
 */
#ifndef STORE_V1_WRITER_H
#define STORE_V1_WRITER_H

#include "store/file.h"
#include "store/slice.h"

struct v1_slice {
    const char *name; /* the caller's */
    size_t name_len;
    struct shape whole;
    struct slice slice;
    const struct tensor *t; /* the caller's */
    struct bytes key;
};

struct v1_writer {
    struct v1_slice *slices; /* in the order of their names */
    int count, room;
};

void v1_writer_init(struct v1_writer *w);
void v1_writer_done(struct v1_writer *w);
/* Names and tensors stay where they are until the file has been written. Names
 * come in their order, those of one tensor together. */
enum mst_code v1_writer_add(struct v1_writer *w, const char *name,
                            size_t name_len, const struct shape *whole,
                            const struct slice *slice, const struct tensor *t,
                            struct status *st) MUST_USE;
enum mst_code v1_writer_write(struct v1_writer *w, const char *path,
                              struct status *st) MUST_USE;

/* VersionDef's and SavedTensorSlices' numbers, for the reader too. */
enum {
    V1_META = 1, /* of SavedTensorSlices */
    V1_DATA = 2,
    V1_META_TENSOR = 1, /* of its meta */
    V1_META_VERSIONS = 2,
    V1_TENSOR_NAME = 1, /* of a tensor in that */
    V1_TENSOR_SHAPE = 2,
    V1_TENSOR_TYPE = 3,
    V1_TENSOR_SLICE = 4,
    V1_SLICE_NAME = 1, /* of its data */
    V1_SLICE_SLICE = 2,
    V1_SLICE_DATA = 3, /* a TensorProto with values only */
};

#endif
