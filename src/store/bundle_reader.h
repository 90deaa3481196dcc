/*
 * Opens a checkpoint (see bundle_entry.h) and finds what is in it; the bytes of
 * tensors are read by bundle_load.h. Nothing in the files is believed: what is
 * damaged gives DATA_LOSS.
 *
 * Threads: one.
 */
#ifndef STORE_BUNDLE_READER_H
#define STORE_BUNDLE_READER_H

#include "base/map.h"
#include "store/bundle_entry.h"
#include "store/table_reader.h"

struct bundle_reader {
    char *prefix;
    struct table_reader table;
    struct table_iter it;
    struct bundle_header header;
    struct map files; /* number of a shard -> its struct file_in */
    /* For tests and fuzzers: what every shard has, and no checksums. */
    const void *memory;
    size_t memory_len;
    bool unchecked;
};

enum mst_code bundle_reader_open(struct bundle_reader *r, const char *prefix,
                                 struct status *st) MUST_USE;
/* The bytes of an index; every shard has the same data. Both stay the
 * caller's. */
enum mst_code bundle_reader_open_memory(struct bundle_reader *r,
                                        const void *index, size_t index_len,
                                        const void *data, size_t data_len,
                                        bool unchecked,
                                        struct status *st) MUST_USE;
void bundle_reader_close(struct bundle_reader *r);

/* The entry under a key; NOT_FOUND when there is none. The caller ends it with
 * bundle_entry_done(). */
enum mst_code bundle_reader_find(struct bundle_reader *r, const void *key,
                                 size_t key_len, struct bundle_entry *ret,
                                 struct status *st) MUST_USE;
/* All entries in the order of their keys, slices' own ones too: rewind, then
 * next until *ret_key is empty. The key holds until the next call. */
enum mst_code bundle_reader_rewind(struct bundle_reader *r,
                                   struct status *st) MUST_USE;
enum mst_code bundle_reader_next(struct bundle_reader *r, struct pb_in *ret_key,
                                 struct bundle_entry *ret,
                                 struct status *st) MUST_USE;
/* The data file of a shard, opened when it is first asked for. */
enum mst_code bundle_reader_file(struct bundle_reader *r, int shard,
                                 const struct file_in **ret,
                                 struct status *st) MUST_USE;

#endif
