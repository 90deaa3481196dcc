/*
 * RandomPoisson: small rates by Knuth's method (uniform numbers are multiplied
 * until the product is below exp(-rate)), others by Hörmann's transformed
 * rejection. Each output has RANDOM_RESERVE blocks of the stream to itself, and
 * takes the two uniform numbers of a block the last first. All of it is
 * computed in double.
 */
#include "kernel/args.h"
#include "kernel/random_fill.h"
#include "kernel/random_state.h"
#include "kernel/real.h"

struct source {
    struct philox gen;
    double uniform[2];
    int left;
};

static double next_uniform(struct source *s)
{
    if (!s->left) {
        uint32_t word[4];

        philox_next(&s->gen, word);
        s->uniform[0] = philox_double(word[0], word[1]);
        s->uniform[1] = philox_double(word[2], word[3]);
        s->left = 2;
    }
    return s->uniform[--s->left];
}

static double poisson_small(double rate, struct source *s)
{
    double limit = exp(-rate), product = 1;

    for (double x = 0;; x++) {
        product *= next_uniform(s);
        if (product <= limit)
            return x;
    }
}

static double poisson_large(double rate, double greatest, struct source *s)
{
    double b = 0.931 + 2.53 * sqrt(rate), a = -0.059 + 0.02483 * b;
    double inverse = 1.1239 + 1.1328 / (b - 3.4), log_rate = log(rate);

    for (;;) {
        double u = next_uniform(s) - 0.5, v = next_uniform(s);
        double side = 0.5 - fabs(u);
        double k = floor((2 * a / side + b) * u + rate + 0.43);

        if (k > greatest)
            continue;
        if (side >= 0.07 && v <= 0.9277 - 3.6224 / (b - 2))
            return k;
        if (k < 0 || (side < 0.013 && v > side))
            continue;
        if (log(v * inverse / (a / (side * side) + b)) <=
            -rate + k * log_rate - lgamma(k + 1))
            return k;
    }
}

struct poisson_arg {
    const struct tensor *rate, *out;
    struct philox gen;
    int64_t samples; /* of each rate */
    double greatest; /* of the output's type */
};

static double load_rate(const struct tensor *t, int64_t i)
{
    return t->dtype == DT_INT32 || t->dtype == DT_INT64
               ? (double)tensor_int(t, i)
               : real_load(t, i);
}

static void store(const struct tensor *t, int64_t i, double x)
{
    if (t->dtype == DT_INT32)
        TENSOR_DATA(t, int32_t)[i] = isnan(x) ? 0 : (int32_t)x;
    else if (t->dtype == DT_INT64)
        TENSOR_DATA(t, int64_t)[i] = isnan(x) ? 0 : (int64_t)x;
    else
        real_store(t, i, x);
}

static void poisson_loop(void *arg, int64_t begin, int64_t end)
{
    const struct poisson_arg *p = arg;

    for (int64_t i = begin; i < end; i++) {
        int64_t which = i / p->samples;
        double rate = load_rate(p->rate, which), x;
        struct source s = { .gen = p->gen };

        philox_skip(&s.gen, (uint64_t)i * RANDOM_RESERVE);
        if (!(rate >= 0) || rate > p->greatest)
            x = NAN;
        else
            x = rate < 10 ? poisson_small(rate, &s)
                          : poisson_large(rate, p->greatest, &s);
        store(p->out, i % p->samples * p->rate->count + which, x);
    }
}

static double greatest_of(enum dtype dt)
{
    return dt == DT_HALF    ? 65504
           : dt == DT_FLOAT ? 3.4028234663852886e38
           : dt == DT_INT32 ? INT32_MAX
           : dt == DT_INT64 ? 9223372036854774784.0
                            : 1.7976931348623157e308;
}

static enum mst_code random_poisson(struct op_ctx *c)
{
    const struct tensor *rate = op_in(c, 1);
    struct poisson_arg p = { .rate = rate, .out = op_out(c, 0) };
    struct shape s;
    enum mst_code rc = args_shape(c, 0, "shape", &s);

    if (rc)
        return rc;
    if (s.ndim + rate->ndim > TENSOR_RANK_MAX)
        return op_fail(c, MST_UNIMPLEMENTED,
                       "Tensors of rank %d are not supported, only up to %d",
                       s.ndim + rate->ndim, TENSOR_RANK_MAX);
    p.samples = args_product(s.dims, 0, s.ndim);
    for (int i = 0; i < rate->ndim; i++)
        s.dims[s.ndim++] = rate->dims[i];
    rc = op_out_new(c, 0, s.ndim, s.dims);
    if (rc || !op_out(c, 0)->count)
        return rc;
    p.greatest = greatest_of((enum dtype)op_out(c, 0)->dtype);
    p.gen = random_reserve(c, (uint64_t)op_out(c, 0)->count * RANDOM_RESERVE);
    op_for(c, op_out(c, 0)->count, 100, poisson_loop, &p);
    return MST_OK;
}

#define POISSON_DEF(stem, text, rate_, attrs)                                  \
    const struct op_def def_##stem = {                                         \
        .name = text,                                                          \
        .in = "shape: S, rate: " rate_,                                        \
        .out = "output: dtype",                                                \
        .attr = "seed: int = 0; seed2: int = 0; S: {int32, int64}; " attrs,    \
        .flags = OP_STATEFUL,                                                  \
        .key = "dtype",                                                        \
        .init = random_state_init,                                             \
        .done = random_state_done,                                             \
        .kernel =                                                              \
            (const struct op_kernel[]){ { DT_ANY, random_poisson }, { 0 } },   \
    }

POISSON_DEF(random_poisson, "RandomPoisson", "dtype",
            "dtype: {half, float, double}");
POISSON_DEF(random_poisson_v2, "RandomPoissonV2", "R",
            "R: {half, float, double, int32, int64} = double; "
            "dtype: {half, float, double, int32, int64} = int64");
