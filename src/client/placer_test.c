#include "client/placer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "graph/testing.h"

static void add(struct graph_text *g, const char *name, const char *op,
                const char *beside)
{
    struct pb_out list, v;
    char text[64];

    graph_text_node(g, name, op, NULL);
    if (!beside)
        return;
    snprintf(text, sizeof(text), "loc:@%s", beside);
    pb_out_init(&list);
    pb_put_bytes(&list, 2, text, strlen(text));
    pb_out_init(&v);
    pb_put_bytes(&v, 1, list.data, list.len);
    graph_text_attr(g, "_class", &v);
    pb_out_done(&list);
    pb_out_done(&v);
}

static void read_graph(struct graph_text *t, struct meta_graph *g)
{
    struct status st = STATUS_INIT;

    graph_text_close(t);
    assert_int_equal(meta_graph_parse(g, "test",
                                      mem_copy(t->graph.data, t->graph.len),
                                      t->graph.len, &st),
                     MST_OK);
    pb_out_done(&t->graph);
}

/* Places it and reads it again; the first graph is gone. */
static enum mst_code place(struct meta_graph *g, int ps, int workers)
{
    struct placer_opts o = { "worker", 1, "ps", ps, workers };
    struct status st = STATUS_INIT;
    struct pb_out def;
    enum mst_code rc;

    pb_out_init(&def);
    rc = placer_place(g, &o, &def, &st);
    meta_graph_done(g);
    if (!rc)
        assert_int_equal(meta_graph_parse(g, "test",
                                          mem_copy(def.data, def.len), def.len,
                                          &st),
                         MST_OK);
    pb_out_done(&def);
    return rc;
}

static const char *device(const struct meta_graph *g, const char *name)
{
    return meta_graph_node(g, name, strlen(name))->device;
}

static void test_variables_go_round_and_the_rest_stays(void **state)
{
    struct graph_text t;
    struct meta_graph g;

    graph_text_init(&t);
    t.device = "";
    add(&t, "a", "VariableV2", NULL);
    add(&t, "x", "NoOp", NULL);
    add(&t, "slot", "VariableV2", "a");
    add(&t, "b", "VarHandleOp", NULL);
    add(&t, "c", "VariableV2", NULL);
    add(&t, "read", "NoOp", "b");
    read_graph(&t, &g);
    assert_int_equal(place(&g, 2, 2), MST_OK);
    assert_string_equal(device(&g, "a"), "/job:ps/task:0");
    assert_string_equal(device(&g, "slot"), "/job:ps/task:0");
    assert_string_equal(device(&g, "b"), "/job:ps/task:1");
    assert_string_equal(device(&g, "read"), "/job:ps/task:1");
    assert_string_equal(device(&g, "c"), "/job:ps/task:0");
    assert_string_equal(device(&g, "x"), "/job:worker/task:1");
    meta_graph_done(&g);
}

static void test_without_ps_all_is_the_workers(void **state)
{
    struct graph_text t;
    struct meta_graph g;

    graph_text_init(&t);
    t.device = "/device:CPU:0";
    add(&t, "a", "VariableV2", NULL);
    read_graph(&t, &g);
    assert_int_equal(place(&g, 0, 1), MST_OK);
    assert_string_equal(device(&g, "a"), "/job:worker/task:1/device:CPU:0");
    meta_graph_done(&g);
}

static void test_a_placed_graph_is_kept_and_completed(void **state)
{
    struct graph_text t;
    struct meta_graph g;

    graph_text_init(&t);
    t.device = "/job:ps/task:1";
    add(&t, "a", "VariableV2", NULL);
    t.device = "/job:worker";
    add(&t, "x", "NoOp", NULL);
    t.device = "";
    add(&t, "y", "NoOp", NULL);
    read_graph(&t, &g);
    assert_int_equal(place(&g, 2, 2), MST_OK);
    assert_string_equal(device(&g, "a"), "/job:ps/task:1");
    assert_string_equal(device(&g, "x"), "/job:worker/task:1");
    assert_string_equal(device(&g, "y"), "");
    meta_graph_done(&g);
}

static void test_gathered_gradients_need_devices(void **state)
{
    struct graph_text t;
    struct meta_graph g;

    graph_text_init(&t);
    t.device = "";
    add(&t, "a", "ConditionalAccumulator", NULL);
    read_graph(&t, &g);
    assert_int_equal(place(&g, 2, 2), MST_FAILED_PRECONDITION);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_variables_go_round_and_the_rest_stays),
        cmocka_unit_test(test_without_ps_all_is_the_workers),
        cmocka_unit_test(test_a_placed_graph_is_kept_and_completed),
        cmocka_unit_test(test_gathered_gradients_need_devices),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
