/*
 * Candidate samplers: classes drawn for sampled losses, and how often each was
 * to be expected; and ComputeAccidentalHits.
 *
 * A node draws from a stream of its own. Learned samplers also count the true
 * classes that they see, in a tree of sums over classes; their state is under
 * the node's lock.
 */
#include <float.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "kernel/philox.h"
#include "kernel/types.h"

enum law { LAW_ALL, LAW_UNIFORM, LAW_LOG_UNIFORM, LAW_LEARNED, LAW_FIXED };

struct sampler {
    enum law law;
    int64_t trues, sampled, range;
    bool unique;
    pthread_mutex_t lock;
    struct philox gen; /* under lock, as is the tree */
    /* LAW_LEARNED: sums of weights, leaves from `leaves` on. */
    uint32_t *tree;
    int64_t leaves;
    struct buffer *memory;
    /* LAW_FIXED: Walker's alias table, and the weights themselves. */
    float *weight, *share, total;
    int32_t *alias;
};

/* ---- the laws ---- */

static uint64_t word64(struct philox_words *w)
{
    uint64_t low = philox_word(w);

    return low | (uint64_t)philox_word(w) << 32;
}

static uint64_t uniform64(struct philox_words *w, uint64_t n)
{
    uint64_t rest = UINT64_MAX % n + 1, r;

    if (!(n & (n - 1)))
        return word64(w) & (n - 1);
    do {
        r = word64(w);
    } while (r < rest);
    return r % n;
}

static int64_t pick_learned(const struct sampler *s, struct philox_words *w)
{
    uint32_t at = philox_below(w, s->tree[1]);
    int64_t i = 1;

    while (i < s->leaves) {
        i *= 2;
        if (at >= s->tree[i])
            at -= s->tree[i++];
    }
    return i - s->leaves;
}

static int64_t sample(const struct sampler *s, struct philox_words *w)
{
    uint32_t high, low;
    float r;
    int64_t i;

    switch (s->law) {
    case LAW_UNIFORM:
        return (int64_t)uniform64(w, (uint64_t)s->range);
    case LAW_LOG_UNIFORM:
        high = philox_word(w);
        low = philox_word(w);
        return ((int64_t)exp(philox_double(high, low) *
                             log1p((double)s->range)) -
                1) %
               s->range;
    case LAW_LEARNED:
        return pick_learned(s, w);
    default:
        r = philox_float(philox_word(w));
        i = philox_below(w, (uint32_t)s->range);
        return r < s->share[i] ? i : s->alias[i];
    }
}

static float probability(const struct sampler *s, int64_t v)
{
    switch (s->law) {
    case LAW_UNIFORM:
        return (float)(1.0 / (double)s->range);
    case LAW_LOG_UNIFORM:
        return (float)(log(((double)v + 2.0) / ((double)v + 1.0)) /
                       log1p((double)s->range));
    case LAW_LEARNED:
        return (float)s->tree[s->leaves + v] / (float)s->tree[1];
    default:
        return v >= 0 && v < s->range ? s->weight[v] / s->total : 0;
    }
}

static float expected(const struct sampler *s, int64_t v, int64_t tries)
{
    float p;

    if (s->law == LAW_ALL)
        return 1;
    p = probability(s, v);
    if (tries == s->sampled)
        return p * (float)s->sampled;
    return (float)-expm1((double)tries * log1p(-(double)p));
}

/* ---- a set of classes ---- */

/* What stands for a class; 0 stands for none, and so class -1 is not told. */
#define SLOT(v) ((int64_t)((uint64_t)(v) + 1))

struct seen {
    int64_t *slot; /* class + 1, or 0 */
    uint64_t mask;
};

/* Where v is or would be. */
static int64_t *seen_at(const struct seen *s, int64_t v)
{
    uint64_t i = (uint64_t)v * 0x9e3779b97f4a7c15ull >> 20;

    while (s->slot[i & s->mask] && s->slot[i & s->mask] != SLOT(v))
        i++;
    return &s->slot[i & s->mask];
}

static enum mst_code draw_unique(struct op_ctx *c, const struct sampler *s,
                                 struct philox_words *w, int64_t *ret,
                                 int64_t *ret_tries)
{
    int64_t most = 100000000 + 1000 * s->sampled, n = 0, tries = 0;
    struct seen seen = { .mask = 15 };
    struct buffer *b;

    while (seen.mask < 2 * (uint64_t)s->sampled)
        seen.mask = 2 * seen.mask + 1;
    b = buffer_new((size_t)(seen.mask + 1) * sizeof(int64_t));
    if (!b)
        return op_fail(c, MST_RESOURCE_EXHAUSTED, "OOM in a sampler");
    memset(b->data, 0, (size_t)(seen.mask + 1) * sizeof(int64_t));
    seen.slot = (int64_t *)b->data;
    while (n < s->sampled && tries < most) {
        int64_t v = sample(s, w), *slot = seen_at(&seen, v);

        tries++;
        if (!*slot) {
            *slot = SLOT(v);
            ret[n++] = v;
        }
    }
    buffer_unref(b);
    *ret_tries = tries;
    if (n == s->sampled)
        return MST_OK;
    return op_fail(c, MST_INVALID_ARGUMENT,
                   "There are not so many classes to be drawn");
}

/* ---- nodes ---- */

static void sampler_done(struct op_node *n)
{
    struct sampler *s = n->state;

    if (!s)
        return;
    buffer_unref(s->memory);
    pthread_mutex_destroy(&s->lock);
}

static enum mst_code init_learned(struct sampler *s, struct status *st)
{
    s->leaves = 1;
    while (s->leaves < s->range)
        s->leaves *= 2;
    s->memory = buffer_new((size_t)s->leaves * 2 * sizeof(*s->tree));
    if (!s->memory)
        return status_set(st, MST_RESOURCE_EXHAUSTED, "range_max is too large");
    s->tree = (uint32_t *)s->memory->data;
    for (int64_t i = 0; i < s->leaves; i++)
        s->tree[s->leaves + i] = i < s->range;
    for (int64_t i = s->leaves - 1; i > 0; i--)
        s->tree[i] = s->tree[2 * i] + s->tree[2 * i + 1];
    return MST_OK;
}

/* Pairs classes that are drawn too often with those that are too seldom. */
static void make_aliases(struct sampler *s)
{
    int64_t n = s->range, high = n, low = 0;
    double *p = mem_array((size_t)n, sizeof(*p)), sum = 0;
    int32_t *stack = mem_array((size_t)n, sizeof(*stack));

    for (int64_t i = 0; i < n; i++)
        sum += (double)s->weight[i];
    for (int64_t i = 0; i < n; i++) {
        p[i] = (double)s->weight[i] * (double)n / sum;
        if (p[i] < 1)
            stack[low++] = (int32_t)i;
        else
            stack[--high] = (int32_t)i;
    }
    for (int64_t i = 0; i < n; i++)
        s->alias[i] = (int32_t)i;
    while (low > 0 && high < n) {
        int32_t l = stack[--low], h = stack[high++];

        s->alias[l] = h;
        p[h] -= 1 - p[l];
        s->share[l] = (float)p[l];
        if (p[h] < 1)
            stack[low++] = h;
        else
            stack[--high] = h;
    }
    while (low > 0)
        s->share[stack[--low]] = 1;
    while (high < n)
        s->share[stack[high++]] = 1;
    mem_free(p);
    mem_free(stack);
}

static void add_weight(struct sampler *s, int64_t *n, int64_t id, float w,
                       const int64_t shards[2])
{
    if (id % shards[0] != shards[1])
        return;
    s->total += w;
    if (*n < s->range)
        s->weight[*n] = w;
    ++*n;
}

static enum mst_code read_vocabulary(struct op_node *node, struct sampler *s,
                                     float distortion, int64_t *n,
                                     const int64_t shards[2], struct status *st)
{
    const char *path = op_attr_str(node, "vocab_file").data;
    FILE *f = fopen(path, "r");
    char *line = NULL;
    size_t room = 0;
    int64_t id = *n;
    enum mst_code rc = MST_OK;

    if (!f)
        return status_set(st, MST_NOT_FOUND, "%s; No such file or directory",
                          path);
    while (!rc && getline(&line, &room, f) >= 0) {
        const char *last = strrchr(line, ',');
        char *end;
        float w;

        last = last ? last + 1 : line;
        w = strtof(last, &end);
        if (end == last)
            rc = status_set(st, MST_INVALID_ARGUMENT,
                            "Wrong vocabulary format at line: %s", line);
        else
            add_weight(s, n, id++, powf(w, distortion), shards);
    }
    free(line);
    fclose(f);
    return rc;
}

static enum mst_code init_fixed(struct op_node *node, struct sampler *s,
                                struct status *st)
{
    const struct attr *unigrams = op_attr(node, "unigrams");
    bool file = op_attr_str(node, "vocab_file").len > 0;
    float distortion = op_attr_float(node, "distortion");
    const int64_t shards[2] = { op_attr_int(node, "num_shards"),
                                op_attr_int(node, "shard") };
    int64_t reserved = op_attr_int(node, "num_reserved_ids"), n = 0;
    enum mst_code rc = MST_OK;

    if (!file && !unigrams->count)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Must provide either vocab_file or unigrams.");
    if (file && unigrams->count)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Must only provide one of vocab_file and unigrams.");
    s->memory = buffer_new((size_t)s->range * 3 * sizeof(float));
    if (!s->memory || reserved < 0 || reserved > s->range * shards[0])
        return status_set(st, MST_RESOURCE_EXHAUSTED,
                          "range_max or num_reserved_ids is too large");
    memset(s->memory->data, 0, (size_t)s->range * 3 * sizeof(float));
    s->weight = (float *)s->memory->data;
    s->share = s->weight + s->range;
    s->alias = (int32_t *)(s->share + s->range);
    for (int64_t i = 0; i < reserved; i++)
        add_weight(s, &n, i, 0, shards);
    if (file) {
        rc = read_vocabulary(node, s, distortion, &n, shards, st);
    } else {
        int64_t id = n;

        for (int i = 0; i < unigrams->count; i++)
            add_weight(s, &n, id++, powf(unigrams->value[i].f, distortion),
                       shards);
    }
    if (!rc && n != s->range)
        rc = status_set(st, MST_INVALID_ARGUMENT,
                        "range is %lld, but the number of weights is %lld",
                        (long long)s->range, (long long)n);
    if (!rc)
        make_aliases(s);
    return rc;
}

static enum mst_code sampler_init(struct op_node *n, struct status *st)
{
    struct sampler *s = ARENA_NEW(n->arena, struct sampler);
    const char *name = n->def->name;
    uint64_t seed = (uint64_t)op_attr_int(n, "seed");
    uint64_t seed2 = (uint64_t)op_attr_int(n, "seed2");

    if (!seed && !seed2) {
        seed = rng_u64();
        seed2 = rng_u64();
    }
    s->gen = philox_seeded(seed, seed2);
    s->law = name[0] == 'A'               ? LAW_ALL
             : name[0] == 'U'             ? LAW_UNIFORM
             : !strncmp(name, "Log", 3)   ? LAW_LOG_UNIFORM
             : !strncmp(name, "Fixed", 5) ? LAW_FIXED
                                          : LAW_LEARNED;
    s->trues = op_attr_int(n, "num_true");
    s->sampled = op_attr_int(n, "num_sampled");
    s->unique = op_attr_bool(n, "unique");
    s->range = s->law == LAW_ALL ? s->sampled : op_attr_int(n, "range_max");
    pthread_mutex_init(&s->lock, NULL);
    n->state = s;
    if (s->law >= LAW_LEARNED && s->range >= INT32_MAX)
        return status_set(st, MST_INVALID_ARGUMENT, "range_max is too large");
    return s->law == LAW_LEARNED ? init_learned(s, st)
           : s->law == LAW_FIXED ? init_fixed(n, s, st)
                                 : MST_OK;
}

static void learn(struct sampler *s, const int64_t *classes, int64_t n)
{
    for (int64_t i = 0; i < n && s->tree[1] < INT32_MAX; i++)
        for (int64_t k = s->leaves + classes[i]; k; k /= 2)
            s->tree[k]++;
}

static enum mst_code draw(struct op_ctx *c, struct sampler *s)
{
    const struct tensor *classes = op_in(c, 0);
    const int64_t *given = classes->data;
    int64_t *out = op_out(c, 0)->data, tries = s->sampled;
    struct philox_words w = philox_words(s->gen);
    enum mst_code rc = MST_OK;

    philox_skip(&s->gen, 512 * (uint64_t)s->sampled);
    if (s->law == LAW_ALL)
        for (int64_t i = 0; i < s->sampled; i++)
            out[i] = i;
    else if (s->unique)
        rc = draw_unique(c, s, &w, out, &tries);
    else
        for (int64_t i = 0; i < s->sampled; i++)
            out[i] = sample(s, &w);
    if (rc)
        return rc;
    for (int64_t i = 0; i < s->sampled; i++)
        TENSOR_DATA(op_out(c, 2), float)[i] = expected(s, out[i], tries);
    for (int64_t i = 0; i < classes->count; i++)
        TENSOR_DATA(op_out(c, 1), float)[i] = expected(s, given[i], tries);
    if (s->law == LAW_LEARNED)
        learn(s, given, classes->count);
    return MST_OK;
}

static enum mst_code sampler_run(struct op_ctx *c)
{
    struct sampler *s = c->node->state;
    const struct tensor *classes = op_in(c, 0);
    enum mst_code rc;

    if (classes->ndim != 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "true_classes must be a matrix");
    if (classes->dims[1] != s->trues)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "true_classes must have num_true columns, expected: "
                       "%lld was: %lld",
                       (long long)classes->dims[1], (long long)s->trues);
    if (s->unique && s->sampled > s->range)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Sampler's range is too small.");
    for (int64_t i = 0; i < classes->count; i++) {
        int64_t v = TENSOR_DATA(classes, int64_t)[i];

        if (v < 0 || v >= s->range)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "`true_candidate` out of range [0, %lld), received "
                           "%lld",
                           (long long)s->range, (long long)v);
    }
    rc = op_out_new(c, 0, 1, &s->sampled);
    if (!rc)
        rc = op_out_like(c, 1, classes);
    if (!rc)
        rc = op_out_new(c, 2, 1, &s->sampled);
    if (rc)
        return rc;
    pthread_mutex_lock(&s->lock);
    rc = draw(c, s);
    pthread_mutex_unlock(&s->lock);
    return rc;
}

#define SAMPLER_DEF(stem, NAME, MORE)                                          \
    const struct op_def def_##stem = {                                         \
        .name = NAME,                                                          \
        .in = "true_classes: int64",                                           \
        .out = "sampled_candidates: int64, true_expected_count: float, "       \
               "sampled_expected_count: float",                                \
        .attr = "num_true: int >= 1; num_sampled: int >= 1; unique: "          \
                "bool; " MORE "seed: int = 0; seed2: int = 0",                 \
        .flags = OP_STATEFUL,                                                  \
        .init = sampler_init,                                                  \
        .done = sampler_done,                                                  \
        .kernel = KERNELS({ DT_ANY, sampler_run }, ),                          \
    }
SAMPLER_DEF(all_candidate_sampler, "AllCandidateSampler", "");
SAMPLER_DEF(uniform_candidate_sampler, "UniformCandidateSampler",
            "range_max: int >= 1; ");
SAMPLER_DEF(log_uniform_candidate_sampler, "LogUniformCandidateSampler",
            "range_max: int >= 1; ");
SAMPLER_DEF(learned_unigram_candidate_sampler, "LearnedUnigramCandidateSampler",
            "range_max: int >= 1; ");
SAMPLER_DEF(thread_unsafe_unigram_candidate_sampler,
            "ThreadUnsafeUnigramCandidateSampler", "range_max: int >= 1; ");
SAMPLER_DEF(fixed_unigram_candidate_sampler, "FixedUnigramCandidateSampler",
            "range_max: int >= 1; vocab_file: string = ''; "
            "distortion: float = 1; num_reserved_ids: int = 0; "
            "num_shards: int >= 1 = 1; shard: int >= 0 = 0; "
            "unigrams: list(float) = []; ");

/* ---- ComputeAccidentalHits ---- */

static enum mst_code hits_init(struct op_node *n, struct status *st)
{
    n->state = ARENA_NEW(n->arena, int64_t);
    *(int64_t *)n->state = op_attr_int(n, "num_true");
    return MST_OK;
}

/* slot[i]: the class; place: where it was sampled last. */
static int64_t find_hits(struct op_ctx *c, const struct seen *s,
                         const int64_t *place, bool write)
{
    const struct tensor *t = op_in(c, 0);
    int64_t n = 0;

    for (int64_t i = 0; i < t->count; i++) {
        int64_t v = TENSOR_DATA(t, int64_t)[i], *slot = seen_at(s, v);

        if (*slot != SLOT(v) || v == -1)
            continue;
        if (write) {
            TENSOR_DATA(op_out(c, 0), int32_t)[n] = (int32_t)(i / t->dims[1]);
            TENSOR_DATA(op_out(c, 1), int64_t)[n] = place[slot - s->slot];
            TENSOR_DATA(op_out(c, 2), float)[n] = -FLT_MAX;
        }
        n++;
    }
    return n;
}

static enum mst_code accidental_hits(struct op_ctx *c)
{
    const struct tensor *t = op_in(c, 0), *sampled = op_in(c, 1);
    struct seen s = { .mask = 15 };
    int64_t n, *place;
    struct buffer *b;
    enum mst_code rc = MST_OK;

    if (t->ndim != 2 || t->dims[1] != *(const int64_t *)c->node->state)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "true_candidates must be a batch_size * num_true "
                       "matrix");
    if (sampled->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "sampled_candidates must be a vector, which is "
                       "typically an output from CandidateSampler");
    while (s.mask < 2 * (uint64_t)sampled->count)
        s.mask = 2 * s.mask + 1;
    b = buffer_new((size_t)(s.mask + 1) * 2 * sizeof(int64_t));
    if (!b)
        return op_fail(c, MST_RESOURCE_EXHAUSTED, "OOM");
    memset(b->data, 0, (size_t)(s.mask + 1) * 2 * sizeof(int64_t));
    s.slot = (int64_t *)b->data;
    place = s.slot + s.mask + 1;
    for (int64_t i = 0; i < sampled->count; i++) {
        int64_t v = TENSOR_DATA(sampled, int64_t)[i], *slot = seen_at(&s, v);

        *slot = SLOT(v);
        place[slot - s.slot] = i;
    }
    n = find_hits(c, &s, place, false);
    for (int i = 0; i < 3 && !rc; i++)
        rc = op_out_new(c, i, 1, &n);
    if (!rc)
        find_hits(c, &s, place, true);
    buffer_unref(b);
    return rc;
}

const struct op_def def_compute_accidental_hits = {
    .name = "ComputeAccidentalHits",
    .in = "true_classes: int64, sampled_candidates: int64",
    .out = "indices: int32, ids: int64, weights: float",
    .attr = "num_true: int; seed: int = 0; seed2: int = 0",
    .init = hits_init,
    .kernel = KERNELS({ DT_ANY, accidental_hits }, ),
};
