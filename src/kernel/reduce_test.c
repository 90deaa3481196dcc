#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "op/harness.h"

static enum mst_code reduce(struct harness *h, const char *op, struct tensor in,
                            int axes, const int32_t *axis, bool keep)
{
    int64_t n = axes;

    harness_init(h, op);
    harness_type(h, "T", in.dtype);
    harness_bool(h, "keep_dims", keep);
    harness_in(h, in);
    harness_in(h, harness_int32s(1, &n, axis));
    return harness_run(h);
}

static struct tensor counting(int ndim, const int64_t *dims)
{
    int64_t n = 1;
    struct tensor t;
    float *v;

    for (int i = 0; i < ndim; i++)
        n *= dims[i];
    v = test_calloc((size_t)n, sizeof(float));
    for (int64_t i = 0; i < n; i++)
        v[i] = (float)i;
    t = harness_floats(ndim, dims, v);
    test_free(v);
    return t;
}

static void test_sum_over_outer_and_inner_axes(void **state)
{
    struct harness h;
    const float *out;

    (void)state;
    assert_int_equal(reduce(&h, "Sum", counting(3, (int64_t[]){ 2, 3, 4 }), 2,
                            (int32_t[]){ 0, -1 }, false),
                     MST_OK);
    assert_int_equal(h.out[0].t.ndim, 1);
    out = h.out[0].t.data;
    assert_true(out[0] == 60 && out[1] == 92 && out[2] == 124);
    harness_done(&h);
    assert_int_equal(reduce(&h, "Sum", counting(3, (int64_t[]){ 2, 3, 4 }), 1,
                            (int32_t[]){ 1 }, true),
                     MST_OK);
    assert_int_equal(h.out[0].t.ndim, 3);
    assert_int_equal(h.out[0].t.dims[1], 1);
    out = h.out[0].t.data;
    assert_true(out[0] == 12 && out[7] == 57);
    harness_done(&h);
}

static void test_a_long_sum_keeps_its_digits(void **state)
{
    enum { N = 3000000 };
    int64_t n = N;
    struct harness h;
    float *v = test_calloc(N, sizeof(float));
    struct tensor t;

    (void)state;
    for (int i = 0; i < N; i++)
        v[i] = 0.1f;
    t = harness_floats(1, &n, v);
    test_free(v);
    assert_int_equal(reduce(&h, "Sum", t, 1, (int32_t[]){ 0 }, false), MST_OK);
    assert_float_equal(*TENSOR_DATA(&h.out[0].t, float) / N, 0.1f, 2e-7);
    harness_done(&h);
}

static void test_threads_do_not_change_the_sum(void **state)
{
    struct pool *pool = pool_new(3);
    struct harness h;
    float alone;

    (void)state;
    assert_int_equal(reduce(&h, "Sum", counting(2, (int64_t[]){ 9001, 70 }), 2,
                            (int32_t[]){ 0, 1 }, false),
                     MST_OK);
    alone = *TENSOR_DATA(&h.out[0].t, float);
    h.env.pool = pool;
    harness_in(&h, counting(2, (int64_t[]){ 9001, 70 }));
    harness_in(&h, harness_int32s(1, (int64_t[]){ 2 }, (int32_t[]){ 0, 1 }));
    assert_int_equal(harness_run(&h), MST_OK);
    assert_true(alone == *TENSOR_DATA(&h.out[0].t, float));
    harness_done(&h);
    pool_free(pool);
}

static void test_nothing_reduces_to_the_neutral_value(void **state)
{
    struct harness h;

    (void)state;
    assert_int_equal(reduce(&h, "Max", counting(2, (int64_t[]){ 2, 0 }), 1,
                            (int32_t[]){ 1 }, false),
                     MST_OK);
    assert_int_equal(h.out[0].t.count, 2);
    assert_true(TENSOR_DATA(&h.out[0].t, float)[1] == -INFINITY);
    harness_done(&h);
    assert_int_equal(reduce(&h, "Mean", counting(1, (int64_t[]){ 0 }), 1,
                            (int32_t[]){ 0 }, false),
                     MST_OK);
    assert_true(isnan(*TENSOR_DATA(&h.out[0].t, float)));
    harness_done(&h);
}

static void test_bad_axes_are_refused(void **state)
{
    struct harness h;

    (void)state;
    assert_int_equal(reduce(&h, "Sum", counting(1, (int64_t[]){ 2 }), 1,
                            (int32_t[]){ 1 }, false),
                     MST_INVALID_ARGUMENT);
    harness_done(&h);
    assert_int_equal(reduce(&h, "Sum", counting(1, (int64_t[]){ 2 }), 2,
                            (int32_t[]){ 0, -1 }, false),
                     MST_INVALID_ARGUMENT);
    harness_done(&h);
}

static void test_arg_max_passes_over_nan(void **state)
{
    struct harness h;

    (void)state;
    harness_init(&h, "ArgMax");
    harness_type(&h, "T", DT_FLOAT);
    harness_in(&h, harness_floats(1, (int64_t[]){ 5 },
                                  (float[]){ NAN, 1, 3, NAN, 3 }));
    harness_in(&h, harness_int32s(0, NULL, (int32_t[]){ 0 }));
    assert_int_equal(harness_run(&h), MST_OK);
    assert_int_equal(*TENSOR_DATA(&h.out[0].t, int64_t), 2);
    harness_done(&h);
}

/* Long rows have a loop that does not look at NaN. */
static void test_nan_is_the_greatest_and_the_least_of_a_long_row(void **state)
{
    static const char *const ops[] = { "Max", "Min" };
    static const int at[] = { 0, 63, 64, 511, 600 };
    float x[601];

    for (int o = 0; o < 2; o++)
        for (int i = 0; i < (int)COUNT(at) + 1; i++) {
            struct harness h;
            float y;

            for (int k = 0; k < 601; k++)
                x[k] = k == 300 ? INFINITY : k == 301 ? -INFINITY : (float)k;
            if (i < (int)COUNT(at))
                x[at[i]] = NAN;
            harness_init(&h, ops[o]);
            harness_type(&h, "T", DT_FLOAT);
            harness_in(&h, harness_floats(1, (int64_t[]){ 601 }, x));
            harness_in(&h, harness_int32s(0, NULL, (int32_t[]){ 0 }));
            assert_int_equal(harness_run(&h), MST_OK);
            y = *TENSOR_DATA(&h.out[0].t, float);
            assert_true(i < (int)COUNT(at) ? isnan(y)
                        : o                ? y == -INFINITY
                                           : y == INFINITY);
            harness_done(&h);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sum_over_outer_and_inner_axes),
        cmocka_unit_test(test_a_long_sum_keeps_its_digits),
        cmocka_unit_test(test_threads_do_not_change_the_sum),
        cmocka_unit_test(test_nothing_reduces_to_the_neutral_value),
        cmocka_unit_test(test_bad_axes_are_refused),
        cmocka_unit_test(test_arg_max_passes_over_nan),
        cmocka_unit_test(test_nan_is_the_greatest_and_the_least_of_a_long_row),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
