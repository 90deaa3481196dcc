/*
 * Calls, with an executor that is a few lines of C: a function is its name, it
 * ends at once or on another thread.
 */
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
};

static struct callee functions[] = {
    { "inc" }, { "below" }, { "twice" }, { "bad" }, { "pair" }
};
static bool on_threads;
static int depth, depth_max;

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
    struct callee *f;
    struct op_ctx *c;
    int32_t x;
    void (*done)(struct op_ctx *, void *, enum mst_code, struct op_value *,
                 int);
    void *arg;
};

#define LIMIT 20000

static void *run(void *arg)
{
    struct running *r = arg;
    int32_t x = r->x;
    struct op_value result[2] = { 0 };
    int count = 1;

    if (!strcmp(r->f->name, "bad")) {
        status_set(r->c->st, MST_ABORTED, "bad");
        r->done(r->c, r->arg, MST_ABORTED, NULL, 0);
        mem_free(r);
        return NULL;
    }
    if (!strcmp(r->f->name, "pair")) {
        count = 2;
        result[1].t = harness_int32s(0, NULL, &x);
    }
    x = !strcmp(r->f->name, "inc")     ? x + 1
        : !strcmp(r->f->name, "twice") ? 2 * x
                                       : x < LIMIT;
    result[0].t = harness_int32s(0, NULL, &x);
    r->done(r->c, r->arg, MST_OK, result, count);
    for (int i = 0; i < 2; i++)
        tensor_unref(&result[i].t);
    mem_free(r);
    return NULL;
}

static void start(struct callee *f, struct op_ctx *c, struct op_value *args,
                  int arg_count,
                  void (*done)(struct op_ctx *, void *, enum mst_code,
                               struct op_value *, int),
                  void *arg)
{
    struct running *r = MEM_NEW(struct running);
    pthread_t t;

    *r = (struct running){ f, c, *TENSOR_DATA(&args[0].t, int32_t), done, arg };
    for (int i = 0; i < arg_count; i++)
        tensor_unref(&args[i].t);
    if (on_threads) {
        pthread_create(&t, NULL, run, r);
        pthread_detach(t);
        return;
    }
    depth++;
    depth_max = MAX(depth, depth_max);
    run(r);
    depth--;
}

static const struct op_calls calls = { .find = find, .start = start };

static void begin(struct harness *h, const char *op)
{
    harness_init(h, op);
    h->env.calls = &calls;
}

static enum mst_code finish(struct harness *h)
{
    enum mst_code rc = harness_run(h);

    return rc == OP_LATER ? harness_wait(h) : rc;
}

static struct tensor number(int32_t x)
{
    return harness_int32s(0, NULL, &x);
}

static void assert_out(const struct harness *h, int32_t x)
{
    assert_int_equal(*TENSOR_DATA(&h->out[0].t, int32_t), x);
}

static const int types[] = { DT_INT32, DT_INT32 };

static void test_call_hands_values_through(void **state)
{
    struct harness h;

    (void)state;
    begin(&h, "PartitionedCall");
    harness_types(&h, "Tin", 1, types);
    harness_types(&h, "Tout", 1, types);
    harness_func(&h, "f", "inc");
    harness_in(&h, number(4));
    assert_int_equal(finish(&h), MST_OK);
    assert_out(&h, 5);
    harness_done(&h);
}

static void test_call_reports_failures(void **state)
{
    struct harness h;

    (void)state;
    begin(&h, "StatefulPartitionedCall");
    harness_types(&h, "Tin", 1, types);
    harness_types(&h, "Tout", 1, types);
    harness_func(&h, "f", "bad");
    harness_in(&h, number(4));
    assert_int_equal(finish(&h), MST_ABORTED);
    assert_string_equal(h.st.msg, "bad");
    harness_done(&h);

    begin(&h, "PartitionedCall");
    harness_types(&h, "Tin", 1, types);
    harness_types(&h, "Tout", 1, (int[]){ DT_FLOAT });
    harness_func(&h, "f", "inc");
    harness_in(&h, number(4));
    assert_int_equal(finish(&h), MST_INTERNAL);
    assert_string_equal(h.st.msg,
                        "Expect 0-th output is of type float but get int32");
    harness_done(&h);
}

static int32_t branch(struct tensor cond)
{
    struct harness h;
    int32_t x;

    begin(&h, "If");
    harness_type(&h, "Tcond", cond.dtype);
    harness_types(&h, "Tin", 1, types);
    harness_types(&h, "Tout", 1, types);
    harness_func(&h, "then_branch", "inc");
    harness_func(&h, "else_branch", "twice");
    harness_in(&h, cond);
    harness_in(&h, number(10));
    assert_int_equal(finish(&h), MST_OK);
    x = *TENSOR_DATA(&h.out[0].t, int32_t);
    harness_done(&h);
    return x;
}

static void test_if_takes_anything_for_a_condition(void **state)
{
    (void)state;
    assert_int_equal(branch(number(1)), 11);
    assert_int_equal(branch(number(0)), 20);
    assert_int_equal(branch(harness_floats(0, NULL, (float[]){ 0.5f })), 11);
    assert_int_equal(branch(harness_strs(0, NULL, (const char *[]){ "" })), 20);
    assert_int_equal(branch(harness_strs(0, NULL, (const char *[]){ "a" })),
                     11);
    assert_int_equal(
        branch(harness_int32s(1, (int64_t[]){ 1 }, (int32_t[]){ 0 })), 11);
    assert_int_equal(branch(harness_int32s(1, (int64_t[]){ 0 }, NULL)), 20);
}

static void test_case_out_of_range_takes_the_last(void **state)
{
    static const int32_t expect[] = { 20, 11, 20, 20 };

    (void)state;
    for (int32_t i = -1; i < 3; i++) {
        struct harness h;

        begin(&h, "Case");
        harness_types(&h, "Tin", 1, types);
        harness_types(&h, "Tout", 1, types);
        harness_funcs(&h, "branches", 2, (const char *[]){ "inc", "twice" });
        harness_in(&h, number(i));
        harness_in(&h, number(10));
        assert_int_equal(finish(&h), MST_OK);
        assert_out(&h, expect[i + 1]);
        harness_done(&h);
    }
}

static enum mst_code loop(struct harness *h, const char *cond, const char *body,
                          int32_t from)
{
    begin(h, "While");
    harness_types(h, "T", 1, types);
    harness_func(h, "cond", cond);
    harness_func(h, "body", body);
    harness_in(h, number(from));
    return finish(h);
}

static void test_while_does_not_grow_the_stack(void **state)
{
    struct harness h;

    (void)state;
    depth_max = 0;
    assert_int_equal(loop(&h, "below", "inc", 0), MST_OK);
    assert_out(&h, LIMIT);
    assert_int_equal(depth_max, 1);
    harness_done(&h);
}

static void test_while_may_run_on_other_threads(void **state)
{
    struct harness h;

    (void)state;
    on_threads = true;
    assert_int_equal(loop(&h, "below", "inc", LIMIT - 100), MST_OK);
    on_threads = false;
    assert_out(&h, LIMIT);
    harness_done(&h);
}

static void test_while_that_is_over_returns_its_input(void **state)
{
    struct harness h;

    (void)state;
    assert_int_equal(loop(&h, "below", "inc", LIMIT + 7), MST_OK);
    assert_out(&h, LIMIT + 7);
    harness_done(&h);
}

static void test_while_reports_failures(void **state)
{
    struct harness h;

    (void)state;
    assert_int_equal(loop(&h, "pair", "inc", 0), MST_INVALID_ARGUMENT);
    assert_string_equal(h.st.msg, "Expected a single scalar return value from "
                                  "WhileOp cond, got 2 tensors.");
    harness_done(&h);
    assert_int_equal(loop(&h, "below", "bad", 0), MST_ABORTED);
    harness_done(&h);
    assert_int_equal(loop(&h, "below", "gone", 0), MST_NOT_FOUND);
    harness_done(&h);
}

static void test_while_stops_when_cancelled(void **state)
{
    struct harness h;

    (void)state;
    begin(&h, "While");
    harness_types(&h, "T", 1, types);
    harness_func(&h, "cond", "below");
    harness_func(&h, "body", "twice"); /* never ends: 0 stays 0 */
    harness_in(&h, number(0));
    cancel_all(&h.cancel);
    assert_int_equal(finish(&h), MST_CANCELLED);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_call_hands_values_through),
        cmocka_unit_test(test_call_reports_failures),
        cmocka_unit_test(test_if_takes_anything_for_a_condition),
        cmocka_unit_test(test_case_out_of_range_takes_the_last),
        cmocka_unit_test(test_while_does_not_grow_the_stack),
        cmocka_unit_test(test_while_may_run_on_other_threads),
        cmocka_unit_test(test_while_that_is_over_returns_its_input),
        cmocka_unit_test(test_while_reports_failures),
        cmocka_unit_test(test_while_stops_when_cancelled),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
