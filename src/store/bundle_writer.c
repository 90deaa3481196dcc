#include "store/bundle_writer.h"

#include "base/crc32c.h"
#include "base/mem.h"
#include "store/bundle_strings.h"

enum mst_code bundle_writer_open(struct bundle_writer *w, const char *prefix,
                                 struct status *st)
{
    char *path = bundle_data_name(prefix, 0, 1);
    enum mst_code rc;

    *w = (struct bundle_writer){ .prefix = mem_str(prefix),
                                 .data = FILE_OUT_INIT };
    bundle_index_init(&w->index);
    rc = file_make_dirs(path, st);
    if (!rc)
        rc = file_out_open(&w->data, path, st);
    if (rc)
        bundle_writer_done(w);
    mem_free(path);
    return rc;
}

void bundle_writer_done(struct bundle_writer *w)
{
    file_out_abort(&w->data);
    bundle_index_done(&w->index);
    mem_free(w->prefix);
    w->prefix = NULL;
}

/* ---- tensors ---- */

/* Writes the bytes of t and describes them under key. */
static enum mst_code add(struct bundle_writer *w, const void *key,
                         size_t key_len, const struct tensor *t,
                         struct status *st)
{
    uint64_t offset = w->data.size;
    struct bundle_entry *e;
    enum mst_code rc;
    uint32_t crc;

    if (t->dtype == DT_STRING) {
        rc = bundle_strings_write(&w->data, t, &crc, st);
    } else {
        w->data.crc = 0;
        rc = file_out_write(&w->data, t->data, tensor_bytes(t), st);
        crc = w->data.crc;
    }
    if (rc)
        return rc;
    e = bundle_index_add(&w->index, key, key_len);
    e->dtype = t->dtype;
    e->ndim = t->ndim;
    memcpy(e->dims, t->dims, sizeof(e->dims));
    e->offset = offset;
    e->size = w->data.size - offset;
    e->crc = crc32c_mask(crc);
    return MST_OK;
}

static enum mst_code check(const char *name, size_t name_len,
                           const struct tensor *t, struct status *st)
{
    if (!name_len) /* the header's key */
        return status_set(st, MST_INVALID_ARGUMENT,
                          "A tensor without a name cannot be saved");
    if (t->dtype != DT_STRING && !dtype_is_plain((enum dtype)t->dtype))
        return status_set(st, MST_UNIMPLEMENTED,
                          "Saving data type %s not yet supported: tensor %.*s",
                          dtype_name(t->dtype), (int)name_len, name);
    return MST_OK;
}

static enum mst_code duplicate(const char *name, size_t name_len,
                               struct status *st)
{
    return status_set(st, MST_INVALID_ARGUMENT, "Adding duplicate key: %.*s",
                      (int)name_len, name);
}

enum mst_code bundle_writer_add(struct bundle_writer *w, const char *name,
                                size_t name_len, const struct tensor *t,
                                struct status *st)
{
    enum mst_code rc = check(name, name_len, t, st);

    if (rc)
        return rc;
    if (bundle_index_find(&w->index, name, name_len))
        return duplicate(name, name_len, st);
    return add(w, name, name_len, t, st);
}

/* The entry of the whole tensor, of which there may be slices already. */
static enum mst_code whole_entry(struct bundle_writer *w, const char *name,
                                 size_t name_len, const struct shape *whole,
                                 const struct tensor *t,
                                 struct bundle_entry **ret, struct status *st)
{
    struct bundle_entry *e = bundle_index_find(&w->index, name, name_len);

    if (!e) {
        e = bundle_index_add(&w->index, name, name_len);
        e->dtype = t->dtype;
        e->ndim = whole->ndim;
        memcpy(e->dims, whole->dims, sizeof(e->dims));
    } else if (!e->slices.len) {
        return duplicate(name, name_len, st);
    } else if (e->dtype != t->dtype || e->ndim != whole->ndim ||
               memcmp(e->dims, whole->dims,
                      (size_t)e->ndim * sizeof(e->dims[0]))) {
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Slices of tensor %.*s do not agree in its type or "
                          "shape",
                          (int)name_len, name);
    }
    *ret = e;
    return MST_OK;
}

enum mst_code bundle_writer_add_slice(struct bundle_writer *w, const char *name,
                                      size_t name_len,
                                      const struct shape *whole,
                                      const struct slice *slice,
                                      const struct tensor *t, struct status *st)
{
    size_t dims_size = (size_t)whole->ndim * sizeof(whole->dims[0]);
    enum mst_code rc = check(name, name_len, t, st);
    struct bytes key = { 0 };
    struct bundle_entry *e;
    struct slice resolved;

    if (!rc)
        rc = slice_resolve(slice, whole->ndim, whole->dims, &resolved, st);
    if (rc)
        return rc;
    /* A slice that is the whole needs no entry of its own. */
    if (!memcmp(resolved.length, whole->dims, dims_size))
        return bundle_writer_add(w, name, name_len, t, st);
    rc = whole_entry(w, name, name_len, whole, t, &e, st);
    if (rc)
        return rc;
    bundle_entry_add_slice(e, slice);
    slice_put_key(&key, name, name_len, slice);
    if (bundle_index_find(&w->index, key.data, key.len))
        rc = duplicate(name, name_len, st);
    else
        rc = add(w, key.data, key.len, t, st);
    bytes_done(&key);
    return rc;
}

enum mst_code bundle_writer_finish(struct bundle_writer *w, struct status *st)
{
    char *path = bundle_index_name(w->prefix);
    struct bundle_header header = { .shards = 1, .producer = BUNDLE_VERSION };
    struct file_out out = FILE_OUT_INIT;
    enum mst_code rc;

    /* The index is on the disk before the first name changes: a full disk is
     * noticed while nothing has happened yet. */
    rc = file_out_sync(&w->data, st);
    if (!rc)
        rc = file_out_open(&out, path, st);
    if (!rc)
        rc = bundle_index_write(&w->index, &header, &out, st);
    if (!rc)
        rc = file_out_sync(&out, st);
    if (!rc)
        rc = file_out_commit(&w->data, st);
    if (!rc)
        rc = file_out_commit(&out, st);
    if (!rc)
        file_sync_dir(path);
    file_out_abort(&out);
    mem_free(path);
    return rc;
}
