/*
 * RecordInput: records of TFRecord files in random order, for ever.
 *
 * Each epoch goes through the files in an order of its own, moved on by a part
 * of them each time; records wait in a buffer, from which a random one is
 * taken. An epoch's records are all given out before the next one begins. The
 * order is random as TensorFlow's is, but not the same: there it depends on
 * how fast its threads read.
 *
 * The op reads as much as it needs to, under a lock, on a thread that may.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "base/rng.h"
#include "kernel/types.h"
#include "kernel/unzip.h"
#include "store/glob.h"
#include "store/record.h"

struct input {
    pthread_mutex_t lock;
    const char *pattern;
    enum unzip_format format;
    int64_t buffer_size, batch;
    float shift;
    /* Under the lock. */
    uint64_t random;
    struct glob_list files;
    int64_t epoch;
    size_t file; /* the next to open */
    bool found, open;
    struct record_reader reader;
    struct text bytes; /* of a compressed file */
    struct str *records;
    int64_t count, room;
};

static enum mst_code input_init(struct op_node *n, struct status *st)
{
    struct input *x = ARENA_NEW(n->arena, struct input);

    if (!unzip_format_of(op_attr_str(n, "compression_type"), &x->format))
        return status_set(st, MST_UNIMPLEMENTED,
                          "Compression %s is not supported",
                          op_attr_str(n, "compression_type").data);
    pthread_mutex_init(&x->lock, NULL);
    x->pattern = op_attr_str(n, "file_pattern").data;
    x->random = (uint64_t)op_attr_int(n, "file_random_seed");
    x->shift = op_attr_float(n, "file_shuffle_shift_ratio");
    x->buffer_size = MAX(op_attr_int(n, "file_buffer_size"), 1);
    x->batch = op_attr_int(n, "batch_size");
    n->state = x;
    return MST_OK;
}

static void close_file(struct input *x)
{
    if (x->open)
        record_reader_close(&x->reader);
    x->open = false;
    text_done(&x->bytes);
}

static void input_done(struct op_node *n)
{
    struct input *x = n->state;

    close_file(x);
    glob_done(&x->files);
    for (int64_t i = 0; i < x->count; i++)
        free(x->records[i].data);
    mem_free(x->records);
    pthread_mutex_destroy(&x->lock);
}

/* ---- files ---- */

static void begin_epoch(struct input *x)
{
    size_t n = x->files.count, shift;
    char **moved = mem_array(n, sizeof(*moved));

    for (size_t i = n; i > 1; i--) {
        size_t k = (size_t)(rng_next(&x->random) % i);
        char *t = x->files.paths[i - 1];

        x->files.paths[i - 1] = x->files.paths[k];
        x->files.paths[k] = t;
    }
    shift =
        (size_t)(x->shift > 0 ? (double)x->shift * (double)x->epoch * (double)n
                              : 0) %
        n;
    for (size_t i = 0; i < n; i++)
        moved[i] = x->files.paths[(i + shift) % n];
    memcpy(x->files.paths, moved, n * sizeof(*moved));
    mem_free(moved);
    x->epoch++;
    x->file = 0;
}

static enum mst_code open_packed(struct input *x, const char *path,
                                 struct status *st)
{
    struct file_in in;
    char *data;
    enum mst_code rc = file_in_open(&in, path, st);

    if (rc)
        return rc;
    data = malloc((size_t)in.size + 1);
    rc = data
             ? file_in_read(&in, 0, data, (size_t)in.size, st)
             : status_set(st, MST_RESOURCE_EXHAUSTED, "No memory for %s", path);
    if (!rc)
        rc = unzip_all(x->format, data, (size_t)in.size, &x->bytes, st);
    free(data);
    file_in_close(&in);
    x->reader = (struct record_reader){ 0 };
    if (!rc)
        file_in_memory(&x->reader.file, path, x->bytes.len ? x->bytes.data : "",
                       x->bytes.len);
    return rc;
}

static enum mst_code open_next(struct input *x, struct status *st)
{
    const char *path = x->files.paths[x->file++];
    enum mst_code rc = x->format == UNZIP_NONE
                           ? record_reader_open(&x->reader, path, st)
                           : open_packed(x, path, st);

    x->open = !rc;
    return rc;
}

/* ---- records ---- */

/* Reads until the buffer is full, or the epoch's files are read. */
static enum mst_code fill(struct input *x, struct status *st)
{
    struct pb_in record;
    enum mst_code rc = MST_OK;

    while (!rc && x->count < x->buffer_size) {
        if (!x->open && x->file == x->files.count)
            break;
        if (!x->open) {
            rc = open_next(x, st);
            continue;
        }
        rc = record_reader_next(&x->reader, &record, st);
        if (rc == MST_OUT_OF_RANGE) {
            close_file(x);
            status_clear(st);
            rc = MST_OK;
        } else if (!rc) {
            struct str *s = MEM_PUSH(x->records, x->count, x->room);

            *s = (struct str){ 0 };
            str_set(s, record.at, (size_t)(record.end - record.at));
        }
    }
    return rc;
}

static enum mst_code take(struct input *x, struct str *ret, struct status *st)
{
    enum mst_code rc = fill(x, st);
    int64_t at;

    if (!rc && !x->count) {
        begin_epoch(x);
        rc = fill(x, st);
    }
    if (rc)
        return rc;
    if (!x->count)
        return status_set(st, MST_OUT_OF_RANGE, "No records in %s", x->pattern);
    at = (int64_t)(rng_next(&x->random) % (uint64_t)x->count);
    *ret = x->records[at];
    x->records[at] = x->records[--x->count];
    return MST_OK;
}

static enum mst_code find_files(struct input *x, struct status *st)
{
    if (x->found)
        return MST_OK;
    glob_add(&x->files, x->pattern);
    glob_sort(&x->files);
    if (!x->files.count)
        return status_set(st, MST_NOT_FOUND, "Found no files at %s",
                          x->pattern);
    x->found = true;
    begin_epoch(x);
    return MST_OK;
}

static enum mst_code record_input(struct op_ctx *c)
{
    struct input *x = c->node->state;
    enum mst_code rc = op_out_new(c, 0, 1, &x->batch);

    if (rc)
        return rc;
    pthread_mutex_lock(&x->lock);
    rc = find_files(x, c->st);
    for (int64_t i = 0; i < x->batch && !rc; i++)
        rc = take(x, tensor_str(op_out(c, 0), i), c->st);
    pthread_mutex_unlock(&x->lock);
    return rc;
}

const struct op_def def_record_input = {
    .name = "RecordInput",
    .out = "records: string",
    .attr = "file_pattern: string; file_random_seed: int = 301; "
            "file_shuffle_shift_ratio: float = 0; "
            "file_buffer_size: int = 10000; file_parallelism: int = 16; "
            "batch_size: int = 32; compression_type: string = ''",
    .flags = OP_STATEFUL | OP_BLOCKING,
    .init = input_init,
    .done = input_done,
    .kernel = (const struct op_kernel[]){ { DT_ANY, record_input }, { 0 } },
};
