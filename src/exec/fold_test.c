#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "exec/testing.h"

static void test_fold_keeps_result_and_drops_inputs(void **state)
{
    struct graph_text g;
    struct plan_test t;

    (void)state;
    graph_text_init(&g);
    plan_test_put_const(&g, "a", 2);
    plan_test_put_const(&g, "b", 3);
    plan_test_put(&g, "sum", "AddV2", "a,b");
    plan_test_put(&g, "square", "Square", "sum");
    plan_test_put_ret(&g, "r", "square", 0);
    plan_test_open(&t, &g, true);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(plan_test_run(&t), MST_OK);
        assert_float_equal(plan_test_float(&t, 0), 25, 0);
        assert_int_equal(t.ran, 2);
    }
    assert_non_null(plan_test_node(&t, "square")->constant);
    assert_true(plan_test_gone(&t, "sum"));
    plan_test_close(&t);
}

/* The first consumer of a constant must not write into it. */
static void test_fold_result_is_not_written_to(void **state)
{
    struct graph_text g;
    struct plan_test t;

    (void)state;
    graph_text_init(&g);
    plan_test_put_arg(&g, "x", 0);
    plan_test_put_const(&g, "a", 2);
    plan_test_put(&g, "c", "Neg", "a");
    plan_test_put(&g, "y", "AddV2", "c,x");
    plan_test_put_ret(&g, "r", "y", 0);
    plan_test_open(&t, &g, true);
    for (int i = 0; i < 3; i++) {
        plan_test_arg(&t, 0, 0, NULL, 10);
        assert_int_equal(plan_test_run(&t), MST_OK);
        assert_float_equal(plan_test_float(&t, 0), 8, 0);
    }
    plan_test_close(&t);
}

static void test_fold_leaves_failing_node_to_the_step(void **state)
{
    int bad = -1;
    struct graph_text g;
    struct plan_test t;

    (void)state;
    graph_text_init(&g);
    plan_test_put_const(&g, "a", 2);
    graph_text_const(&g, "dim", DT_INT32, &bad);
    plan_test_put(&g, "wrong", "ExpandDims", "a,five");
    graph_text_type(&g, "Tdim", DT_INT32);
    graph_text_node(&g, "five", "Mul", "dim,dim2");
    graph_text_type(&g, "T", DT_INT32);
    bad = -5;
    graph_text_const(&g, "dim2", DT_INT32, &bad);
    plan_test_put_ret(&g, "r", "wrong", 0);
    plan_test_open(&t, &g, true);
    assert_non_null(plan_test_node(&t, "five")->constant);
    assert_null(plan_test_node(&t, "wrong")->constant);
    assert_int_equal(plan_test_run(&t), MST_INVALID_ARGUMENT);
    assert_non_null(strstr(t.st.msg, "[[{{node wrong}}]]"));
    plan_test_close(&t);
}

/* One of 10 MB and more is not kept, nor is the memory asked for. */
static void test_fold_refuses_large_result(void **state)
{
    int64_t dims[] = { 3000, 1000 };
    struct status st = STATUS_INIT;
    struct graph_text g;
    struct plan_test t;
    struct tensor shape;

    (void)state;
    assert_int_equal(
        tensor_new(&shape, DT_INT64, 1, (const int64_t[]){ 2 }, &st), MST_OK);
    memcpy(shape.data, dims, sizeof(dims));
    graph_text_init(&g);
    plan_test_put_const(&g, "a", 2);
    graph_text_node(&g, "dims", "Const", NULL);
    graph_text_type(&g, "dtype", DT_INT64);
    graph_text_tensor(&g, "value", &shape);
    plan_test_put(&g, "fill", "Fill", "dims,a");
    graph_text_type(&g, "index_type", DT_INT64);
    plan_test_put_ret(&g, "r", "fill", 0);
    plan_test_open(&t, &g, true);
    assert_null(plan_test_node(&t, "fill")->constant);
    assert_int_equal(plan_test_run(&t), MST_OK);
    assert_int_equal(t.rets[0].count, 3000000);
    tensor_unref(&shape);
    plan_test_close(&t);
}

static void test_fold_refuses_random_and_arguments(void **state)
{
    int two = 2;
    struct graph_text g;
    struct plan_test t;

    (void)state;
    graph_text_init(&g);
    graph_text_const(&g, "n", DT_INT32, &two);
    graph_text_node(&g, "dims", "ExpandDims", "n,axis");
    graph_text_type(&g, "T", DT_INT32);
    graph_text_type(&g, "Tdim", DT_INT32);
    two = 0;
    graph_text_const(&g, "axis", DT_INT32, &two);
    graph_text_node(&g, "random", "RandomUniform", "dims");
    graph_text_type(&g, "T", DT_INT32);
    graph_text_type(&g, "dtype", DT_FLOAT);
    plan_test_put_arg(&g, "x", 0);
    plan_test_put(&g, "y", "Neg", "x");
    plan_test_put_ret(&g, "r", "random", 0);
    plan_test_put_ret(&g, "s", "y", 1);
    plan_test_open(&t, &g, true);
    assert_non_null(plan_test_node(&t, "dims")->constant);
    assert_null(plan_test_node(&t, "random")->constant);
    assert_null(plan_test_node(&t, "y")->constant);
    plan_test_close(&t);
}

static void put_waiting_const(struct graph_text *g, const char *name,
                              const char *control, float value)
{
    struct status st = STATUS_INIT;
    struct tensor t;

    assert_int_equal(tensor_new_scalar(&t, DT_FLOAT, &st), MST_OK);
    *TENSOR_DATA(&t, float) = value;
    graph_text_node(g, name, "Const", control);
    graph_text_type(g, "dtype", DT_FLOAT);
    graph_text_tensor(g, "value", &t);
    tensor_unref(&t);
}

/* In a branch that is not taken a constant is dead, folded or not. */
static void test_fold_keeps_control_inputs_of_all(void **state)
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
    put_waiting_const(&g, "one", "^t", 1);
    plan_test_put(&g, "minus", "Neg", "one");
    plan_test_put(&g, "m", "Merge", "f,minus");
    graph_text_int(&g, "N", 2);
    plan_test_put_ret(&g, "r", "m", 0);
    plan_test_open(&t, &g, true);
    assert_non_null(plan_test_node(&t, "minus")->constant);
    assert_int_equal(plan_test_node(&t, "minus")->control_in, 1);
    plan_test_arg(&t, 0, 0, NULL, 7);
    assert_int_equal(plan_test_run(&t), MST_OK);
    assert_float_equal(plan_test_float(&t, 0), 7, 0);
    plan_test_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fold_keeps_result_and_drops_inputs),
        cmocka_unit_test(test_fold_result_is_not_written_to),
        cmocka_unit_test(test_fold_leaves_failing_node_to_the_step),
        cmocka_unit_test(test_fold_refuses_large_result),
        cmocka_unit_test(test_fold_refuses_random_and_arguments),
        cmocka_unit_test(test_fold_keeps_control_inputs_of_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
