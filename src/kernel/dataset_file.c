/*
 * Datasets of files: lines, TFRecords, records of a fixed length. Files are
 * opened when their turn comes, and read on the thread that wants an element:
 * GetNext is an op that may block (OP_BLOCKING).
 * Compressed files are unpacked in memory, one at a time.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "kernel/dataset.h"
#include "kernel/types.h"
#include "kernel/unzip.h"
#include "store/record.h"

/* d->tensors[0] are the names; n[] header, record and footer bytes; format
 * is an enum unzip_format. */
struct file_iter {
    struct dataset_iter it;
    FILE *file; /* lines, fixed lengths */
    char *line;
    size_t line_room;
    int64_t left; /* records of a fixed length */
    struct record_reader records;
    struct text bytes; /* of a compressed file */
    bool open;
};

static void file_close(struct file_iter *f)
{
    if (f->file)
        fclose(f->file);
    if (f->open && !f->file)
        record_reader_close(&f->records);
    f->file = NULL;
    f->open = false;
}

static void file_iter_done(struct dataset_iter *it)
{
    struct file_iter *f = CONTAINER(it, struct file_iter, it);

    file_close(f);
    free(f->line);
    text_done(&f->bytes);
}

static enum unzip_format format_of(const struct file_iter *f)
{
    return (enum unzip_format)f->it.d->format;
}

static enum mst_code unpack(struct file_iter *f, const char *path)
{
    f->bytes.len = 0;
    return unzip_file(format_of(f), path, &f->bytes, f->it.c->st);
}

/* The next file: its path, to be freed. */
static enum mst_code next_path(struct dataset_iter *it, char **ret)
{
    const struct str *s = tensor_str(&it->d->tensors[0], it->at++);

    return file_path(s->data, s->len, ret, it->c->st);
}

static enum mst_code open_plain(struct file_iter *f)
{
    char *path;
    enum mst_code rc = next_path(&f->it, &path);

    if (rc)
        return rc;
    if (format_of(f) == UNZIP_NONE)
        f->file = fopen(path, "re");
    else if (!(rc = unpack(f, path)))
        f->file = fmemopen(f->bytes.data, f->bytes.len, "r");
    if (!rc && !f->file)
        rc = file_fail(f->it.c->st, path, errno);
    f->open = !rc;
    mem_free(path);
    return rc;
}

/* The element is that string. */
static enum mst_code put_string(struct dataset_iter *it, const void *data,
                                size_t len)
{
    enum mst_code rc;

    dataset_room(it, 1);
    rc = tensor_new_scalar(&it->out[0], DT_STRING, it->c->st);
    if (!rc)
        str_set(tensor_str(&it->out[0], 0), data, len);
    return rc;
}

static bool files_left(const struct dataset_iter *it)
{
    return it->at < it->d->tensors[0].count;
}

/* ---- lines ---- */

static enum mst_code lines_go(struct dataset_iter *it, enum mst_code got)
{
    struct file_iter *f = CONTAINER(it, struct file_iter, it);

    (void)got;
    for (;;) {
        ssize_t n;
        size_t len = 0;

        if (!f->open) {
            enum mst_code rc;

            if (!files_left(it))
                return dataset_end(it);
            rc = open_plain(f);
            if (rc)
                return rc;
        }
        n = getline(&f->line, &f->line_room, f->file);
        if (n < 0) {
            file_close(f);
            continue;
        }
        if (n && f->line[n - 1] == '\n')
            n--;
        for (ssize_t i = 0; i < n; i++)
            if (f->line[i] != '\r')
                f->line[len++] = f->line[i];
        return put_string(it, f->line, len);
    }
}

static const struct dataset_kind lines_kind = { sizeof(struct file_iter),
                                                lines_go, file_iter_done,
                                                NULL };

/* ---- TFRecords ---- */

static enum mst_code open_records(struct file_iter *f)
{
    char *path;
    enum mst_code rc = next_path(&f->it, &path);

    if (rc)
        return rc;
    if (format_of(f) == UNZIP_NONE) {
        rc = record_reader_open(&f->records, path, f->it.c->st);
    } else if (!(rc = unpack(f, path))) {
        f->records = (struct record_reader){ 0 };
        file_in_memory(&f->records.file, path, f->bytes.data, f->bytes.len);
    }
    f->open = !rc;
    mem_free(path);
    return rc;
}

static enum mst_code records_go(struct dataset_iter *it, enum mst_code got)
{
    struct file_iter *f = CONTAINER(it, struct file_iter, it);

    (void)got;
    for (;;) {
        struct pb_in record;
        enum mst_code rc = MST_OK;

        if (!f->open && !files_left(it))
            return dataset_end(it);
        if (!f->open)
            rc = open_records(f);
        if (!rc)
            rc = record_reader_next(&f->records, &record, it->c->st);
        if (!rc)
            return put_string(it, record.at, (size_t)(record.end - record.at));
        file_close(f); /* a damaged file ends there */
        if (rc != MST_OUT_OF_RANGE)
            return rc;
        status_clear(it->c->st);
    }
}

static const struct dataset_kind records_kind = { sizeof(struct file_iter),
                                                  records_go, file_iter_done,
                                                  NULL };

/* ---- fixed lengths ---- */

static enum mst_code open_fixed(struct file_iter *f)
{
    const int64_t *n = f->it.d->n;
    long size;
    int64_t body;
    enum mst_code rc = open_plain(f);

    if (rc)
        return rc;
    if (fseek(f->file, 0, SEEK_END) || (size = ftell(f->file)) < 0)
        return status_set(f->it.c->st, MST_UNKNOWN, "The file has no size");
    body = size - n[0] - n[2];
    if (body < 0 || body % n[1]) {
        const struct str *s = tensor_str(&f->it.d->tensors[0], f->it.at - 1);

        return status_set(f->it.c->st, MST_INVALID_ARGUMENT,
                          "Excluding the header (%lld bytes) and footer (%lld "
                          "bytes), input file \"%.*s\" has body length %lld "
                          "bytes, which is not an exact multiple of the record "
                          "length (%lld bytes).",
                          (long long)n[0], (long long)n[2], (int)s->len,
                          s->data, (long long)body, (long long)n[1]);
    }
    f->left = body / n[1];
    if (fseek(f->file, (long)n[0], SEEK_SET))
        return status_set(f->it.c->st, MST_UNKNOWN, "The file cannot be read");
    return MST_OK;
}

static enum mst_code fixed_go(struct dataset_iter *it, enum mst_code got)
{
    struct file_iter *f = CONTAINER(it, struct file_iter, it);
    size_t want = (size_t)it->d->n[1];

    (void)got;
    while (!f->open || !f->left) {
        enum mst_code rc;

        file_close(f);
        if (!files_left(it))
            return dataset_end(it);
        rc = open_fixed(f);
        if (rc) {
            file_close(f);
            return rc;
        }
    }
    if (f->line_room < want) {
        f->line = realloc(f->line, want);
        f->line_room = f->line ? want : 0;
    }
    if (!f->line || fread(f->line, 1, want, f->file) != want) {
        f->left = 0;
        return status_set(it->c->st, MST_DATA_LOSS, "The file was cut");
    }
    f->left--;
    return put_string(it, f->line, want);
}

static const struct dataset_kind fixed_kind = { sizeof(struct file_iter),
                                                fixed_go, file_iter_done,
                                                NULL };

/* ---- ops ---- */

static enum mst_code files_make(struct op_ctx *c,
                                const struct dataset_kind *kind,
                                int compression, struct dataset **ret)
{
    const struct tensor *names = op_in(c, 0);
    enum unzip_format format = UNZIP_NONE;
    struct dataset *d;

    if (names->ndim > 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "`filenames` must be a scalar or a vector.");
    if (compression) {
        const struct tensor *t = op_in(c, compression);
        const struct str *s = t->count ? tensor_str(t, 0) : NULL;

        if (t->ndim || !s ||
            !unzip_format_of(
                (struct attr_text){ s->data ? s->data : "", s->len }, &format))
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "`compression_type` must be \"\", \"ZLIB\" or "
                           "\"GZIP\".");
    }
    d = dataset_new(kind, 0, 1);
    d->tensors[0] = tensor_ref(names);
    d->format = format;
    *ret = d;
    return MST_OK;
}

static enum mst_code lines_run(struct op_ctx *c)
{
    struct dataset *d;
    enum mst_code rc = files_make(c, &lines_kind, 1, &d);

    return rc ? rc : dataset_put(c, d);
}

static enum mst_code records_run(struct op_ctx *c)
{
    struct dataset *d;
    enum mst_code rc;

    if (c->node->in_count > 3 && op_in(c, 3)->count)
        return op_fail(c, MST_UNIMPLEMENTED,
                       "Files are read from their beginning only");
    rc = files_make(c, &records_kind, 1, &d);

    return rc ? rc : dataset_put(c, d);
}

static enum mst_code fixed_run(struct op_ctx *c)
{
    static const char *const names[] = { "header_bytes", "record_bytes",
                                         "footer_bytes" };
    struct dataset *d;
    int64_t n[3];
    enum mst_code rc = MST_OK;

    for (int i = 0; i < 3 && !rc; i++) {
        rc = dataset_number(c, 1 + i, names[i], &n[i]);
        if (!rc && (n[i] < (i == 1) || n[i] > INT32_MAX))
            rc = op_fail(c, MST_INVALID_ARGUMENT, "`%s` must be %s 0", names[i],
                         i == 1 ? ">" : ">=");
    }
    if (!rc)
        rc = files_make(c, &fixed_kind, c->node->in_count > 5 ? 5 : 0, &d);
    if (rc)
        return rc;
    memcpy(d->n, n, sizeof(n));
    return dataset_put(c, d);
}

#define FILES(stem, text, in_, fn)                                             \
    const struct op_def def_##stem = {                                         \
        .name = text,                                                          \
        .in = "filenames: string, " in_,                                       \
        .out = "handle: variant",                                              \
        .attr = "metadata: string = ''",                                       \
        .flags = OP_STATEFUL,                                                  \
        .kernel = (const struct op_kernel[]){ { DT_ANY, fn }, { 0 } },         \
    };
#define FIXED_IN                                                               \
    "header_bytes: int64, record_bytes: int64, footer_bytes: int64, "          \
    "buffer_size: int64"

FILES(text_line_dataset, "TextLineDataset",
      "compression_type: string, buffer_size: int64", lines_run)
FILES(tf_record_dataset, "TFRecordDataset",
      "compression_type: string, buffer_size: int64", records_run)
FILES(tf_record_dataset_v2, "TFRecordDatasetV2",
      "compression_type: string, buffer_size: int64, byte_offsets: int64",
      records_run)
FILES(fixed_length_record_dataset, "FixedLengthRecordDataset", FIXED_IN,
      fixed_run)
FILES(fixed_length_record_dataset_v2, "FixedLengthRecordDatasetV2",
      FIXED_IN ", compression_type: string", fixed_run)
