/*
 * The nghttp2 side of a connection: its settings, and the callbacks by which
 * it takes bytes of messages and gives frames. None of them may call
 * nghttp2_session_send() or _mem_recv(); submitting is fine. A stream's user
 * data is its struct h2_stream, or NULL once that has been detached, which is
 * why the callbacks look it up each time.
 */
#include <pthread.h>
#include <string.h>

#include "rpc/h2.h"

/* A stream window for requests from others; for replies, whose place is ours,
 * the largest there is. */
#define WINDOW_REQUEST (16 << 20)
#define WINDOW_MAX     0x7fffffff
#define STREAMS_MAX    (1u << 20)
/* A step that fails cancels all of its parked receives at once. */
#define RESET_BURST 100000
#define RESET_RATE  1000
/* A DATA frame has at most so many pieces; up to COPY_MAX they are copied. */
#define FRAME_PIECES   24
#define COPY_MAX       ((size_t)1024)
#define FRAME_COPY_MAX (9 + INBOX_PREFIX + FRAME_PIECES * COPY_MAX)

static struct h2_stream *stream_of(nghttp2_session *session, int32_t id)
{
    return nghttp2_session_get_stream_user_data(session, id);
}

static ssize_t on_send(nghttp2_session *session, const uint8_t *data,
                       size_t len, int flags, void *arg)
{
    struct h2_conn *c = arg;
    size_t n = outq_copy(&c->out, data, len);

    return n ? (ssize_t)n : NGHTTP2_ERR_WOULDBLOCK;
}

void h2_body_begin(struct h2_stream *s)
{
    s->out_left = INBOX_PREFIX + s->out.len;
    s->prefix_sent = 0;
    s->out_piece = 0;
    s->out_at = 0;
}

/* The length of the next frame when the message has very many pieces. */
static size_t pieces_len(struct h2_stream *s, size_t room)
{
    const struct rpc_piece *p = rpc_msg_pieces(&s->out) + s->out_piece;
    size_t len = INBOX_PREFIX - s->prefix_sent + p->len - s->out_at;

    for (int i = 1; i < FRAME_PIECES && len < room; i++)
        len += p[i].len;
    return MIN(len, room);
}

static ssize_t on_body(nghttp2_session *session, int32_t id, uint8_t *buf,
                       size_t room, uint32_t *flags,
                       nghttp2_data_source *source, void *arg)
{
    static const nghttp2_nv trailers[] = { H2_NV("grpc-status", "0") };
    struct h2_stream *s = stream_of(session, id);
    size_t n;

    if (!s)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    n = MIN(room, s->out_left);
    if (s->out.count - s->out_piece > FRAME_PIECES)
        n = pieces_len(s, n);
    s->out_left -= n;
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    if (!s->out_left) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        if (s->trailers || s->more)
            *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        if (s->trailers && nghttp2_submit_trailer(session, id, trailers, 1))
            return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }
    return (ssize_t)n;
}

nghttp2_data_provider h2_body(struct h2_stream *s)
{
    return (nghttp2_data_provider){ .read_callback = on_body };
}

static size_t queue_prefix(struct h2_conn *c, struct h2_stream *s, size_t len)
{
    uint32_t total = (uint32_t)s->out.len;
    uint8_t prefix[INBOX_PREFIX] = { 0, (uint8_t)(total >> 24),
                                     (uint8_t)(total >> 16),
                                     (uint8_t)(total >> 8), (uint8_t)total };
    size_t n = MIN(len, (size_t)(INBOX_PREFIX - s->prefix_sent));

    outq_copy(&c->out, prefix + s->prefix_sent, n);
    s->prefix_sent += (uint8_t)n;
    return n;
}

/* Queues the next bytes of the message, up to the end of a piece. */
static size_t queue_piece(struct h2_conn *c, struct h2_stream *s, size_t len)
{
    struct rpc_piece *p = rpc_msg_pieces(&s->out) + s->out_piece;
    const uint8_t *data = rpc_piece_data(&s->out, p) + s->out_at;
    size_t n = MIN(len, p->len - s->out_at);
    bool last = n == p->len - s->out_at;

    if (n <= COPY_MAX || !p->data) {
        outq_copy(&c->out, data, n);
    } else if (last && !s->keep_out) {
        outq_ref(&c->out, data, n, p->owner);
        p->owner = NULL;
    } else {
        outq_ref(&c->out, data, n, buffer_ref(p->owner));
    }
    s->out_at = last ? 0 : s->out_at + n;
    s->out_piece += last;
    return n;
}

static int on_send_data(nghttp2_session *session, nghttp2_frame *frame,
                        const uint8_t *head, size_t len,
                        nghttp2_data_source *source, void *arg)
{
    struct h2_conn *c = arg;
    struct h2_stream *s = stream_of(session, frame->hd.stream_id);

    if (!s)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    if (c->out.bytes >= H2_QUEUE ||
        !outq_fits(&c->out, FRAME_PIECES + 1, FRAME_COPY_MAX))
        return NGHTTP2_ERR_WOULDBLOCK;
    outq_copy(&c->out, head, 9);
    if (s->prefix_sent < INBOX_PREFIX)
        len -= queue_prefix(c, s, len);
    while (len)
        len -= queue_piece(c, s, len);
    return 0;
}

static ssize_t on_frame_room(nghttp2_session *session, uint8_t type, int32_t id,
                             int32_t conn_window, int32_t stream_window,
                             uint32_t frame_max, void *arg)
{
    size_t n = MIN(H2_FRAME_OUT, (size_t)frame_max);

    n = MIN(n, (size_t)conn_window);
    return (ssize_t)MIN(n, (size_t)stream_window);
}

static int on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *hd,
                          void *arg)
{
    struct h2_conn *c = arg;

    c->data_stream = NULL;
    c->data_left = 0;
    if (hd->type == NGHTTP2_DATA && !(hd->flags & NGHTTP2_FLAG_PADDED)) {
        c->data_stream = stream_of(session, hd->stream_id);
        c->data_left = hd->length;
    }
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id,
                   const uint8_t *data, size_t len, void *arg)
{
    struct h2_conn *c = arg;
    struct h2_stream *s = stream_of(session, id);
    struct status st;
    uint64_t copied;

    c->data_left -= MIN(c->data_left, len);
    if (!s)
        return 0;
    copied = s->in.copied;
    if (inbox_feed(&s->in, data, len, &st))
        c->ops->broken(s, &st);
    else
        h2_count(&c->count->bytes_copied, s->in.copied - copied);
    return 0;
}

static int on_begin_headers(nghttp2_session *session,
                            const nghttp2_frame *frame, void *arg)
{
    struct h2_conn *c = arg;

    if (frame->hd.type != NGHTTP2_HEADERS ||
        frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    if (c->ops->begin(c, frame->hd.stream_id))
        return 0;
    nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id,
                              NGHTTP2_REFUSED_STREAM);
    return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame,
                     const uint8_t *name, size_t name_len, const uint8_t *value,
                     size_t value_len, uint8_t flags, void *arg)
{
    struct h2_conn *c = arg;
    struct h2_stream *s = stream_of(session, frame->hd.stream_id);
    struct status st;

    if (!s)
        return 0;
    s->headers_len += name_len + value_len + 32;
    if (s->headers_len > H2_HEADERS_MAX) {
        status_set(&st, MST_RESOURCE_EXHAUSTED,
                   "received metadata size exceeds hard limit (%zu)",
                   H2_HEADERS_MAX);
        c->ops->broken(s, &st);
        return 0;
    }
    c->ops->header(s, (struct h2_text){ (const char *)name, name_len },
                   (struct h2_text){ (const char *)value, value_len });
    return 0;
}

static void on_stream_frame(struct h2_conn *c, const nghttp2_frame *frame)
{
    struct h2_stream *s = stream_of(c->session, frame->hd.stream_id);

    if (s && frame->hd.type == NGHTTP2_HEADERS)
        c->ops->headers(s);
    if (!(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
        return;
    /* The owner may have detached it meanwhile. */
    s = stream_of(c->session, frame->hd.stream_id);
    if (s)
        c->ops->ended(s);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame,
                    void *arg)
{
    struct h2_conn *c = arg;

    switch (frame->hd.type) {
    case NGHTTP2_DATA:
    case NGHTTP2_HEADERS:
        on_stream_frame(c, frame);
        break;
    case NGHTTP2_SETTINGS:
        if (frame->hd.flags & NGHTTP2_FLAG_ACK || c->seen_settings)
            break;
        c->seen_settings = true;
        c->ops->ready(c);
        break;
    case NGHTTP2_GOAWAY:
        if (c->ops->goaway)
            c->ops->goaway(c);
        break;
    case NGHTTP2_PING:
        if (c->ops->pong && frame->hd.flags & NGHTTP2_FLAG_ACK)
            c->ops->pong(c);
        break;
    }
    return 0;
}

/* nghttp2 drops an answer behind which a reset waits; so the reset of a stream
 * that was answered early is only submitted when the answer is out. */
static int on_sent(nghttp2_session *session, const nghttp2_frame *frame,
                   void *arg)
{
    struct h2_conn *c = arg;
    int32_t id = frame->hd.stream_id;

    if (c->server && frame->hd.type == NGHTTP2_DATA) {
        struct h2_stream *s = stream_of(session, id);

        if (s && s->more && !s->out_left)
            c->ops->sent(s);
        return 0;
    }
    if (c->server && frame->hd.type == NGHTTP2_HEADERS &&
        frame->hd.flags & NGHTTP2_FLAG_END_STREAM &&
        nghttp2_session_get_stream_remote_close(session, id) == 0)
        nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, id,
                                  NGHTTP2_NO_ERROR);
    return 0;
}

/* A request that cannot leave any more: its stream is closed after this. */
static int on_not_sent(nghttp2_session *session, const nghttp2_frame *frame,
                       int error, void *arg)
{
    struct h2_conn *c = arg;
    struct h2_stream *s = stream_of(session, frame->hd.stream_id);

    if (s && !c->server && frame->hd.type == NGHTTP2_HEADERS)
        s->unsent = true;
    return 0;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t error,
                    void *arg)
{
    struct h2_conn *c = arg;
    struct h2_stream *s = stream_of(session, id);

    if (s) {
        h2_detach(s);
        c->ops->closed(s, error);
    }
    return 0;
}

static nghttp2_session_callbacks *callbacks;
static nghttp2_option *options;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_callbacks(void)
{
    nghttp2_session_callbacks *cb;

    CHECK(!nghttp2_session_callbacks_new(&cb));
    nghttp2_session_callbacks_set_send_callback(cb, on_send);
    nghttp2_session_callbacks_set_send_data_callback(cb, on_send_data);
    nghttp2_session_callbacks_set_data_source_read_length_callback(
        cb, on_frame_room);
    nghttp2_session_callbacks_set_on_begin_frame_callback(cb, on_begin_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data);
    nghttp2_session_callbacks_set_on_begin_headers_callback(cb,
                                                            on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame);
    nghttp2_session_callbacks_set_on_frame_send_callback(cb, on_sent);
    nghttp2_session_callbacks_set_on_frame_not_send_callback(cb, on_not_sent);
    nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_close);
    callbacks = cb;
    CHECK(!nghttp2_option_new(&options));
    nghttp2_option_set_no_closed_streams(options, 1);
    nghttp2_option_set_stream_reset_rate_limit(options, RESET_BURST,
                                               RESET_RATE);
}

static int submit_settings(struct h2_conn *c)
{
    const nghttp2_settings_entry settings[] = {
        { NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE,
          c->server ? WINDOW_REQUEST : WINDOW_MAX },
        { NGHTTP2_SETTINGS_MAX_FRAME_SIZE, H2_FRAME_IN },
        { NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, H2_HEADERS_MAX },
        { NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS,
          c->server ? STREAMS_MAX : 0 },
        { NGHTTP2_SETTINGS_ENABLE_PUSH, 0 }, /* clients only */
    };
    size_t count = COUNT(settings) - (c->server ? 1 : 0);

    if (nghttp2_submit_settings(c->session, NGHTTP2_FLAG_NONE, settings, count))
        return -1;
    return nghttp2_session_set_local_window_size(c->session, NGHTTP2_FLAG_NONE,
                                                 0, WINDOW_MAX);
}

nghttp2_session *h2_session_new(struct h2_conn *c)
{
    int error;

    pthread_once(&once, make_callbacks);
    error =
        c->server
            ? nghttp2_session_server_new2(&c->session, callbacks, c, options)
            : nghttp2_session_client_new2(&c->session, callbacks, c, options);
    if (error) {
        c->session = NULL;
    } else if (submit_settings(c)) {
        nghttp2_session_del(c->session);
        c->session = NULL;
    }
    return c->session;
}
