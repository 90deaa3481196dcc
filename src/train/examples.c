#include "train/examples.h"

#include <string.h>

#include "base/mem.h"
#include "kernel/example.h"
#include "store/glob.h"
#include "store/record.h"

/* All records, one after the other. */
struct records {
    struct str *list;
    int count, room;
};

static enum mst_code read_file(struct records *r, const char *path,
                               struct status *st)
{
    struct record_reader reader;
    struct pb_in in;
    enum mst_code rc;

    rc = record_reader_open(&reader, path, st);
    if (rc)
        return rc;
    while (!(rc = record_reader_next(&reader, &in, st))) {
        size_t len = (size_t)(in.end - in.at);
        struct str *s = MEM_PUSH(r->list, r->count, r->room);

        *s = (struct str){ mem_copy(in.at, len), len };
    }
    record_reader_close(&reader);
    if (rc == MST_OUT_OF_RANGE) { /* the end */
        status_clear(st);
        return MST_OK;
    }
    return rc;
}

static enum mst_code read_all(struct records *r, const char *files,
                              struct status *st)
{
    struct glob_list found = { 0 };
    enum mst_code rc = MST_OK;

    while (*files) {
        size_t len = strcspn(files, ",");
        char *one = mem_strn(files, len);
        size_t before = found.count;

        glob_add(&found, one);
        if (len && found.count == before)
            rc = status_set(st, MST_NOT_FOUND, "There is no file %s", one);
        mem_free(one);
        files += len + (files[len] == ',');
    }
    glob_sort(&found);
    for (size_t i = 0; i < found.count && !rc; i++)
        rc = read_file(r, found.paths[i], st);
    glob_done(&found);
    if (!rc && !r->count)
        rc = status_set(st, MST_INVALID_ARGUMENT, "There is no record");
    return rc;
}

/* The Features message of an Example. */
static struct pb_in features_of(const struct str *record)
{
    struct pb_in in = pb_in(record->data, record->len);
    struct pb_field f;

    while (pb_next(&in, &f))
        if (f.number == 1 && f.wire == PB_LEN)
            return pb_in(f.data, f.len);
    return pb_in(NULL, 0);
}

static enum mst_code take_record(struct tensor *t, int64_t row, int64_t rows,
                                 const struct str *record, struct status *st)
{
    if (!row && tensor_new(t, DT_STRING, 1, &rows, st))
        return st->code;
    str_set(tensor_str(t, row), record->data, record->len);
    return MST_OK;
}

/* The first example decides on the type and on the number of values. */
static enum mst_code take_feature(struct tensor *t, int64_t row, int64_t rows,
                                  struct example_bytes value, const char *key,
                                  struct status *st)
{
    struct example_feature f = { 0 };
    int64_t n;

    if (!value.present)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Record %lld has no feature \"%s\"", (long long)row,
                          key);
    n = example_open(value, &f) ? example_count(&f) : -1;
    if (n < 0)
        return status_set(st, MST_DATA_LOSS,
                          "Feature \"%s\" of record %lld is malformed", key,
                          (long long)row);
    if (!row && tensor_new(t, f.dtype == DT_INVALID ? DT_FLOAT : f.dtype, 2,
                           (int64_t[]){ rows, n }, st))
        return st->code;
    if (n != t->dims[1] || (n && f.dtype != t->dtype))
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Feature \"%s\" of record %lld has %lld values of "
                          "type %s, not %lld of type %s",
                          key, (long long)row, (long long)n,
                          dtype_name(f.dtype), (long long)t->dims[1],
                          dtype_name(t->dtype));
    example_read(&f, t, row * n);
    return MST_OK;
}

static enum mst_code take_row(const struct records *r, int64_t row,
                              const struct example_keys *keys,
                              const struct data_feed *feeds, int count,
                              struct tensor *arrays, struct status *st)
{
    const struct str *record = &r->list[row];
    struct example_bytes *found = mem_array((size_t)count, sizeof(*found));
    enum mst_code rc = MST_OK;

    if (keys->map.count && !example_find(features_of(record), keys, found))
        rc = status_set(st, MST_INVALID_ARGUMENT,
                        "Record %lld is no tf.train.Example", (long long)row);
    for (int i = 0; i < count && !rc; i++)
        rc = !strcmp(feeds[i].source, EXAMPLES_RECORD)
                 ? take_record(&arrays[i], row, r->count, record, st)
                 : take_feature(&arrays[i], row, r->count, found[i],
                                feeds[i].source, st);
    mem_free(found);
    return rc;
}

enum mst_code examples_read(const char *files, const struct data_feed *feeds,
                            int count, struct tensor *arrays, struct status *st)
{
    struct records r = { 0 };
    struct example_keys keys;
    enum mst_code rc;

    example_keys_init(&keys);
    rc = read_all(&r, files, st);
    for (int i = 0; i < count && !rc; i++) {
        struct str key = { (char *)feeds[i].source, strlen(feeds[i].source) };

        if (strcmp(feeds[i].source, EXAMPLES_RECORD) &&
            !example_keys_add(&keys, &key, (size_t)i))
            rc = status_set(st, MST_INVALID_ARGUMENT,
                            "Feature \"%s\" is fed twice", feeds[i].source);
    }
    for (int64_t row = 0; row < r.count && !rc; row++)
        rc = take_row(&r, row, &keys, feeds, count, arrays, st);
    for (int i = 0; i < r.count; i++)
        mem_free(r.list[i].data);
    mem_free(r.list);
    example_keys_done(&keys);
    return rc;
}
