/* Calls whose answer is a stream of messages, from end to end. */
#include <pthread.h>
#include <stdatomic.h>

#include "rpc/local.h"
#include "rpc/testing.h"

#define PATH "/test.Service/Stream"

/* The peers are on loops of their own, so that one may sleep. */
static struct loop_group *group, *server_group;
static struct rpc_server *server;
static struct rpc_channel *channel;

/* The server's side: one call, which sends the newest number whenever it may,
 * padded to a size. */
static struct feed {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct rpc_call *call;
    struct buffer *padding;
    uint64_t news, told; /* the newest number, and the last that was sent */
    bool sending, ended;
    int messages, cancelled, done;
} feed = { .lock = PTHREAD_MUTEX_INITIALIZER,
           .changed = PTHREAD_COND_INITIALIZER };

/* With the lock held. */
static void feed_send(void)
{
    struct rpc_msg msg;

    if (!feed.call || feed.sending || feed.ended || feed.told == feed.news)
        return;
    rpc_msg_init(&msg);
    rpc_msg_copy(&msg, &feed.news, sizeof(feed.news));
    if (feed.padding)
        rpc_msg_ref(&msg, feed.padding->data, feed.padding->size, feed.padding);
    feed.sending = true;
    feed.told = feed.news;
    feed.messages++;
    rpc_call_send(feed.call, &msg);
}

static void feed_sent(void *arg)
{
    pthread_mutex_lock(&feed.lock);
    feed.sending = false;
    feed_send();
    pthread_cond_broadcast(&feed.changed);
    pthread_mutex_unlock(&feed.lock);
}

static void feed_cancel(void *arg)
{
    struct status st;

    pthread_mutex_lock(&feed.lock);
    feed.cancelled++;
    if (!feed.ended) {
        feed.ended = true;
        status_set(&st, MST_CANCELLED, "as you wish");
        rpc_call_fail(feed.call, &st, NULL, 0);
    }
    pthread_cond_broadcast(&feed.changed);
    pthread_mutex_unlock(&feed.lock);
}

static void feed_done(void *arg)
{
    pthread_mutex_lock(&feed.lock);
    feed.call = NULL;
    feed.done++;
    pthread_cond_broadcast(&feed.changed);
    pthread_mutex_unlock(&feed.lock);
}

static void feed_start(struct rpc_call *call, void *arg)
{
    rpc_call_hooks(call, feed_cancel, feed_done, NULL);
    rpc_call_on_sent(call, feed_sent);
    pthread_mutex_lock(&feed.lock);
    feed.call = call;
    feed_send();
    pthread_cond_broadcast(&feed.changed);
    pthread_mutex_unlock(&feed.lock);
}

/* From the test's thread. */
static void feed_tell(uint64_t news)
{
    pthread_mutex_lock(&feed.lock);
    feed.news = news;
    feed_send();
    pthread_mutex_unlock(&feed.lock);
}

static void feed_end(enum mst_code code)
{
    struct status st;

    pthread_mutex_lock(&feed.lock);
    while (!feed.call)
        pthread_cond_wait(&feed.changed, &feed.lock);
    feed.ended = true;
    status_set(&st, code, "the end, 100%%");
    if (code)
        rpc_call_fail(feed.call, &st, "\0\1", 2);
    else
        rpc_call_end(feed.call);
    pthread_mutex_unlock(&feed.lock);
}

static void feed_wait(const int *counter, int value)
{
    pthread_mutex_lock(&feed.lock);
    while (*counter < value)
        pthread_cond_wait(&feed.changed, &feed.lock);
    pthread_mutex_unlock(&feed.lock);
}

/* Five messages of many sizes at once, in turn, and the end behind them. */
static const size_t sizes[] = { 0, 1, 300, 3 << 20, 0 };

struct burst {
    struct rpc_call *call;
    size_t at;
};

static void burst_sent(void *arg)
{
    struct burst *b = arg;
    struct rpc_msg msg;

    if (b->at == COUNT(sizes)) {
        rpc_call_end(b->call);
        return;
    }
    rpc_msg_init(&msg);
    if (sizes[b->at])
        memset(rpc_msg_reserve(&msg, sizes[b->at]), (int)b->at, sizes[b->at]);
    b->at++;
    rpc_call_send(b->call, &msg);
}

static void burst_cancel(void *arg)
{
    rpc_call_end(((struct burst *)arg)->call);
}

static void burst_start(struct rpc_call *call, void *arg)
{
    struct burst *b = MEM_NEW(struct burst);

    b->call = call;
    rpc_call_hooks(call, burst_cancel, mem_free, b);
    rpc_call_on_sent(call, burst_sent);
    burst_sent(b);
}

static const struct rpc_method methods[] = {
    { .path = PATH, .start = feed_start, .streams = true },
    { .path = "/test.Service/Burst", .start = burst_start, .streams = true },
};

/* ---- the client's side ---- */

struct reader {
    struct tcall call; /* first: it is the arg of both callbacks */
    bool sleeps;
    sem_t came, wake;
    int messages;
    atomic_uint_fast64_t last;
    size_t lens[16];
};

static void reader_message(const struct rpc_data *msg, void *arg)
{
    struct reader *r = arg;
    uint64_t number;

    assert_int_equal(r->call.done_count, 0);
    if (msg->len >= sizeof(number)) {
        memcpy(&number, msg->data, sizeof(number));
        atomic_store(&r->last, number);
    }
    r->lens[MIN(r->messages, (int)COUNT(r->lens) - 1)] = msg->len;
    r->messages++;
    sem_post(&r->came);
    if (r->sleeps)
        sem_wait(&r->wake);
    r->sleeps = false;
}

static void reader_start(struct reader *r, const char *path)
{
    struct rpc_msg msg;
    struct rpc_request rq = {
        .path = path,
        .msg = &msg,
        .deadline_ms = r->call.deadline_ms,
        .message = reader_message,
        .done = tcall_done,
        .arg = r,
    };

    rpc_msg_init(&msg);
    rpc_msg_copy(&msg, "please", 6);
    sem_init(&r->came, 0, 0);
    sem_init(&r->wake, 0, 0);
    sem_init(&r->call.over, 0, 0);
    r->call.handle = rpc_channel_call(channel, &rq);
}

static int reader_end(struct reader *r)
{
    int code = tcall_wait(&r->call);

    assert_int_equal(r->call.len, 0);
    tcall_clear(&r->call);
    sem_destroy(&r->came);
    sem_destroy(&r->wake);
    return code;
}

/* ---- tests ---- */

static void test_messages_come_in_order_and_then_the_end(void **state)
{
    struct reader r = { 0 };

    reader_start(&r, "/test.Service/Burst");
    assert_int_equal(reader_end(&r), MST_OK);
    assert_int_equal(r.messages, COUNT(sizes));
    for (size_t i = 0; i < COUNT(sizes); i++)
        assert_int_equal(r.lens[i], sizes[i]);
}

static void test_each_message_comes_when_it_is_sent(void **state)
{
    struct reader r = { 0 };

    reader_start(&r, PATH);
    for (uint64_t i = 1; i <= 5; i++) {
        feed_tell(i);
        sem_wait(&r.came);
        assert_int_equal(atomic_load(&r.last), i);
    }
    feed_end(MST_OK);
    assert_int_equal(reader_end(&r), MST_OK);
    feed_wait(&feed.done, 1);
    assert_int_equal(feed.cancelled, 0);
}

static void test_a_stream_may_be_empty(void **state)
{
    struct reader r = { 0 };

    reader_start(&r, PATH);
    feed_end(MST_OK);
    assert_int_equal(reader_end(&r), MST_OK);
    assert_int_equal(r.messages, 0);
}

static void fail_after(int messages)
{
    struct reader r = { 0 };

    feed.news = feed.told = 0;
    feed.ended = feed.sending = false;
    reader_start(&r, PATH);
    for (int i = 1; i <= messages; i++) {
        feed_tell((uint64_t)i);
        sem_wait(&r.came);
    }
    feed_end(MST_ABORTED);
    assert_int_equal(tcall_wait(&r.call), MST_ABORTED);
    assert_string_equal(r.call.status.msg, "the end, 100%");
    assert_memory_equal(r.call.details, "\0\1", 2);
    assert_int_equal(r.messages, messages);
    tcall_clear(&r.call);
}

static void test_a_failure_comes_behind_the_messages(void **state)
{
    fail_after(2);
}

static void test_a_failure_may_come_instead(void **state)
{
    fail_after(0);
}

/* What a message has to wait for does not hold up the end for ever, but comes
 * before it. */
static void test_the_end_waits_for_the_message_under_way(void **state)
{
    struct reader r = { .sleeps = true };

    feed.padding = buffer_new(64 << 20);
    reader_start(&r, PATH);
    feed_tell(1);
    feed_end(MST_OK);
    sem_wait(&r.came);
    sem_post(&r.wake);
    assert_int_equal(reader_end(&r), MST_OK);
    assert_int_equal(r.messages, 1);
    assert_int_equal(r.lens[0], (64 << 20) + 8);
}

static void test_who_sleeps_gets_the_newest_when_it_wakes(void **state)
{
    const uint64_t news = 20000;
    struct reader r = { .sleeps = true };

    feed.padding = buffer_new(4 << 20);
    reader_start(&r, PATH);
    feed_tell(1);
    sem_wait(&r.came);
    for (uint64_t i = 2; i <= news; i++)
        feed_tell(i);
    pthread_mutex_lock(&feed.lock);
    assert_true(feed.messages < 64);
    pthread_mutex_unlock(&feed.lock);
    sem_post(&r.wake);
    do
        sem_wait(&r.came);
    while (atomic_load(&r.last) != news);
    feed_end(MST_OK);
    assert_int_equal(reader_end(&r), MST_OK);
    feed_wait(&feed.done, 1);
    assert_int_equal(r.messages, feed.messages);
}

static void test_cancelling_ends_it_on_both_sides(void **state)
{
    struct reader r = { 0 };

    reader_start(&r, PATH);
    feed_tell(1);
    sem_wait(&r.came);
    rpc_client_call_cancel(r.call.handle);
    assert_int_equal(reader_end(&r), MST_CANCELLED);
    feed_wait(&feed.done, 1);
    assert_int_equal(feed.cancelled, 1);
}

static void test_a_deadline_ends_it_on_both_sides(void **state)
{
    struct reader r = { .call.deadline_ms = 3000 };

    reader_start(&r, PATH);
    feed_tell(1);
    assert_int_equal(reader_end(&r), MST_DEADLINE_EXCEEDED);
    feed_wait(&feed.done, 1);
    assert_int_equal(feed.cancelled, 1);
}

/* The reader's loop sleeps, so this one is kept by the server. */
static void test_a_deadline_ends_it_within_a_message(void **state)
{
    struct reader r = { .call.deadline_ms = 3000, .sleeps = true };
    int code;

    reader_start(&r, PATH);
    feed_tell(1);
    sem_wait(&r.came);
    pthread_mutex_lock(&feed.lock);
    feed.padding = buffer_new(64 << 20);
    pthread_mutex_unlock(&feed.lock);
    feed_tell(2);
    feed_wait(&feed.done, 1);
    assert_int_equal(feed.cancelled, 1);
    sem_post(&r.wake);
    code = reader_end(&r);
    assert_true(code == MST_DEADLINE_EXCEEDED || code == MST_CANCELLED);
}

static void test_a_closed_channel_ends_it(void **state)
{
    struct reader r = { 0 };

    reader_start(&r, PATH);
    feed_tell(1);
    sem_wait(&r.came);
    close_and_unref(channel);
    channel = NULL;
    assert_int_equal(reader_end(&r), MST_CANCELLED);
    feed_wait(&feed.done, 1);
}

static void test_a_server_that_stops_ends_it(void **state)
{
    struct reader r = { 0 };

    reader_start(&r, PATH);
    feed_tell(1);
    sem_wait(&r.came);
    stop_and_free(server, 0);
    server = NULL;
    assert_int_equal(reader_end(&r), MST_UNAVAILABLE);
    assert_int_equal(feed.done, 1);
    assert_int_equal(feed.cancelled, 1);
}

static void test_a_server_that_stops_lets_it_end(void **state)
{
    struct reader r = { 0 };
    sem_t stopped;

    reader_start(&r, PATH);
    feed_tell(1);
    sem_wait(&r.came);
    sem_init(&stopped, 0, 0);
    rpc_server_stop(server, 60000, post_sem, &stopped);
    feed_tell(2);
    sem_wait(&r.came);
    feed_end(MST_OK);
    assert_int_equal(reader_end(&r), MST_OK);
    sem_wait(&stopped);
    sem_destroy(&stopped);
    rpc_server_free(server);
    server = NULL;
}

static void test_who_wants_one_message_gets_no_stream(void **state)
{
    struct tcall t = { .path = "/test.Service/Burst" };

    tcall_start(channel, &t, "x", 1);
    assert_int_equal(tcall_wait(&t), MST_INTERNAL);
    assert_non_null(strstr(t.status.msg, "more than one message"));
    tcall_clear(&t);
}

static void test_there_are_no_streams_inside_of_the_process(void **state)
{
    struct tcall t = { .path = PATH };
    struct rpc_msg msg;
    struct rpc_request rq = {
        .path = PATH, .msg = &msg, .done = tcall_done, .arg = &t
    };

    rpc_msg_init(&msg);
    sem_init(&t.over, 0, 0);
    rpc_local_unref(rpc_local_call(server, &rq));
    assert_int_equal(tcall_wait(&t), MST_UNIMPLEMENTED);
    tcall_clear(&t);
}

static int setup(void **state)
{
    feed.news = feed.told = 0;
    feed.messages = feed.cancelled = feed.done = 0;
    feed.sending = feed.ended = false;
    group = loop_group_new(&(struct loop_opts){ .loops = 1 });
    server_group = loop_group_new(&(struct loop_opts){ .loops = 2 });
    server = rpc_server_new(&(struct rpc_server_opts){ .group = server_group });
    rpc_server_add(server, methods, COUNT(methods), NULL);
    channel = channel_to(group, listen_any(server));
    return 0;
}

static int teardown(void **state)
{
    if (channel)
        close_and_unref(channel);
    if (server)
        stop_and_free(server, 0);
    loop_group_free(group);
    loop_group_free(server_group);
    buffer_unref(feed.padding);
    feed.padding = NULL;
    return 0;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_messages_come_in_order_and_then_the_end),
        TEST(test_each_message_comes_when_it_is_sent),
        TEST(test_a_stream_may_be_empty),
        TEST(test_a_failure_comes_behind_the_messages),
        TEST(test_a_failure_may_come_instead),
        TEST(test_the_end_waits_for_the_message_under_way),
        TEST(test_who_sleeps_gets_the_newest_when_it_wakes),
        TEST(test_cancelling_ends_it_on_both_sides),
        TEST(test_a_deadline_ends_it_on_both_sides),
        TEST(test_a_deadline_ends_it_within_a_message),
        TEST(test_a_closed_channel_ends_it),
        TEST(test_a_server_that_stops_ends_it),
        TEST(test_a_server_that_stops_lets_it_end),
        TEST(test_who_wants_one_message_gets_no_stream),
        TEST(test_there_are_no_streams_inside_of_the_process),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
