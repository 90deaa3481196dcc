/*
 * What a server does with clients that are not as they should be: a probe on
 * nghttp2 that sends whatever headers and body it is told to, and bare sockets
 * that send rubbish. After each of them the server must still serve.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <nghttp2/nghttp2.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>

#include "base/rng.h"
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

static _Atomic(struct rpc_call *) never_answered;
static sem_t never_cancelled;

static void never_cancel(void *arg)
{
    sem_post(&never_cancelled);
}

static void never(struct rpc_call *call, void *arg)
{
    never_answered = call;
    rpc_call_hooks(call, never_cancel, NULL, NULL);
}

static const struct rpc_method methods[] = {
    { .path = "/t/Echo", .start = echo },
    { .path = "/t/Never", .start = never },
};

static int setup(void **state)
{
    struct rpc_server_opts opts;

    group = loop_group_new(NULL);
    opts = (struct rpc_server_opts){ .group = group, .request_max = 1 << 20 };
    server = rpc_server_new(&opts);
    rpc_server_add(server, methods, COUNT(methods), NULL);
    port = listen_any(server);
    channel = channel_to(group, port);
    sem_init(&never_cancelled, 0, 0);
    never_answered = NULL;
    return 0;
}

static int teardown(void **state)
{
    assert_int_equal(tcall_simple(channel, "/t/Echo", "x", 1), MST_OK);
    close_and_unref(channel);
    stop_and_free(server, 0);
    loop_group_free(group);
    sem_destroy(&never_cancelled);
    return 0;
}

static int raw_connect(void)
{
    struct sockaddr_in a = { .sin_family = AF_INET,
                             .sin_port = htons(port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    return fd;
}

/* Waits until the server has closed. */
static void wait_closed(int fd)
{
    char buf[4096];

    while (recv(fd, buf, sizeof(buf), 0) > 0)
        ;
    close(fd);
}

/* One request, and what came back. */
struct probe {
    const char *method, *path, *content_type, *encoding, *timeout;
    size_t extra_headers; /* of 1000 bytes each */
    const uint8_t *body;
    size_t body_len, body_at;

    nghttp2_session *session;
    int fd;
    bool closed;
    uint32_t h2_error;
    int http_status, grpc_status;
    char message[200];
    uint8_t reply[4096];
    size_t reply_len;
};

static ssize_t probe_send(nghttp2_session *s, const uint8_t *data, size_t len,
                          int flags, void *arg)
{
    struct probe *p = arg;
    ssize_t n = send(p->fd, data, len, MSG_NOSIGNAL);

    return n < 0 ? NGHTTP2_ERR_CALLBACK_FAILURE : n;
}

static ssize_t probe_read(nghttp2_session *s, int32_t id, uint8_t *buf,
                          size_t room, uint32_t *flags,
                          nghttp2_data_source *source, void *arg)
{
    struct probe *p = arg;
    size_t n = MIN(room, p->body_len - p->body_at);

    memcpy(buf, p->body + p->body_at, n);
    p->body_at += n;
    if (p->body_at == p->body_len)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}

static int probe_header(nghttp2_session *s, const nghttp2_frame *f,
                        const uint8_t *name, size_t name_len,
                        const uint8_t *value, size_t value_len, uint8_t flags,
                        void *arg)
{
    struct probe *p = arg;

    if (!strcmp((const char *)name, ":status"))
        p->http_status = atoi((const char *)value);
    else if (!strcmp((const char *)name, "grpc-status"))
        p->grpc_status = atoi((const char *)value);
    else if (!strcmp((const char *)name, "grpc-message"))
        snprintf(p->message, sizeof(p->message), "%s", (const char *)value);
    return 0;
}

static int probe_data(nghttp2_session *s, uint8_t flags, int32_t id,
                      const uint8_t *data, size_t len, void *arg)
{
    struct probe *p = arg;

    assert_true(p->reply_len + len <= sizeof(p->reply));
    memcpy(p->reply + p->reply_len, data, len);
    p->reply_len += len;
    return 0;
}

static int probe_close(nghttp2_session *s, int32_t id, uint32_t error,
                       void *arg)
{
    struct probe *p = arg;

    p->closed = true;
    p->h2_error = error;
    return 0;
}

static nghttp2_nv nv(const char *name, const char *value)
{
    return (nghttp2_nv){ (uint8_t *)name, (uint8_t *)value, strlen(name),
                         strlen(value), 0 };
}

static void probe_submit(struct probe *p)
{
    static char kilobyte[1001];
    nghttp2_data_provider body = { .read_callback = probe_read };
    nghttp2_nv list[300];
    size_t n = 0;

    memset(kilobyte, 'k', 1000);
    list[n++] = nv(":method", p->method);
    list[n++] = nv(":scheme", "http");
    list[n++] = nv(":path", p->path);
    list[n++] = nv(":authority", "x");
    list[n++] = nv("te", "trailers");
    list[n++] = nv("content-type", p->content_type);
    if (p->encoding)
        list[n++] = nv("grpc-encoding", p->encoding);
    if (p->timeout)
        list[n++] = nv("grpc-timeout", p->timeout);
    for (size_t i = 0; i < p->extra_headers; i++)
        list[n++] = nv("x-extra", kilobyte);
    assert_true(nghttp2_submit_request(p->session, NULL, list, n,
                                       p->body ? &body : NULL, NULL) > 0);
}

/* Makes the request and waits for its end; or the connection's. */
static void probe_run(struct probe *p)
{
    nghttp2_session_callbacks *cb;
    nghttp2_option *option;
    uint8_t buf[65536];
    ssize_t n = 1;

    p->method = p->method ? p->method : "POST";
    p->path = p->path ? p->path : "/t/Echo";
    p->content_type = p->content_type ? p->content_type : "application/grpc";
    p->grpc_status = -1;
    p->fd = raw_connect();
    nghttp2_session_callbacks_new(&cb);
    nghttp2_option_new(&option);
    nghttp2_option_set_max_send_header_block_length(option, 1 << 22);
    nghttp2_session_callbacks_set_send_callback(cb, probe_send);
    nghttp2_session_callbacks_set_on_header_callback(cb, probe_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, probe_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(cb, probe_close);
    nghttp2_session_client_new2(&p->session, cb, p, option);
    nghttp2_submit_settings(p->session, 0, NULL, 0);
    probe_submit(p);
    while (!p->closed && n > 0) {
        assert_int_equal(nghttp2_session_send(p->session), 0);
        n = recv(p->fd, buf, sizeof(buf), 0);
        if (n > 0)
            assert_int_equal(
                nghttp2_session_mem_recv(p->session, buf, (size_t)n), n);
    }
    nghttp2_session_del(p->session);
    nghttp2_session_callbacks_del(cb);
    nghttp2_option_del(option);
    close(p->fd);
}

#define BODY(literal)                                                          \
    .body = (const uint8_t *)(literal), .body_len = sizeof(literal) - 1

static void test_probe_is_served(void **state)
{
    struct probe p = { BODY("\0\0\0\0\3abc") };

    probe_run(&p);
    assert_int_equal(p.http_status, 200);
    assert_int_equal(p.grpc_status, MST_OK);
    assert_int_equal(p.reply_len, 8);
    assert_memory_equal(p.reply, "\0\0\0\0\3abc", 8);
}

static void test_server_takes_posts_only(void **state)
{
    struct probe p = { .method = "GET" };

    probe_run(&p);
    assert_int_equal(p.grpc_status, MST_UNKNOWN);
}

static void test_server_takes_grpc_only(void **state)
{
    struct probe p = { .content_type = "text/html", BODY("\0\0\0\0\1x") };
    struct probe q = { .content_type = "application/grpc+proto",
                       BODY("\0\0\0\0\1x") };

    probe_run(&p);
    assert_int_equal(p.http_status, 415);
    probe_run(&q);
    assert_int_equal(q.grpc_status, MST_OK);
}

static void test_server_wants_one_whole_message(void **state)
{
    struct probe none = { .method = "POST" };
    struct probe half = { BODY("\0\0\0\0\3ab") };
    struct probe prefix = { BODY("\0\0\0") };
    struct probe two = { BODY("\0\0\0\0\1a\0\0\0\0\1b") };
    struct probe extra = { BODY("\0\0\0\0\1a\0") };
    struct probe kind = { BODY("\7\0\0\0\1a") };
    struct probe large = { BODY("\0\0\x20\0\0a") };

    probe_run(&none);
    assert_int_equal(none.grpc_status, MST_INTERNAL);
    probe_run(&half);
    assert_int_equal(half.grpc_status, MST_INTERNAL);
    probe_run(&prefix);
    assert_int_equal(prefix.grpc_status, MST_INTERNAL);
    probe_run(&two);
    assert_int_equal(two.grpc_status, MST_INTERNAL);
    probe_run(&extra);
    assert_int_equal(extra.grpc_status, MST_INTERNAL);
    probe_run(&kind);
    assert_int_equal(kind.grpc_status, MST_INTERNAL);
    probe_run(&large);
    assert_int_equal(large.grpc_status, MST_RESOURCE_EXHAUSTED);
}

static void gzip_body(uint8_t body[200], size_t *len)
{
    z_stream z = { .next_in = (Bytef *)"abcabcabc",
                   .avail_in = 9,
                   .next_out = body + 5,
                   .avail_out = 195 };

    deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, 0);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    memcpy(body, "\1\0\0\0", 4);
    body[4] = (uint8_t)z.total_out;
    *len = 5 + z.total_out;
    deflateEnd(&z);
}

static void test_server_takes_gzip(void **state)
{
    struct probe p = { .encoding = "gzip" };
    struct probe q = { .encoding = "snappy" };
    uint8_t body[200];
    size_t len;

    gzip_body(body, &len);
    p.body = q.body = body;
    p.body_len = q.body_len = len;
    probe_run(&p);
    assert_int_equal(p.grpc_status, MST_OK);
    assert_int_equal(p.reply_len, 14);
    assert_memory_equal(p.reply, "\0\0\0\0\11abcabcabc", 14);
    probe_run(&q);
    assert_int_equal(q.grpc_status, MST_UNIMPLEMENTED);
}

static void test_server_bounds_headers(void **state)
{
    struct probe fine = { .extra_headers = 50, BODY("\0\0\0\0\1a") };
    struct probe large = { .extra_headers = 100, BODY("\0\0\0\0\1a") };

    probe_run(&fine);
    assert_int_equal(fine.grpc_status, MST_OK);
    probe_run(&large);
    assert_int_equal(large.grpc_status, MST_RESOURCE_EXHAUSTED);
}

static void test_server_keeps_deadlines_by_itself(void **state)
{
    struct probe p = { .path = "/t/Never",
                       .timeout = "30m",
                       BODY("\0\0\0\0\0") };
    struct rpc_msg msg;

    probe_run(&p);
    assert_int_equal(p.grpc_status, MST_DEADLINE_EXCEEDED);
    assert_string_equal(p.message, "Deadline Exceeded");
    /* On a busy machine it may be over before the handler ever starts. */
    if (!never_answered)
        return;
    sem_wait(&never_cancelled);
    rpc_msg_init(&msg);
    rpc_msg_copy(&msg, "late", 4);
    rpc_call_reply(never_answered, &msg);
}

static void test_server_ignores_a_bad_timeout(void **state)
{
    struct probe p = { .timeout = "soon", BODY("\0\0\0\0\1a") };

    probe_run(&p);
    assert_int_equal(p.grpc_status, MST_OK);
}

static void test_server_hangs_up_on_garbage(void **state)
{
    static const char *const garbage[] = {
        "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nthis is no settings frame at all",
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 a client hello of TLS",
    };

    for (size_t i = 0; i < COUNT(garbage); i++) {
        int fd = raw_connect();

        send(fd, garbage[i], strlen(garbage[i]), MSG_NOSIGNAL);
        wait_closed(fd);
    }
}

static void test_server_survives_random_bytes(void **state)
{
    static const char hello[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
                                "\0\0\0\4\0\0\0\0\0";
    uint64_t seed = 77;

    for (int i = 0; i < 200; i++) {
        uint8_t junk[600];
        int fd = raw_connect();

        for (size_t k = 0; k < sizeof(junk); k++)
            junk[k] = (uint8_t)rng_next(&seed);
        /* Small frames of known kinds get further. */
        for (size_t k = 0; k + 9 < sizeof(junk); k += 40) {
            junk[k] = junk[k + 1] = 0;
            junk[k + 2] = 31;
            junk[k + 3] %= 10;
        }
        send(fd, hello, sizeof(hello) - 1, MSG_NOSIGNAL);
        send(fd, junk, sizeof(junk), MSG_NOSIGNAL);
        shutdown(fd, SHUT_WR);
        wait_closed(fd);
    }
}

static void test_server_survives_truncated_frames(void **state)
{
    /* HEADERS of a whole request and DATA with half a message. */
    static const char hello[] =
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        "\0\0\0\4\0\0\0\0\0"
        "\0\0\x36\1\4\0\0\0\1\x83\x86\4\7/t/Echo\1\1x\0\2te\10trailers"
        "\0\14content-type\20application/grpc"
        "\0\0\x20\0\1\0\0\0\1\0\0\0\0\x1b";
    size_t whole = sizeof(hello) - 1;

    for (size_t n = 1; n <= whole; n += 3) {
        int fd = raw_connect();

        send(fd, hello, n, MSG_NOSIGNAL);
        shutdown(fd, SHUT_WR);
        wait_closed(fd);
    }
}

static void test_listen_tells_what_is_wrong(void **state)
{
    struct status st = STATUS_INIT;
    char addr[32];
    uint16_t other = 5;

    snprintf(addr, sizeof(addr), "127.0.0.1:%u", port);
    assert_int_equal(rpc_server_listen(server, addr, &other, &st),
                     MST_ALREADY_EXISTS);
    assert_non_null(strstr(st.msg, "the port is taken"));
    assert_int_equal(rpc_server_listen(server, "nonsense", &other, &st),
                     MST_INVALID_ARGUMENT);
    assert_int_equal(other, 5);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_probe_is_served),
        CASE(test_server_takes_posts_only),
        CASE(test_server_takes_grpc_only),
        CASE(test_server_wants_one_whole_message),
        CASE(test_server_takes_gzip),
        CASE(test_server_bounds_headers),
        CASE(test_server_keeps_deadlines_by_itself),
        CASE(test_server_ignores_a_bad_timeout),
        CASE(test_server_hangs_up_on_garbage),
        CASE(test_server_survives_random_bytes),
        CASE(test_server_survives_truncated_frames),
        CASE(test_listen_tells_what_is_wrong),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
