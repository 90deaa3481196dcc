/* Where one unit ends and the next begins. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/humane.h"

#define S (uint64_t)1000
#define M (60 * S)
#define H (60 * M)

static void test_durations_have_the_largest_unit_that_fits(void **state)
{
    static const struct {
        uint64_t ms;
        const char *text;
    } cases[] = {
        { 0, "0 s" },
        { 999, "0 s" },
        { 59 * S, "59 s" },
        { M, "1 min" },
        { 59 * M + 59 * S, "59 min" },
        { H, "1 h" },
        { 2 * H + 5 * M, "2 h 5 min" },
        { 12 * H + 5 * M, "12 h" },
        { 48 * H, "2 d" },
        { 51 * H, "2 d 3 h" },
        { 1000 * H, "41 d" },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[HUMANE_MAX];

        humane_duration(cases[i].ms, text);
        assert_string_equal(text, cases[i].text);
    }
}

static void test_bytes_have_two_or_three_digits(void **state)
{
    static const struct {
        double bytes;
        const char *text;
    } cases[] = {
        { 0, "0 B" },         { 999, "999 B" },    { 1000, "1.0 kB" },
        { 9949, "9.9 kB" },   { 9950, "10 kB" },   { 999499, "999 kB" },
        { 999500, "1.0 MB" }, { 1.5e9, "1.5 GB" }, { 3e12, "3.0 TB" },
        { 2e18, "2000 PB" },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[HUMANE_MAX];

        humane_bytes(cases[i].bytes, text);
        assert_string_equal(text, cases[i].text);
    }
}

static void test_rates_are_exact_while_small(void **state)
{
    static const struct {
        double rate;
        const char *text;
    } cases[] = {
        { 0, "0" },       { 0.04, "0" },     { 0.4, "0.4" },
        { 12.5, "12.5" }, { 99.94, "99.9" }, { 1849.6, "1850" },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[HUMANE_MAX];

        humane_rate(cases[i].rate, text);
        assert_string_equal(text, cases[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_durations_have_the_largest_unit_that_fits),
        cmocka_unit_test(test_bytes_have_two_or_three_digits),
        cmocka_unit_test(test_rates_are_exact_while_small),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
