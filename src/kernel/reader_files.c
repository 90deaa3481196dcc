/*
 * The kinds of readers: what a record of a file is. Names of records are the
 * file's name, a colon, and a number that TensorFlow's readers count.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "kernel/reader.h"

#define RECORD_HEAD 12

static void close_nothing(struct reader *r)
{
    (void)r;
}

static enum mst_code open_nothing(struct reader *r, struct status *st)
{
    (void)r;
    (void)st;
    return MST_OK;
}

static void name_record(const struct reader *r, struct text *key, int64_t n)
{
    text_add(key, r->work, r->work_len);
    text_addf(key, ":%lld", (long long)n);
}

static enum mst_code path_of(const struct reader *r, char **ret,
                             struct status *st)
{
    return file_path(r->work, r->work_len, ret, st);
}

/* All bytes of the file, decompressed, into r->bytes. */
static enum mst_code load_file(struct reader *r, struct status *st)
{
    char *path;
    enum mst_code rc = path_of(r, &path, st);

    if (rc)
        return rc;
    r->bytes.len = 0;
    rc = unzip_file(r->config.format, path, &r->bytes, st);
    mem_free(path);
    return rc;
}

/* ---- the name itself; the whole file ---- */

static enum mst_code read_identity(struct reader *r, struct reader_record *ret,
                                   struct status *st)
{
    (void)st;
    text_add(&ret->key, r->work, r->work_len);
    text_add(&ret->value, r->work, r->work_len);
    ret->produced = ret->at_end = true;
    return MST_OK;
}

const struct reader_kind reader_identity = {
    .name = "IdentityReader",
    .open = open_nothing,
    .read = read_identity,
    .close = close_nothing,
    .keeps_state = true,
};

static enum mst_code
read_whole_file(struct reader *r, struct reader_record *ret, struct status *st)
{
    enum mst_code rc = load_file(r, st);

    if (rc)
        return rc;
    text_add(&ret->key, r->work, r->work_len);
    ret->value = r->bytes;
    r->bytes = (struct text){ 0 };
    ret->produced = ret->at_end = true;
    return MST_OK;
}

const struct reader_kind reader_whole_file = {
    .name = "WholeFileReader",
    .open = open_nothing,
    .read = read_whole_file,
    .close = close_nothing,
    .keeps_state = true,
};

/* ---- lines ---- */

static void close_lines(struct reader *r)
{
    if (r->file)
        fclose(r->file);
    r->file = NULL;
}

static enum mst_code open_lines(struct reader *r, struct status *st)
{
    char *path;
    enum mst_code rc = path_of(r, &path, st);

    if (rc)
        return rc;
    close_lines(r);
    r->number = 0;
    r->file = fopen(path, "re");
    if (!r->file)
        rc = file_fail(st, path, errno);
    mem_free(path);
    for (; !rc && r->number < r->config.skip_lines; r->number++)
        if (getline(&r->row, &r->row_room, r->file) < 0)
            break;
    return rc;
}

static enum mst_code read_line(struct reader *r, struct reader_record *ret,
                               struct status *st)
{
    ssize_t n = r->file ? getline(&r->row, &r->row_room, r->file) : -1;

    if (n < 0 && r->file && ferror(r->file))
        return file_fail(st, r->work, errno);
    if (n < 0) {
        ret->at_end = true;
        return MST_OK;
    }
    if (n && r->row[n - 1] == '\n')
        n--;
    for (ssize_t i = 0; i < n;) {
        char *end = memchr(r->row + i, '\r', (size_t)(n - i));
        ssize_t stop = end ? end - r->row : n;

        text_add(&ret->value, r->row + i, (size_t)(stop - i));
        i = stop + 1;
    }
    name_record(r, &ret->key, ++r->number);
    ret->produced = true;
    return MST_OK;
}

const struct reader_kind reader_text_line = {
    .name = "TextLineReader",
    .open = open_lines,
    .read = read_line,
    .close = close_lines,
};

/* ---- records of one size ---- */

static void close_bytes(struct reader *r)
{
    text_done(&r->bytes);
}

static enum mst_code open_fixed(struct reader *r, struct status *st)
{
    r->number = 0;
    return load_file(r, st);
}

static enum mst_code read_fixed(struct reader *r, struct reader_record *ret,
                                struct status *st)
{
    const struct reader_config *g = &r->config;
    int64_t hop = g->hop ? g->hop : g->record, at, end;

    (void)st;
    if (__builtin_mul_overflow(r->number, hop, &at) ||
        __builtin_add_overflow(at, g->header, &at) ||
        __builtin_add_overflow(at, g->record, &end) ||
        __builtin_add_overflow(end, g->footer, &end) ||
        end > (int64_t)r->bytes.len) {
        ret->at_end = true;
        return MST_OK;
    }
    name_record(r, &ret->key, r->number++);
    text_add(&ret->value, r->bytes.data + at, (size_t)g->record);
    ret->produced = true;
    return MST_OK;
}

const struct reader_kind reader_fixed_length = {
    .name = "FixedLengthRecordReader",
    .open = open_fixed,
    .read = read_fixed,
    .close = close_bytes,
};

/* ---- TFRecords ---- */

static void close_records(struct reader *r)
{
    if (r->records_open)
        record_reader_close(&r->records);
    r->records_open = false;
    text_done(&r->bytes);
}

static enum mst_code open_records(struct reader *r, struct status *st)
{
    char *path;
    enum mst_code rc = path_of(r, &path, st);

    if (rc)
        return rc;
    close_records(r);
    if (r->config.format == UNZIP_NONE) {
        rc = record_reader_open(&r->records, path, st);
    } else {
        rc = load_file(r, st);
        r->records = (struct record_reader){ 0 };
        if (!rc)
            file_in_memory(&r->records.file, path,
                           r->bytes.len ? r->bytes.data : "", r->bytes.len);
    }
    r->records_open = !rc;
    mem_free(path);
    return rc;
}

static enum mst_code read_record(struct reader *r, struct reader_record *ret,
                                 struct status *st)
{
    uint64_t at = r->records.at;
    struct pb_in record;
    enum mst_code rc = record_reader_next(&r->records, &record, st);

    /* Less than a record's head counts as the end, as in TensorFlow. */
    if (rc == MST_OUT_OF_RANGE ||
        (rc == MST_DATA_LOSS && r->records.file.size - at < RECORD_HEAD)) {
        ret->at_end = true;
        status_clear(st);
        return MST_OK;
    }
    if (rc)
        return rc;
    name_record(r, &ret->key, (int64_t)at);
    text_add(&ret->value, record.at, (size_t)(record.end - record.at));
    ret->produced = true;
    return MST_OK;
}

const struct reader_kind reader_tf_record = {
    .name = "TFRecordReader",
    .open = open_records,
    .read = read_record,
    .close = close_records,
};
