/*
 * Queues through their ops. The expected orders and texts are what TensorFlow
 * 2.21 gave for the same calls.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "kernel/queue.h"
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

static struct tensor ints(int n, const int32_t *values)
{
    return harness_int32s(1, (int64_t[]){ n }, values);
}

static struct tensor one(int32_t value)
{
    return harness_int32s(0, NULL, &value);
}

/* Runs a queue's node; its handle, or none when it failed with `text`. */
static struct tensor make(const char *op, const char *name, int64_t capacity,
                          int shape_count, const struct shape *shapes,
                          const char *text)
{
    struct tensor handle = { 0 };
    struct harness h;

    harness_init(&h, op);
    harness_share(&h, shared);
    harness_types(&h, "component_types", 1, (int[]){ DT_INT32 });
    harness_shapes(&h, "shapes", shape_count, shapes);
    harness_int(&h, "capacity", capacity);
    harness_str(&h, "shared_name", name);
    if (strstr(op, "Shuffle")) {
        harness_int(&h, "seed", 7);
        harness_int(&h, "seed2", 9);
    }
    if (text) {
        assert_int_equal(harness_run(&h), MST_INVALID_ARGUMENT);
        assert_string_equal(h.st.msg, text);
    } else {
        assert_int_equal(harness_run(&h), MST_OK);
        handle = tensor_ref(&h.out[0].t);
    }
    harness_done(&h);
    return handle;
}

static const struct shape scalar = { 0 };

static struct tensor fifo(const char *name, int64_t capacity)
{
    return make("FIFOQueueV2", name, capacity, 1, &scalar, NULL);
}

static void start(struct harness *h, const char *op, const struct tensor *q)
{
    harness_init(h, op);
    harness_share(h, shared);
    if (strstr(op, "Enqueue"))
        harness_types(h, "Tcomponents", 1, (int[]){ DT_INT32 });
    if (strstr(op, "Dequeue"))
        harness_types(h, "component_types", 1, (int[]){ DT_INT32 });
    harness_in(h, tensor_ref(q));
}

/* One op to its end, which is at once. */
static void expect(const char *op, const struct tensor *q, struct tensor in,
                   enum mst_code code, const char *text)
{
    struct harness h;

    start(&h, op, q);
    if (tensor_set(&in))
        harness_in(&h, in);
    assert_int_equal(harness_run(&h), code);
    if (text)
        assert_string_equal(h.st.msg, text);
    harness_done(&h);
}

static const struct tensor none;

static void put(const struct tensor *q, int32_t value)
{
    expect("QueueEnqueueV2", q, one(value), MST_OK, NULL);
}

static int32_t size(const struct tensor *q)
{
    struct harness h;
    int32_t n;

    start(&h, "QueueSizeV2", q);
    assert_int_equal(harness_run(&h), MST_OK);
    n = *TENSOR_DATA(&h.out[0].t, int32_t);
    harness_done(&h);
    return n;
}

static void assert_ints(const struct harness *h, int n, const int32_t *values)
{
    const struct tensor *t = &h->out[0].t;

    assert_int_equal(t->count, n);
    assert_memory_equal(t->data, values, (size_t)n * sizeof(*values));
}

static void take(const struct tensor *q, int n, const int32_t *values)
{
    struct harness h;
    enum mst_code rc;

    start(&h, "QueueDequeueManyV2", q);
    harness_in(&h, one(n));
    rc = harness_run(&h);
    if (rc == OP_LATER) { /* some rows came from those who wait to put */
        assert_true(h.finished);
        rc = harness_wait(&h);
    }
    assert_int_equal(rc, MST_OK);
    assert_ints(&h, n, values);
    harness_done(&h);
}

static void test_fifo_keeps_order(void **state)
{
    struct tensor q = fifo("q", -1);

    (void)state;
    put(&q, 5);
    expect("QueueEnqueueManyV2", &q, ints(3, (int32_t[]){ 6, 7, 8 }), MST_OK,
           NULL);
    assert_int_equal(size(&q), 4);
    take(&q, 3, (int32_t[]){ 5, 6, 7 });
    take(&q, 1, (int32_t[]){ 8 });
    take(&q, 0, NULL);
    tensor_unref(&q);
}

static void test_old_and_new_form_are_one_queue(void **state)
{
    struct tensor a = make("FIFOQueue", "q", -1, 1, &scalar, NULL);
    struct tensor b = fifo("q", -1);

    (void)state;
    expect("QueueEnqueue", &a, one(3), MST_OK, NULL);
    take(&b, 1, (int32_t[]){ 3 });
    tensor_unref(&a);
    tensor_unref(&b);
}

static void test_full_queue_lets_puts_wait_in_order(void **state)
{
    struct tensor q = fifo("q", 2);
    struct harness many, single;

    (void)state;
    put(&q, 1);
    start(&many, "QueueEnqueueManyV2", &q);
    harness_in(&many, ints(3, (int32_t[]){ 2, 3, 4 }));
    assert_int_equal(harness_run(&many), OP_LATER);
    start(&single, "QueueEnqueueV2", &q);
    harness_in(&single, one(5));
    assert_int_equal(harness_run(&single), OP_LATER);
    assert_false(many.finished);
    take(&q, 1, (int32_t[]){ 1 });
    assert_false(many.finished);
    take(&q, 1, (int32_t[]){ 2 });
    assert_int_equal(harness_wait(&many), MST_OK);
    assert_false(single.finished);
    take(&q, 3, (int32_t[]){ 3, 4, 5 });
    assert_int_equal(harness_wait(&single), MST_OK);
    harness_done(&many);
    harness_done(&single);
    tensor_unref(&q);
}

static void test_batch_may_be_larger_than_capacity(void **state)
{
    struct tensor q = fifo("q", 2);
    struct harness puts;

    (void)state;
    start(&puts, "QueueEnqueueManyV2", &q);
    harness_in(&puts, ints(5, (int32_t[]){ 1, 2, 3, 4, 5 }));
    assert_int_equal(harness_run(&puts), OP_LATER);
    take(&q, 5, (int32_t[]){ 1, 2, 3, 4, 5 });
    assert_int_equal(harness_wait(&puts), MST_OK);
    harness_done(&puts);
    tensor_unref(&q);
}

static void test_waiting_takes_are_served_in_order(void **state)
{
    struct tensor q = fifo("q", -1);
    struct harness a, b;

    (void)state;
    start(&a, "QueueDequeueManyV2", &q);
    harness_in(&a, one(2));
    assert_int_equal(harness_run(&a), OP_LATER);
    start(&b, "QueueDequeueV2", &q);
    assert_int_equal(harness_run(&b), OP_LATER);
    put(&q, 1);
    assert_false(a.finished || b.finished);
    assert_int_equal(size(&q), 0); /* the batch has it */
    put(&q, 2);
    assert_int_equal(harness_wait(&a), MST_OK);
    assert_ints(&a, 2, (int32_t[]){ 1, 2 });
    assert_false(b.finished);
    put(&q, 3);
    assert_int_equal(harness_wait(&b), MST_OK);
    assert_ints(&b, 1, (int32_t[]){ 3 });
    harness_done(&a);
    harness_done(&b);
    tensor_unref(&q);
}

static void test_closed_queue_drains_then_ends(void **state)
{
    struct tensor q = fifo("qq", -1);

    (void)state;
    put(&q, 1);
    expect("QueueCloseV2", &q, none, MST_OK, NULL);
    expect("QueueCloseV2", &q, none, MST_CANCELLED,
           "Queue 'qq' is already closed.");
    expect("QueueEnqueueV2", &q, one(1), MST_CANCELLED,
           "FIFOQueue 'qq' is closed.");
    expect("QueueEnqueueManyV2", &q, ints(0, NULL), MST_OK, NULL);
    expect("QueueDequeueManyV2", &q, one(2), MST_OUT_OF_RANGE,
           "FIFOQueue 'qq' is closed and has insufficient elements (requested "
           "2, current size 1)");
    expect("QueueDequeueV2", &q, none, MST_OK, NULL);
    expect("QueueDequeueV2", &q, none, MST_OUT_OF_RANGE,
           "FIFOQueue 'qq' is closed and has insufficient elements (requested "
           "1, current size 0)");
    tensor_unref(&q);
}

static void test_close_ends_waiting_batches(void **state)
{
    struct tensor q = fifo("q", -1);
    struct harness many, up_to;

    (void)state;
    start(&many, "QueueDequeueManyV2", &q);
    harness_in(&many, one(3));
    assert_int_equal(harness_run(&many), OP_LATER);
    start(&up_to, "QueueDequeueUpToV2", &q);
    harness_in(&up_to, one(3));
    assert_int_equal(harness_run(&up_to), OP_LATER);
    expect("QueueEnqueueManyV2", &q, ints(2, (int32_t[]){ 1, 2 }), MST_OK,
           NULL);
    expect("QueueCloseV2", &q, none, MST_OK, NULL);
    assert_int_equal(harness_wait(&many), MST_OUT_OF_RANGE);
    assert_string_equal(many.st.msg,
                        "FIFOQueue 'q' is closed and has insufficient elements "
                        "(requested 1, current size 0)");
    assert_int_equal(harness_wait(&up_to), MST_OK);
    assert_ints(&up_to, 2, (int32_t[]){ 1, 2 });
    harness_done(&many);
    harness_done(&up_to);
    tensor_unref(&q);
}

static void test_close_waits_for_earlier_puts(void **state)
{
    struct tensor q = fifo("q", 1);
    struct harness puts, close;

    (void)state;
    start(&puts, "QueueEnqueueManyV2", &q);
    harness_in(&puts, ints(2, (int32_t[]){ 1, 2 }));
    assert_int_equal(harness_run(&puts), OP_LATER);
    start(&close, "QueueCloseV2", &q);
    assert_int_equal(harness_run(&close), OP_LATER);
    take(&q, 1, (int32_t[]){ 1 });
    assert_int_equal(harness_wait(&puts), MST_OK);
    assert_int_equal(harness_wait(&close), MST_OK);
    take(&q, 1, (int32_t[]){ 2 });
    harness_done(&puts);
    harness_done(&close);
    tensor_unref(&q);
}

static void test_close_can_cancel_waiting_puts(void **state)
{
    struct tensor q = fifo("q", 1);
    struct harness puts, close;

    (void)state;
    start(&puts, "QueueEnqueueManyV2", &q);
    harness_in(&puts, ints(2, (int32_t[]){ 1, 2 }));
    assert_int_equal(harness_run(&puts), OP_LATER);
    start(&close, "QueueCloseV2", &q);
    harness_bool(&close, "cancel_pending_enqueues", true);
    assert_int_equal(harness_run(&close), MST_OK);
    assert_int_equal(harness_wait(&puts), MST_CANCELLED);
    assert_string_equal(puts.st.msg, "Enqueue operation was cancelled");
    harness_done(&puts);
    harness_done(&close);
    tensor_unref(&q);
}

static void test_cancelled_take_gives_back_and_lets_others_on(void **state)
{
    struct tensor q = fifo("q", -1);
    struct harness many, next;

    (void)state;
    start(&many, "QueueDequeueManyV2", &q);
    harness_in(&many, one(3));
    assert_int_equal(harness_run(&many), OP_LATER);
    put(&q, 1);
    start(&next, "QueueDequeueV2", &q);
    assert_int_equal(harness_run(&next), OP_LATER);
    cancel_all(&many.cancel);
    assert_int_equal(harness_wait(&many), MST_CANCELLED);
    assert_string_equal(many.st.msg, "Dequeue operation was cancelled");
    assert_int_equal(harness_wait(&next), MST_OK);
    assert_ints(&next, 1, (int32_t[]){ 1 });
    harness_done(&many);
    harness_done(&next);
    tensor_unref(&q);
}

static void test_step_that_is_cancelled_does_not_wait(void **state)
{
    struct tensor q = fifo("q", -1);
    struct harness h;

    (void)state;
    start(&h, "QueueDequeueV2", &q);
    cancel_all(&h.cancel);
    assert_int_equal(harness_run(&h), MST_CANCELLED);
    assert_string_equal(h.st.msg, "Dequeue operation was cancelled");
    harness_done(&h);
    tensor_unref(&q);
}

static void test_shuffle_follows_tensorflows_stream(void **state)
{
    struct tensor q = make("RandomShuffleQueueV2", "q", -1, 1, &scalar, NULL);
    int32_t in[20];

    (void)state;
    for (int i = 0; i < 20; i++)
        in[i] = i;
    expect("QueueEnqueueManyV2", &q, ints(20, in), MST_OK, NULL);
    take(&q, 20, (int32_t[]){ 11, 16, 14, 4, 9, 12, 8,  2, 1,  15,
                              19, 6,  18, 3, 0, 10, 17, 7, 13, 5 });
    tensor_unref(&q);
}

static void test_priority_orders_as_tensorflow_with_ties(void **state)
{
    struct tensor q = make("PriorityQueueV2", "q", -1, 1, &scalar, NULL);
    int64_t priorities[] = { 3, 1, 2, 1, 3, 1, 1 };
    struct harness h;

    (void)state;
    harness_init(&h, "QueueEnqueueManyV2");
    harness_types(&h, "Tcomponents", 2, (int[]){ DT_INT64, DT_INT32 });
    harness_in(&h, tensor_ref(&q));
    harness_in(&h, harness_int64s(1, (int64_t[]){ 7 }, priorities));
    harness_in(&h, ints(7, (int32_t[]){ 'a', 'b', 'c', 'd', 'e', 'f', 'g' }));
    assert_int_equal(harness_run(&h), MST_OK);
    harness_done(&h);
    harness_init(&h, "QueueDequeueManyV2");
    harness_types(&h, "component_types", 2, (int[]){ DT_INT64, DT_INT32 });
    harness_in(&h, tensor_ref(&q));
    harness_in(&h, one(7));
    assert_int_equal(harness_run(&h), MST_OK);
    for (int i = 0; i < 7; i++)
        assert_int_equal(TENSOR_DATA(&h.out[1].t, int32_t)[i], "bfgdcae"[i]);
    harness_done(&h);
    tensor_unref(&q);
}

static void test_padding_fills_with_zeros(void **state)
{
    struct shape s = { .ndim = 2, .dims = { -1, 2 } };
    struct tensor q = make("PaddingFIFOQueueV2", "q", -1, 1, &s, NULL);
    struct harness h;

    (void)state;
    expect("QueueEnqueueV2", &q,
           harness_int32s(2, (int64_t[]){ 1, 2 }, (int32_t[]){ 1, 2 }), MST_OK,
           NULL);
    expect("QueueEnqueueV2", &q,
           harness_int32s(2, (int64_t[]){ 2, 2 }, (int32_t[]){ 3, 4, 5, 6 }),
           MST_OK, NULL);
    expect("QueueEnqueueV2", &q, harness_int32s(2, (int64_t[]){ 0, 2 }, NULL),
           MST_OK, NULL);
    expect("QueueEnqueueV2", &q, ints(3, (int32_t[]){ 1, 2, 3 }),
           MST_INVALID_ARGUMENT,
           "Shape mismatch in tuple component 0. Expected [?,2], got [3]");
    start(&h, "QueueDequeueManyV2", &q);
    harness_in(&h, one(3));
    assert_int_equal(harness_run(&h), MST_OK);
    assert_int_equal(h.out[0].t.ndim, 3);
    assert_ints(&h, 12, (int32_t[]){ 1, 2, 0, 0, 3, 4, 5, 6, 0, 0, 0, 0 });
    harness_done(&h);
    tensor_unref(&q);
}

static void test_second_node_must_ask_for_the_same(void **state)
{
    struct shape s = { .ndim = 2, .dims = { 2, 3 } };
    struct tensor q = fifo("q", -1);
    struct tensor p = make("PaddingFIFOQueueV2", "p", -1, 1, &scalar, NULL);

    (void)state;
    make("FIFOQueueV2", "q", 3, 1, &scalar,
         "Shared queue 'q' has capacity 2147483647 but requested capacity was "
         "3");
    make("FIFOQueue", "q", -1, 1, &s,
         "Shared queue 'q' has component shapes [[]] but requested component "
         "shapes were [[2,3]]");
    make("RandomShuffleQueueV2", "q", -1, 0, NULL,
         "Expected FIFOQueue, found RandomShuffleQueueV2");
    make("FIFOQueueV2", "p", -1, 1, &scalar,
         "Expected PaddingFIFOQueue, found FIFOQueueV2");
    make("PriorityQueueV2", "r", -1, 0, NULL,
         "Shared queue 'r' has component shapes [] but requested component "
         "shapes were [[]]");
    make("PaddingFIFOQueueV2", "s", -1, 0, NULL,
         "Shapes must be provided for all components, but received 1 dtypes "
         "and 0 shapes.");
    tensor_unref(&q);
    tensor_unref(&p);
}

static void test_wrong_inputs_are_refused(void **state)
{
    struct tensor q = fifo("q", -1);
    struct tensor any = make("FIFOQueueV2", "any", -1, 0, NULL, NULL);
    struct harness h;

    (void)state;
    expect("QueueEnqueueV2", &q, ints(1, (int32_t[]){ 1 }),
           MST_INVALID_ARGUMENT,
           "Shape mismatch in tuple component 0. Expected [], got [1]");
    expect("QueueEnqueueManyV2", &any, one(1), MST_INVALID_ARGUMENT, NULL);
    expect("QueueDequeueUpToV2", &q, one(-3), MST_INVALID_ARGUMENT,
           "DequeueUpToOp requested -3 < 0 elements");
    expect("QueueDequeueManyV2", &q, ints(0, NULL), MST_INVALID_ARGUMENT, NULL);
    expect("QueueDequeueManyV2", &any, one(1), MST_INVALID_ARGUMENT,
           "FIFOQueue's DequeueMany and DequeueUpTo require the components to "
           "have specified shapes.");
    harness_init(&h, "QueueDequeue");
    harness_types(&h, "component_types", 1, (int[]){ DT_FLOAT });
    harness_in(&h, tensor_ref(&q));
    assert_int_equal(harness_run(&h), MST_INVALID_ARGUMENT);
    assert_string_equal(h.st.msg, "Signature mismatch, have: string_ref->float "
                                  "expected: string_ref->int32");
    harness_done(&h);
    tensor_unref(&q);
    tensor_unref(&any);
}

/* ---- many threads at one queue, some of them cancelled ---- */

#define THREADS 4
#define ROUNDS  300

struct hammer {
    const struct tensor *q;
    bool puts;
    uint64_t seed;
    int64_t rows; /* that went in, or came out */
};

static void *canceller(void *arg)
{
    cancel_all(arg);
    return NULL;
}

/* One op that may wait; sometimes another thread cancels it meanwhile. */
static enum mst_code hammer_once(struct hammer *m, struct harness *h,
                                 bool may_cancel)
{
    bool cancel = may_cancel && rng_next(&m->seed) % 4 == 0;
    pthread_t t;
    enum mst_code rc;

    if (cancel)
        pthread_create(&t, NULL, canceller, &h->cancel);
    rc = harness_run(h);
    if (rc == OP_LATER)
        rc = harness_wait(h);
    if (cancel)
        pthread_join(t, NULL);
    return rc;
}

/* A batch that is cancelled may have put some rows: only single ones are. */
static void *hammer_puts(void *arg)
{
    struct hammer *m = arg;

    for (int i = 0; i < ROUNDS; i++) {
        bool batch = rng_next(&m->seed) % 2;
        struct harness h;

        start(&h, batch ? "QueueEnqueueManyV2" : "QueueEnqueueV2", m->q);
        harness_in(&h, batch ? ints(2, (int32_t[]){ 1, 1 }) : one(1));
        if (!hammer_once(m, &h, !batch))
            m->rows += batch ? 2 : 1;
        harness_done(&h);
    }
    return NULL;
}

static void *hammer_takes(void *arg)
{
    struct hammer *m = arg;
    enum mst_code rc = MST_OK;

    while (rc != MST_OUT_OF_RANGE) {
        struct harness h;

        start(&h, "QueueDequeueUpToV2", m->q);
        harness_in(&h, one((int32_t)(rng_next(&m->seed) % 7) + 1));
        rc = hammer_once(m, &h, true);
        if (!rc)
            m->rows += h.out[0].t.count;
        harness_done(&h);
    }
    return NULL;
}

static void test_threads_neither_lose_nor_double_rows(void **state)
{
    struct tensor q = fifo("q", 5);
    struct hammer m[THREADS];
    pthread_t t[THREADS];
    int64_t balance = 0;

    (void)state;
    for (int i = 0; i < THREADS; i++) {
        m[i] = (struct hammer){ &q, i < THREADS / 2, (uint64_t)i + 1, 0 };
        pthread_create(&t[i], NULL, m[i].puts ? hammer_puts : hammer_takes,
                       &m[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        if (i == THREADS / 2)
            expect("QueueCloseV2", &q, none, MST_OK, NULL);
        pthread_join(t[i], NULL);
        balance += m[i].puts ? m[i].rows : -m[i].rows;
    }
    assert_int_equal(balance, 0);
    tensor_unref(&q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_fifo_keeps_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_old_and_new_form_are_one_queue,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_full_queue_lets_puts_wait_in_order,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_batch_may_be_larger_than_capacity,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_waiting_takes_are_served_in_order,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_closed_queue_drains_then_ends,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_close_ends_waiting_batches, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_close_waits_for_earlier_puts,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_close_can_cancel_waiting_puts,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_cancelled_take_gives_back_and_lets_others_on, setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_step_that_is_cancelled_does_not_wait, setup, teardown),
        cmocka_unit_test_setup_teardown(test_shuffle_follows_tensorflows_stream,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_priority_orders_as_tensorflow_with_ties, setup, teardown),
        cmocka_unit_test_setup_teardown(test_padding_fills_with_zeros, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_second_node_must_ask_for_the_same,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_wrong_inputs_are_refused, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(
            test_threads_neither_lose_nor_double_rows, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
