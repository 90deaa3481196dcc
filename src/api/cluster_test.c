/*
 * The calls of muster/cluster.h against a service that answers as it is told
 * and remembers what it was asked. The real one is asked in tests/interop.
 */
#include "muster/cluster.h"

#include <pthread.h>

#include "proto/membership.pb-c.h"
#include "rpc/testing.h"
#include "wire/control.h"

static struct loop_group *group;
static struct rpc_server *server;
static char target[64], nobody[64];

/* What was asked last, and what is to be answered. The order of a call and its
 * answer keeps the threads apart; the lock is for tools that do not see it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct told {
    Muster__AddWorkerRequest *add;
    Muster__RemoveWorkerRequest *remove;
    Muster__WatchRequest *watch;
    Muster__JoinRequest *join;
    struct status fail;
    bool silent;
    struct rpc_call *held;
} told;

static struct told *told_now(void)
{
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    return &told;
}

static void answer(struct rpc_call *call, const ProtobufCMessage *m)
{
    struct told *t = told_now();
    struct rpc_msg msg;

    if (t->silent) {
        t->held = call;
        (void)told_now();
        return;
    }
    if (t->fail.code) {
        rpc_call_fail(call, &t->fail, NULL, 0);
        return;
    }
    rpc_msg_init(&msg);
    protobuf_c_message_pack(
        m, rpc_msg_reserve(&msg, protobuf_c_message_get_packed_size(m)));
    rpc_call_reply(call, &msg);
}

static void change_answer(struct rpc_call *call)
{
    Muster__ChangeResponse r = MUSTER__CHANGE_RESPONSE__INIT;

    r.changed = true;
    r.reached = (int32_t[]){ 0, 2 };
    r.n_reached = 2;
    r.missed = (int32_t[]){ 1 };
    r.n_missed = 1;
    answer(call, &r.base);
}

#define TAKE(field, type)                                                      \
    control_free(told_now()->field);                                           \
    told.field = CONTROL_UNPACK(muster__##type, rpc_call_request(call)->data,  \
                                rpc_call_request(call)->len);                  \
    (void)told_now()

static void add_start(struct rpc_call *call, void *arg)
{
    TAKE(add, add_worker_request);
    change_answer(call);
}

static void remove_start(struct rpc_call *call, void *arg)
{
    TAKE(remove, remove_worker_request);
    change_answer(call);
}

static Muster__Member here = MUSTER__MEMBER__INIT, left = MUSTER__MEMBER__INIT;
static Muster__Member *members[] = { &here, &left };

static void fill_members(void)
{
    here.job = "worker";
    here.task = 2;
    here.address = "worker2:2222";
    here.since_ms = 1000;
    here.state = MUSTER__MEMBER__STATE__GONE;
    here.state_since_ms = 2000;
    here.heard_ms = 1500;
    here.sessions = 3;
    left.job = "worker";
    left.task = 3;
}

static void list_start(struct rpc_call *call, void *arg)
{
    Muster__ListResponse r = MUSTER__LIST_RESPONSE__INIT;

    r.members = members;
    r.n_members = COUNT(members);
    r.revision = 7;
    answer(call, &r.base);
}

/* A stream: what is new at once, and then nothing for ever. */
static void watch_cancel(void *arg)
{
    rpc_call_end(arg);
}

static void watch_start(struct rpc_call *call, void *arg)
{
    Muster__WatchResponse r = MUSTER__WATCH_RESPONSE__INIT;
    struct told *t = told_now();
    struct rpc_msg msg;

    TAKE(watch, watch_request);
    if (t->fail.code) {
        rpc_call_fail(call, &t->fail, NULL, 0);
        return;
    }
    rpc_call_hooks(call, watch_cancel, NULL, call);
    if (t->silent)
        return;
    r.members = members;
    r.n_members = told.watch->instance == 99 ? 0 : COUNT(members);
    r.revision = 8;
    r.instance = 99;
    rpc_msg_init(&msg);
    muster__watch_response__pack(
        &r, rpc_msg_reserve(&msg, muster__watch_response__get_packed_size(&r)));
    rpc_call_send(call, &msg);
}

static void join_start(struct rpc_call *call, void *arg)
{
    Muster__JoinResponse r = MUSTER__JOIN_RESPONSE__INIT;

    TAKE(join, join_request);
    r.member = &here;
    r.members = members;
    r.n_members = COUNT(members);
    answer(call, &r.base);
}

static void garbage_start(struct rpc_call *call, void *arg)
{
    struct rpc_msg msg;

    rpc_msg_init(&msg);
    rpc_msg_copy(&msg, "\x0a\x7f", 2);
    rpc_call_reply(call, &msg);
}

static const struct rpc_method methods[] = {
    { .path = "/muster.Membership/AddWorker", .start = add_start },
    { .path = "/muster.Membership/RemoveWorker", .start = remove_start },
    { .path = "/muster.Membership/List", .start = list_start },
    { .path = "/muster.Membership/Watch",
      .start = watch_start,
      .streams = true },
    { .path = "/muster.Membership/Join", .start = join_start },
};
static const struct rpc_method broken[] = {
    { .path = "/muster.Membership/List", .start = garbage_start },
};

static uint16_t start(const struct rpc_method *m, size_t count)
{
    server = rpc_server_new(&(struct rpc_server_opts){ .group = group });
    rpc_server_add(server, m, count, NULL);
    return listen_any(server);
}

static int setup_with(const struct rpc_method *m, size_t count)
{
    uint16_t port;

    fill_members();
    group = loop_group_new(NULL);
    port = start(m, count);
    snprintf(nobody, sizeof(nobody), "grpc://127.0.0.1:%u", port);
    stop_and_free(server, 0);
    snprintf(target, sizeof(target), "grpc://127.0.0.1:%u", start(m, count));
    return 0;
}

static int setup(void **state)
{
    return setup_with(methods, COUNT(methods));
}

static int setup_foreign(void **state)
{
    return setup_with(NULL, 0);
}

static int setup_broken(void **state)
{
    return setup_with(broken, COUNT(broken));
}

static int teardown(void **state)
{
    if (told_now()->held)
        rpc_call_fail(told_now()->held,
                      &(struct status){ .code = MST_CANCELLED }, NULL, 0);
    stop_and_free(server, 0);
    loop_group_free(group);
    control_free(told_now()->add);
    control_free(told_now()->remove);
    control_free(told_now()->watch);
    control_free(told_now()->join);
    memset(told_now(), 0, sizeof(told));
    return 0;
}

static void expect(enum mst_code got, enum mst_code code,
                   const struct mst_error *error, const char *text)
{
    assert_int_equal(got, code);
    assert_int_equal(error->code, code);
    if (!strstr(error->message, text))
        fail_msg("\"%s\" is not in: %s", text, error->message);
}

static void test_add_asks_and_tells_what_became_of_it(void **state)
{
    struct mst_change change;
    struct mst_error error;

    assert_int_equal(mst_cluster_add_worker(target, 2, "worker2: 2222", NULL,
                                            &change, &error),
                     0);
    assert_string_equal(told_now()->add->job, "worker");
    assert_int_equal(told_now()->add->task, 2);
    assert_string_equal(told_now()->add->address, "worker2:2222");
    assert_false(told_now()->add->replace);
    assert_true(change.changed);
    assert_int_equal(change.reached, 2);
    assert_int_equal(change.missed, 1);
}

static void test_targets_are_taken_as_people_write_them(void **state)
{
    char with_blank[80];

    assert_int_equal(mst_cluster_add_worker(target + strlen("grpc://"), 2,
                                            "w:1", NULL, NULL, NULL),
                     0);
    snprintf(with_blank, sizeof(with_blank), "grpc: //%s",
             target + strlen("grpc://"));
    assert_int_equal(
        mst_cluster_add_worker(with_blank, 2, "w:1", NULL, NULL, NULL), 0);
}

static void test_options_are_passed_on(void **state)
{
    struct mst_change_opts opts = { .job = "evaluator",
                                    .replace = true,
                                    .only_at = "w:4" };

    assert_int_equal(
        mst_cluster_add_worker(target, 0, "[::1]:5", &opts, NULL, NULL), 0);
    assert_string_equal(told_now()->add->job, "evaluator");
    assert_string_equal(told_now()->add->address, "[::1]:5");
    assert_true(told_now()->add->replace);
    assert_int_equal(mst_cluster_remove_worker(target, 4, &opts, NULL, NULL),
                     0);
    assert_string_equal(told_now()->remove->job, "evaluator");
    assert_int_equal(told_now()->remove->task, 4);
    assert_string_equal(told_now()->remove->address, "w:4");
}

static void test_slips_are_found_before_anybody_is_asked(void **state)
{
    struct mst_error e;

    expect(mst_cluster_add_worker(target, -1, "w:1", NULL, NULL, &e),
           MST_INVALID_ARGUMENT, &e, "from 0 to 999999, not -1");
    expect(mst_cluster_add_worker(target, 2, "w", NULL, NULL, &e),
           MST_INVALID_ARGUMENT, &e, "no port");
    expect(mst_cluster_add_worker(target, 2, "w:0", NULL, NULL, &e),
           MST_INVALID_ARGUMENT, &e, "port 0");
    expect(mst_cluster_remove_worker(target, 1000000, NULL, NULL, &e),
           MST_INVALID_ARGUMENT, &e, "not 1000000");
    assert_null(told_now()->add);
    assert_null(told_now()->remove);
    expect(mst_cluster_add_worker("", 2, "w:1", NULL, NULL, &e),
           MST_INVALID_ARGUMENT, &e, "names no server");
    expect(mst_cluster_add_worker("grpc://", 2, "w:1", NULL, NULL, &e),
           MST_INVALID_ARGUMENT, &e, "names no server");
    expect(mst_cluster_add_worker("ps0", 2, "w:1", NULL, NULL, &e),
           MST_INVALID_ARGUMENT, &e, "no port");
}

static void test_errors_of_the_server_come_through(void **state)
{
    struct mst_error e;

    status_set(&told_now()->fail, MST_ALREADY_EXISTS,
               "worker 2 is alive at x:1");
    expect(mst_cluster_add_worker(target, 2, "w:1", NULL, NULL, &e),
           MST_ALREADY_EXISTS, &e, "worker 2 is alive at x:1");
    status_set(&told_now()->fail, MST_UNAVAILABLE, "ps 0 is down");
    expect(mst_cluster_remove_worker(target, 2, NULL, NULL, &e),
           MST_UNAVAILABLE, &e, "ps 0 is down");
}

static void test_who_cannot_be_reached_is_named(void **state)
{
    struct mst_members *all;
    char text[128];
    struct mst_error e;

    snprintf(text, sizeof(text), "Nobody answers at %s: ", nobody);
    expect(mst_cluster_list(nobody, 0, &all, &e), MST_UNAVAILABLE, &e, text);
    expect(mst_cluster_list(nobody, 0, &all, &e), MST_UNAVAILABLE, &e,
           "Connection refused");
}

static void test_silent_server_is_given_up(void **state)
{
    struct mst_members *all;
    struct mst_error e;

    told.silent = true;
    (void)told_now();
    expect(mst_cluster_list(target, 50, &all, &e), MST_DEADLINE_EXCEEDED, &e,
           "did not answer within 0.05 s");
}

static void test_server_of_others_is_told_apart(void **state)
{
    struct mst_error e;

    expect(mst_cluster_add_worker(target, 2, "w:1", NULL, NULL, &e),
           MST_UNIMPLEMENTED, &e, "is not a server of muster");
}

static void test_broken_answer_is_an_error(void **state)
{
    struct mst_members *all;
    struct mst_error e;

    expect(mst_cluster_list(target, 0, &all, &e), MST_INTERNAL, &e,
           "cannot be read");
}

static void check_members(const struct mst_members *all)
{
    const struct mst_member *m = all->at;

    assert_int_equal(all->count, 2);
    assert_string_equal(m->job, "worker");
    assert_int_equal(m->task, 2);
    assert_string_equal(m->address, "worker2:2222");
    assert_int_equal(m->since_ms, 1000);
    assert_int_equal(m->state, MST_MEMBER_GONE);
    assert_int_equal(m->state_since_ms, 2000);
    assert_int_equal(m->heard_ms, 1500);
    assert_int_equal(m->sessions, 3);
    assert_int_equal(m[1].task, 3);
    assert_null(m[1].address);
}

static void test_list_has_all_that_is_known(void **state)
{
    struct mst_members *all;

    assert_int_equal(mst_cluster_list(target, 0, &all, NULL), 0);
    assert_int_equal(all->revision, 7);
    check_members(all);
    mst_members_free(all);
    mst_members_free(NULL);
}

static void test_join_tells_who_one_is(void **state)
{
    const struct mst_member *self;
    struct mst_members *all;

    assert_int_equal(
        mst_cluster_join(target, ": 2222", NULL, &all, &self, NULL), 0);
    assert_string_equal(told_now()->join->address, ":2222");
    assert_string_equal(told_now()->join->job, "worker");
    assert_int_equal(self->task, 2);
    check_members(all);
    mst_members_free(all);
}

static void test_watch_goes_on_where_it_was(void **state)
{
    struct mst_members *first, *second;

    assert_int_equal(mst_cluster_watch(target, NULL, 5000, &first, NULL), 0);
    assert_int_equal(told_now()->watch->revision, 0);
    check_members(first);
    assert_int_equal(mst_cluster_watch(target, first, 3000, &second, NULL), 0);
    assert_int_equal(told_now()->watch->revision, 8);
    assert_int_equal(told_now()->watch->instance, 99);
    assert_int_equal(second->count, 0);
    assert_int_equal(second->revision, 8);
    mst_members_free(first);
    mst_members_free(second);
}

static void test_watch_that_fails_says_why(void **state)
{
    struct mst_members *all;
    struct mst_error error;

    assert_int_equal(mst_cluster_watch(nobody, NULL, 5000, &all, &error),
                     MST_UNAVAILABLE);
    assert_non_null(strstr(error.message, "Nobody answers at grpc://"));
    status_set(&told.fail, MST_ABORTED, "not now");
    (void)told_now();
    assert_int_equal(mst_cluster_watch(target, NULL, 5000, &all, &error),
                     MST_ABORTED);
    assert_string_equal(error.message, "not now");
    status_clear(&told_now()->fail);
    told.silent = true;
    (void)told_now();
    assert_int_equal(mst_cluster_watch(target, NULL, 20, &all, &error),
                     MST_DEADLINE_EXCEEDED);
    assert_non_null(strstr(error.message, "did not answer within 0.02 s"));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_add_asks_and_tells_what_became_of_it),
        TEST(test_targets_are_taken_as_people_write_them),
        TEST(test_options_are_passed_on),
        TEST(test_slips_are_found_before_anybody_is_asked),
        TEST(test_errors_of_the_server_come_through),
        TEST(test_who_cannot_be_reached_is_named),
        TEST(test_silent_server_is_given_up),
        TEST(test_list_has_all_that_is_known),
        TEST(test_join_tells_who_one_is),
        TEST(test_watch_goes_on_where_it_was),
        TEST(test_watch_that_fails_says_why),
        cmocka_unit_test_setup_teardown(test_server_of_others_is_told_apart,
                                        setup_foreign, teardown),
        cmocka_unit_test_setup_teardown(test_broken_answer_is_an_error,
                                        setup_broken, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
