#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "exec/testing.h"

static void test_bypass_follows_identities(void **state)
{
    struct graph_text g;
    struct plan_test t;

    (void)state;
    graph_text_init(&g);
    plan_test_put_arg(&g, "x", 0);
    plan_test_put(&g, "a", "Identity", "x");
    plan_test_put(&g, "b", "StopGradient", "a");
    plan_test_put(&g, "y", "Neg", "b,^a");
    plan_test_put_ret(&g, "r", "y", 0);
    plan_test_open(&t, &g, true);
    assert_true(plan_test_gone(&t, "a") && plan_test_gone(&t, "b"));
    assert_int_equal(plan_test_node(&t, "y")->control_in, 0);
    plan_test_arg(&t, 0, 0, NULL, 3);
    assert_int_equal(plan_test_run(&t), MST_OK);
    assert_float_equal(plan_test_float(&t, 0), -3, 0);
    assert_int_equal(t.ran, 3);
    plan_test_close(&t);
}

static void test_bypass_keeps_what_waits_and_targets(void **state)
{
    struct graph_text g;
    struct plan_test t;

    (void)state;
    graph_text_init(&g);
    plan_test_put_arg(&g, "x", 0);
    plan_test_put(&g, "n", "Neg", "x");
    plan_test_put(&g, "late", "Identity", "x,^n");
    plan_test_put(&g, "target", "Identity", "x");
    plan_test_put_ret(&g, "r", "late", 0);
    plan_test_open(&t, &g, true);
    assert_false(plan_test_gone(&t, "late"));
    assert_false(plan_test_gone(&t, "n"));
    assert_false(plan_test_gone(&t, "target"));
    plan_test_close(&t);
}

/* The side of a Switch that others wait for is not the Switch. */
static void test_bypass_keeps_pivot_of_branch(void **state)
{
    struct graph_text g;
    struct plan_test t;
    bool no = false;

    (void)state;
    graph_text_init(&g);
    plan_test_put_arg(&g, "x", 0);
    graph_text_const(&g, "p", DT_BOOL, &no);
    plan_test_put(&g, "w", "Switch", "x,p");
    plan_test_put(&g, "f", "Identity", "w:0");
    plan_test_put(&g, "t", "Identity", "w:1");
    plan_test_put(&g, "y", "Neg", "x,^t");
    plan_test_put(&g, "m", "Merge", "f,y");
    graph_text_int(&g, "N", 2);
    plan_test_put_ret(&g, "r", "m", 0);
    plan_test_open(&t, &g, true);
    assert_true(plan_test_gone(&t, "f"));
    assert_false(plan_test_gone(&t, "t"));
    plan_test_arg(&t, 0, 0, NULL, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(plan_test_run(&t), MST_OK);
        assert_float_equal(plan_test_float(&t, 0), 3, 0);
    }
    plan_test_close(&t);
}

static void test_bypass_reads_references(void **state)
{
    struct graph_text g;
    struct plan_test t;
    struct pb_out shape;

    (void)state;
    graph_text_init(&g);
    graph_text_node(&g, "v", "VariableV2", NULL);
    graph_text_type(&g, "dtype", DT_FLOAT);
    pb_out_init(&shape);
    pb_put_bytes(&shape, 7, "", 0);
    graph_text_attr(&g, "shape", &shape);
    pb_out_done(&shape);
    plan_test_put(&g, "read", "Identity", "v");
    plan_test_put(&g, "again", "Identity", "read");
    plan_test_put_ret(&g, "r", "again", 0);
    plan_test_open(&t, &g, true);
    assert_false(plan_test_gone(&t, "read"));
    assert_true(plan_test_gone(&t, "again"));
    assert_int_equal(plan_test_run(&t), MST_FAILED_PRECONDITION);
    assert_non_null(strstr(t.st.msg, "uninitialized value v"));
    plan_test_close(&t);
}

static void test_bypass_shortens_chain_of_no_ops(void **state)
{
    struct graph_text g;
    struct plan_test t;

    (void)state;
    graph_text_init(&g);
    plan_test_put_arg(&g, "x", 0);
    plan_test_put(&g, "y", "Neg", "x");
    graph_text_node(&g, "nothing", "NoOp", NULL);
    graph_text_node(&g, "a", "NoOp", "^y,^nothing");
    graph_text_node(&g, "b", "NoOp", "^a");
    graph_text_node(&g, "target", "NoOp", "^b,^x");
    plan_test_open(&t, &g, true);
    assert_true(plan_test_gone(&t, "nothing") && plan_test_gone(&t, "a") &&
                plan_test_gone(&t, "b"));
    assert_int_equal(plan_test_node(&t, "target")->control_in, 2);
    plan_test_arg(&t, 0, 0, NULL, 3);
    assert_int_equal(plan_test_run(&t), MST_OK);
    assert_int_equal(t.ran, 3);
    plan_test_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bypass_follows_identities),
        cmocka_unit_test(test_bypass_keeps_what_waits_and_targets),
        cmocka_unit_test(test_bypass_keeps_pivot_of_branch),
        cmocka_unit_test(test_bypass_reads_references),
        cmocka_unit_test(test_bypass_shortens_chain_of_no_ops),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
