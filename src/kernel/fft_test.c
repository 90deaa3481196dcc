#include "kernel/fft.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "base/rng.h"
#include "op/harness.h"

typedef double complex number;

/* The definition, with angles that stay small. */
static number slow(const number *in, int64_t n, int64_t k)
{
    number sum = 0;

    for (int64_t j = 0; j < n; j++) {
        double angle = -2 * M_PI * (double)(j * k % n) / (double)n;

        sum += in[j] * __builtin_complex(cos(angle), sin(angle));
    }
    return sum;
}

static void check_length(int64_t n)
{
    struct fft_plan *p = fft_plan_new(n);
    number *in = test_calloc((size_t)n, sizeof(number));
    number *out = test_calloc((size_t)n, sizeof(number));
    number *room = test_calloc((size_t)fft_plan_room(p) + 1, sizeof(number));
    uint64_t seed = (uint64_t)n;

    for (int64_t i = 0; i < n; i++)
        in[i] = __builtin_complex((double)(rng_next(&seed) % 200) / 100 - 1,
                                  (double)(rng_next(&seed) % 200) / 100 - 1);
    fft_run(p, in, out, room);
    for (int64_t k = 0; k < n; k += 1 + n / 50)
        assert_true(cabs(out[k] - slow(in, n, k)) < 1e-12 * (double)(n + 10));
    fft_plan_free(p);
    test_free(in);
    test_free(out);
    test_free(room);
}

/* All small lengths, powers, large primes, products of two of them. */
static void test_every_length_gives_the_sum(void **state)
{
    static const int64_t lengths[] = { 97,   128,  243,  360,     1024,
                                       1369, 1763, 2003, 2 * 1009 };

    for (int64_t n = 1; n < 90; n++)
        check_length(n);
    for (size_t i = 0; i < COUNT(lengths); i++)
        check_length(lengths[i]);
}

/* TensorFlow's process ends here. */
static void test_a_real_transform_of_nothing_is_zero(void **state)
{
    struct harness h;

    harness_init(&h, "RFFT");
    harness_in(&h, harness_floats(2, (int64_t[]){ 2, 0 }, (float[]){ 0 }));
    harness_in(&h, harness_int32s(1, (int64_t[]){ 1 }, (int32_t[]){ 4 }));
    assert_int_equal(harness_run(&h), MST_OK);
    assert_int_equal(h.out[0].t.count, 6);
    for (int i = 0; i < 12; i++)
        assert_true(TENSOR_DATA(&h.out[0].t, float)[i] == 0);
    harness_done(&h);
}

static void test_a_length_of_zero_gives_nothing(void **state)
{
    struct harness h;

    harness_init(&h, "RFFT");
    harness_in(&h, harness_floats(1, (int64_t[]){ 3 }, (float[]){ 1, 2, 3 }));
    harness_in(&h, harness_int32s(1, (int64_t[]){ 1 }, (int32_t[]){ 0 }));
    assert_int_equal(harness_run(&h), MST_OK);
    assert_int_equal(h.out[0].t.count, 0);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_length_gives_the_sum),
        cmocka_unit_test(test_a_real_transform_of_nothing_is_zero),
        cmocka_unit_test(test_a_length_of_zero_gives_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
