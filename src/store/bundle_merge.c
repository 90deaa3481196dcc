/*
 * The order of events makes a failure harmless for as long as it can: first
 * all indexes are read and checked, then the merged one is written and synced
 * under a temporary name; only then are files renamed, the index last.
 */
#include "store/bundle_merge.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/mem.h"
#include "store/bundle_index.h"
#include "store/bundle_reader.h"

struct merge {
    struct bundle_index index;
    struct map shard_ids; /* path of a data file -> its new number + 1 */
    char **paths;         /* of the data files, by their new numbers */
    int count, room;
    bool any; /* a bundle has been read, of this version: */
    struct bundle_header header;
};

static int shard_id(struct merge *m, const char *prefix, int shard, int shards)
{
    char *path = bundle_data_name(prefix, shard, shards);
    uintptr_t id = (uintptr_t)map_get_str(&m->shard_ids, path);

    if (id) {
        mem_free(path);
        return (int)id - 1;
    }
    *MEM_PUSH(m->paths, m->count, m->room) = path;
    map_put_str(&m->shard_ids, path, (void *)(uintptr_t)m->count);
    return m->count - 1;
}

static enum mst_code
merge_header(struct merge *m, const struct bundle_header *h, struct status *st)
{
    if (m->any && (m->header.producer != h->producer ||
                   m->header.min_consumer != h->min_consumer))
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Merging bundles with different format versions: "
                          "merged %d vs. curr %d",
                          m->header.producer, h->producer);
    m->any = true;
    m->header = *h;
    return MST_OK;
}

/* The slices of a partitioned tensor that other shards have parts of. */
static enum mst_code merge_slices(struct bundle_entry *have,
                                  const struct bundle_entry *e,
                                  struct pb_in key, struct status *st)
{
    int len = bundle_entry_shown(cursor_left(&key));

    if (!e->slices.len)
        return status_set(st, MST_INTERNAL,
                          "Duplicate tensor keyed by %.*s; attempting to merge "
                          "in a non-slice bundle entry",
                          len, key.at);
    if (have->dtype != e->dtype || have->ndim != e->ndim ||
        memcmp(have->dims, e->dims, sizeof(e->dims)))
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Slices of tensor %.*s do not agree in its type or "
                          "shape",
                          len, key.at);
    bytes_put(&have->slices, e->slices.data, e->slices.len);
    return MST_OK;
}

/* Takes over what e owns. */
static enum mst_code merge_entry(struct merge *m, const struct bundle_reader *r,
                                 struct pb_in key, struct bundle_entry *e,
                                 struct status *st)
{
    struct bundle_entry *have =
        bundle_index_find(&m->index, key.at, cursor_left(&key));
    int len = bundle_entry_shown(cursor_left(&key));
    enum mst_code rc = MST_OK;

    if (e->shard < 0 || e->shard >= r->header.shards)
        rc = status_set(st, MST_DATA_LOSS,
                        "%s.index names shard %d, but has %d shards", r->prefix,
                        e->shard, r->header.shards);
    else if (e->ndim > TENSOR_RANK_MAX)
        rc = status_set(st, MST_UNIMPLEMENTED,
                        "Tensors of rank %d are not supported, only up to %d: "
                        "%.*s",
                        e->ndim, TENSOR_RANK_MAX, len, key.at);
    else if (have && !have->slices.len)
        rc = status_set(st, MST_INVALID_ARGUMENT,
                        "Duplicate tensor keyed by %.*s encountered, when "
                        "merging prefix: %s",
                        len, key.at, r->prefix);
    else if (have)
        rc = merge_slices(have, e, key, st);
    if (rc || have) {
        bundle_entry_done(e);
        return rc;
    }
    e->shard = shard_id(m, r->prefix, e->shard, r->header.shards);
    *bundle_index_add(&m->index, key.at, cursor_left(&key)) = *e;
    return MST_OK;
}

static enum mst_code merge_one(struct merge *m, const char *prefix,
                               struct status *st)
{
    struct bundle_reader r;
    enum mst_code rc;

    rc = bundle_reader_open(&r, prefix, st);
    if (rc)
        return rc;
    rc = merge_header(m, &r.header, st);
    if (!rc)
        rc = bundle_reader_rewind(&r, st);
    while (!rc) {
        struct bundle_entry e;
        struct pb_in key;

        rc = bundle_reader_next(&r, &key, &e, st);
        if (rc || !cursor_left(&key))
            break;
        rc = merge_entry(m, &r, key, &e, st);
    }
    bundle_reader_close(&r);
    return rc;
}

static enum mst_code merge_all(struct merge *m, char *const *prefixes,
                               int count, bool allow_missing, struct status *st)
{
    for (int i = 0; i < count; i++) {
        char *path = bundle_index_name(prefixes[i]);
        bool there = file_exists(path);
        enum mst_code rc = MST_OK;

        mem_free(path);
        if (there)
            rc = merge_one(m, prefixes[i], st);
        else if (!allow_missing)
            rc = status_set(st, MST_INVALID_ARGUMENT,
                            "allow_missing_files was set to false and %s did "
                            "not exist.NOT_FOUND: %s not found",
                            prefixes[i], prefixes[i]);
        if (rc)
            return rc;
    }
    if (!m->any)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "At least one prefix checkpoint file must exist, but "
                          "none existed.");
    return MST_OK;
}

static enum mst_code rename_data(const struct merge *m, const char *prefix,
                                 struct status *st)
{
    enum mst_code rc = MST_OK;

    for (int i = 0; i < m->count; i++)
        if (!file_exists(m->paths[i]))
            return file_fail(st, m->paths[i], ENOENT);
    for (int i = 0; i < m->count && !rc; i++) {
        char *path = bundle_data_name(prefix, i, m->count);

        if (rename(m->paths[i], path))
            rc = file_fail(st, m->paths[i], errno);
        mem_free(path);
    }
    return rc;
}

/* What the shards leave behind: their indexes, perhaps their directories. */
static void clean(char *const *prefixes, int count, const char *merged_prefix,
                  bool delete_dirs)
{
    size_t len = file_dir_len(merged_prefix);

    for (int i = 0; i < count; i++) {
        char *path = bundle_index_name(prefixes[i]);

        if (strcmp(prefixes[i], merged_prefix))
            (void)unlink(path);
        mem_free(path);
    }
    for (int i = 0; i < count && delete_dirs; i++)
        if (file_dir_len(prefixes[i]) != len ||
            strncmp(prefixes[i], merged_prefix, len))
            file_remove_dir(prefixes[i]);
}

enum mst_code bundle_merge(char *const *prefixes, int count,
                           const char *merged_prefix,
                           struct bundle_merge_options options,
                           struct status *st)
{
    char *path = bundle_index_name(merged_prefix);
    struct file_out out = FILE_OUT_INIT;
    struct merge m = { 0 };
    enum mst_code rc;

    bundle_index_init(&m.index);
    map_init(&m.shard_ids);
    rc = merge_all(&m, prefixes, count, options.allow_missing, st);
    if (!rc)
        rc = file_make_dirs(path, st);
    if (!rc)
        rc = file_out_open(&out, path, st);
    m.header.shards = m.count;
    if (!rc)
        rc = bundle_index_write(&m.index, &m.header, &out, st);
    if (!rc)
        rc = file_out_sync(&out, st);
    if (!rc)
        rc = rename_data(&m, merged_prefix, st);
    if (!rc)
        rc = file_out_commit(&out, st);
    if (!rc) {
        file_sync_dir(path);
        clean(prefixes, count, merged_prefix, options.delete_dirs);
    }
    file_out_abort(&out);
    for (int i = 0; i < m.count; i++)
        mem_free(m.paths[i]);
    mem_free(m.paths);
    map_done(&m.shard_ids);
    bundle_index_done(&m.index);
    mem_free(path);
    return rc;
}
