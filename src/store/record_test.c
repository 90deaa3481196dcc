#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "store/event.h"

static char dir[64], path[128];
static struct status st;

static int setup(void **state)
{
    (void)state;
    strcpy(dir, "/tmp/record_test_XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    snprintf(path, sizeof(path), "%s/r", dir);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(dir);
}

static void write_some(void)
{
    struct record_writer w;
    char big[100000];

    memset(big, 'x', sizeof(big));
    assert_int_equal(record_writer_open(&w, path, &st), MST_OK);
    assert_int_equal(record_writer_add(&w, "hello", 5, &st), MST_OK);
    assert_int_equal(record_writer_add(&w, NULL, 0, &st), MST_OK);
    assert_int_equal(record_writer_add(&w, big, sizeof(big), &st), MST_OK);
    assert_int_equal(record_writer_close(&w, &st), MST_OK);
}

static void test_records_come_back(void **state)
{
    static const size_t want[] = { 5, 0, 100000 };
    struct record_reader r;
    struct pb_in c;

    (void)state;
    write_some();
    assert_int_equal(record_reader_open(&r, path, &st), MST_OK);
    for (size_t i = 0; i < COUNT(want); i++) {
        assert_int_equal(record_reader_next(&r, &c, &st), MST_OK);
        assert_int_equal(cursor_left(&c), want[i]);
    }
    assert_int_equal(record_reader_next(&r, &c, &st), MST_OUT_OF_RANGE);
    record_reader_close(&r);
}

/* The code in which reading the whole file ends. */
static enum mst_code read_all(const uint8_t *bytes, size_t len)
{
    struct record_reader r = { 0 };
    struct pb_in c;
    enum mst_code rc;

    file_in_memory(&r.file, "memory", bytes, len);
    do
        rc = record_reader_next(&r, &c, &st);
    while (!rc);
    record_reader_close(&r);
    return rc;
}

static void test_damage_is_reported(void **state)
{
    struct bytes b = { 0 };
    struct file_in in;

    (void)state;
    write_some();
    assert_int_equal(file_in_open(&in, path, &st), MST_OK);
    b.data = mem_new(b.len = (size_t)in.size);
    assert_int_equal(file_in_read(&in, 0, b.data, b.len, &st), MST_OK);
    file_in_close(&in);
    assert_int_equal(read_all(b.data, b.len), MST_OUT_OF_RANGE);
    for (size_t i = 0; i < 80; i++) {
        uint8_t *cut = mem_copy(b.data, i);
        bool whole = !i || i == 21 || i == 37;

        assert_int_equal(read_all(cut, i),
                         whole ? MST_OUT_OF_RANGE : MST_DATA_LOSS);
        mem_free(cut);
        b.data[i] ^= 0x40;
        assert_int_equal(read_all(b.data, b.len), MST_DATA_LOSS);
        b.data[i] ^= 0x40;
    }
    bytes_done(&b);
}

static void test_event_file_begins_with_its_version(void **state)
{
    struct event_scalar s = { "loss", 1.5f };
    struct event_writer w;
    struct record_reader r;
    struct pb_in c;

    (void)state;
    assert_int_equal(event_writer_open(&w, dir, ".1.v2", &st), MST_OK);
    strcpy(path, w.records.path);
    assert_non_null(strstr(path, "/events.out.tfevents."));
    assert_int_equal(event_writer_scalars(&w, 7, &s, 1, &st), MST_OK);
    assert_int_equal(event_writer_close(&w, &st), MST_OK);
    assert_int_equal(record_reader_open(&r, path, &st), MST_OK);
    assert_int_equal(record_reader_next(&r, &c, &st), MST_OK);
    assert_memory_equal(c.at + 9,
                        "\x1a\x0d"
                        "brain.Event:2",
                        15);
    assert_int_equal(record_reader_next(&r, &c, &st), MST_OK);
    assert_memory_equal(c.at + 9,
                        "\x10\x07\x2a\x0d\x0a\x0b\x0a\x04loss\x15"
                        "\x00\x00\xc0\x3f",
                        17);
    record_reader_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_records_come_back, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_damage_is_reported, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_event_file_begins_with_its_version,
                                        setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
