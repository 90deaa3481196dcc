#include "store/table_writer.h"

#include "base/crc32c.h"

int table_compare(const void *a, size_t a_len, const void *b, size_t b_len)
{
    size_t n = MIN(a_len, b_len);
    int r = n ? memcmp(a, b, n) : 0;

    return r ? r : (a_len > b_len) - (a_len < b_len);
}

/* ---- a block ---- */

static void block_reset(struct table_block *b)
{
    b->data.len = b->restarts.len = b->last_key.len = 0;
    b->since_restart = 0;
    bytes_u32(&b->restarts, 0);
}

static void block_done(struct table_block *b)
{
    bytes_done(&b->data);
    bytes_done(&b->restarts);
    bytes_done(&b->last_key);
}

/* How large it is going to be, with restarts and their count. */
static size_t block_size(const struct table_block *b)
{
    return b->data.len + b->restarts.len + 4;
}

static void block_add(struct table_block *b, const void *key, size_t key_len,
                      const void *value, size_t value_len)
{
    size_t shared = 0, limit = MIN(key_len, b->last_key.len);
    const uint8_t *k = key_len ? key : (const uint8_t *)"";

    if (b->since_restart == b->interval) {
        bytes_u32(&b->restarts, (uint32_t)b->data.len);
        b->since_restart = 0;
    } else {
        while (shared < limit && k[shared] == b->last_key.data[shared])
            shared++;
    }
    bytes_varint(&b->data, shared);
    bytes_varint(&b->data, key_len - shared);
    bytes_varint(&b->data, value_len);
    bytes_put(&b->data, k + shared, key_len - shared);
    bytes_put(&b->data, value, value_len);
    b->last_key.len = shared;
    bytes_put(&b->last_key, k + shared, key_len - shared);
    b->since_restart++;
}

/* ---- the file ---- */

void table_writer_init(struct table_writer *w, struct file_out *out)
{
    *w = (struct table_writer){ .out = out, .block_size = TABLE_BLOCK_DEFAULT };
    w->data.interval = 16;
    w->index.interval = 1;
    block_reset(&w->data);
    block_reset(&w->index);
}

void table_writer_done(struct table_writer *w)
{
    block_done(&w->data);
    block_done(&w->index);
    bytes_done(&w->last_key);
}

/* Writes the block with its trailer, empties it, and says where it lies. */
static enum mst_code write_block(struct table_writer *w, struct table_block *b,
                                 uint64_t *ret_offset, uint64_t *ret_size,
                                 struct status *st)
{
    uint8_t trailer[TABLE_TRAILER] = { 0 };
    enum mst_code rc;
    uint32_t crc;

    bytes_put(&b->data, b->restarts.data, b->restarts.len);
    bytes_u32(&b->data, (uint32_t)(b->restarts.len / 4));
    crc = crc32c(0, b->data.data, b->data.len);
    crc = crc32c_mask(crc32c(crc, trailer, 1));
    memcpy(trailer + 1, &crc, 4);
    *ret_offset = w->out->size;
    *ret_size = b->data.len;
    rc = file_out_write(w->out, b->data.data, b->data.len, st);
    if (!rc)
        rc = file_out_write(w->out, trailer, sizeof(trailer), st);
    block_reset(b);
    return rc;
}

static enum mst_code flush_data(struct table_writer *w, struct status *st)
{
    enum mst_code rc;

    if (!w->data.data.len)
        return MST_OK;
    rc = write_block(w, &w->data, &w->pending_offset, &w->pending_size, st);
    w->pending = !rc;
    return rc;
}

/*
 * The key that stands for a block in the index: not below its last key, below
 * the first one after it, and short. next is NULL after the last block.
 */
static size_t separate(uint8_t *last, size_t last_len, const uint8_t *next,
                       size_t next_len)
{
    size_t i = 0;

    if (!next) {
        while (i < last_len && last[i] == 0xff)
            i++;
        if (i == last_len)
            return last_len;
        last[i]++;
        return i + 1;
    }
    while (i < last_len && i < next_len && last[i] == next[i])
        i++;
    if (i < last_len && i < next_len && last[i] < 0xff &&
        last[i] + 1 < next[i]) {
        last[i]++;
        return i + 1;
    }
    return last_len;
}

/* Spoils w->last_key. */
static void add_index(struct table_writer *w, const void *next, size_t next_len)
{
    struct bytes *last = &w->last_key, handle = { 0 };

    last->len = separate(last->data, last->len, next, next_len);
    bytes_varint(&handle, w->pending_offset);
    bytes_varint(&handle, w->pending_size);
    block_add(&w->index, last->data, last->len, handle.data, handle.len);
    bytes_done(&handle);
    w->pending = false;
}

enum mst_code table_writer_add(struct table_writer *w, const void *key,
                               size_t key_len, const void *value,
                               size_t value_len, struct status *st)
{
    CHECK(!w->any ||
          table_compare(w->last_key.data, w->last_key.len, key, key_len) < 0);
    /* An entry of twice a block's size gets a block of its own. */
    if (w->any && key_len + value_len >= 2 * w->block_size) {
        enum mst_code rc = flush_data(w, st);

        if (rc)
            return rc;
    }
    if (w->pending)
        add_index(w, key, key_len);
    block_add(&w->data, key, key_len, value, value_len);
    w->last_key.len = 0;
    bytes_put(&w->last_key, key, key_len);
    w->any = true;
    if (block_size(&w->data) >= w->block_size)
        return flush_data(w, st);
    return MST_OK;
}

enum mst_code table_writer_finish(struct table_writer *w, struct status *st)
{
    uint64_t meta[2], index[2], magic = TABLE_MAGIC;
    struct table_block empty = { .interval = 1 };
    struct bytes footer = { 0 };
    enum mst_code rc;

    block_reset(&empty);
    rc = flush_data(w, st);
    if (!rc)
        rc = write_block(w, &empty, &meta[0], &meta[1], st);
    if (rc)
        goto out;
    if (w->pending)
        add_index(w, NULL, 0);
    rc = write_block(w, &w->index, &index[0], &index[1], st);
    if (rc)
        goto out;
    bytes_varint(&footer, meta[0]);
    bytes_varint(&footer, meta[1]);
    bytes_varint(&footer, index[0]);
    bytes_varint(&footer, index[1]);
    while (footer.len < TABLE_FOOTER - 8)
        bytes_u8(&footer, 0);
    bytes_u64(&footer, magic);
    rc = file_out_write(w->out, footer.data, footer.len, st);
out:
    bytes_done(&footer);
    block_done(&empty);
    return rc;
}
