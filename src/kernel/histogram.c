/*
 * HistogramFixedWidth: how many values fall in each of equal steps of a range.
 * Values beside the range count in its first or last step. The step is the
 * difference of two quotients, as TensorFlow has it: on a step's very edge the
 * last bit decides.
 */
#include <math.h>

#include "kernel/types.h"

static enum mst_code histogram_check(struct op_ctx *c, int64_t *ret_bins)
{
    const struct tensor *range = op_in(c, 1), *bins = op_in(c, 2);

    if (range->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "value_range should be a vector.");
    if (range->count != 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "value_range should be a vector of 2 elements.");
    if (bins->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT, "nbins should be a scalar.");
    *ret_bins = tensor_int(bins, 0);
    if (*ret_bins <= 0)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "nbins should be a positive number, but got '%lld'",
                       (long long)*ret_bins);
    return MST_OK;
}

static void count_one(const struct tensor *t, int64_t bin)
{
    if (t->dtype == DT_INT32)
        TENSOR_DATA(t, int32_t)[bin]++;
    else
        TENSOR_DATA(t, int64_t)[bin]++;
}

#define HISTOGRAM(s, T, A, DT, LD, ST)                                         \
    static enum mst_code histogram_##s(struct op_ctx *c)                       \
    {                                                                          \
        const struct tensor *values = op_in(c, 0);                             \
        const T *x = values->data, *range = op_in(c, 1)->data;                 \
        int64_t bins;                                                          \
        double low, step;                                                      \
        enum mst_code rc = histogram_check(c, &bins);                          \
                                                                               \
        if (rc)                                                                \
            return rc;                                                         \
        if (!(range[0] < range[1]))                                            \
            return op_fail(c, MST_INVALID_ARGUMENT,                            \
                           "value_range should satisfy value_range[0] < "      \
                           "value_range[1], but got '[%g, %g]'",               \
                           (double)range[0], (double)range[1]);                \
        rc = op_out_new(c, 0, 1, &bins);                                       \
        if (rc)                                                                \
            return rc;                                                         \
        tensor_zero(op_out(c, 0));                                             \
        low = (double)range[0];                                                \
        step = (double)range[1] / (double)bins - low / (double)bins;           \
        for (int64_t i = 0; i < values->count; i++) {                          \
            double at = ((double)x[i] - low) / step;                           \
                                                                               \
            if (isnan(at))                                                     \
                return op_fail(c, MST_INVALID_ARGUMENT,                        \
                               "Histogram values must not contain NaN");       \
            at = at > 0 ? MIN(at, (double)(bins - 1)) : 0;                     \
            count_one(op_out(c, 0), (int64_t)at);                              \
        }                                                                      \
        return MST_OK;                                                         \
    }
TYPES_INDEX(HISTOGRAM)
TYPES_FLOAT_WIDE(HISTOGRAM)

const struct op_def def_histogram_fixed_width = {
    .name = "HistogramFixedWidth",
    .in = "values: T, value_range: T, nbins: int32",
    .out = "out: dtype",
    .attr = "T: {int32, int64, float, double}; dtype: {int32, int64} = int32",
    .kernel =
        KERNELS(TYPES_INDEX(ROW, histogram) TYPES_FLOAT_WIDE(ROW, histogram)),
};
