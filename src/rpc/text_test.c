#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/text.h"

static uint64_t parsed(const char *text)
{
    uint64_t ns = 0;

    assert_true(text_timeout_parse(text, strlen(text), &ns));
    return ns;
}

static void test_timeout_parse_knows_all_units(void **state)
{
    assert_int_equal(parsed("1H"), 3600000000000);
    assert_int_equal(parsed("2M"), 120000000000);
    assert_int_equal(parsed("3S"), 3000000000);
    assert_int_equal(parsed("10100m"), 10100000000);
    assert_int_equal(parsed("7u"), 7000);
    assert_int_equal(parsed("8n"), 8);
    assert_int_equal(parsed("99999999H"), 99999999ull * 3600000000000ull);
}

static void test_timeout_parse_refuses_the_rest(void **state)
{
    static const char *const bad[] = { "",    "5",   "S",          "5x",
                                       "-1S", "1 S", "123456789S", "1.5S" };
    uint64_t ns;

    for (size_t i = 0; i < COUNT(bad); i++)
        assert_false(text_timeout_parse(bad[i], strlen(bad[i]), &ns));
}

static void check_format(uint64_t ns, const char *expect)
{
    char text[TEXT_TIMEOUT_MAX];

    assert_int_equal(text_timeout_format(ns, text), strlen(expect));
    assert_memory_equal(text, expect, strlen(expect));
}

static void test_timeout_format_rounds_up_and_fits(void **state)
{
    check_format(1, "1u");
    check_format(999999999, "1000000u");
    check_format(10100000000, "10100m");
    check_format(10100000001, "10101m");
    check_format(99999999000000ull, "99999999m");
    check_format(99999999000001ull, "100000S");
    check_format(UINT64_MAX / 2, "2562048H");
}

static void check_encode(const char *msg, const char *expect)
{
    char text[TEXT_MESSAGE_ENCODED_MAX];
    size_t n = text_message_encode(msg, strlen(msg), text);

    assert_int_equal(n, strlen(expect));
    assert_memory_equal(text, expect, n);
    n = text_message_decode(text, n);
    assert_int_equal(n, strlen(msg));
    assert_memory_equal(text, msg, n);
}

static void test_message_goes_both_ways(void **state)
{
    check_encode("", "");
    check_encode("plain ~text", "plain ~text");
    check_encode("100%\n\xc3\xa9\x7f", "100%25%0A%C3%A9%7F");
}

static void test_message_decode_leaves_bad_escapes(void **state)
{
    char text[] = "%4 %zz%41%c3%A9%";
    size_t n = text_message_decode(text, strlen(text));

    assert_int_equal(n, 10);
    assert_memory_equal(text, "%4 %zzA\xc3\xa9%", 10);
}

static void test_message_encode_cuts_long_ones(void **state)
{
    static char msg[5000], text[TEXT_MESSAGE_ENCODED_MAX];
    size_t n;

    memset(msg, 'x', sizeof(msg));
    n = text_message_encode(msg, TEXT_MESSAGE_MAX, text);
    assert_int_equal(n, TEXT_MESSAGE_MAX);
    n = text_message_encode(msg, sizeof(msg), text);
    assert_int_equal(n, TEXT_MESSAGE_MAX + 15);
    assert_memory_equal(text + TEXT_MESSAGE_MAX, "... [truncated]", 15);
    /* A character of two bytes lies across the cut: it goes. */
    memcpy(msg + TEXT_MESSAGE_MAX - 1, "\xc3\xa9", 2);
    n = text_message_encode(msg, sizeof(msg), text);
    assert_int_equal(n, TEXT_MESSAGE_MAX - 1 + 15);
    /* The worst case fits. */
    memset(msg, '%', sizeof(msg));
    n = text_message_encode(msg, sizeof(msg), text);
    assert_true(n <= TEXT_MESSAGE_ENCODED_MAX);
}

static void test_base64_goes_both_ways(void **state)
{
    static const char *const encoded[] = { "",        "Zg",     "Zm8",
                                           "Zm9v",    "Zm9vYg", "Zm9vYmE",
                                           "Zm9vYmFy" };
    uint8_t back[16];
    char text[16];

    for (size_t n = 0; n <= 6; n++) {
        size_t len = text_base64_encode((const uint8_t *)"foobar", n, text);
        size_t got = 99;

        assert_int_equal(len, strlen(encoded[n]));
        assert_memory_equal(text, encoded[n], len);
        assert_true(text_base64_decode(text, len, back, &got));
        assert_int_equal(got, n);
        assert_memory_equal(back, "foobar", n);
        while (len % 4)
            text[len++] = '=';
        assert_true(text_base64_decode(text, len, back, &got));
        assert_int_equal(got, n);
    }
}

static void test_base64_decode_refuses_the_rest(void **state)
{
    uint8_t out[16];
    size_t n;

    assert_false(text_base64_decode("Z", 1, out, &n));
    assert_false(text_base64_decode("Zg!", 3, out, &n));
    assert_false(text_base64_decode("Z=g=", 4, out, &n));
    assert_false(text_base64_decode("Zg\0", 3, out, &n));
    assert_false(text_base64_decode("Zm9vY", 5, out, &n));
}

static void test_status_is_read_from_text(void **state)
{
    assert_int_equal(text_status_parse("0", 1), MST_OK);
    assert_int_equal(text_status_parse("16", 2), MST_UNAUTHENTICATED);
    assert_int_equal(text_status_parse("17", 2), MST_UNKNOWN);
    assert_int_equal(text_status_parse("", 0), MST_UNKNOWN);
    assert_int_equal(text_status_parse("x", 1), MST_UNKNOWN);
    assert_int_equal(text_status_parse("014", 3), MST_UNKNOWN);
    assert_int_equal(text_status_of_http(503), MST_UNAVAILABLE);
    assert_int_equal(text_status_of_http(404), MST_UNIMPLEMENTED);
    assert_int_equal(text_status_of_h2(8), MST_CANCELLED);
    assert_int_equal(text_status_of_h2(7), MST_UNAVAILABLE);
    assert_int_equal(text_status_of_h2(1), MST_INTERNAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_timeout_parse_knows_all_units),
        cmocka_unit_test(test_timeout_parse_refuses_the_rest),
        cmocka_unit_test(test_timeout_format_rounds_up_and_fits),
        cmocka_unit_test(test_message_goes_both_ways),
        cmocka_unit_test(test_message_decode_leaves_bad_escapes),
        cmocka_unit_test(test_message_encode_cuts_long_ones),
        cmocka_unit_test(test_base64_goes_both_ways),
        cmocka_unit_test(test_base64_decode_refuses_the_rest),
        cmocka_unit_test(test_status_is_read_from_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
