/*
 * Connections of a server. A connection that is lost leaves its list at once;
 * its memory stays until the last call that points to it has been answered.
 *
 * Stopping a connection takes three steps, so that no request is lost on the
 * way: a notice that the end is near (GOAWAY without a last stream), a PING
 * that comes back when the peer has read the notice, and the GOAWAY that
 * counts.
 */
#include "rpc/shard.h"

#include "base/mem.h"
#include "io/socket.h"
#include "rpc/door.h"

static void check_empty(struct shard *sh)
{
    if (sh->stopping && !sh->emptied && !sh->conns &&
        !atomic_load(&sh->call_count)) {
        sh->emptied = true;
        loop_timer_del(sh->loop, &sh->grace);
        sh->empty(sh);
    }
}

static void conn_free(struct server_conn *c)
{
    if (c->dead && !c->calls)
        mem_free(c);
}

void shard_call_gone(struct shard *sh, struct server_conn *conn)
{
    h2_count(&sh->call_count, (uint64_t)-1);
    if (conn) {
        conn->calls--;
        conn_free(conn);
    }
    check_empty(sh);
}

static void on_hello_late(struct loop_timer *timer)
{
    h2_shut(&CONTAINER(timer, struct server_conn, hello)->h2,
            "the peer did not speak HTTP/2 in time");
}

static void on_ready(struct h2_conn *h2)
{
    struct server_conn *c = CONTAINER(h2, struct server_conn, h2);

    loop_timer_del(h2->loop, &c->hello);
}

static void on_pong(struct h2_conn *h2)
{
    struct server_conn *c = CONTAINER(h2, struct server_conn, h2);

    if (!c->shard->stopping || c->last_word)
        return;
    c->last_word = true;
    nghttp2_submit_goaway(h2->session, NGHTTP2_FLAG_NONE,
                          nghttp2_session_get_last_proc_stream_id(h2->session),
                          NGHTTP2_NO_ERROR, NULL, 0);
    h2_flush_later(h2);
}

static void on_lost(struct h2_conn *h2, const char *why)
{
    struct server_conn *c = CONTAINER(h2, struct server_conn, h2);
    struct shard *sh = c->shard;

    loop_timer_del(h2->loop, &c->hello);
    if (c->prev)
        c->prev->next = c->next;
    else
        sh->conns = c->next;
    if (c->next)
        c->next->prev = c->prev;
    h2_count(&sh->conn_count, (uint64_t)-1);
    c->dead = true;
    conn_free(c);
    check_empty(sh);
}

static const struct h2_ops server_ops = {
    .begin = call_begin,
    .header = call_header,
    .headers = call_headers,
    .broken = call_broken,
    .ended = call_ended,
    .sent = call_sent,
    .closed = call_closed,
    .ready = on_ready,
    .pong = on_pong,
    .lost = on_lost,
};

static void conn_drain(struct server_conn *c)
{
    nghttp2_session *session = c->h2.session;

    nghttp2_submit_shutdown_notice(session);
    nghttp2_submit_ping(session, NGHTTP2_FLAG_NONE, NULL);
    h2_flush_later(&c->h2);
}

static void name_peer(struct server_conn *c, int fd)
{
    struct addr a = { .len = sizeof(a.room) };

    if (!getpeername(fd, &a.sa, &a.len))
        addr_print(&a, c->peer);
}

void shard_accept_h2(struct shard *sh, int fd)
{
    struct server_conn *c = MEM_NEW(struct server_conn);
    struct h2_opts opts = {
        .ops = &server_ops,
        .loop = sh->loop,
        .count = &sh->io,
        .server = true,
    };
    struct status st;

    name_peer(c, fd);
    if (h2_open(&c->h2, &opts, fd, &st)) {
        mem_free(c);
        return;
    }
    c->shard = sh;
    c->next = sh->conns;
    if (c->next)
        c->next->prev = c;
    sh->conns = c;
    h2_count(&sh->conn_count, 1);
    h2_count(&sh->conn_total, 1);
    c->hello.fire = on_hello_late;
    loop_timer_set(sh->loop, &c->hello, loop_now_ns(sh->loop) + SHARD_HELLO_NS);
    if (sh->stopping)
        conn_drain(c);
}

void shard_accept(struct shard *sh, int fd)
{
    if (sh->config->lane && !sh->stopping)
        door_accept(sh, fd);
    else
        shard_accept_h2(sh, fd);
}

static void on_grace_over(struct loop_timer *timer)
{
    struct shard *sh = CONTAINER(timer, struct shard, grace);

    for (struct server_conn *c = sh->conns; c; c = c->next)
        h2_shut(&c->h2, "the server stops");
    call_cancel_locals(sh);
}

void shard_stop(struct shard *sh, uint64_t grace_ms)
{
    bool again = sh->stopping;

    if (sh->emptied)
        return;
    sh->stopping = true;
    door_close(sh);
    for (struct server_conn *c = sh->conns; c && !again; c = c->next)
        conn_drain(c);
    loop_timer_set(sh->loop, &sh->grace,
                   loop_now_ns(sh->loop) + grace_ms * 1000000);
    check_empty(sh);
}

void shard_init(struct shard *sh, struct loop *loop,
                const struct server_config *config)
{
    sh->loop = loop;
    sh->config = config;
    sh->grace.fire = on_grace_over;
}

void shard_done(struct shard *sh)
{
    call_free_all(sh);
}
