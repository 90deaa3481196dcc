/*
 * What has to be read for a set of tensors: which bytes of which files go
 * where. Everything is looked up and checked against the sizes of the files
 * here, before anything is allocated or read.
 */
#ifndef STORE_BUNDLE_PLAN_H
#define STORE_BUNDLE_PLAN_H

#include "store/bundle_load.h"

/* One stored tensor or slice, and where its elements go. */
struct bundle_part {
    const struct file_in *file;
    uint64_t offset, size;
    uint32_t crc; /* as stored, unmasked */
    int32_t shard;
    struct bundle_read *read;
    struct slice from, to; /* resolved: what is stored, what is wanted */
    bool direct;           /* it lies in `out` as it does in the file */
    int64_t to_elem;       /* direct: from here on */
};

struct bundle_plan {
    struct bundle_part *parts; /* in the order in which they lie */
    int count, room;
};

/* Fills the plan and makes the tensors, without values as yet. */
enum mst_code bundle_plan_make(struct bundle_plan *p, struct bundle_reader *r,
                               struct bundle_read *reads, int count,
                               struct status *st) MUST_USE;
void bundle_plan_done(struct bundle_plan *p);

#endif
