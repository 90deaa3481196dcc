#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "exec/testing.h"

static void put_part(struct graph_text *g)
{
    graph_text_init(g);
    plan_test_put_arg(g, "x", 0);
    plan_test_put_const(g, "a", 2);
    plan_test_put(g, "b", "Neg", "a");
    plan_test_put(g, "y", "AddV2", "x,b");
    plan_test_put(g, "target", "Square", "x");
    plan_test_put_ret(g, "r", "y", 0);
}

static void test_sweep_keeps_targets(void **state)
{
    struct graph_text g;
    struct plan_test t;

    (void)state;
    put_part(&g);
    plan_test_open(&t, &g, true);
    assert_true(plan_test_gone(&t, "a"));
    assert_false(plan_test_gone(&t, "b"));
    assert_false(plan_test_gone(&t, "target"));
    plan_test_arg(&t, 0, 0, NULL, 3);
    assert_int_equal(plan_test_run(&t), MST_OK);
    assert_float_equal(plan_test_float(&t, 0), 1, 0);
    assert_int_equal(t.ran, 5);
    plan_test_close(&t);
}

static void test_sweep_is_switched_off_with_the_rest(void **state)
{
    struct graph_text g;
    struct plan_test t;

    (void)state;
    put_part(&g);
    plan_test_open(&t, &g, false);
    for (int i = 0; i < t.plan->count; i++) {
        assert_false(t.plan->nodes[i].gone);
        assert_null(t.plan->nodes[i].constant);
    }
    plan_test_arg(&t, 0, 0, NULL, 3);
    assert_int_equal(plan_test_run(&t), MST_OK);
    assert_int_equal(t.ran, 6);
    plan_test_close(&t);
}

/* What is in a branch that is not taken, or in a loop, is control flow: it
 * stays, and the loop runs as often as before. */
static void test_sweep_keeps_loop(void **state)
{
    struct graph_text g;
    struct plan_test t;

    (void)state;
    graph_text_init(&g);
    plan_test_put_arg(&g, "x", 0);
    plan_test_put_const(&g, "thousand", 1000);
    plan_test_put(&g, "in", "Enter", "x");
    graph_text_str(&g, "frame_name", "f");
    plan_test_put(&g, "limit", "Enter", "thousand");
    graph_text_str(&g, "frame_name", "f");
    graph_text_bool(&g, "is_constant", true);
    plan_test_put(&g, "m", "Merge", "in,next");
    graph_text_int(&g, "N", 2);
    plan_test_put(&g, "less", "Less", "m,limit");
    graph_text_node(&g, "cond", "LoopCond", "less");
    plan_test_put(&g, "w", "Switch", "m,cond");
    plan_test_put(&g, "body", "Identity", "w:1");
    plan_test_put(&g, "square", "Square", "body");
    plan_test_put(&g, "same", "Square", "body");
    plan_test_put(&g, "mean", "Maximum", "square,same");
    plan_test_put(&g, "next", "NextIteration", "mean");
    plan_test_put(&g, "out", "Exit", "w");
    plan_test_put_ret(&g, "r", "out", 0);
    plan_test_open(&t, &g, true);
    assert_true(plan_test_gone(&t, "body"));
    assert_int_not_equal(plan_test_gone(&t, "square"),
                         plan_test_gone(&t, "same"));
    plan_test_arg(&t, 0, 0, NULL, 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(plan_test_run(&t), MST_OK);
        assert_float_equal(plan_test_float(&t, 0), 65536, 0);
    }
    plan_test_close(&t);
}

/* Opens, and runs, a part with a sum that fails and that nobody uses. */
static enum mst_code run_idle(bool optimised, float *ret)
{
    struct graph_text g;
    struct plan_test t;
    enum mst_code rc;

    graph_text_init(&g);
    plan_test_put_arg(&g, "x", 0);
    plan_test_put_arg(&g, "y", 1);
    plan_test_put(&g, "inner", "Square", "x");
    plan_test_put(&g, "idle", "AddV2", "inner,y"); /* of other shapes */
    plan_test_put(&g, "other", "Neg", "inner");
    plan_test_put(&g, "z", "Neg", "x,^idle,^other");
    plan_test_put_ret(&g, "r", "z", 0);
    plan_test_open(&t, &g, optimised);
    plan_test_arg(&t, 0, 1, (int64_t[]){ 2 }, 3);
    plan_test_arg(&t, 1, 1, (int64_t[]){ 3 }, 3);
    rc = plan_test_run(&t);
    if (!rc)
        *ret = plan_test_float(&t, 0);
    plan_test_close(&t);
    return rc;
}

/* A value that nobody uses is not made, but what waits for it still runs. */
static void test_sweep_hollows(void **state)
{
    float value = 0;

    (void)state;
    assert_int_equal(run_idle(true, &value), MST_OK);
    assert_float_equal(value, -3, 0);
    assert_int_equal(run_idle(false, &value), MST_INVALID_ARGUMENT);
}

/* What waits for it runs only where it would have run. */
static void test_sweep_hollow_is_dead_in_a_branch(void **state)
{
    struct graph_text g;
    struct plan_test t;

    (void)state;
    graph_text_init(&g);
    plan_test_put_arg(&g, "x", 0);
    plan_test_put_const(&g, "one", 1);
    plan_test_put(&g, "yes", "Less", "x,one");
    plan_test_put(&g, "w", "Switch", "x,yes");
    plan_test_put(&g, "idle", "AddV2", "w:1,one");
    plan_test_put(&g, "left", "Neg", "one,^idle"); /* only if x < 1 */
    plan_test_put(&g, "right", "Square", "w");
    plan_test_put(&g, "m", "Merge", "left,right");
    graph_text_int(&g, "N", 2);
    plan_test_put_ret(&g, "r", "m", 0);
    plan_test_open(&t, &g, true);
    plan_test_arg(&t, 0, 0, NULL, 0);
    assert_int_equal(plan_test_run(&t), MST_OK);
    assert_float_equal(plan_test_float(&t, 0), -1, 0);
    plan_test_arg(&t, 0, 0, NULL, 3);
    assert_int_equal(plan_test_run(&t), MST_OK);
    assert_float_equal(plan_test_float(&t, 0), 9, 0);
    plan_test_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sweep_keeps_targets),
        cmocka_unit_test(test_sweep_is_switched_off_with_the_rest),
        cmocka_unit_test(test_sweep_keeps_loop),
        cmocka_unit_test(test_sweep_hollows),
        cmocka_unit_test(test_sweep_hollow_is_dead_in_a_branch),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
