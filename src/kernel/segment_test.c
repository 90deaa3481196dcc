#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "op/harness.h"

static enum mst_code segment(struct harness *h, const char *op, int n,
                             const float *data, const int32_t *ids)
{
    int64_t count = n;

    harness_init(h, op);
    harness_type(h, "T", DT_FLOAT);
    harness_type(h, "Tindices", DT_INT32);
    harness_in(h, harness_floats(1, &count, data));
    harness_in(h, harness_int32s(1, &count, ids));
    if (!strncmp(op, "Unsorted", 8))
        harness_in(h, harness_int32s(0, NULL, (int32_t[]){ 3 }));
    return harness_run(h);
}

static void test_gaps_get_the_neutral_value(void **state)
{
    struct harness h;

    (void)state;
    assert_int_equal(segment(&h, "SegmentMean", 3, (float[]){ 2, 4, 5 },
                             (int32_t[]){ 1, 1, 3 }),
                     MST_OK);
    assert_int_equal(h.out[0].t.count, 4);
    assert_memory_equal(h.out[0].t.data, ((float[]){ 0, 3, 0, 5 }), 16);
    harness_done(&h);
    assert_int_equal(
        segment(&h, "SegmentProd", 2, (float[]){ 2, 4 }, (int32_t[]){ 0, 2 }),
        MST_OK);
    assert_memory_equal(h.out[0].t.data, ((float[]){ 2, 1, 4 }), 12);
    harness_done(&h);
}

static void test_unsorted_ids_must_be_sorted_where_asked(void **state)
{
    struct harness h;

    (void)state;
    assert_int_equal(segment(&h, "SegmentSum", 3, (float[]){ 1, 2, 3 },
                             (int32_t[]){ 0, 2, 1 }),
                     MST_INVALID_ARGUMENT);
    assert_string_equal(h.st.msg, "segment ids are not increasing");
    harness_done(&h);
}

static void test_negative_ids_are_left_out(void **state)
{
    struct harness h;

    (void)state;
    assert_int_equal(segment(&h, "UnsortedSegmentSum", 4,
                             (float[]){ 1, 2, 3, 4 },
                             (int32_t[]){ 2, -1, 0, 2 }),
                     MST_OK);
    assert_memory_equal(h.out[0].t.data, ((float[]){ 3, 0, 5 }), 12);
    harness_done(&h);
}

static void test_an_id_beyond_the_end_is_named(void **state)
{
    struct harness h;

    (void)state;
    assert_int_equal(segment(&h, "UnsortedSegmentSum", 2, (float[]){ 1, 2 },
                             (int32_t[]){ 0, 3 }),
                     MST_INVALID_ARGUMENT);
    assert_string_equal(h.st.msg, "segment_ids[1] = 3 is out of range [0, 3)");
    harness_done(&h);
}

static void test_wide_rows_are_split_by_columns(void **state)
{
    enum { ROWS = 40, COLS = 3001 };
    struct pool *pool = pool_new(3);
    int64_t dims[] = { ROWS, COLS }, n = ROWS;
    struct tensor t = harness_floats(2, dims, (float[ROWS * COLS]){ 0 });
    int32_t ids[ROWS];
    struct harness h;

    (void)state;
    for (int i = 0; i < ROWS * COLS; i++)
        TENSOR_DATA(&t, float)[i] = (float)(i % COLS);
    for (int i = 0; i < ROWS; i++)
        ids[i] = i / 8;
    harness_init(&h, "SegmentSum");
    h.env.pool = pool;
    harness_type(&h, "T", DT_FLOAT);
    harness_type(&h, "Tindices", DT_INT32);
    harness_in(&h, t);
    harness_in(&h, harness_int32s(1, &n, ids));
    assert_int_equal(harness_run(&h), MST_OK);
    for (int i = 0; i < 5 * COLS; i++)
        assert_true(TENSOR_DATA(&h.out[0].t, float)[i] ==
                    (float)(8 * (i % COLS)));
    harness_done(&h);
    pool_free(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gaps_get_the_neutral_value),
        cmocka_unit_test(test_unsorted_ids_must_be_sorted_where_asked),
        cmocka_unit_test(test_negative_ids_are_left_out),
        cmocka_unit_test(test_an_id_beyond_the_end_is_named),
        cmocka_unit_test(test_wide_rows_are_split_by_columns),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
