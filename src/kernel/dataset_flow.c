/*
 * Datasets that pass elements on: some of them, again, one after the other,
 * side by side, or as they are.
 */
#include "base/mem.h"
#include "kernel/dataset.h"
#include "kernel/dataset_ahead.h"
#include "kernel/types.h"

/* The number of an op with one dataset and one number. */
static enum mst_code numbered(struct op_ctx *c, const struct dataset_kind *kind,
                              const char *name, struct dataset **ret)
{
    int64_t n;
    enum mst_code rc = dataset_number(c, 1, name, &n);

    if (!rc)
        rc = dataset_make(c, kind, 1, 0, ret);
    if (!rc)
        (*ret)->n[0] = n;
    return rc;
}

#define FLOW(stem, text, in_, more, fn)                                        \
    const struct op_def def_##stem = {                                         \
        .name = text,                                                          \
        .in = "input_dataset: variant" in_,                                    \
        .out = "handle: variant",                                              \
        .attr = DATASET_ATTRS more,                                            \
        .kernel = (const struct op_kernel[]){ { DT_ANY, fn }, { 0 } },         \
    };
#define NUMBERED(stem, text, name, fn, kind)                                   \
    static enum mst_code fn(struct op_ctx *c)                                  \
    {                                                                          \
        struct dataset *d;                                                     \
        enum mst_code rc = numbered(c, &kind, name, &d);                       \
                                                                               \
        return rc ? rc : dataset_put(c, d);                                    \
    }                                                                          \
    FLOW(stem, text, ", " name ": int64", DATASET_META, fn)

/* ---- as they are: what only says how, not what ---- */

static enum mst_code same_run(struct op_ctx *c)
{
    struct dataset *d = dataset_of(op_in(c, 0));

    return d ? dataset_put(c, dataset_ref(d))
             : op_fail(c, MST_INVALID_ARGUMENT,
                       "The given variant tensor is not a dataset.");
}

static enum mst_code prefetch_run(struct op_ctx *c)
{
    struct dataset *d = dataset_of(op_in(c, 0));
    int64_t n;
    enum mst_code rc = dataset_number(c, 1, "buffer_size", &n);

    if (rc || !d || !n)
        return rc ? rc : same_run(c);
    if (n < -1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "buffer_size must be >= 0 or set buffer_size to be -1 "
                       "for auto-tuning");
    return dataset_put(
        c, dataset_ahead_new(dataset_ref(d), c->node->env->pool, n));
}

FLOW(prefetch_dataset, "PrefetchDataset", ", buffer_size: int64",
     "; slack_period: int = 0; legacy_autotune: bool = true; "
     "buffer_size_min: int = 0" DATASET_META,
     prefetch_run)

FLOW(options_dataset, "OptionsDataset", "",
     "; serialized_options: string" DATASET_META, same_run)
FLOW(model_dataset, "ModelDataset", "",
     "; algorithm: int = 0; cpu_budget: int = 0; ram_budget: int = 0", same_run)
FLOW(finalize_dataset, "FinalizeDataset", "",
     "; has_captured_ref: bool = false", same_run)
FLOW(max_intra_op_parallelism_dataset, "MaxIntraOpParallelismDataset",
     ", max_intra_op_parallelism: int64", "", same_run)
FLOW(private_thread_pool_dataset, "PrivateThreadPoolDataset",
     ", num_threads: int64", "", same_run)
FLOW(assert_next_dataset, "AssertNextDataset", ", transformations: string", "",
     same_run)
FLOW(rewrite_dataset, "RewriteDataset", ", rewrite_name: string", "", same_run)
FLOW(optimize_dataset, "OptimizeDataset", ", optimizations: string",
     "; optimization_configs: list(string) = []", same_run)
FLOW(optimize_dataset_v2, "OptimizeDatasetV2",
     ", optimizations_enabled: string, optimizations_disabled: string, "
     "optimizations_default: string",
     "; optimization_configs: list(string) = []", same_run)

/* ---- without the elements that fail ---- */

static enum mst_code ignore_go(struct dataset_iter *it, enum mst_code got)
{
    struct dataset_iter *in = dataset_iter_input(it, 0);

    for (;;) {
        if (got == DATASET_FRESH)
            got = dataset_pull(in, it);
        if (!got || got == OP_LATER || got == MST_CANCELLED)
            break;
        status_clear(it->c->st);
        got = DATASET_FRESH;
    }
    if (got)
        return got;
    it->end = in->end;
    dataset_take(it, in);
    return MST_OK;
}

static const struct dataset_kind ignore_kind = { sizeof(struct dataset_iter),
                                                 ignore_go, NULL, NULL };

static enum mst_code ignore_run(struct op_ctx *c)
{
    struct dataset *d;
    enum mst_code rc = dataset_make(c, &ignore_kind, 1, 0, &d);

    return rc ? rc : dataset_put(c, d);
}

FLOW(ignore_errors_dataset, "IgnoreErrorsDataset", "",
     "; log_warning: bool = false", ignore_run)

/* ---- the first n[0]; all when it is negative ---- */

static enum mst_code take_go(struct dataset_iter *it, enum mst_code got)
{
    struct dataset_iter *in = dataset_iter_input(it, 0);

    if (got == DATASET_FRESH && it->d->n[0] >= 0 && it->at >= it->d->n[0])
        return dataset_end(it);
    if (got == DATASET_FRESH)
        got = dataset_pull(in, it);
    if (got)
        return got;
    it->at++;
    it->end = in->end;
    dataset_take(it, in);
    return MST_OK;
}

static int64_t take_count(const struct dataset *d)
{
    int64_t have = dataset_cardinality(d->inputs[0]);

    if (have == DATASET_UNKNOWN || d->n[0] < 0)
        return have;
    return have == DATASET_INFINITE ? d->n[0] : MIN(d->n[0], have);
}

static const struct dataset_kind take_kind = { sizeof(struct dataset_iter),
                                               take_go, NULL, take_count };
NUMBERED(take_dataset, "TakeDataset", "count", take_run, take_kind)

/* ---- without the first n[0]; none when it is negative ---- */

static enum mst_code skip_go(struct dataset_iter *it, enum mst_code got)
{
    struct dataset_iter *in = dataset_iter_input(it, 0);

    if (it->d->n[0] < 0)
        return dataset_end(it);
    for (;;) {
        if (got == DATASET_FRESH)
            got = dataset_pull(in, it);
        if (got)
            return got;
        if (in->end || it->at >= it->d->n[0])
            break;
        it->at++;
        got = DATASET_FRESH;
    }
    it->end = in->end;
    dataset_take(it, in);
    return MST_OK;
}

static int64_t skip_count(const struct dataset *d)
{
    int64_t have = dataset_cardinality(d->inputs[0]);

    if (d->n[0] < 0)
        return 0;
    return have < 0 ? have : MAX(have - d->n[0], 0);
}

static const struct dataset_kind skip_kind = { sizeof(struct dataset_iter),
                                               skip_go, NULL, skip_count };
NUMBERED(skip_dataset, "SkipDataset", "count", skip_run, skip_kind)

/* ---- n[0] times, for ever when it is negative ---- */

struct repeat_iter {
    struct dataset_iter it;
    bool any; /* elements in this round */
};

static enum mst_code repeat_go(struct dataset_iter *it, enum mst_code got)
{
    struct repeat_iter *r = CONTAINER(it, struct repeat_iter, it);
    int64_t n = it->d->n[0];

    for (;;) {
        struct dataset_iter *in;

        if (n >= 0 && it->at >= n)
            return dataset_end(it);
        in = dataset_iter_input(it, 0);
        if (got == DATASET_FRESH)
            got = dataset_pull(in, it);
        if (got)
            return got;
        if (!in->end) {
            r->any = true;
            dataset_take(it, in);
            return MST_OK;
        }
        dataset_iter_drop_input(it, 0);
        /* Nothing for ever would never end. */
        it->at = n < 0 && !r->any ? INT64_MAX : it->at + 1;
        if (it->at == INT64_MAX)
            n = 0;
        r->any = false;
        got = DATASET_FRESH;
    }
}

static int64_t repeat_count(const struct dataset *d)
{
    int64_t have = dataset_cardinality(d->inputs[0]), all;

    if (!d->n[0] || !have)
        return 0;
    if (have == DATASET_UNKNOWN)
        return d->n[0] < 0 ? DATASET_INFINITE : DATASET_UNKNOWN;
    if (d->n[0] < 0 || have < 0)
        return DATASET_INFINITE;
    return __builtin_mul_overflow(have, d->n[0], &all) ? DATASET_UNKNOWN : all;
}

static const struct dataset_kind repeat_kind = { sizeof(struct repeat_iter),
                                                 repeat_go, NULL,
                                                 repeat_count };
NUMBERED(repeat_dataset, "RepeatDataset", "count", repeat_run, repeat_kind)

/* ---- one of n[0] shards, the n[1]th ---- */

static enum mst_code shard_go(struct dataset_iter *it, enum mst_code got)
{
    struct dataset_iter *in = dataset_iter_input(it, 0);

    for (;;) {
        if (got == DATASET_FRESH)
            got = dataset_pull(in, it);
        if (got)
            return got;
        if (in->end || it->at++ % it->d->n[0] == it->d->n[1])
            break;
        got = DATASET_FRESH;
    }
    it->end = in->end;
    dataset_take(it, in);
    return MST_OK;
}

static int64_t shard_count(const struct dataset *d)
{
    int64_t have = dataset_cardinality(d->inputs[0]);

    return have < 0 ? have : have / d->n[0] + (d->n[1] < have % d->n[0]);
}

static const struct dataset_kind shard_kind = { sizeof(struct dataset_iter),
                                                shard_go, NULL, shard_count };

static enum mst_code shard_run(struct op_ctx *c)
{
    struct dataset *d;
    int64_t shards, index;
    enum mst_code rc = dataset_number(c, 1, "num_shards", &shards);

    if (!rc)
        rc = dataset_number(c, 2, "index", &index);
    if (rc)
        return rc;
    if (shards <= 0)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Number of shards must be greater than zero (currently "
                       "num_shards = %lld).",
                       (long long)shards);
    if (index < 0 || index >= shards)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Index must be between 0 and %lld (currently index = "
                       "%lld).",
                       (long long)shards - 1, (long long)index);
    rc = dataset_make(c, &shard_kind, 1, 0, &d);
    if (rc)
        return rc;
    d->n[0] = shards;
    d->n[1] = index;
    return dataset_put(c, d);
}

FLOW(shard_dataset, "ShardDataset", ", num_shards: int64, index: int64",
     "; require_non_empty: bool = false" DATASET_META, shard_run)

/* ---- one after the other ---- */

static enum mst_code concat_go(struct dataset_iter *it, enum mst_code got)
{
    for (; it->at < it->d->input_count; it->at++) {
        struct dataset_iter *in = dataset_iter_input(it, (int)it->at);

        if (got == DATASET_FRESH)
            got = dataset_pull(in, it);
        if (got)
            return got;
        if (!in->end) {
            dataset_take(it, in);
            return MST_OK;
        }
        dataset_iter_drop_input(it, (int)it->at);
        got = DATASET_FRESH;
    }
    return dataset_end(it);
}

static int64_t concat_count(const struct dataset *d)
{
    int64_t total = 0;

    for (int i = 0; i < d->input_count; i++) {
        int64_t n = dataset_cardinality(d->inputs[i]);

        if (n == DATASET_INFINITE || total == DATASET_INFINITE)
            total = DATASET_INFINITE;
        else
            total = n < 0 || total < 0 ? DATASET_UNKNOWN : total + n;
    }
    return total;
}

static const struct dataset_kind concat_kind = { sizeof(struct dataset_iter),
                                                 concat_go, NULL,
                                                 concat_count };

static enum mst_code concat_run(struct op_ctx *c)
{
    struct dataset *d;
    enum mst_code rc = dataset_make(c, &concat_kind, 2, 0, &d);

    return rc ? rc : dataset_put(c, d);
}

FLOW(concatenate_dataset, "ConcatenateDataset", ", another_dataset: variant",
     DATASET_META, concat_run)

/* ---- side by side; it->stage is the input that is waited for ---- */

static enum mst_code zip_go(struct dataset_iter *it, enum mst_code got)
{
    int total = 0, at = 0;

    for (; it->stage < it->d->input_count; it->stage++) {
        struct dataset_iter *in = dataset_iter_input(it, it->stage);

        if (got == DATASET_FRESH)
            got = dataset_pull(in, it);
        if (got)
            return got;
        if (in->end)
            return dataset_end(it);
        got = DATASET_FRESH;
    }
    for (int i = 0; i < it->d->input_count; i++)
        total += it->in[i]->count;
    dataset_room(it, total);
    for (int i = 0; i < it->d->input_count; i++)
        for (int k = 0; k < it->in[i]->count; k++)
            tensor_move(&it->out[at++], &it->in[i]->out[k]);
    return MST_OK;
}

static int64_t zip_count(const struct dataset *d)
{
    int64_t least = DATASET_INFINITE;

    for (int i = 0; i < d->input_count; i++) {
        int64_t n = dataset_cardinality(d->inputs[i]);

        if (n == DATASET_UNKNOWN)
            return n;
        if (n != DATASET_INFINITE)
            least = least < 0 ? n : MIN(least, n);
    }
    return least;
}

static const struct dataset_kind zip_kind = { sizeof(struct dataset_iter),
                                              zip_go, NULL, zip_count };

static enum mst_code zip_run(struct op_ctx *c)
{
    struct dataset *d;
    enum mst_code rc = dataset_make(c, &zip_kind, c->node->in_count, 0, &d);

    return rc ? rc : dataset_put(c, d);
}

const struct op_def def_zip_dataset = {
    .name = "ZipDataset",
    .in = "input_datasets: N * variant",
    .out = "handle: variant",
    .attr = DATASET_ATTRS "; N: int >= 1" DATASET_META,
    .kernel = (const struct op_kernel[]){ { DT_ANY, zip_run }, { 0 } },
};

static enum mst_code cardinality_run(struct op_ctx *c)
{
    const struct dataset *d = dataset_of(op_in(c, 0));
    enum mst_code rc;

    if (!d)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "The given variant tensor is not a dataset.");
    rc = op_out_new(c, 0, 0, NULL);
    if (!rc)
        *TENSOR_DATA(op_out(c, 0), int64_t) = dataset_cardinality(d);
    return rc;
}

const struct op_def def_dataset_cardinality = {
    .name = "DatasetCardinality",
    .in = "input_dataset: variant",
    .out = "cardinality: int64",
    .attr = "cardinality_options: string = ''",
    .kernel = (const struct op_kernel[]){ { DT_ANY, cardinality_run }, { 0 } },
};
