#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "exec/testing.h"

/* A tree that has everything: f(x, y, z) of 9 ops, functions among them. */
static void put_tree(struct graph_text *g)
{
    graph_text_init(g);
    plan_test_put_arg(g, "x", 0);
    plan_test_put_arg(g, "y", 1);
    plan_test_put_arg(g, "z", 2);
    plan_test_put_const(g, "half", 0.5f);
    plan_test_put(g, "a", "Mul", "x,half");
    plan_test_put(g, "b", "Sub", "y,a");
    plan_test_put(g, "c", "Tanh", "b");
    plan_test_put(g, "d", "AddV2", "z,half");
    plan_test_put(g, "e", "Sqrt", "d");
    plan_test_put(g, "f", "RealDiv", "c,e");
    plan_test_put(g, "h", "Maximum", "x,f");
    plan_test_put(g, "i", "TanhGrad", "h,h2");
    plan_test_put(g, "h2", "Sigmoid", "h3");
    plan_test_put(g, "h3", "SquaredDifference", "x,f2");
    plan_test_put(g, "f2", "Neg", "b2");
    plan_test_put(g, "b2", "AddV2", "y,z");
    plan_test_put_ret(g, "r", "i", 0);
}

/* Runs the tree fused and not: the same bits, or the same error. */
static void check_equal(const int64_t (*shapes)[4])
{
    struct plan_test t[2];

    for (int o = 0; o < 2; o++) {
        struct graph_text g;

        put_tree(&g);
        plan_test_open(&t[o], &g, o);
        for (int i = 0; i < 3; i++)
            plan_test_arg(&t[o], i, (int)shapes[i][0], shapes[i] + 1,
                          0.25f * (float)(i + 1));
        for (int i = 0; i < 3; i++)
            for (int64_t k = 0; k < t[o].args[i].count; k++)
                TENSOR_DATA(&t[o].args[i], float)
        [k] = (float)((k * 7919 + i) % 1009) / 301;
        (void)plan_test_run(&t[o]);
    }
    assert_int_equal(t[0].ran, t[0].st.code ? t[0].ran : 17);
    assert_true(t[1].ran <= 7);
    assert_int_equal(t[0].st.code, t[1].st.code);
    assert_string_equal(t[0].st.msg, t[1].st.msg);
    if (!t[0].st.code) {
        assert_true(tensor_same_shape(&t[0].rets[0], &t[1].rets[0]));
        if (t[0].rets[0].count)
            assert_memory_equal(t[0].rets[0].data, t[1].rets[0].data,
                                tensor_bytes(&t[0].rets[0]));
    }
    plan_test_close(&t[0]);
    plan_test_close(&t[1]);
}

static void test_fuse_gives_same_bits(void **state)
{
    static const int64_t cases[][3][4] = {
        { { 0 }, { 0 }, { 0 } },                         /* scalars */
        { { 1, 17 }, { 1, 17 }, { 1, 17 } },             /* a tail */
        { { 2, 61, 67 }, { 2, 61, 67 }, { 0 } },         /* blocks */
        { { 2, 61, 67 }, { 1, 67 }, { 2, 61, 67 } },     /* a row */
        { { 2, 61, 67 }, { 2, 61, 1 }, { 2, 1, 67 } },   /* both */
        { { 2, 900, 13 }, { 1, 13 }, { 2, 1, 13 } },     /* tiled rows */
        { { 2, 3, 3000 }, { 2, 3, 1 }, { 1, 3000 } },    /* long rows */
        { { 3, 2, 3, 5 }, { 3, 2, 1, 5 }, { 2, 3, 5 } }, /* another way */
        { { 1, 0 }, { 1, 0 }, { 1, 1 } },                /* nothing */
        { { 1, 1 }, { 0 }, { 2, 1, 1 } },                /* ones */
        { { 0 }, { 0 }, { 2, 40, 40 } },                 /* late growth */
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        check_equal(cases[i]);
}

static void test_fuse_names_failing_node(void **state)
{
    static const int64_t cases[][3][4] = {
        { { 1, 3 }, { 1, 2 }, { 1, 3 } },
        { { 1, 3 }, { 1, 3 }, { 1, 2 } },
        { { 2, 2, 3 }, { 1, 3 }, { 1, 3 } }, /* TanhGrad of other shapes */
    };
    static const char *const names[] = { "b", NULL, NULL };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct graph_text g;
        struct plan_test t;

        put_tree(&g);
        plan_test_open(&t, &g, true);
        for (int k = 0; k < 3; k++)
            plan_test_arg(&t, k, (int)cases[i][k][0], cases[i][k] + 1, 1);
        if (i < 2) {
            assert_int_equal(plan_test_run(&t), MST_INVALID_ARGUMENT);
            assert_non_null(strstr(t.st.msg, "Incompatible shapes: "));
            assert_null(strstr(t.st.msg, "{{node i}}"));
        } else {
            (void)plan_test_run(&t);
        }
        if (names[i])
            assert_non_null(strstr(t.st.msg, "{{node b}}"));
        plan_test_close(&t);
    }
}

/* BiasAdd is a sum with a row, and has its own idea of shapes. */
static void test_fuse_knows_bias(void **state)
{
    struct graph_text g;
    struct plan_test t;

    (void)state;
    graph_text_init(&g);
    plan_test_put_arg(&g, "x", 0);
    plan_test_put_arg(&g, "b", 1);
    plan_test_put(&g, "sum", "BiasAdd", "x,b");
    plan_test_put(&g, "y", "Relu", "sum");
    plan_test_put_ret(&g, "r", "y", 0);
    plan_test_open(&t, &g, true);
    assert_true(plan_test_gone(&t, "sum"));
    plan_test_arg(&t, 0, 2, (const int64_t[]){ 2, 3 }, -3);
    plan_test_arg(&t, 1, 1, (const int64_t[]){ 3 }, 1);
    assert_int_equal(plan_test_run(&t), MST_OK);
    for (int i = 0; i < 6; i++)
        assert_float_equal(TENSOR_DATA(&t.rets[0], float)[i],
                           MAX(0, i - 3 + i % 3 + 1), 0);
    plan_test_arg(&t, 1, 1, (const int64_t[]){ 2 }, 1);
    assert_int_equal(plan_test_run(&t), MST_INVALID_ARGUMENT);
    assert_non_null(strstr(t.st.msg, "Must provide as many biases"));
    assert_non_null(strstr(t.st.msg, "[[{{node sum}}]]"));
    plan_test_arg(&t, 1, 2, (const int64_t[]){ 1, 3 }, 1);
    assert_int_equal(plan_test_run(&t), MST_INVALID_ARGUMENT);
    assert_non_null(strstr(t.st.msg, "Biases must be 1D"));
    plan_test_close(&t);
}

/* A value that two want, that someone waits for, or that waits, stays one. */
static void test_fuse_leaves_shared_values(void **state)
{
    struct graph_text g;
    struct plan_test t;

    (void)state;
    graph_text_init(&g);
    plan_test_put_arg(&g, "x", 0);
    plan_test_put(&g, "two", "Neg", "x");
    plan_test_put(&g, "awaited", "Square", "two");
    plan_test_put(&g, "waits", "Relu", "awaited,^two");
    plan_test_put(&g, "y", "Abs", "waits");
    plan_test_put(&g, "w", "Exp", "x,^awaited");
    plan_test_put(&g, "sum", "AddV2", "y,w");
    plan_test_put_ret(&g, "r", "sum", 0);
    plan_test_put_ret(&g, "s", "two", 1);
    plan_test_open(&t, &g, true);
    assert_false(plan_test_gone(&t, "two"));
    assert_false(plan_test_gone(&t, "awaited"));
    assert_false(plan_test_gone(&t, "waits"));
    assert_false(plan_test_gone(&t, "w"));
    assert_true(plan_test_gone(&t, "y"));
    plan_test_arg(&t, 0, 0, NULL, 0);
    assert_int_equal(plan_test_run(&t), MST_OK);
    assert_float_equal(plan_test_float(&t, 0), 1, 0);
    plan_test_close(&t);
}

/* An argument that nobody else has may be written over, others not. */
static void test_fuse_keeps_operands_of_others(void **state)
{
    struct graph_text g;
    struct plan_test t;

    (void)state;
    graph_text_init(&g);
    plan_test_put_arg(&g, "x", 0);
    plan_test_put(&g, "n", "Neg", "x");
    plan_test_put(&g, "a", "Square", "n");
    plan_test_put(&g, "b", "AddV2", "a,n");
    plan_test_put_ret(&g, "r", "b", 0);
    plan_test_put_ret(&g, "s", "n", 1);
    plan_test_open(&t, &g, true);
    plan_test_arg(&t, 0, 1, (const int64_t[]){ 5000 }, 1);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(plan_test_run(&t), MST_OK);
        assert_float_equal(TENSOR_DATA(&t.rets[0], float)[4999],
                           5000.f * 5000 - 5000, 0);
        assert_float_equal(TENSOR_DATA(&t.rets[1], float)[4999], -5000, 0);
        assert_float_equal(TENSOR_DATA(&t.args[0], float)[4999], 5000, 0);
    }
    plan_test_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fuse_gives_same_bits),
        cmocka_unit_test(test_fuse_names_failing_node),
        cmocka_unit_test(test_fuse_knows_bias),
        cmocka_unit_test(test_fuse_leaves_shared_values),
        cmocka_unit_test(test_fuse_keeps_operands_of_others),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
