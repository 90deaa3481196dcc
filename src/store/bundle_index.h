/*
 * An index in the making: entries by key, in memory, sorted when it is written.
 * The writer fills one with the tensors it writes, a merge with the entries of
 * many.
 *
 * Memory: about 250 bytes a tensor.
 */
#ifndef STORE_BUNDLE_INDEX_H
#define STORE_BUNDLE_INDEX_H

#include "base/map.h"
#include "store/bundle_entry.h"
#include "store/file.h"

struct bundle_item {
    uint8_t *key;
    size_t key_len;
    struct bundle_entry entry;
};

struct bundle_index {
    struct bundle_item **items;
    size_t count, room;
    struct map by_key; /* to items */
};

void bundle_index_init(struct bundle_index *x);
void bundle_index_done(struct bundle_index *x);
/* NULL when there is none. It stays where it is until the index ends. */
struct bundle_entry *bundle_index_find(const struct bundle_index *x,
                                       const void *key, size_t len);
/* A new, empty entry; there is none under that key. */
struct bundle_entry *bundle_index_add(struct bundle_index *x, const void *key,
                                      size_t len);
/* Writes it after the header. The owner commits the file. */
enum mst_code bundle_index_write(struct bundle_index *x,
                                 const struct bundle_header *header,
                                 struct file_out *out,
                                 struct status *st) MUST_USE;

#endif
