#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "op/harness.h"

static struct tensor make(int32_t size_max)
{
    struct tensor handle;
    struct harness h;

    harness_init(&h, "StackV2");
    harness_type(&h, "elem_type", DT_FLOAT);
    harness_str(&h, "stack_name", "s");
    harness_in(&h, harness_int32s(0, NULL, &size_max));
    assert_int_equal(harness_run(&h), MST_OK);
    handle = tensor_ref(&h.out[0].t);
    harness_done(&h);
    return handle;
}

static enum mst_code push(const struct tensor *s, float x)
{
    struct harness h;
    enum mst_code rc;

    harness_init(&h, "StackPushV2");
    harness_type(&h, "T", DT_FLOAT);
    harness_in(&h, tensor_ref(s));
    harness_in(&h, harness_floats(0, NULL, &x));
    rc = harness_run(&h);
    if (!rc)
        assert_float_equal(*TENSOR_DATA(&h.out[0].t, float), x, 0);
    else
        assert_non_null(strstr(h.st.msg, "overflowed its max_size (2)"));
    harness_done(&h);
    return rc;
}

static void pop(const struct tensor *s, float x)
{
    struct harness h;

    harness_init(&h, "StackPopV2");
    harness_type(&h, "elem_type", DT_FLOAT);
    harness_in(&h, tensor_ref(s));
    assert_int_equal(harness_run(&h), MST_OK);
    assert_float_equal(*TENSOR_DATA(&h.out[0].t, float), x, 0);
    harness_done(&h);
}

static void refuse_pop(const struct tensor *s, const char *text)
{
    struct harness h;

    harness_init(&h, "StackPopV2");
    harness_type(&h, "elem_type", DT_FLOAT);
    harness_in(&h, tensor_ref(s));
    assert_int_equal(harness_run(&h), MST_INVALID_ARGUMENT);
    assert_non_null(strstr(h.st.msg, text));
    harness_done(&h);
}

static void test_last_in_is_first_out(void **state)
{
    struct tensor s = make(-1);

    (void)state;
    push(&s, 1);
    push(&s, 2);
    pop(&s, 2);
    push(&s, 3);
    pop(&s, 3);
    pop(&s, 1);
    refuse_pop(&s, "] is empty when calling Pop().");
    tensor_unref(&s);
}

static void test_stack_ends_with_its_handle(void **state)
{
    struct tensor s = make(-1);

    (void)state;
    push(&s, 1); /* a leak if it stayed: the sanitizer would say so */
    tensor_unref(&s);
}

static void test_full_and_closed_stacks_refuse(void **state)
{
    struct tensor s = make(2);
    struct harness h;

    (void)state;
    assert_int_equal(push(&s, 1), MST_OK);
    assert_int_equal(push(&s, 1), MST_OK);
    assert_int_equal(push(&s, 1), MST_INVALID_ARGUMENT);
    harness_init(&h, "StackCloseV2");
    harness_in(&h, tensor_ref(&s));
    assert_int_equal(harness_run(&h), MST_OK);
    harness_done(&h);
    refuse_pop(&s, "] has already been closed.");
    tensor_unref(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_last_in_is_first_out),
        cmocka_unit_test(test_stack_ends_with_its_handle),
        cmocka_unit_test(test_full_and_closed_stacks_refuse),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
