/*
 * Random ops with a state: each node has a stream of its own, which begins at
 * its seeds and goes on from run to run.
 */
#include "kernel/args.h"
#include "kernel/random_fill.h"
#include "kernel/random_state.h"

static enum mst_code random_run(struct op_ctx *c, enum random_kind kind,
                                const struct random_range *range)
{
    uint64_t blocks = (uint64_t)op_out(c, 0)->count * RANDOM_RESERVE;

    random_fill(c, kind, random_reserve(c, blocks), range);
    return MST_OK;
}

static enum mst_code random_floats(struct op_ctx *c, enum random_kind kind)
{
    struct shape s;
    enum mst_code rc = args_shape(c, 0, "shape", &s);

    if (!rc)
        rc = op_out_new(c, 0, s.ndim, s.dims);
    return rc ? rc : random_run(c, kind, NULL);
}

static enum mst_code random_uniform(struct op_ctx *c)
{
    return random_floats(c, RANDOM_UNIFORM);
}

static enum mst_code random_standard_normal(struct op_ctx *c)
{
    return random_floats(c, RANDOM_NORMAL);
}

static enum mst_code truncated_normal(struct op_ctx *c)
{
    return random_floats(c, RANDOM_TRUNCATED);
}

#define RANDOM_FLOATS(op, NAME)                                                \
    const struct op_def def_##op = {                                           \
        .name = NAME,                                                          \
        .in = "shape: T",                                                      \
        .out = "output: dtype",                                                \
        .attr = "seed: int = 0; seed2: int = 0; "                              \
                "dtype: {half, bfloat16, float, double}; T: {int32, int64}",   \
        .flags = OP_STATEFUL,                                                  \
        .init = random_state_init,                                             \
        .done = random_state_done,                                             \
        .kernel = (const struct op_kernel[]){ { DT_ANY, op }, { 0 } },         \
    }

RANDOM_FLOATS(random_uniform, "RandomUniform");
RANDOM_FLOATS(random_standard_normal, "RandomStandardNormal");
RANDOM_FLOATS(truncated_normal, "TruncatedNormal");

static enum mst_code random_uniform_int(struct op_ctx *c)
{
    struct random_range range = { 0 };
    struct shape s;
    int64_t count = 0;
    enum mst_code rc = args_shape(c, 0, "shape", &s);

    if (rc)
        return rc;
    (void)shape_count(s.ndim, s.dims, 1, &count);
    rc = random_range(c, 1, count, &range);
    if (!rc)
        rc = op_out_new(c, 0, s.ndim, s.dims);
    return rc ? rc : random_run(c, RANDOM_INT, &range);
}

const struct op_def def_random_uniform_int = {
    .name = "RandomUniformInt",
    .in = "shape: T, minval: Tout, maxval: Tout",
    .out = "output: Tout",
    .attr = "seed: int = 0; seed2: int = 0; Tout: {int32, int64}; "
            "T: {int32, int64}",
    .flags = OP_STATEFUL,
    .init = random_state_init,
    .done = random_state_done,
    .kernel =
        (const struct op_kernel[]){ { DT_ANY, random_uniform_int }, { 0 } },
};
