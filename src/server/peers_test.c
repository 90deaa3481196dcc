/* What becomes of a channel whose task is elsewhere now. */
#include "rpc/testing.h"
#include "server/peers.h"

static struct loop_group *group;

static int setup(void **state)
{
    group = loop_group_new(NULL);
    return 0;
}

static int teardown(void **state)
{
    loop_group_free(group);
    return 0;
}

static struct peers *one_peer(void)
{
    struct cluster_spec spec;
    struct status st = STATUS_INIT;
    struct peers *p;

    cluster_spec_init(&spec);
    /* Nobody listens there: a call that waits, waits for ever. */
    assert_int_equal(cluster_spec_add(&spec, "worker", 1, "127.0.0.1:9", &st),
                     MST_OK);
    p = peers_new(group, &spec);
    cluster_spec_done(&spec);
    return p;
}

static void test_former_channel_ends_with_the_peers(void **state)
{
    struct tcall t = { .path = "/t/Echo", .wait_for_ready = true };
    struct peers *p = one_peer();
    struct rpc_channel *c = peers_channel(p, "worker", 1);

    tcall_start(c, &t, "", 0);
    rpc_channel_unref(c);
    peers_set(p, "worker", 1, "127.0.0.1:10");
    peers_set(p, "worker", 1, NULL);
    peers_unref(p);
    tcall_wait(&t);
    assert_int_equal(t.status.code, MST_CANCELLED);
    tcall_clear(&t);
}

static void test_same_address_is_the_same_channel(void **state)
{
    struct peers *p = one_peer();
    struct rpc_channel *a = peers_channel(p, "worker", 1), *b;

    peers_set(p, "worker", 2, "127.0.0.1:9");
    peers_set(p, "worker", 1, NULL);
    b = peers_channel(p, "worker", 2);
    assert_ptr_equal(a, b);
    assert_null(peers_channel(p, "worker", 1));
    rpc_channel_unref(a);
    rpc_channel_unref(b);
    peers_unref(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_former_channel_ends_with_the_peers),
        cmocka_unit_test(test_same_address_is_the_same_channel),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
