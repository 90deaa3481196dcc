/*
 * What stands in a checkpoint's index: a header under the empty key, and under
 * every other key the description of a tensor (BundleHeaderProto and
 * BundleEntryProto of TensorFlow).
 *
 * A checkpoint is PREFIX.index, a table, and PREFIX.data-00000-of-00001 and so
 * on, the tensors' bytes. A whole tensor's entry says where its bytes are. A
 * partitioned one has an entry under its name with the list of its slices and
 * no bytes, and one entry a slice under a key of its own (store/slice.h).
 */
#ifndef STORE_BUNDLE_ENTRY_H
#define STORE_BUNDLE_ENTRY_H

#include "store/slice.h"

#define BUNDLE_VERSION 1

struct bundle_header {
    int32_t shards;
    bool big_endian;
    int32_t producer, min_consumer;
    bool refused; /* it names our version as one that must not read it */
};

struct bundle_entry {
    int dtype; /* as it stands there: perhaps one that we do not have */
    int ndim;  /* may be more than TENSOR_RANK_MAX; dims has the first ones */
    int64_t dims[TENSOR_RANK_MAX];
    int32_t shard;
    uint64_t offset, size; /* of the bytes in the shard's file */
    uint32_t crc;          /* masked */
    /* Field 7 of the message, as it lies there: tags, lengths, slices. */
    struct bytes slices;
};

void bundle_header_put(struct pb_out *o, const struct bundle_header *h);
bool bundle_header_parse(struct pb_in in, struct bundle_header *ret);

void bundle_entry_done(struct bundle_entry *e);
void bundle_entry_put(struct pb_out *o, const struct bundle_entry *e);
/* False when it is no such message; ret is to be done() in any case. */
bool bundle_entry_parse(struct pb_in in, struct bundle_entry *ret);
void bundle_entry_add_slice(struct bundle_entry *e, const struct slice *s);

/* Walks the slices: *at begins as bundle_entry_slices(e). False at the end, and
 * when one is damaged (then at->bad is set). */
static inline struct pb_in bundle_entry_slices(const struct bundle_entry *e)
{
    return cursor_over(e->slices.data, e->slices.len);
}
bool bundle_entry_next_slice(struct pb_in *at, struct slice *ret);

/* How much of a key goes into a message: for "%.*s". */
static inline int bundle_entry_shown(size_t key_len)
{
    return (int)MIN(key_len, 1000u);
}

/* Names of files; the caller frees. */
char *bundle_index_name(const char *prefix);
char *bundle_data_name(const char *prefix, int shard, int shards);

#endif
