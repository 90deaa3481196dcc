#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "op/harness.h"

#define VECTOR(n, ...)                                                         \
    harness_floats(1, (int64_t[]){ n }, (float[]){ __VA_ARGS__ })

static struct tensor scalar(float f)
{
    return harness_floats(0, NULL, &f);
}

static struct variable *variable_of(struct tensor t, bool by_ref)
{
    struct variable *v = variable_new("v", t.dtype, by_ref);

    variable_assign(v, &t);
    return v;
}

/* The variable by its handle, as resource ops get it; a reference is kept. */
static void in_handle(struct harness *h, struct variable *v)
{
    struct handle *handle =
        handle_anonymous(&variable_kind, &variable_ref(v)->o, "");
    struct tensor t;

    assert_int_equal(tensor_new_scalar(&t, DT_RESOURCE, &h->st), MST_OK);
    *tensor_object(&t, 0) = &handle->o;
    harness_in(h, t);
}

static void assert_values(const struct tensor *t, int64_t n,
                          const float *values)
{
    assert_int_equal(t->count, n);
    for (int64_t i = 0; i < n; i++)
        assert_float_equal(TENSOR_DATA(t, float)[i], values[i], 1e-6);
}

#define ASSERT_VALUES(t, n, ...)                                               \
    assert_values(t, n, (const float[]){ __VA_ARGS__ })

/* beta1_power … epsilon, then the gradient; expected values are those of
 * TensorFlow. */
static void adam_inputs(struct harness *h)
{
    harness_in(h, scalar(0.81f));
    harness_in(h, scalar(0.98f));
    harness_in(h, scalar(0.1f));
    harness_in(h, scalar(0.9f));
    harness_in(h, scalar(0.99f));
    harness_in(h, scalar(1e-3f));
    harness_in(h, VECTOR(2, 0.5f, -2.0f));
}

static void test_adam_agrees_with_tensorflow(void **state)
{
    struct variable *var = variable_of(VECTOR(2, 1, 2), false);
    struct variable *m = variable_of(VECTOR(2, 0.1f, -0.1f), false);
    struct variable *v = variable_of(VECTOR(2, 0.2f, 0.3f), false);
    struct harness h;

    (void)state;
    harness_init(&h, "ResourceApplyAdam");
    harness_type(&h, "T", DT_FLOAT);
    in_handle(&h, var);
    in_handle(&h, m);
    in_handle(&h, v);
    adam_inputs(&h);
    assert_int_equal(harness_run(&h), MST_OK);
    ASSERT_VALUES(&var->t, 2, 0.97677994f, 2.0371192f);
    ASSERT_VALUES(&m->t, 2, 0.14f, -0.29f);
    ASSERT_VALUES(&v->t, 2, 0.2005f, 0.337f);
    harness_done(&h);
    variable_unref(var);
    variable_unref(m);
    variable_unref(v);
}

static void test_dense_update_works_in_place_unless_someone_reads(void **state)
{
    struct variable *var = variable_of(VECTOR(2, 1, 2), false);
    const void *bytes = var->t.data;
    struct tensor seen;
    struct harness h;

    (void)state;
    harness_init(&h, "ResourceApplyGradientDescent");
    harness_type(&h, "T", DT_FLOAT);
    for (int reader = 0; reader < 2; reader++) {
        if (reader)
            assert_int_equal(variable_read(var, &seen, &h.st), MST_OK);
        in_handle(&h, var);
        harness_in(&h, scalar(0.5f));
        harness_in(&h, VECTOR(2, 1, 1));
        assert_int_equal(harness_run(&h), MST_OK);
        assert_int_equal(var->t.data != bytes, reader);
    }
    ASSERT_VALUES(&seen, 2, 0.5f, 1.5f);
    ASSERT_VALUES(&var->t, 2, 0, 1);
    tensor_unref(&seen);
    harness_done(&h);
    variable_unref(var);
}

static void test_reference_form_hands_the_reference_on(void **state)
{
    struct variable *var = variable_of(VECTOR(2, 1, 2), true);
    struct harness h;

    (void)state;
    harness_init(&h, "ApplyGradientDescent");
    harness_type(&h, "T", DT_FLOAT);
    harness_in_ref(&h, var);
    harness_in(&h, scalar(1));
    harness_in(&h, VECTOR(2, 1, 1));
    assert_int_equal(harness_run(&h), MST_OK);
    assert_ptr_equal(h.out[0].ref, var);
    ASSERT_VALUES(&var->t, 2, 0, 1);
    harness_done(&h);
    variable_unref(var);
}

static void momentum_rows(struct harness *h, struct variable *var,
                          struct variable *accum, int32_t last)
{
    harness_init(h, "ResourceSparseApplyMomentum");
    harness_type(h, "T", DT_FLOAT);
    harness_type(h, "Tindices", DT_INT32);
    in_handle(h, var);
    in_handle(h, accum);
    harness_in(h, scalar(1));
    harness_in(h,
               harness_floats(2, (int64_t[]){ 3, 1 }, (float[]){ 1, 10, 100 }));
    harness_in(h,
               harness_int32s(1, (int64_t[]){ 3 }, (int32_t[]){ 1, 0, last }));
    harness_in(h, scalar(0.5f));
}

static void test_row_named_twice_is_updated_twice_in_order(void **state)
{
    int64_t dims[] = { 3, 1 };
    float zero[] = { 0, 0, 0 };
    struct variable *var = variable_of(harness_floats(2, dims, zero), false);
    struct variable *accum = variable_of(harness_floats(2, dims, zero), false);
    struct tensor seen;
    struct harness h;

    (void)state;
    momentum_rows(&h, var, accum, 1);
    assert_int_equal(variable_read(var, &seen, &h.st), MST_OK);
    assert_int_equal(harness_run(&h), MST_OK);
    /* Row 1: 1, then 0.5 * 1 + 100. */
    ASSERT_VALUES(&accum->t, 3, 10, 100.5f, 0);
    ASSERT_VALUES(&var->t, 3, -10, -101.5f, 0);
    ASSERT_VALUES(&seen, 3, 0, 0, 0);
    tensor_unref(&seen);
    harness_done(&h);
    variable_unref(var);
    variable_unref(accum);
}

static void test_bad_index_is_refused_before_anything_changes(void **state)
{
    int64_t dims[] = { 3, 1 };
    float zero[] = { 0, 0, 0 };
    struct variable *var = variable_of(harness_floats(2, dims, zero), false);
    struct variable *accum = variable_of(harness_floats(2, dims, zero), false);
    struct harness h;

    (void)state;
    momentum_rows(&h, var, accum, -1);
    assert_int_equal(harness_run(&h), MST_INVALID_ARGUMENT);
    assert_string_equal(h.st.msg,
                        "Index -1 at offset 2 in indices is out of range");
    ASSERT_VALUES(&var->t, 3, 0, 0, 0);
    harness_done(&h);
    variable_unref(var);
    variable_unref(accum);
}

static void test_shapes_and_types_are_checked(void **state)
{
    struct variable *var = variable_of(VECTOR(2, 1, 2), false);
    struct harness h;

    (void)state;
    harness_init(&h, "ResourceApplyGradientDescent");
    harness_type(&h, "T", DT_FLOAT);
    in_handle(&h, var);
    harness_in(&h, scalar(1));
    harness_in(&h, VECTOR(3, 1, 1, 1));
    assert_int_equal(harness_run(&h), MST_INVALID_ARGUMENT);
    assert_string_equal(h.st.msg,
                        "var and delta do not have the same shape[2] [3]");
    in_handle(&h, var);
    harness_in(&h, VECTOR(1, 1));
    harness_in(&h, VECTOR(2, 1, 1));
    assert_int_equal(harness_run(&h), MST_INVALID_ARGUMENT);
    assert_string_equal(h.st.msg, "alpha is not a scalar: [1]");
    /* The variable is of another type than the op. */
    tensor_unref(&var->t);
    assert_int_equal(tensor_new(&var->t, DT_DOUBLE, 1, (int64_t[]){ 2 }, &h.st),
                     MST_OK);
    in_handle(&h, var);
    harness_in(&h, scalar(1));
    harness_in(&h, VECTOR(2, 1, 1));
    assert_int_equal(harness_run(&h), MST_INVALID_ARGUMENT);
    harness_done(&h);
    variable_unref(var);
}

/* Nonsense, but it must end well: slot and variable are the same. */
static void test_variable_may_be_its_own_slot(void **state)
{
    struct variable *var = variable_of(VECTOR(2, 4, 4), false);
    struct harness h;

    (void)state;
    harness_init(&h, "ResourceApplyAdagrad");
    harness_type(&h, "T", DT_FLOAT);
    in_handle(&h, var);
    in_handle(&h, var);
    harness_in(&h, scalar(1));
    harness_in(&h, VECTOR(2, 0, 0));
    assert_int_equal(harness_run(&h), MST_OK);
    ASSERT_VALUES(&var->t, 2, 4, 4);
    harness_done(&h);
    variable_unref(var);
}

static struct tensor halves(int64_t n, const float *values)
{
    struct status st = STATUS_INIT;
    struct tensor t;

    assert_int_equal(tensor_new(&t, DT_HALF, n ? 1 : 0, &n, &st), MST_OK);
    for (int64_t i = 0; i < t.count; i++)
        TENSOR_DATA(&t, half_bits)[i] = half_store(values[n ? i % 3 : 0]);
    return t;
}

/* Longer than one piece of the conversion. */
static void test_half_goes_through_float(void **state)
{
    enum { N = 1301 };
    struct variable *var = variable_of(halves(N, (float[]){ 1, 2, 3 }), false);
    struct harness h;

    (void)state;
    harness_init(&h, "ResourceApplyGradientDescent");
    harness_type(&h, "T", DT_HALF);
    in_handle(&h, var);
    harness_in(&h, halves(0, (float[]){ 0.5f }));
    harness_in(&h, halves(N, (float[]){ 2, 4, 8 }));
    assert_int_equal(harness_run(&h), MST_OK);
    for (int i = 0; i < N; i++)
        assert_float_equal(half_load(TENSOR_DATA(&var->t, half_bits)[i]),
                           -(float)(i % 3 == 2), 0);
    harness_done(&h);
    variable_unref(var);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_adam_agrees_with_tensorflow),
        cmocka_unit_test(test_dense_update_works_in_place_unless_someone_reads),
        cmocka_unit_test(test_reference_form_hands_the_reference_on),
        cmocka_unit_test(test_row_named_twice_is_updated_twice_in_order),
        cmocka_unit_test(test_bad_index_is_refused_before_anything_changes),
        cmocka_unit_test(test_shapes_and_types_are_checked),
        cmocka_unit_test(test_variable_may_be_its_own_slot),
        cmocka_unit_test(test_half_goes_through_float),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
