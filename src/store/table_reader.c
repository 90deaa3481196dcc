#include "store/table_reader.h"

#include "base/crc32c.h"
#include "store/snappy.h"
#include "store/table_writer.h"

/* No writer makes larger blocks: a block ends with the entry that fills it, and
 * an entry is one message. */
#define BLOCK_MAX (((uint64_t)1 << 31) + (1u << 20))

static enum mst_code damaged(const struct table_reader *t, const char *what,
                             struct status *st)
{
    return status_set(st, MST_DATA_LOSS, "%s: %s", what, t->file.path);
}

/* ---- blocks ---- */

static void chunk_done(struct table_chunk *c)
{
    buffer_unref(c->buf);
    *c = (struct table_chunk){ 0 };
}

/* Takes buf over. */
static enum mst_code chunk_set(const struct table_reader *t,
                               struct table_chunk *c, struct buffer *buf,
                               size_t len, struct status *st)
{
    uint32_t count = len >= 4 ? load_u32(buf->data + len - 4) : 0;

    if (len < 4 || count > (len - 4) / 4) {
        buffer_unref(buf);
        return damaged(t, "bad block contents", st);
    }
    *c = (struct table_chunk){ .buf = buf,
                               .data = buf->data,
                               .entries = len - 4 - (size_t)count * 4,
                               .restarts = count };
    return MST_OK;
}

static enum mst_code chunk_unpack(const struct table_reader *t,
                                  struct table_chunk *c, struct buffer *packed,
                                  size_t len, struct status *st)
{
    struct buffer *buf = NULL;
    enum mst_code rc;
    size_t size;

    if (!snappy_length(packed->data, len, &size) || size > BLOCK_MAX)
        rc = damaged(t, "corrupted compressed block contents", st);
    else if (!(buf = buffer_new(size)))
        rc = status_set(st, MST_RESOURCE_EXHAUSTED,
                        "No memory for a block of %zu bytes: %s", size,
                        t->file.path);
    else if (!snappy_unpack(packed->data, len, buf->data, size))
        rc = damaged(t, "corrupted compressed block contents", st);
    else
        rc = chunk_set(t, c, buffer_ref(buf), size, st);
    buffer_unref(buf);
    buffer_unref(packed);
    return rc;
}

static enum mst_code chunk_load(const struct table_reader *t,
                                struct table_chunk *c, uint64_t offset,
                                uint64_t size, struct status *st)
{
    uint64_t limit = t->file.size;
    struct buffer *buf;
    enum mst_code rc;
    uint32_t crc;

    if (offset > limit || limit - offset < TABLE_TRAILER ||
        size > limit - offset - TABLE_TRAILER || size > BLOCK_MAX)
        return damaged(t, "truncated block read", st);
    buf = buffer_new((size_t)size + TABLE_TRAILER);
    if (!buf)
        return status_set(st, MST_RESOURCE_EXHAUSTED,
                          "No memory for a block of %llu bytes: %s",
                          (unsigned long long)size, t->file.path);
    rc = file_in_read(&t->file, offset, buf->data, (size_t)size + TABLE_TRAILER,
                      st);
    if (rc) {
        buffer_unref(buf);
        return rc;
    }
    crc = crc32c_unmask(load_u32(buf->data + size + 1));
    if (!t->unchecked && crc != crc32c(0, buf->data, (size_t)size + 1)) {
        buffer_unref(buf);
        return damaged(t, "block checksum mismatch", st);
    }
    switch (buf->data[size]) {
    case 0:
        return chunk_set(t, c, buf, (size_t)size, st);
    case 1:
        return chunk_unpack(t, c, buf, (size_t)size, st);
    default:
        buffer_unref(buf);
        return damaged(t, "bad block type", st);
    }
}

/* ---- a place in a block ---- */

static void place_start(struct table_place *p, const struct table_chunk *c,
                        size_t at)
{
    p->chunk = c;
    p->next = at;
    p->key.len = 0;
    p->valid = false;
    p->first = true;
}

/* To the next entry; p->valid says whether there was one. False: damaged. */
static bool place_next(struct table_place *p)
{
    const struct table_chunk *c = p->chunk;
    struct pb_in at = cursor_over(c->data + p->next, c->entries - p->next);
    uint32_t shared, fresh, value_len;
    const uint8_t *key;

    p->valid = false;
    if (at.at == at.end)
        return true;
    shared = cursor_varint32(&at);
    fresh = cursor_varint32(&at);
    value_len = cursor_varint32(&at);
    key = cursor_bytes(&at, fresh);
    p->value = cursor_bytes(&at, value_len);
    if (at.bad || shared > p->key.len)
        return false;
    if (!p->first && table_compare(p->key.len ? p->key.data + shared : NULL,
                                   p->key.len - shared, key, fresh) >= 0)
        return false;
    p->first = false;
    p->key.len = shared;
    bytes_put(&p->key, key, fresh);
    p->value_len = value_len;
    p->next = (size_t)(at.at - c->data);
    p->valid = true;
    return true;
}

/* To the first entry at or after a restart. */
static bool place_restart(struct table_place *p, const struct table_chunk *c,
                          uint32_t i)
{
    uint32_t at = load_u32(c->data + c->entries + (size_t)i * 4);

    if (at > c->entries)
        return false;
    place_start(p, c, at);
    return place_next(p);
}

/* To the first entry whose key is not below this one. */
static bool place_seek(struct table_place *p, const struct table_chunk *c,
                       const void *key, size_t key_len)
{
    uint32_t low = 0, high = c->restarts;

    /* The last restart whose key is below: low, unless it is none. */
    while (low + 1 < high) {
        uint32_t mid = low + (high - low) / 2;

        if (!place_restart(p, c, mid) || !p->valid)
            return false;
        if (table_compare(p->key.data, p->key.len, key, key_len) < 0)
            low = mid;
        else
            high = mid;
    }
    place_start(p, c, 0);
    if (c->restarts && !place_restart(p, c, low))
        return false;
    if (!c->restarts && !place_next(p))
        return false;
    while (p->valid && table_compare(p->key.data, p->key.len, key, key_len) < 0)
        if (!place_next(p))
            return false;
    return true;
}

/* ---- the file ---- */

enum mst_code table_reader_open(struct table_reader *t, struct file_in *file,
                                bool unchecked, struct status *st)
{
    uint8_t footer[TABLE_FOOTER];
    uint64_t offset, size;
    struct pb_in c;
    enum mst_code rc;

    *t = (struct table_reader){ .file = *file, .unchecked = unchecked };
    *file = (struct file_in){ .fd = -1 };
    rc = t->file.size < TABLE_FOOTER
             ? damaged(t, "file is too short to be an sstable", st)
             : file_in_read(&t->file, t->file.size - TABLE_FOOTER, footer,
                            TABLE_FOOTER, st);
    if (rc)
        goto out;
    c = cursor_over(footer + TABLE_FOOTER - 8, 8);
    if (cursor_u64(&c) != TABLE_MAGIC) {
        rc = damaged(t, "not an sstable (bad magic number)", st);
        goto out;
    }
    c = cursor_over(footer, TABLE_FOOTER - 8);
    cursor_varint(&c); /* the meta block: nothing in it is needed */
    cursor_varint(&c);
    offset = cursor_varint(&c);
    size = cursor_varint(&c);
    rc = c.bad ? damaged(t, "bad block handle", st)
               : chunk_load(t, &t->index, offset, size, st);
out:
    if (rc)
        table_reader_close(t);
    return rc;
}

void table_reader_close(struct table_reader *t)
{
    chunk_done(&t->index);
    file_in_close(&t->file);
}

void table_iter_init(struct table_iter *it, const struct table_reader *t)
{
    *it = (struct table_iter){ .table = t };
}

void table_iter_done(struct table_iter *it)
{
    chunk_done(&it->block);
    bytes_done(&it->in_index.key);
    bytes_done(&it->in_block.key);
    bytes_done(&it->last);
}

/* Loads the data block that the index place names. */
static enum mst_code load(struct table_iter *it, struct status *st)
{
    struct pb_in c = cursor_over(it->in_index.value, it->in_index.value_len);
    uint64_t offset = cursor_varint(&c), size = cursor_varint(&c);

    it->in_block.valid = false;
    if (c.bad)
        return damaged(it->table, "bad block handle", st);
    if (it->block.buf && it->block_offset == offset)
        return MST_OK;
    chunk_done(&it->block);
    it->block_offset = offset;
    return chunk_load(it->table, &it->block, offset, size, st);
}

/* While the place is past its block's end: to the next block's start. */
static enum mst_code settle(struct table_iter *it, struct status *st)
{
    struct table_place *p = &it->in_block;

    while (!p->valid) {
        enum mst_code rc;

        it->last.len = 0;
        bytes_put(&it->last, p->key.data, p->key.len);
        if (!place_next(&it->in_index))
            return damaged(it->table, "bad entry in block", st);
        if (!it->in_index.valid)
            return MST_OK;
        rc = load(it, st);
        if (rc)
            return rc;
        place_start(p, &it->block, 0);
        if (!place_next(p) ||
            (p->valid && table_compare(it->last.data, it->last.len, p->key.data,
                                       p->key.len) >= 0)) {
            p->valid = false;
            return damaged(it->table, "bad entry in block", st);
        }
    }
    return MST_OK;
}

enum mst_code table_iter_seek(struct table_iter *it, const void *key,
                              size_t key_len, struct status *st)
{
    enum mst_code rc;

    it->in_block.valid = false;
    if (!place_seek(&it->in_index, &it->table->index, key, key_len))
        return damaged(it->table, "bad entry in block", st);
    if (!it->in_index.valid)
        return MST_OK;
    rc = load(it, st);
    if (rc)
        return rc;
    if (!place_seek(&it->in_block, &it->block, key, key_len)) {
        it->in_block.valid = false;
        return damaged(it->table, "bad entry in block", st);
    }
    return settle(it, st);
}

enum mst_code table_iter_next(struct table_iter *it, struct status *st)
{
    CHECK(it->in_block.valid);
    if (!place_next(&it->in_block))
        return damaged(it->table, "bad entry in block", st);
    return settle(it, st);
}
