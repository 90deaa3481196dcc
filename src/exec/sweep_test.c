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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sweep_keeps_targets),
        cmocka_unit_test(test_sweep_is_switched_off_with_the_rest),
        cmocka_unit_test(test_sweep_keeps_loop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
