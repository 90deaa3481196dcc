/* What becomes of If, While and calls: names, edges, and what stays a call. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "graph/lower.h"

#include <stdio.h>
#include <string.h>

#include "graph/testing.h"

static struct graph_text g;
static struct pb_out library;
static struct source s;
static struct status st;

static int setup(void **state)
{
    graph_text_init(&g);
    pb_out_init(&library);
    source_init(&s);
    status_clear(&st);
    return 0;
}

static int teardown(void **state)
{
    source_done(&s);
    pb_out_done(&library);
    return 0;
}

static void put_arg(struct pb_out *sig, uint32_t field, const char *name,
                    int type)
{
    struct pb_out a;

    pb_out_init(&a);
    pb_put_bytes(&a, 1, name, strlen(name));
    pb_put_uint(&a, 3, (uint64_t)type);
    pb_put_bytes(sig, field, a.data, a.len);
    pb_out_done(&a);
}

/* A function of x, a float: its one node is `body`, which makes y. The open
 * node of `body` is its last. */
static void put_function(const char *name, int y_type, struct graph_text *body,
                         const char *result, const char *control)
{
    struct pb_in in;
    struct pb_field f;
    struct pb_out sig, fn, ret;

    graph_text_close(body);
    pb_out_init(&sig);
    pb_out_init(&fn);
    pb_out_init(&ret);
    pb_put_bytes(&sig, 1, name, strlen(name));
    put_arg(&sig, 2, "x", DT_FLOAT);
    put_arg(&sig, 3, "y", y_type);
    pb_put_bytes(&fn, 1, sig.data, sig.len);
    in = pb_in(body->graph.data, body->graph.len);
    while (pb_next(&in, &f))
        pb_put_bytes(&fn, 3, f.data, f.len);
    pb_put_bytes(&ret, 1, "y", 1);
    pb_put_bytes(&ret, 2, result, strlen(result));
    pb_put_bytes(&fn, 4, ret.data, ret.len);
    if (control) {
        ret.len = 0;
        pb_put_bytes(&ret, 1, "c", 1);
        pb_put_bytes(&ret, 2, control, strlen(control));
        pb_put_bytes(&fn, 6, ret.data, ret.len);
    }
    pb_put_bytes(&library, 1, fn.data, fn.len);
    pb_out_done(&ret);
    pb_out_done(&sig);
    pb_out_done(&fn);
    pb_out_done(&body->graph);
}

/* y = op(x) */
static void put_unary(const char *name, const char *op)
{
    struct graph_text body;

    graph_text_init(&body);
    body.device = "";
    graph_text_node(&body, "n", op, "x");
    graph_text_type(&body, "T", DT_FLOAT);
    put_function(name, DT_FLOAT, &body, "n:y:0", NULL);
}

static void put_func(struct graph_text *t, const char *attr, const char *name)
{
    struct pb_out v, list;

    pb_out_init(&v);
    pb_out_init(&list);
    pb_put_bytes(&list, 1, name, strlen(name));
    pb_put_bytes(&v, 10, list.data, list.len);
    graph_text_attr(t, attr, &v);
    pb_out_done(&v);
    pb_out_done(&list);
}

static void put_types(struct graph_text *t, const char *attr, int type)
{
    struct pb_out v, list;

    pb_out_init(&v);
    pb_out_init(&list);
    pb_put_uint(&list, 6, (uint64_t)type);
    pb_put_bytes(&v, 1, list.data, list.len);
    graph_text_attr(t, attr, &v);
    pb_out_done(&v);
    pb_out_done(&list);
}

static void put_inputs(void)
{
    bool yes = true;
    float one = 1;

    graph_text_const(&g, "p", DT_BOOL, &yes);
    graph_text_const(&g, "a", DT_FLOAT, &one);
}

static void put_if(const char *name, const char *then_fn, const char *else_fn,
                   const char *inputs)
{
    graph_text_node(&g, name, "If", inputs);
    graph_text_type(&g, "Tcond", DT_BOOL);
    put_types(&g, "Tin", DT_FLOAT);
    put_types(&g, "Tout", DT_FLOAT);
    put_func(&g, "then_branch", then_fn);
    put_func(&g, "else_branch", else_fn);
    graph_text_bool(&g, "_lower_using_switch_merge", true);
}

static void extend(void)
{
    graph_text_close(&g);
    pb_put_bytes(&g.graph, 2, library.data, library.len);
    assert_int_equal(source_extend(&s, g.graph.data, g.graph.len, NULL, &st),
                     MST_OK);
    pb_out_done(&g.graph);
}

static const struct source_node *node(const char *name)
{
    int at = source_find(&s, name, strlen(name));

    if (at < 0)
        fail_msg("there is no node %s", name);
    return &s.nodes[at];
}

static void assert_input(const char *name, int k, const char *src, int output)
{
    const struct source_node *n = node(name);

    assert_true(k < n->input_count);
    assert_string_equal(s.nodes[n->inputs[k].node].name, src);
    assert_int_equal(n->inputs[k].output, output);
}

static void test_if_becomes_switch_and_merge(void **state)
{
    put_unary("neg", "Neg");
    put_unary("exp", "Exp");
    put_inputs();
    put_if("c", "neg", "exp", "p,a");
    graph_text_node(&g, "out", "Neg", "c");
    graph_text_type(&g, "T", DT_FLOAT);
    extend();
    assert_string_equal(node("c")->op, "NoOp");
    assert_input("c", 0, "c/branch_executed/_7", -1);
    assert_input("out", 0, "c/output/_6", 0);
    assert_input("c/output/_6", 0, "c/then/_0/n", 0);
    assert_input("c/output/_6", 1, "c/else/_1/n", 0);
    assert_input("c/then/_0/n", 0, "c/a/_5", 1);
    assert_input("c/else/_1/n", 0, "c/a/_5", 0);
    assert_string_equal(node("c/else/_1/n")->op, "Exp");
    assert_int_equal(node("c/then/_0/n")->device_len, strlen(g.device));
}

static void test_what_comes_later_reads_the_merge(void **state)
{
    put_unary("neg", "Neg");
    put_inputs();
    put_if("c", "neg", "neg", "p,a");
    extend();
    graph_text_init(&g);
    graph_text_node(&g, "later", "Neg", "c:0,^c");
    graph_text_type(&g, "T", DT_FLOAT);
    extend();
    assert_input("later", 0, "c/output/_6", 0);
    assert_input("later", 1, "c", -1);
}

static void test_a_loop_has_a_frame(void **state)
{
    struct graph_text body;
    bool no = false;

    put_unary("neg", "Neg");
    graph_text_init(&body);
    graph_text_const(&body, "never", DT_BOOL, &no);
    put_function("stop", DT_BOOL, &body, "never:output:0", NULL);
    put_inputs();
    graph_text_node(&g, "w", "While", "a,^p");
    put_types(&g, "T", DT_FLOAT);
    put_func(&g, "cond", "stop");
    put_func(&g, "body", "neg");
    graph_text_bool(&g, "_lower_using_switch_merge", true);
    extend();
    assert_input("w/enter/_2", 1, "w/LoopControlInputs/_3", -1);
    assert_input("w/merge/_4", 0, "w/enter/_2", 0);
    assert_input("w/merge/_4", 1, "w/next_iteration/_10", 0);
    assert_input("w/LoopCond/_5", 0, "w/cond/_0/never", 0);
    assert_input("w/cond/_0/never", 0, "w/merge/_4", -1);
    assert_input("w/body/_1/n", 0, "w/a_switch/_6", 1);
    assert_input("w/next_iteration/_10", 0, "w/body/_1/n", 0);
    assert_input("w", 0, "w/exit/_8", -1);
}

static void put_call(const char *name, const char *f)
{
    graph_text_node(&g, name, "PartitionedCall", "a");
    put_types(&g, "Tin", DT_FLOAT);
    put_types(&g, "Tout", DT_FLOAT);
    put_func(&g, "f", f);
}

static void test_a_call_gives_way_to_its_body(void **state)
{
    put_unary("neg", "Neg");
    put_inputs();
    put_call("f", "neg");
    extend();
    assert_string_equal(node("f")->op, "NoOp");
    assert_input("f", 0, "f/n", -1);
    assert_input("f/n", 0, "a", 0);
}

static void test_effects_that_nothing_names_stay_in_the_call(void **state)
{
    struct graph_text body;

    for (int named = 0; named < 2; named++) {
        graph_text_init(&body);
        graph_text_node(&body, "n", "Neg", "x");
        graph_text_type(&body, "T", DT_FLOAT);
        graph_text_node(&body, "say", "PrintV2", "text:output:0");
        graph_text_node(&body, "text", "Const", NULL);
        graph_text_type(&body, "dtype", DT_STRING);
        {
            struct tensor t;

            assert_int_equal(tensor_new_scalar(&t, DT_STRING, &st), MST_OK);
            graph_text_tensor(&body, "value", &t);
            tensor_unref(&t);
        }
        put_function(named ? "named" : "lost", DT_FLOAT, &body, "n:y:0",
                     named ? "say" : NULL);
    }
    put_inputs();
    put_call("f", "lost");
    put_call("h", "named");
    extend();
    assert_string_equal(node("f")->op, "PartitionedCall");
    assert_input("h", 0, "h/say", -1);
}

/* f(x) = f(x): as deep as we go, and there it is a call. */
static void test_a_function_that_calls_itself_ends(void **state)
{
    struct graph_text body;

    graph_text_init(&body);
    body.device = "";
    graph_text_node(&body, "n", "PartitionedCall", "x");
    put_types(&body, "Tin", DT_FLOAT);
    put_types(&body, "Tout", DT_FLOAT);
    put_func(&body, "f", "again");
    put_function("again", DT_FLOAT, &body, "n:output:0", NULL);
    put_inputs();
    put_call("f", "again");
    extend();
    assert_string_equal(node("f")->op, "NoOp");
    assert_true(s.count > 10 && s.count < 100);
}

static void test_a_branch_of_another_type_stays_a_call(void **state)
{
    struct graph_text body;
    bool no = false;

    put_unary("neg", "Neg");
    graph_text_init(&body);
    graph_text_const(&body, "b", DT_BOOL, &no);
    put_function("flag", DT_BOOL, &body, "b:output:0", NULL);
    put_inputs();
    put_if("c", "neg", "flag", "p,a");
    put_if("d", "neg", "missing", "p,a");
    extend();
    assert_string_equal(node("c")->op, "If");
    assert_string_equal(node("d")->op, "If");
    assert_int_equal(s.count, 4);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_if_becomes_switch_and_merge),
        TEST(test_what_comes_later_reads_the_merge),
        TEST(test_a_loop_has_a_frame),
        TEST(test_a_call_gives_way_to_its_body),
        TEST(test_effects_that_nothing_names_stay_in_the_call),
        TEST(test_a_function_that_calls_itself_ends),
        TEST(test_a_branch_of_another_type_stays_a_call),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
