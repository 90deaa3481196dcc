#include "train/data.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "store/record.h"
#include "train/npy.h"
#include "wire/pb.h"

static char folder[64];

static int setup(void **state)
{
    snprintf(folder, sizeof(folder), "/tmp/muster-test-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int teardown(void **state)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -r %s", folder);
    return system(command);
}

static const char *path_of(const char *name)
{
    static char paths[4][128];
    static int next;
    char *path = paths[next++ % 4];

    snprintf(path, 128, "%s/%s", folder, name);
    return path;
}

static const char *write_npy(const char *name, const char *header,
                             const void *data, size_t len)
{
    struct status st = STATUS_INIT;
    uint8_t bytes[1024] = "\x93NUMPY\x01\x00";
    const char *path = path_of(name);

    memset(bytes + 10, ' ', 118);
    bytes[8] = 118;
    memcpy(bytes + 10, header, strlen(header));
    memcpy(bytes + 128, data, len);
    assert_int_equal(file_write(path, bytes, 128 + len, &st), MST_OK);
    return path;
}

/* Rows 0..n-1 of two numbers each. */
static const char *write_rows(const char *name, int n)
{
    float rows[200];
    char header[100];

    for (int i = 0; i < 2 * n; i++)
        rows[i] = (float)i;
    snprintf(header, sizeof(header),
             "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, 2), }", n);
    return write_npy(name, header, rows, (size_t)n * 8);
}

static struct data_feed feed(enum dtype type, int ndim, const int64_t *dims,
                             const char *source)
{
    struct data_feed f = {
        .name = "x:0", .type = type, .shape = { .ndim = ndim }, .source = source
    };

    for (int i = 0; i < ndim; i++)
        f.shape.dims[i] = dims[i];
    return f;
}

static void test_batches_go_round(void **state)
{
    struct data_feed f =
        feed(DT_FLOAT, 2, (int64_t[]){ -1, 2 }, write_rows("x.npy", 5));
    struct status st = STATUS_INIT;
    float want[] = { 0, 4, 8, 2, 6 };
    struct tensor t;
    struct data d;

    assert_int_equal(
        data_open(&d, &f, 1, &(struct data_opts){ .batch = 2 }, &st), MST_OK);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(data_next(&d, &t, &st), MST_OK);
        assert_int_equal(t.dims[0], 2);
        assert_true(*TENSOR_DATA(&t, float) == want[i]);
        tensor_unref(&t);
    }
    data_close(&d);
}

static void test_shuffling_takes_each_row_once_a_round(void **state)
{
    struct data_feed f =
        feed(DT_FLOAT, 2, (int64_t[]){ -1, 2 }, write_rows("x.npy", 12));
    struct status st = STATUS_INIT;
    struct tensor t;
    struct data d;

    assert_int_equal(
        data_open(&d, &f, 1,
                  &(struct data_opts){ .batch = 3, .shuffle = true, .seed = 5 },
                  &st),
        MST_OK);
    for (int round = 0; round < 3; round++) {
        unsigned seen = 0;

        for (int i = 0; i < 4; i++) {
            assert_int_equal(data_next(&d, &t, &st), MST_OK);
            for (int r = 0; r < 3; r++)
                seen |= 1u << (int)(TENSOR_DATA(&t, float)[2 * r] / 2);
            tensor_unref(&t);
        }
        assert_int_equal(seen, 0xfff);
    }
    data_close(&d);
}

static void test_rows_take_type_and_shape_of_the_placeholder(void **state)
{
    const uint8_t bytes[] = { 1, 2, 3, 4, 5, 255 };
    struct data_feed f =
        feed(DT_FLOAT, 3, (int64_t[]){ -1, 3, 1 },
             write_npy("b.npy",
                       "{'descr': '|u1', 'fortran_order': False, "
                       "'shape': (2, 3), }",
                       bytes, sizeof(bytes)));
    struct status st = STATUS_INIT;
    struct tensor t;
    struct data d;

    assert_int_equal(
        data_open(&d, &f, 1, &(struct data_opts){ .batch = 2 }, &st), MST_OK);
    assert_int_equal(data_next(&d, &t, &st), MST_OK);
    assert_int_equal(t.ndim, 3);
    assert_true(TENSOR_DATA(&t, float)[5] == 255);
    tensor_unref(&t);
    data_close(&d);
}

static void expect_refused(struct data_feed f, const char *files,
                           const char *text)
{
    struct status st = STATUS_INIT;
    struct data d;

    assert_int_not_equal(
        data_open(&d, &f, 1, &(struct data_opts){ .files = files, .batch = 1 },
                  &st),
        MST_OK);
    if (!strstr(st.msg, text))
        fail_msg("%s", st.msg);
}

static void test_what_does_not_fit_is_refused(void **state)
{
    int64_t two[] = { -1, 2 }, three[] = { -1, 3 }, one[] = { -1 };
    float f[2] = { 0 };

    expect_refused(feed(DT_INT32, 2, two, write_rows("x.npy", 3)), NULL,
                   "of type float");
    expect_refused(feed(DT_FLOAT, 2, three, write_rows("x.npy", 3)), NULL,
                   "shape");
    expect_refused(feed(DT_FLOAT, 1, one, "/nonexistent.npy"), NULL,
                   "/nonexistent.npy");
    expect_refused(feed(DT_FLOAT, 1, one,
                        write_npy("o.npy",
                                  "{'descr': '|O', 'fortran_order': False, "
                                  "'shape': (2,), }",
                                  f, 8)),
                   NULL, "'|O'");
    expect_refused(feed(DT_FLOAT, 1, one,
                        write_npy("s.npy",
                                  "{'descr': '<f4', 'fortran_order': False, "
                                  "'shape': (3,), }",
                                  f, 8)),
                   NULL, "damaged");
    expect_refused(feed(DT_FLOAT, 1, one, "x"), path_of("none*.tfrecord"),
                   "no file");
}

/* Example { features { feature { key: "f" value { float_list } } } } */
static void write_example(struct record_writer *w, float value)
{
    struct pb_out list, feature, entry, features, example;
    struct status st = STATUS_INIT;

    pb_out_init(&list);
    pb_put_bytes(&list, 1, (float[]){ value, value + 1 }, 8);
    pb_out_init(&feature);
    pb_put_bytes(&feature, 2, list.data, list.len);
    pb_out_init(&entry);
    pb_put_bytes(&entry, 1, "f", 1);
    pb_put_bytes(&entry, 2, feature.data, feature.len);
    pb_out_init(&features);
    pb_put_bytes(&features, 1, entry.data, entry.len);
    pb_out_init(&example);
    pb_put_bytes(&example, 1, features.data, features.len);
    assert_int_equal(record_writer_add(w, example.data, example.len, &st),
                     MST_OK);
    pb_out_done(&list);
    pb_out_done(&feature);
    pb_out_done(&entry);
    pb_out_done(&features);
    pb_out_done(&example);
}

static void test_examples_become_rows(void **state)
{
    struct data_feed feeds[] = {
        feed(DT_FLOAT, 2, (int64_t[]){ -1, 2 }, "f"),
        feed(DT_STRING, 1, (int64_t[]){ -1 }, "@record"),
    };
    const char *path = path_of("a.tfrecord");
    struct status st = STATUS_INIT;
    struct record_writer w;
    struct tensor t[2];
    struct data d;

    assert_int_equal(record_writer_open(&w, path, &st), MST_OK);
    for (int i = 0; i < 4; i++)
        write_example(&w, (float)i);
    assert_int_equal(record_writer_close(&w, &st), MST_OK);
    assert_int_equal(data_open(&d, feeds, 2,
                               &(struct data_opts){ .files = path, .batch = 4 },
                               &st),
                     MST_OK);
    assert_int_equal(data_next(&d, t, &st), MST_OK);
    assert_true(TENSOR_DATA(&t[0], float)[7] == 4);
    assert_int_equal(t[1].dtype, DT_STRING);
    assert_true(tensor_str(&t[1], 3)->len > 8);
    tensor_unref(&t[0]);
    tensor_unref(&t[1]);
    data_close(&d);
    expect_refused(feed(DT_FLOAT, 2, (int64_t[]){ -1, 2 }, "g"), path,
                   "no feature \"g\"");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_batches_go_round),
        TEST(test_shuffling_takes_each_row_once_a_round),
        TEST(test_rows_take_type_and_shape_of_the_placeholder),
        TEST(test_what_does_not_fit_is_refused),
        TEST(test_examples_become_rows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
