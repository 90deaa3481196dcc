/*
 * Barriers through their ops. The expected values and texts are what
 * TensorFlow 2.21 gave for the same calls.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "op/harness.h"

static struct resources *shared;
static struct tensor barrier;

static const struct shape scalars[2];
static const int types[] = { DT_FLOAT, DT_INT32 };

static int setup(void **state)
{
    struct harness h;

    (void)state;
    shared = resources_new("ps");
    harness_init(&h, "Barrier");
    harness_share(&h, shared);
    harness_types(&h, "component_types", 2, types);
    harness_shapes(&h, "shapes", 2, scalars);
    harness_str(&h, "shared_name", "b");
    assert_int_equal(harness_run(&h), MST_OK);
    barrier = tensor_ref(&h.out[0].t);
    harness_done(&h);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tensor_unref(&barrier);
    resources_unref(shared);
    return 0;
}

static void insert(int n, const char *const *keys, int column,
                   struct tensor values, enum mst_code code, const char *text)
{
    struct harness h;

    harness_init(&h, "BarrierInsertMany");
    harness_type(&h, "T", values.dtype);
    harness_int(&h, "component_index", column);
    harness_in(&h, tensor_ref(&barrier));
    harness_in(&h, harness_strs(1, (int64_t[]){ n }, keys));
    harness_in(&h, values);
    assert_int_equal(harness_run(&h), code);
    if (text)
        assert_string_equal(h.st.msg, text);
    harness_done(&h);
}

#define KEYS(...)                                                              \
    (const char *[])                                                           \
    {                                                                          \
        __VA_ARGS__                                                            \
    }

static struct tensor floats(int n, const float *v)
{
    return harness_floats(1, (int64_t[]){ n }, v);
}

static struct tensor ints(int n, const int32_t *v)
{
    return harness_int32s(1, (int64_t[]){ n }, v);
}

static void start_take(struct harness *h, int32_t n, bool small)
{
    harness_init(h, "BarrierTakeMany");
    harness_types(h, "component_types", 2, types);
    harness_bool(h, "allow_small_batch", small);
    harness_in(h, tensor_ref(&barrier));
    harness_in(h, harness_int32s(0, NULL, &n));
}

static void refuse_take(int32_t n, bool small, const char *text)
{
    struct harness h;

    start_take(&h, n, small);
    assert_int_equal(harness_run(&h), MST_OUT_OF_RANGE);
    assert_string_equal(h.st.msg, text);
    harness_done(&h);
}

static void assert_key(const struct harness *h, int i, const char *key)
{
    const struct str *s = tensor_str(&h->out[1].t, i);

    assert_int_equal(s->len, strlen(key));
    assert_memory_equal(s->data, key, s->len);
}

static void close_barrier(bool cancel, enum mst_code code)
{
    struct harness h;

    harness_init(&h, "BarrierClose");
    harness_bool(&h, "cancel_pending_enqueues", cancel);
    harness_in(&h, tensor_ref(&barrier));
    assert_int_equal(harness_run(&h), code);
    harness_done(&h);
}

static int32_t size(const char *op)
{
    struct harness h;
    int32_t n;

    harness_init(&h, op);
    harness_in(&h, tensor_ref(&barrier));
    assert_int_equal(harness_run(&h), MST_OK);
    n = *TENSOR_DATA(&h.out[0].t, int32_t);
    harness_done(&h);
    return n;
}

static void test_complete_keys_come_in_order_of_insertion(void **state)
{
    struct harness h;

    (void)state;
    insert(2, KEYS("a", "b"), 0, floats(2, (float[]){ 1, 2 }), MST_OK, NULL);
    insert(1, KEYS("c"), 0, floats(1, (float[]){ 3 }), MST_OK, NULL);
    insert(2, KEYS("c", "a"), 1, ints(2, (int32_t[]){ 30, 10 }), MST_OK, NULL);
    assert_int_equal(size("BarrierReadySize"), 2);
    assert_int_equal(size("BarrierIncompleteSize"), 1);
    start_take(&h, 2, false);
    assert_int_equal(harness_run(&h), MST_OK);
    assert_true(TENSOR_DATA(&h.out[0].t, int64_t)[0] == INT64_MIN);
    assert_true(TENSOR_DATA(&h.out[0].t, int64_t)[1] == INT64_MIN + 1);
    assert_key(&h, 0, "a");
    assert_key(&h, 1, "c");
    assert_float_equal(TENSOR_DATA(&h.out[2].t, float)[1], 3, 0);
    assert_int_equal(TENSOR_DATA(&h.out[3].t, int32_t)[1], 30);
    harness_done(&h);
}

static void test_take_waits_for_the_last_component(void **state)
{
    struct harness h;

    (void)state;
    start_take(&h, 1, false);
    assert_int_equal(harness_run(&h), OP_LATER);
    insert(1, KEYS("a"), 1, ints(1, (int32_t[]){ 1 }), MST_OK, NULL);
    assert_false(h.finished);
    insert(1, KEYS("a"), 0, floats(1, (float[]){ 1 }), MST_OK, NULL);
    assert_int_equal(harness_wait(&h), MST_OK);
    assert_key(&h, 0, "a");
    harness_done(&h);
}

static void test_wrong_inserts_are_refused(void **state)
{
    (void)state;
    insert(1, KEYS("a"), 0, floats(1, (float[]){ 1 }), MST_OK, NULL);
    insert(1, KEYS("a"), 0, floats(1, (float[]){ 1 }), MST_INVALID_ARGUMENT,
           "Key a already has a value for component 0 in barrier b");
    insert(1, KEYS("a"), 2, floats(1, (float[]){ 1 }), MST_INVALID_ARGUMENT,
           "The component ID is out of range 2 > num_components (= 2)");
    insert(1, KEYS("a"), 0, ints(1, (int32_t[]){ 1 }), MST_INVALID_ARGUMENT,
           "Signature mismatch, have: string_ref, string, int32-> expected: "
           "string_ref, string, float->");
    insert(2, KEYS("a", "b"), 1, ints(1, (int32_t[]){ 1 }),
           MST_INVALID_ARGUMENT, NULL);
    insert(0, NULL, 1, ints(0, NULL), MST_OK, NULL);
}

static void test_closed_barrier_takes_only_known_keys(void **state)
{
    struct harness h;

    (void)state;
    insert(1, KEYS("a"), 0, floats(1, (float[]){ 1 }), MST_OK, NULL);
    close_barrier(false, MST_OK);
    close_barrier(false, MST_CANCELLED);
    insert(1, KEYS("z"), 0, floats(1, (float[]){ 1 }), MST_CANCELLED,
           "Barrier b is closed, but attempted to insert a brand new key: z.  "
           "Pending enqueues cancelled: 0.  Insertion index: 0.  Number of "
           "incomplete keys: 1.");
    insert(1, KEYS("a"), 1, ints(1, (int32_t[]){ 1 }), MST_OK, NULL);
    refuse_take(2, false,
                "Barrier 'b' is closed and has insufficient elements "
                "(requested 2, total size 1)");
    start_take(&h, 3, true);
    assert_int_equal(harness_run(&h), MST_OK);
    assert_int_equal(h.out[1].t.count, 1);
    harness_done(&h);
    refuse_take(1, true,
                "Barrier 'b' is closed and has insufficient elements "
                "(requested 0, total size 0)");
    insert(1, KEYS("z"), 0, floats(1, (float[]){ 1 }), MST_CANCELLED,
           "Barrier b is closed.  Pending enqueues cancelled: 0.  Number of "
           "new insertions: 1.  Number of incomplete keys: 0.");
}

static void test_cancelling_close_drops_incomplete_keys(void **state)
{
    struct harness h;

    (void)state;
    insert(1, KEYS("a"), 0, floats(1, (float[]){ 1 }), MST_OK, NULL);
    start_take(&h, 1, false);
    assert_int_equal(harness_run(&h), OP_LATER);
    close_barrier(false, MST_OK);
    assert_false(h.finished);
    close_barrier(true, MST_OK);
    assert_int_equal(harness_wait(&h), MST_OUT_OF_RANGE);
    harness_done(&h);
    assert_int_equal(size("BarrierIncompleteSize"), 0);
    insert(1, KEYS("a"), 1, ints(1, (int32_t[]){ 1 }), MST_CANCELLED, NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_complete_keys_come_in_order_of_insertion),
        TEST(test_take_waits_for_the_last_component),
        TEST(test_wrong_inserts_are_refused),
        TEST(test_closed_barrier_takes_only_known_keys),
        TEST(test_cancelling_close_drops_incomplete_keys),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
