/*
 * Reads tensors of a checkpoint, many at once: each is a whole tensor or any
 * slice of one, whether it was saved whole or in slices of another cut.
 *
 * First everything is looked up and checked against the sizes of the files, so
 * that no damaged number leads to an allocation; then the bytes are read in the
 * order in which they lie, straight into their tensors where those bytes are
 * contiguous there, on several threads when there are enough of them.
 */
#ifndef STORE_BUNDLE_LOAD_H
#define STORE_BUNDLE_LOAD_H

#include "base/pool.h"
#include "store/bundle_reader.h"

struct bundle_read {
    const char *name;
    size_t name_len;
    /* "4 5 0,2:-", or empty for all of it: see slice_parse_spec(). */
    const char *spec;
    size_t spec_len;
    enum dtype dtype;          /* what it must be; DT_INVALID: anything */
    struct tensor out;         /* set on success */
    struct bundle_entry entry; /* bundle_load()'s own */
};

/* All or nothing. Codes and texts as TensorFlow's RestoreV2. pool may be
 * NULL. */
enum mst_code bundle_load(struct bundle_reader *r, struct bundle_read *reads,
                          int count, struct pool *pool,
                          struct status *st) MUST_USE;

#endif
