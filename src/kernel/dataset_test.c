/*
 * Pipelines whose functions end at once or on another thread, with an executor
 * of a few lines: a function is its name and takes one whole number. One waits
 * at a gate that the test opens.
 */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "op/call.h"
#include "op/harness.h"

struct callee {
    const char *name;
    atomic_int refs;
};

static struct callee functions[] = { { .name = "inc" },    { .name = "seldom" },
                                     { .name = "bad" },    { .name = "third" },
                                     { .name = "ranges" }, { .name = "gate" } };
static bool on_threads;
static struct resources *shared;
static struct pool *pool;
static atomic_int started; /* calls of functions */
static struct gate {
    pthread_mutex_t lock;
    struct running *first; /* under lock: calls that wait */
    bool open;             /* under lock */
} gate = { .lock = PTHREAD_MUTEX_INITIALIZER };

static enum mst_code find(struct op_node *n, const struct attr_value *func,
                          struct callee **ret, struct status *st)
{
    (void)n;
    for (size_t i = 0; i < COUNT(functions); i++)
        if (!strcmp(functions[i].name, func->s.data)) {
            *ret = &functions[i];
            return MST_OK;
        }
    return status_set(st, MST_NOT_FOUND, "no such function");
}

struct running {
    struct running *next;
    struct callee *f;
    struct op_ctx *c;
    int64_t x;
    void (*done)(struct op_ctx *, void *, enum mst_code, struct op_value *,
                 int);
    void *arg;
};

static struct tensor range(int64_t n);

static void *run(void *arg)
{
    struct running *r = arg;
    struct op_value result = { 0 };
    int64_t x = r->x + 1;
    struct status st;

    if (!strcmp(r->f->name, "bad") ||
        (!strcmp(r->f->name, "third") && r->x == 2)) {
        status_set(r->c->st, MST_ABORTED, "bad");
        r->done(r->c, r->arg, MST_ABORTED, NULL, 0);
    } else if (!strcmp(r->f->name, "seldom")) {
        assert_int_equal(tensor_new_scalar(&result.t, DT_BOOL, &st), MST_OK);
        *TENSOR_DATA(&result.t, bool) = r->x % 1000 == 999;
        r->done(r->c, r->arg, MST_OK, &result, 1);
    } else if (!strcmp(r->f->name, "ranges")) {
        result.t = range(r->x);
        r->done(r->c, r->arg, MST_OK, &result, 1);
    } else {
        result.t = harness_int64s(0, NULL, &x);
        r->done(r->c, r->arg, MST_OK, &result, 1);
    }
    tensor_unref(&result.t);
    mem_free(r);
    return NULL;
}

static bool gate_holds(struct running *r)
{
    bool open;

    pthread_mutex_lock(&gate.lock);
    open = gate.open;
    if (!open) {
        r->next = gate.first;
        gate.first = r;
    }
    pthread_mutex_unlock(&gate.lock);
    return !open;
}

/* The last that came goes first. */
static void gate_open(void)
{
    struct running *r, *next;

    pthread_mutex_lock(&gate.lock);
    gate.open = true;
    r = gate.first;
    gate.first = NULL;
    pthread_mutex_unlock(&gate.lock);
    for (; r; r = next) {
        next = r->next;
        run(r);
    }
}

static void await_started(int calls)
{
    while (started < calls)
        sched_yield();
}

static void start(struct callee *f, struct op_ctx *c, struct op_value *args,
                  int arg_count,
                  void (*done)(struct op_ctx *, void *, enum mst_code,
                               struct op_value *, int),
                  void *arg)
{
    struct running *r = MEM_NEW(struct running);
    pthread_t t;

    *r = (struct running){ NULL, f,  c, *TENSOR_DATA(&args[0].t, int64_t),
                           done, arg };
    for (int i = 0; i < arg_count; i++)
        tensor_unref(&args[i].t);
    if (!strcmp(f->name, "gate") && gate_holds(r)) {
        atomic_fetch_add(&started, 1);
        return;
    }
    atomic_fetch_add(&started, 1);
    if (on_threads) {
        pthread_create(&t, NULL, run, r);
        pthread_detach(t);
    } else {
        run(r);
    }
}

static void hold(struct callee *f)
{
    atomic_fetch_add(&f->refs, 1);
}

static void release(struct callee *f)
{
    atomic_fetch_sub(&f->refs, 1);
}

static const struct op_calls calls = { find, start, hold, release };

static int setup(void **state)
{
    on_threads = *state != NULL;
    shared = resources_new("ps");
    pool = pool_new(2);
    atomic_store(&started, 0);
    gate.open = false;
    return 0;
}

static int setup_threads(void **state)
{
    *state = &on_threads;
    return setup(state);
}

static int teardown(void **state)
{
    (void)state;
    resources_unref(shared);
    /* A thread that has told of the last element may still hold on to it. */
    for (size_t i = 0; i < COUNT(functions); i++)
        while (functions[i].refs)
            sched_yield();
    pool_free(pool);
    return 0;
}

static void begin(struct harness *h, const char *op)
{
    harness_init(h, op);
    harness_share(h, shared);
    h->env.calls = &calls;
    h->env.pool = pool;
}

static void element(struct harness *h)
{
    harness_types(h, "output_types", 1, (int[]){ DT_INT64 });
    harness_shapes(h, "output_shapes", 1, (struct shape[]){ { .ndim = 0 } });
}

static struct tensor number(int64_t x)
{
    return harness_int64s(0, NULL, &x);
}

/* The output of an op that makes a dataset. */
static struct tensor made(struct harness *h)
{
    struct tensor t;

    assert_int_equal(harness_run(h), MST_OK);
    t = tensor_ref(&h->out[0].t);
    harness_done(h);
    return t;
}

static struct tensor range(int64_t n)
{
    struct harness h;

    begin(&h, "RangeDataset");
    element(&h);
    harness_in(&h, number(0));
    harness_in(&h, number(n));
    harness_in(&h, number(1));
    return made(&h);
}

static struct tensor with(const char *op, const char *attr, const char *f,
                          struct tensor in)
{
    struct harness h;

    begin(&h, op);
    element(&h);
    harness_types(&h, "Targuments", 0, NULL);
    harness_func(&h, attr, f);
    harness_in(&h, in);
    return made(&h);
}

static struct tensor prefetch(int64_t n, struct tensor in)
{
    struct harness h;

    begin(&h, "PrefetchDataset");
    element(&h);
    harness_in(&h, in);
    harness_in(&h, number(n));
    return made(&h);
}

static struct tensor parallel_map(const char *f, int64_t calls,
                                  struct tensor in)
{
    struct harness h;

    begin(&h, "ParallelMapDatasetV2");
    element(&h);
    harness_types(&h, "Targuments", 0, NULL);
    harness_func(&h, "f", f);
    harness_in(&h, in);
    harness_in(&h, number(calls));
    return made(&h);
}

/* A fresh iterator of a dataset, the handle of it. */
static struct tensor iterate(struct tensor dataset)
{
    struct harness h;
    struct tensor handle;

    begin(&h, "IteratorV2");
    element(&h);
    harness_str(&h, "shared_name", "it");
    harness_str(&h, "container", "");
    handle = made(&h);
    begin(&h, "MakeIterator");
    harness_in(&h, dataset);
    harness_in(&h, tensor_ref(&handle));
    assert_int_equal(harness_run(&h), MST_OK);
    harness_done(&h);
    return handle;
}

static void start_next(struct harness *h, const struct tensor *handle)
{
    begin(h, "IteratorGetNext");
    element(h);
    harness_in(h, tensor_ref(handle));
}

static enum mst_code next(const struct tensor *handle, int64_t *ret)
{
    struct harness h;
    enum mst_code rc;

    start_next(&h, handle);
    rc = harness_run(&h);
    if (rc == OP_LATER)
        rc = harness_wait(&h);
    if (!rc)
        *ret = *TENSOR_DATA(&h.out[0].t, int64_t);
    harness_done(&h);
    return rc;
}

static void test_map_gives_every_element_once(void **state)
{
    struct tensor it = iterate(with("MapDataset", "f", "inc", range(3)));
    int64_t x;

    (void)state;
    for (int64_t i = 0; i < 3; i++) {
        assert_int_equal(next(&it, &x), MST_OK);
        assert_int_equal(x, i + 1);
    }
    assert_int_equal(next(&it, &x), MST_OUT_OF_RANGE);
    assert_int_equal(next(&it, &x), MST_OUT_OF_RANGE);
    tensor_unref(&it);
}

static void test_filter_passes_thousands_over(void **state)
{
    struct tensor it =
        iterate(with("FilterDataset", "predicate", "seldom", range(2500)));
    int64_t x;

    (void)state;
    assert_int_equal(next(&it, &x), MST_OK);
    assert_int_equal(x, 999);
    assert_int_equal(next(&it, &x), MST_OK);
    assert_int_equal(x, 1999);
    assert_int_equal(next(&it, &x), MST_OUT_OF_RANGE);
    tensor_unref(&it);
}

static void test_failure_of_a_function_is_the_ops(void **state)
{
    struct tensor it = iterate(with("MapDataset", "f", "bad", range(3)));
    int64_t x;

    (void)state;
    assert_int_equal(next(&it, &x), MST_ABORTED);
    assert_int_equal(next(&it, &x), MST_ABORTED);
    tensor_unref(&it);
}

static void test_many_at_once_get_an_element_each(void **state)
{
    struct tensor it = iterate(with("MapDataset", "f", "inc", range(8)));
    struct harness h[8];
    bool later[8];
    int64_t sum = 0;

    (void)state;
    for (int i = 0; i < 8; i++) {
        enum mst_code rc;

        start_next(&h[i], &it);
        rc = harness_run(&h[i]);
        later[i] = rc == OP_LATER;
        assert_true(later[i] || !rc);
    }
    for (int i = 0; i < 8; i++) {
        if (later[i])
            assert_int_equal(harness_wait(&h[i]), MST_OK);
        sum += *TENSOR_DATA(&h[i].out[0].t, int64_t);
        harness_done(&h[i]);
    }
    assert_int_equal(sum, 36);
    tensor_unref(&it);
}

/* ---- read ahead ---- */

static void expect(const struct tensor *it, int64_t x)
{
    int64_t got = -1;

    assert_int_equal(next(it, &got), MST_OK);
    assert_int_equal(got, x);
}

static void expect_end(const struct tensor *it)
{
    int64_t x;

    assert_int_equal(next(it, &x), MST_OUT_OF_RANGE);
    assert_int_equal(next(it, &x), MST_OUT_OF_RANGE);
}

static void test_prefetch_gives_every_element_once(void **state)
{
    struct tensor it =
        iterate(prefetch(3, with("MapDataset", "f", "inc", range(200))));

    (void)state;
    for (int64_t i = 0; i < 200; i++)
        expect(&it, i + 1);
    expect_end(&it);
    tensor_unref(&it);
}

static void test_parallel_map_keeps_the_order(void **state)
{
    struct tensor it =
        iterate(prefetch(-1, parallel_map("inc", 4, range(500))));

    (void)state;
    for (int64_t i = 0; i < 500; i++)
        expect(&it, i + 1);
    expect_end(&it);
    tensor_unref(&it);
}

static void test_error_takes_the_place_of_its_element(void **state)
{
    struct tensor it = iterate(prefetch(2, parallel_map("third", 3, range(5))));
    int64_t x;

    (void)state;
    expect(&it, 1);
    expect(&it, 2);
    assert_int_equal(next(&it, &x), MST_ABORTED);
    expect(&it, 4);
    expect(&it, 5);
    expect_end(&it);
    tensor_unref(&it);
}

static void test_calls_run_before_they_are_asked_for(void **state)
{
    struct tensor it = iterate(parallel_map("gate", 3, range(9)));
    struct harness h;

    (void)state;
    start_next(&h, &it);
    assert_int_equal(harness_run(&h), OP_LATER);
    await_started(3);
    gate_open();
    assert_int_equal(harness_wait(&h), MST_OK);
    assert_int_equal(*TENSOR_DATA(&h.out[0].t, int64_t), 1);
    harness_done(&h);
    for (int64_t i = 1; i < 9; i++)
        expect(&it, i + 1);
    expect_end(&it);
    tensor_unref(&it);
}

static void test_cancelled_wait_leaves_the_element(void **state)
{
    struct tensor it =
        iterate(prefetch(2, prefetch(2, parallel_map("gate", 2, range(3)))));
    struct harness h;

    (void)state;
    start_next(&h, &it);
    assert_int_equal(harness_run(&h), OP_LATER);
    await_started(2);
    cancel_all(&h.cancel);
    assert_int_equal(harness_wait(&h), MST_CANCELLED);
    harness_done(&h);
    gate_open();
    for (int64_t i = 0; i < 3; i++)
        expect(&it, i + 1);
    expect_end(&it);
    tensor_unref(&it);
}

static void test_new_dataset_ends_what_is_under_way(void **state)
{
    struct tensor first =
        iterate(prefetch(2, prefetch(2, parallel_map("gate", 2, range(9)))));
    struct tensor it;
    struct harness h;

    (void)state;
    start_next(&h, &first);
    assert_int_equal(harness_run(&h), OP_LATER);
    await_started(2);
    cancel_all(&h.cancel);
    assert_int_equal(harness_wait(&h), MST_CANCELLED);
    harness_done(&h);
    it = iterate(prefetch(1, range(2))); /* the same iterator */
    expect(&it, 0);
    gate_open();
    expect(&it, 1);
    expect_end(&it);
    tensor_unref(&first);
    tensor_unref(&it);
}

static void test_dropped_iterator_leaves_nothing(void **state)
{
    struct tensor it =
        iterate(prefetch(1 << 20, parallel_map("inc", 4, range(INT64_MAX))));

    (void)state;
    expect(&it, 1);
    tensor_unref(&it);
}

static struct tensor interleave(int64_t cycle, struct tensor in)
{
    struct harness h;

    begin(&h, "ParallelInterleaveDatasetV3");
    element(&h);
    harness_types(&h, "Targuments", 0, NULL);
    harness_func(&h, "f", "ranges");
    harness_in(&h, in);
    harness_in(&h, number(cycle));
    harness_in(&h, number(1));
    harness_in(&h, number(2));
    return made(&h);
}

static void test_parallel_interleave_keeps_the_order(void **state)
{
    static const int64_t want[] = { 0, 0, 1, 0, 1, 0, 2, 1, 2, 3 };
    struct tensor it = iterate(interleave(2, range(5)));

    (void)state;
    for (size_t i = 0; i < COUNT(want); i++)
        expect(&it, want[i]);
    expect_end(&it);
    tensor_unref(&it);
}

static void test_iterator_without_dataset_says_so(void **state)
{
    struct harness h;
    struct tensor it;
    int64_t x;

    (void)state;
    begin(&h, "IteratorV2");
    element(&h);
    harness_str(&h, "shared_name", "none");
    harness_str(&h, "container", "");
    it = made(&h);
    assert_int_equal(next(&it, &x), MST_FAILED_PRECONDITION);
    tensor_unref(&it);
}

static void test_no_dataset_is_refused(void **state)
{
    struct harness h;
    struct tensor t;
    struct status st;

    (void)state;
    assert_int_equal(tensor_new_scalar(&t, DT_VARIANT, &st), MST_OK);
    begin(&h, "RepeatDataset");
    element(&h);
    harness_in(&h, t);
    harness_in(&h, number(2));
    assert_int_equal(harness_run(&h), MST_INVALID_ARGUMENT);
    harness_done(&h);
}

#define BOTH(test)                                                             \
    cmocka_unit_test_setup_teardown(test, setup, teardown),                    \
        cmocka_unit_test_setup_teardown(test, setup_threads, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(test_map_gives_every_element_once),
        BOTH(test_filter_passes_thousands_over),
        BOTH(test_failure_of_a_function_is_the_ops),
        BOTH(test_many_at_once_get_an_element_each),
        BOTH(test_prefetch_gives_every_element_once),
        BOTH(test_parallel_map_keeps_the_order),
        BOTH(test_error_takes_the_place_of_its_element),
        BOTH(test_calls_run_before_they_are_asked_for),
        BOTH(test_cancelled_wait_leaves_the_element),
        BOTH(test_new_dataset_ends_what_is_under_way),
        BOTH(test_dropped_iterator_leaves_nothing),
        BOTH(test_parallel_interleave_keeps_the_order),
        BOTH(test_iterator_without_dataset_says_so),
        BOTH(test_no_dataset_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
