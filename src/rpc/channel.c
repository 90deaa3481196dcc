/*
 * The connection of a channel.
 *
 *            a call                            SETTINGS
 *   IDLE --> RESOLVING --> CONNECTING --> GREETING --> READY
 *    ^           |          |  ^  next      |            | lost, GOAWAY
 *    |           |          v  | address    |            v
 *    |           +-------> PAUSED <---------+           IDLE
 *    +---- nobody asks ------+---- timer: again
 *
 * `failing` is set by a failed attempt and cleared by READY, or when nobody has
 * asked for so long that the channel falls idle; while it is set, calls that do
 * not wait fail at once.
 *
 * A connection that got a GOAWAY, or ran out of stream numbers, is retired: it
 * stays in `conns` until its calls are done, and is not `conn` any more.
 */
#include "rpc/channel.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/rng.h"
#include "io/socket.h"
#include "rpc/client.h"

#define MS             ((uint64_t)1000000)
#define CONNECT_NS     (5000 * MS)
#define GREETING_NS    (20000 * MS)
#define BACKOFF_MIN_NS (20 * MS)
#define BACKOFF_MAX_NS (1000 * MS)
#define FORGET_NS      (60000 * MS)
#define PING_NS        (20000 * MS)
#define STREAM_ID_MAX  (INT32_MAX - 1024)

static void next_address(struct rpc_channel *ch);
static void check_gone(struct rpc_channel *ch);

static uint64_t now_ns(const struct rpc_channel *ch)
{
    return loop_now_ns(ch->loop);
}

struct client_conn *channel_ready(struct rpc_channel *ch)
{
    return ch->state == CHANNEL_READY && !ch->conn->h2.doomed ? ch->conn : NULL;
}

/* Doubles with every failure, and differs by up to a fifth from what others
 * would wait. */
static uint64_t pause_ns(const struct rpc_channel *ch)
{
    uint64_t ns = BACKOFF_MIN_NS;

    for (unsigned i = 1; i < ch->failures && ns < BACKOFF_MAX_NS; i++)
        ns *= 2;
    ns = MIN(ns, BACKOFF_MAX_NS);
    return ns - ns / 5 + rng_u64() % (ns / 5 + 1);
}

static void attempt_failed(struct rpc_channel *ch)
{
    ch->state = CHANNEL_PAUSED;
    ch->failing = true;
    ch->failures++;
    loop_timer_set(ch->loop, &ch->timer, now_ns(ch) + pause_ns(ch));
    client_call_end_waiting(ch, false, &ch->error);
}

static void address_failed(struct rpc_channel *ch, const char *name,
                           const char *what, const char *why)
{
    char text[ADDR_TEXT_MAX];

    addr_print(&ch->addrs[ch->addr_at], text);
    status_set(&ch->error, MST_UNAVAILABLE,
               "failed to connect to all addresses; last error: %s: %s: %s%s",
               name, text, what, why);
    ch->addr_at++;
    next_address(ch);
}

static void refused(struct rpc_channel *ch, int error)
{
    address_failed(ch, "UNKNOWN", "Failed to connect to remote host: ",
                   strerrordesc_np(error));
}

static void add_keepalive(struct client_conn *conn)
{
    struct rpc_channel *ch = conn->channel;

    if (ch->opts.keepalive_ms)
        loop_timer_set(ch->loop, &conn->alive,
                       now_ns(ch) + ch->opts.keepalive_ms * MS);
}

static void on_alive(struct loop_timer *timer)
{
    struct client_conn *conn = CONTAINER(timer, struct client_conn, alive);
    struct rpc_channel *ch = conn->channel;
    uint64_t silent_ns = now_ns(ch) - conn->h2.heard_ns;

    if (conn->pinged && silent_ns >= PING_NS) {
        h2_shut(&conn->h2, "keepalive watchdog timeout");
    } else if (conn->h2.stream_count &&
               silent_ns >= ch->opts.keepalive_ms * MS) {
        conn->pinged = true;
        nghttp2_submit_ping(conn->h2.session, NGHTTP2_FLAG_NONE, NULL);
        h2_flush_later(&conn->h2);
        loop_timer_set(ch->loop, timer, now_ns(ch) + PING_NS);
    } else {
        conn->pinged = false;
        add_keepalive(conn);
    }
}

static void on_pong(struct h2_conn *h2)
{
    struct client_conn *conn = CONTAINER(h2, struct client_conn, h2);

    conn->pinged = false;
    add_keepalive(conn);
}

static void on_ready(struct h2_conn *h2)
{
    struct client_conn *conn = CONTAINER(h2, struct client_conn, h2);
    struct rpc_channel *ch = conn->channel;

    if (ch->conn != conn)
        return;
    loop_timer_del(ch->loop, &ch->timer);
    ch->state = CHANNEL_READY;
    ch->failing = false;
    ch->failures = 0;
    add_keepalive(conn);
    client_call_send_waiting(ch);
}

void channel_retire(struct client_conn *conn)
{
    struct rpc_channel *ch = conn->channel;

    if (ch->conn != conn || ch->state != CHANNEL_READY)
        return;
    ch->conn = NULL;
    ch->state = CHANNEL_IDLE;
    nghttp2_submit_goaway(conn->h2.session, NGHTTP2_FLAG_NONE, 0,
                          NGHTTP2_NO_ERROR, NULL, 0);
    h2_flush_later(&conn->h2);
}

static void on_goaway(struct h2_conn *h2)
{
    channel_retire(CONTAINER(h2, struct client_conn, h2));
}

static void on_lost(struct h2_conn *h2, const char *why)
{
    struct client_conn *conn = CONTAINER(h2, struct client_conn, h2);
    struct rpc_channel *ch = conn->channel;
    struct client_conn **at = &ch->conns;
    bool current = ch->conn == conn;

    while (*at != conn)
        at = &(*at)->next;
    *at = conn->next;
    loop_timer_del(ch->loop, &conn->alive);
    mem_free(conn);
    if (current)
        ch->conn = NULL;
    if (current && ch->state == CHANNEL_GREETING) {
        loop_timer_del(ch->loop, &ch->timer);
        address_failed(ch, "UNAVAILABLE", "", why);
    } else if (current && ch->state == CHANNEL_READY) {
        ch->state = CHANNEL_IDLE;
        if (ch->waiting.first)
            channel_connect(ch);
    }
    check_gone(ch);
}

static const struct h2_ops client_ops = {
    .header = client_call_header,
    .headers = client_call_headers,
    .broken = client_call_broken,
    .ended = client_call_ended,
    .closed = client_call_closed,
    .ready = on_ready,
    .goaway = on_goaway,
    .pong = on_pong,
    .lost = on_lost,
};

/* The socket is connected; now the peer has to speak HTTP/2. */
static void greet(struct rpc_channel *ch, int fd)
{
    struct client_conn *conn = MEM_NEW(struct client_conn);
    struct h2_opts opts = {
        .ops = &client_ops,
        .loop = ch->loop,
        .count = &ch->io,
    };
    struct status st;

    if (h2_open(&conn->h2, &opts, fd, &st)) {
        mem_free(conn);
        address_failed(ch, status_name(st.code), "", st.msg);
        return;
    }
    conn->channel = ch;
    conn->alive.fire = on_alive;
    conn->next = ch->conns;
    ch->conns = conn;
    ch->conn = conn;
    ch->state = CHANNEL_GREETING;
    h2_count(&ch->conns_total, 1);
    loop_timer_set(ch->loop, &ch->timer, now_ns(ch) + GREETING_NS);
}

static void on_connected(struct loop_watch *watch, uint32_t events)
{
    struct rpc_channel *ch = CONTAINER(watch, struct rpc_channel, connecting);
    int fd = watch->fd, error = socket_error(fd);

    loop_timer_del(ch->loop, &ch->timer);
    loop_watch_del(ch->loop, watch);
    watch->fd = -1;
    if (!error) {
        greet(ch, fd);
        return;
    }
    close(fd);
    refused(ch, error);
}

static void stop_connecting(struct rpc_channel *ch)
{
    if (ch->connecting.fd < 0)
        return;
    loop_watch_del(ch->loop, &ch->connecting);
    close(ch->connecting.fd);
    ch->connecting.fd = -1;
}

static void next_address(struct rpc_channel *ch)
{
    struct status st;
    int fd;

    if (ch->addr_at >= ch->addr_count) {
        attempt_failed(ch);
        return;
    }
    ch->state = CHANNEL_CONNECTING;
    fd = socket_connect(&ch->addrs[ch->addr_at]);
    if (fd < 0) {
        refused(ch, errno);
        return;
    }
    ch->connecting.fd = fd;
    if (loop_watch_add(ch->loop, &ch->connecting, EPOLLOUT, &st)) {
        close(fd);
        ch->connecting.fd = -1;
        address_failed(ch, status_name(st.code), "", st.msg);
        return;
    }
    loop_timer_set(ch->loop, &ch->timer, now_ns(ch) + CONNECT_NS);
}

static void on_resolved(void *arg, const struct addr *addrs, int count,
                        const char *error)
{
    struct rpc_channel *ch = arg;

    ch->resolve = NULL;
    if (ch->bad_target.code) {
        status_copy(&ch->error, &ch->bad_target);
        client_call_end_waiting(ch, true, &ch->error);
        attempt_failed(ch);
        return;
    }
    if (error) {
        status_set(&ch->error, MST_UNAVAILABLE, "errors resolving %s: %s",
                   ch->target, error);
        attempt_failed(ch);
        return;
    }
    memcpy(ch->addrs, addrs, (size_t)count * sizeof(addrs[0]));
    ch->addr_count = count;
    ch->addr_at = 0;
    next_address(ch);
}

static void begin(struct rpc_channel *ch)
{
    ch->state = CHANNEL_RESOLVING;
    ch->resolve = resolve_start(ch->loop, &ch->name, on_resolved, ch);
}

void channel_connect(struct rpc_channel *ch)
{
    ch->wanted_ns = now_ns(ch);
    if (ch->state == CHANNEL_IDLE)
        begin(ch);
}

static void on_timer(struct loop_timer *timer)
{
    struct rpc_channel *ch = CONTAINER(timer, struct rpc_channel, timer);

    switch (ch->state) {
    case CHANNEL_CONNECTING:
        stop_connecting(ch);
        refused(ch, ETIMEDOUT);
        break;
    case CHANNEL_GREETING:
        h2_shut(&ch->conn->h2, "the peer did not speak HTTP/2 in time");
        break;
    case CHANNEL_PAUSED:
        if (ch->waiting.first || now_ns(ch) - ch->wanted_ns < FORGET_NS) {
            begin(ch);
        } else {
            ch->state = CHANNEL_IDLE;
            ch->failing = false;
            ch->failures = 0;
        }
        break;
    default:
        break;
    }
}

/* From here on there are no new connections and no new calls. */
static void shut(struct rpc_channel *ch)
{
    struct status st = STATUS_INIT;

    if (ch->state == CHANNEL_CLOSED)
        return;
    if (ch->state == CHANNEL_RESOLVING)
        resolve_cancel(ch->resolve);
    ch->state = CHANNEL_CLOSED;
    ch->conn = NULL;
    loop_timer_del(ch->loop, &ch->timer);
    stop_connecting(ch);
    status_set(&st, MST_CANCELLED, "Channel closed!");
    client_call_end_waiting(ch, true, &st);
    for (struct client_conn *c = ch->conns; c; c = c->next) {
        client_call_end_active(c, &st);
        h2_shut(&c->h2, "Channel closed!");
    }
}

/* Tells the one who closed, and frees, when all is over. */
static void check_gone(struct rpc_channel *ch)
{
    void (*closed)(void *);

    if (ch->state != CHANNEL_CLOSED || ch->conns || atomic_load(&ch->calls))
        return;
    closed = ch->closed;
    ch->closed = NULL;
    if (closed)
        closed(ch->closed_arg);
    if (!ch->gone)
        return;
    client_call_free_all(ch);
    pthread_mutex_destroy(&ch->lock);
    mem_free(ch->target);
    mem_free(ch);
}

void channel_call_done(struct rpc_channel *ch)
{
    if (atomic_fetch_sub(&ch->calls, 1) == 1)
        check_gone(ch);
}

static void run_close(struct loop_task *task)
{
    struct rpc_channel *ch = CONTAINER(task, struct rpc_channel, close);

    shut(ch);
    check_gone(ch);
}

static void run_destroy(struct loop_task *task)
{
    struct rpc_channel *ch = CONTAINER(task, struct rpc_channel, destroy);

    ch->gone = true;
    shut(ch);
    check_gone(ch);
}

struct rpc_channel *rpc_channel_new(struct loop_group *group,
                                    const char *target,
                                    const struct rpc_channel_opts *opts)
{
    struct rpc_channel *ch = MEM_NEW(struct rpc_channel);

    if (opts)
        ch->opts = *opts;
    if (!ch->opts.reply_max)
        ch->opts.reply_max = INT_MAX;
    ch->loop = loop_group_next(group);
    ch->target = mem_str(target);
    /* A bad target is looked up in vain, and then told to the calls. */
    (void)!addr_parse(target, &ch->name, &ch->bad_target);
    ch->stream_id_max = STREAM_ID_MAX;
    atomic_init(&ch->refs, 1);
    pthread_mutex_init(&ch->lock, NULL);
    ch->connecting = (struct loop_watch){ .fd = -1, .ready = on_connected };
    ch->timer.fire = on_timer;
    ch->close.run = run_close;
    ch->destroy.run = run_destroy;
    return ch;
}

struct rpc_channel *rpc_channel_ref(struct rpc_channel *channel)
{
    atomic_fetch_add(&channel->refs, 1);
    return channel;
}

void rpc_channel_unref(struct rpc_channel *channel)
{
    if (channel && atomic_fetch_sub(&channel->refs, 1) == 1)
        loop_post(channel->loop, &channel->destroy);
}

bool rpc_channel_is_shared(const struct rpc_channel *channel)
{
    return atomic_load(&channel->refs) > 1;
}

void rpc_channel_close(struct rpc_channel *channel, void (*closed)(void *arg),
                       void *arg)
{
    channel->closed = closed;
    channel->closed_arg = arg;
    loop_post(channel->loop, &channel->close);
}

const char *rpc_channel_target(const struct rpc_channel *channel)
{
    return channel->target;
}

void rpc_channel_bytes(struct rpc_channel *channel, uint64_t *in, uint64_t *out)
{
    *in += atomic_load_explicit(&channel->io.bytes_in, memory_order_relaxed);
    *out += atomic_load_explicit(&channel->io.bytes_out, memory_order_relaxed);
}

struct loop *rpc_channel_loop(const struct rpc_channel *channel)
{
    return channel->loop;
}

bool rpc_channel_addr(const struct rpc_channel *channel, struct addr *ret)
{
    if (channel->state != CHANNEL_READY)
        return false;
    *ret = channel->addrs[channel->addr_at];
    return true;
}
