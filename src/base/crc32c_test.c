#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/crc32c.h"
#include "base/rng.h"

static void test_crc_matches_known_values(void **state)
{
    uint8_t zeros[32] = { 0 };

    (void)state;
    assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283u);
    assert_int_equal(crc32c(0, zeros, 32), 0x8a9136aau);
    assert_int_equal(crc32c(crc32c(0, "1234", 4), "56789", 5), 0xe3069283u);
    assert_int_equal(crc32c(0, NULL, 0), 0);
    assert_int_equal(crc32c_unmask(crc32c_mask(0xe3069283u)), 0xe3069283u);
}

static void test_joined_crc_is_that_of_the_whole(void **state)
{
    static uint8_t bytes[5000];
    uint64_t seed = 3;

    (void)state;
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)rng_next(&seed);
    for (size_t cut = 0; cut <= sizeof(bytes); cut += 119) {
        uint32_t a = crc32c(0, bytes, cut);
        uint32_t b = crc32c(0, bytes + cut, sizeof(bytes) - cut);

        assert_int_equal(crc32c_join(a, b, sizeof(bytes) - cut),
                         crc32c(0, bytes, sizeof(bytes)));
    }
}

static void test_crc_does_not_depend_on_alignment(void **state)
{
    static uint8_t bytes[40000], moved[40000 + 8];
    uint64_t seed = 4;

    (void)state;
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)rng_next(&seed);
    for (size_t shift = 0; shift < 8; shift++)
        for (size_t len = 0; len <= sizeof(bytes); len += 1273) {
            uint32_t by_one = 0;

            for (size_t i = 0; i < len; i++) {
                moved[shift + i] = bytes[i];
                by_one = crc32c(by_one, &bytes[i], 1);
            }
            assert_int_equal(crc32c(0, moved + shift, len), by_one);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crc_matches_known_values),
        cmocka_unit_test(test_joined_crc_is_that_of_the_whole),
        cmocka_unit_test(test_crc_does_not_depend_on_alignment),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
