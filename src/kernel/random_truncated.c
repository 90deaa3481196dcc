/*
 * ParameterizedTruncatedNormal: normal numbers of given mean and deviation
 * within given bounds, by rejection. Three proposals, chosen by where the
 * bounds lie: the normal distribution itself when they hold its middle, a
 * uniform one when they are close together, else an exponential tail.
 *
 * The parameters are for rows of the output (its first dimension), or for all.
 * All rows take from one stream, one after the other; TensorFlow may begin it
 * anew in the middle when it splits large outputs over threads, which this
 * kernel does not, see random_choice.c. Arithmetic is rounded to the type at
 * every step, as real.h says, so that results are the same bits.
 */
#include <string.h>

#include "kernel/args.h"
#include "kernel/random_fill.h"
#include "kernel/random_state.h"
#include "kernel/real.h"

#define TRIES_MAX 1000
/* Outputs of equal parameters are made in rows of this length. */
#define ROW_WANTED 100
/* So many deviations to one side of the mean, and the normal proposal does. */
#define NORMAL_ENOUGH 1.3

#define R(x)          real_round(p->dt, (x))

/* A row to be made, its bounds in deviations from the mean. */
struct row {
    enum dtype dt;
    struct philox *gen;
    const struct tensor *out;
    int64_t at, end;
    double mean, dev, low, high;
    int tries;
};

static int uniforms(struct row *p, double ret[4])
{
    uint32_t w[4];

    philox_next(p->gen, w);
    if (p->dt == DT_DOUBLE) {
        ret[0] = philox_double(w[0], w[1]);
        ret[1] = philox_double(w[2], w[3]);
        return 2;
    }
    for (int i = 0; i < 4; i++)
        ret[i] = p->dt == DT_FLOAT  ? philox_float(w[i])
                 : p->dt == DT_HALF ? philox_float((w[i] & 0x3ffu) << 13)
                                    : philox_float((w[i] & 0x7fu) << 16);
    return 4;
}

static int normals(struct row *p, double ret[4])
{
    uint32_t w[4];
    float f[4];

    philox_next(p->gen, w);
    if (p->dt == DT_DOUBLE) {
        random_box_muller64(w, ret);
        return 2;
    }
    random_box_muller(w[0], w[1], f);
    random_box_muller(w[2], w[3], f + 2);
    for (int i = 0; i < 4; i++)
        ret[i] = R(f[i]);
    return 4;
}

/* Takes z as the next number; false when the row is full. */
static bool accept(struct row *p, double z)
{
    real_store(p->out, p->at++, R(R(z * p->dev) + p->mean));
    p->tries = 0;
    return p->at < p->end;
}

static const char *from_normal(struct row *p)
{
    for (;;) {
        double z[4];
        int n = normals(p, z);

        for (int i = 0; i < n; i++) {
            if (z[i] >= p->low && z[i] <= p->high) {
                if (!accept(p, z[i]))
                    return NULL;
            } else if (++p->tries > TRIES_MAX) {
                return "TruncatedNormal randn rejection sampler failed to "
                       "accept a sample.";
            }
        }
    }
}

static const char *from_uniform(struct row *p)
{
    double width = R(p->high - p->low);
    double plus = p->low < 0 ? 0 : R(p->low * p->low);

    for (;;) {
        double z[4], u[4];
        int n = uniforms(p, z);

        uniforms(p, u);
        for (int i = 0; i < n; i++) {
            double g;

            z[i] = R(R(z[i] * width) + p->low);
            g = R(R(plus - R(z[i] * z[i])) / 2);
            if (u[i] <= real_exp(p->dt, g)) {
                if (!accept(p, z[i]))
                    return NULL;
            } else if (++p->tries >= TRIES_MAX) {
                return "TruncatedNormal uniform rejection sampler failed to "
                       " accept a sample.";
            }
        }
    }
}

static const char *from_tail(struct row *p)
{
    double low = p->low;
    double alpha = R(R(low + R(sqrt(R(R(low * low) + 4)))) / 2);

    for (;;) {
        double r[4];
        int n = uniforms(p, r);

        for (int i = 0; i < n; i += 2) {
            double z = R(R(-real_log(p->dt, r[i]) / alpha) + low);
            double x = low < alpha ? R(alpha - z) : R(low - alpha);
            double g = real_exp(p->dt, R(R(-x * x) / 2));

            if (r[i + 1] <= g && z < p->high) {
                if (!accept(p, z))
                    return NULL;
            } else if (++p->tries >= TRIES_MAX) {
                return "TruncatedNormal exponential distribution rejection "
                       "sampler failed to accept a sample.";
            }
        }
    }
}

/* mean, deviation, lower and upper bound. */
static enum mst_code make_row(struct op_ctx *c, struct row *p, double v[4])
{
    double root, cutoff;
    const char *bad;

    if (!(v[1] > 0 && v[2] < v[3] && (isfinite(v[2]) || isfinite(v[3]))))
        return op_fail(c, MST_INVALID_ARGUMENT, "Invalid parameters");
    /* Only a lower bound, or bounds above the mean: otherwise mirrored. */
    if ((isinf(v[2]) && v[2] < 0) || v[3] < v[0]) {
        double t = v[2];

        v[2] = v[3];
        v[3] = t;
        v[1] = -v[1];
    }
    p->mean = v[0];
    p->dev = v[1];
    p->low = R(R(v[2] - v[0]) / v[1]);
    p->high = R(R(v[3] - v[0]) / v[1]);
    root = R(sqrt(R(R(p->low * p->low) + 4)));
    cutoff = R(p->low * R(p->low - root));
    cutoff = real_exp(p->dt, R(0.5 + R(cutoff / 4)));
    cutoff = R(R(2 * cutoff) / R(p->low + root));
    if ((p->low < -R(NORMAL_ENOUGH) && p->high >= 0) ||
        (p->high > R(NORMAL_ENOUGH) && p->low <= 0))
        bad = from_normal(p);
    else if (R(p->high - p->low) < cutoff)
        bad = from_uniform(p);
    else
        bad = from_tail(p);
    return bad ? op_fail(c, MST_INTERNAL, "%s", bad) : MST_OK;
}

static enum mst_code check_params(struct op_ctx *c, const struct shape *s,
                                  bool *ret_same)
{
    static const char *const names[] = { "", "means", "stddevs", "minvals",
                                         "maxvals" };
    char text[SHAPE_TEXT_MAX];

    *ret_same = op_in(c, 1)->count == 1 && op_in(c, 2)->count == 1 &&
                !op_in(c, 3)->ndim && !op_in(c, 4)->ndim;
    for (int i = 1; i <= 4; i++)
        if (op_in(c, i)->ndim > 1)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Input %s should be a scalar or vector, got shape: "
                           "%s",
                           names[i], tensor_shape_text(op_in(c, i), text));
    for (int i = 1; i <= 4 && !*ret_same; i++)
        if (op_in(c, i)->count != 1 && op_in(c, i)->count != s->dims[0])
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Input %s should have length 1 or shape[0], got "
                           "shape: %s",
                           names[i], tensor_shape_text(op_in(c, i), text));
    return MST_OK;
}

static enum mst_code read_shape(struct op_ctx *c, struct shape *s)
{
    const struct tensor *t = op_in(c, 0);
    char text[SHAPE_TEXT_MAX];

    if (t->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input shape should be a vector, got shape: %s",
                       tensor_shape_text(t, text));
    if (!t->count)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Shape tensor must not be empty, got Tensor<type: %s "
                       "shape: [0] values: >",
                       dtype_name(t->dtype));
    return args_dims(c, t, s);
}

static enum mst_code parameterized_truncated_normal(struct op_ctx *c)
{
    struct row row = { 0 };
    struct philox gen;
    int64_t rows, length;
    struct shape s;
    bool same;
    enum mst_code rc = read_shape(c, &s);

    if (!rc)
        rc = op_out_new(c, 0, s.ndim, s.dims);
    if (!rc)
        rc = check_params(c, &s, &same);
    if (rc || !op_out(c, 0)->count)
        return rc;
    row.out = op_out(c, 0);
    row.dt = (enum dtype)row.out->dtype;
    length = same ? ROW_WANTED : row.out->count / s.dims[0];
    rows = (row.out->count + length - 1) / length;
    gen = random_reserve(c, (uint64_t)rows * 2 * TRIES_MAX *
                                (uint64_t)(length + 3) / 4);
    row.gen = &gen;
    for (int64_t r = 0; r < rows && !rc; r++) {
        double v[4];

        for (int i = 0; i < 4; i++)
            v[i] =
                real_load(op_in(c, i + 1), op_in(c, i + 1)->count == 1 ? 0 : r);
        row.at = r * length;
        row.end = MIN(row.at + length, row.out->count);
        rc = make_row(c, &row, v);
    }
    return rc;
}

const struct op_def def_parameterized_truncated_normal = {
    .name = "ParameterizedTruncatedNormal",
    .in = "shape: T, means: dtype, stdevs: dtype, minvals: dtype, "
          "maxvals: dtype",
    .out = "output: dtype",
    .attr = "seed: int = 0; seed2: int = 0; "
            "dtype: {half, bfloat16, float, double}; T: {int32, int64}",
    .flags = OP_STATEFUL | OP_EXPENSIVE,
    .key = "dtype",
    .init = random_state_init,
    .done = random_state_done,
    .kernel =
        (const struct op_kernel[]){
            { DT_HALF, parameterized_truncated_normal },
            { DT_FLOAT, parameterized_truncated_normal },
            { DT_DOUBLE, parameterized_truncated_normal },
            { 0 } },
};
