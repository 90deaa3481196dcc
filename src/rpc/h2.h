/*
 * One HTTP/2 connection, either side: an nghttp2 session between a stream of
 * bytes and the calls. nghttp2 is a passive state machine; this file feeds it
 * from the socket, gathers what it has to say in an output queue, and tells the
 * owner (server.c or channel.c) about streams.
 *
 * Receiving: the header of a DATA frame goes through nghttp2 as all bytes do.
 * If it says that bytes of a message follow, these are read from the socket to
 * where they belong (see inbox.h) and only then shown to nghttp2.
 *
 * Sending: nghttp2 is asked for DATA frames without a copy; their payload is
 * put in the output queue by reference. A connection writes at most H2_BUDGET
 * bytes in a turn of the loop, and nghttp2 takes streams in turn, so neither
 * other connections nor small calls wait for a large message.
 *
 * Life: h2_open() -> ... -> ops->lost(), after which the connection is the
 * owner's to free. It is lost by an error, by the peer, or by h2_shut(); always
 * at the end of a turn of the loop, when no callback is under way. Before
 * that, every stream that is left gets ops->closed().
 *
 * Threads: the loop's.
 */
#ifndef RPC_H2_H
#define RPC_H2_H

#include <nghttp2/nghttp2.h>
#include <stdatomic.h>

#include "base/status.h"
#include "io/loop.h"
#include "io/stream.h"
#include "rpc/inbox.h"
#include "rpc/msg.h"
#include "rpc/outq.h"

#define H2_FRAME_OUT   ((size_t)256 << 10)
#define H2_FRAME_IN    (((size_t)1 << 24) - 1)
#define H2_QUEUE       ((size_t)512 << 10)
#define H2_BUDGET      ((size_t)1 << 20)
#define H2_HEADERS_MAX ((size_t)64 << 10)
/* In place of an HTTP/2 error code: the connection was lost. */
#define H2_LOST UINT32_MAX

struct h2_conn;
struct h2_stream;

/* Bytes of a header; valid during the callback. */
struct h2_text {
    const char *at;
    size_t len;
};

struct h2_ops {
    /* Server: a request begins. The stream is h2_attach()ed, or refused by
     * returning false. */
    bool (*begin)(struct h2_conn *, int32_t id);
    void (*header)(struct h2_stream *, struct h2_text name,
                   struct h2_text value);
    /* A block of headers is complete. */
    void (*headers)(struct h2_stream *);
    /* The message or the headers are not acceptable. The owner detaches the
     * stream. */
    void (*broken)(struct h2_stream *, const struct status *why);
    /* The peer has said all that it has to say on this stream. */
    void (*ended)(struct h2_stream *);
    /* Server: a message of a stream of them has been queued for the socket,
     * and s->out is no longer needed. The next may be submitted. */
    void (*sent)(struct h2_stream *);
    /* The stream is over, and detached already. */
    void (*closed)(struct h2_stream *, uint32_t h2_error);
    /* The peer's first SETTINGS are there. */
    void (*ready)(struct h2_conn *);
    /* The peer will take no new streams. May be NULL, as may be pong. */
    void (*goaway)(struct h2_conn *);
    void (*pong)(struct h2_conn *);
    void (*lost)(struct h2_conn *, const char *why);
};

/* The part of a call that the connection knows. */
struct h2_stream {
    struct h2_conn *conn; /* NULL when it is not attached */
    int32_t id;
    const char *lost; /* why, when closed with H2_LOST */
    bool unsent;      /* the request never left, so it may be sent again */
    bool keep_out;    /* the outgoing message may be needed again */
    bool trailers;    /* the outgoing message is followed by grpc-status 0 */
    bool more;        /* others follow it, or trailers that say how it ended */
    uint8_t prefix_sent;
    size_t headers_len;
    struct h2_stream *prev, *next;
    struct inbox in;
    struct rpc_msg out;
    size_t out_left;    /* of prefix and message, for nghttp2 to ask for */
    uint32_t out_piece; /* the next byte to be queued: its piece, */
    size_t out_at;      /* and its place in there */
};

/* Written by the loop, read by anyone. Several connections may share one. */
struct h2_counters {
    atomic_uint_fast64_t bytes_in, bytes_out, reads, writes;
    atomic_uint_fast64_t bytes_copied; /* of messages: read, then moved */
};

/* Adds to a counter that only this thread writes. */
static inline void h2_count(atomic_uint_fast64_t *counter, uint64_t delta)
{
    uint64_t now = atomic_load_explicit(counter, memory_order_relaxed);

    atomic_store_explicit(counter, now + delta, memory_order_relaxed);
}

struct h2_conn {
    const struct h2_ops *ops;
    struct loop *loop;
    struct stream io;
    struct loop_watch watch;
    struct loop_hook flush;
    nghttp2_session *session;
    bool server, seen_settings, blocked, more_in, hung_up, doomed;
    const char *why; /* doomed */
    struct h2_stream *streams;
    size_t stream_count;
    unsigned abandoned;            /* streams whose answer has not left yet */
    struct h2_stream *data_stream; /* whose DATA frame is being read */
    size_t data_left;              /* of it */
    uint64_t heard_ns;
    struct h2_counters *count;
    struct outq out;
};

struct h2_opts {
    const struct h2_ops *ops;
    struct loop *loop;
    struct h2_counters *count;
    bool server;
};
/* Takes the socket, also on failure. */
enum mst_code h2_open(struct h2_conn *c, const struct h2_opts *opts, int fd,
                      struct status *st) MUST_USE;
/* Ends the connection, at the end of this turn. `why` is a constant. */
void h2_shut(struct h2_conn *c, const char *why);
/* Something was submitted: it leaves at the end of this turn. */
void h2_flush_later(struct h2_conn *c);

/* Streams. A detached one gets no more callbacks. If a server has answered it
 * before the request was all there, the peer is told to stop sending as soon as
 * the answer has left. */
void h2_attach(struct h2_conn *c, struct h2_stream *s, int32_t id);
void h2_detach(struct h2_stream *s);
/* Detaches, and tells the peer that it is over. */
void h2_reset(struct h2_stream *s, uint32_t h2_error);
/* Rewinds s->out, with its prefix, as the body to come; and what reads it. */
void h2_body_begin(struct h2_stream *s);
nghttp2_data_provider h2_body(struct h2_stream *s);

#define H2_NV(n, v)                                                            \
    (nghttp2_nv)                                                               \
    {                                                                          \
        .name = (uint8_t *)(n), .namelen = sizeof(n) - 1,                      \
        .value = (uint8_t *)(v), .valuelen = sizeof(v) - 1,                    \
        .flags = NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE  \
    }
/* A value that is copied. */
nghttp2_nv h2_nv(const char *name, const char *value, size_t len);

/* h2_session.c: the nghttp2 side. NULL when there is no memory. */
nghttp2_session *h2_session_new(struct h2_conn *c);

static inline bool h2_text_is(struct h2_text t, const char *s, size_t len)
{
    return t.len == len && !__builtin_memcmp(t.at, s, len);
}
#define H2_IS(t, literal) h2_text_is((t), (literal), sizeof(literal) - 1)

#endif
