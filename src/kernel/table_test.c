/*
 * Lookup tables through their ops. Values and texts have been compared with
 * TensorFlow's on a ps; here are growth, removal, files and threads.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/rng.h"
#include "op/harness.h"

static struct resources *shared;
static struct tensor table;

static void make(const char *op, int key, int value)
{
    struct harness h;

    harness_init(&h, op);
    harness_share(&h, shared);
    harness_type(&h, "key_dtype", key);
    harness_type(&h, "value_dtype", value);
    assert_int_equal(harness_run(&h), MST_OK);
    tensor_unref(&table);
    table = tensor_ref(&h.out[0].t);
    harness_done(&h);
}

static int setup(void **state)
{
    (void)state;
    shared = resources_new("ps");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tensor_unref(&table);
    resources_unref(shared);
    return 0;
}

static void start(struct harness *h, const char *op, struct tensor keys)
{
    harness_init(h, op);
    harness_type(h, "Tin", keys.dtype);
    harness_type(h, "Tkey", keys.dtype);
    harness_in(h, tensor_ref(&table));
    harness_in(h, keys);
}

static enum mst_code put(const char *op, struct tensor keys,
                         struct tensor values)
{
    struct harness h;
    enum mst_code rc;

    start(&h, op, keys);
    harness_type(&h, "Tout", values.dtype);
    harness_type(&h, "Tval", values.dtype);
    harness_in(&h, values);
    rc = harness_run(&h);
    harness_done(&h);
    return rc;
}

static int64_t size(void)
{
    struct harness h;
    int64_t n;

    harness_init(&h, "LookupTableSizeV2");
    harness_in(&h, tensor_ref(&table));
    assert_int_equal(harness_run(&h), MST_OK);
    n = *TENSOR_DATA(&h.out[0].t, int64_t);
    harness_done(&h);
    return n;
}

static struct tensor longs(int n, const int64_t *v)
{
    return harness_int64s(1, (int64_t[]){ n }, v);
}

static struct tensor strs(int n, const char *const *v)
{
    return harness_strs(1, (int64_t[]){ n }, v);
}

#define STRS(...)                                                              \
    (const char *[])                                                           \
    {                                                                          \
        __VA_ARGS__                                                            \
    }

/* The value of one key, or -1. */
static int64_t find(struct tensor key)
{
    struct harness h;
    int64_t v;

    start(&h, "LookupTableFindV2", key);
    harness_type(&h, "Tout", DT_INT64);
    harness_in(&h, harness_int64s(0, NULL, (int64_t[]){ -1 }));
    assert_int_equal(harness_run(&h), MST_OK);
    v = *TENSOR_DATA(&h.out[0].t, int64_t);
    harness_done(&h);
    return v;
}

static void remove_key(struct tensor key)
{
    struct harness h;

    start(&h, "LookupTableRemoveV2", key);
    assert_int_equal(harness_run(&h), MST_OK);
    harness_done(&h);
}

static void test_table_grows_and_shrinks(void **state)
{
    uint64_t seed = 7;
    bool there[300] = { 0 };
    int count = 0;

    (void)state;
    make("MutableHashTableV2", DT_INT64, DT_INT64);
    for (int i = 0; i < 2000; i++) {
        int64_t key = (int64_t)(rng_next(&seed) % 300), value = key * 10;

        if (rng_next(&seed) % 3) {
            assert_int_equal(
                put("LookupTableInsertV2", longs(1, &key), longs(1, &value)),
                MST_OK);
            there[key] = true;
        } else {
            remove_key(longs(1, &key));
            there[key] = false;
        }
    }
    for (int64_t key = 0; key < 300; key++) {
        assert_int_equal(find(longs(1, &key)), there[key] ? key * 10 : -1);
        count += there[key];
    }
    assert_int_equal(size(), count);
}

static void test_strings_move_with_their_rows(void **state)
{
    char key[16];

    (void)state;
    make("MutableHashTableV2", DT_STRING, DT_INT64);
    for (int64_t i = 0; i < 100; i++) {
        snprintf(key, sizeof(key), "key %d", (int)i);
        put("LookupTableInsertV2", strs(1, STRS(key)), longs(1, &i));
    }
    for (int i = 0; i < 50; i++) {
        snprintf(key, sizeof(key), "key %d", i);
        remove_key(strs(1, STRS(key)));
    }
    assert_int_equal(find(strs(1, STRS("key 49"))), -1);
    assert_int_equal(find(strs(1, STRS("key 50"))), 50);
    assert_int_equal(find(strs(1, STRS("key 99"))), 99);
    assert_int_equal(find(strs(1, STRS(""))), -1);
}

static void test_static_table_is_written_once(void **state)
{
    (void)state;
    make("HashTableV2", DT_STRING, DT_INT64);
    assert_int_equal(put("InitializeTableV2", strs(2, STRS("a", "a")),
                         longs(2, (int64_t[]){ 1, 2 })),
                     MST_FAILED_PRECONDITION);
    assert_int_equal(size(), 0);
    assert_int_equal(put("InitializeTableV2", strs(2, STRS("a", "b")),
                         longs(2, (int64_t[]){ 1, 2 })),
                     MST_OK);
    assert_int_equal(put("InitializeTableV2", strs(1, STRS("a")),
                         longs(1, (int64_t[]){ 1 })),
                     MST_FAILED_PRECONDITION);
    assert_int_equal(put("LookupTableInsertV2", strs(1, STRS("a")),
                         longs(1, (int64_t[]){ 1 })),
                     MST_UNIMPLEMENTED);
    assert_int_equal(find(strs(1, STRS("b"))), 2);
}

static enum mst_code fill(const char *text, int key, int value,
                          const char *message)
{
    char path[] = "/tmp/muster-table-XXXXXX";
    int fd = mkstemp(path);
    struct harness h;
    enum mst_code rc;

    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, text, strlen(text), 0), strlen(text));
    close(fd);
    make("AnonymousHashTable", DT_STRING, DT_INT64);
    harness_init(&h, "InitializeTableFromTextFileV2");
    harness_int(&h, "key_index", key);
    harness_int(&h, "value_index", value);
    harness_in(&h, tensor_ref(&table));
    harness_in(&h, harness_strs(0, NULL, STRS(path)));
    rc = harness_run(&h);
    if (message)
        assert_non_null(strstr(h.st.msg, message));
    harness_done(&h);
    unlink(path);
    return rc;
}

static void test_files_are_read_by_line_and_column(void **state)
{
    (void)state;
    assert_int_equal(fill("hello\r\nworld", -2, -1, NULL), MST_OK);
    assert_int_equal(find(strs(1, STRS("world"))), 1);
    assert_int_equal(find(strs(1, STRS("hello"))), 0);
    assert_int_equal(fill("a\t1\tx\nb\t-2\ty\n", 2, 1, NULL), MST_OK);
    assert_int_equal(find(strs(1, STRS("y"))), -2);
    assert_int_equal(
        fill("a\t1\nb\n", 0, 1, "line 1 (b) : expected at least 2 got 1"),
        MST_INVALID_ARGUMENT);
    assert_int_equal(
        fill("a\tx\n", 0, 1, "Field x in line 0 is not a valid int64."),
        MST_INVALID_ARGUMENT);
    assert_int_equal(fill("a\t99999999999999999999\n", 0, 1, "not a valid"),
                     MST_INVALID_ARGUMENT);
    assert_int_equal(fill("", -2, -1, NULL), MST_OUT_OF_RANGE);
}

/* Readers and a writer at one table. */
static void *reader(void *arg)
{
    (void)arg;
    for (int64_t i = 0; i < 500; i++) {
        int64_t key = i % 50, v = find(longs(1, &key));

        assert_true(v == -1 || v == key);
    }
    return NULL;
}

static void test_readers_and_writers_at_once(void **state)
{
    pthread_t t[2];

    (void)state;
    make("MutableHashTableV2", DT_INT64, DT_INT64);
    for (int i = 0; i < 2; i++)
        pthread_create(&t[i], NULL, reader, NULL);
    for (int64_t i = 0; i < 500; i++) {
        int64_t key = i % 50;

        if (i % 3)
            put("LookupTableInsertV2", longs(1, &key), longs(1, &key));
        else
            remove_key(longs(1, &key));
    }
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_table_grows_and_shrinks),
        TEST(test_strings_move_with_their_rows),
        TEST(test_static_table_is_written_once),
        TEST(test_files_are_read_by_line_and_column),
        TEST(test_readers_and_writers_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
