/*
 * Datasets that keep elements: a cache in memory, windows, which are datasets
 * of their own, and rows that were batched.
 */
#include "base/mem.h"
#include "kernel/dataset.h"
#include "kernel/dataset_collect.h"
#include "kernel/types.h"

/* ---- a cache, full once an iterator has come to the end ---- */

struct cache_iter {
    struct dataset_iter it;
    struct collected s;
    bool begun, full;
};

static enum mst_code cache_read(struct dataset_iter *it)
{
    struct dataset *d = it->d;

    pthread_mutex_lock(&d->lock);
    if (it->at >= d->cached) {
        pthread_mutex_unlock(&d->lock);
        return dataset_end(it);
    }
    dataset_room(it, (int)d->n[0]);
    for (int i = 0; i < it->count; i++)
        it->out[i] = tensor_ref(&d->cache[it->at++]);
    pthread_mutex_unlock(&d->lock);
    return MST_OK;
}

static void cache_fill(struct cache_iter *m)
{
    struct dataset *d = m->it.d;

    pthread_mutex_lock(&d->lock);
    if (d->cached < 0) {
        d->cache = m->s.items;
        d->cached = (int64_t)m->s.count;
        d->n[0] = m->s.width;
        m->s = (struct collected){ 0 };
    }
    pthread_mutex_unlock(&d->lock);
}

static enum mst_code cache_go(struct dataset_iter *it, enum mst_code got)
{
    struct cache_iter *m = CONTAINER(it, struct cache_iter, it);
    struct dataset_iter *in;

    if (!m->begun) {
        pthread_mutex_lock(&it->d->lock);
        m->full = it->d->cached >= 0;
        pthread_mutex_unlock(&it->d->lock);
        m->begun = true;
    }
    if (m->full)
        return cache_read(it);
    in = dataset_iter_input(it, 0);
    if (got == DATASET_FRESH)
        got = dataset_pull(in, it);
    if (got)
        return got;
    if (in->end) {
        cache_fill(m);
        return dataset_end(it);
    }
    dataset_room(it, in->count);
    for (int i = 0; i < in->count; i++)
        it->out[i] = tensor_ref(&in->out[i]);
    collected_add(&m->s, in);
    return MST_OK;
}

static void cache_iter_done(struct dataset_iter *it)
{
    collected_done(&CONTAINER(it, struct cache_iter, it)->s);
}

static int64_t same_count(const struct dataset *d)
{
    return dataset_cardinality(d->inputs[0]);
}

static const struct dataset_kind cache_kind = { sizeof(struct cache_iter),
                                                cache_go, cache_iter_done,
                                                same_count };

static enum mst_code cache_run(struct op_ctx *c)
{
    struct dataset *d;
    enum mst_code rc;

    if (op_in(c, 1)->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT, "filename must be a scalar");
    if (tensor_str(op_in(c, 1), 0)->len)
        return op_fail(c, MST_UNIMPLEMENTED,
                       "Datasets are cached in memory only");
    rc = dataset_make(c, &cache_kind, 1, 0, &d);
    return rc ? rc : dataset_put(c, d);
}

#define CACHE(stem, text, in_, flags_)                                         \
    const struct op_def def_##stem = {                                         \
        .name = text,                                                          \
        .in = "input_dataset: variant, filename: string" in_,                  \
        .out = "handle: variant",                                              \
        .attr = DATASET_ATTRS DATASET_META,                                    \
        .flags = flags_,                                                       \
        .kernel = (const struct op_kernel[]){ { DT_ANY, cache_run }, { 0 } },  \
    };

CACHE(cache_dataset, "CacheDataset", "", 0)
CACHE(cache_dataset_v2, "CacheDatasetV2", ", cache: resource", OP_STATEFUL)

/* ---- windows: n[] is size, shift and stride ---- */

struct window_iter {
    struct dataset_iter it;
    struct collected s;
    int64_t skip; /* elements to leave out before the next window */
    bool over;
};

/* The elements of one component of a window. */
static enum mst_code list_go(struct dataset_iter *it, enum mst_code got)
{
    (void)got;
    if (it->at >= it->d->tensor_count)
        return dataset_end(it);
    dataset_room(it, 1);
    it->out[0] = tensor_ref(&it->d->tensors[it->at++]);
    return MST_OK;
}

static int64_t list_count(const struct dataset *d)
{
    return d->tensor_count;
}

static const struct dataset_kind list_kind = { sizeof(struct dataset_iter),
                                               list_go, NULL, list_count };

static enum mst_code window_put(struct window_iter *w, int64_t n)
{
    struct dataset_iter *it = &w->it;

    dataset_room(it, w->s.width);
    for (int k = 0; k < it->count; k++) {
        struct dataset *d = dataset_new(&list_kind, 0, (int)n);
        enum mst_code rc;

        for (int64_t i = 0; i < n; i++)
            d->tensors[i] = tensor_ref(collected_at(&w->s, i * it->d->n[2], k));
        rc = tensor_new_scalar(&it->out[k], DT_VARIANT, it->c->st);
        if (rc) {
            dataset_unref(d);
            return rc;
        }
        *tensor_object(&it->out[k], 0) = &d->o;
    }
    return MST_OK;
}

/* Moves on by `shift` elements: those that are there, and some to come. */
static void window_shift(struct window_iter *w)
{
    int64_t have = collected_count(&w->s), n = MIN(have, w->it.d->n[1]);
    size_t gone = (size_t)(n * w->s.width);

    for (size_t i = 0; i < gone; i++)
        tensor_unref(&w->s.items[i]);
    memmove(w->s.items, w->s.items + gone,
            (w->s.count - gone) * sizeof(*w->s.items));
    w->s.count -= gone;
    w->skip = w->it.d->n[1] - n;
}

static enum mst_code window_go(struct dataset_iter *it, enum mst_code got)
{
    struct window_iter *w = CONTAINER(it, struct window_iter, it);
    struct dataset_iter *in = dataset_iter_input(it, 0);
    int64_t span = (it->d->n[0] - 1) * it->d->n[2] + 1, n;
    enum mst_code rc;

    while (!w->over && collected_count(&w->s) < span) {
        if (got == DATASET_FRESH)
            got = dataset_pull(in, it);
        if (got)
            return got;
        w->over = in->end;
        if (!in->end && w->skip)
            w->skip--;
        else if (!in->end)
            collected_add(&w->s, in);
        got = DATASET_FRESH;
    }
    n = (collected_count(&w->s) + it->d->n[2] - 1) / it->d->n[2];
    n = MIN(n, it->d->n[0]);
    if (!n || (it->d->flag && n < it->d->n[0]))
        return dataset_end(it);
    rc = window_put(w, n);
    window_shift(w);
    return rc;
}

static void window_iter_done(struct dataset_iter *it)
{
    collected_done(&CONTAINER(it, struct window_iter, it)->s);
}

static const struct dataset_kind window_kind = { sizeof(struct window_iter),
                                                 window_go, window_iter_done,
                                                 NULL };

static enum mst_code window_run(struct op_ctx *c)
{
    static const char *const names[] = { "size", "shift", "stride" };
    static const char *const texts[] = { "Window size", "Window shift",
                                         "Window stride" };
    struct dataset *d;
    int64_t n[3];
    enum mst_code rc = MST_OK;

    for (int i = 0; i < 3 && !rc; i++)
        rc = dataset_number(c, 1 + i, names[i], &n[i]);
    for (int i = 0; i < 3 && !rc; i++)
        if (n[i] <= 0 || n[i] > 1 << 30)
            rc = op_fail(c, MST_INVALID_ARGUMENT,
                         "%s must be greater than zero.", texts[i]);
    if (!rc && op_in(c, 4)->ndim)
        rc =
            op_fail(c, MST_INVALID_ARGUMENT, "drop_remainder must be a scalar");
    if (!rc)
        rc = dataset_make(c, &window_kind, 1, 0, &d);
    if (rc)
        return rc;
    memcpy(d->n, n, sizeof(n));
    d->flag = *TENSOR_DATA(op_in(c, 4), bool);
    return dataset_put(c, d);
}

const struct op_def def_window_dataset = {
    .name = "WindowDataset",
    .in = "input_dataset: variant, size: int64, shift: int64, stride: int64, "
          "drop_remainder: bool",
    .out = "handle: variant",
    .attr = DATASET_ATTRS DATASET_META,
    .kernel = (const struct op_kernel[]){ { DT_ANY, window_run }, { 0 } },
};

/* ---- rows of batches: it->at of the element that in[0] still has ---- */

static enum mst_code unbatch_row(struct dataset_iter *it,
                                 struct dataset_iter *in)
{
    dataset_room(it, in->count);
    for (int i = 0; i < in->count; i++) {
        struct tensor row = { 0 };
        enum mst_code rc =
            tensor_slice(&row, &in->out[i], it->at, 1, it->c->st);

        if (rc)
            return rc;
        tensor_reshape(&it->out[i], &row, row.ndim - 1, row.dims + 1);
        tensor_unref(&row);
    }
    it->at++;
    return MST_OK;
}

static enum mst_code unbatch_check(struct dataset_iter *it,
                                   struct dataset_iter *in)
{
    for (int i = 0; i < in->count; i++) {
        if (!in->out[i].ndim)
            return status_set(it->c->st, MST_INVALID_ARGUMENT,
                              "Input element must have a non-scalar value in "
                              "each component.");
        if (in->out[i].dims[0] != in->out[0].dims[0])
            return status_set(it->c->st, MST_INVALID_ARGUMENT,
                              "Input element must have the same batch size in "
                              "each component. Component 0 had size %lld but "
                              "component %d had size, %lld.",
                              (long long)in->out[0].dims[0], i,
                              (long long)in->out[i].dims[0]);
    }
    return MST_OK;
}

static enum mst_code unbatch_go(struct dataset_iter *it, enum mst_code got)
{
    struct dataset_iter *in = dataset_iter_input(it, 0);

    for (;;) {
        if (got == DATASET_FRESH && in->count && it->at < in->out[0].dims[0])
            return unbatch_row(it, in);
        if (got == DATASET_FRESH)
            got = dataset_pull(in, it);
        if (!got && in->end)
            return dataset_end(it);
        if (!got)
            got = unbatch_check(it, in);
        if (got)
            return got;
        it->at = 0;
        got = DATASET_FRESH;
    }
}

static const struct dataset_kind unbatch_kind = { sizeof(struct dataset_iter),
                                                  unbatch_go, NULL, NULL };

static enum mst_code unbatch_run(struct op_ctx *c)
{
    struct dataset *d;
    enum mst_code rc = dataset_make(c, &unbatch_kind, 1, 0, &d);

    return rc ? rc : dataset_put(c, d);
}

const struct op_def def_unbatch_dataset = {
    .name = "UnbatchDataset",
    .in = "input_dataset: variant",
    .out = "handle: variant",
    .attr = DATASET_ATTRS DATASET_META,
    .kernel = (const struct op_kernel[]){ { DT_ANY, unbatch_run }, { 0 } },
};
