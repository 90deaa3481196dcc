/*
 * The I/O of a connection, and its streams. What it is stands in h2.h.
 *
 * The socket is watched edge-triggered, for reading and writing, once and for
 * all. So `blocked` remembers that a write was refused until the edge comes,
 * and `more_in` that reading stopped for fairness before the socket was empty;
 * in the second case the flush hook, which has to run anyway, goes on reading
 * in the next turn. A short read means that the socket is empty, unless the
 * peer has hung up: no further edge comes then, so the end is read at once.
 */
#include "rpc/h2.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "io/socket.h"

#define READ_ROUNDS 8
#define READ_BUDGET ((size_t)1 << 20)
/* Fewer bytes than this are not worth an iovec of their own. */
#define DIRECT_MIN ((size_t)4096)
#define SCRATCH    ((size_t)16 << 10)
#define FRAME_HEAD 9

_Static_assert(SCRATCH <= LOOP_SCRATCH, "the loop's scratch is too small");

nghttp2_nv h2_nv(const char *name, const char *value, size_t len)
{
    return (nghttp2_nv){
        .name = (uint8_t *)name,
        .namelen = strlen(name),
        .value = (uint8_t *)value,
        .valuelen = len,
        .flags = NGHTTP2_NV_FLAG_NO_COPY_NAME,
    };
}

void h2_flush_later(struct h2_conn *c)
{
    loop_hook_add(c->loop, &c->flush);
}

void h2_shut(struct h2_conn *c, const char *why)
{
    if (c->doomed)
        return;
    c->doomed = true;
    c->why = why;
    h2_flush_later(c);
}

void h2_attach(struct h2_conn *c, struct h2_stream *s, int32_t id)
{
    s->conn = c;
    s->id = id;
    s->prev = NULL;
    s->next = c->streams;
    if (s->next)
        s->next->prev = s;
    c->streams = s;
    c->stream_count++;
    /* A request that is being sent has it already, and would be searched. */
    if (c->server)
        nghttp2_session_set_stream_user_data(c->session, id, s);
}

void h2_detach(struct h2_stream *s)
{
    struct h2_conn *c = s->conn;

    if (s->prev)
        s->prev->next = s->next;
    else
        c->streams = s->next;
    if (s->next)
        s->next->prev = s->prev;
    c->stream_count--;
    if (c->data_stream == s)
        c->data_stream = NULL;
    nghttp2_session_set_stream_user_data(c->session, s->id, NULL);
    s->conn = NULL;
}

void h2_reset(struct h2_stream *s, uint32_t h2_error)
{
    struct h2_conn *c = s->conn;

    nghttp2_submit_rst_stream(c->session, NGHTTP2_FLAG_NONE, s->id, h2_error);
    h2_detach(s);
    h2_flush_later(c);
}

/* Where to read next: bytes of a message to their place, all else to scratch.
 */
struct target {
    struct iovec iov[2];
    int count;
    size_t direct, len;
};

static struct target read_target(struct h2_conn *c)
{
    struct target t = { 0 };
    struct h2_stream *s = c->data_stream;
    size_t scratch = SCRATCH, room;
    uint8_t *at = s && c->data_left ? inbox_room(&s->in, &room) : NULL;

    if (at && MIN(room, c->data_left) >= DIRECT_MIN) {
        t.direct = MIN(room, c->data_left);
        t.iov[t.count++] = (struct iovec){ at, t.direct };
        /* If the message goes on in the next frame, read no more than the head
         * of that, so that its payload can go to its place as well. */
        if (inbox_left(&s->in) > t.direct)
            scratch = t.direct == c->data_left ? FRAME_HEAD : 0;
    }
    if (scratch)
        t.iov[t.count++] = (struct iovec){ loop_scratch(c->loop), scratch };
    t.len = t.direct + scratch;
    return t;
}

static bool session_takes(struct h2_conn *c, const uint8_t *data, size_t len)
{
    ssize_t n = len ? nghttp2_session_mem_recv(c->session, data, len) : 0;

    if (n == (ssize_t)len)
        return true;
    h2_shut(c, n < 0 ? nghttp2_strerror((int)n) : "the session is over");
    return false;
}

/* One read. False when there is nothing more to read now, or ever. */
static bool read_once(struct h2_conn *c, size_t *ret_len)
{
    struct target t = read_target(c);
    ssize_t n = stream_read(&c->io, t.iov, t.count);
    size_t direct;

    h2_count(&c->count->reads, 1);
    if (n <= 0) {
        if (n == 0)
            h2_shut(c, "Socket closed");
        else if (errno != EAGAIN)
            h2_shut(c, strerrordesc_np(errno));
        return false;
    }
    h2_count(&c->count->bytes_in, (size_t)n);
    *ret_len += (size_t)n;
    direct = MIN((size_t)n, t.direct);
    if (!session_takes(c, t.iov[0].iov_base, direct) ||
        !session_takes(c, loop_scratch(c->loop), (size_t)n - direct))
        return false;
    return ((size_t)n == t.len || c->hung_up) && !c->doomed;
}

static void read_some(struct h2_conn *c)
{
    size_t len = 0;

    c->heard_ns = loop_now_ns(c->loop);
    c->more_in = false;
    for (int i = 0; i < READ_ROUNDS && len < READ_BUDGET; i++)
        if (!read_once(c, &len))
            return;
    c->more_in = true;
}

static void on_ready(struct loop_watch *watch, uint32_t events)
{
    struct h2_conn *c = CONTAINER(watch, struct h2_conn, watch);

    if (c->doomed)
        return;
    if (events & EPOLLOUT)
        c->blocked = false;
    if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        c->hung_up = true;
    if (events & ~(uint32_t)EPOLLOUT)
        read_some(c);
    h2_flush_later(c);
}

/* One write of what waits. False when the socket takes no more. */
static bool write_once(struct h2_conn *c, size_t *ret_len)
{
    int count;
    const struct iovec *iov = outq_iov(&c->out, &count);
    size_t waiting = c->out.bytes;
    ssize_t n = stream_write(&c->io, iov, count);

    h2_count(&c->count->writes, 1);
    if (n < 0) {
        if (errno == EAGAIN)
            c->blocked = true;
        else
            h2_shut(c, strerrordesc_np(errno));
        return false;
    }
    h2_count(&c->count->bytes_out, (size_t)n);
    *ret_len += (size_t)n;
    outq_sent(&c->out, (size_t)n);
    c->blocked = (size_t)n < waiting;
    return !c->blocked;
}

static void write_some(struct h2_conn *c)
{
    size_t len = 0;

    do {
        int error = nghttp2_session_send(c->session);

        if (error) {
            h2_shut(c, nghttp2_strerror(error));
            return;
        }
        if (!c->out.bytes) {
            if (!nghttp2_session_want_read(c->session) &&
                !nghttp2_session_want_write(c->session))
                h2_shut(c, "the session is over");
            return;
        }
        if (c->blocked || !write_once(c, &len))
            return;
    } while (len < H2_BUDGET);
    h2_flush_later(c);
}

/* The one place where a connection ends. */
static void tear_down(struct h2_conn *c)
{
    loop_hook_del(&c->flush);
    loop_watch_del(c->loop, &c->watch);
    while (c->streams) {
        struct h2_stream *s = c->streams;

        h2_detach(s);
        s->lost = c->why;
        c->ops->closed(s, H2_LOST);
    }
    loop_hook_del(&c->flush);
    nghttp2_session_del(c->session);
    c->session = NULL;
    outq_done(&c->out);
    stream_close(&c->io);
    c->ops->lost(c, c->why);
}

static void on_turn_end(struct loop_hook *hook)
{
    struct h2_conn *c = CONTAINER(hook, struct h2_conn, flush);

    if (c->more_in && !c->doomed)
        read_some(c);
    if (!c->doomed)
        write_some(c);
    if (c->doomed)
        tear_down(c);
    else if (c->more_in)
        h2_flush_later(c);
}

enum mst_code h2_open(struct h2_conn *c, const struct h2_opts *opts, int fd,
                      struct status *st)
{
    memset(c, 0, offsetof(struct h2_conn, out));
    c->ops = opts->ops;
    c->loop = opts->loop;
    c->count = opts->count;
    c->server = opts->server;
    c->watch = (struct loop_watch){ .fd = fd, .ready = on_ready };
    c->flush.run = on_turn_end;
    c->heard_ns = loop_now_ns(c->loop);
    stream_init_plain(&c->io, fd);
    socket_tune(fd);
    if (!h2_session_new(c)) {
        stream_close(&c->io);
        return status_set(st, MST_RESOURCE_EXHAUSTED,
                          "no memory for a connection");
    }
    if (loop_watch_add(c->loop, &c->watch,
                       EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, st)) {
        nghttp2_session_del(c->session);
        stream_close(&c->io);
        return st->code;
    }
    outq_init(&c->out);
    h2_flush_later(c);
    return MST_OK;
}
