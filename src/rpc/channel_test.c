/* Connecting, losing and closing, against real servers and against peers that
 * are written by hand, byte for byte. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rpc/client.h"
#include "rpc/testing.h"

static struct loop_group *group;

static void echo(struct rpc_call *call, void *arg)
{
    const struct rpc_data *rq = rpc_call_request(call);
    struct rpc_msg msg;

    rpc_msg_init(&msg);
    rpc_msg_ref(&msg, rq->data, rq->len, rq->owner);
    rpc_call_reply(call, &msg);
}

static const struct rpc_method methods[] = { { .path = "/t/Echo",
                                               .start = echo } };

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

static struct rpc_server *server_on(uint16_t *port)
{
    struct rpc_server_opts opts = { .group = group };
    struct rpc_server *s = rpc_server_new(&opts);
    struct status st = STATUS_INIT;
    char addr[32];

    rpc_server_add(s, methods, COUNT(methods), NULL);
    snprintf(addr, sizeof(addr), "127.0.0.1:%u", *port);
    assert_int_equal(rpc_server_listen(s, addr, port, &st), 0);
    return s;
}

/* A peer by hand. */
static int raw_listen(uint16_t *port)
{
    struct sockaddr_in a = { .sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof(a);
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    assert_int_equal(bind(fd, (struct sockaddr *)&a, len), 0);
    assert_int_equal(listen(fd, 16), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
    *port = ntohs(a.sin_port);
    return fd;
}

static uint16_t closed_port(void)
{
    uint16_t port;

    close(raw_listen(&port));
    return port;
}

static void raw_send(int fd, const void *data, size_t len)
{
    assert_int_equal(send(fd, data, len, MSG_NOSIGNAL), (ssize_t)len);
}

#define RAW(fd, literal) raw_send((fd), (literal), sizeof(literal) - 1)
#define RAW_SETTINGS     "\0\0\0\4\0\0\0\0\0"
#define RAW_GOAWAY_0     "\0\0\10\7\0\0\0\0\0\0\0\0\0\0\0\0\0"

/* Reads until a frame of this type came in. */
static void raw_read_to(int fd, uint8_t type)
{
    uint8_t head[9], byte;
    size_t len;

    do {
        assert_int_equal(recv(fd, head, 9, MSG_WAITALL), 9);
        len = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
        while (len--)
            assert_int_equal(recv(fd, &byte, 1, MSG_WAITALL), 1);
    } while (head[3] != type);
}

static int raw_accept(int listener)
{
    char magic[24];
    int fd = accept(listener, NULL, NULL);

    assert_true(fd >= 0);
    assert_int_equal(recv(fd, magic, 24, MSG_WAITALL), 24);
    assert_memory_equal(magic, "PRI * HTTP/2.0", 14);
    return fd;
}

static void test_channel_fails_fast_when_refused(void **state)
{
    uint16_t port = closed_port();
    struct rpc_channel *ch = channel_to(group, port);
    char expect[200];

    snprintf(expect, sizeof(expect),
             "failed to connect to all addresses; last error: UNKNOWN: "
             "ipv4:127.0.0.1:%u: Failed to connect to remote host: "
             "Connection refused",
             port);
    for (int i = 0; i < 3; i++) {
        struct tcall t = { .path = "/t/Echo" };

        tcall_start(ch, &t, "x", 1);
        assert_int_equal(tcall_wait(&t), MST_UNAVAILABLE);
        assert_string_equal(t.status.msg, expect);
        tcall_clear(&t);
    }
    close_and_unref(ch);
}

static void test_channel_waits_for_a_late_server(void **state)
{
    uint16_t port = closed_port();
    struct rpc_channel *ch = channel_to(group, port);
    struct tcall t = { .path = "/t/Echo", .wait_for_ready = true };
    struct rpc_server *s;

    assert_int_equal(tcall_simple(ch, "/t/Echo", "x", 1), MST_UNAVAILABLE);
    tcall_start(ch, &t, "x", 1);
    assert_int_equal(tcall_simple(ch, "/t/Echo", "x", 1), MST_UNAVAILABLE);
    s = server_on(&port);
    assert_int_equal(tcall_wait(&t), MST_OK);
    tcall_clear(&t);
    assert_int_equal(tcall_simple(ch, "/t/Echo", "x", 1), MST_OK);
    close_and_unref(ch);
    stop_and_free(s, 1000);
}

static void test_channel_reconnects_after_a_restart(void **state)
{
    uint16_t port = 0;
    struct rpc_server *s = server_on(&port);
    struct rpc_channel *ch = channel_to(group, port);

    for (int i = 0; i < 5; i++) {
        struct tcall t = { .path = "/t/Echo", .wait_for_ready = true };

        assert_int_equal(tcall_simple(ch, "/t/Echo", "x", 1), MST_OK);
        stop_and_free(s, 0);
        s = server_on(&port);
        tcall_start(ch, &t, "x", 1);
        assert_int_equal(tcall_wait(&t), MST_OK);
        tcall_clear(&t);
    }
    close_and_unref(ch);
    stop_and_free(s, 1000);
}

static void test_channel_lost_in_a_call_is_unavailable(void **state)
{
    struct tcall t[3] = { { .path = "/t/Echo" },
                          { .path = "/t/Echo" },
                          { .path = "/t/Echo", .wait_for_ready = true } };
    uint16_t port;
    int listener = raw_listen(&port), fd;
    struct rpc_channel *ch = channel_to(group, port);

    for (int i = 0; i < 3; i++)
        tcall_start(ch, &t[i], "x", 1);
    fd = raw_accept(listener);
    RAW(fd, RAW_SETTINGS);
    raw_read_to(fd, 1);
    close(fd);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(tcall_wait(&t[i]), MST_UNAVAILABLE);
        tcall_clear(&t[i]);
    }
    close(listener);
    close_and_unref(ch);
}

static void test_channel_tells_garbage_from_http2(void **state)
{
    struct tcall t = { .path = "/t/Echo" };
    uint16_t port;
    int listener = raw_listen(&port), fd;
    struct rpc_channel *ch = channel_to(group, port);

    tcall_start(ch, &t, "x", 1);
    fd = raw_accept(listener);
    RAW(fd, "HTTP/1.1 400 Bad Request\r\n\r\n");
    assert_int_equal(tcall_wait(&t), MST_UNAVAILABLE);
    assert_memory_equal(t.status.msg, "failed to connect to all addresses", 34);
    tcall_clear(&t);
    close(fd);
    close(listener);
    close_and_unref(ch);
}

static void test_channel_resends_what_goaway_left_out(void **state)
{
    struct tcall t = { .path = "/t/Echo", .wait_for_ready = true };
    uint16_t port;
    int listener = raw_listen(&port), fd;
    struct rpc_channel *ch = channel_to(group, port);
    struct rpc_server *s;

    tcall_start(ch, &t, "again", 5);
    fd = raw_accept(listener);
    RAW(fd, RAW_SETTINGS);
    raw_read_to(fd, 0); /* the request is here */
    close(listener);
    s = server_on(&port);
    RAW(fd, RAW_GOAWAY_0);
    assert_int_equal(tcall_wait(&t), MST_OK);
    assert_int_equal(t.len, 5);
    assert_memory_equal(t.data, "again", 5);
    tcall_clear(&t);
    close(fd);
    close_and_unref(ch);
    stop_and_free(s, 1000);
}

/* One reply by hand on stream 1: HEADERS with :status 200, then as given. */
static void raw_reply(int fd, const void *rest, size_t len)
{
    RAW(fd, "\0\0\1\1\4\0\0\0\1\x88");
    raw_send(fd, rest, len);
}

#define RAW_TRAILERS_OK                                                        \
    "\0\0\17\1\5\0\0\0\1\0\13grpc-status\1"                                    \
    "0"

static void check_reply(const void *rest, size_t len, int code)
{
    struct tcall t = { .path = "/t/Echo" };
    uint16_t port;
    int listener = raw_listen(&port), fd;
    struct rpc_channel *ch = channel_to(group, port);

    tcall_start(ch, &t, "x", 1);
    fd = raw_accept(listener);
    RAW(fd, RAW_SETTINGS);
    raw_read_to(fd, 0);
    raw_reply(fd, rest, len);
    assert_int_equal(tcall_wait(&t), code);
    tcall_clear(&t);
    close(fd);
    close(listener);
    close_and_unref(ch);
}

#define CHECK_REPLY(literal, code)                                             \
    check_reply((literal), sizeof(literal) - 1, (code))

static void test_channel_judges_replies(void **state)
{
    /* whole */
    CHECK_REPLY("\0\0\6\0\0\0\0\0\1\0\0\0\0\1y" RAW_TRAILERS_OK, MST_OK);
    /* no message, half a message, half a prefix, two messages */
    CHECK_REPLY(RAW_TRAILERS_OK, MST_INTERNAL);
    CHECK_REPLY("\0\0\6\0\0\0\0\0\1\0\0\0\0\2y" RAW_TRAILERS_OK, MST_INTERNAL);
    CHECK_REPLY("\0\0\3\0\0\0\0\0\1\0\0\0" RAW_TRAILERS_OK, MST_INTERNAL);
    CHECK_REPLY("\0\0\12\0\0\0\0\0\1\0\0\0\0\0\0\0\0\0\0" RAW_TRAILERS_OK,
                MST_INTERNAL);
    /* no status */
    CHECK_REPLY("\0\0\6\0\1\0\0\0\1\0\0\0\0\1y", MST_UNKNOWN);
    /* resets: CANCEL, ENHANCE_YOUR_CALM, INTERNAL_ERROR, NO_ERROR */
    CHECK_REPLY("\0\0\4\3\0\0\0\0\1\0\0\0\10", MST_CANCELLED);
    CHECK_REPLY("\0\0\4\3\0\0\0\0\1\0\0\0\13", MST_RESOURCE_EXHAUSTED);
    CHECK_REPLY("\0\0\4\3\0\0\0\0\1\0\0\0\2", MST_INTERNAL);
    CHECK_REPLY("\0\0\4\3\0\0\0\0\1\0\0\0\0", MST_INTERNAL);
    /* a frame that HTTP/2 does not allow there ends the connection */
    CHECK_REPLY("\0\0\0\0\0\0\0\0\0", MST_UNAVAILABLE);
}

static void test_channel_cancels_waiting_calls(void **state)
{
    struct tcall late = { .path = "/t/Echo",
                          .wait_for_ready = true,
                          .deadline_ms = 30 };
    struct tcall t = { .path = "/t/Echo", .wait_for_ready = true };
    struct rpc_channel *ch = channel_to(group, closed_port());

    tcall_start(ch, &t, "x", 1);
    tcall_start(ch, &late, "x", 1);
    rpc_client_call_cancel(t.handle);
    assert_int_equal(tcall_wait(&t), MST_CANCELLED);
    assert_int_equal(tcall_wait(&late), MST_DEADLINE_EXCEEDED);
    tcall_clear(&t);
    tcall_clear(&late);
    close_and_unref(ch);
}

static void test_channel_close_ends_all_calls(void **state)
{
    struct tcall waiting = { .path = "/t/Echo", .wait_for_ready = true };
    struct tcall after = { .path = "/t/Echo" };
    struct rpc_channel *ch = channel_to(group, closed_port());

    tcall_start(ch, &waiting, "x", 1);
    rpc_channel_ref(ch);
    close_and_unref(ch);
    assert_int_equal(waiting.done_count, 1);
    assert_int_equal(tcall_wait(&waiting), MST_CANCELLED);
    tcall_start(ch, &after, "x", 1);
    assert_int_equal(tcall_wait(&after), MST_CANCELLED);
    tcall_clear(&waiting);
    tcall_clear(&after);
    rpc_channel_unref(ch);
}

static void test_channel_is_freed_without_close(void **state)
{
    struct tcall t = { .path = "/t/Echo" };
    uint16_t port = 0;
    struct rpc_server *s = server_on(&port);
    struct rpc_channel *ch = channel_to(group, port);

    tcall_start(ch, &t, "x", 1);
    rpc_channel_unref(ch);
    assert_int_equal(tcall_wait(&t), MST_OK);
    tcall_clear(&t);
    rpc_channel_unref(rpc_channel_new(group, "127.0.0.1:1", NULL));
    stop_and_free(s, 10000);
}

static void test_channel_with_a_bad_target_says_so(void **state)
{
    struct tcall t = { .path = "/t/Echo", .wait_for_ready = true };
    struct tcall u = { .path = "/t/Echo" };
    struct rpc_channel *bad = rpc_channel_new(group, "nonsense", NULL);
    struct rpc_channel *unknown =
        rpc_channel_new(group, "no.such.host.invalid:5", NULL);

    tcall_start(bad, &t, "x", 1);
    assert_int_equal(tcall_wait(&t), MST_INVALID_ARGUMENT);
    tcall_start(unknown, &u, "x", 1);
    assert_int_equal(tcall_wait(&u), MST_UNAVAILABLE);
    assert_memory_equal(u.status.msg,
                        "errors resolving no.such.host.invalid:5: ", 41);
    tcall_clear(&t);
    tcall_clear(&u);
    close_and_unref(bad);
    close_and_unref(unknown);
}

static void test_channel_by_name_tries_all_addresses(void **state)
{
    /* localhost may stand for ::1 as well, where nobody listens. */
    uint16_t port = 0;
    struct rpc_server *s = server_on(&port);
    struct rpc_channel *ch;
    char target[32];

    snprintf(target, sizeof(target), "localhost:%u", port);
    ch = rpc_channel_new(group, target, NULL);
    assert_string_equal(rpc_channel_target(ch), target);
    assert_int_equal(tcall_simple(ch, "/t/Echo", "x", 1), MST_OK);
    close_and_unref(ch);
    stop_and_free(s, 1000);
}

static void test_channel_speaks_ipv6(void **state)
{
    struct rpc_server_opts opts = { .group = group };
    struct rpc_server *s = rpc_server_new(&opts);
    struct status st = STATUS_INIT;
    struct rpc_channel *ch;
    char target[32];
    uint16_t port;

    rpc_server_add(s, methods, COUNT(methods), NULL);
    if (rpc_server_listen(s, "[::1]:0", &port, &st)) {
        rpc_server_free(s);
        skip();
    }
    snprintf(target, sizeof(target), "[::1]:%u", port);
    ch = rpc_channel_new(group, target, NULL);
    assert_int_equal(tcall_simple(ch, "/t/Echo", "x", 1), MST_OK);
    close_and_unref(ch);
    stop_and_free(s, 1000);
}

static void test_channel_outlives_its_stream_numbers(void **state)
{
    uint16_t port = 0;
    struct rpc_server *s = server_on(&port);
    struct rpc_channel *ch = channel_to(group, port);
    struct tcall t[50];

    ch->stream_id_max = 19;
    for (int i = 0; i < 50; i++) {
        t[i] = (struct tcall){ .path = "/t/Echo" };
        tcall_start(ch, &t[i], "x", 1);
    }
    for (int i = 0; i < 50; i++) {
        assert_int_equal(tcall_wait(&t[i]), MST_OK);
        tcall_clear(&t[i]);
    }
    assert_int_equal(atomic_load(&ch->conns_total), 5);
    close_and_unref(ch);
    stop_and_free(s, 1000);
}

/* With its own server stopped in the midst of many calls, each call is either
 * served or refused; none hangs, none is lost. */
static void test_channel_survives_a_drain_under_load(void **state)
{
    uint16_t port = 0;
    struct rpc_server *s = server_on(&port);
    struct rpc_channel *ch = channel_to(group, port);
    struct tcall t[500];

    for (int i = 0; i < 500; i++) {
        t[i] = (struct tcall){ .path = "/t/Echo", .wait_for_ready = true };
        tcall_start(ch, &t[i], "x", 1);
        if (i == 250) {
            stop_and_free(s, 10000);
            s = server_on(&port);
        }
    }
    for (int i = 0; i < 500; i++) {
        assert_int_equal(tcall_wait(&t[i]), MST_OK);
        tcall_clear(&t[i]);
    }
    close_and_unref(ch);
    stop_and_free(s, 1000);
}

/* Answers nothing, but lives: pings keep the connection. Then it is dead. */
static void test_channel_pings_while_calls_wait(void **state)
{
    struct rpc_channel_opts opts = { .keepalive_ms = 10 };
    struct tcall t = { .path = "/t/Echo" };
    struct rpc_channel *ch;
    char target[32];
    uint16_t port;
    int listener = raw_listen(&port), fd;

    snprintf(target, sizeof(target), "127.0.0.1:%u", port);
    ch = rpc_channel_new(group, target, &opts);
    tcall_start(ch, &t, "x", 1);
    fd = raw_accept(listener);
    RAW(fd, RAW_SETTINGS);
    for (int i = 0; i < 3; i++) {
        raw_read_to(fd, 6);
        RAW(fd, "\0\0\10\6\1\0\0\0\0\0\0\0\0\0\0\0\0");
    }
    close(fd);
    assert_int_equal(tcall_wait(&t), MST_UNAVAILABLE);
    tcall_clear(&t);
    close(listener);
    close_and_unref(ch);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_channel_fails_fast_when_refused),
        CASE(test_channel_waits_for_a_late_server),
        CASE(test_channel_reconnects_after_a_restart),
        CASE(test_channel_lost_in_a_call_is_unavailable),
        CASE(test_channel_tells_garbage_from_http2),
        CASE(test_channel_resends_what_goaway_left_out),
        CASE(test_channel_judges_replies),
        CASE(test_channel_cancels_waiting_calls),
        CASE(test_channel_close_ends_all_calls),
        CASE(test_channel_is_freed_without_close),
        CASE(test_channel_with_a_bad_target_says_so),
        CASE(test_channel_by_name_tries_all_addresses),
        CASE(test_channel_speaks_ipv6),
        CASE(test_channel_outlives_its_stream_numbers),
        CASE(test_channel_survives_a_drain_under_load),
        CASE(test_channel_pings_while_calls_wait),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
