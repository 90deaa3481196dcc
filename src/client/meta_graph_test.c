#include "client/meta_graph.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "graph/testing.h"

static void put_text(struct pb_out *o, uint32_t field, const char *text)
{
    pb_put_bytes(o, field, text, strlen(text));
}

static void put_out(struct pb_out *to, uint32_t field, struct pb_out *from)
{
    pb_put_bytes(to, field, from->data, from->len);
    pb_out_done(from);
}

/* A collection of one value, of kind 1 (names) or 2 (messages). */
static void put_collection(struct pb_out *meta, const char *name, int kind,
                           const void *value, size_t len)
{
    struct pb_out list, def, entry;

    pb_out_init(&list);
    pb_put_bytes(&list, 1, value, len);
    pb_out_init(&def);
    put_out(&def, (uint32_t)kind, &list);
    pb_out_init(&entry);
    put_text(&entry, 1, name);
    put_out(&entry, 2, &def);
    put_out(meta, 4, &entry);
}

static void put_signature(struct pb_out *meta)
{
    struct pb_out info, entry, def, sig;

    pb_out_init(&info);
    put_text(&info, 1, "in/x:0");
    pb_out_init(&entry);
    put_text(&entry, 1, "images");
    put_out(&entry, 2, &info);
    pb_out_init(&def);
    put_out(&def, 1, &entry);
    pb_out_init(&sig);
    put_text(&sig, 1, "train");
    put_out(&sig, 2, &def);
    put_out(meta, 5, &sig);
}

static void write_graph(struct graph_text *t)
{
    struct pb_out dims, dim, shape;

    graph_text_init(t);
    t->device = "";
    graph_text_node(t, "in/x", "Placeholder", NULL);
    graph_text_type(t, "dtype", DT_FLOAT);
    pb_out_init(&dims);
    for (int i = 0; i < 2; i++) {
        pb_out_init(&dim);
        pb_put_uint(&dim, 1, i ? 3 : UINT64_MAX);
        put_out(&dims, 2, &dim);
    }
    pb_out_init(&shape);
    put_out(&shape, 7, &dims);
    graph_text_attr(t, "shape", &shape);
    pb_out_done(&shape);
    graph_text_node(t, "w", "VarHandleOp", NULL);
    graph_text_node(t, "w/Assign", "AssignVariableOp", "w,in/x");
    graph_text_node(t, "global_step", "VariableV2", NULL);
    graph_text_node(t, "global_step/Assign", "Assign", "global_step");
    graph_text_node(t, "global_step/read", "Identity", "global_step");
    graph_text_close(t);
}

static void parse(struct meta_graph *g, const struct pb_out *bytes)
{
    struct status st = STATUS_INIT;

    if (meta_graph_parse(g, "test", mem_copy(bytes->data, bytes->len),
                         bytes->len, &st))
        fail_msg("%s", st.msg);
}

static void test_a_meta_graph_says_what_it_is_for(void **state)
{
    struct pb_out meta, variable, runner, saver;
    struct graph_text t;
    struct meta_graph g;

    write_graph(&t);
    pb_out_init(&meta);
    put_text(&meta, 1, "");
    pb_put_bytes(&meta, 2, t.graph.data, t.graph.len);
    pb_out_init(&saver);
    put_text(&saver, 1, "save/Const:0");
    put_text(&saver, 2, "save/Identity:0");
    put_text(&saver, 3, "save/restore_all");
    pb_put_uint(&saver, 4, 7);
    put_out(&meta, 3, &saver);
    put_collection(&meta, "train_op", 1, "train", 5);
    pb_out_init(&variable);
    put_text(&variable, 1, "w:0");
    put_text(&variable, 2, "w/Assign");
    pb_put_uint(&variable, 5, 1);
    put_collection(&meta, "variables", 2, variable.data, variable.len);
    pb_out_done(&variable);
    pb_out_init(&runner);
    put_text(&runner, 1, "q");
    put_text(&runner, 2, "q/enqueue");
    put_text(&runner, 2, "q/enqueue_1");
    put_collection(&meta, "queue_runners", 2, runner.data, runner.len);
    pb_out_done(&runner);
    put_signature(&meta);
    parse(&g, &meta);
    assert_string_equal(meta_graph_first(&g, "train_op"), "train");
    assert_null(meta_graph_first(&g, "init_op"));
    assert_int_equal(g.saver->max_to_keep, 7);
    assert_int_equal(g.variable_count, 1);
    assert_true(g.variables[0].resource);
    assert_null(g.global_step);
    assert_int_equal(g.runner_count, 1);
    assert_int_equal(g.runners[0].enqueue_count, 2);
    assert_string_equal(g.runners[0].enqueue[1], "q/enqueue_1");
    meta_graph_done(&g);
    pb_out_done(&meta);
    pb_out_done(&t.graph);
}

static void test_a_bare_graph_is_guessed(void **state)
{
    struct graph_text t;
    struct meta_graph g;

    write_graph(&t);
    parse(&g, &t.graph);
    assert_int_equal(g.node_count, 6);
    assert_int_equal(g.variable_count, 2);
    assert_string_equal(g.variables[0].initializer, "w/Assign");
    assert_non_null(g.global_step);
    assert_string_equal(g.global_step->snapshot, "global_step/read:0");
    assert_null(g.saver);
    meta_graph_done(&g);
    pb_out_done(&t.graph);
}

static void test_names_are_found(void **state)
{
    struct status st = STATUS_INIT;
    struct pb_out meta;
    struct graph_text t;
    struct meta_graph g;
    const char *name;
    struct shape shape;
    enum dtype type;

    write_graph(&t);
    pb_out_init(&meta);
    pb_put_bytes(&meta, 2, t.graph.data, t.graph.len);
    put_signature(&meta);
    parse(&g, &meta);
    assert_int_equal(meta_graph_tensor(&g, "in/x", &name, &st), MST_OK);
    assert_string_equal(name, "in/x:0");
    assert_int_equal(meta_graph_tensor(&g, "images", &name, &st), MST_OK);
    assert_string_equal(name, "in/x:0");
    assert_true(meta_graph_placeholder(&g, name, &type, &shape));
    assert_int_equal(type, DT_FLOAT);
    assert_int_equal(shape.ndim, 2);
    assert_int_equal(shape.dims[0], -1);
    assert_int_equal(shape.dims[1], 3);
    assert_false(meta_graph_placeholder(&g, "w:0", &type, &shape));
    assert_int_equal(meta_graph_tensor(&g, "x", &name, &st), MST_NOT_FOUND);
    assert_non_null(strstr(st.msg, "did you mean \"in/x\"?"));
    assert_int_equal(meta_graph_op(&g, "w/Assign:0", &name, &st), MST_OK);
    assert_string_equal(name, "w/Assign");
    meta_graph_done(&g);
    pb_out_done(&meta);
    pb_out_done(&t.graph);
}

static void test_what_is_no_graph_is_refused(void **state)
{
    static const char *const wrong[] = { "", "node { name: \"x\" }",
                                         "\x0a\xff\xff\xff\x7f" };
    struct status st = STATUS_INIT;
    struct meta_graph g;

    for (size_t i = 0; i < COUNT(wrong); i++)
        assert_int_equal(meta_graph_parse(&g, "it",
                                          mem_copy(wrong[i], strlen(wrong[i])),
                                          strlen(wrong[i]), &st),
                         MST_INVALID_ARGUMENT);
    assert_int_equal(meta_graph_read(&g, "/nonexistent", &st), MST_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_meta_graph_says_what_it_is_for),
        cmocka_unit_test(test_a_bare_graph_is_guessed),
        cmocka_unit_test(test_names_are_found),
        cmocka_unit_test(test_what_is_no_graph_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
