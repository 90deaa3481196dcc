/*
 * The other side of test_checkpoint_files.py: reads and writes files with our
 * store/, so that real TensorFlow can be set beside it.
 *
 *   bundle_peer dump PREFIX            every tensor: name, type, shape, bytes
 *   bundle_peer slice PREFIX NAME SPEC one slice of one
 *   bundle_peer copy PREFIX NEW        loads all, writes all, slices as slices
 *   bundle_peer merge NEW PREFIX...
 *   bundle_peer v1slice FILE NAME SPEC the same of a checkpoint of the first
 *   bundle_peer v1copy FILE NEW        format
 *   bundle_peer records FILE NEW       copies a TFRecord file
 *   bundle_peer events DIR             writes scalars, a session's start
 */
#include <stdio.h>
#include <stdlib.h>

#include "store/bundle_load.h"
#include "store/bundle_merge.h"
#include "store/bundle_writer.h"
#include "store/event.h"
#include "store/v1_reader.h"
#include "store/v1_writer.h"

static struct status st;
static struct pool *pool;

static void must(enum mst_code rc)
{
    if (!rc)
        return;
    fprintf(stderr, "%s: %s\n", status_name(rc), st.msg);
    exit(1);
}

static void print_hex(const void *data, size_t len)
{
    const uint8_t *p = data;

    for (size_t i = 0; i < len; i++)
        printf("%02x", p[i]);
}

/* Names and strings in hexadecimal: they may be any bytes. */
static void print_tensor(const char *name, size_t len, const struct tensor *t)
{
    char text[SHAPE_TEXT_MAX];

    print_hex(name, len);
    printf(" %s %s ", dtype_name(t->dtype), tensor_shape_text(t, text));
    if (t->dtype != DT_STRING)
        print_hex(t->data, tensor_bytes(t));
    for (int64_t i = 0; t->dtype == DT_STRING && i < t->count; i++) {
        printf("%s", i ? "," : "");
        print_hex(tensor_str(t, i)->data, tensor_str(t, i)->len);
    }
    printf("\n");
}

static struct tensor load(struct bundle_reader *r, const char *name, size_t len,
                          const char *spec)
{
    struct bundle_read q = {
        .name = name, .name_len = len, .spec = spec, .spec_len = strlen(spec)
    };

    must(bundle_load(r, &q, 1, pool, &st));
    return q.out;
}

/* "4 5 0,2:-" */
static const char *spec_of(const struct bundle_entry *e, const struct slice *s,
                           char *spec)
{
    char text[SLICE_TEXT_MAX];
    size_t n = 0;

    for (int i = 0; i < e->ndim; i++)
        n += (size_t)sprintf(spec + n, "%lld ", (long long)e->dims[i]);
    strcpy(spec + n, slice_text(s, text));
    return spec;
}

static void copy_slices(struct bundle_reader *r, struct bundle_writer *w,
                        const char *name, size_t len,
                        const struct bundle_entry *e)
{
    struct pb_in at = bundle_entry_slices(e);
    struct shape whole = { .ndim = e->ndim };
    char spec[SLICE_TEXT_MAX + SHAPE_TEXT_MAX];
    struct slice s;

    memcpy(whole.dims, e->dims, sizeof(whole.dims));
    while (bundle_entry_next_slice(&at, &s)) {
        struct tensor t = load(r, name, len, spec_of(e, &s, spec));

        must(bundle_writer_add_slice(w, name, len, &whole, &s, &t, &st));
        tensor_unref(&t);
    }
}

/* What is under one key, once it has been read; the reader then moves on. */
static void handle(struct bundle_reader *r, struct bundle_writer *w,
                   const char *name, size_t len, const struct bundle_entry *e)
{
    struct tensor t;

    if (w && e->slices.len) {
        copy_slices(r, w, name, len, e);
        return;
    }
    t = load(r, name, len, "");
    if (w)
        must(bundle_writer_add(w, name, len, &t, &st));
    else
        print_tensor(name, len, &t);
    tensor_unref(&t);
}

static void walk(const char *prefix, struct bundle_writer *w)
{
    struct bundle_reader keys, r;

    must(bundle_reader_open(&keys, prefix, &st));
    must(bundle_reader_open(&r, prefix, &st));
    must(bundle_reader_rewind(&keys, &st));
    for (;;) {
        struct bundle_entry e;
        struct pb_in key;

        must(bundle_reader_next(&keys, &key, &e, &st));
        if (!cursor_left(&key))
            break;
        if (key.at[0]) /* a slice's own entry begins with a zero */
            handle(&r, w, (const char *)key.at, cursor_left(&key), &e);
        bundle_entry_done(&e);
    }
    bundle_reader_close(&r);
    bundle_reader_close(&keys);
}

static void copy(const char *prefix, const char *new_prefix)
{
    struct bundle_writer w;

    must(bundle_writer_open(&w, new_prefix, &st));
    walk(prefix, &w);
    must(bundle_writer_finish(&w, &st));
    bundle_writer_done(&w);
}

static void slice(const char *prefix, const char *name, const char *spec)
{
    struct bundle_reader r;
    struct tensor t;

    must(bundle_reader_open(&r, prefix, &st));
    t = load(&r, name, strlen(name), spec);
    print_tensor(name, strlen(name), &t);
    tensor_unref(&t);
    bundle_reader_close(&r);
}

static const struct v1_tensor *v1_find(struct v1_reader *r, const char *name)
{
    const struct v1_tensor *t = map_get_str(&r->tensors, name);

    if (!t)
        must(status_set(&st, MST_NOT_FOUND, "no tensor %s", name));
    return t;
}

static void v1_slice(const char *pattern, const char *name, const char *spec)
{
    struct v1_reader r;
    struct tensor t;

    must(v1_reader_open(&r, pattern, &st));
    must(v1_reader_read(&r, name, strlen(name), spec, strlen(spec),
                        (enum dtype)v1_find(&r, name)->dtype, &t, &st));
    print_tensor(name, strlen(name), &t);
    tensor_unref(&t);
    v1_reader_close(&r);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

#define V1_SLICES_MAX 1000

static void v1_copy(const char *path, const char *new_path)
{
    static struct tensor parts[V1_SLICES_MAX];
    static char *names[V1_SLICES_MAX];
    char spec[SLICE_TEXT_MAX + SHAPE_TEXT_MAX];
    size_t at = 0, count = 0, part = 0;
    struct map_slot *slot;
    struct v1_reader r;
    struct v1_writer w;

    must(v1_reader_open(&r, path, &st));
    while ((slot = map_next(&r.tensors, &at)) && count < V1_SLICES_MAX)
        names[count++] = slot->key;
    qsort(names, count, sizeof(*names), by_name);
    v1_writer_init(&w);
    for (size_t i = 0; i < count; i++) {
        const struct v1_tensor *t = v1_find(&r, names[i]);
        struct bundle_entry e = { .ndim = t->shape.ndim };

        memcpy(e.dims, t->shape.dims, sizeof(e.dims));
        for (int k = 0; k < t->count && part < V1_SLICES_MAX; k++, part++) {
            if (e.ndim)
                spec_of(&e, &t->parts[k].slice, spec);
            else
                spec[0] = '\0';
            must(v1_reader_read(&r, names[i], strlen(names[i]), spec,
                                strlen(spec), (enum dtype)t->dtype,
                                &parts[part], &st));
            must(v1_writer_add(&w, names[i], strlen(names[i]), &t->shape,
                               &t->parts[k].slice, &parts[part], &st));
        }
    }
    must(v1_writer_write(&w, new_path, &st));
    v1_writer_done(&w);
    v1_reader_close(&r);
    while (part)
        tensor_unref(&parts[--part]);
}

static void records(const char *path, const char *new_path)
{
    struct record_reader r;
    struct record_writer w;
    struct pb_in c;
    enum mst_code rc;

    must(record_reader_open(&r, path, &st));
    must(record_writer_open(&w, new_path, &st));
    while (!(rc = record_reader_next(&r, &c, &st)))
        must(record_writer_add(&w, c.at, cursor_left(&c), &st));
    if (rc != MST_OUT_OF_RANGE)
        must(rc);
    must(record_writer_close(&w, &st));
    record_reader_close(&r);
}

static void events(const char *dir)
{
    struct event_writer w;

    must(event_writer_open(&w, dir, ".peer", &st));
    must(event_writer_session(&w, 0, EVENT_START, NULL, &st));
    for (int i = 0; i < 3; i++) {
        struct event_scalar s[] = { { "loss", 1.5f - (float)i },
                                    { "rate/global", 0.f } };

        must(event_writer_scalars(&w, 100 * i, s, 2, &st));
    }
    must(event_writer_session(&w, 200, EVENT_CHECKPOINT, "/x/model", &st));
    must(event_writer_close(&w, &st));
}

int main(int argc, char **argv)
{
    const char *what = argc > 2 ? argv[1] : "";

    pool = pool_new(2);
    if (!strcmp(what, "dump") && argc == 3)
        walk(argv[2], NULL);
    else if (!strcmp(what, "slice") && argc == 5)
        slice(argv[2], argv[3], argv[4]);
    else if (!strcmp(what, "copy") && argc == 4)
        copy(argv[2], argv[3]);
    else if (!strcmp(what, "merge") && argc > 3)
        must(bundle_merge(argv + 3, argc - 3, argv[2],
                          (struct bundle_merge_options){ .delete_dirs = true },
                          &st));
    else if (!strcmp(what, "v1slice") && argc == 5)
        v1_slice(argv[2], argv[3], argv[4]);
    else if (!strcmp(what, "v1copy") && argc == 4)
        v1_copy(argv[2], argv[3]);
    else if (!strcmp(what, "records") && argc == 4)
        records(argv[2], argv[3]);
    else if (!strcmp(what, "events") && argc == 3)
        events(argv[2]);
    else
        fprintf(
            stderr,
            "usage: bundle_peer dump|slice|copy|merge|v1slice|v1copy|records|"
            "events ...\n"),
            exit(2);
    pool_free(pool);
    return 0;
}
