/* Calls from end to end, as both sides see them. */
#include "rpc/testing.h"

static struct loop_group *group;
static struct rpc_server *server;
static struct rpc_channel *channel;
static uint16_t port;

static void echo(struct rpc_call *call, void *arg)
{
    const struct rpc_data *rq = rpc_call_request(call);
    struct rpc_msg msg;

    rpc_msg_init(&msg);
    rpc_msg_ref(&msg, rq->data, rq->len, rq->owner);
    rpc_call_reply(call, &msg);
}

static const struct rpc_method methods[] = {
    { .path = "/test.Service/Echo", .start = echo },
};

static int setup(void **state)
{
    struct rpc_server_opts opts;

    group = loop_group_new(NULL);
    opts = (struct rpc_server_opts){ .group = group };
    server = rpc_server_new(&opts);
    rpc_server_add(server, methods, COUNT(methods), NULL);
    port = listen_any(server);
    channel = channel_to(group, port);
    return 0;
}

static int teardown(void **state)
{
    close_and_unref(channel);
    stop_and_free(server, 1000);
    loop_group_free(group);
    return 0;
}

static void test_call_echoes_a_small_message(void **state)
{
    struct tcall t = { .path = "/test.Service/Echo" };

    tcall_start(channel, &t, "hello", 5);
    assert_int_equal(tcall_wait(&t), MST_OK);
    assert_int_equal(t.len, 5);
    assert_memory_equal(t.data, "hello", 5);
    tcall_clear(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_call_echoes_a_small_message, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
