/*
 * Reads checkpoints of the first format (see v1_writer.h): one file, or several
 * that a pattern matches and that have slices of the same tensors. As with
 * newer ones, nothing in them is believed.
 *
 * Threads: one.
 */
#ifndef STORE_V1_READER_H
#define STORE_V1_READER_H

#include "base/map.h"
#include "store/slice.h"
#include "store/table_reader.h"

struct v1_part {
    int file;
    struct slice slice; /* as stored */
};

struct v1_tensor {
    int dtype;
    struct shape shape;
    struct v1_part *parts;
    int count, room;
};

struct v1_reader {
    char *pattern;
    struct table_reader *files;
    int file_count;
    struct map tensors; /* name -> struct v1_tensor */
};

/* NOT_FOUND when no file matches. */
enum mst_code v1_reader_open(struct v1_reader *r, const char *pattern,
                             struct status *st) MUST_USE;
/* The bytes of one file, which stay the caller's; for tests and fuzzers, the
 * latter without checksums. */
enum mst_code v1_reader_open_memory(struct v1_reader *r, const void *data,
                                    size_t len, bool unchecked,
                                    struct status *st) MUST_USE;
void v1_reader_close(struct v1_reader *r);
/* The tensor, or that slice of it when spec is not empty: see
 * slice_parse_spec(). It must be of that type. */
enum mst_code v1_reader_read(struct v1_reader *r, const char *name,
                             size_t name_len, const char *spec, size_t spec_len,
                             enum dtype dtype, struct tensor *ret,
                             struct status *st) MUST_USE;

#endif
