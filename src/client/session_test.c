/*
 * Sessions by both ways: each test runs on a master at the other end of a
 * connection, and on that of the same process.
 */
#include "client/testing.h"

#include <pthread.h>

#include "base/thread.h"

#define SECOND ((uint64_t)1000)

static int setup_remote(void **state)
{
    *state = testing_new(false);
    return 0;
}

static int setup_local(void **state)
{
    *state = testing_new(true);
    return 0;
}

static int teardown(void **state)
{
    testing_free(*state);
    return 0;
}

/* x -> y = -x; a counter; a queue that stays empty. */
static void write_graph(struct graph_text *g)
{
    struct pb_out shape;
    float one = 1;

    graph_text_init(g);
    graph_text_node(g, "x", "Placeholder", NULL);
    graph_text_type(g, "dtype", DT_FLOAT);
    graph_text_node(g, "y", "Neg", "x");
    graph_text_type(g, "T", DT_FLOAT);
    graph_text_const(g, "one", DT_FLOAT, &one);
    graph_text_node(g, "v", "VarHandleOp", NULL);
    graph_text_type(g, "dtype", DT_FLOAT);
    graph_text_str(g, "shared_name", "v");
    pb_out_init(&shape); /* of a scalar */
    pb_put_bytes(&shape, 7, "", 0);
    graph_text_attr(g, "shape", &shape);
    pb_out_done(&shape);
    graph_text_node(g, "init", "AssignVariableOp", "v,one");
    graph_text_type(g, "dtype", DT_FLOAT);
    graph_text_node(g, "add", "AssignAddVariableOp", "v,one");
    graph_text_type(g, "dtype", DT_FLOAT);
    graph_text_node(g, "read", "ReadVariableOp", "v,^add");
    graph_text_type(g, "dtype", DT_FLOAT);
    graph_text_node(g, "q", "FIFOQueueV2", NULL);
    graph_text_str(g, "shared_name", "q");
    {
        struct pb_out list, v;

        pb_out_init(&list);
        pb_put_uint(&list, 6, DT_FLOAT);
        pb_out_init(&v);
        pb_put_bytes(&v, 1, list.data, list.len);
        graph_text_attr(g, "component_types", &v);
        graph_text_node(g, "empty", "QueueDequeueV2", "q");
        graph_text_attr(g, "component_types", &v);
        pb_out_done(&list);
        pb_out_done(&v);
    }
}

static struct client_session *open_session(struct testing *t)
{
    struct graph_text g;

    write_graph(&g);
    return testing_session(t, &g);
}

static void expect_ok(enum mst_code rc, const struct status *st)
{
    if (rc)
        fail_msg("%s: %s", status_name(rc), st->msg);
}

static struct tensor vector(int64_t n, float value)
{
    struct status st = STATUS_INIT;
    struct tensor t;

    assert_int_equal(tensor_new(&t, DT_FLOAT, 1, &n, &st), MST_OK);
    for (int64_t i = 0; i < n; i++)
        TENSOR_DATA(&t, float)[i] = value + (float)i;
    return t;
}

static const struct client_want negate = {
    .feeds = (const char *const[]){ "x:0" },
    .feed_count = 1,
    .fetches = (const char *const[]){ "y:0" },
    .fetch_count = 1,
};

static const struct client_want count = {
    .fetches = (const char *const[]){ "read:0", "one:0" },
    .fetch_count = 2,
    .targets = (const char *const[]){ "add" },
    .target_count = 1,
};

static const struct client_want init = {
    .targets = (const char *const[]){ "init" },
    .target_count = 1,
};

static const struct client_want blocked = {
    .fetches = (const char *const[]){ "empty:0" },
    .fetch_count = 1,
};

static void test_a_step_is_fed_and_fetched(void **state)
{
    struct client_session *s = open_session(*state);
    struct tensor x = vector(3, 5), y;
    struct status st = STATUS_INIT;

    expect_ok(client_session_run(s, &negate, &x, &y, 0, &st), &st);
    assert_int_equal(y.count, 3);
    assert_true(TENSOR_DATA(&y, float)[2] == -7);
    tensor_unref(&y);
    tensor_unref(&x);
    client_session_close(s, 0);
}

static void test_a_runner_runs_again(void **state)
{
    struct client_session *s = open_session(*state);
    struct status st = STATUS_INIT;
    struct client_runner *r;
    struct tensor out[2];

    expect_ok(client_session_run(s, &init, NULL, NULL, 0, &st), &st);
    expect_ok(client_runner_new(s, &count, 0, &r, &st), &st);
    for (int i = 0; i < 100; i++) {
        expect_ok(client_runner_run(r, NULL, out, 0, &st), &st);
        assert_true(*TENSOR_DATA(&out[0], float) == (float)(i + 2));
        assert_true(*TENSOR_DATA(&out[1], float) == 1);
        tensor_unref(&out[0]);
        tensor_unref(&out[1]);
    }
    client_runner_free(r);
    client_session_close(s, 0);
}

static void test_large_tensors_come_whole(void **state)
{
    struct client_session *s = open_session(*state);
    int64_t n = 300000;
    struct tensor x = vector(n, 1), y;
    struct status st = STATUS_INIT;
    struct client_runner *r;

    expect_ok(client_runner_new(s, &negate, 0, &r, &st), &st);
    for (int round = 0; round < 3; round++) {
        expect_ok(client_runner_run(r, &x, &y, 0, &st), &st);
        assert_int_equal(y.count, n);
        for (int64_t i = 0; i < n; i++)
            if (TENSOR_DATA(&y, float)[i] != -TENSOR_DATA(&x, float)[i])
                fail_msg("element %d", (int)i);
        tensor_unref(&y);
    }
    tensor_unref(&x);
    client_runner_free(r);
    client_session_close(s, 0);
}

static void test_a_feed_of_another_type_is_refused(void **state)
{
    struct client_session *s = open_session(*state);
    struct status st = STATUS_INIT;
    struct client_runner *r;
    struct tensor x, y;

    assert_int_equal(tensor_new_scalar(&x, DT_INT32, &st), MST_OK);
    *TENSOR_DATA(&x, int32_t) = 1;
    expect_ok(client_runner_new(s, &negate, 0, &r, &st), &st);
    assert_int_equal(client_runner_run(r, &x, &y, 0, &st),
                     MST_INVALID_ARGUMENT);
    assert_non_null(strstr(st.msg, "x:0"));
    tensor_unref(&x);
    client_runner_free(r);
    client_session_close(s, 0);
}

static void test_an_unknown_name_is_refused(void **state)
{
    struct client_session *s = open_session(*state);
    struct client_want want = { .fetches = (const char *const[]){ "nil:0" },
                                .fetch_count = 1 };
    struct status st = STATUS_INIT;
    struct client_runner *r;
    struct tensor y;

    assert_int_not_equal(client_session_run(s, &want, NULL, &y, 0, &st),
                         MST_OK);
    assert_int_not_equal(client_runner_new(s, &want, 0, &r, &st), MST_OK);
    client_session_close(s, 0);
}

static void test_a_deadline_ends_a_step(void **state)
{
    struct client_session *s = open_session(*state);
    struct status st = STATUS_INIT;
    struct client_runner *r;
    struct tensor y;

    assert_int_equal(client_session_run(s, &blocked, NULL, &y, 30, &st),
                     MST_DEADLINE_EXCEEDED);
    expect_ok(client_runner_new(s, &blocked, 0, &r, &st), &st);
    assert_int_equal(client_runner_run(r, NULL, &y, 30, &st),
                     MST_DEADLINE_EXCEEDED);
    client_runner_free(r);
    client_session_close(s, 0);
}

struct blocking {
    struct client_session *s;
    struct client_runner *r;
    struct status st;
};

static void *run_blocked(void *arg)
{
    struct blocking *b = arg;
    struct tensor y;

    (void)!client_runner_run(b->r, NULL, &y, 0, &b->st);
    return NULL;
}

/* Whether a step is under way that can be given up. */
static bool is_running(struct client_session *s)
{
    bool running;

    pthread_mutex_lock(&s->link.lock);
    running = s->link.calls != NULL;
    pthread_mutex_unlock(&s->link.lock);
    return running;
}

static void test_a_step_is_cancelled(void **state)
{
    struct blocking b = { .s = open_session(*state) };
    pthread_t thread;

    expect_ok(client_runner_new(b.s, &blocked, 0, &b.r, &b.st), &b.st);
    assert_int_equal(thread_start(&thread, NULL, run_blocked, &b), 0);
    while (!is_running(b.s))
        sched_yield();
    client_session_cancel(b.s);
    pthread_join(thread, NULL);
    assert_int_equal(b.st.code, MST_CANCELLED);
    client_runner_free(b.r);
    client_session_close(b.s, 0);
}

static void test_a_graph_grows(void **state)
{
    struct client_session *s = open_session(*state);
    struct client_want want = { .fetches = (const char *const[]){ "z:0" },
                                .fetch_count = 1 };
    struct status st = STATUS_INIT;
    struct graph_text g;
    struct tensor z;

    for (int i = 0; i < 2; i++) {
        graph_text_init(&g);
        graph_text_node(&g, i ? "zz" : "z", "Neg", i ? "z" : "one");
        graph_text_type(&g, "T", DT_FLOAT);
        graph_text_close(&g);
        expect_ok(client_session_extend(s, g.graph.data, g.graph.len, 0, &st),
                  &st);
        pb_out_done(&g.graph);
    }
    expect_ok(client_session_run(s, &want, NULL, &z, 0, &st), &st);
    assert_true(*TENSOR_DATA(&z, float) == -1);
    tensor_unref(&z);
    client_session_close(s, 0);
}

static void count_device(void *arg, const char *name)
{
    assert_string_equal(name, "/job:localhost/replica:0/task:0/device:CPU:0");
    ++*(int *)arg;
}

static void test_devices_are_listed(void **state)
{
    struct client_session *s = open_session(*state);
    struct status st = STATUS_INIT;
    int n = 0;

    expect_ok(client_session_devices(s, count_device, &n, 0, &st), &st);
    assert_int_equal(n, 1);
    client_session_close(s, 0);
}

static void test_reset_drops_variables_and_sessions(void **state)
{
    struct testing *t = *state;
    struct client_session *s = open_session(t);
    struct status st = STATUS_INIT;
    struct tensor out[2];

    expect_ok(client_session_run(s, &init, NULL, NULL, 0, &st), &st);
    expect_ok(client_session_reset(t->target, NULL, 0, 10 * SECOND, &st), &st);
    assert_int_equal(client_session_run(s, &count, NULL, out, 0, &st),
                     MST_ABORTED);
    client_session_close(s, 0);
    s = open_session(t);
    assert_int_equal(client_session_run(s, &count, NULL, out, 0, &st),
                     MST_NOT_FOUND);
    client_session_close(s, 0);
}

static void test_a_bad_target_is_refused(void **state)
{
    struct status st = STATUS_INIT;
    struct client_session *s;

    assert_int_equal(client_session_new("local", NULL, &s, &st),
                     MST_INVALID_ARGUMENT);
}

/* The master goes away, and comes back without the session. */
static void test_a_lost_master_is_told(void **state)
{
    struct testing *t = *state;
    struct client_session *s = open_session(t);
    int port = server_port(t->server);
    struct status st = STATUS_INIT;
    struct client_runner *r;
    enum mst_code rc;
    struct tensor x = vector(1, 1), y;

    expect_ok(client_runner_new(s, &negate, 0, &r, &st), &st);
    server_stop(t->server, 0);
    t->server = NULL;
    assert_int_equal(client_runner_run(r, &x, &y, 0, &st), MST_UNAVAILABLE);
    t->server = testing_server(port, &st);
    if (!t->server)
        fail_msg("%s", st.msg);
    while ((rc = client_runner_run(r, &x, &y, 0, &st)) == MST_UNAVAILABLE)
        sched_yield();
    assert_int_equal(rc, MST_ABORTED);
    tensor_unref(&x);
    client_runner_free(r);
    client_session_close(s, 0);
}

int main(void)
{
#define BOTH(name)                                                             \
    { #name " (remote)", name, setup_remote, teardown, NULL },                 \
    {                                                                          \
#name " (local)", name, setup_local, teardown, NULL                    \
    }
    const struct CMUnitTest tests[] = {
        BOTH(test_a_step_is_fed_and_fetched),
        BOTH(test_a_runner_runs_again),
        BOTH(test_large_tensors_come_whole),
        BOTH(test_a_feed_of_another_type_is_refused),
        BOTH(test_an_unknown_name_is_refused),
        BOTH(test_a_deadline_ends_a_step),
        BOTH(test_a_step_is_cancelled),
        BOTH(test_a_graph_grows),
        BOTH(test_devices_are_listed),
        BOTH(test_reset_drops_variables_and_sessions),
        cmocka_unit_test(test_a_bad_target_is_refused),
        cmocka_unit_test_setup_teardown(test_a_lost_master_is_told,
                                        setup_remote, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
