#include "train/data.h"

#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "kernel/cast.h"
#include "train/examples.h"
#include "train/npy.h"

/* ---- to the placeholder's type and shape ---- */

/* Nothing is lost but what a float does not keep of a large whole number. */
static bool converts(enum dtype from, enum dtype to)
{
    bool whole = dtype_is_int(from) || from == DT_BOOL;

    if (to == DT_FLOAT || to == DT_DOUBLE || to == DT_HALF || to == DT_BFLOAT16)
        return whole || dtype_is_float(from);
    return (to == DT_INT32 || to == DT_INT64) && whole;
}

static enum mst_code convert(struct tensor *t, const struct data_feed *f,
                             struct status *st)
{
    enum dtype from = (enum dtype)t->dtype;
    void (*loop)(void *, const void *, int64_t);
    struct tensor to;

    if (f->type == DT_INVALID || f->type == from)
        return MST_OK;
    loop = converts(from, f->type) ? cast_loop(from, f->type) : NULL;
    if (!loop)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "%s is fed from %s, which is of type %s; it is of "
                          "type %s",
                          f->name, f->source, dtype_name(from),
                          dtype_name(f->type));
    if (tensor_new_like(&to, f->type, t, st))
        return st->code;
    loop(to.data, t->data, t->count);
    tensor_unref(t);
    *t = to;
    return MST_OK;
}

static enum mst_code bad_shape(const struct tensor *t,
                               const struct data_feed *f, struct status *st)
{
    char have[SHAPE_TEXT_MAX], want[SHAPE_TEXT_MAX];

    return status_set(st, MST_INVALID_ARGUMENT,
                      "%s is fed from %s, which has the shape %s; it has %s",
                      f->name, f->source, tensor_shape_text(t, have),
                      shape_text(f->shape.ndim, f->shape.dims, want));
}

/* The same rows, laid out as the placeholder has them. */
static enum mst_code reshape(struct tensor *t, const struct data_feed *f,
                             struct status *st)
{
    int64_t dims[TENSOR_RANK_MAX], known = 1, row;
    struct tensor to;
    int open = -1;

    if (t->ndim < 1)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "%s is fed from %s, which has no rows", f->name,
                          f->source);
    if (f->shape.ndim < 0 || !t->dims[0])
        return MST_OK;
    if (f->shape.ndim < 1)
        return bad_shape(t, f, st);
    dims[0] = t->dims[0];
    row = t->count / t->dims[0];
    for (int i = 1; i < f->shape.ndim; i++) {
        dims[i] = f->shape.dims[i];
        if (dims[i] >= 0)
            known *= dims[i];
        else if (t->ndim == f->shape.ndim)
            known *= dims[i] = t->dims[i];
        else if (open < 0)
            open = i;
        else
            return bad_shape(t, f, st);
    }
    if (open >= 0)
        known *= dims[open] = known ? row / known : 0;
    if (known != row)
        return bad_shape(t, f, st);
    tensor_reshape(&to, t, f->shape.ndim, dims);
    tensor_unref(t);
    *t = to;
    return MST_OK;
}

/* ---- reading ---- */

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);

    return n >= m && !strcmp(text + n - m, end);
}

static enum mst_code load(struct data *d, const struct data_feed *feeds,
                          const struct data_opts *o, struct status *st)
{
    bool archive = o->files && ends_with(o->files, ".npz");
    enum mst_code rc = MST_OK;

    if (o->files && !archive)
        return examples_read(o->files, feeds, d->count, d->arrays, st);
    for (int i = 0; i < d->count && !rc; i++) {
        char *source = archive && !strstr(feeds[i].source, ".np")
                           ? mem_printf("%s:%s", o->files, feeds[i].source)
                           : mem_str(feeds[i].source);

        rc = npy_read(&d->arrays[i], source, st);
        mem_free(source);
    }
    return rc;
}

static enum mst_code check_rows(struct data *d, const struct data_feed *feeds,
                                struct status *st)
{
    for (int i = 0; i < d->count; i++) {
        int64_t rows = d->arrays[i].dims[0];

        if (!rows)
            return status_set(st, MST_INVALID_ARGUMENT, "%s has no rows",
                              feeds[i].source);
        if (i && rows != d->rows)
            return status_set(st, MST_INVALID_ARGUMENT,
                              "%s has %lld rows, but %s has %lld",
                              feeds[0].source, (long long)d->rows,
                              feeds[i].source, (long long)rows);
        d->rows = rows;
    }
    return MST_OK;
}

static void shuffle(struct data *d)
{
    for (int64_t i = d->rows - 1; i > 0; i--) {
        int64_t j = (int64_t)(rng_next(&d->random) % (uint64_t)(i + 1));
        int64_t kept = d->order[i];

        d->order[i] = d->order[j];
        d->order[j] = kept;
    }
}

static void begin(struct data *d, const struct data_opts *o)
{
    d->batch = MAX(o->batch, 1);
    d->random = o->seed * 1000003 + (uint64_t)o->shard;
    if (!o->shuffle) {
        d->at = o->shards > 1 ? d->rows * o->shard / o->shards : 0;
        return;
    }
    d->order = mem_array((size_t)d->rows, sizeof(*d->order));
    for (int64_t i = 0; i < d->rows; i++)
        d->order[i] = i;
    shuffle(d);
}

enum mst_code data_open(struct data *d, const struct data_feed *feeds,
                        int count, const struct data_opts *opts,
                        struct status *st)
{
    enum mst_code rc;

    *d = (struct data){ .count = count };
    d->arrays = mem_array((size_t)count, sizeof(*d->arrays));
    rc = load(d, feeds, opts, st);
    for (int i = 0; i < count && !rc; i++) {
        rc = convert(&d->arrays[i], &feeds[i], st);
        if (!rc)
            rc = reshape(&d->arrays[i], &feeds[i], st);
    }
    if (!rc)
        rc = check_rows(d, feeds, st);
    if (rc)
        data_close(d);
    else if (count)
        begin(d, opts);
    return rc;
}

void data_close(struct data *d)
{
    for (int i = 0; i < d->count; i++)
        tensor_unref(&d->arrays[i]);
    mem_free(d->arrays);
    mem_free(d->order);
    *d = (struct data){ 0 };
}

/* ---- batches ---- */

/* One row after the other, each from wherever it is. */
static enum mst_code gather(const struct data *d, int feed, const int64_t *rows,
                            struct tensor *ret, struct status *st)
{
    const struct tensor *from = &d->arrays[feed];
    int64_t row = from->count / d->rows, dims[TENSOR_RANK_MAX];

    memcpy(dims, from->dims, sizeof(dims));
    dims[0] = d->batch;
    if (tensor_new(ret, (enum dtype)from->dtype, from->ndim, dims, st))
        return st->code;
    for (int i = 0; i < d->batch; i++)
        tensor_copy_elems(ret, i * row, from, rows[i] * row, row);
    return MST_OK;
}

/* Which rows come next. */
static void draw(struct data *d, int64_t *rows)
{
    for (int i = 0; i < d->batch; i++) {
        if (d->at == d->rows) {
            d->at = 0;
            if (d->order)
                shuffle(d);
        }
        rows[i] = d->order ? d->order[d->at] : d->at;
        d->at++;
    }
}

enum mst_code data_next(struct data *d, struct tensor *feeds, struct status *st)
{
    int64_t few[256], *rows = few;
    enum mst_code rc = MST_OK;
    int made = 0;

    if (!d->count)
        return MST_OK;
    if (!d->order && d->at == d->rows)
        d->at = 0;
    if (!d->order && d->at + d->batch <= d->rows) {
        rc = data_rows(d, d->at, d->batch, feeds, st);
        d->at += d->batch;
        return rc;
    }
    if (d->batch > (int)COUNT(few))
        rows = mem_array((size_t)d->batch, sizeof(*rows));
    draw(d, rows);
    for (; made < d->count && !rc; made += !rc)
        rc = gather(d, made, rows, &feeds[made], st);
    while (rc && made > 0)
        tensor_unref(&feeds[--made]);
    if (rows != few)
        mem_free(rows);
    return rc;
}

enum mst_code data_rows(const struct data *d, int64_t at, int64_t n,
                        struct tensor *feeds, struct status *st)
{
    enum mst_code rc = MST_OK;
    int made = 0;

    for (; made < d->count && !rc; made += !rc)
        rc = tensor_slice(&feeds[made], &d->arrays[made], at, n, st);
    while (rc && made > 0)
        tensor_unref(&feeds[--made]);
    return rc;
}
