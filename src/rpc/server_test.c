/* Calls from end to end, as both sides see them. */
#include <pthread.h>
#include <unistd.h>

#include "base/rng.h"
#include "rpc/client.h"
#include "rpc/testing.h"

static struct loop_group *group;
static struct rpc_server *server;
static struct rpc_channel *channel;
static uint16_t port;

/* Calls that wait until the test lets them go. */
static struct park {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct rpc_call *calls[20000];
    int count, cancelled, done, total;
    int64_t deadline_ms;
    bool answer_in_cancel;
    char peer[64];
} park = { .lock = PTHREAD_MUTEX_INITIALIZER,
           .changed = PTHREAD_COND_INITIALIZER };

static void echo(struct rpc_call *call, void *arg)
{
    const struct rpc_data *rq = rpc_call_request(call);
    struct rpc_msg msg;

    rpc_msg_init(&msg);
    rpc_msg_ref(&msg, rq->data, rq->len, rq->owner);
    rpc_call_reply(call, &msg);
}

static void fail_loudly(struct rpc_call *call, void *arg)
{
    const struct rpc_data *rq = rpc_call_request(call);
    struct status st;

    status_set(&st, MST_ABORTED, "caf\xc3\xa9 100%%\nnext %.*s", (int)rq->len,
               (const char *)rq->data);
    rpc_call_fail(call, &st, "\0\1\2\377", 4);
}

static void count_park(int *counter)
{
    pthread_mutex_lock(&park.lock);
    ++*counter;
    pthread_cond_broadcast(&park.changed);
    pthread_mutex_unlock(&park.lock);
}

static void park_cancel(void *arg)
{
    struct rpc_call *call = arg;
    struct status st;

    assert_true(rpc_call_cancelled(call));
    if (park.answer_in_cancel) {
        status_set(&st, MST_CANCELLED, "as you wish");
        rpc_call_fail(call, &st, NULL, 0);
    }
    count_park(&park.cancelled);
}

static void park_done(void *arg)
{
    count_park(&park.done);
}

static void park_start(struct rpc_call *call, void *arg)
{
    rpc_call_hooks(call, park_cancel, park_done, call);
    pthread_mutex_lock(&park.lock);
    park.deadline_ms = rpc_call_deadline_ms(call);
    snprintf(park.peer, sizeof(park.peer), "%s", rpc_call_peer(call));
    park.calls[park.count++] = call;
    park.total++;
    pthread_cond_broadcast(&park.changed);
    pthread_mutex_unlock(&park.lock);
}

static void park_wait(const int *counter, int value)
{
    pthread_mutex_lock(&park.lock);
    while (*counter < value)
        pthread_cond_wait(&park.changed, &park.lock);
    pthread_mutex_unlock(&park.lock);
}

/* From the test's thread: answers all that wait. */
static void park_release(void)
{
    pthread_mutex_lock(&park.lock);
    while (park.count) {
        struct rpc_call *call = park.calls[--park.count];
        struct rpc_msg msg;

        rpc_msg_init(&msg);
        rpc_msg_copy(&msg, "released", 8);
        rpc_call_reply(call, &msg);
    }
    pthread_mutex_unlock(&park.lock);
}

/* Replies with as many bytes as are asked for, from one buffer. */
static struct buffer *bulk;

static void bulk_start(struct rpc_call *call, void *arg)
{
    struct rpc_msg msg;
    uint64_t n;

    assert_int_equal(rpc_call_request(call)->len, 8);
    memcpy(&n, rpc_call_request(call)->data, 8);
    rpc_msg_init(&msg);
    rpc_msg_copy(&msg, "head", 4);
    rpc_msg_ref(&msg, bulk->data, n, bulk);
    rpc_msg_copy(&msg, "tail", 4);
    rpc_call_reply(call, &msg);
}

/* A request whose bytes after the first four are placed. */
static struct buffer *taken;

static bool take_place(void *arg, const uint8_t *head, size_t have,
                       size_t total, struct rpc_place *ret)
{
    assert_string_equal(rpc_call_path(arg), "/test.Service/Take");
    if (have < 4)
        return false;
    *ret = (struct rpc_place){ 4, taken->data, total - 4, buffer_ref(taken) };
    return true;
}

static void take_start(struct rpc_call *call, void *arg)
{
    struct rpc_msg msg;

    assert_int_equal(rpc_call_request(call)->len, 4);
    assert_ptr_equal(rpc_call_placed(call)->dest, taken->data);
    rpc_msg_init(&msg);
    rpc_call_reply(call, &msg);
}

/* Very many pieces. */
static void pieces_start(struct rpc_call *call, void *arg)
{
    struct rpc_msg msg;

    rpc_msg_init(&msg);
    for (size_t i = 0; i < 1000; i++) {
        rpc_msg_ref(&msg, bulk->data + i * 1000, 600 + i, bulk);
        rpc_msg_copy(&msg, bulk->data + i * 1000 + 600 + i, 400 - i % 400);
    }
    rpc_call_reply(call, &msg);
}

static const struct rpc_method methods[] = {
    { .path = "/test.Service/Echo", .start = echo },
    { .path = "/test.Service/Fail", .start = fail_loudly },
    { .path = "/test.Service/Park", .start = park_start },
    { .path = "/test.Service/Bulk", .start = bulk_start },
    { .path = "/test.Service/Take", .start = take_start, .place = take_place },
    { .path = "/test.Service/Small", .start = echo, .request_max = 10 },
    { .path = "/test.Service/Pieces", .start = pieces_start },
};

static void server_start(struct loop_group *on)
{
    struct rpc_server_opts opts = { .group = on };

    server = rpc_server_new(&opts);
    rpc_server_add(server, methods, COUNT(methods), NULL);
}

static int setup(void **state)
{
    struct loop_opts opts = { .loops = 2 };

    park.count = park.cancelled = park.done = park.total = 0;
    park.answer_in_cancel = false;
    park.deadline_ms = 0;
    group = loop_group_new(&opts);
    server_start(group);
    port = listen_any(server);
    channel = channel_to(group, port);
    return 0;
}

static int teardown(void **state)
{
    close_and_unref(channel);
    if (server)
        stop_and_free(server, 10000);
    loop_group_free(group);
    return 0;
}

static void test_call_echoes_small_messages(void **state)
{
    for (size_t len = 0; len < 3000; len = len * 2 + 1) {
        struct tcall t = { .path = "/test.Service/Echo" };
        uint8_t data[3000];

        memset(data, (int)len, sizeof(data));
        tcall_start(channel, &t, data, len);
        assert_int_equal(tcall_wait(&t), MST_OK);
        assert_int_equal(t.len, len);
        if (len)
            assert_memory_equal(t.data, data, len);
        tcall_clear(&t);
    }
}

static void fill(struct buffer *b)
{
    for (size_t i = 0; i + 8 <= b->size; i += 8) {
        uint64_t v = (i + 1) * 0x9e3779b97f4a7c15ull;

        memcpy(b->data + i, &v, 8);
    }
}

static void test_call_echoes_a_large_message(void **state)
{
    struct tcall t = { .path = "/test.Service/Echo" };
    struct buffer *b = buffer_new((size_t)20 << 20);
    struct rpc_msg msg;

    fill(b);
    rpc_msg_init(&msg);
    rpc_msg_ref(&msg, b->data, b->size, b);
    tcall_start_msg(channel, &t, &msg);
    assert_int_equal(tcall_wait(&t), MST_OK);
    assert_int_equal(t.len, b->size);
    assert_memory_equal(t.data, b->data, b->size);
    tcall_clear(&t);
    buffer_unref(b);
}

static bool bulk_place(void *arg, const uint8_t *head, size_t have,
                       size_t total, struct rpc_place *ret)
{
    struct tcall *t = arg;
    struct buffer *to = t->user;

    if (have < 4)
        return false;
    assert_memory_equal(head, "head", 4);
    *ret = (struct rpc_place){ 4, to->data, total - 8, buffer_ref(to) };
    return true;
}

static void bulk_call(size_t len, struct buffer *to)
{
    struct tcall t = { .path = "/test.Service/Bulk",
                       .place = bulk_place,
                       .user = to };
    uint64_t n = len;

    tcall_start(channel, &t, &n, 8);
    assert_int_equal(tcall_wait(&t), MST_OK);
    assert_int_equal(t.len, 8);
    assert_memory_equal(t.data, "headtail", 8);
    assert_ptr_equal(t.placed.dest, to->data);
    assert_memory_equal(to->data, bulk->data, len);
    tcall_clear(&t);
}

static void test_call_places_a_reply_without_copies(void **state)
{
    size_t len = (size_t)16 << 20;
    struct buffer *to = buffer_new(len);
    uint64_t copied;

    bulk = buffer_new(len);
    fill(bulk);
    bulk_call(1000, to); /* connects */
    copied = atomic_load(&channel->io.bytes_copied);
    bulk_call(len, to);
    copied = atomic_load(&channel->io.bytes_copied) - copied;
    /* What came along with the headers, before the place was known. */
    assert_in_range(copied, 0, 64 << 10);
    assert_true(buffer_unique(to));
    buffer_unref(to);
    buffer_unref(bulk);
}

static void test_call_unpins_a_reply_when_it_is_sent(void **state)
{
    size_t len = (size_t)1 << 20;
    struct buffer *to = buffer_new(len);

    bulk = buffer_new(len);
    fill(bulk);
    bulk_call(len, to);
    /* The server's loop may be a moment behind. */
    close_and_unref(channel);
    stop_and_free(server, 10000);
    assert_true(buffer_unique(bulk));
    server_start(group);
    channel = channel_to(group, listen_any(server));
    buffer_unref(to);
    buffer_unref(bulk);
}

static void test_call_places_a_request(void **state)
{
    struct tcall t = { .path = "/test.Service/Take" };
    struct buffer *b = buffer_new(((size_t)3 << 20) + 4);
    struct rpc_msg msg;

    taken = buffer_new(b->size - 4);
    fill(b);
    rpc_msg_init(&msg);
    rpc_msg_ref(&msg, b->data, b->size, b);
    tcall_start_msg(channel, &t, &msg);
    assert_int_equal(tcall_wait(&t), MST_OK);
    assert_int_equal(t.len, 0);
    assert_memory_equal(taken->data, b->data + 4, taken->size);
    tcall_clear(&t);
    buffer_unref(taken);
    buffer_unref(b);
}

static void test_call_sends_very_many_pieces(void **state)
{
    struct tcall t = { .path = "/test.Service/Pieces" };
    size_t at = 0;

    bulk = buffer_new(4 << 20);
    fill(bulk);
    tcall_start(channel, &t, "", 0);
    assert_int_equal(tcall_wait(&t), MST_OK);
    for (size_t i = 0; i < 1000; i++) {
        size_t len = 600 + i + 400 - i % 400;

        assert_memory_equal(t.data + at, bulk->data + i * 1000, len);
        at += len;
    }
    assert_int_equal(t.len, at);
    tcall_clear(&t);
    buffer_unref(bulk);
}

#define PARKED 5000

static void test_calls_park_by_the_thousand(void **state)
{
    struct tcall *t = mem_array(PARKED, sizeof(*t));

    for (int i = 0; i < PARKED; i++) {
        t[i].path = "/test.Service/Park";
        tcall_start(channel, &t[i], "", 0);
    }
    park_wait(&park.total, PARKED);
    /* The others still get through. */
    assert_int_equal(tcall_simple(channel, "/test.Service/Echo", "x", 1), 0);
    park_release();
    for (int i = 0; i < PARKED; i++) {
        assert_int_equal(tcall_wait(&t[i]), MST_OK);
        assert_int_equal(t[i].len, 8);
        tcall_clear(&t[i]);
    }
    park_wait(&park.done, PARKED);
    assert_int_equal(park.cancelled, 0);
    mem_free(t);
}

static void test_calls_are_cancelled_by_the_thousand(void **state)
{
    struct tcall *t = mem_array(PARKED, sizeof(*t));

    park.answer_in_cancel = true;
    for (int i = 0; i < PARKED; i++) {
        t[i].path = "/test.Service/Park";
        tcall_start(channel, &t[i], "", 0);
    }
    park_wait(&park.total, PARKED);
    for (int i = 0; i < PARKED; i++)
        rpc_client_call_cancel(t[i].handle);
    for (int i = 0; i < PARKED; i++) {
        assert_int_equal(tcall_wait(&t[i]), MST_CANCELLED);
        tcall_clear(&t[i]);
    }
    park_wait(&park.cancelled, PARKED);
    park_wait(&park.done, PARKED);
    park.count = 0;
    /* The connection has survived it. */
    assert_int_equal(tcall_simple(channel, "/test.Service/Echo", "x", 1), 0);
    assert_int_equal(atomic_load(&channel->conns_total), 1);
    mem_free(t);
}

static void test_cancelled_call_is_answered_later(void **state)
{
    struct tcall t = { .path = "/test.Service/Park" };

    tcall_start(channel, &t, "", 0);
    park_wait(&park.total, 1);
    rpc_client_call_cancel(t.handle);
    rpc_client_call_cancel(t.handle);
    assert_int_equal(tcall_wait(&t), MST_CANCELLED);
    park_wait(&park.cancelled, 1);
    assert_int_equal(park.done, 0);
    park_release();
    park_wait(&park.done, 1);
    tcall_clear(&t);
}

static void test_call_ends_at_its_deadline(void **state)
{
    /* On a busy machine the first ones may end before the server sees them. */
    for (uint64_t ms = 50; !park.total; ms *= 2) {
        struct tcall t = { .path = "/test.Service/Park", .deadline_ms = ms };

        tcall_start(channel, &t, "", 0);
        assert_int_equal(tcall_wait(&t), MST_DEADLINE_EXCEEDED);
        assert_string_equal(t.status.msg, "Deadline Exceeded");
        tcall_clear(&t);
        /* The server has come past it when it has answered this. */
        assert_int_equal(tcall_simple(channel, "/test.Service/Echo", "", 0),
                         MST_OK);
        assert_in_range(park.deadline_ms, 0, (int64_t)ms + 1);
    }
    park_wait(&park.cancelled, 1);
    assert_memory_equal(park.peer, "ipv4:127.0.0.1:", 15);
    park_release();
    park_wait(&park.done, 1);
}

static void test_call_without_deadline_says_so(void **state)
{
    struct tcall t = { .path = "/test.Service/Park" };

    tcall_start(channel, &t, "", 0);
    park_wait(&park.total, 1);
    assert_int_equal(park.deadline_ms, -1);
    park_release();
    assert_int_equal(tcall_wait(&t), MST_OK);
    tcall_clear(&t);
}

static void test_failure_carries_message_and_details(void **state)
{
    struct tcall t = { .path = "/test.Service/Fail" };

    tcall_start(channel, &t, "arg", 3);
    assert_int_equal(tcall_wait(&t), MST_ABORTED);
    assert_string_equal(t.status.msg, "caf\xc3\xa9 100%\nnext arg");
    assert_int_equal(t.details_len, 4);
    assert_memory_equal(t.details, "\0\1\2\377", 4);
    assert_int_equal(t.len, 0);
    tcall_clear(&t);
}

static void test_unknown_method_is_unimplemented(void **state)
{
    struct tcall t = { .path = "/test.Service/Nope" };
    struct buffer *b = buffer_new((size_t)8 << 20);
    struct rpc_msg msg;

    tcall_start(channel, &t, "x", 1);
    assert_int_equal(tcall_wait(&t), MST_UNIMPLEMENTED);
    assert_string_equal(t.status.msg, "");
    tcall_clear(&t);
    /* Also while a large request is still on its way. */
    fill(b);
    rpc_msg_init(&msg);
    rpc_msg_ref(&msg, b->data, b->size, b);
    t = (struct tcall){ .path = "/test.Service/Nope" };
    tcall_start_msg(channel, &t, &msg);
    assert_int_equal(tcall_wait(&t), MST_UNIMPLEMENTED);
    tcall_clear(&t);
    buffer_unref(b);
    assert_int_equal(tcall_simple(channel, "/test.Service/Echo", "x", 1), 0);
}

static void test_request_over_the_limit_is_refused(void **state)
{
    struct tcall t = { .path = "/test.Service/Small" };

    assert_int_equal(tcall_simple(channel, t.path, "0123456789", 10), MST_OK);
    tcall_start(channel, &t, "0123456789x", 11);
    assert_int_equal(tcall_wait(&t), MST_RESOURCE_EXHAUSTED);
    assert_string_equal(t.status.msg,
                        "Received message larger than max (11 vs. 10)");
    tcall_clear(&t);
}

static void test_request_without_memory_is_refused(void **state)
{
    struct tcall t = { .path = "/test.Service/Echo" };
    struct buffer *b = buffer_new((size_t)20 << 20);
    struct rpc_msg msg;
    size_t live, idle;

    fill(b);
    rpc_msg_init(&msg);
    rpc_msg_ref(&msg, b->data, b->size, b);
    buffer_usage(&live, &idle);
    buffer_limit(live + (4 << 20));
    tcall_start_msg(channel, &t, &msg);
    assert_int_equal(tcall_wait(&t), MST_RESOURCE_EXHAUSTED);
    buffer_limit(0);
    tcall_clear(&t);
    buffer_unref(b);
    assert_int_equal(tcall_simple(channel, "/test.Service/Echo", "x", 1), 0);
    assert_int_equal(atomic_load(&channel->conns_total), 1);
}

static void test_drain_lets_calls_finish(void **state)
{
    struct tcall parked = { .path = "/test.Service/Park" };
    sem_t stopped;
    int code;

    sem_init(&stopped, 0, 0);
    tcall_start(channel, &parked, "", 0);
    park_wait(&park.total, 1);
    rpc_server_stop(server, 600000, post_sem, &stopped);
    /* New calls are served until the notice comes, and then fail. */
    do
        code = tcall_simple(channel, "/test.Service/Echo", "x", 1);
    while (code == MST_OK);
    assert_int_equal(code, MST_UNAVAILABLE);
    assert_int_not_equal(sem_trywait(&stopped), 0);
    park_release();
    assert_int_equal(tcall_wait(&parked), MST_OK);
    assert_int_equal(parked.len, 8);
    sem_wait(&stopped);
    rpc_server_free(server);
    server = NULL;
    tcall_clear(&parked);
    sem_destroy(&stopped);
}

static void test_drain_ends_with_its_grace(void **state)
{
    struct tcall parked = { .path = "/test.Service/Park" };
    sem_t stopped;

    sem_init(&stopped, 0, 0);
    tcall_start(channel, &parked, "", 0);
    park_wait(&park.total, 1);
    rpc_server_stop(server, 600000, post_sem, &stopped);
    rpc_server_stop(server, 1, NULL, NULL);
    assert_int_equal(tcall_wait(&parked), MST_UNAVAILABLE);
    park_wait(&park.cancelled, 1);
    assert_int_not_equal(sem_trywait(&stopped), 0);
    park_release();
    sem_wait(&stopped);
    assert_int_equal(park.done, 1);
    rpc_server_free(server);
    server = NULL;
    tcall_clear(&parked);
    sem_destroy(&stopped);
}

static void test_lost_client_cancels_its_calls(void **state)
{
    struct tcall t = { .path = "/test.Service/Park" };

    tcall_start(channel, &t, "", 0);
    park_wait(&park.total, 1);
    close_and_unref(channel);
    assert_int_equal(tcall_wait(&t), MST_CANCELLED);
    park_wait(&park.cancelled, 1);
    park_release();
    park_wait(&park.done, 1);
    tcall_clear(&t);
    channel = channel_to(group, port);
}

/* A storm of all kinds from several threads. */
#define STORM_THREADS 4
#define STORM_CALLS   300

static void *storm_main(void *arg)
{
    uint64_t seed = (uintptr_t)arg;

    for (int i = 0; i < STORM_CALLS; i++) {
        struct tcall t = { .path = "/test.Service/Echo" };
        size_t len = rng_next(&seed) % (i % 10 ? 2000 : 300000);
        struct buffer *b = buffer_new(len);
        struct rpc_msg msg;
        int code;

        fill(b);
        rpc_msg_init(&msg);
        rpc_msg_ref(&msg, b->data, len, b);
        tcall_start_msg(channel, &t, &msg);
        if (rng_next(&seed) % 4 == 0)
            rpc_client_call_cancel(t.handle);
        code = tcall_wait(&t);
        if (code == MST_OK) {
            if (t.len != len || (len && memcmp(t.data, b->data, len & ~7ul)))
                return arg;
        } else if (code != MST_CANCELLED) {
            return arg;
        }
        tcall_clear(&t);
        buffer_unref(b);
    }
    return NULL;
}

static void test_calls_of_many_threads_mix(void **state)
{
    pthread_t threads[STORM_THREADS];
    void *bad;

    for (uintptr_t i = 0; i < STORM_THREADS; i++)
        pthread_create(&threads[i], NULL, storm_main, (void *)(i + 1));
    for (int i = 0; i < STORM_THREADS; i++) {
        pthread_join(threads[i], &bad);
        assert_null(bad);
    }
}

/* A chain of calls, each made from the done of the one before. */
struct chain {
    int left;
    sem_t over;
};

static void chain_next(struct chain *c);

static void chain_done(const struct rpc_reply *r, void *arg)
{
    struct chain *c = arg;

    assert_int_equal(r->status->code, MST_OK);
    if (--c->left)
        chain_next(c);
    else
        sem_post(&c->over);
}

static void chain_next(struct chain *c)
{
    struct rpc_msg msg;
    struct rpc_request rq = {
        .path = "/test.Service/Echo", .msg = &msg, .done = chain_done, .arg = c
    };

    rpc_msg_init(&msg);
    rpc_msg_copy(&msg, "x", 1);
    rpc_client_call_unref(rpc_channel_call(channel, &rq));
}

static void test_calls_can_be_made_from_done(void **state)
{
    struct chain c = { .left = 2000 };
    struct rpc_server_stats stats;

    sem_init(&c.over, 0, 0);
    chain_next(&c);
    sem_wait(&c.over);
    rpc_server_stats(server, &stats);
    assert_int_equal(stats.calls_total, 2000);
    assert_int_equal(stats.conns, 1);
    sem_destroy(&c.over);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_call_echoes_small_messages),
        CASE(test_call_echoes_a_large_message),
        CASE(test_call_places_a_reply_without_copies),
        CASE(test_call_unpins_a_reply_when_it_is_sent),
        CASE(test_call_places_a_request),
        CASE(test_call_sends_very_many_pieces),
        CASE(test_calls_park_by_the_thousand),
        CASE(test_calls_are_cancelled_by_the_thousand),
        CASE(test_cancelled_call_is_answered_later),
        CASE(test_call_ends_at_its_deadline),
        CASE(test_call_without_deadline_says_so),
        CASE(test_failure_carries_message_and_details),
        CASE(test_unknown_method_is_unimplemented),
        CASE(test_request_over_the_limit_is_refused),
        CASE(test_request_without_memory_is_refused),
        CASE(test_drain_lets_calls_finish),
        CASE(test_drain_ends_with_its_grace),
        CASE(test_lost_client_cancels_its_calls),
        CASE(test_calls_of_many_threads_mix),
        CASE(test_calls_can_be_made_from_done),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
