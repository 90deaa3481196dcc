/*
 * Random ops without a state: the seed, or the key and counter that are made
 * of it, is an input, and equal inputs give equal outputs.
 */
#include "kernel/args.h"
#include "kernel/random_fill.h"
#include "kernel/random_state.h"

/* Of TensorFlow's algorithms this is the one that its CPU has. */
enum { ALG_PHILOX = 1, ALG_THREEFRY = 2, ALG_AUTO = 3 };

/* Key, counter and algorithm from inputs i, i + 1, i + 2, for `count` numbers:
 * where there are none to make, TensorFlow looks at the key only. */
static enum mst_code given(struct op_ctx *c, int i, int64_t count,
                           struct philox *ret)
{
    const struct tensor *key = op_in(c, i), *counter = op_in(c, i + 1);
    const struct tensor *alg = op_in(c, i + 2);
    const uint64_t *k = key->data, *n = counter->data;
    char text[SHAPE_TEXT_MAX];
    uint64_t high;
    int32_t a;

    if (alg->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "input %d (0-based) must have shape [], not %s", i + 2,
                       tensor_shape_text(alg, text));
    a = *TENSOR_DATA(alg, int32_t);
    if (key->ndim != 1 || key->count != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "key must have shape [1], not %s. (Note that batched "
                       "keys are not supported yet.)",
                       tensor_shape_text(key, text));
    if (count == 0) {
        *ret = (struct philox){ 0 };
        return MST_OK;
    }
    if (a == ALG_THREEFRY || a < ALG_PHILOX || a > ALG_AUTO)
        return op_fail(c, MST_INVALID_ARGUMENT, "Unsupported algorithm id: %d",
                       a);
    if (counter->ndim != 1 || counter->count < 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "counter must be a vector with length at least 1; got "
                       "shape: %s. (Note that batched counters are not "
                       "supported yet.)",
                       tensor_shape_text(counter, text));
    high = counter->count > 1 ? n[1] : 0;
    *ret = (struct philox){
        .key = { (uint32_t)k[0], (uint32_t)(k[0] >> 32) },
        .counter = { (uint32_t)n[0], (uint32_t)(n[0] >> 32), (uint32_t)high,
                     (uint32_t)(high >> 32) },
    };
    return MST_OK;
}

/* The seed is input 1; its type does not matter where nothing is made. */
static enum mst_code scramble(struct op_ctx *c, int64_t count,
                              struct philox *ret)
{
    const struct tensor *t = op_in(c, 1);

    if (count || t->ndim != 1 || t->count != 2)
        return random_scramble(c, 1, ret);
    *ret = (struct philox){ 0 };
    return MST_OK;
}

/* Inputs: shape, then the seed (or key, counter, algorithm), then for
 * RANDOM_INT the range. */
static enum mst_code stateless(struct op_ctx *c, enum random_kind kind, bool v2)
{
    struct random_range range = { 0 };
    struct philox gen;
    struct shape s;
    int64_t count = 0;
    enum mst_code rc = args_shape(c, 0, "shape", &s);

    if (!rc && !shape_count(s.ndim, s.dims, 1, &count))
        count = INT64_MAX; /* more than there is: op_out_new() says so */
    if (!rc)
        rc = v2 ? given(c, 1, count, &gen) : scramble(c, count, &gen);
    if (!rc && kind == RANDOM_INT && count)
        rc = random_range(c, v2 ? 4 : 2, count, &range);
    if (!rc)
        rc = op_out_new(c, 0, s.ndim, s.dims);
    if (!rc)
        random_fill(c, kind, gen, &range);
    return rc;
}

#define STATELESS(op, KIND, V2)                                                \
    static enum mst_code op(struct op_ctx *c)                                  \
    {                                                                          \
        return stateless(c, KIND, V2);                                         \
    }

STATELESS(stateless_random_uniform, RANDOM_UNIFORM, false)
STATELESS(stateless_random_normal, RANDOM_NORMAL, false)
STATELESS(stateless_truncated_normal, RANDOM_TRUNCATED, false)
STATELESS(stateless_random_uniform_int, RANDOM_INT, false)
STATELESS(stateless_random_uniform_full_int, RANDOM_BITS, false)
STATELESS(stateless_random_uniform_v2, RANDOM_UNIFORM, true)
STATELESS(stateless_random_normal_v2, RANDOM_NORMAL, true)
STATELESS(stateless_truncated_normal_v2, RANDOM_TRUNCATED, true)
STATELESS(stateless_random_uniform_int_v2, RANDOM_INT, true)
STATELESS(stateless_random_uniform_full_int_v2, RANDOM_BITS, true)

#define STATELESS_FLOATS(op, NAME)                                             \
    const struct op_def def_##op = {                                           \
        .name = NAME,                                                          \
        .in = "shape: T, seed: Tseed",                                         \
        .out = "output: dtype",                                                \
        .attr = "dtype: {half, bfloat16, float, double} = float; "             \
                "T: {int32, int64} = int32; Tseed: {int32, int64} = int64",    \
        .kernel = (const struct op_kernel[]){ { DT_ANY, op }, { 0 } },         \
    }
STATELESS_FLOATS(stateless_random_uniform, "StatelessRandomUniform");
STATELESS_FLOATS(stateless_random_normal, "StatelessRandomNormal");
STATELESS_FLOATS(stateless_truncated_normal, "StatelessTruncatedNormal");

#define STATELESS_FLOATS_V2(op, NAME)                                          \
    const struct op_def def_##op = {                                           \
        .name = NAME,                                                          \
        .in = "shape: Tshape, key: uint64, counter: uint64, alg: int32",       \
        .out = "output: dtype",                                                \
        .attr = "dtype: {half, bfloat16, float, double} = float; "             \
                "Tshape: {int32, int64} = int32",                              \
        .kernel = (const struct op_kernel[]){ { DT_ANY, op }, { 0 } },         \
    }
STATELESS_FLOATS_V2(stateless_random_uniform_v2, "StatelessRandomUniformV2");
STATELESS_FLOATS_V2(stateless_random_normal_v2, "StatelessRandomNormalV2");
STATELESS_FLOATS_V2(stateless_truncated_normal_v2,
                    "StatelessTruncatedNormalV2");

const struct op_def def_stateless_random_uniform_int = {
    .name = "StatelessRandomUniformInt",
    .in = "shape: T, seed: Tseed, minval: dtype, maxval: dtype",
    .out = "output: dtype",
    .attr = "dtype: {int32, int64}; T: {int32, int64}; "
            "Tseed: {int32, int64} = int64",
    .kernel =
        (const struct op_kernel[]){ { DT_ANY, stateless_random_uniform_int },
                                    { 0 } },
};

const struct op_def def_stateless_random_uniform_int_v2 = {
    .name = "StatelessRandomUniformIntV2",
    .in = "shape: Tshape, key: uint64, counter: uint64, alg: int32, "
          "minval: dtype, maxval: dtype",
    .out = "output: dtype",
    .attr = "dtype: {int32, int64, uint32, uint64}; "
            "Tshape: {int32, int64} = int32",
    .key = "dtype",
    .kernel =
        (const struct op_kernel[]){
            { DT_INT32, stateless_random_uniform_int_v2 },
            { DT_INT64, stateless_random_uniform_int_v2 },
            { 0 } },
};

const struct op_def def_stateless_random_uniform_full_int = {
    .name = "StatelessRandomUniformFullInt",
    .in = "shape: T, seed: Tseed",
    .out = "output: dtype",
    .attr = "dtype: {int32, int64, uint32, uint64} = uint64; "
            "T: {int32, int64} = int32; "
            "Tseed: {int32, int64, uint32, uint64} = int64",
    .kernel =
        (const struct op_kernel[]){
            { DT_ANY, stateless_random_uniform_full_int }, { 0 } },
};

const struct op_def def_stateless_random_uniform_full_int_v2 = {
    .name = "StatelessRandomUniformFullIntV2",
    .in = "shape: Tshape, key: uint64, counter: uint64, alg: int32",
    .out = "output: dtype",
    .attr = "dtype: {int32, int64, uint32, uint64} = uint64; "
            "Tshape: {int32, int64} = int32",
    .kernel =
        (const struct op_kernel[]){
            { DT_ANY, stateless_random_uniform_full_int_v2 }, { 0 } },
};

/* ---- seeds to keys ---- */

static enum mst_code get_alg(struct op_ctx *c, int out)
{
    enum mst_code rc = op_out_new(c, out, 0, NULL);

    if (!rc)
        *TENSOR_DATA(op_out(c, out), int32_t) = ALG_PHILOX;
    return rc;
}

static enum mst_code stateless_random_get_alg(struct op_ctx *c)
{
    return get_alg(c, 0);
}

static enum mst_code stateless_random_get_key_counter(struct op_ctx *c)
{
    struct philox p;
    uint64_t *key, *counter;
    enum mst_code rc = random_scramble(c, 0, &p);

    if (!rc)
        rc = op_out_new(c, 0, 1, (int64_t[]){ 1 });
    if (!rc)
        rc = op_out_new(c, 1, 1, (int64_t[]){ 2 });
    if (rc)
        return rc;
    key = TENSOR_DATA(op_out(c, 0), uint64_t);
    counter = TENSOR_DATA(op_out(c, 1), uint64_t);
    key[0] = p.key[0] | (uint64_t)p.key[1] << 32;
    counter[0] = p.counter[0] | (uint64_t)p.counter[1] << 32;
    counter[1] = p.counter[2] | (uint64_t)p.counter[3] << 32;
    return c->node->out_count == 3 ? get_alg(c, 2) : MST_OK;
}

const struct op_def def_stateless_random_get_alg = {
    .name = "StatelessRandomGetAlg",
    .out = "alg: int32",
    .flags = OP_STATEFUL,
    .kernel = (const struct op_kernel[]){ { DT_ANY, stateless_random_get_alg },
                                          { 0 } },
};

const struct op_def def_stateless_random_get_key_counter = {
    .name = "StatelessRandomGetKeyCounter",
    .in = "seed: Tseed",
    .out = "key: uint64, counter: uint64",
    .attr = "Tseed: {int32, int64} = int64",
    .kernel =
        (const struct op_kernel[]){
            { DT_ANY, stateless_random_get_key_counter }, { 0 } },
};

const struct op_def def_stateless_random_get_key_counter_alg = {
    .name = "StatelessRandomGetKeyCounterAlg",
    .in = "seed: Tseed",
    .out = "key: uint64, counter: uint64, alg: int32",
    .attr = "Tseed: {int32, int64} = int64",
    .kernel =
        (const struct op_kernel[]){
            { DT_ANY, stateless_random_get_key_counter }, { 0 } },
};
