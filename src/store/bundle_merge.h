/*
 * Makes one checkpoint of the shards that several tasks wrote: the data files
 * get their final names, and one index lists everything.
 */
#ifndef STORE_BUNDLE_MERGE_H
#define STORE_BUNDLE_MERGE_H

#include "base/status.h"

struct bundle_merge_options {
    bool allow_missing; /* a prefix without an index is passed over */
    bool delete_dirs;   /* the shards' directories, once they are empty */
};

/* On a shared file system only one task does it, after all have written. The
 * bytes of tensors are not touched. */
enum mst_code bundle_merge(char *const *prefixes, int count,
                           const char *merged_prefix,
                           struct bundle_merge_options options,
                           struct status *st) MUST_USE;

#endif
