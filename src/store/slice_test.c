#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store/slice.h"

static struct shape whole, shape;
static struct slice slice;
static struct status st;

static enum mst_code parse(const char *text)
{
    return slice_parse_spec(text, strlen(text), &whole, &slice, &shape, &st);
}

static void test_spec_is_parsed(void **state)
{
    char text[SLICE_TEXT_MAX];

    (void)state;
    assert_int_equal(parse("4 5 0,2:-"), MST_OK);
    assert_int_equal(whole.ndim, 2);
    assert_int_equal(whole.dims[1], 5);
    assert_int_equal(shape.dims[0], 2);
    assert_int_equal(shape.dims[1], 5);
    assert_int_equal(slice.length[1], SLICE_FULL);
    assert_string_equal(slice_text(&slice, text), "0,2:-");
    assert_int_equal(parse("7 3,4"), MST_OK);
    assert_int_equal(slice.start[0], 3);
}

/* Codes and texts that TensorFlow 2.21 gave for the same specs. */
static void test_bad_specs_give_tensorflows_texts(void **state)
{
    static const struct {
        const char *spec;
        enum mst_code code;
        const char *text;
    } bad[] = {
        { "2", MST_INVALID_ARGUMENT,
          "Need least two elements in shape_and_slice specification: 2" },
        { "2 x 0,1:0,1", MST_INVALID_ARGUMENT,
          "Non numerical dimension in shape_and_slice: 2 x 0,1:0,1" },
        { "2  3 0,1:0,1", MST_INVALID_ARGUMENT,
          "Non numerical dimension in shape_and_slice: 2  3 0,1:0,1" },
        { " -", MST_INVALID_ARGUMENT,
          "Non numerical dimension in shape_and_slice:  -" },
        { "2 3 0,1:0", MST_INVALID_ARGUMENT,
          "Expected a pair of numbers or '-' but got '0': string = 0,1:0" },
        { "2 3 0,0:0,1", MST_INVALID_ARGUMENT,
          "Expected non-negative start and positive length but got start = 0, "
          "length = 0: string = 0,0:0,1" },
        { "2 3 -", MST_INTERNAL,
          "Mismatching ranks: shape = [2,3], slice = -" },
        { "2 3 ", MST_INTERNAL, "Mismatching ranks: shape = [2,3], slice = " },
        { "2 3 0,1:5,1", MST_INTERNAL,
          "Extent in dimension 1 out of bounds: shape = [2,3], slice = "
          "0,1:5,1" },
        { "2 3 0,1:0,9223372036854775807", MST_INTERNAL,
          "Extent in dimension 1 out of bounds: shape = [2,3], slice = "
          "0,1:0,9223372036854775807" },
        { "-2 3 0,1:0,1", MST_INVALID_ARGUMENT,
          "Invalid dimension in shape_and_slice: -2 3 0,1:0,1" },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_int_equal(parse(bad[i].spec), bad[i].code);
        assert_string_equal(st.msg, bad[i].text);
    }
    assert_int_equal(parse("1 1 1 1 1 1 1 1 1 1 1 1 1 -:-"), MST_UNIMPLEMENTED);
}

static void check_key(int64_t start, int64_t length, const void *want,
                      size_t want_len)
{
    struct slice s = { 1, { start }, { length } };
    struct bytes key = { 0 };

    slice_put_key(&key, "", 0, &s);
    /* Before it: zero, the empty name's end, the rank. */
    assert_int_equal(key.len, 5 + want_len);
    assert_memory_equal(key.data + 5, want, want_len);
    bytes_done(&key);
}

/* Bytes as TensorFlow wrote them. */
static void test_keys_are_tensorflows(void **state)
{
    static const uint8_t name[] = "\x00"
                                  "c/\x00\xff\xff\x00W\x00\x01\x01\x02"
                                  "\x80\x82\x80\x7f";
    struct slice s = { 2, { 0, 0 }, { 2, SLICE_FULL } };
    struct bytes key = { 0 };

    (void)state;
    check_key(75, 10000, "\xc0\x4b\xe0\x27\x10", 5);
    check_key(2000000, 150000000, "\xf0\x1e\x84\x80\xf8\x08\xf0\xd1\x80", 9);
    check_key(63, 64, "\xbf\xc0\x40", 3);
    check_key(0, INT64_MAX, "\x80\xff\xc0\x7f\xff\xff\xff\xff\xff\xff\xff", 11);
    slice_put_key(&key, "c/\0\xffW", 5, &s);
    assert_int_equal(key.len, sizeof(name) - 1);
    assert_memory_equal(key.data, name, sizeof(name) - 1);
    bytes_done(&key);
}

static void test_proto_round_trip(void **state)
{
    struct slice s = { 3, { 0, 5, 0 }, { SLICE_FULL, 7, 9 } }, back;
    struct pb_out o;

    (void)state;
    pb_out_init(&o);
    slice_put_proto(&o, &s);
    assert_true(slice_get_proto(pb_in(o.data, o.len), &back));
    assert_int_equal(back.ndim, 3);
    assert_memory_equal(back.start, s.start, 3 * sizeof(s.start[0]));
    assert_memory_equal(back.length, s.length, 3 * sizeof(s.start[0]));
    for (size_t cut = 1; cut < o.len; cut++)
        (void)slice_get_proto(pb_in(o.data, cut), &back);
    pb_out_done(&o);
}

/* Copies by runs and, the slow way, by every index. */
static void check_walk(const struct slice *from, const struct slice *to)
{
    int16_t want[512], got[512];
    struct slice_walk w;
    int64_t last = -1;

    for (size_t i = 0; i < COUNT(want); i++)
        want[i] = got[i] = -1;
    for (int64_t i = 0; i < 8 * 8 * 8; i++) {
        int64_t at[3] = { i / 64, i / 8 % 8, i % 8 }, f = 0, t = 0;
        bool in = true;

        for (int d = 0; d < 3; d++) {
            int64_t a = at[d] - from->start[d], b = at[d] - to->start[d];

            in = in && a >= 0 && a < from->length[d] && b >= 0 &&
                 b < to->length[d];
            f = f * from->length[d] + a;
            t = t * to->length[d] + b;
        }
        if (in)
            want[t] = (int16_t)f;
    }
    slice_walk_init(&w, from, to);
    while (slice_walk_next(&w)) {
        assert_true(w.from > last);
        last = w.from + w.run - 1;
        for (int64_t i = 0; i < w.run; i++)
            got[w.to + i] = (int16_t)(w.from + i);
    }
    assert_memory_equal(want, got, sizeof(want));
}

static void test_walk_finds_what_both_have(void **state)
{
    static const struct slice slices[] = {
        { 3, { 0, 0, 0 }, { 8, 8, 8 } }, { 3, { 2, 0, 0 }, { 3, 8, 8 } },
        { 3, { 0, 3, 0 }, { 8, 2, 8 } }, { 3, { 0, 0, 5 }, { 8, 8, 3 } },
        { 3, { 1, 2, 3 }, { 4, 4, 4 } }, { 3, { 4, 4, 4 }, { 4, 4, 4 } },
        { 3, { 7, 7, 7 }, { 1, 1, 1 } }, { 3, { 0, 0, 0 }, { 2, 8, 8 } },
        { 3, { 0, 0, 0 }, { 8, 8, 0 } },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(slices); i++)
        for (size_t j = 0; j < COUNT(slices); j++)
            check_walk(&slices[i], &slices[j]);
}

static void test_walk_makes_one_run_of_rows(void **state)
{
    struct slice rows = { 3, { 2, 0, 0 }, { 3, 8, 8 } };
    struct slice all = { 3, { 0, 0, 0 }, { 8, 8, 8 } };
    struct slice scalar = { 0 };
    struct slice_walk w;

    (void)state;
    slice_walk_init(&w, &rows, &all);
    assert_true(slice_walk_next(&w));
    assert_int_equal(w.run, 3 * 64);
    assert_int_equal(w.to, 2 * 64);
    assert_false(slice_walk_next(&w));
    slice_walk_init(&w, &scalar, &scalar);
    assert_true(slice_walk_next(&w));
    assert_int_equal(w.run, 1);
    assert_false(slice_walk_next(&w));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spec_is_parsed),
        cmocka_unit_test(test_bad_specs_give_tensorflows_texts),
        cmocka_unit_test(test_keys_are_tensorflows),
        cmocka_unit_test(test_proto_round_trip),
        cmocka_unit_test(test_walk_finds_what_both_have),
        cmocka_unit_test(test_walk_makes_one_run_of_rows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
