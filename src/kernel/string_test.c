#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kernel/fingerprint.h"
#include "kernel/text.h"
#include "op/harness.h"

/* Buckets that TensorFlow 2.21 gave for 'x' repeated, of 2^62. */
static void test_fingerprints_are_tensorflows(void **state)
{
    static const struct {
        size_t len;
        uint64_t bucket;
    } golden[] = {
        { 0, 1936946117179621455u },  { 3, 3091163115821544028u },
        { 7, 1227340135899025967u },  { 16, 3320895591121647644u },
        { 17, 2082709914559524773u }, { 32, 3678204687145032709u },
        { 33, 3046993373088323127u }, { 64, 2304502108871267256u },
        { 65, 323337772074164025u },  { 128, 1256696753479420951u },
        { 200, 103930210689786815u },
    };
    char text[256];

    (void)state;
    memset(text, 'x', sizeof(text));
    for (size_t i = 0; i < COUNT(golden); i++)
        assert_int_equal(fingerprint64(text, golden[i].len) &
                             (((uint64_t)1 << 62) - 1),
                         golden[i].bucket);
}

/* The first vectors of the SipHash paper: key 00..0f, input 00, 00 01, … */
static void test_siphash_gives_the_published_vectors(void **state)
{
    const uint64_t key[2] = { 0x0706050403020100ull, 0x0f0e0d0c0b0a0908ull };
    uint8_t in[15];

    (void)state;
    for (int i = 0; i < 15; i++)
        in[i] = (uint8_t)i;
    assert_true(fingerprint_keyed(key, in, 0) == 0x726fdb47dd0e0e31ull);
    assert_true(fingerprint_keyed(key, in, 15) == 0xa129ca6149be45e5ull);
}

static void run_one(struct harness *h, const char *op, const char *in)
{
    harness_init(h, op);
    harness_in(h, harness_strs(1, (int64_t[]){ 1 }, &in));
}

static void assert_text(const struct tensor *t, const char *want)
{
    const struct str *s = tensor_str(t, 0);

    assert_int_equal(s->len, strlen(want));
    assert_memory_equal(s->data, want, s->len);
}

static void test_base64_refuses_what_it_cannot_read(void **state)
{
    static const char *const bad[] = { "a",    "aaaaa", "a===", "====",
                                       "a=aa", "+/aa",  "aa a" };
    struct harness h;

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        run_one(&h, "DecodeBase64", bad[i]);
        assert_int_equal(harness_run(&h), MST_INVALID_ARGUMENT);
        harness_done(&h);
    }
    run_one(&h, "DecodeBase64", "aGVsbG8=");
    assert_int_equal(harness_run(&h), MST_OK);
    assert_text(&h.out[0].t, "hello");
    harness_done(&h);
}

static void test_numbers_are_the_whole_string(void **state)
{
    static const char *const bad[] = { "", " ", "1x", "1 2", "0x", "--1" };
    struct harness h;

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        run_one(&h, "StringToNumber", bad[i]);
        assert_int_equal(harness_run(&h), MST_INVALID_ARGUMENT);
        harness_done(&h);
    }
    run_one(&h, "StringToNumber", " -1.5e1\n");
    assert_int_equal(harness_run(&h), MST_OK);
    assert_float_equal(*TENSOR_DATA(&h.out[0].t, float), -15, 0);
    harness_done(&h);
}

static void test_substr_counts_characters_of_utf8(void **state)
{
    struct harness h;

    (void)state;
    run_one(&h, "Substr", "\xc3\xa9t\xc3\xa9s");
    harness_type(&h, "T", DT_INT32);
    harness_str(&h, "unit", "UTF8_CHAR");
    harness_in(&h, harness_int32s(0, NULL, (int32_t[]){ -3 }));
    harness_in(&h, harness_int32s(0, NULL, (int32_t[]){ 2 }));
    assert_int_equal(harness_run(&h), MST_OK);
    assert_text(&h.out[0].t, "t\xc3\xa9");
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fingerprints_are_tensorflows),
        cmocka_unit_test(test_siphash_gives_the_published_vectors),
        cmocka_unit_test(test_base64_refuses_what_it_cannot_read),
        cmocka_unit_test(test_numbers_are_the_whole_string),
        cmocka_unit_test(test_substr_counts_characters_of_utf8),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
