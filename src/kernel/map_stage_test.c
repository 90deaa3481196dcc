#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "op/harness.h"

static struct resources *shared;

static int setup(void **state)
{
    (void)state;
    shared = resources_new("ps");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    resources_unref(shared);
    return 0;
}

static void start(struct harness *h, const char *op)
{
    harness_init(h, op);
    harness_share(h, shared);
    harness_types(h, "dtypes", 1, (int[]){ DT_INT32 });
    harness_int(h, "capacity", 1);
    harness_str(h, "shared_name", "m");
}

static void start_key(struct harness *h, const char *op, int64_t key)
{
    start(h, op);
    harness_in(h, harness_int64s(0, NULL, &key));
    harness_in(h, harness_int32s(1, (int64_t[]){ 1 }, (int32_t[]){ 0 }));
}

static void start_put(struct harness *h, int64_t key, int32_t x)
{
    start_key(h, "MapStage", key);
    harness_types(h, "fake_dtypes", 1, (int[]){ DT_INT32 });
    harness_in(h, harness_int32s(0, NULL, &x));
}

static void put(int64_t key, int32_t x)
{
    struct harness h;

    start_put(&h, key, x);
    assert_int_equal(harness_run(&h), MST_OK);
    harness_done(&h);
}

static void take(int64_t key, int32_t x)
{
    struct harness h;

    start_key(&h, "MapUnstage", key);
    assert_int_equal(harness_run(&h), MST_OK);
    assert_int_equal(*TENSOR_DATA(&h.out[0].t, int32_t), x);
    harness_done(&h);
}

static void test_full_map_lets_puts_wait(void **state)
{
    struct harness h;

    (void)state;
    put(5, 1);
    start_put(&h, 3, 2);
    assert_int_equal(harness_run(&h), OP_LATER);
    take(5, 1);
    assert_int_equal(harness_wait(&h), MST_OK);
    harness_done(&h);
    take(3, 2);
}

static void test_absent_key_is_waited_for(void **state)
{
    struct harness seven, peek;

    (void)state;
    start_key(&seven, "MapUnstage", 7);
    assert_int_equal(harness_run(&seven), OP_LATER);
    start_key(&peek, "MapPeek", 8);
    assert_int_equal(harness_run(&peek), OP_LATER);
    put(8, 1);
    assert_int_equal(harness_wait(&peek), MST_OK);
    assert_false(seven.finished);
    harness_done(&peek);
    take(8, 1);
    put(7, 2);
    assert_int_equal(harness_wait(&seven), MST_OK);
    assert_int_equal(*TENSOR_DATA(&seven.out[0].t, int32_t), 2);
    harness_done(&seven);
}

static void test_cancelled_waits_leave_nothing(void **state)
{
    struct harness h, size;

    (void)state;
    put(1, 1);
    start_put(&h, 2, 2);
    assert_int_equal(harness_run(&h), OP_LATER);
    cancel_all(&h.cancel);
    assert_int_equal(harness_wait(&h), MST_CANCELLED);
    harness_done(&h);
    start_key(&h, "MapUnstage", 9);
    assert_int_equal(harness_run(&h), OP_LATER);
    cancel_all(&h.cancel);
    assert_int_equal(harness_wait(&h), MST_CANCELLED);
    harness_done(&h);
    start(&size, "MapSize");
    assert_int_equal(harness_run(&size), MST_OK);
    assert_int_equal(*TENSOR_DATA(&size.out[0].t, int32_t), 1);
    harness_done(&size);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_full_map_lets_puts_wait, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_absent_key_is_waited_for, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_cancelled_waits_leave_nothing,
                                        setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
