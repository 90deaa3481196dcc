#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "op/harness.h"

#define DIMS(...)                                                              \
    (int)COUNT(((int64_t[]){ __VA_ARGS__ })), (int64_t[])                      \
    {                                                                          \
        __VA_ARGS__                                                            \
    }
#define FLOATS(...)                                                            \
    (float[])                                                                  \
    {                                                                          \
        __VA_ARGS__                                                            \
    }
#define INTS(...)                                                              \
    (int32_t[])                                                                \
    {                                                                          \
        __VA_ARGS__                                                            \
    }

static void expect_floats(const struct harness *h, int n, const float *want)
{
    assert_int_equal(h->out[0].t.count, n);
    assert_memory_equal(h->out[0].t.data, want, (size_t)n * sizeof(float));
}

static void start(struct harness *h, const char *op, enum dtype dt)
{
    harness_init(h, op);
    harness_type(h, "T", dt);
}

static void test_broadcast_walks_any_rank(void **state)
{
    struct harness h;

    (void)state;
    start(&h, "Sub", DT_FLOAT);
    /* [2,1,2] - [3,1] */
    harness_in(&h, harness_floats(DIMS(2, 1, 2), FLOATS(10, 20, 30, 40)));
    harness_in(&h, harness_floats(DIMS(3, 1), FLOATS(1, 2, 3)));
    assert_int_equal(harness_run(&h), MST_OK);
    assert_int_equal(h.out[0].t.ndim, 3);
    expect_floats(&h, 12, FLOATS(9, 19, 8, 18, 7, 17, 29, 39, 28, 38, 27, 37));
    harness_done(&h);
}

static void test_broadcast_splits_anywhere(void **state)
{
    enum { ROWS = 301, COLS = 997 };
    struct harness h;
    struct tensor x =
        harness_floats(DIMS(ROWS, COLS), (float[ROWS * COLS]){ 0 });
    struct tensor y = harness_floats(DIMS(ROWS, 1), (float[ROWS]){ 0 });
    struct pool *pool = pool_new(3);

    (void)state;
    for (int i = 0; i < ROWS * COLS; i++)
        TENSOR_DATA(&x, float)[i] = (float)i;
    for (int i = 0; i < ROWS; i++)
        TENSOR_DATA(&y, float)[i] = (float)(i * COLS);
    start(&h, "Sub", DT_FLOAT);
    h.env.pool = pool;
    harness_in(&h, x);
    harness_in(&h, y);
    assert_int_equal(harness_run(&h), MST_OK);
    for (int i = 0; i < ROWS * COLS; i++)
        assert_true(TENSOR_DATA(&h.out[0].t, float)[i] == (float)(i % COLS));
    harness_done(&h);
    pool_free(pool);
}

static void test_a_lone_input_is_reused(void **state)
{
    struct harness h;
    struct tensor x = harness_floats(DIMS(3), FLOATS(1, 2, 3));
    struct tensor y = harness_floats(DIMS(3), FLOATS(4, 5, 6));
    struct tensor kept = tensor_ref(&x);

    (void)state;
    start(&h, "Mul", DT_FLOAT);
    harness_in(&h, x);
    harness_in(&h, y);
    assert_int_equal(harness_run(&h), MST_OK);
    assert_ptr_equal(h.out[0].t.data, y.data);
    expect_floats(&h, 3, FLOATS(4, 10, 18));
    assert_memory_equal(kept.data, FLOATS(1, 2, 3), 12);
    tensor_unref(&kept);
    harness_done(&h);
}

static void test_a_smaller_input_is_not_reused(void **state)
{
    struct harness h;
    struct tensor x = harness_floats(DIMS(2), FLOATS(1, 2));

    (void)state;
    start(&h, "AddV2", DT_FLOAT);
    harness_in(&h, x);
    harness_in(&h, harness_floats(DIMS(2, 1), FLOATS(10, 20)));
    assert_int_equal(harness_run(&h), MST_OK);
    expect_floats(&h, 4, FLOATS(11, 12, 21, 22));
    harness_done(&h);
}

static void test_shapes_that_do_not_go_together_are_named(void **state)
{
    struct harness h;

    (void)state;
    start(&h, "AddV2", DT_FLOAT);
    harness_in(&h, harness_floats(DIMS(2), FLOATS(1, 2)));
    harness_in(&h, harness_floats(DIMS(3), FLOATS(1, 2, 3)));
    assert_int_equal(harness_run(&h), MST_INVALID_ARGUMENT);
    assert_string_equal(h.st.msg, "Incompatible shapes: [2] vs. [3]");
    harness_done(&h);
}

static enum mst_code run_ints(struct harness *h, const char *op, int n,
                              const int32_t *x, const int32_t *y)
{
    int64_t dims = n;

    start(h, op, DT_INT32);
    harness_in(h, harness_int32s(1, &dims, x));
    harness_in(h, harness_int32s(1, &dims, y));
    return harness_run(h);
}

static void test_division_by_zero_fails(void **state)
{
    static const char *const ops[] = { "Div", "FloorDiv", "FloorMod", "Mod" };

    (void)state;
    for (size_t i = 0; i < COUNT(ops); i++) {
        struct harness h;

        assert_int_equal(run_ints(&h, ops[i], 2, INTS(1, 2), INTS(1, 0)),
                         MST_INVALID_ARGUMENT);
        assert_string_equal(h.st.msg, "Integer division by zero");
        harness_done(&h);
    }
}

static void test_the_least_number_by_minus_one_wraps(void **state)
{
    static const char *const ops[] = { "Div", "FloorDiv", "FloorMod", "Mod" };
    static const int32_t want[] = { INT32_MIN, INT32_MIN, 0, 0 };

    (void)state;
    for (size_t i = 0; i < COUNT(ops); i++) {
        struct harness h;

        assert_int_equal(run_ints(&h, ops[i], 1, INTS(INT32_MIN), INTS(-1)),
                         MST_OK);
        assert_int_equal(*TENSOR_DATA(&h.out[0].t, int32_t), want[i]);
        harness_done(&h);
    }
}

static void test_floor_mod_has_the_sign_of_the_divisor(void **state)
{
    struct harness h;

    (void)state;
    assert_int_equal(
        run_ints(&h, "FloorMod", 4, INTS(7, -7, 7, -7), INTS(3, 3, -3, -3)),
        MST_OK);
    assert_memory_equal(h.out[0].t.data, INTS(1, 2, -2, -1), 16);
    harness_done(&h);
}

static void test_negative_powers_of_ints_fail(void **state)
{
    struct harness h;

    (void)state;
    assert_int_equal(run_ints(&h, "Pow", 2, INTS(2, 2), INTS(3, -1)),
                     MST_INVALID_ARGUMENT);
    harness_done(&h);
    assert_int_equal(run_ints(&h, "Pow", 2, INTS(2, -3), INTS(31, 41)), MST_OK);
    assert_int_equal(TENSOR_DATA(&h.out[0].t, int32_t)[0], INT32_MIN);
    harness_done(&h);
}

static void test_not_a_number_wins_the_maximum(void **state)
{
    struct harness h;
    const float *out;

    (void)state;
    start(&h, "Maximum", DT_FLOAT);
    harness_in(&h, harness_floats(DIMS(3), FLOATS(NAN, 1, 2)));
    harness_in(&h, harness_floats(DIMS(3), FLOATS(1, NAN, 3)));
    assert_int_equal(harness_run(&h), MST_OK);
    out = h.out[0].t.data;
    assert_true(isnan(out[0]) && isnan(out[1]) && out[2] == 3);
    harness_done(&h);
}

static void test_round_goes_to_even(void **state)
{
    struct harness h;

    (void)state;
    start(&h, "Round", DT_FLOAT);
    harness_in(&h, harness_floats(DIMS(4), FLOATS(0.5f, 1.5f, 2.5f, -0.5f)));
    assert_int_equal(harness_run(&h), MST_OK);
    expect_floats(&h, 4, FLOATS(0, 2, 2, -0.0f));
    harness_done(&h);
}

static void test_strings_are_joined_and_compared(void **state)
{
    const char *ab[] = { "a", "" }, *c[] = { "c" };
    struct harness h;

    (void)state;
    start(&h, "Add", DT_STRING);
    harness_in(&h, harness_strs(DIMS(2), ab));
    harness_in(&h, harness_strs(0, NULL, c));
    assert_int_equal(harness_run(&h), MST_OK);
    assert_int_equal(tensor_str(&h.out[0].t, 0)->len, 2);
    assert_memory_equal(tensor_str(&h.out[0].t, 0)->data, "ac", 2);
    assert_memory_equal(tensor_str(&h.out[0].t, 1)->data, "c", 1);
    harness_done(&h);
    start(&h, "NotEqual", DT_STRING);
    harness_in(&h, harness_strs(DIMS(2), ab));
    harness_in(&h, harness_strs(DIMS(1), (const char *[]){ "a" }));
    assert_int_equal(harness_run(&h), MST_OK);
    assert_memory_equal(h.out[0].t.data, "\0\1", 2);
    harness_done(&h);
}

static void test_equal_of_other_shapes_is_false_if_asked(void **state)
{
    struct harness h;

    (void)state;
    start(&h, "Equal", DT_FLOAT);
    harness_bool(&h, "incompatible_shape_error", false);
    harness_in(&h, harness_floats(DIMS(2), FLOATS(1, 2)));
    harness_in(&h, harness_floats(DIMS(3), FLOATS(1, 2, 3)));
    assert_int_equal(harness_run(&h), MST_OK);
    assert_int_equal(h.out[0].t.ndim, 0);
    assert_false(*TENSOR_DATA(&h.out[0].t, bool));
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_broadcast_walks_any_rank),
        cmocka_unit_test(test_broadcast_splits_anywhere),
        cmocka_unit_test(test_a_lone_input_is_reused),
        cmocka_unit_test(test_a_smaller_input_is_not_reused),
        cmocka_unit_test(test_shapes_that_do_not_go_together_are_named),
        cmocka_unit_test(test_division_by_zero_fails),
        cmocka_unit_test(test_the_least_number_by_minus_one_wraps),
        cmocka_unit_test(test_floor_mod_has_the_sign_of_the_divisor),
        cmocka_unit_test(test_negative_powers_of_ints_fail),
        cmocka_unit_test(test_not_a_number_wins_the_maximum),
        cmocka_unit_test(test_round_goes_to_even),
        cmocka_unit_test(test_strings_are_joined_and_compared),
        cmocka_unit_test(test_equal_of_other_shapes_is_false_if_asked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
