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
    harness_int(h, "capacity", 2);
    harness_int(h, "memory_limit", 1000);
    harness_str(h, "shared_name", "s");
}

static void start_put(struct harness *h, int32_t x)
{
    start(h, "Stage");
    harness_in(h, harness_int32s(0, NULL, &x));
}

static void put(int32_t x)
{
    struct harness h;

    start_put(&h, x);
    assert_int_equal(harness_run(&h), MST_OK);
    harness_done(&h);
}

static void take(int32_t x)
{
    struct harness h;

    start(&h, "Unstage");
    assert_int_equal(harness_run(&h), MST_OK);
    assert_int_equal(*TENSOR_DATA(&h.out[0].t, int32_t), x);
    harness_done(&h);
}

static void test_full_area_lets_puts_wait(void **state)
{
    struct harness h;

    (void)state;
    put(1);
    put(2);
    start_put(&h, 3);
    assert_int_equal(harness_run(&h), OP_LATER);
    take(1);
    assert_int_equal(harness_wait(&h), MST_OK);
    harness_done(&h);
    take(2);
    take(3);
}

static void test_who_looks_far_does_not_keep_others(void **state)
{
    struct harness peek, take_;

    (void)state;
    start(&peek, "StagePeek");
    harness_in(&peek, harness_int32s(0, NULL, (int32_t[]){ 1 }));
    assert_int_equal(harness_run(&peek), OP_LATER);
    start(&take_, "Unstage");
    assert_int_equal(harness_run(&take_), OP_LATER);
    put(1);
    assert_int_equal(harness_wait(&take_), MST_OK);
    harness_done(&take_);
    put(2);
    assert_false(peek.finished);
    put(3);
    assert_int_equal(harness_wait(&peek), MST_OK);
    assert_int_equal(*TENSOR_DATA(&peek.out[0].t, int32_t), 3);
    harness_done(&peek);
    take(2);
}

static void test_cancelled_put_leaves_nothing(void **state)
{
    struct harness h;

    (void)state;
    put(1);
    put(2);
    start_put(&h, 3);
    assert_int_equal(harness_run(&h), OP_LATER);
    cancel_all(&h.cancel);
    assert_int_equal(harness_wait(&h), MST_CANCELLED);
    harness_done(&h);
    take(1);
    take(2);
    start(&h, "StageSize");
    assert_int_equal(harness_run(&h), MST_OK);
    assert_int_equal(*TENSOR_DATA(&h.out[0].t, int32_t), 0);
    harness_done(&h);
}

static void test_too_many_bytes_are_refused(void **state)
{
    struct status st = STATUS_INIT;
    struct tensor t;
    struct harness h;

    (void)state;
    assert_int_equal(tensor_new(&t, DT_INT32, 1, (int64_t[]){ 251 }, &st),
                     MST_OK);
    start(&h, "Stage");
    harness_in(&h, t);
    assert_int_equal(harness_run(&h), MST_RESOURCE_EXHAUSTED);
    assert_string_equal(h.st.msg,
                        "Attempted to insert tensors with combined size of "
                        "'1004' bytes into Staging Area with a memory limit of "
                        "'1000'.");
    harness_done(&h);
}

static void test_clear_makes_room(void **state)
{
    struct harness wait, h;

    (void)state;
    put(1);
    put(2);
    start_put(&wait, 3);
    assert_int_equal(harness_run(&wait), OP_LATER);
    start(&h, "StageClear");
    assert_int_equal(harness_run(&h), MST_OK);
    harness_done(&h);
    assert_int_equal(harness_wait(&wait), MST_OK);
    harness_done(&wait);
    take(3);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_full_area_lets_puts_wait),
        TEST(test_who_looks_far_does_not_keep_others),
        TEST(test_cancelled_put_leaves_nothing),
        TEST(test_too_many_bytes_are_refused),
        TEST(test_clear_makes_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
