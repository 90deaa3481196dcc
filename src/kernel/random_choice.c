/*
 * Multinomial: for each row of logits, samples of the classes by their
 * probability: a class is where a uniform number falls in the row's cumulated
 * exponentials.
 *
 * All rows take from one stream, one after the other. TensorFlow may begin
 * the stream anew in the middle when it splits a large batch over threads;
 * how it splits is a matter of its machine, so this kernel does not.
 */
#include "kernel/random_state.h"
#include "kernel/real.h"

/* The cumulated exponentials of a row; classes of infinite or undefined logit
 * have no share. */
static double cumulate(const struct tensor *logits, int64_t row,
                       int64_t classes, double *sums)
{
    double max = -INFINITY, total = 0;
    int64_t at = row * classes;

    for (int64_t k = 0; k < classes; k++) {
        double x = real_load(logits, at + k);

        if (isfinite(x) && x > max)
            max = x;
    }
    for (int64_t k = 0; k < classes; k++) {
        double x = real_load(logits, at + k);

        if (isfinite(x))
            total += exp(x - max);
        sums[k] = total;
    }
    return total;
}

/* The first whose sum is above x; n when none is. */
static int64_t find(const double *sums, int64_t n, double x)
{
    int64_t low = 0, high = n;

    while (low < high) {
        int64_t mid = low + (high - low) / 2;

        if (x < sums[mid])
            high = mid;
        else
            low = mid + 1;
    }
    return low;
}

static enum mst_code check(struct op_ctx *c, int64_t *ret_samples)
{
    const struct tensor *logits = op_in(c, 0), *samples = op_in(c, 1);
    char text[SHAPE_TEXT_MAX];

    if (logits->ndim != 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "logits should be a matrix, got shape %s",
                       tensor_shape_text(logits, text));
    if (samples->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "num_samples should be a scalar, got shape %s",
                       tensor_shape_text(samples, text));
    *ret_samples = tensor_int(samples, 0);
    if (*ret_samples < 0)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "num_samples should be non-negative, got %lld",
                       (long long)*ret_samples);
    if (logits->dims[0] > INT32_MAX)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "batch_size cannot exceed max int");
    if (logits->dims[1] > INT32_MAX)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "num_classes cannot exceed max int");
    if (logits->dims[1] == 0)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "num_classes should be positive, got 0");
    return MST_OK;
}

static void choose(struct op_ctx *c, struct philox gen, double *sums)
{
    const struct tensor *logits = op_in(c, 0), *out = op_out(c, 0);
    struct philox_words w = philox_words(gen);
    int64_t classes = logits->dims[1], samples = out->dims[1];

    for (int64_t row = 0; row < out->dims[0]; row++) {
        double total = cumulate(logits, row, classes, sums);

        for (int64_t i = row * samples; i < (row + 1) * samples; i++) {
            uint32_t high = philox_word(&w), low = philox_word(&w);
            double x = philox_double(high, low) * total;
            int64_t class = find(sums, classes, x);

            if (out->dtype == DT_INT32)
                TENSOR_DATA(out, int32_t)[i] = (int32_t) class;
            else
                TENSOR_DATA(out, int64_t)[i] = class;
        }
    }
}

static enum mst_code sample(struct op_ctx *c, bool stateless)
{
    const struct tensor *logits = op_in(c, 0);
    struct tensor sums = { 0 };
    struct philox gen;
    int64_t samples;
    enum mst_code rc = stateless ? random_scramble(c, 2, &gen) : MST_OK;

    if (!rc)
        rc = check(c, &samples);
    if (!rc)
        rc = op_out_new(c, 0, 2, (int64_t[]){ logits->dims[0], samples });
    if (rc || !op_out(c, 0)->count)
        return rc;
    rc = tensor_new(&sums, DT_DOUBLE, 1, &logits->dims[1], c->st);
    if (rc)
        return rc;
    if (!stateless) {
        uint64_t words = (uint64_t)(samples + 3) / 4 * 8;

        gen = random_reserve(c, (uint64_t)logits->dims[0] * words *
                                    RANDOM_RESERVE);
    }
    choose(c, gen, sums.data);
    tensor_unref(&sums);
    return MST_OK;
}

static enum mst_code multinomial(struct op_ctx *c)
{
    return sample(c, false);
}

static enum mst_code stateless_multinomial(struct op_ctx *c)
{
    return sample(c, true);
}

#define FLOAT_ROWS(run)                                                        \
    (const struct op_kernel[])                                                 \
    {                                                                          \
        { DT_FLOAT, run }, { DT_DOUBLE, run }, { DT_HALF, run },               \
            { DT_BFLOAT16, run },                                              \
        {                                                                      \
            0                                                                  \
        }                                                                      \
    }

const struct op_def def_multinomial = {
    .name = "Multinomial",
    .in = "logits: T, num_samples: int32",
    .out = "output: output_dtype",
    .attr = "seed: int = 0; seed2: int = 0; T: realnumbertype; "
            "output_dtype: {int32, int64} = int64",
    .flags = OP_STATEFUL,
    .init = random_state_init,
    .done = random_state_done,
    .kernel = FLOAT_ROWS(multinomial),
};

const struct op_def def_stateless_multinomial = {
    .name = "StatelessMultinomial",
    .in = "logits: T, num_samples: int32, seed: Tseed",
    .out = "output: output_dtype",
    .attr = "T: realnumbertype; Tseed: {int32, int64} = int64; "
            "output_dtype: {int32, int64} = int64",
    .kernel = FLOAT_ROWS(stateless_multinomial),
};
