#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "op/harness.h"

static void test_neg_negates(void **state)
{
    struct harness h;

    (void)state;
    harness_init(&h, "Neg");
    harness_type(&h, "T", DT_FLOAT);
    harness_in(&h, harness_floats(1, (int64_t[]){ 2 }, (float[]){ 1, -2 }));
    assert_int_equal(harness_run(&h), MST_OK);
    assert_float_equal(TENSOR_DATA(&h.out[0].t, float)[0], -1, 0);
    assert_float_equal(TENSOR_DATA(&h.out[0].t, float)[1], 2, 0);
    harness_done(&h);
}

static void test_neg_refuses_strings(void **state)
{
    struct harness h;

    (void)state;
    harness_init(&h, "Neg");
    harness_type(&h, "T", DT_STRING);
    assert_int_equal(harness_run(&h), MST_INVALID_ARGUMENT);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_neg_negates),
        cmocka_unit_test(test_neg_refuses_strings),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
