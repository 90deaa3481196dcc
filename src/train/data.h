/*
 * The data of a training: for each feed all its rows, out of which batches are
 * made.
 *
 * A feed comes from a NumPy array, or from TFRecord files: then it is a
 * feature of their Examples, or the record itself as a string. Rows are
 * brought to the type and the shape of the placeholder: whole numbers and
 * bytes become floats or wider whole numbers, and the elements of a row are
 * laid out as it asks for. All is held in memory, or mapped.
 *
 * Batches never end: after the last row the first comes again, or, shuffled,
 * all in another order. What is in order is a slice of the array and not
 * copied.
 *
 * Threads: one.
 */
#ifndef TRAIN_DATA_H
#define TRAIN_DATA_H

#include "tensor/tensor.h"

struct data_feed {
    const char *name;   /* for errors: "x:0" */
    enum dtype type;    /* of the placeholder; DT_INVALID: as it comes */
    struct shape shape; /* likewise, with the rows; unknown rank: as it comes */
    const char *source; /* a file ("x.npy", "a.npz:x"), or, if there are files
                           in the options, the feature; "@record" is a whole */
};

struct data_opts {
    const char *files; /* "a.tfrecord,b*.tfrecord", or one "a.npz" */
    int batch;
    bool shuffle;
    uint64_t seed;
    int shard, shards; /* in order, each worker begins somewhere else */
};

struct data {
    int count; /* of feeds */
    struct tensor *arrays;
    int64_t rows, at;
    int batch;
    uint64_t random;
    int64_t *order; /* a permutation; NULL: in order */
};

enum mst_code data_open(struct data *d, const struct data_feed *feeds,
                        int count, const struct data_opts *opts,
                        struct status *st) MUST_USE;
void data_close(struct data *d); /* accepts a zeroed one */

/* The next batch: a tensor for each feed, the caller's to unref. */
enum mst_code data_next(struct data *d, struct tensor *feeds,
                        struct status *st) MUST_USE;
/* Rows [at, at + n). */
enum mst_code data_rows(const struct data *d, int64_t at, int64_t n,
                        struct tensor *feeds, struct status *st) MUST_USE;

#endif
