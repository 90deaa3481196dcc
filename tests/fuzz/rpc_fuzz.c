/*
 * Bytes from a peer that need not be what they should: frames for a server,
 * behind a proper greeting, or the answer of a server to a call of ours. The
 * first byte says which. Real sockets, real loops; every input must lead to the
 * end of the connection, and of the call.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/status.h"
#include "rpc/channel.h"
#include "rpc/server.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct loop_group *group;
static struct rpc_server *server;
static uint16_t port;

static void echo(struct rpc_call *call, void *arg)
{
    const struct rpc_data *rq = rpc_call_request(call);
    struct rpc_msg msg;

    rpc_msg_init(&msg);
    rpc_msg_ref(&msg, rq->data, rq->len, rq->owner);
    rpc_call_reply(call, &msg);
}

static bool place(void *arg, const uint8_t *head, size_t have, size_t total,
                  struct rpc_place *ret)
{
    struct buffer *to;

    if (have < 3 || total > 1 << 20)
        return false;
    to = buffer_new(total - 3);
    if (!to)
        return true;
    *ret = (struct rpc_place){ 2, to->data, total - 3, to };
    return true;
}

static const struct rpc_method methods[] = {
    { .path = "/t/E", .start = echo },
    { .path = "/t/P", .start = echo, .place = place },
};

static void set_up(void)
{
    struct rpc_server_opts opts;
    struct status st = STATUS_INIT;

    group = loop_group_new(NULL);
    opts = (struct rpc_server_opts){ .group = group, .request_max = 1 << 24 };
    server = rpc_server_new(&opts);
    rpc_server_add(server, methods, COUNT(methods), NULL);
    CHECK(!rpc_server_listen(server, "127.0.0.1:0", &port, &st));
}

static struct sockaddr_in loopback(uint16_t at)
{
    return (struct sockaddr_in){ .sin_family = AF_INET,
                                 .sin_port = htons(at),
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

/* Sends, says that there is no more, and waits for the other end to close. */
static void talk(int fd, const uint8_t *data, size_t size)
{
    struct linger abort = { .l_onoff = 1 };
    char buf[4096];

    (void)!send(fd, data, size, MSG_NOSIGNAL);
    shutdown(fd, SHUT_WR);
    while (recv(fd, buf, sizeof(buf), 0) > 0)
        ;
    /* No TIME_WAIT: ports would run out. */
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &abort, sizeof(abort));
    close(fd);
}

static void as_client(const uint8_t *data, size_t size)
{
    static const char hello[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
                                "\0\0\0\4\0\0\0\0\0";
    static uint32_t runs;
    struct sockaddr_in a = loopback(port), from = loopback(0);
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    /* From many addresses, for the reason that as_server() gives. */
    from.sin_addr.s_addr = htonl(0x7f020000u + (runs++ & 0xffff));
    CHECK(!bind(fd, (struct sockaddr *)&from, sizeof(from)));
    if (connect(fd, (struct sockaddr *)&a, sizeof(a))) {
        struct pollfd ready = { .fd = fd, .events = POLLOUT };

        CHECK(errno == EINTR); /* the fuzzer's own timer */
        while (poll(&ready, 1, -1) < 0)
            ;
    }
    (void)!send(fd, hello, sizeof(hello) - 1, MSG_NOSIGNAL);
    talk(fd, data, size);
}

static void done(const struct rpc_reply *reply, void *arg)
{
    sem_post(arg);
}

static void closed(void *arg)
{
    sem_post(arg);
}

static void as_server(const uint8_t *data, size_t size)
{
    static uint32_t runs;
    struct sockaddr_in a = loopback(0);
    socklen_t len = sizeof(a);
    int ls = socket(AF_INET, SOCK_STREAM, 0), fd;
    struct rpc_channel *channel;
    struct rpc_msg msg;
    char target[32];
    sem_t over;

    /* Many addresses: the ports of one would all be in TIME_WAIT soon. */
    a.sin_addr.s_addr = htonl(0x7f010000u + (runs++ & 0xffff));
    CHECK(!bind(ls, (struct sockaddr *)&a, len) && !listen(ls, 1));
    CHECK(!getsockname(ls, (struct sockaddr *)&a, &len));
    snprintf(target, sizeof(target), "%s:%u", inet_ntoa(a.sin_addr),
             ntohs(a.sin_port));
    channel = rpc_channel_new(group, target, NULL);
    sem_init(&over, 0, 0);
    rpc_msg_init(&msg);
    rpc_client_call_unref(
        rpc_channel_call(channel, &(struct rpc_request){ .path = "/t/E",
                                                         .msg = &msg,
                                                         .place = place,
                                                         .done = done,
                                                         .arg = &over }));
    do
        fd = accept(ls, NULL, NULL);
    while (fd < 0 && errno == EINTR);
    close(ls); /* once only */
    (void)!send(fd, "\0\0\0\4\0\0\0\0\0", 9, MSG_NOSIGNAL);
    talk(fd, data, size);
    sem_wait(&over);
    rpc_channel_close(channel, closed, &over);
    sem_wait(&over);
    sem_destroy(&over);
    rpc_channel_unref(channel);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!group)
        set_up();
    if (!size)
        return 0;
    if (*data == 's')
        as_server(data + 1, size - 1);
    else
        as_client(data + 1, size - 1);
    return 0;
}
