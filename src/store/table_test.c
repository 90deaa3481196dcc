/*
 * Tables: what is written comes back, over one block and over many; damage is
 * said, never met with a crash.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/crc32c.h"
#include "base/mem.h"
#include "base/rng.h"
#include "store/snappy.h"
#include "store/table_reader.h"
#include "store/table_writer.h"

static char dir[64], path[128];

static int setup(void **state)
{
    (void)state;
    strcpy(dir, "/tmp/table_test_XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    snprintf(path, sizeof(path), "%s/t", dir);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(dir);
}

static size_t key_of(int i, char *key)
{
    return (size_t)sprintf(key, "layer_%d/weights/part_%07d", i % 3, i / 3);
}

static int by_key(const void *a, const void *b)
{
    char x[64], y[64];

    key_of(*(const int *)a, x);
    key_of(*(const int *)b, y);
    return strcmp(x, y);
}

/* n entries; the value of the i-th is i bytes modulo 50. */
static void write_table(int n, size_t block_size, int *order)
{
    struct file_out out = FILE_OUT_INIT;
    struct status st = STATUS_INIT;
    struct table_writer w;
    char key[64], value[64];

    for (int i = 0; i < n; i++)
        order[i] = i;
    qsort(order, (size_t)n, sizeof(*order), by_key);
    assert_int_equal(file_out_open(&out, path, &st), MST_OK);
    table_writer_init(&w, &out);
    if (block_size)
        w.block_size = block_size;
    assert_int_equal(table_writer_add(&w, "", 0, "head", 4, &st), MST_OK);
    for (int i = 0; i < n; i++) {
        memset(value, 'a' + order[i] % 26, sizeof(value));
        assert_int_equal(table_writer_add(&w, key, key_of(order[i], key), value,
                                          (size_t)order[i] % 50, &st),
                         MST_OK);
    }
    assert_int_equal(table_writer_finish(&w, &st), MST_OK);
    table_writer_done(&w);
    assert_int_equal(file_out_commit(&out, &st), MST_OK);
}

static void open_table(struct table_reader *t)
{
    struct status st = STATUS_INIT;
    struct file_in in;

    assert_int_equal(file_in_open(&in, path, &st), MST_OK);
    assert_int_equal(table_reader_open(t, &in, false, &st), MST_OK);
}

static bool key_is(const struct table_iter *it, const char *key)
{
    struct pb_in c = table_iter_key(it);

    return !table_compare(c.at, cursor_left(&c), key, strlen(key));
}

static void check_walk(struct table_iter *it, int n, const int *order)
{
    struct status st = STATUS_INIT;
    char key[64];

    assert_int_equal(table_iter_seek(it, "", 0, &st), MST_OK);
    assert_true(table_iter_valid(it) && key_is(it, ""));
    for (int i = 0; i < n; i++) {
        struct pb_in v;

        assert_int_equal(table_iter_next(it, &st), MST_OK);
        assert_true(table_iter_valid(it));
        key_of(order[i], key);
        assert_true(key_is(it, key));
        v = table_iter_value(it);
        assert_int_equal(cursor_left(&v), order[i] % 50);
        if (v.at < v.end)
            assert_int_equal(v.end[-1], 'a' + order[i] % 26);
    }
    assert_int_equal(table_iter_next(it, &st), MST_OK);
    assert_false(table_iter_valid(it));
}

static void check_seeks(struct table_iter *it, int n, const int *order)
{
    struct status st = STATUS_INIT;
    uint64_t seed = 7;
    char key[64];

    for (int i = 0; i < 500; i++) {
        int at = (int)(rng_next(&seed) % (uint64_t)n);

        key_of(order[at], key);
        assert_int_equal(table_iter_seek(it, key, strlen(key), &st), MST_OK);
        assert_true(table_iter_valid(it) && key_is(it, key));
        /* Just after it comes the next one, or nothing. */
        strcat(key, "!");
        assert_int_equal(table_iter_seek(it, key, strlen(key), &st), MST_OK);
        assert_int_equal(table_iter_valid(it), at + 1 < n);
        if (at + 1 < n) {
            key_of(order[at + 1], key);
            assert_true(key_is(it, key));
        }
    }
}

static void round_trip(int n, size_t block_size)
{
    int *order = mem_array((size_t)n + 1, sizeof(int));
    struct table_reader t;
    struct table_iter it;

    write_table(n, block_size, order);
    open_table(&t);
    table_iter_init(&it, &t);
    check_walk(&it, n, order);
    if (n)
        check_seeks(&it, n, order);
    table_iter_done(&it);
    table_reader_close(&t);
    mem_free(order);
}

static void test_table_returns_what_was_written(void **state)
{
    (void)state;
    round_trip(0, 0);
    round_trip(1, 0);
    round_trip(16, 0);
    round_trip(17, 0);
    round_trip(300, 0);
    round_trip(300, 64);
    round_trip(20000, 0); /* several blocks of 256 KiB */
    round_trip(5000, 1000);
}

static void test_table_keys_may_be_any_bytes(void **state)
{
    struct file_out out = FILE_OUT_INIT;
    struct status st = STATUS_INIT;
    struct table_writer w;
    struct table_reader t;
    struct table_iter it;

    (void)state;
    assert_int_equal(file_out_open(&out, path, &st), MST_OK);
    table_writer_init(&w, &out);
    w.block_size = 1; /* every entry a block of its own */
    assert_int_equal(table_writer_add(&w, "\0", 1, "", 0, &st), MST_OK);
    assert_int_equal(table_writer_add(&w, "\0\0", 2, "x", 1, &st), MST_OK);
    assert_int_equal(table_writer_add(&w, "\xff", 1, "y", 1, &st), MST_OK);
    assert_int_equal(table_writer_add(&w, "\xff\xff", 2, "z", 1, &st), MST_OK);
    assert_int_equal(table_writer_finish(&w, &st), MST_OK);
    table_writer_done(&w);
    assert_int_equal(file_out_commit(&out, &st), MST_OK);
    open_table(&t);
    table_iter_init(&it, &t);
    assert_int_equal(table_iter_seek(&it, "\x01", 1, &st), MST_OK);
    assert_true(table_iter_valid(&it));
    assert_int_equal(*table_iter_value(&it).at, 'y');
    assert_int_equal(table_iter_seek(&it, "\xff\xff", 2, &st), MST_OK);
    assert_true(table_iter_valid(&it));
    assert_int_equal(*table_iter_value(&it).at, 'z');
    table_iter_done(&it);
    table_reader_close(&t);
}

/* Reads everything there is; the code of the first trouble. */
static enum mst_code walk(const uint8_t *bytes, size_t len, bool unchecked)
{
    struct status st = STATUS_INIT;
    struct table_reader t;
    struct table_iter it;
    struct file_in in;
    enum mst_code rc;

    file_in_memory(&in, "memory", bytes, len);
    rc = table_reader_open(&t, &in, unchecked, &st);
    if (rc)
        return rc;
    table_iter_init(&it, &t);
    rc = table_iter_seek(&it, "layer_1", 7, &st);
    if (!rc)
        rc = table_iter_seek(&it, "", 0, &st);
    while (!rc && table_iter_valid(&it))
        rc = table_iter_next(&it, &st);
    table_iter_done(&it);
    table_reader_close(&t);
    return rc;
}

static uint8_t *read_all(size_t *ret_len)
{
    struct status st = STATUS_INIT;
    struct file_in in;
    uint8_t *bytes;

    assert_int_equal(file_in_open(&in, path, &st), MST_OK);
    bytes = mem_new((size_t)in.size);
    assert_int_equal(file_in_read(&in, 0, bytes, (size_t)in.size, &st), MST_OK);
    *ret_len = (size_t)in.size;
    file_in_close(&in);
    return bytes;
}

static void test_damage_at_every_byte_is_reported(void **state)
{
    int order[40], unseen = 0;
    uint8_t *bytes;
    size_t len;

    (void)state;
    write_table(40, 300, order);
    bytes = read_all(&len);
    assert_int_equal(walk(bytes, len, false), MST_OK);
    for (size_t i = 0; i < len; i++)
        for (int bit = 0; bit < 8; bit++) {
            enum mst_code rc;

            bytes[i] ^= (uint8_t)(1 << bit);
            rc = walk(bytes, len, false);
            /* Of the meta block and its handle nothing is read. */
            if (rc == MST_OK)
                unseen++;
            else
                assert_int_equal(rc, MST_DATA_LOSS);
            /* Without checksums anything may come out, but it comes out. */
            rc = walk(bytes, len, true);
            assert_true(rc == MST_OK || rc == MST_DATA_LOSS);
            bytes[i] ^= (uint8_t)(1 << bit);
        }
    assert_true(unseen < 8 * (8 + TABLE_TRAILER + TABLE_FOOTER));
    mem_free(bytes);
}

static void test_truncation_at_every_byte_is_reported(void **state)
{
    int order[40];
    uint8_t *bytes;
    size_t len;

    (void)state;
    write_table(40, 300, order);
    bytes = read_all(&len);
    for (size_t i = 0; i < len; i++) {
        /* A copy of exactly this size, so that a sanitizer sees a step past
         * its end. */
        uint8_t *cut = mem_copy(bytes, i);

        assert_int_equal(walk(cut, i, false), MST_DATA_LOSS);
        assert_int_equal(walk(cut, i, true), MST_DATA_LOSS);
        mem_free(cut);
    }
    mem_free(bytes);
}

static void test_random_bytes_are_reported(void **state)
{
    uint64_t seed = 99;

    (void)state;
    for (int i = 0; i < 2000; i++) {
        size_t len = 48 + rng_next(&seed) % 400;
        uint8_t *bytes = mem_new(len);
        uint64_t magic = TABLE_MAGIC;

        for (size_t k = 0; k < len; k++)
            bytes[k] = (uint8_t)(rng_next(&seed) % 7);
        memcpy(bytes + len - 8, &magic, 8);
        assert_true(walk(bytes, len, true) == MST_DATA_LOSS ||
                    walk(bytes, len, true) == MST_OK);
        mem_free(bytes);
    }
}

static void test_keys_that_do_not_rise_are_reported(void **state)
{
    /* Two entries "b" and "a" in a block, written by hand. */
    static const uint8_t entries[] = { 0, 1, 0, 'b', 0, 1, 0, 'a',
                                       0, 0, 0, 0,   1, 0, 0, 0 };
    static const uint8_t index[] = { 0, 1, 2, 'c', 0, sizeof(entries), 0, 0, 0,
                                     0, 1, 0, 0,   0 };
    struct bytes b = { 0 };
    size_t at;

    (void)state;
    bytes_put(&b, entries, sizeof(entries));
    bytes_put(&b, "\0\0\0\0", TABLE_TRAILER);
    at = b.len;
    bytes_put(&b, index, sizeof(index));
    bytes_put(&b, "\0\0\0\0", TABLE_TRAILER);
    bytes_put(&b, "\0\0", 2);
    bytes_varint(&b, at);
    bytes_varint(&b, sizeof(index));
    while (b.len < at + sizeof(index) + TABLE_TRAILER + TABLE_FOOTER - 8)
        bytes_u8(&b, 0);
    bytes_u64(&b, TABLE_MAGIC);
    assert_int_equal(walk(b.data, b.len, true), MST_DATA_LOSS);
    b.data[3] = 'A'; /* now they rise */
    assert_int_equal(walk(b.data, b.len, true), MST_OK);
    bytes_done(&b);
}

static void test_snappy_unpacks_literals_and_copies(void **state)
{
    /* "abcd" as a literal, 4 back 8 long (two bytes), 1 back 5 (three). */
    static const uint8_t in[] = { 17,   3 << 2, 'a',  'b', 'c', 'd',
                                  0x11, 4,      0x12, 1,   0 };
    char out[18] = "";
    size_t len;

    (void)state;
    assert_true(snappy_length(in, sizeof(in), &len));
    assert_int_equal(len, 17);
    assert_true(snappy_unpack(in, sizeof(in), out, len));
    assert_string_equal(out, "abcdabcdabcdddddd");
    for (size_t cut = 0; cut < sizeof(in); cut++)
        assert_false(snappy_unpack(in, cut, out, 17));
}

static void test_snappy_refuses_absurd_lengths(void **state)
{
    static const uint8_t in[] = { 0xff, 0xff, 0xff, 0xff, 0x0f, 0 };
    size_t len;

    (void)state;
    assert_false(snappy_length(in, sizeof(in), &len));
    assert_false(snappy_length(in, 3, &len));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table_returns_what_was_written),
        cmocka_unit_test(test_table_keys_may_be_any_bytes),
        cmocka_unit_test(test_damage_at_every_byte_is_reported),
        cmocka_unit_test(test_truncation_at_every_byte_is_reported),
        cmocka_unit_test(test_random_bytes_are_reported),
        cmocka_unit_test(test_keys_that_do_not_rise_are_reported),
        cmocka_unit_test(test_snappy_unpacks_literals_and_copies),
        cmocka_unit_test(test_snappy_refuses_absurd_lengths),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
