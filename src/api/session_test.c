/* Sessions and tensors by their public face. */
#include "muster/session.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "graph/testing.h"

static mst_server *make_server(void)
{
    /* ServerDef: job "w" with task 0 on localhost:0; this is it. */
    static const char def[] = "\x0a\x14\x0a\x12\x0a\x01w\x12\x0d\x12\x0b"
                              "localhost:0\x12\x01w\x2a\x04grpc";
    struct mst_error error;
    mst_server *s;

    if (mst_server_new(def, sizeof(def) - 1, &s, &error) ||
        mst_server_start(s, &error))
        fail_msg("%s", error.message);
    return s;
}

static void write_graph(struct graph_text *g)
{
    graph_text_init(g);
    g->device = "";
    graph_text_node(g, "x", "Placeholder", NULL);
    graph_text_type(g, "dtype", DT_STRING);
    graph_text_node(g, "y", "StringLower", "x");
    graph_text_node(g, "z", "Placeholder", NULL);
    graph_text_type(g, "dtype", DT_INT32);
    graph_text_node(g, "n", "Neg", "z");
    graph_text_type(g, "T", DT_INT32);
    graph_text_close(g);
}

static mst_session *open_session(mst_server *server, bool inside)
{
    struct mst_error error;
    mst_session *s = NULL;
    struct graph_text g;
    enum mst_code rc;

    write_graph(&g);
    rc = inside ? mst_session_open_in(server, g.graph.data, g.graph.len, NULL,
                                      0, 20000, &s, &error)
                : mst_session_open(mst_server_target(server), g.graph.data,
                                   g.graph.len, NULL, 0, 20000, &s, &error);
    if (rc)
        fail_msg("%s", error.message);
    pb_out_done(&g.graph);
    return s;
}

static void lower(mst_session *s)
{
    const char *feeds[] = { "x:0" }, *fetches[] = { "y:0" };
    struct mst_error error;
    int64_t dims[] = { 2 };
    mst_tensor *x, *y;
    size_t len;

    assert_int_equal(mst_tensor_new(MST_STRING, 1, dims, &x, &error), MST_OK);
    mst_tensor_set_string(x, 1, "ABC", 3);
    assert_int_equal(mst_session_run(s, feeds, (const mst_tensor *const *)&x, 1,
                                     fetches, &y, 1, NULL, 0, 0, &error),
                     MST_OK);
    assert_int_equal(mst_tensor_dtype(y), MST_STRING);
    assert_int_equal(mst_tensor_count(y), 2);
    assert_null(mst_tensor_data(y));
    assert_string_equal(mst_tensor_string(y, 0, &len), "");
    assert_int_equal(len, 0);
    assert_memory_equal(mst_tensor_string(y, 1, &len), "abc", 3);
    assert_int_equal(len, 3);
    mst_tensor_free(x);
    mst_tensor_free(y);
}

static void count_release(void *arg)
{
    ++*(int *)arg;
}

static void negate(mst_session *s)
{
    const char *feeds[] = { "z:0" }, *fetches[] = { "n:0" };
    int32_t values[] = { 1, 2, 3, 4 };
    int64_t dims[] = { 2, 2 };
    struct mst_error error;
    mst_tensor *z, *n;
    int released = 0;
    mst_runner *r;

    assert_int_equal(mst_tensor_wrap(MST_INT32, 2, dims, values, sizeof(values),
                                     count_release, &released, &z, &error),
                     MST_OK);
    assert_int_equal(
        mst_runner_new(s, feeds, 1, fetches, 1, NULL, 0, &r, &error), MST_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(
            mst_runner_run(r, (const mst_tensor *const *)&z, &n, 5000, &error),
            MST_OK);
        assert_int_equal(mst_tensor_ndim(n), 2);
        assert_int_equal(mst_tensor_dims(n)[1], 2);
        assert_int_equal(mst_tensor_bytes(n), sizeof(values));
        assert_int_equal(((int32_t *)mst_tensor_data(n))[3], -4);
        mst_tensor_free(n);
    }
    mst_tensor_free(z);
    mst_runner_free(r);
    assert_int_equal(released, 1);
}

static void use(bool inside)
{
    mst_server *server = make_server();
    mst_session *s = open_session(server, inside);
    struct mst_error error;
    char name[64];

    lower(s);
    negate(s);
    assert_int_equal(mst_session_device(s, 0, name, sizeof(name), &error), 1);
    assert_string_equal(name, "/job:w/replica:0/task:0/device:CPU:0");
    mst_session_close(s);
    mst_server_free(server);
}

static void test_a_session_over_a_connection_works(void **state)
{
    use(false);
}

static void test_a_session_in_the_process_works(void **state)
{
    use(true);
}

static void test_errors_are_told(void **state)
{
    mst_server *server = make_server();
    mst_session *s = open_session(server, true);
    const char *targets[] = { "none" };
    struct mst_error error;
    mst_session *other;
    mst_runner *r;

    assert_int_equal(
        mst_runner_new(s, NULL, 0, NULL, 0, targets, 1, &r, &error),
        MST_NOT_FOUND);
    assert_non_null(strstr(error.message, "none"));
    assert_int_equal(
        mst_session_open("localhost:1", "", 0, NULL, 0, 0, &other, &error),
        MST_INVALID_ARGUMENT);
    mst_session_close(s);
    mst_server_free(server);
}

static void test_tensors_are_checked(void **state)
{
    int64_t dims[] = { 3 }, bad[] = { -1 };
    struct mst_error error;
    int released = 0;
    float f[3];
    mst_tensor *t;

    assert_int_equal(mst_tensor_new((enum mst_dtype)99, 0, NULL, &t, &error),
                     MST_INVALID_ARGUMENT);
    assert_int_equal(mst_tensor_new(MST_FLOAT, 1, bad, &t, &error),
                     MST_INVALID_ARGUMENT);
    assert_int_equal(mst_tensor_new(MST_FLOAT, 99, dims, &t, &error),
                     MST_INVALID_ARGUMENT);
    assert_int_equal(mst_tensor_wrap(MST_FLOAT, 1, dims, f, 8, count_release,
                                     &released, &t, &error),
                     MST_INVALID_ARGUMENT);
    assert_int_equal(mst_tensor_wrap(MST_STRING, 1, dims, f, 12, count_release,
                                     &released, &t, &error),
                     MST_INVALID_ARGUMENT);
    assert_int_equal(released, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_session_over_a_connection_works),
        cmocka_unit_test(test_a_session_in_the_process_works),
        cmocka_unit_test(test_errors_are_told),
        cmocka_unit_test(test_tensors_are_checked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
