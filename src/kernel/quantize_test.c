#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "op/harness.h"

static void give_ranges(struct harness *h, const char *op)
{
    harness_init(h, op);
    harness_type(h, "T", DT_FLOAT);
    harness_bool(h, "range_given", true);
    harness_int(h, "axis", 0);
    harness_in(h, harness_floats(2, (int64_t[]){ 2, 3 },
                                 (float[]){ -9, 0.3f, 1, 0.7f, 5, 11 }));
    harness_in(h, harness_floats(1, (int64_t[]){ 2 }, (float[]){ -1, 0 }));
    harness_in(h, harness_floats(1, (int64_t[]){ 2 }, (float[]){ 1, 10 }));
}

/* TensorFlow 2.21 refuses it, 2.12 did not; V3 has always had it. */
static void test_ranges_along_an_axis_are_alike_in_all_versions(void **state)
{
    static const char *const names[] = { "QuantizeAndDequantizeV2",
                                         "QuantizeAndDequantizeV4" };
    struct harness third;

    give_ranges(&third, "QuantizeAndDequantizeV3");
    harness_in(&third, harness_int32s(0, NULL, (int32_t[]){ 8 }));
    assert_int_equal(harness_run(&third), MST_OK);
    for (size_t i = 0; i < COUNT(names); i++) {
        struct harness h;

        give_ranges(&h, names[i]);
        assert_int_equal(harness_run(&h), MST_OK);
        assert_memory_equal(h.out[0].t.data, third.out[0].t.data,
                            6 * sizeof(float));
        harness_done(&h);
    }
    harness_done(&third);
}

/* Bits come from a tensor of V3: a shift by them must be defined. */
static void test_bits_out_of_range_are_refused(void **state)
{
    static const int32_t bits[] = { INT32_MIN, -1, 0, 62, 63, 64, INT32_MAX };

    for (size_t i = 0; i < COUNT(bits); i++) {
        struct harness h;

        give_ranges(&h, "QuantizeAndDequantizeV3");
        harness_in(&h, harness_int32s(0, NULL, &bits[i]));
        assert_int_equal(harness_run(&h), MST_INVALID_ARGUMENT);
        harness_done(&h);
    }
}

/* No int32 holds the upper end as a float: it must not be cast. */
static void test_the_ends_of_qint32_are_defined(void **state)
{
    static const float ends[] = { -INFINITY, -1, 1, INFINITY, NAN };
    static const char *const modes[] = { "MIN_COMBINED", "MIN_FIRST",
                                         "SCALED" };

    for (size_t i = 0; i < COUNT(modes); i++) {
        struct harness h;

        harness_init(&h, "QuantizeV2");
        harness_type(&h, "T", DT_QINT32);
        harness_str(&h, "mode", modes[i]);
        harness_in(&h, harness_floats(1, (int64_t[]){ 5 }, ends));
        harness_in(&h, harness_floats(0, NULL, (float[]){ -1 }));
        harness_in(&h, harness_floats(0, NULL, (float[]){ 1 }));
        assert_int_equal(harness_run(&h), MST_OK);
        assert_int_equal(h.out[0].t.count, 5);
        harness_done(&h);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranges_along_an_axis_are_alike_in_all_versions),
        cmocka_unit_test(test_bits_out_of_range_are_refused),
        cmocka_unit_test(test_the_ends_of_qint32_are_defined),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
