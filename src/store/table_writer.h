/*
 * Writes a table: a sorted list of keys and values in LevelDB's file format,
 * byte for byte as TensorFlow does (uncompressed, blocks of 256 KiB).
 *
 * A block is entries, each sharing a prefix with the one before it; every 16th
 * starts afresh, and where those are stands at the block's end. The file is
 * data blocks, an empty meta block, an index block with one entry a data block,
 * and a footer of 48 bytes. docs of the format: store/README.md.
 */
#ifndef STORE_TABLE_WRITER_H
#define STORE_TABLE_WRITER_H

#include "store/cursor.h"
#include "store/file.h"

#define TABLE_MAGIC         0xdb4775248b80fb57ull
#define TABLE_FOOTER        48
#define TABLE_TRAILER       5 /* after each block: its kind, its checksum */
#define TABLE_BLOCK_DEFAULT (256u << 10)

struct table_block {
    struct bytes data;
    struct bytes restarts; /* u32 each */
    struct bytes last_key;
    int since_restart, interval;
};

struct table_writer {
    struct file_out *out; /* the owner's */
    size_t block_size;
    struct table_block data, index;
    struct bytes last_key; /* of the whole table */
    bool any;              /* it has one */
    /* The index entry of a finished block waits for the next key, so that its
     * own can be the shortest one between the two. */
    bool pending;
    uint64_t pending_offset, pending_size;
};

void table_writer_init(struct table_writer *w, struct file_out *out);
void table_writer_done(struct table_writer *w);
/* Keys rise; a mistake in that is ours (CHECK). */
enum mst_code table_writer_add(struct table_writer *w, const void *key,
                               size_t key_len, const void *value,
                               size_t value_len, struct status *st) MUST_USE;
/* Writes what is left; the owner then commits the file. */
enum mst_code table_writer_finish(struct table_writer *w,
                                  struct status *st) MUST_USE;

/* Order of keys: bytewise, a prefix before what it is a prefix of. */
int table_compare(const void *a, size_t a_len, const void *b, size_t b_len);

#endif
