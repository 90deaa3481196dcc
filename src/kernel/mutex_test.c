#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "op/harness.h"

static struct resources *shared;
static struct tensor mutex;

static int setup(void **state)
{
    struct harness h;

    (void)state;
    shared = resources_new("ps");
    harness_init(&h, "MutexV2");
    harness_share(&h, shared);
    assert_int_equal(harness_run(&h), MST_OK);
    mutex = tensor_ref(&h.out[0].t);
    harness_done(&h);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tensor_unref(&mutex);
    resources_unref(shared);
    return 0;
}

static void start(struct harness *h)
{
    harness_init(h, "MutexLock");
    harness_in(h, tensor_ref(&mutex));
}

static void test_lock_lasts_as_long_as_its_value(void **state)
{
    struct harness a, b;
    struct tensor held;

    (void)state;
    start(&a);
    assert_int_equal(harness_run(&a), MST_OK);
    held = tensor_ref(&a.out[0].t);
    harness_done(&a);
    start(&b);
    assert_int_equal(harness_run(&b), OP_LATER);
    assert_false(b.finished);
    tensor_unref(&held);
    assert_int_equal(harness_wait(&b), MST_OK);
    harness_done(&b);
    start(&a);
    assert_int_equal(harness_run(&a), MST_OK);
    harness_done(&a);
}

static void test_waiting_can_be_cancelled(void **state)
{
    struct harness a, b;

    (void)state;
    start(&a);
    assert_int_equal(harness_run(&a), MST_OK);
    start(&b);
    assert_int_equal(harness_run(&b), OP_LATER);
    cancel_all(&b.cancel);
    assert_int_equal(harness_wait(&b), MST_CANCELLED);
    harness_done(&b);
    harness_done(&a);
}

#define THREADS 4
#define ROUNDS  200

static int inside, rounds; /* guarded by the mutex that is tested */

static void *worker(void *pool)
{
    for (int i = 0; i < ROUNDS; i++) {
        struct harness h;

        start(&h);
        h.env.pool = pool;
        if (harness_run(&h) == OP_LATER)
            assert_int_equal(harness_wait(&h), MST_OK);
        assert_int_equal(++inside, 1);
        rounds++;
        inside--;
        harness_done(&h);
    }
    return NULL;
}

static void test_one_at_a_time(void **state)
{
    struct pool *pool = pool_new(2);
    pthread_t t[THREADS];

    (void)state;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&t[i], NULL, worker, pool);
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    assert_int_equal(rounds, THREADS * ROUNDS);
    pool_free(pool);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_lock_lasts_as_long_as_its_value),
        TEST(test_waiting_can_be_cancelled),
        TEST(test_one_at_a_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
