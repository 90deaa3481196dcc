/* What shape and array ops do at their edges; the conformance test against
 * TensorFlow has the rest. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "op/harness.h"

static void test_unique_takes_numbers_as_equal_not_bits(void **state)
{
    static const float in[] = { 0.0f, NAN, -0.0f, NAN, 2.0f };
    struct harness h;

    (void)state;
    harness_init(&h, "Unique");
    harness_type(&h, "T", DT_FLOAT);
    harness_in(&h, harness_floats(1, (int64_t[]){ 5 }, in));
    assert_int_equal(harness_run(&h), MST_OK);
    assert_int_equal(h.out[0].t.count, 4); /* 0, NaN, NaN, 2 */
    assert_memory_equal(h.out[1].t.data, ((int32_t[]){ 0, 1, 0, 2, 3 }), 20);
    harness_done(&h);
}

static void test_set_diag_leaves_a_shared_input_alone(void **state)
{
    struct tensor m =
        harness_floats(2, (int64_t[]){ 2, 2 }, (float[]){ 1, 2, 3, 4 });
    struct harness h;

    (void)state;
    harness_init(&h, "MatrixSetDiag");
    harness_type(&h, "T", DT_FLOAT);
    harness_in(&h, tensor_ref(&m));
    harness_in(&h, harness_floats(1, (int64_t[]){ 2 }, (float[]){ 9, 9 }));
    assert_int_equal(harness_run(&h), MST_OK);
    assert_memory_equal(h.out[0].t.data, ((float[]){ 9, 2, 3, 9 }), 16);
    assert_memory_equal(m.data, ((float[]){ 1, 2, 3, 4 }), 16);
    harness_done(&h);
    tensor_unref(&m);
}

static void test_stitch_refuses_a_negative_index(void **state)
{
    struct harness h;

    (void)state;
    harness_init(&h, "DynamicStitch");
    harness_int(&h, "N", 1);
    harness_type(&h, "T", DT_FLOAT);
    harness_in(&h, harness_int32s(1, (int64_t[]){ 2 }, (int32_t[]){ 1, -1 }));
    harness_in(&h, harness_floats(1, (int64_t[]){ 2 }, (float[]){ 1, 2 }));
    assert_int_equal(harness_run(&h), MST_INVALID_ARGUMENT);
    assert_string_equal(h.st.msg, "indices[1] is out of range");
    harness_done(&h);
}

static void test_stitch_leaves_zeros_where_nothing_was_given(void **state)
{
    struct harness h;

    (void)state;
    harness_init(&h, "DynamicStitch");
    harness_int(&h, "N", 2);
    harness_type(&h, "T", DT_FLOAT);
    harness_in(&h, harness_int32s(1, (int64_t[]){ 1 }, (int32_t[]){ 3 }));
    harness_in(&h, harness_int32s(1, (int64_t[]){ 1 }, (int32_t[]){ 1 }));
    harness_in(&h, harness_floats(1, (int64_t[]){ 1 }, (float[]){ 3 }));
    harness_in(&h, harness_floats(1, (int64_t[]){ 1 }, (float[]){ 1 }));
    assert_int_equal(harness_run(&h), MST_OK);
    assert_memory_equal(h.out[0].t.data, ((float[]){ 0, 1, 0, 3 }), 16);
    harness_done(&h);
}

static void test_select_chooses_rows_of_strings(void **state)
{
    static const char *const then[] = { "a", "b", "c", "d" };
    static const char *const other[] = { "w", "x", "y", "z" };
    struct tensor cond = { 0 };
    struct harness h;

    (void)state;
    harness_init(&h, "Select");
    harness_type(&h, "T", DT_STRING);
    assert_int_equal(tensor_new(&cond, DT_BOOL, 1, (int64_t[]){ 2 }, &h.st),
                     MST_OK);
    TENSOR_DATA(&cond, bool)[0] = false;
    TENSOR_DATA(&cond, bool)[1] = true;
    harness_in(&h, cond);
    harness_in(&h, harness_strs(2, (int64_t[]){ 2, 2 }, then));
    harness_in(&h, harness_strs(2, (int64_t[]){ 2, 2 }, other));
    assert_int_equal(harness_run(&h), MST_OK);
    for (int i = 0; i < 4; i++)
        assert_int_equal(tensor_str(&h.out[0].t, i)->data[0], "wxcd"[i]);
    harness_done(&h);
}

static void test_placeholder_says_what_to_feed(void **state)
{
    struct harness h;

    (void)state;
    harness_init(&h, "Placeholder");
    harness_name(&h, "p");
    harness_type(&h, "dtype", DT_FLOAT);
    harness_shape(&h, "shape", 2, (int64_t[]){ -1, 3 });
    assert_int_equal(harness_run(&h), MST_INVALID_ARGUMENT);
    assert_string_equal(h.st.msg,
                        "You must feed a value for placeholder tensor 'p' with "
                        "dtype float and shape [?,3]");
    harness_done(&h);
}

/* A dimension beside a zero may be as large as it likes. */
static void test_reshape_of_nothing_to_a_huge_shape_works(void **state)
{
    struct harness h;

    (void)state;
    harness_init(&h, "Reshape");
    harness_type(&h, "T", DT_DOUBLE);
    harness_type(&h, "Tshape", DT_INT64);
    harness_in(&h, harness_floats(1, (int64_t[]){ 0 }, NULL));
    h.in[0].t.dtype = DT_DOUBLE;
    harness_in(&h, harness_int64s(1, (int64_t[]){ 2 },
                                  (int64_t[]){ (int64_t)1 << 45, 0 }));
    assert_int_equal(harness_run(&h), MST_OK);
    assert_int_equal(h.out[0].t.count, 0);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unique_takes_numbers_as_equal_not_bits),
        cmocka_unit_test(test_set_diag_leaves_a_shared_input_alone),
        cmocka_unit_test(test_stitch_refuses_a_negative_index),
        cmocka_unit_test(test_stitch_leaves_zeros_where_nothing_was_given),
        cmocka_unit_test(test_select_chooses_rows_of_strings),
        cmocka_unit_test(test_placeholder_says_what_to_feed),
        cmocka_unit_test(test_reshape_of_nothing_to_a_huge_shape_works),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
