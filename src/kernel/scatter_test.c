#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "op/harness.h"

#define VECTOR(n, ...)                                                         \
    harness_floats(1, (int64_t[]){ n }, (float[]){ __VA_ARGS__ })
#define INDICES(n, ...)                                                        \
    harness_int32s(1, (int64_t[]){ n }, (int32_t[]){ __VA_ARGS__ })

static struct variable *variable_of(struct tensor t, bool by_ref)
{
    struct variable *v = variable_new("v", t.dtype, by_ref);

    variable_assign(v, &t);
    return v;
}

static void in_handle(struct harness *h, struct variable *v)
{
    struct handle *handle =
        handle_anonymous(&variable_kind, &variable_ref(v)->o, "");
    struct tensor t;

    assert_int_equal(tensor_new_scalar(&t, DT_RESOURCE, &h->st), MST_OK);
    *tensor_object(&t, 0) = &handle->o;
    harness_in(h, t);
}

static void begin(struct harness *h, const char *op, const char *type_attr,
                  int dt)
{
    harness_init(h, op);
    harness_type(h, type_attr, dt);
    harness_type(h, "Tindices", DT_INT32);
}

static void assert_values(const struct tensor *t, int64_t n,
                          const float *values)
{
    assert_int_equal(t->count, n);
    for (int64_t i = 0; i < n; i++)
        assert_float_equal(TENSOR_DATA(t, float)[i], values[i], 0);
}

#define ASSERT_VALUES(t, n, ...)                                               \
    assert_values(t, n, (const float[]){ __VA_ARGS__ })

static void test_add_counts_a_row_as_often_as_it_is_named(void **state)
{
    struct variable *v = variable_of(VECTOR(3, 1, 2, 3), false);
    struct tensor seen;
    struct harness h;

    (void)state;
    begin(&h, "ResourceScatterAdd", "dtype", DT_FLOAT);
    in_handle(&h, v);
    harness_in(&h, INDICES(3, 2, 0, 2));
    harness_in(&h, VECTOR(3, 10, 20, 30));
    assert_int_equal(variable_read(v, &seen, &h.st), MST_OK);
    assert_int_equal(harness_run(&h), MST_OK);
    ASSERT_VALUES(&v->t, 3, 21, 2, 43);
    ASSERT_VALUES(&seen, 3, 1, 2, 3);
    tensor_unref(&seen);
    /* One number for all rows; from now on reading copies. */
    assert_int_equal(variable_read(v, &seen, &h.st), MST_OK);
    in_handle(&h, v);
    harness_in(&h, INDICES(2, 1, 1));
    harness_in(&h, harness_floats(0, NULL, (float[]){ 0.5f }));
    assert_int_equal(harness_run(&h), MST_OK);
    ASSERT_VALUES(&v->t, 3, 21, 3, 43);
    ASSERT_VALUES(&seen, 3, 21, 2, 43);
    tensor_unref(&seen);
    harness_done(&h);
    variable_unref(v);
}

static void test_whole_numbers_wrap_and_divide_safely(void **state)
{
    struct variable *v = variable_of(
        harness_int32s(1, (int64_t[]){ 2 }, (int32_t[]){ INT32_MIN, 7 }),
        false);
    struct harness h;

    (void)state;
    begin(&h, "ResourceScatterDiv", "dtype", DT_INT32);
    in_handle(&h, v);
    harness_in(&h, INDICES(2, 0, 1));
    harness_in(&h, INDICES(2, -1, -2));
    assert_int_equal(harness_run(&h), MST_OK);
    assert_int_equal(TENSOR_DATA(&v->t, int32_t)[0], INT32_MIN);
    assert_int_equal(TENSOR_DATA(&v->t, int32_t)[1], -3);
    in_handle(&h, v);
    harness_in(&h, INDICES(2, 0, 1));
    harness_in(&h, INDICES(2, 1, 0));
    assert_int_equal(harness_run(&h), MST_INVALID_ARGUMENT);
    assert_string_equal(h.st.msg, "updates must not contain 0");
    harness_done(&h);
    variable_unref(v);
}

/* Who reads a variable of strings by reference keeps what he read. */
static void test_strings_do_not_change_under_a_reader(void **state)
{
    const char *words[] = { "a", "b" },
               *other[] = { "long enough to allocate" };
    struct variable *v =
        variable_of(harness_strs(1, (int64_t[]){ 2 }, words), true);
    struct tensor seen;
    struct harness h;

    (void)state;
    begin(&h, "ScatterUpdate", "T", DT_STRING);
    harness_in_ref(&h, v);
    harness_in(&h, INDICES(1, 1));
    harness_in(&h, harness_strs(1, (int64_t[]){ 1 }, other));
    assert_int_equal(variable_read(v, &seen, &h.st), MST_OK);
    assert_int_equal(harness_run(&h), MST_OK);
    assert_memory_equal(tensor_str(&seen, 1)->data, "b", 1);
    assert_int_equal(tensor_str(&v->t, 1)->len, strlen(other[0]));
    assert_ptr_equal(h.out[0].ref, v);
    tensor_unref(&seen);
    harness_done(&h);
    variable_unref(v);
}

/* TensorFlow 2.21 writes past the row here. */
static void test_updates_of_the_wrong_width_are_refused(void **state)
{
    int64_t two_two[] = { 2, 2 }, two_three[] = { 2, 3 };
    float six[6] = { 0 };
    struct variable *v = variable_of(harness_floats(2, two_two, six), false);
    struct harness h;

    (void)state;
    begin(&h, "ResourceScatterAdd", "dtype", DT_FLOAT);
    in_handle(&h, v);
    harness_in(&h, INDICES(2, 0, 1));
    harness_in(&h, harness_floats(2, two_three, six));
    assert_int_equal(harness_run(&h), MST_INVALID_ARGUMENT);
    harness_done(&h);
    variable_unref(v);
}

static void test_nd_names_single_elements(void **state)
{
    struct variable *v = variable_of(
        harness_floats(2, (int64_t[]){ 2, 2 }, (float[]){ 1, 2, 3, 4 }), true);
    struct harness h;

    (void)state;
    begin(&h, "ScatterNdSub", "T", DT_FLOAT);
    harness_in_ref(&h, v);
    harness_in(
        &h, harness_int32s(2, (int64_t[]){ 2, 2 }, (int32_t[]){ 1, 0, 1, 0 }));
    harness_in(&h, VECTOR(2, 10, 20));
    assert_int_equal(harness_run(&h), MST_OK);
    ASSERT_VALUES(&v->t, 4, 1, 2, -27, 4);
    harness_in_ref(&h, v);
    harness_in(
        &h, harness_int32s(2, (int64_t[]){ 2, 2 }, (int32_t[]){ 1, 0, 1, 2 }));
    harness_in(&h, VECTOR(2, 10, 20));
    assert_int_equal(harness_run(&h), MST_INVALID_ARGUMENT);
    assert_string_equal(h.st.msg,
                        "indices[1] = [1, 2] does not index into shape [2,2]");
    harness_done(&h);
    variable_unref(v);
}

static void test_tensor_scatter_keeps_a_shared_input(void **state)
{
    struct tensor in = VECTOR(3, 1, 2, 3);
    const void *bytes = in.data;
    struct harness h;

    (void)state;
    begin(&h, "TensorScatterUpdate", "T", DT_FLOAT);
    for (int shared = 1; shared >= 0; shared--) {
        harness_in(&h, shared ? tensor_ref(&in) : in);
        harness_in(&h,
                   harness_int32s(2, (int64_t[]){ 1, 1 }, (int32_t[]){ 1 }));
        harness_in(&h, VECTOR(1, 9));
        assert_int_equal(harness_run(&h), MST_OK);
        ASSERT_VALUES(&h.out[0].t, 3, 1, 9, 3);
        assert_int_equal(h.out[0].t.data == bytes, !shared);
    }
    harness_done(&h);
}

/* Beside a zero, dimensions may be of any size. */
static void test_empty_target_with_huge_dimensions_is_harmless(void **state)
{
    int64_t huge[] = { 0, (int64_t)1 << 62, (int64_t)1 << 62 };
    struct harness h;
    struct tensor in;

    (void)state;
    begin(&h, "TensorScatterAdd", "T", DT_FLOAT);
    assert_int_equal(tensor_new(&in, DT_FLOAT, 3, huge, &h.st), MST_OK);
    harness_in(&h, in);
    harness_in(&h, harness_int32s(2, (int64_t[]){ 1, 1 }, (int32_t[]){ 0 }));
    harness_in(&h, VECTOR(1, 9));
    assert_int_equal(harness_run(&h), MST_INVALID_ARGUMENT);
    harness_done(&h);
}

static void test_scatter_nd_refuses_what_no_memory_holds(void **state)
{
    struct harness h;

    (void)state;
    harness_init(&h, "ScatterNd");
    harness_type(&h, "T", DT_FLOAT);
    harness_type(&h, "Tindices", DT_INT64);
    harness_in(&h, harness_int64s(2, (int64_t[]){ 1, 1 }, (int64_t[]){ 0 }));
    harness_in(&h, VECTOR(1, 1));
    harness_in(&h, harness_int64s(1, (int64_t[]){ 1 },
                                  (int64_t[]){ (int64_t)1 << 60 }));
    assert_int_not_equal(harness_run(&h), MST_OK);
    harness_done(&h);
}

static void test_assign_add_adds_and_checks(void **state)
{
    struct variable *v = variable_of(VECTOR(2, 1, 2), false);
    struct harness h;

    (void)state;
    harness_init(&h, "AssignAddVariableOp");
    harness_type(&h, "dtype", DT_FLOAT);
    in_handle(&h, v);
    harness_in(&h, VECTOR(2, 10, 20));
    assert_int_equal(harness_run(&h), MST_OK);
    ASSERT_VALUES(&v->t, 2, 11, 22);
    in_handle(&h, v);
    harness_in(&h, VECTOR(1, 10));
    assert_int_equal(harness_run(&h), MST_INVALID_ARGUMENT);
    assert_string_equal(h.st.msg,
                        "Cannot update variable with shape [2] using a Tensor "
                        "with shape [1], shapes must be equal.");
    harness_done(&h);
    variable_unref(v);
}

static void test_count_up_to_stops_at_its_limit(void **state)
{
    struct variable *v =
        variable_of(harness_int32s(0, NULL, (int32_t[]){ 1 }), true);
    struct harness h;

    (void)state;
    harness_init(&h, "CountUpTo");
    harness_type(&h, "T", DT_INT32);
    harness_int(&h, "limit", 2);
    harness_in_ref(&h, v);
    assert_int_equal(harness_run(&h), MST_OK);
    assert_int_equal(tensor_int(&h.out[0].t, 0), 1);
    harness_in_ref(&h, v);
    assert_int_equal(harness_run(&h), MST_OUT_OF_RANGE);
    assert_string_equal(h.st.msg, "Reached limit of 2");
    assert_int_equal(tensor_int(&v->t, 0), 2);
    harness_done(&h);
    variable_unref(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_add_counts_a_row_as_often_as_it_is_named),
        cmocka_unit_test(test_whole_numbers_wrap_and_divide_safely),
        cmocka_unit_test(test_strings_do_not_change_under_a_reader),
        cmocka_unit_test(test_updates_of_the_wrong_width_are_refused),
        cmocka_unit_test(test_nd_names_single_elements),
        cmocka_unit_test(test_tensor_scatter_keeps_a_shared_input),
        cmocka_unit_test(test_empty_target_with_huge_dimensions_is_harmless),
        cmocka_unit_test(test_scatter_nd_refuses_what_no_memory_holds),
        cmocka_unit_test(test_assign_add_adds_and_checks),
        cmocka_unit_test(test_count_up_to_stops_at_its_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
