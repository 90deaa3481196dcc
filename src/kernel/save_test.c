#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "op/harness.h"

static char dir[64];

static int setup(void **state)
{
    (void)state;
    strcpy(dir, "/tmp/save_test_XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
    char command[100];

    (void)state;
    snprintf(command, sizeof(command), "rm -r %s", dir);
    return system(command);
}

/* "dir/name" as a scalar. */
static struct tensor path(const char *name)
{
    char text[200];

    snprintf(text, sizeof(text), "%s/%s", dir, name);
    return harness_strs(0, NULL, (const char *[]){ text });
}

static struct tensor strs(int n, const char *const *values)
{
    return harness_strs(1, (int64_t[]){ n }, values);
}

#define STRS(...)                                                              \
    strs((int)COUNT(((const char *[]){ __VA_ARGS__ })),                        \
         (const char *[]){ __VA_ARGS__ })

/* Two rows of a tensor [4,3], the second half of it if `half`. */
static enum mst_code save(const char *name, const char *tensor,
                          const char *spec, int half, struct status *ret)
{
    float values[6];
    struct harness h;
    enum mst_code rc;

    for (int i = 0; i < 6; i++)
        values[i] = (float)(6 * half + i);
    harness_init(&h, "SaveV2");
    harness_types(&h, "dtypes", 1, (int[]){ DT_FLOAT });
    harness_in(&h, path(name));
    harness_in(&h, STRS(tensor));
    harness_in(&h, STRS(spec));
    harness_in(&h, harness_floats(2, (int64_t[]){ 2, 3 }, values));
    rc = harness_run(&h);
    if (ret)
        status_copy(ret, &h.st);
    harness_done(&h);
    return rc;
}

static void start_restore(struct harness *h, const char *name,
                          const char *tensor, const char *spec, int dt)
{
    harness_init(h, "RestoreV2");
    harness_types(h, "dtypes", 1, (int[]){ dt });
    harness_in(h, path(name));
    harness_in(h, STRS(tensor));
    harness_in(h, STRS(spec));
}

static void test_saved_shards_merge_and_restore(void **state)
{
    struct harness h;

    (void)state;
    assert_int_equal(save("x_temp/p0", "w", "4 3 0,2:-", 0, NULL), MST_OK);
    assert_int_equal(save("x_temp/p1", "w", "4 3 2,2:-", 1, NULL), MST_OK);
    harness_init(&h, "MergeV2Checkpoints");
    {
        char a[100], b[100];

        snprintf(a, sizeof(a), "%s/x_temp/p0", dir);
        snprintf(b, sizeof(b), "%s/x_temp/p1", dir);
        harness_in(&h, STRS(a, b));
    }
    harness_in(&h, path("x"));
    assert_int_equal(harness_run(&h), MST_OK);
    harness_done(&h);

    start_restore(&h, "x", "w", "4 3 1,2:1,2", DT_FLOAT);
    assert_int_equal(harness_run(&h), MST_OK);
    assert_int_equal(h.out[0].t.count, 4);
    assert_float_equal(TENSOR_DATA(&h.out[0].t, float)[0], 4, 0);
    assert_float_equal(TENSOR_DATA(&h.out[0].t, float)[3], 8, 0);
    harness_done(&h);
}

static void check_text(struct harness *h, enum mst_code code, const char *text)
{
    assert_int_equal(harness_run(h), code);
    assert_non_null(strstr(h->st.msg, text));
    harness_done(h);
}

static void test_restore_says_what_is_missing(void **state)
{
    struct harness h;
    struct tensor t;

    (void)state;
    assert_int_equal(save("x", "w", "", 0, NULL), MST_OK);
    start_restore(&h, "x", "v", "", DT_FLOAT);
    check_text(&h, MST_NOT_FOUND, "Key v not found in checkpoint");
    start_restore(&h, "y", "w", "", DT_FLOAT);
    check_text(&h, MST_NOT_FOUND,
               "Unsuccessful TensorSliceReader constructor: Failed to find any "
               "matching files for ");
    start_restore(&h, "x", "w", "", DT_INT32);
    check_text(&h, MST_INVALID_ARGUMENT,
               "tensor_name = w; expected dtype int32 does not equal original "
               "dtype float");
    harness_init(&h, "RestoreV2");
    harness_types(&h, "dtypes", 1, (int[]){ DT_FLOAT });
    harness_in(&h, path("x"));
    harness_in(&h, STRS("a", "b"));
    t = STRS("", "");
    harness_in(&h, t);
    check_text(&h, MST_INVALID_ARGUMENT,
               "Got 2 tensor names, but 1 expected dtypes.");
}

static void test_save_checks_its_inputs(void **state)
{
    struct status st = STATUS_INIT;
    struct harness h;

    (void)state;
    assert_int_equal(save("x", "w", "4 3 0,1:-", 0, &st), MST_INVALID_ARGUMENT);
    assert_string_equal(st.msg,
                        "Slice in shape_and_slice specification does not match "
                        "the shape of the tensor to  save: 4 3 0,1:-, tensor: "
                        "[2,3]");
    assert_int_equal(save("x", "", "", 0, &st), MST_INVALID_ARGUMENT);
    harness_init(&h, "SaveV2");
    harness_types(&h, "dtypes", 1, (int[]){ DT_FLOAT });
    harness_in(&h, harness_strs(0, NULL, (const char *[]){ "gs://b/x" }));
    harness_in(&h, STRS("w"));
    harness_in(&h, STRS(""));
    harness_in(&h, harness_floats(0, NULL, (float[]){ 1 }));
    check_text(&h, MST_UNIMPLEMENTED,
               "File system scheme 'gs' not implemented (file: 'gs://b/x')");
    /* Nothing of all that has left a file. */
    assert_int_equal(rmdir(dir), 0);
    assert_non_null(mkdtemp(strcpy(dir, "/tmp/save_test_XXXXXX")));
}

static void test_cancelled_save_leaves_no_file(void **state)
{
    struct harness h;

    (void)state;
    harness_init(&h, "SaveV2");
    harness_types(&h, "dtypes", 1, (int[]){ DT_FLOAT });
    harness_in(&h, path("x"));
    harness_in(&h, STRS("w"));
    harness_in(&h, STRS(""));
    harness_in(&h, harness_floats(0, NULL, (float[]){ 1 }));
    cancel_all(&h.cancel);
    check_text(&h, MST_CANCELLED, "cancelled");
    assert_int_equal(rmdir(dir), 0);
    assert_non_null(mkdtemp(strcpy(dir, "/tmp/save_test_XXXXXX")));
}

static void test_sharded_names_are_tensorflows(void **state)
{
    struct harness h;
    struct str *s;

    (void)state;
    harness_init(&h, "ShardedFilename");
    harness_in(&h, harness_strs(0, NULL, (const char *[]){ "a/b" }));
    harness_in(&h, harness_int32s(0, NULL, (int32_t[]){ 3 }));
    harness_in(&h, harness_int32s(0, NULL, (int32_t[]){ 100000000 }));
    assert_int_equal(harness_run(&h), MST_OK);
    s = tensor_str(&h.out[0].t, 0);
    assert_int_equal(s->len, 22);
    assert_memory_equal(s->data, "a/b-00003-of-100000000", 22);
    harness_done(&h);
    harness_init(&h, "ShardedFilespec");
    harness_in(&h, harness_strs(0, NULL, (const char *[]){ "a/b" }));
    harness_in(&h, harness_int32s(0, NULL, (int32_t[]){ 10 }));
    assert_int_equal(harness_run(&h), MST_OK);
    s = tensor_str(&h.out[0].t, 0);
    assert_memory_equal(s->data, "a/b-\?\?\?\?\?-of-00010", s->len);
    harness_done(&h);
}

static void write_file(const char *name, const char *contents)
{
    struct harness h;

    harness_init(&h, "WriteFile");
    harness_in(&h, path(name));
    harness_in(&h, harness_strs(0, NULL, &contents));
    assert_int_equal(harness_run(&h), MST_OK);
    harness_done(&h);
}

static void test_files_are_written_and_read(void **state)
{
    struct harness h;

    (void)state;
    write_file("new/dir/f", "abc");
    write_file("new/dir/f", "de");
    harness_init(&h, "ReadFile");
    harness_in(&h, path("new/dir/f"));
    assert_int_equal(harness_run(&h), MST_OK);
    assert_int_equal(tensor_str(&h.out[0].t, 0)->len, 2);
    assert_memory_equal(tensor_str(&h.out[0].t, 0)->data, "de", 2);
    harness_done(&h);
    harness_init(&h, "ReadFile");
    harness_in(&h, path("new"));
    check_text(&h, MST_FAILED_PRECONDITION, "/new; Is a directory");
    harness_init(&h, "ReadFile");
    harness_in(&h, path("none"));
    check_text(&h, MST_NOT_FOUND, "/none; No such file or directory");
    harness_init(&h, "WriteFile");
    harness_in(&h, harness_strs(0, NULL, (const char *[]){ "/dev/full" }));
    harness_in(&h, harness_strs(0, NULL, (const char *[]){ "x" }));
    check_text(&h, MST_RESOURCE_EXHAUSTED,
               "/dev/full; No space left on device");
}

static int64_t matches(const char *pattern)
{
    struct harness h;
    int64_t n;

    harness_init(&h, "MatchingFiles");
    harness_in(&h, path(pattern));
    assert_int_equal(harness_run(&h), MST_OK);
    n = h.out[0].t.count;
    for (int64_t i = 1; i < n; i++) {
        const struct str *a = tensor_str(&h.out[0].t, i - 1);
        const struct str *b = tensor_str(&h.out[0].t, i);

        assert_true(memcmp(a->data, b->data, MIN(a->len, b->len)) <= 0);
    }
    harness_done(&h);
    return n;
}

static void test_patterns_match_within_a_directory(void **state)
{
    (void)state;
    write_file("a1", "");
    write_file("a2", "");
    write_file(".hidden", "");
    write_file("sub/a3", "");
    write_file("sub/deep/a[4]", "");
    assert_int_equal(matches("*"), 4);
    assert_int_equal(matches("a?"), 2);
    assert_int_equal(matches("a[!1]"), 1);
    assert_int_equal(matches("a1"), 1);
    assert_int_equal(matches("*/a*"), 1);
    assert_int_equal(matches("s*/*/a\\[4]"), 1);
    assert_int_equal(matches("s*//deep/*"), 1);
    assert_int_equal(matches("none/*"), 0);
    assert_int_equal(matches("a{1,2}"), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_saved_shards_merge_and_restore),
        TEST(test_restore_says_what_is_missing),
        TEST(test_save_checks_its_inputs),
        TEST(test_cancelled_save_leaves_no_file),
        TEST(test_sharded_names_are_tensorflows),
        TEST(test_files_are_written_and_read),
        TEST(test_patterns_match_within_a_directory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
