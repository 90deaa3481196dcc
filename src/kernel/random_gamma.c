/*
 * RandomGamma, by Marsaglia and Tsang's method: a cubed normal number, kept
 * when a uniform one says so. Each output has RANDOM_RESERVE blocks of the
 * stream to itself. All of it is computed in double.
 */
#include "kernel/args.h"
#include "kernel/random_fill.h"
#include "kernel/random_state.h"
#include "kernel/real.h"

/* Normal and uniform numbers of one stream, two of a block, the last first. */
struct source {
    struct philox gen;
    double normal[2], uniform[2];
    int normals, uniforms;
};

static double next_normal(struct source *s)
{
    if (!s->normals) {
        uint32_t word[4];

        philox_next(&s->gen, word);
        random_box_muller64(word, s->normal);
        s->normals = 2;
    }
    return s->normal[--s->normals];
}

static double next_uniform(struct source *s)
{
    if (!s->uniforms) {
        uint32_t word[4];

        philox_next(&s->gen, word);
        s->uniform[0] = philox_double(word[0], word[1]);
        s->uniform[1] = philox_double(word[2], word[3]);
        s->uniforms = 2;
    }
    return s->uniform[--s->uniforms];
}

static double gamma_one(double alpha, struct source *s)
{
    bool small = alpha < 1;
    double d = alpha + (small ? 2.0 / 3 : -1.0 / 3);
    double c = 1.0 / 3 / sqrt(d);

    if (alpha == 1)
        return -log1p(-next_uniform(s));
    for (;;) {
        double x = next_normal(s), v = 1 + c * x, u;

        if (v <= 0)
            continue;
        v = v * v * v;
        u = next_uniform(s);
        if (u < 1 - 0.0331 * (x * x) * (x * x) ||
            log(u) < 0.5 * x * x + d * (1 - v + log(v)))
            return small ? d * v * pow(next_uniform(s), 1 / alpha) : d * v;
    }
}

struct gamma_arg {
    const struct tensor *alpha, *out;
    struct philox gen;
    int64_t samples; /* of each alpha */
};

static void gamma_loop(void *arg, int64_t begin, int64_t end)
{
    const struct gamma_arg *g = arg;

    for (int64_t i = begin; i < end; i++) {
        int64_t which = i / g->samples;
        double alpha = real_load(g->alpha, which), x = NAN;
        struct source s = { .gen = g->gen };

        philox_skip(&s.gen, (uint64_t)i * RANDOM_RESERVE);
        if (alpha > 0)
            x = gamma_one(alpha, &s);
        real_store(g->out, i % g->samples * g->alpha->count + which, x);
    }
}

static enum mst_code random_gamma(struct op_ctx *c)
{
    const struct tensor *alpha = op_in(c, 1);
    struct gamma_arg g = { .alpha = alpha, .out = op_out(c, 0) };
    struct shape s;
    enum mst_code rc = args_shape(c, 0, "shape", &s);

    if (rc)
        return rc;
    if (s.ndim + alpha->ndim > TENSOR_RANK_MAX)
        return op_fail(c, MST_UNIMPLEMENTED,
                       "Tensors of rank %d are not supported, only up to %d",
                       s.ndim + alpha->ndim, TENSOR_RANK_MAX);
    g.samples = args_product(s.dims, 0, s.ndim);
    for (int i = 0; i < alpha->ndim; i++)
        s.dims[s.ndim++] = alpha->dims[i];
    rc = op_out_new(c, 0, s.ndim, s.dims);
    if (rc || !op_out(c, 0)->count)
        return rc;
    g.gen = random_reserve(c, (uint64_t)op_out(c, 0)->count * RANDOM_RESERVE);
    op_for(c, op_out(c, 0)->count, 100, gamma_loop, &g);
    return MST_OK;
}

const struct op_def def_random_gamma = {
    .name = "RandomGamma",
    .in = "shape: S, alpha: T",
    .out = "output: T",
    .attr = "seed: int = 0; seed2: int = 0; S: {int32, int64}; "
            "T: {half, float, double}",
    .flags = OP_STATEFUL,
    .init = random_state_init,
    .done = random_state_done,
    .kernel = (const struct op_kernel[]){ { DT_ANY, random_gamma }, { 0 } },
};
