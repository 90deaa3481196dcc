/*
 * Options of a connected socket. On one host the send buffer is bounded, so
 * that the bytes under way stay in the caches: 256 KB was worth 1.4x at 16 MB
 * and above. On a network the kernel knows better. A peer that vanished without
 * a word is noticed by the kernel in about a minute, with or without data under
 * way, without a single byte that a gRPC server could mind.
 */
#include "io/socket.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BACKLOG          1024
#define SNDBUF_SAME_HOST (256 << 10)
#define KEEP_IDLE_S      30
#define KEEP_EVERY_S     10
#define KEEP_COUNT       3
#define USER_TIMEOUT_MS  60000

static void set_int(int fd, int level, int option, int value)
{
    (void)setsockopt(fd, level, option, &value, sizeof(value));
}

static int open_at(const struct addr *at)
{
    int fd = socket(at->sa.sa_family,
                    SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
    int saved;

    if (fd < 0)
        return -1;
    set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    if (at->sa.sa_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&at->room;

        set_int(fd, IPPROTO_IPV6, IPV6_V6ONLY,
                !IN6_IS_ADDR_UNSPECIFIED(&in6->sin6_addr));
    }
    if (!bind(fd, &at->sa, at->len) && !listen(fd, BACKLOG))
        return fd;
    saved = errno;
    close(fd);
    errno = saved;
    return -1;
}

static enum mst_code refused(const struct addr_name *name, int error,
                             struct status *st)
{
    enum mst_code code = error == EADDRINUSE ? MST_ALREADY_EXISTS
                         : error == EACCES   ? MST_PERMISSION_DENIED
                                             : MST_UNAVAILABLE;

    return status_set(st, code, "cannot listen on %s:%u: %s",
                      *name->host ? name->host : "*", name->port,
                      error == EADDRINUSE ? "the port is taken"
                                          : strerror(error));
}

static uint16_t port_of(int fd)
{
    struct addr a = { .len = sizeof(a.room) };

    return getsockname(fd, &a.sa, &a.len) ? 0 : addr_port(&a);
}

struct listening {
    int fds[SOCKET_LISTEN_MAX];
    int count, error;
    uint16_t port;
};

/* A port that is taken on one of the addresses is taken. An address that this
 * host does not have is left out, if another one works. */
static bool listen_one(struct listening *l, struct addr *at)
{
    int fd;

    addr_set_port(at, l->port);
    fd = open_at(at);
    if (fd < 0) {
        l->error = errno;
        return errno != EADDRINUSE;
    }
    l->port = port_of(fd);
    l->fds[l->count++] = fd;
    return true;
}

static bool listen_all(struct listening *l)
{
    struct addr v6 = { .len = sizeof(struct sockaddr_in6) };
    struct addr v4 = { .len = sizeof(struct sockaddr_in) };

    v6.sa.sa_family = AF_INET6;
    v4.sa.sa_family = AF_INET;
    return listen_one(l, &v6) && (l->count || listen_one(l, &v4));
}

static bool listen_found(struct listening *l, const struct addrinfo *found)
{
    for (; found && l->count < SOCKET_LISTEN_MAX; found = found->ai_next) {
        struct addr at = { .len = found->ai_addrlen };

        memcpy(&at.room, found->ai_addr, found->ai_addrlen);
        if (!listen_one(l, &at))
            return false;
    }
    return true;
}

enum mst_code socket_listen(const struct addr_name *name,
                            int ret_fds[SOCKET_LISTEN_MAX], int *ret_count,
                            uint16_t *ret_port, struct status *st)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found = NULL;
    struct listening l = { .port = name->port };
    bool ok;

    if (*name->host) {
        int error = getaddrinfo(name->host, NULL, &hints, &found);

        if (error)
            return status_set(st, MST_UNAVAILABLE, "cannot listen on %s:%u: %s",
                              name->host, name->port, gai_strerror(error));
        ok = listen_found(&l, found);
        freeaddrinfo(found);
    } else {
        ok = listen_all(&l);
    }
    if (!ok || !l.count) {
        while (l.count)
            close(l.fds[--l.count]);
        return refused(name, l.error, st);
    }
    memcpy(ret_fds, l.fds, sizeof(l.fds));
    *ret_count = l.count;
    *ret_port = l.port;
    return MST_OK;
}

int socket_connect(const struct addr *to)
{
    int fd = socket(to->sa.sa_family,
                    SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
    int saved;

    if (fd < 0)
        return -1;
    if (!connect(fd, &to->sa, to->len) || errno == EINPROGRESS)
        return fd;
    saved = errno;
    close(fd);
    errno = saved;
    return -1;
}

int socket_error(int fd)
{
    int error = 0;
    socklen_t len = sizeof(error);

    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len))
        return errno;
    return error;
}

void socket_tune(int fd)
{
    set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set_int(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_int(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEP_IDLE_S);
    set_int(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEP_EVERY_S);
    set_int(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEP_COUNT);
    set_int(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, USER_TIMEOUT_MS);
    if (addr_same_host(fd))
        set_int(fd, SOL_SOCKET, SO_SNDBUF, SNDBUF_SAME_HOST);
}
