/*
 * Tensor arrays through their ops. All texts, and more cases than these, have
 * been compared with TensorFlow's; here is what is not obvious.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "op/harness.h"

static struct tensor number(int32_t x)
{
    return harness_int32s(0, NULL, &x);
}

static struct tensor flow(void)
{
    return harness_floats(0, NULL, (float[]){ 0 });
}

static struct tensor floats(int n, const float *v)
{
    return harness_floats(1, (int64_t[]){ n }, v);
}

static struct tensor make(int32_t size, bool dynamic, bool clear)
{
    struct tensor handle;
    struct harness h;

    harness_init(&h, "TensorArrayV3");
    harness_type(&h, "dtype", DT_FLOAT);
    harness_bool(&h, "dynamic_size", dynamic);
    harness_bool(&h, "clear_after_read", clear);
    harness_in(&h, number(size));
    assert_int_equal(harness_run(&h), MST_OK);
    handle = tensor_ref(&h.out[0].t);
    harness_done(&h);
    return handle;
}

static struct tensor grad(const struct tensor *a, const char *source)
{
    struct tensor handle;
    struct harness h;

    harness_init(&h, "TensorArrayGradV3");
    harness_str(&h, "source", source);
    harness_in(&h, tensor_ref(a));
    harness_in(&h, flow());
    assert_int_equal(harness_run(&h), MST_OK);
    handle = tensor_ref(&h.out[0].t);
    harness_done(&h);
    return handle;
}

static enum mst_code write(const struct tensor *a, int32_t at,
                           struct tensor value)
{
    struct harness h;
    enum mst_code rc;

    harness_init(&h, "TensorArrayWriteV3");
    harness_type(&h, "T", value.dtype);
    harness_in(&h, tensor_ref(a));
    harness_in(&h, number(at));
    harness_in(&h, value);
    harness_in(&h, flow());
    rc = harness_run(&h);
    harness_done(&h);
    return rc;
}

static enum mst_code read(const struct tensor *a, int32_t at, int n,
                          const float *values)
{
    struct harness h;
    enum mst_code rc;

    harness_init(&h, "TensorArrayReadV3");
    harness_type(&h, "dtype", DT_FLOAT);
    harness_in(&h, tensor_ref(a));
    harness_in(&h, number(at));
    harness_in(&h, flow());
    rc = harness_run(&h);
    if (!rc) {
        assert_int_equal(h.out[0].t.count, n);
        assert_memory_equal(h.out[0].t.data, values,
                            (size_t)n * sizeof(*values));
    }
    harness_done(&h);
    return rc;
}

static void test_write_once_read_once(void **state)
{
    struct tensor a = make(2, false, true);

    (void)state;
    assert_int_equal(write(&a, 0, floats(2, (float[]){ 1, 2 })), MST_OK);
    assert_int_equal(write(&a, 0, floats(2, (float[]){ 1, 2 })),
                     MST_INVALID_ARGUMENT);
    assert_int_equal(write(&a, 2, floats(1, (float[]){ 1 })),
                     MST_INVALID_ARGUMENT);
    assert_int_equal(write(&a, 1, number(3)), MST_INVALID_ARGUMENT);
    assert_int_equal(read(&a, 0, 2, (float[]){ 1, 2 }), MST_OK);
    assert_int_equal(read(&a, 0, 0, NULL), MST_INVALID_ARGUMENT);
    assert_int_equal(read(&a, 1, 0, NULL), MST_INVALID_ARGUMENT);
    tensor_unref(&a);
}

static void test_dynamic_array_grows_within_reason(void **state)
{
    struct tensor a = make(0, true, false);

    (void)state;
    assert_int_equal(write(&a, 5, floats(1, (float[]){ 1 })), MST_OK);
    assert_int_equal(write(&a, INT32_MAX, floats(1, (float[]){ 1 })),
                     MST_RESOURCE_EXHAUSTED);
    assert_int_equal(read(&a, 5, 1, (float[]){ 1 }), MST_OK);
    assert_int_equal(read(&a, 5, 1, (float[]){ 1 }), MST_OK);
    tensor_unref(&a);
}

static void test_gradients_add_up_and_default_to_zeros(void **state)
{
    struct tensor a = make(2, false, true), g, same, other;

    (void)state;
    write(&a, 0, floats(2, (float[]){ 1, 2 }));
    write(&a, 1, floats(3, (float[]){ 1, 2, 3 }));
    read(&a, 0, 2, (float[]){ 1, 2 }); /* its shape is remembered */
    g = grad(&a, "gradients");
    same = grad(&a, "gradients");
    other = grad(&a, "gradients_1");
    assert_int_equal(write(&g, 0, floats(2, (float[]){ 10, 20 })), MST_OK);
    assert_int_equal(write(&same, 0, floats(2, (float[]){ 1, 2 })), MST_OK);
    assert_int_equal(write(&g, 0, floats(3, (float[]){ 1, 2, 3 })),
                     MST_INVALID_ARGUMENT);
    assert_int_equal(read(&g, 0, 2, (float[]){ 11, 22 }), MST_OK);
    assert_int_equal(read(&g, 1, 3, (float[]){ 0, 0, 0 }), MST_OK);
    assert_int_equal(read(&other, 0, 2, (float[]){ 0, 0 }), MST_OK);
    tensor_unref(&a);
    tensor_unref(&g);
    tensor_unref(&same);
    tensor_unref(&other);
}

static void test_gradient_does_not_change_what_was_written(void **state)
{
    struct tensor a = make(1, false, true), g;
    struct tensor value = floats(1, (float[]){ 1 });

    (void)state;
    write(&a, 0, floats(1, (float[]){ 5 }));
    g = grad(&a, "g");
    write(&g, 0, tensor_ref(&value));
    write(&g, 0, tensor_ref(&value));
    assert_int_equal(read(&g, 0, 1, (float[]){ 2 }), MST_OK);
    assert_float_equal(*TENSOR_DATA(&value, float), 1, 0);
    tensor_unref(&value);
    tensor_unref(&a);
    tensor_unref(&g);
}

static void test_scatter_then_concat(void **state)
{
    struct tensor a = make(2, false, true);
    struct harness h;

    (void)state;
    harness_init(&h, "TensorArrayScatterV3");
    harness_type(&h, "T", DT_FLOAT);
    harness_in(&h, tensor_ref(&a));
    harness_in(&h, harness_int32s(1, (int64_t[]){ 2 }, (int32_t[]){ 1, 0 }));
    harness_in(&h,
               harness_floats(2, (int64_t[]){ 2, 2 }, (float[]){ 1, 2, 3, 4 }));
    harness_in(&h, flow());
    assert_int_equal(harness_run(&h), MST_OK);
    harness_done(&h);
    harness_init(&h, "TensorArrayConcatV3");
    harness_type(&h, "dtype", DT_FLOAT);
    harness_in(&h, tensor_ref(&a));
    harness_in(&h, flow());
    assert_int_equal(harness_run(&h), MST_OK);
    assert_memory_equal(h.out[0].t.data, ((float[]){ 3, 4, 1, 2 }), 16);
    assert_int_equal(TENSOR_DATA(&h.out[1].t, int64_t)[0], 2);
    harness_done(&h);
    tensor_unref(&a);
}

static void test_split_of_bad_lengths_is_refused(void **state)
{
    struct tensor a = make(2, false, true);
    struct harness h;

    (void)state;
    harness_init(&h, "TensorArraySplitV3");
    harness_type(&h, "T", DT_FLOAT);
    harness_in(&h, tensor_ref(&a));
    harness_in(&h, floats(3, (float[]){ 1, 2, 3 }));
    harness_in(&h, harness_int64s(1, (int64_t[]){ 2 }, (int64_t[]){ -1, 4 }));
    harness_in(&h, flow());
    assert_int_equal(harness_run(&h), MST_INVALID_ARGUMENT);
    harness_done(&h);
    tensor_unref(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_write_once_read_once),
        cmocka_unit_test(test_dynamic_array_grows_within_reason),
        cmocka_unit_test(test_gradients_add_up_and_default_to_zeros),
        cmocka_unit_test(test_gradient_does_not_change_what_was_written),
        cmocka_unit_test(test_scatter_then_concat),
        cmocka_unit_test(test_split_of_bad_lengths_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
