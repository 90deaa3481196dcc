/*
 * Reads a table (see table_writer.h), trusting nothing in it: a file that is
 * damaged, cut off or made to deceive gives DATA_LOSS and a sentence. Blocks
 * are read when they are needed, one at a time, each no larger than the file
 * has bytes for. Keys that do not rise are damage too, so that a walk through
 * a table ends.
 *
 * Threads: a reader is constant; each iterator belongs to one thread.
 */
#ifndef STORE_TABLE_READER_H
#define STORE_TABLE_READER_H

#include "base/buffer.h"
#include "store/cursor.h"
#include "store/file.h"

/* A block in memory, unpacked and without its trailer. */
struct table_chunk {
    struct buffer *buf;
    const uint8_t *data;
    size_t entries;    /* bytes of them; the restarts follow */
    uint32_t restarts; /* how many */
};

/* A place in a block. */
struct table_place {
    const struct table_chunk *chunk;
    size_t next; /* where the entry after this one begins */
    bool valid;
    bool first; /* no key has been read here yet */
    struct bytes key;
    const uint8_t *value;
    size_t value_len;
};

struct table_reader {
    struct file_in file;
    struct table_chunk index;
    bool unchecked; /* for fuzzers, which cannot guess checksums */
};

struct table_iter {
    const struct table_reader *table;
    struct table_place in_index, in_block;
    struct table_chunk block;
    uint64_t block_offset; /* of the one that is loaded */
    struct bytes last;     /* the last key of the block before */
};

/* Takes the file over, also when it fails. */
enum mst_code table_reader_open(struct table_reader *t, struct file_in *file,
                                bool unchecked, struct status *st) MUST_USE;
void table_reader_close(struct table_reader *t); /* accepts a zeroed one */

void table_iter_init(struct table_iter *it, const struct table_reader *t);
void table_iter_done(struct table_iter *it);
/* To the first entry whose key is not below this one; past the end is not an
 * error. */
enum mst_code table_iter_seek(struct table_iter *it, const void *key,
                              size_t key_len, struct status *st) MUST_USE;
enum mst_code table_iter_next(struct table_iter *it,
                              struct status *st) MUST_USE;

static inline bool table_iter_valid(const struct table_iter *it)
{
    return it->in_block.valid;
}

/* Until the next seek or next. */
static inline struct pb_in table_iter_key(const struct table_iter *it)
{
    return cursor_over(it->in_block.key.data, it->in_block.key.len);
}

static inline struct pb_in table_iter_value(const struct table_iter *it)
{
    return cursor_over(it->in_block.value, it->in_block.value_len);
}

#endif
