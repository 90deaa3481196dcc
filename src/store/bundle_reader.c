#include "store/bundle_reader.h"

#include "base/mem.h"

static enum mst_code corrupt(struct bundle_reader *r, enum mst_code code,
                             const char *detail, const char *cause,
                             struct status *st)
{
    return status_set(st, code,
                      "Unable to read file (%s). Perhaps the file is corrupt "
                      "or was produced by a newer version of TensorFlow with "
                      "format changes (%s)%s%s",
                      r->table.file.path, detail, cause ? ": " : "",
                      cause ? cause : "");
}

static enum mst_code check_header(struct bundle_reader *r, struct status *st)
{
    struct bundle_header *h = &r->header;

    if (h->shards < 1)
        return corrupt(r, MST_DATA_LOSS, "no shards", NULL, st);
    if (h->big_endian)
        return status_set(st, MST_UNIMPLEMENTED,
                          "Checkpoint %s was written on a big-endian machine; "
                          "such ones are not supported",
                          r->prefix);
    if (h->min_consumer > BUNDLE_VERSION)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Checkpoint min consumer version %d above current "
                          "version %d.  Please upgrade.",
                          h->min_consumer, BUNDLE_VERSION);
    if (h->refused)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Checkpoint disallows consumer version %d.  Please "
                          "upgrade: this version is likely buggy.",
                          BUNDLE_VERSION);
    return MST_OK;
}

/* Takes the index file over. */
static enum mst_code start(struct bundle_reader *r, struct file_in *file,
                           struct status *st)
{
    struct status cause = STATUS_INIT;
    enum mst_code rc;

    map_init(&r->files);
    table_iter_init(&r->it, &r->table);
    rc = table_reader_open(&r->table, file, r->unchecked, st);
    if (rc)
        return rc;
    rc = table_iter_seek(&r->it, "", 0, &cause);
    if (rc)
        return corrupt(r, rc, "failed to seek to header entry", cause.msg, st);
    if (!table_iter_valid(&r->it) || r->it.in_block.key.len)
        return corrupt(r, MST_DATA_LOSS, "failed to seek to header entry", NULL,
                       st);
    if (!bundle_header_parse(table_iter_value(&r->it), &r->header))
        return corrupt(r, MST_DATA_LOSS, "unable to parse header", NULL, st);
    return check_header(r, st);
}

enum mst_code bundle_reader_open(struct bundle_reader *r, const char *prefix,
                                 struct status *st)
{
    char *path = bundle_index_name(prefix);
    struct file_in file;
    enum mst_code rc;

    *r = (struct bundle_reader){ .prefix = mem_str(prefix) };
    rc = file_in_open(&file, path, st);
    if (!rc)
        rc = start(r, &file, st);
    if (rc)
        bundle_reader_close(r);
    mem_free(path);
    return rc;
}

enum mst_code bundle_reader_open_memory(struct bundle_reader *r,
                                        const void *index, size_t index_len,
                                        const void *data, size_t data_len,
                                        bool unchecked, struct status *st)
{
    struct file_in file;
    enum mst_code rc;

    *r = (struct bundle_reader){ .prefix = mem_str("memory"),
                                 .memory = data,
                                 .memory_len = data_len,
                                 .unchecked = unchecked };
    file_in_memory(&file, "memory.index", index, index_len);
    rc = start(r, &file, st);
    if (rc)
        bundle_reader_close(r);
    return rc;
}

void bundle_reader_close(struct bundle_reader *r)
{
    struct map_slot *slot;

    for (size_t at = 0; (slot = map_next(&r->files, &at));) {
        file_in_close(slot->value);
        mem_free(slot->value);
    }
    map_done(&r->files);
    table_iter_done(&r->it);
    table_reader_close(&r->table);
    mem_free(r->prefix);
    r->prefix = NULL;
}

/* ---- entries ---- */

static enum mst_code parse(struct bundle_reader *r, struct bundle_entry *ret,
                           struct status *st)
{
    struct pb_in key = table_iter_key(&r->it);
    struct bundle_entry e;
    int64_t count;

    if (!bundle_entry_parse(table_iter_value(&r->it), &e)) {
        bundle_entry_done(&e);
        return status_set(st, MST_DATA_LOSS,
                          "Entry for key %.*s not parseable.",
                          bundle_entry_shown(cursor_left(&key)), key.at);
    }
    if (!shape_count(MIN(e.ndim, TENSOR_RANK_MAX), e.dims, 1, &count)) {
        char text[SHAPE_TEXT_MAX];

        bundle_entry_done(&e);
        return status_set(
            st, MST_DATA_LOSS, "Invalid tensor shape: %.*s %s",
            bundle_entry_shown(cursor_left(&key)), key.at,
            shape_text(MIN(e.ndim, TENSOR_RANK_MAX), e.dims, text));
    }
    *ret = e;
    return MST_OK;
}

enum mst_code bundle_reader_find(struct bundle_reader *r, const void *key,
                                 size_t key_len, struct bundle_entry *ret,
                                 struct status *st)
{
    enum mst_code rc = table_iter_seek(&r->it, key, key_len, st);

    if (rc)
        return rc;
    if (!key_len || !table_iter_valid(&r->it) ||
        r->it.in_block.key.len != key_len ||
        memcmp(r->it.in_block.key.data, key, key_len))
        return status_set(st, MST_NOT_FOUND, "Key %.*s not found in checkpoint",
                          bundle_entry_shown(key_len),
                          (const char *)(key_len ? key : ""));
    return parse(r, ret, st);
}

enum mst_code bundle_reader_rewind(struct bundle_reader *r, struct status *st)
{
    return table_iter_seek(&r->it, "", 0, st);
}

enum mst_code bundle_reader_next(struct bundle_reader *r, struct pb_in *ret_key,
                                 struct bundle_entry *ret, struct status *st)
{
    enum mst_code rc = table_iter_next(&r->it, st);

    if (rc)
        return rc;
    *ret_key = cursor_over(NULL, 0);
    *ret = (struct bundle_entry){ 0 };
    if (!table_iter_valid(&r->it))
        return MST_OK;
    *ret_key = table_iter_key(&r->it);
    return parse(r, ret, st);
}

enum mst_code bundle_reader_file(struct bundle_reader *r, int shard,
                                 const struct file_in **ret, struct status *st)
{
    struct file_in *file = map_get_num(&r->files, (uint64_t)shard);
    enum mst_code rc = MST_OK;
    char *path;

    if (file) {
        *ret = file;
        return MST_OK;
    }
    if (shard < 0 || shard >= r->header.shards)
        return status_set(st, MST_DATA_LOSS,
                          "%s names shard %d, but has %d shards",
                          r->table.file.path, shard, r->header.shards);
    path = bundle_data_name(r->prefix, shard, r->header.shards);
    file = MEM_NEW(struct file_in);
    if (r->memory)
        file_in_memory(file, path, r->memory, r->memory_len);
    else
        rc = file_in_open(file, path, st);
    if (rc) {
        mem_free(file);
    } else {
        map_put_num(&r->files, (uint64_t)shard, file);
        *ret = file;
    }
    mem_free(path);
    return rc;
}
