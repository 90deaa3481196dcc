#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "store/v1_reader.h"
#include "store/v1_writer.h"

static char dir[64], path[128];
static struct status st;

static int setup(void **state)
{
    (void)state;
    strcpy(dir, "/tmp/v1_test_XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    snprintf(path, sizeof(path), "%s/model-0", dir);
    return 0;
}

static int teardown(void **state)
{
    char command[100];

    (void)state;
    snprintf(command, sizeof(command), "rm -r %s", dir);
    return system(command);
}

static struct tensor numbers(enum dtype dt, int64_t rows, int64_t cols,
                             int first)
{
    struct tensor t = { 0 };

    assert_int_equal(tensor_new(&t, dt, 2, (int64_t[]){ rows, cols }, &st),
                     MST_OK);
    for (int64_t i = 0; i < t.count; i++) {
        char text[16];

        if (dt == DT_INT32)
            TENSOR_DATA(&t, int32_t)[i] = (int32_t)(first + i - 3);
        else
            str_set(tensor_str(&t, i), text,
                    (size_t)sprintf(text, "%d", (int)(first + i)));
    }
    return t;
}

/* "s": strings [2,3]; "w": [4,3] in two halves, the second in another file if
 * files is 2. */
static void write_files(int files)
{
    struct slice all = slice_all(2), half = all;
    struct shape six = { 2, { 2, 3 } }, twelve = { 2, { 4, 3 } };
    struct tensor s = numbers(DT_STRING, 2, 3, 0);
    struct tensor a = numbers(DT_INT32, 2, 3, 0);
    struct tensor b = numbers(DT_INT32, 2, 3, 6);
    struct v1_writer w;

    half.length[0] = 2;
    v1_writer_init(&w);
    assert_int_equal(v1_writer_add(&w, "s", 1, &six, &all, &s, &st), MST_OK);
    assert_int_equal(v1_writer_add(&w, "w", 1, &twelve, &half, &a, &st),
                     MST_OK);
    if (files == 2) {
        assert_int_equal(v1_writer_write(&w, path, &st), MST_OK);
        v1_writer_done(&w);
        path[strlen(path) - 1] = '1';
    }
    half.start[0] = 2;
    assert_int_equal(v1_writer_add(&w, "w", 1, &twelve, &half, &b, &st),
                     MST_OK);
    assert_int_equal(v1_writer_write(&w, path, &st), MST_OK);
    v1_writer_done(&w);
    tensor_unref(&s);
    tensor_unref(&a);
    tensor_unref(&b);
}

static enum mst_code fetch(struct v1_reader *r, const char *name,
                           const char *spec, enum dtype dt, struct tensor *ret)
{
    return v1_reader_read(r, name, strlen(name), spec, strlen(spec), dt, ret,
                          &st);
}

static void check(struct v1_reader *r)
{
    struct tensor t;

    assert_int_equal(fetch(r, "w", "", DT_INT32, &t), MST_OK);
    for (int i = 0; i < 12; i++)
        assert_int_equal(TENSOR_DATA(&t, int32_t)[i], i - 3);
    tensor_unref(&t);
    assert_int_equal(fetch(r, "w", "4 3 1,2:2,1", DT_INT32, &t), MST_OK);
    assert_int_equal(t.count, 2);
    assert_int_equal(TENSOR_DATA(&t, int32_t)[0], 2);
    assert_int_equal(TENSOR_DATA(&t, int32_t)[1], 5);
    tensor_unref(&t);
    assert_int_equal(fetch(r, "s", "2 3 1,1:-", DT_STRING, &t), MST_OK);
    assert_int_equal(t.count, 3);
    assert_memory_equal(tensor_str(&t, 2)->data, "5", 1);
    tensor_unref(&t);
}

static void test_slices_come_back_from_one_file_and_from_two(void **state)
{
    struct v1_reader r;

    (void)state;
    write_files(1);
    assert_int_equal(v1_reader_open(&r, path, &st), MST_OK);
    check(&r);
    v1_reader_close(&r);
    write_files(2);
    strcpy(path + strlen(path) - 1, "?");
    assert_int_equal(v1_reader_open(&r, path, &st), MST_OK);
    check(&r);
    v1_reader_close(&r);
}

static void test_errors_are_tensorflows(void **state)
{
    struct tensor t = numbers(DT_INT32, 1, 1, 0);
    struct slice all = slice_all(2);
    struct shape one = { 2, { 1, 1 } }, two = { 2, { 2, 1 } };
    struct v1_writer w;
    struct v1_reader r;

    (void)state;
    write_files(1);
    assert_int_equal(v1_reader_open(&r, path, &st), MST_OK);
    assert_int_equal(fetch(&r, "z", "", DT_INT32, &t), MST_NOT_FOUND);
    assert_non_null(strstr(st.msg, "Tensor name \"z\" not found in checkpoint "
                                   "files "));
    assert_int_equal(fetch(&r, "w", "", DT_FLOAT, &t), MST_INVALID_ARGUMENT);
    assert_string_equal(st.msg,
                        "Expected to restore a tensor of type float, got a "
                        "tensor of type int32 instead: tensor_name = w");
    assert_int_equal(fetch(&r, "w", "4 4 -:-", DT_INT32, &t),
                     MST_INVALID_ARGUMENT);
    v1_reader_close(&r);
    v1_writer_init(&w);
    assert_int_equal(v1_writer_add(&w, "x", 1, &one, &all, &t, &st), MST_OK);
    assert_int_equal(v1_writer_add(&w, "x", 1, &two, &all, &t, &st),
                     MST_INTERNAL);
    assert_string_equal(st.msg, "Mismatching shapes: existing tensor = [1,1], "
                                "trying to add name x, shape = [2,1]");
    assert_int_equal(v1_writer_add(&w, "x", 1, &one, &all, &t, &st), MST_OK);
    assert_int_equal(v1_writer_write(&w, path, &st), MST_INVALID_ARGUMENT);
    t.dtype = DT_BFLOAT16;
    assert_int_equal(v1_writer_add(&w, "y", 1, &one, &all, &t, &st),
                     MST_UNIMPLEMENTED);
    t.dtype = DT_INT32;
    v1_writer_done(&w);
    tensor_unref(&t);
    strcat(path, "-none");
    assert_int_equal(v1_reader_open(&r, path, &st), MST_NOT_FOUND);
}

/* Reads all there is; only with checksums need it be right. */
static enum mst_code read_memory(const uint8_t *data, size_t len,
                                 bool unchecked)
{
    struct tensor t = { 0 };
    struct v1_reader r;
    enum mst_code rc;

    rc = v1_reader_open_memory(&r, data, len, unchecked, &st);
    if (rc)
        return rc;
    rc = fetch(&r, "w", "", DT_INT32, &t);
    tensor_unref(&t);
    if (!rc)
        rc = fetch(&r, "s", "", DT_STRING, &t);
    tensor_unref(&t);
    if (!rc && !unchecked)
        check(&r);
    v1_reader_close(&r);
    return rc;
}

static void test_damage_at_every_byte_is_noticed(void **state)
{
    struct file_in in;
    uint8_t *data;
    size_t len;

    (void)state;
    write_files(1);
    assert_int_equal(file_in_open(&in, path, &st), MST_OK);
    len = (size_t)in.size;
    data = mem_new(len);
    assert_int_equal(file_in_read(&in, 0, data, len, &st), MST_OK);
    file_in_close(&in);
    assert_int_equal(read_memory(data, len, false), MST_OK);
    for (size_t i = 0; i < len * 8; i++) {
        enum mst_code rc;

        data[i / 8] ^= (uint8_t)(1 << i % 8);
        rc = read_memory(data, len, false);
        assert_true(rc == MST_OK || rc == MST_DATA_LOSS);
        (void)!read_memory(data, len, true);
        data[i / 8] ^= (uint8_t)(1 << i % 8);
    }
    for (size_t i = 0; i < len; i++) {
        uint8_t *cut = mem_copy(data, i);

        assert_int_equal(read_memory(cut, i, false), MST_DATA_LOSS);
        (void)!read_memory(cut, i, true);
        mem_free(cut);
    }
    mem_free(data);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_slices_come_back_from_one_file_and_from_two),
        TEST(test_errors_are_tensorflows),
        TEST(test_damage_at_every_byte_is_noticed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
