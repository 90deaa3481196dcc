/* Readers: waiting for names without a thread, in line, and cancelled. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "op/harness.h"

struct fixture {
    struct resources *resources;
    struct harness queue, reader;
};

static void make(struct fixture *f)
{
    f->resources = resources_new("test");
    harness_init(&f->queue, "FIFOQueueV2");
    harness_share(&f->queue, f->resources);
    harness_name(&f->queue, "queue");
    harness_types(&f->queue, "component_types", 1, (int[]){ DT_STRING });
    assert_int_equal(harness_run(&f->queue), MST_OK);
    harness_init(&f->reader, "IdentityReaderV2");
    harness_share(&f->reader, f->resources);
    harness_name(&f->reader, "reader");
    assert_int_equal(harness_run(&f->reader), MST_OK);
}

static void end(struct fixture *f)
{
    harness_done(&f->queue);
    harness_done(&f->reader);
    resources_unref(f->resources);
}

static void start_read(struct fixture *f, struct harness *h)
{
    harness_init(h, "ReaderReadV2");
    harness_share(h, f->resources);
    harness_in(h, tensor_ref(&f->reader.out[0].t));
    harness_in(h, tensor_ref(&f->queue.out[0].t));
    assert_int_equal(harness_run(h), OP_LATER);
}

static void enqueue(struct fixture *f, const char *name)
{
    struct harness h;

    harness_init(&h, "QueueEnqueueV2");
    harness_share(&h, f->resources);
    harness_types(&h, "Tcomponents", 1, (int[]){ DT_STRING });
    harness_in(&h, tensor_ref(&f->queue.out[0].t));
    harness_in(&h, harness_strs(0, NULL, (const char *[]){ name }));
    assert_int_equal(harness_run(&h), MST_OK);
    harness_done(&h);
}

static void assert_read(struct harness *h, const char *name)
{
    const struct str *s;

    assert_int_equal(harness_wait(h), MST_OK);
    s = tensor_str(&h->out[1].t, 0);
    assert_int_equal(s->len, strlen(name));
    assert_memory_equal(s->data, name, s->len);
}

static void test_reads_wait_in_line_for_names(void **state)
{
    struct harness first, second;
    struct fixture f;

    (void)state;
    make(&f);
    start_read(&f, &first);
    start_read(&f, &second);
    enqueue(&f, "a");
    assert_read(&first, "a");
    enqueue(&f, "b");
    assert_read(&second, "b");
    harness_done(&first);
    harness_done(&second);
    end(&f);
}

static void test_cancelled_reads_leave_the_line(void **state)
{
    struct harness first, second, third;
    struct fixture f;

    (void)state;
    make(&f);
    start_read(&f, &first);
    start_read(&f, &second);
    start_read(&f, &third);
    cancel_all(&second.cancel); /* waits for its turn */
    assert_int_equal(harness_wait(&second), MST_CANCELLED);
    cancel_all(&first.cancel); /* waits at the queue */
    assert_int_equal(harness_wait(&first), MST_CANCELLED);
    enqueue(&f, "c");
    assert_read(&third, "c");
    harness_done(&first);
    harness_done(&second);
    harness_done(&third);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_wait_in_line_for_names),
        cmocka_unit_test(test_cancelled_reads_leave_the_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
