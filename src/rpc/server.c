/*
 * The server: its methods, its listening sockets, and the way to its shards.
 *
 * All listening sockets are watched by the loop of the first shard, which deals
 * the connections out in turn. Stopping goes the same way: that loop closes the
 * sockets and then posts to every shard, behind the connections that it dealt
 * out before, so none comes after.
 */
#include "rpc/server.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "io/socket.h"
#include "rpc/shard.h"

#define ACCEPT_ROUNDS 16
#define PAUSE_NS      100000000u

struct listener {
    struct loop_watch watch;
    struct loop_timer pause;
    struct rpc_server *server;
    struct listener *next;
};

struct server_shard {
    struct shard shard;
    struct rpc_server *server;
};

struct rpc_server {
    struct server_config config;
    unsigned next_shard; /* the first loop's */
    pthread_mutex_t lock;
    struct listener *listeners; /* under lock */
    bool stopping;              /* under lock */
    bool held;                  /* under lock */
    int busy; /* shards that are not empty, orders under way; under lock */
    void (*stopped)(void *);
    void *stopped_arg;
    int shard_count;
    struct server_shard shards[];
};

/* A connection or an order on its way to a shard. */
struct delivery {
    struct loop_task task;
    struct rpc_server *server;
    struct server_shard *to;
    int fd;
    uint64_t grace_ms;
};

/* The last one tells that the server has stopped, which may be its end. */
static void unbusy(struct rpc_server *server)
{
    bool last;

    pthread_mutex_lock(&server->lock);
    last = !--server->busy;
    pthread_mutex_unlock(&server->lock);
    if (last && server->stopped)
        server->stopped(server->stopped_arg);
}

static void on_shard_empty(struct shard *shard)
{
    unbusy(CONTAINER(shard, struct server_shard, shard)->server);
}

struct rpc_server *rpc_server_new(const struct rpc_server_opts *opts)
{
    int count = loop_group_size(opts->group);
    struct rpc_server *s =
        mem_new(sizeof(*s) + (size_t)count * sizeof(s->shards[0]));

    map_init(&s->config.methods);
    s->config.request_max = opts->request_max ? opts->request_max : INT_MAX;
    pthread_mutex_init(&s->lock, NULL);
    s->held = opts->held;
    s->shard_count = count;
    s->busy = count;
    for (int i = 0; i < count; i++) {
        s->shards[i].server = s;
        s->shards[i].shard.empty = on_shard_empty;
        shard_init(&s->shards[i].shard, loop_group_at(opts->group, i),
                   &s->config);
    }
    return s;
}

void rpc_server_free(struct rpc_server *server)
{
    struct map_slot *slot;
    size_t at = 0;

    if (!server)
        return;
    CHECK(!server->listeners);
    for (int i = 0; i < server->shard_count; i++)
        shard_done(&server->shards[i].shard);
    while ((slot = map_next(&server->config.methods, &at)))
        mem_free(slot->value);
    map_done(&server->config.methods);
    pthread_mutex_destroy(&server->lock);
    mem_free(server);
}

void rpc_server_add(struct rpc_server *server, const struct rpc_method *methods,
                    size_t count, void *arg)
{
    CHECK(!server->listeners);
    for (size_t i = 0; i < count; i++) {
        struct server_method *m = MEM_NEW(struct server_method);

        m->def = &methods[i];
        m->arg = arg;
        CHECK(!map_put_str(&server->config.methods, methods[i].path, m));
    }
}

void rpc_server_lanes(struct rpc_server *server,
                      void (*lane)(struct loop *loop, int fd, void *arg),
                      void *arg)
{
    CHECK(!server->listeners);
    server->config.lane = lane;
    server->config.lane_arg = arg;
}

static void run_accept(struct loop_task *task)
{
    struct delivery *d = CONTAINER(task, struct delivery, task);

    shard_accept(&d->to->shard, d->fd);
    mem_free(d);
}

static void deal_out(struct rpc_server *server, int fd)
{
    unsigned i = server->next_shard++ % (unsigned)server->shard_count;
    struct server_shard *to = &server->shards[i];
    struct delivery *d;

    if (!i) {
        shard_accept(&to->shard, fd);
        return;
    }
    d = MEM_NEW(struct delivery);
    d->task.run = run_accept;
    d->to = to;
    d->fd = fd;
    loop_post(to->shard.loop, &d->task);
}

static struct loop *first_loop(struct rpc_server *server)
{
    return server->shards[0].shard.loop;
}

struct shard *server_shard_local(struct rpc_server *server)
{
    return &server->shards[0].shard;
}

static void on_pause_over(struct loop_timer *timer)
{
    struct listener *l = CONTAINER(timer, struct listener, pause);
    struct loop *loop = first_loop(l->server);
    struct status st;

    if (loop_watch_add(loop, &l->watch, EPOLLIN, &st))
        loop_timer_set(loop, &l->pause, loop_now_ns(loop) + PAUSE_NS);
}

static void on_connection(struct loop_watch *watch, uint32_t events)
{
    struct listener *l = CONTAINER(watch, struct listener, watch);
    struct loop *loop = first_loop(l->server);

    for (int i = 0; i < ACCEPT_ROUNDS; i++) {
        int fd = accept4(watch->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd >= 0) {
            deal_out(l->server, fd);
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
            errno == ENOMEM) {
            /* Asking again at once would not help; others may close some. */
            loop_watch_del(loop, watch);
            loop_timer_set(loop, &l->pause, loop_now_ns(loop) + PAUSE_NS);
        }
        break;
    }
}

static enum mst_code listen_fd(struct rpc_server *server, int fd,
                               struct status *st)
{
    struct listener *l = MEM_NEW(struct listener);
    enum mst_code code;

    l->watch = (struct loop_watch){ .fd = fd, .ready = on_connection };
    l->pause.fire = on_pause_over;
    l->server = server;
    pthread_mutex_lock(&server->lock);
    if (server->stopping)
        code = status_set(st, MST_FAILED_PRECONDITION, "the server stops");
    else if (server->held)
        code = MST_OK;
    else
        code = loop_watch_add(first_loop(server), &l->watch, EPOLLIN, st);
    if (!code) {
        l->next = server->listeners;
        server->listeners = l;
    }
    pthread_mutex_unlock(&server->lock);
    if (code) {
        close(fd);
        mem_free(l);
    }
    return code;
}

enum mst_code rpc_server_listen(struct rpc_server *server, const char *addr,
                                uint16_t *ret_port, struct status *st)
{
    int fds[SOCKET_LISTEN_MAX], count;
    struct addr_name name;
    enum mst_code code;
    uint16_t port;

    if (addr_parse(addr, &name, st) ||
        socket_listen(&name, fds, &count, &port, st))
        return st->code;
    code = MST_OK;
    for (int i = 0; i < count; i++) {
        if (code)
            close(fds[i]);
        else
            code = listen_fd(server, fds[i], st);
    }
    if (!code)
        *ret_port = port;
    return code;
}

enum mst_code rpc_server_serve(struct rpc_server *server, struct status *st)
{
    enum mst_code code = MST_OK;

    pthread_mutex_lock(&server->lock);
    CHECK(server->held);
    server->held = false;
    for (struct listener *l = server->listeners; l && !code; l = l->next)
        code = loop_watch_add(first_loop(server), &l->watch, EPOLLIN, st);
    pthread_mutex_unlock(&server->lock);
    return code;
}

static void close_listeners(struct rpc_server *server)
{
    struct loop *loop = first_loop(server);

    pthread_mutex_lock(&server->lock);
    while (server->listeners) {
        struct listener *l = server->listeners;

        server->listeners = l->next;
        loop_timer_del(loop, &l->pause);
        loop_watch_del(loop, &l->watch);
        close(l->watch.fd);
        mem_free(l);
    }
    pthread_mutex_unlock(&server->lock);
}

static void run_stop_shard(struct loop_task *task)
{
    struct delivery *d = CONTAINER(task, struct delivery, task);

    shard_stop(&d->to->shard, d->grace_ms);
    unbusy(d->server);
    mem_free(d);
}

static void run_stop(struct loop_task *task)
{
    struct delivery *d = CONTAINER(task, struct delivery, task);
    struct rpc_server *server = d->server;

    close_listeners(server);
    for (int i = 0; i < server->shard_count; i++) {
        struct delivery *one = MEM_NEW(struct delivery);

        one->task.run = run_stop_shard;
        one->server = server;
        one->to = &server->shards[i];
        one->grace_ms = d->grace_ms;
        pthread_mutex_lock(&server->lock);
        server->busy++;
        pthread_mutex_unlock(&server->lock);
        loop_post(one->to->shard.loop, &one->task);
    }
    unbusy(server);
    mem_free(d);
}

void rpc_server_stop(struct rpc_server *server, uint64_t grace_ms,
                     void (*stopped)(void *arg), void *arg)
{
    struct delivery *d;
    bool over;

    pthread_mutex_lock(&server->lock);
    CHECK(!server->stopping || !stopped);
    if (!server->stopping) {
        server->stopped = stopped;
        server->stopped_arg = arg;
    }
    server->stopping = true;
    over = !server->busy;
    server->busy += !over;
    pthread_mutex_unlock(&server->lock);
    if (over)
        return;
    d = MEM_NEW(struct delivery);
    d->task.run = run_stop;
    d->server = server;
    d->grace_ms = grace_ms;
    loop_post(first_loop(server), &d->task);
}

void rpc_server_stats(struct rpc_server *server, struct rpc_server_stats *ret)
{
    *ret = (struct rpc_server_stats){ 0 };
    for (int i = 0; i < server->shard_count; i++) {
        struct shard *sh = &server->shards[i].shard;

        ret->conns += atomic_load(&sh->conn_count);
        ret->conns_total += atomic_load(&sh->conn_total);
        ret->calls += atomic_load(&sh->call_count);
        ret->calls_total += atomic_load(&sh->call_total);
        ret->bytes_in += atomic_load(&sh->io.bytes_in);
        ret->bytes_out += atomic_load(&sh->io.bytes_out);
    }
}
