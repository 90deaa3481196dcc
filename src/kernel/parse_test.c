/* Parsers of what comes from files and peers: malformed input is an error of
 * its own, whatever it is cut from. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "op/harness.h"

static struct tensor bytes(const void *data, size_t len)
{
    struct status st = STATUS_INIT;
    struct tensor t;

    assert_int_equal(tensor_new(&t, DT_STRING, 1, (int64_t[]){ 1 }, &st),
                     MST_OK);
    str_set(tensor_str(&t, 0), data, len);
    return t;
}

static void test_json_that_is_no_example_is_refused(void **state)
{
    static const char *const texts[] = {
        "",
        "{",
        "[1]",
        "{\"features\": 3}",
        "{\"nothing\": 1}",
        "{\"features\": {\"feature\": {\"a\": {\"floatList\": 1}}}}",
        "{\"features\": {\"feature\": {\"a\": {\"int64List\": {\"value\": "
        "[1.5]}}}}}",
        "{\"features\": {\"feature\": {\"a\": {\"bytesList\": {\"value\": "
        "[\"*\"]}}}}}",
        "{\"features\": {\"feature\": [1]}}",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct harness h;

        harness_init(&h, "DecodeJSONExample");
        harness_in(&h, bytes(texts[i], strlen(texts[i])));
        assert_int_equal(harness_run(&h), MST_INVALID_ARGUMENT);
        assert_non_null(strstr(h.st.msg, "Error while parsing JSON: "));
        harness_done(&h);
    }
}

/* One dense, one sparse and one ragged feature of an Example. */
static enum mst_code parse(const void *data, size_t len)
{
    struct harness h;
    struct shape any = { .ndim = 1, .dims = { -1 } };
    enum mst_code rc;

    harness_init(&h, "ParseExampleV2");
    harness_types(&h, "Tdense", 1, (int[]){ DT_INT64 });
    harness_int(&h, "num_sparse", 1);
    harness_types(&h, "sparse_types", 1, (int[]){ DT_FLOAT });
    harness_types(&h, "ragged_value_types", 1, (int[]){ DT_STRING });
    harness_types(&h, "ragged_split_types", 1, (int[]){ DT_INT32 });
    harness_shapes(&h, "dense_shapes", 1, &any);
    harness_in(&h, bytes(data, len));
    harness_in(&h, harness_strs(1, (int64_t[]){ 0 }, NULL));
    harness_in(&h, harness_strs(1, (int64_t[]){ 1 }, (const char *[]){ "f" }));
    harness_in(&h, harness_strs(1, (int64_t[]){ 1 }, (const char *[]){ "i" }));
    harness_in(&h, harness_strs(1, (int64_t[]){ 1 }, (const char *[]){ "s" }));
    harness_in(&h, harness_int64s(0, NULL, (int64_t[]){ -1 }));
    rc = harness_run(&h);
    harness_done(&h);
    return rc;
}

static void test_damaged_examples_are_survived(void **state)
{
    static const char example[] = "\x0a\x30"
                                  "\x0a\x0e\x0a\1f\x12\x09\x12\x07\x0a\x05"
                                  "\0\0\x80\x3f\0"
                                  "\x0a\x0d\x0a\1i\x12\x08\x1a\x06\x0a\x04"
                                  "\1\2\x96\1"
                                  "\x0a\x0d\x0a\1s\x12\x08\x0a\x06\x0a\1x"
                                  "\x0a\1y";
    char copy[sizeof(example)];

    (void)state;
    for (size_t n = 0; n < sizeof(example) - 1; n++)
        for (int bit = 0; bit < 8; bit++) {
            memcpy(copy, example, sizeof(example));
            (void)parse(copy, n);
            copy[n] = (char)(copy[n] ^ 1 << bit);
            (void)parse(copy, sizeof(example) - 1);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_that_is_no_example_is_refused),
        cmocka_unit_test(test_damaged_examples_are_survived),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
