/*
 * Pooling over windows of random heights and widths, which together cover the
 * image: FractionalMaxPool, FractionalAvgPool, and their gradients.
 *
 * Where the windows begin is drawn from the node's seeds, each run anew, and
 * is an output, which the gradient gets back.
 */
#include <string.h>

#include "base/rng.h"
#include "kernel/philox.h"
#include "kernel/types.h"

struct fraction_node {
    float ratio[4];
    bool pseudo_random, overlapping;
    uint64_t seed, seed2;
};

static enum mst_code fraction_init(struct op_node *n, struct status *st)
{
    struct fraction_node *s = ARENA_NEW(n->arena, struct fraction_node);
    const struct attr *ratio = op_attr(n, "pooling_ratio");

    s->overlapping = op_attr_bool(n, "overlapping");
    n->state = s;
    if (!ratio)
        return MST_OK; /* a gradient */
    if (ratio->count != 4)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "pooling_ratio field must specify 4 dimensions");
    for (int i = 0; i < 4; i++) {
        s->ratio[i] = ratio->value[i].f;
        if (!(s->ratio[i] >= 1))
            return status_set(st, MST_INVALID_ARGUMENT,
                              "pooling_ratio cannot be smaller than 1, got: %g",
                              s->ratio[i]);
    }
    if (s->ratio[0] != 1 || s->ratio[3] != 1)
        return status_set(st, MST_UNIMPLEMENTED,
                          "Fractional %s pooling is not yet supported on the "
                          "batch nor channel dimension.",
                          strstr(n->def->name, "Max") ? "max" : "average");
    s->pseudo_random = op_attr_bool(n, "pseudo_random");
    s->seed = (uint64_t)op_attr_int(n, "seed");
    s->seed2 = (uint64_t)op_attr_int(n, "seed2");
    if (!op_attr_bool(n, "deterministic") && (s->seed || s->seed2))
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Both seed and seed2 should be 0 if deterministic is "
                          "false.");
    if (op_attr_bool(n, "deterministic") && !s->seed && !s->seed2) {
        s->seed = rng_u64();
        s->seed2 = rng_u64();
    }
    return MST_OK;
}

/* ---- where windows begin: ret has out + 1 places ---- */

static void cut_pseudo(struct philox *gen, int64_t in, int64_t out,
                       int64_t *ret)
{
    struct philox_words w = philox_words(*gen);
    double alpha = (double)in / (double)out;
    int64_t k = in / out;
    double a = (double)(k + 2) / alpha - 1;
    double b = (double)(in + 1 - k) / alpha - (double)(out - 1);
    uint32_t high = philox_word(&w), low = philox_word(&w);
    double u = philox_double(high, low) * MIN(a, b);

    philox_skip(gen, 1);
    ret[0] = 0;
    for (int64_t i = 1; i < out; i++)
        ret[i] = (int64_t)ceil(alpha * ((double)i + u)) - 1;
    ret[out] = in;
}

static void cut_random(struct philox *gen, int64_t in, int64_t out,
                       int64_t *ret)
{
    struct philox_words w = philox_words(*gen);
    int64_t *diff = ret + 1;

    philox_skip(gen, (uint64_t)(out + 3) / 4);
    for (int64_t i = 0; i < out; i++)
        diff[i] = in / out + (i < in % out);
    for (int64_t i = 0; i < out - 1; i++) {
        int64_t k = i + philox_word(&w) % (uint32_t)(out - i), t = diff[i];

        diff[i] = diff[k];
        diff[k] = t;
    }
    ret[0] = 0;
    for (int64_t i = 1; i <= out; i++)
        ret[i] += ret[i - 1];
}

/* ---- the windows of one run ---- */

struct fraction {
    int64_t batch, in[2], out[2], channels;
    const int64_t *cut[2];
    bool overlapping;
};

/* The last element, which belongs to it, of window i. */
static int64_t last_of(const struct fraction *f, int dim, int64_t i)
{
    return MIN(f->cut[dim][i + 1] - !f->overlapping, f->in[dim] - 1);
}

/* Calls fn for each pixel of each window: numbers of pixels in and out, and
 * how many the window has. */
static void each_pixel(const struct fraction *f, void *arg,
                       void (*fn)(void *arg, const struct fraction *f,
                                  int64_t in, int64_t out, int64_t count))
{
    for (int64_t o = 0; o < f->batch * f->out[0] * f->out[1]; o++) {
        int64_t x = o % f->out[1], y = o / f->out[1] % f->out[0];
        int64_t n = o / f->out[1] / f->out[0];
        int64_t y0 = f->cut[0][y], y1 = last_of(f, 0, y);
        int64_t x0 = f->cut[1][x], x1 = last_of(f, 1, x);

        for (int64_t i = y0; i <= y1; i++)
            for (int64_t j = x0; j <= x1; j++)
                fn(arg, f, (n * f->in[0] + i) * f->in[1] + j, o,
                   (y1 - y0 + 1) * (x1 - x0 + 1));
    }
}

struct fraction_data {
    const void *in;
    void *out;
    int64_t *best;
};

#define TYPES_FRACTION(X, ...)                                                 \
    TYPES_FLOAT_WIDE(X, ##__VA_ARGS__) TYPES_INDEX(X, ##__VA_ARGS__)

#define FRACTION(s, T, A, DT, LD, ST)                                          \
    static void find_##s(void *arg, const struct fraction *f, int64_t in,      \
                         int64_t out, int64_t count)                           \
    {                                                                          \
        struct fraction_data *d = arg;                                         \
                                                                               \
        for (int64_t c = 0; c < f->channels; c++) {                            \
            T x = ((const T *)d->in)[in * f->channels + c];                    \
            T *y = (T *)d->out + out * f->channels + c;                        \
            int64_t *best = d->best + out * f->channels + c;                   \
                                                                               \
            if (*best < 0 || x > *y) {                                         \
                *y = x;                                                        \
                *best = in * f->channels + c;                                  \
            }                                                                  \
        }                                                                      \
    }                                                                          \
    static void sum_##s(void *arg, const struct fraction *f, int64_t in,       \
                        int64_t out, int64_t count)                            \
    {                                                                          \
        struct fraction_data *d = arg;                                         \
                                                                               \
        for (int64_t c = 0; c < f->channels; c++)                              \
            ((double *)d->out)[out * f->channels + c] +=                       \
                (double)((const T *)d->in)[in * f->channels + c];              \
    }                                                                          \
    static void share_##s(void *arg, const struct fraction *f, int64_t in,     \
                          int64_t out, int64_t count)                          \
    {                                                                          \
        struct fraction_data *d = arg;                                         \
                                                                               \
        for (int64_t c = 0; c < f->channels; c++)                              \
            ((double *)d->out)[in * f->channels + c] +=                        \
                (double)((const T *)d->in)[out * f->channels + c] /            \
                (double)count;                                                 \
    }                                                                          \
    static void give_##s(void *dx_, const void *dy_, const int64_t *best,      \
                         int64_t n)                                            \
    {                                                                          \
        const T *dy = dy_;                                                     \
        T *dx = dx_;                                                           \
                                                                               \
        for (int64_t i = 0; i < n; i++)                                        \
            if (best[i] >= 0)                                                  \
                dx[best[i]] += dy[i];                                          \
    }                                                                          \
    static void narrow_##s(void *out, const double *in, int64_t n)             \
    {                                                                          \
        for (int64_t i = 0; i < n; i++)                                        \
            ((T *)out)[i] = (T)in[i];                                          \
    }
TYPES_FRACTION(FRACTION)

/* What differs between the types. */
struct fraction_type {
    void (*find)(void *, const struct fraction *, int64_t, int64_t, int64_t);
    void (*sum)(void *, const struct fraction *, int64_t, int64_t, int64_t);
    void (*share)(void *, const struct fraction *, int64_t, int64_t, int64_t);
    void (*give)(void *, const void *, const int64_t *, int64_t);
    void (*narrow)(void *, const double *, int64_t);
};

#define FRACTION_TYPE(s, T, A, DT, LD, ST)                                     \
    [DT] = { find_##s, sum_##s, share_##s, give_##s, narrow_##s },
static const struct fraction_type types[DT_COUNT] = { TYPES_FRACTION(
    FRACTION_TYPE) };

static struct buffer *scratch(struct op_ctx *c, int64_t n, int fill)
{
    struct buffer *b = buffer_new((size_t)MAX(n, 1) * sizeof(int64_t));

    if (b)
        memset(b->data, fill, (size_t)n * sizeof(int64_t));
    else
        status_set(c->st, MST_RESOURCE_EXHAUSTED, "OOM in pooling");
    return b;
}

/* The mean of each window, of sums over t: whole numbers are cut. */
static void divide(const struct fraction *f, double *sum)
{
    for (int64_t o = 0; o < f->batch * f->out[0] * f->out[1]; o++) {
        int64_t x = o % f->out[1], y = o / f->out[1] % f->out[0];
        double n = (double)((last_of(f, 0, y) - f->cut[0][y] + 1) *
                            (last_of(f, 1, x) - f->cut[1][x] + 1));

        for (int64_t c = 0; c < f->channels; c++)
            sum[o * f->channels + c] /= n;
    }
}

static enum mst_code draw(struct op_ctx *c, struct fraction *f)
{
    const struct fraction_node *s = c->node->state;
    struct philox gen =
        philox_seeded(s->seed || s->seed2 ? s->seed : rng_u64(), s->seed2);

    for (int i = 0; i < 2; i++) {
        int64_t n = f->out[i] + 1, *cut;
        enum mst_code rc = op_out_new(c, 1 + i, 1, &n);

        if (rc)
            return rc;
        cut = op_out(c, 1 + i)->data;
        if (s->pseudo_random)
            cut_pseudo(&gen, f->in[i], f->out[i], cut);
        else
            cut_random(&gen, f->in[i], f->out[i], cut);
        f->cut[i] = cut;
    }
    return MST_OK;
}

static enum mst_code fraction_sizes(struct op_ctx *c, struct fraction *f)
{
    const struct fraction_node *s = c->node->state;
    const struct tensor *in = op_in(c, 0);

    if (in->ndim != 4)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "tensor_in must be 4-dimensional");
    for (int i = 0; i < 4; i++)
        if ((float)in->dims[i] < s->ratio[i])
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Pooling ratio is higher than input dimension size "
                           "for dimension %d. Input dim size: %lld pooling "
                           "ratio: %g",
                           i, (long long)in->dims[i], s->ratio[i]);
    f->overlapping = s->overlapping;
    f->batch = in->dims[0];
    f->channels = in->dims[3];
    for (int i = 0; i < 2; i++) {
        f->in[i] = in->dims[1 + i];
        f->out[i] = (int64_t)floorf((float)f->in[i] / s->ratio[1 + i]);
    }
    return MST_OK;
}

static enum mst_code fraction_pool(struct op_ctx *c, bool max)
{
    const struct fraction_type *t = &types[op_in(c, 0)->dtype];
    struct fraction f;
    struct fraction_data d = { .in = op_in(c, 0)->data };
    struct buffer *b;
    enum mst_code rc = fraction_sizes(c, &f);

    if (!rc)
        rc = draw(c, &f);
    if (!rc)
        rc = op_out_new(c, 0, 4,
                        (int64_t[]){ f.batch, f.out[0], f.out[1], f.channels });
    if (rc)
        return rc;
    b = scratch(c, op_out(c, 0)->count, max ? 0xff : 0);
    if (!b)
        return MST_RESOURCE_EXHAUSTED;
    d.best = (int64_t *)b->data;
    d.out = max ? op_out(c, 0)->data : (void *)b->data;
    each_pixel(&f, &d, max ? t->find : t->sum);
    if (!max) {
        divide(&f, (double *)b->data);
        t->narrow(op_out(c, 0)->data, (double *)b->data, op_out(c, 0)->count);
    }
    buffer_unref(b);
    return MST_OK;
}

static enum mst_code fraction_max(struct op_ctx *c)
{
    return fraction_pool(c, true);
}

static enum mst_code fraction_avg(struct op_ctx *c)
{
    return fraction_pool(c, false);
}

/* ---- gradients ---- */

/* The cuts of input i, for dimension dim: rising, inside of the image. */
static enum mst_code read_cuts(struct op_ctx *c, int i, int dim,
                               struct fraction *f)
{
    const struct tensor *t = op_in(c, i);
    const int64_t *cut = t->data;

    if (t->ndim != 1 || t->count != f->out[dim] + 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "%s_pooling_sequence must have one element more than "
                       "the output has %ss",
                       dim ? "col" : "row", dim ? "column" : "row");
    for (int64_t k = 0; k < t->count; k++)
        if (cut[k] < 0 || cut[k] > f->in[dim] || (k && cut[k] < cut[k - 1]))
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "%s_pooling_sequence contains elements outside of "
                           "the image, or falls",
                           dim ? "col" : "row");
    f->cut[dim] = cut;
    return MST_OK;
}

/* dims: of the pooling's input. grad: the input that has the gradient; the
 * cuts follow. */
static enum mst_code grad_sizes(struct op_ctx *c, const int64_t *dims, int grad,
                                struct fraction *f)
{
    const struct fraction_node *s = c->node->state;
    const struct tensor *g = op_in(c, grad);
    enum mst_code rc;

    if (g->ndim != 4)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "out_backprop must be 4-dimensional");
    if (g->dims[0] != dims[0] || g->dims[3] != dims[3])
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "out_backprop and the input must have the same batch "
                       "size and depth");
    f->overlapping = s->overlapping;
    f->batch = dims[0];
    f->channels = dims[3];
    for (int i = 0; i < 2; i++) {
        f->in[i] = dims[1 + i];
        f->out[i] = g->dims[1 + i];
    }
    rc = read_cuts(c, grad + 1, 0, f);
    return rc ? rc : read_cuts(c, grad + 2, 1, f);
}

static enum mst_code fraction_max_grad(struct op_ctx *c)
{
    const struct tensor *in = op_in(c, 0), *out = op_in(c, 1);
    const struct fraction_type *t = &types[in->dtype];
    struct fraction_data d = { .in = in->data };
    struct buffer *best, *values;
    struct fraction f;
    enum mst_code rc;

    if (in->ndim != 4 || out->ndim != 4 || !tensor_same_shape(out, op_in(c, 2)))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "orig_input, orig_output and out_backprop must be "
                       "4-dimensional, the last two of one shape");
    rc = grad_sizes(c, in->dims, 2, &f);
    if (!rc)
        rc = op_out_like(c, 0, in);
    if (rc)
        return rc;
    tensor_zero(op_out(c, 0));
    best = scratch(c, out->count, 0xff);
    values = scratch(c, out->count, 0);
    if (best && values) {
        d.best = (int64_t *)best->data;
        d.out = values->data;
        each_pixel(&f, &d, t->find);
        if (memcmp(values->data, out->data, tensor_bytes(out)))
            rc = op_fail(c, MST_INVALID_ARGUMENT,
                         "tensor_out_dup is not the same as tensor_out");
        else
            t->give(op_out(c, 0)->data, op_in(c, 2)->data, d.best, out->count);
    } else {
        rc = MST_RESOURCE_EXHAUSTED;
    }
    buffer_unref(best);
    buffer_unref(values);
    return rc;
}

static enum mst_code check_negative(struct op_ctx *c, int in, const char *name)
{
    const struct tensor *t = op_in(c, in);

    for (int64_t k = 0; k < t->count; k++)
        if (TENSOR_DATA(t, int64_t)[k] < 0)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "%s sequence tensor values must not be negative, "
                           "got %lld",
                           name, (long long)TENSOR_DATA(t, int64_t)[k]);
    return MST_OK;
}

static enum mst_code fraction_avg_grad(struct op_ctx *c)
{
    const struct tensor *shape = op_in(c, 0), *g = op_in(c, 1);
    struct fraction_data d = { .in = g->data };
    struct fraction f;
    struct buffer *b;
    enum mst_code rc;

    if (shape->ndim != 1 || shape->count != 4)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "original input tensor shape must be 1-dimensional and "
                       "4 elements");
    rc = check_negative(c, 2, "Row");
    if (!rc)
        rc = check_negative(c, 3, "Column");
    if (!rc)
        rc = op_out_new(c, 0, 4, shape->data);
    if (!rc)
        rc = grad_sizes(c, op_out(c, 0)->dims, 1, &f);
    if (rc)
        return rc;
    b = scratch(c, op_out(c, 0)->count, 0);
    if (!b)
        return MST_RESOURCE_EXHAUSTED;
    d.out = b->data;
    each_pixel(&f, &d, types[g->dtype].share);
    types[g->dtype].narrow(op_out(c, 0)->data, (double *)b->data,
                           op_out(c, 0)->count);
    buffer_unref(b);
    return MST_OK;
}

/* ---- records ---- */

#define FRACTION_OUT                                                           \
    "output: T, row_pooling_sequence: int64, col_pooling_sequence: int64"
#define FRACTION_ATTRS                                                         \
    "pooling_ratio: list(float) >= 4; pseudo_random: bool = false; "           \
    "overlapping: bool = false; deterministic: bool = false; seed: int = 0; "  \
    "seed2: int = 0; T: {float, double, int32, int64}"
#define FRACTION_GRAD_ATTRS                                                    \
    "overlapping: bool = false; T: {float, double, int32, int64}"

#define FRACTION_DEF(stem, NAME, IN, OUT, ATTR, FN)                            \
    const struct op_def def_##stem = {                                         \
        .name = NAME,                                                          \
        .in = IN,                                                              \
        .out = OUT,                                                            \
        .attr = ATTR,                                                          \
        .init = fraction_init,                                                 \
        .kernel = KERNELS({ DT_ANY, FN }, ),                                   \
    }

FRACTION_DEF(fractional_max_pool, "FractionalMaxPool", "value: T", FRACTION_OUT,
             FRACTION_ATTRS, fraction_max);
FRACTION_DEF(fractional_avg_pool, "FractionalAvgPool", "value: T", FRACTION_OUT,
             FRACTION_ATTRS, fraction_avg);
FRACTION_DEF(fractional_max_pool_grad, "FractionalMaxPoolGrad",
             "orig_input: T, orig_output: T, out_backprop: T, "
             "row_pooling_sequence: int64, col_pooling_sequence: int64",
             "output: T", FRACTION_GRAD_ATTRS, fraction_max_grad);
FRACTION_DEF(fractional_avg_pool_grad, "FractionalAvgPoolGrad",
             "orig_input_tensor_shape: int64, out_backprop: T, "
             "row_pooling_sequence: int64, col_pooling_sequence: int64",
             "output: T", FRACTION_GRAD_ATTRS, fraction_avg_grad);
