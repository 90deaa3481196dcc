/*
 * Where values belong in sorted rows: LowerBound (before their equals) and
 * UpperBound (after them).
 */
#include "kernel/types.h"

static enum mst_code bound_check(struct op_ctx *c)
{
    static const char *const names[] = { "sorted_inputs", "values" };

    for (int i = 0; i < 2; i++)
        if (op_in(c, i)->ndim != 2)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Shape must be rank 2 but is rank %d for `%s` "
                           "argument",
                           op_in(c, i)->ndim, names[i]);
    if (op_in(c, 0)->dims[0] != op_in(c, 1)->dims[0])
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Leading dim_size of both tensors must match.");
    if (op_in(c, 0)->dims[1] > INT32_MAX)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "num_inputs cannot exceed max int");
    return MST_OK;
}

#define BOUND(op, s, T, A, LD, LESS)                                           \
    static enum mst_code op##_##s(struct op_ctx *c)                            \
    {                                                                          \
        const struct tensor *sorted = op_in(c, 0), *values = op_in(c, 1);      \
        enum mst_code rc = bound_check(c);                                     \
                                                                               \
        if (!rc)                                                               \
            rc = op_out_like(c, 0, values);                                    \
        for (int64_t i = 0; i < values->count && !rc; i++) {                   \
            const T *row = (const T *)sorted->data +                           \
                           i / values->dims[1] * sorted->dims[1];              \
            int64_t low = 0, high = sorted->dims[1];                           \
            A v = LD(((const T *)values->data)[i]);                            \
                                                                               \
            while (low < high) {                                               \
                int64_t mid = low + (high - low) / 2;                          \
                A x = LD(row[mid]);                                            \
                                                                               \
                if (LESS)                                                      \
                    low = mid + 1;                                             \
                else                                                           \
                    high = mid;                                                \
            }                                                                  \
            if (op_out(c, 0)->dtype == DT_INT32)                               \
                TENSOR_DATA(op_out(c, 0), int32_t)[i] = (int32_t)low;          \
            else                                                               \
                TENSOR_DATA(op_out(c, 0), int64_t)[i] = low;                   \
        }                                                                      \
        return rc;                                                             \
    }
#define LOWER(s, T, A, DT, LD, ST) BOUND(lower_bound, s, T, A, LD, x < v)
#define UPPER(s, T, A, DT, LD, ST) BOUND(upper_bound, s, T, A, LD, !(v < x))
TYPES_REAL(LOWER)
TYPES_REAL(UPPER)

const struct op_def def_lower_bound = {
    .name = "LowerBound",
    .in = "sorted_inputs: T, values: T",
    .out = "output: out_type",
    .attr = "T: type; out_type: {int32, int64} = int32",
    .kernel = KERNELS(TYPES_REAL(ROW, lower_bound)),
};

const struct op_def def_upper_bound = {
    .name = "UpperBound",
    .in = "sorted_inputs: T, values: T",
    .out = "output: out_type",
    .attr = "T: type; out_type: {int32, int64} = int32",
    .kernel = KERNELS(TYPES_REAL(ROW, upper_bound)),
};
