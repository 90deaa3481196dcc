/*
 * Batches: n[0] elements as one with a dimension more. And shuffling, which
 * keeps n[0] elements to choose from.
 *
 * The order of a shuffle is TensorFlow's for the same seeds: each choice is a
 * word of a Philox stream, taken from the ring of elements between `first`
 * and `last`, and the chosen place is refilled with the oldest element.
 */
#include "kernel/dataset_batch.h"
#include "base/mem.h"
#include "base/rng.h"
#include "kernel/dataset_ahead.h"
#include "kernel/dataset_collect.h"
#include "kernel/types.h"

/* ---- batches ---- */

struct batch_iter {
    struct dataset_iter it;
    struct collected s;
    bool over;
};

/* Component k of all collected elements as one tensor. */
static enum mst_code stack(struct dataset_iter *it, struct collected *s, int k)
{
    int64_t n = (int64_t)s->count / s->width, dims[TENSOR_RANK_MAX];
    const struct tensor *first = &s->items[k];
    char a[SHAPE_TEXT_MAX], b[SHAPE_TEXT_MAX];
    enum mst_code rc;

    if (first->ndim == TENSOR_RANK_MAX)
        return status_set(it->c->st, MST_UNIMPLEMENTED,
                          "Tensors of rank %d are not supported, only up to %d",
                          first->ndim + 1, TENSOR_RANK_MAX);
    dims[0] = n;
    memcpy(dims + 1, first->dims, (size_t)first->ndim * sizeof(*dims));
    for (int64_t i = 1; i < n; i++) {
        const struct tensor *t = &s->items[i * s->width + k];

        if (t->dtype != first->dtype || !tensor_same_shape(t, first))
            return status_set(
                it->c->st, MST_INVALID_ARGUMENT,
                "Cannot batch tensors with different shapes in component %d. "
                "First element had shape %s and element %lld had shape %s.",
                k, tensor_shape_text(first, a), (long long)i,
                tensor_shape_text(t, b));
    }
    rc = tensor_new(&it->out[k], (enum dtype)first->dtype, first->ndim + 1,
                    dims, it->c->st);
    for (int64_t i = 0; i < n && !rc; i++)
        tensor_copy_elems(&it->out[k], i * first->count,
                          &s->items[i * s->width + k], 0, first->count);
    return rc;
}

static enum mst_code batch_go(struct dataset_iter *it, enum mst_code got)
{
    struct batch_iter *b = CONTAINER(it, struct batch_iter, it);
    struct dataset_iter *in = dataset_iter_input(it, 0);
    enum mst_code rc = MST_OK;

    while (!b->over) {
        if (got == DATASET_FRESH)
            got = dataset_pull(in, it);
        if (got && got != OP_LATER)
            collected_done(&b->s); /* as TensorFlow: they are lost */
        if (got)
            return got;
        b->over = in->end;
        if (!in->end)
            collected_add(&b->s, in);
        if (b->s.width && (int64_t)b->s.count / b->s.width >= it->d->n[0])
            break;
        got = DATASET_FRESH;
    }
    if (!b->s.count ||
        (it->d->flag && (int64_t)b->s.count / b->s.width < it->d->n[0])) {
        collected_done(&b->s);
        return dataset_end(it);
    }
    dataset_room(it, b->s.width);
    for (int k = 0; k < it->count && !rc; k++)
        rc = stack(it, &b->s, k);
    collected_done(&b->s);
    return rc;
}

static void batch_iter_done(struct dataset_iter *it)
{
    collected_done(&CONTAINER(it, struct batch_iter, it)->s);
}

static int64_t batch_count(const struct dataset *d)
{
    int64_t have = dataset_cardinality(d->inputs[0]);

    return have < 0 ? have
                    : have / d->n[0] + (!d->flag && have % d->n[0] ? 1 : 0);
}

static const struct dataset_kind batch_kind = { sizeof(struct batch_iter),
                                                batch_go, batch_iter_done,
                                                batch_count };

enum mst_code dataset_batch_args(struct op_ctx *c, int size, int drop,
                                 int64_t *ret_size, bool *ret_drop)
{
    int64_t n;
    enum mst_code rc = dataset_number(c, size, "batch_size", &n);

    if (rc)
        return rc;
    if (n <= 0)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Batch size must be greater than zero.");
    if (drop && op_in(c, drop)->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "drop_remainder must be a scalar");
    *ret_size = n;
    *ret_drop = drop && *TENSOR_DATA(op_in(c, drop), bool);
    return MST_OK;
}

struct dataset *dataset_batch_new(struct dataset *input, int64_t size,
                                  bool drop)
{
    struct dataset *d = dataset_new(&batch_kind, 1, 0);

    d->inputs[0] = input;
    d->n[0] = size;
    d->flag = drop;
    return d;
}

static enum mst_code batch_make(struct op_ctx *c, int drop,
                                struct dataset **ret)
{
    struct dataset *in = dataset_of(op_in(c, 0));
    int64_t size;
    bool dropped;
    enum mst_code rc = dataset_batch_args(c, 1, drop, &size, &dropped);

    if (rc)
        return rc;
    if (!in)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "The given variant tensor is not a dataset.");
    *ret = dataset_batch_new(dataset_ref(in), size, dropped);
    return MST_OK;
}

static enum mst_code batch_run(struct op_ctx *c)
{
    struct dataset *d;
    enum mst_code rc = batch_make(c, c->node->in_count > 2 ? 2 : 0, &d);

    return rc ? rc : dataset_put(c, d);
}

static enum mst_code parallel_batch_run(struct op_ctx *c)
{
    struct dataset *d;
    int64_t n;
    enum mst_code rc = dataset_number(c, 2, "num_parallel_calls", &n);

    if (!rc)
        rc = batch_make(c, 3, &d);
    return rc ? rc
              : dataset_put(c, dataset_ahead_new(d, c->node->env->pool, n));
}

const struct op_def def_batch_dataset = {
    .name = "BatchDataset",
    .in = "input_dataset: variant, batch_size: int64",
    .out = "handle: variant",
    .attr = DATASET_ATTRS DATASET_META,
    .kernel = (const struct op_kernel[]){ { DT_ANY, batch_run }, { 0 } },
};

const struct op_def def_batch_dataset_v2 = {
    .name = "BatchDatasetV2",
    .in = "input_dataset: variant, batch_size: int64, drop_remainder: bool",
    .out = "handle: variant",
    .attr = "parallel_copy: bool = false; " DATASET_ATTRS DATASET_META,
    .kernel = (const struct op_kernel[]){ { DT_ANY, batch_run }, { 0 } },
};

const struct op_def def_parallel_batch_dataset = {
    .name = "ParallelBatchDataset",
    .in = "input_dataset: variant, batch_size: int64, "
          "num_parallel_calls: int64, drop_remainder: bool",
    .out = "handle: variant",
    .attr = "parallel_copy: bool = false; " DATASET_ATTRS
            "; deterministic: string = 'default'" DATASET_META,
    .kernel =
        (const struct op_kernel[]){ { DT_ANY, parallel_batch_run }, { 0 } },
};

/* ---- shuffled ---- */

struct shuffle_iter {
    struct dataset_iter it;
    bool begun, over;
    struct philox_words words;
    struct collected *ring;    /* of `room` places, at most n[0] */
    int64_t room, first, last; /* elements [first, last), modulo n[0] */
};

static void shuffle_begin(struct shuffle_iter *s)
{
    struct dataset *d = s->it.d;
    uint64_t seed = (uint64_t)d->n[1], seed2 = (uint64_t)d->n[2];

    if (d->flag) { /* each time in another order */
        pthread_mutex_lock(&d->lock);
        seed = philox_word(&d->seeds);
        seed2 = philox_word(&d->seeds);
        pthread_mutex_unlock(&d->lock);
    }
    s->words = philox_words(philox_seeded(seed, seed2));
    s->begun = true;
}

/* The ring grows up to n[0] places as elements come; none is freed before the
 * ring has gone round, so that places keep their numbers. */
static void shuffle_put(struct shuffle_iter *s)
{
    int64_t most = s->it.d->n[0], at = s->last++ % most;

    if (at >= s->room) {
        int64_t room = MIN(most, s->room ? 2 * s->room : 64);

        s->ring = mem_grow(s->ring, (size_t)room, sizeof(*s->ring));
        memset(s->ring + s->room, 0,
               (size_t)(room - s->room) * sizeof(*s->ring));
        s->room = room;
    }
    collected_done(&s->ring[at]);
    collected_add(&s->ring[at], s->it.in[0]);
}

static enum mst_code shuffle_go(struct dataset_iter *it, enum mst_code got)
{
    struct shuffle_iter *s = CONTAINER(it, struct shuffle_iter, it);
    struct dataset_iter *in = dataset_iter_input(it, 0);
    struct collected *chosen, swap;
    int64_t most = it->d->n[0];

    if (!s->begun)
        shuffle_begin(s);
    while (!s->over && s->last - s->first < most) {
        if (got == DATASET_FRESH)
            got = dataset_pull(in, it);
        if (got)
            return got;
        s->over = in->end;
        if (!in->end)
            shuffle_put(s);
        got = DATASET_FRESH;
    }
    if (s->first == s->last)
        return dataset_end(it);
    chosen =
        &s->ring[(s->first + philox_word(&s->words) % (s->last - s->first)) %
                 most];
    dataset_room(it, chosen->width);
    for (int i = 0; i < it->count; i++)
        tensor_move(&it->out[i], &chosen->items[i]);
    swap = *chosen;
    *chosen = s->ring[s->first % most];
    s->ring[s->first++ % most] = swap;
    return MST_OK;
}

static void shuffle_iter_done(struct dataset_iter *it)
{
    struct shuffle_iter *s = CONTAINER(it, struct shuffle_iter, it);

    for (int64_t i = 0; i < s->room; i++)
        collected_done(&s->ring[i]);
    mem_free(s->ring);
}

static int64_t shuffle_count(const struct dataset *d)
{
    return dataset_cardinality(d->inputs[0]);
}

static const struct dataset_kind shuffle_kind = { sizeof(struct shuffle_iter),
                                                  shuffle_go, shuffle_iter_done,
                                                  shuffle_count };

static enum mst_code shuffle_run(struct op_ctx *c)
{
    static const char *const names[] = { "buffer_size", "seed", "seed2" };
    struct dataset *d;
    int64_t n[3];
    enum mst_code rc = MST_OK;

    for (int i = 0; i < 3 && !rc; i++)
        rc = dataset_number(c, 1 + i, names[i], &n[i]);
    if (rc)
        return rc;
    if (n[0] <= 0 && n[0] != -1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "buffer_size must be greater than zero or "
                       "UNKNOWN_CARDINALITY");
    rc = dataset_make(c, &shuffle_kind, 1, 0, &d);
    if (rc)
        return rc;
    if (!n[1] && !n[2]) {
        n[1] = (int64_t)rng_u64();
        n[2] = (int64_t)rng_u64();
    }
    n[0] = n[0] < 0 ? INT64_MAX / 4 : n[0];
    memcpy(d->n, n, sizeof(n));
    d->flag = op_attr_bool(c->node, "reshuffle_each_iteration");
    d->seeds = philox_words(philox_seeded((uint64_t)n[1], (uint64_t)n[2]));
    return dataset_put(c, d);
}

#define SHUFFLE(stem, text, in_, flags_)                                       \
    const struct op_def def_##stem = {                                         \
        .name = text,                                                          \
        .in = "input_dataset: variant, buffer_size: int64, seed: int64, "      \
              "seed2: int64" in_,                                              \
        .out = "handle: variant",                                              \
        .attr = "reshuffle_each_iteration: bool = true; " DATASET_ATTRS        \
            DATASET_META,                                                      \
        .flags = flags_,                                                       \
        .kernel =                                                              \
            (const struct op_kernel[]){ { DT_ANY, shuffle_run }, { 0 } },      \
    };

SHUFFLE(shuffle_dataset, "ShuffleDataset", "", 0)
SHUFFLE(shuffle_dataset_v3, "ShuffleDatasetV3", ", seed_generator: resource",
        OP_STATEFUL)
