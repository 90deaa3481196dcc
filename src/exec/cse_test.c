#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "exec/testing.h"

static bool merged(const char *op, const char *in_a, const char *in_b)
{
    struct graph_text g;
    struct plan_test t;
    bool gone;

    graph_text_init(&g);
    plan_test_put_arg(&g, "x", 0);
    plan_test_put_arg(&g, "y", 1);
    plan_test_put(&g, "z", "Neg", "x");
    plan_test_put(&g, "a", op, in_a);
    plan_test_put(&g, "b", op, in_b);
    plan_test_put(&g, "sum", "Sub", "a,b");
    plan_test_put_ret(&g, "r", "sum", 0);
    plan_test_put_ret(&g, "ra", "a", 1); /* so that they are not fused */
    plan_test_put_ret(&g, "rb", "b", 2);
    plan_test_open(&t, &g, true);
    gone = plan_test_gone(&t, "a") || plan_test_gone(&t, "b");
    plan_test_arg(&t, 0, 0, NULL, 3);
    plan_test_arg(&t, 1, 0, NULL, 3);
    assert_int_equal(plan_test_run(&t), MST_OK);
    assert_float_equal(plan_test_float(&t, 0), 0, 0);
    plan_test_close(&t);
    return gone;
}

static void test_cse_merges_equal_nodes_only(void **state)
{
    (void)state;
    assert_true(merged("Square", "x", "x"));
    assert_false(merged("Square", "x", "y"));
    assert_true(merged("Mul", "x,y", "x,y"));
    assert_false(merged("Mul", "x,y", "y,x"));
    assert_false(merged("Square", "x,^z", "x"));
    assert_true(merged("Square", "x,^z", "x,^z"));
}

static void put_leaky(struct graph_text *g, const char *name, float alpha)
{
    struct pb_out v;

    plan_test_put(g, name, "LeakyRelu", "x");
    pb_out_init(&v);
    pb_put_tag(&v, 4, PB_FIXED32);
    pb_put_raw(&v, &alpha, sizeof(alpha));
    graph_text_attr(g, "alpha", &v);
    pb_out_done(&v);
}

static void test_cse_compares_attributes(void **state)
{
    struct graph_text g;
    struct plan_test t;

    (void)state;
    graph_text_init(&g);
    plan_test_put_arg(&g, "x", 0);
    put_leaky(&g, "a", 0.5f);
    put_leaky(&g, "b", 0.25f);
    put_leaky(&g, "c", 0.5f);
    plan_test_put(&g, "all", "AddN", "a,b,c");
    graph_text_int(&g, "N", 3);
    plan_test_put_ret(&g, "r", "all", 0);
    plan_test_open(&t, &g, true);
    assert_false(plan_test_gone(&t, "b"));
    assert_int_not_equal(plan_test_gone(&t, "a"), plan_test_gone(&t, "c"));
    plan_test_arg(&t, 0, 0, NULL, -4);
    assert_int_equal(plan_test_run(&t), MST_OK);
    assert_float_equal(plan_test_float(&t, 0), -5, 0);
    plan_test_close(&t);
}

static void test_cse_merges_constants_by_value(void **state)
{
    struct graph_text g;
    struct plan_test t;

    (void)state;
    graph_text_init(&g);
    plan_test_put_arg(&g, "x", 0);
    plan_test_put_const(&g, "one", 1);
    plan_test_put_const(&g, "two", 2);
    plan_test_put_const(&g, "uno", 1);
    plan_test_put(&g, "a", "AddV2", "x,one");
    plan_test_put(&g, "b", "AddV2", "x,uno");
    plan_test_put(&g, "c", "AddV2", "x,two");
    plan_test_put(&g, "all", "AddN", "a,b,c");
    graph_text_int(&g, "N", 3);
    plan_test_put_ret(&g, "r", "all", 0);
    plan_test_open(&t, &g, true);
    assert_false(plan_test_gone(&t, "c"));
    assert_int_not_equal(plan_test_gone(&t, "a"), plan_test_gone(&t, "b"));
    plan_test_arg(&t, 0, 0, NULL, 10);
    assert_int_equal(plan_test_run(&t), MST_OK);
    assert_float_equal(plan_test_float(&t, 0), 34, 0);
    plan_test_close(&t);
}

/* Two random nodes draw apart, a stateful twin is no twin. */
static void test_cse_leaves_state_alone(void **state)
{
    int zero = 0;
    struct graph_text g;
    struct plan_test t;

    (void)state;
    graph_text_init(&g);
    graph_text_const(&g, "n", DT_INT32, &zero);
    graph_text_node(&g, "dims", "ExpandDims", "n,n");
    graph_text_type(&g, "T", DT_INT32);
    graph_text_type(&g, "Tdim", DT_INT32);
    for (int i = 0; i < 2; i++) {
        graph_text_node(&g, i ? "a" : "b", "RandomUniform", "dims");
        graph_text_type(&g, "T", DT_INT32);
        graph_text_type(&g, "dtype", DT_FLOAT);
        plan_test_put_ret(&g, i ? "r" : "s", i ? "a" : "b", i);
    }
    plan_test_open(&t, &g, true);
    assert_false(plan_test_gone(&t, "a") || plan_test_gone(&t, "b"));
    plan_test_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cse_merges_equal_nodes_only),
        cmocka_unit_test(test_cse_compares_attributes),
        cmocka_unit_test(test_cse_merges_constants_by_value),
        cmocka_unit_test(test_cse_leaves_state_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
