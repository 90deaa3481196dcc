#include "rpc/testing.h"

#include <pthread.h>

#include "rpc/local.h"

static struct rpc_call *held;
static bool held_cancelled;

static void echo(struct rpc_call *call, void *arg)
{
    const struct rpc_data *d = rpc_call_request(call);
    struct rpc_msg m;

    assert_string_equal(rpc_call_peer(call), "local");
    rpc_msg_init(&m);
    rpc_msg_copy(&m, d->data, d->len);
    rpc_call_reply(call, &m);
}

static void refuse(struct rpc_call *call, void *arg)
{
    struct status st = STATUS_INIT;

    status_set(&st, MST_ABORTED, "100%% \"no\"");
    rpc_call_fail(call, &st, "xyz", 3);
}

static void on_cancel(void *arg)
{
    struct status st = STATUS_INIT;

    held_cancelled = true;
    status_set(&st, MST_CANCELLED, "given up");
    rpc_call_fail(held, &st, NULL, 0);
}

static void hold(struct rpc_call *call, void *arg)
{
    held = call;
    rpc_call_hooks(call, on_cancel, NULL, NULL);
    sem_post(arg);
}

static const struct rpc_method methods[] = {
    { .path = "/t.T/Echo", .start = echo },
    { .path = "/t.T/Fail", .start = refuse },
    { .path = "/t.T/Hold", .start = hold },
};

struct fixture {
    struct loop_group *loops;
    struct rpc_server *server;
    sem_t holding, stopped;
};

static void on_stopped(void *arg)
{
    sem_post(arg);
}

static int setup(void **state)
{
    struct fixture *f = MEM_NEW(struct fixture);

    sem_init(&f->holding, 0, 0);
    sem_init(&f->stopped, 0, 0);
    held_cancelled = false;
    f->loops = loop_group_new(NULL);
    f->server = rpc_server_new(&(struct rpc_server_opts){ .group = f->loops });
    rpc_server_add(f->server, methods, COUNT(methods), &f->holding);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    rpc_server_stop(f->server, 0, on_stopped, &f->stopped);
    sem_wait(&f->stopped);
    rpc_server_free(f->server);
    loop_group_free(f->loops);
    mem_free(f);
    return 0;
}

static struct rpc_local *start(struct fixture *f, struct tcall *t,
                               const void *data, size_t len)
{
    struct rpc_msg m;

    sem_init(&t->over, 0, 0);
    rpc_msg_init(&m);
    rpc_msg_copy(&m, data, len);
    return rpc_local_call(f->server, &(struct rpc_request){ .path = t->path,
                                                            .msg = &m,
                                                            .done = tcall_done,
                                                            .arg = t });
}

static void free_answer(struct tcall *t)
{
    mem_free(t->data);
    mem_free(t->details);
}

static void test_a_call_gets_its_answer(void **state)
{
    struct tcall t = { .path = "/t.T/Echo" };

    rpc_local_unref(start(*state, &t, "hello", 5));
    sem_wait(&t.over);
    assert_int_equal(t.status.code, MST_OK);
    assert_int_equal(t.len, 5);
    assert_memory_equal(t.data, "hello", 5);
    free_answer(&t);
}

static void test_a_failure_keeps_its_text_and_details(void **state)
{
    struct tcall t = { .path = "/t.T/Fail" };

    rpc_local_unref(start(*state, &t, "", 0));
    sem_wait(&t.over);
    assert_int_equal(t.status.code, MST_ABORTED);
    assert_string_equal(t.status.msg, "100% \"no\"");
    assert_int_equal(t.details_len, 3);
    free_answer(&t);
}

static void test_an_unknown_method_is_unimplemented(void **state)
{
    struct tcall t = { .path = "/t.T/None" };

    rpc_local_unref(start(*state, &t, "", 0));
    sem_wait(&t.over);
    assert_int_equal(t.status.code, MST_UNIMPLEMENTED);
    free_answer(&t);
}

static void test_a_cancelled_call_tells_its_handler(void **state)
{
    struct fixture *f = *state;
    struct tcall t = { .path = "/t.T/Hold" };
    struct rpc_local *l = start(f, &t, "", 0);

    sem_wait(&f->holding);
    rpc_local_cancel(l);
    rpc_local_cancel(l);
    sem_wait(&t.over);
    assert_true(held_cancelled);
    assert_int_equal(t.status.code, MST_CANCELLED);
    rpc_local_unref(l);
    free_answer(&t);
}

static void test_a_server_that_stops_cancels_it(void **state)
{
    struct fixture *f = *state;
    struct tcall t = { .path = "/t.T/Hold" };
    struct rpc_local *l = start(f, &t, "", 0);

    sem_wait(&f->holding);
    rpc_server_stop(f->server, 0, on_stopped, &f->stopped);
    sem_wait(&t.over);
    sem_wait(&f->stopped);
    assert_true(held_cancelled);
    rpc_local_unref(l);
    rpc_server_free(f->server);
    f->server = rpc_server_new(&(struct rpc_server_opts){ .group = f->loops });
    free_answer(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(test_a_call_gets_its_answer),
        TEST(test_a_failure_keeps_its_text_and_details),
        TEST(test_an_unknown_method_is_unimplemented),
        TEST(test_a_cancelled_call_tells_its_handler),
        TEST(test_a_server_that_stops_cancels_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
