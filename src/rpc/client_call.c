/*
 * A call of a client.
 *
 *   NEW ---> WAITING ---> ACTIVE ---> OVER (done was called)
 *    |          |  ^________| never looked at by the peer: again, after a
 *    |          |             pause (PAUSED) if it was only too busy
 *    |          +----------------------------------------^
 *    +---> ENDING (a posted task calls done) ------------^
 *
 * end() calls done at once, and is only used from the loop; what happens inside
 * of a public function ends by end_later(), so that done never runs in there.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "rpc/client.h"
#include "rpc/text.h"

#define FREE_MAX   256
#define TRIES_MAX  10
#define AGAIN_NS   ((uint64_t)1000000)
#define USER_AGENT "grpc-c-muster/" MUSTER_VERSION

static void run_start(struct loop_task *task);
static void run_end(struct loop_task *task);
static void run_cancel(struct loop_task *task);
static void on_deadline(struct loop_timer *timer);
static void start(struct rpc_client_call *call);

static struct rpc_client_call *call_of(struct h2_stream *s)
{
    return CONTAINER(s, struct rpc_client_call, s);
}

static struct rpc_client_call *call_new(struct rpc_channel *ch)
{
    struct rpc_client_call *call;

    pthread_mutex_lock(&ch->lock);
    call = ch->free_calls;
    if (call) {
        ch->free_calls = call->next;
        ch->free_count--;
    }
    pthread_mutex_unlock(&ch->lock);
    if (!call)
        call = mem_grow(NULL, 1, sizeof(*call));
    memset(call, 0, offsetof(struct rpc_client_call, s.out));
    memset(&call->s.out_left, 0,
           sizeof(*call) - offsetof(struct rpc_client_call, s.out_left));
    return call;
}

static void call_free(struct rpc_client_call *call)
{
    struct rpc_channel *ch = call->channel;

    pthread_mutex_lock(&ch->lock);
    if (ch->free_count < FREE_MAX) {
        call->next = ch->free_calls;
        ch->free_calls = call;
        ch->free_count++;
        call = NULL;
    }
    pthread_mutex_unlock(&ch->lock);
    mem_free(call);
    rpc_channel_unref(ch);
}

void client_call_free_all(struct rpc_channel *ch)
{
    while (ch->free_calls) {
        struct rpc_client_call *call = ch->free_calls;

        ch->free_calls = call->next;
        mem_free(call);
    }
}

static void list_add(struct call_list *l, struct rpc_client_call *call)
{
    call->prev = l->last;
    call->next = NULL;
    if (l->last)
        l->last->next = call;
    else
        l->first = call;
    l->last = call;
}

static void list_del(struct call_list *l, struct rpc_client_call *call)
{
    if (call->prev)
        call->prev->next = call->next;
    else
        l->first = call->next;
    if (call->next)
        call->next->prev = call->prev;
    else
        l->last = call->prev;
}

/* A stream may be silent for hours, and nobody polls for that. */
static void expect(struct rpc_client_call *call, int delta)
{
    if (!call->s.in.each)
        loop_expect(call->channel->loop, delta);
}

/* Takes the call from wherever it is. */
static void leave(struct rpc_client_call *call)
{
    struct rpc_channel *ch = call->channel;

    if (call->state == CALL_WAITING)
        list_del(&ch->waiting, call);
    else if (call->state == CALL_ACTIVE)
        expect(call, -1);
    else if (call->state == CALL_PAUSED)
        loop_timer_del(ch->loop, &call->pause);
}

/* The end. The reply's status says how; what came in is in the call. */
static void end(struct rpc_client_call *call, struct rpc_reply *reply)
{
    struct rpc_channel *ch = call->channel;

    leave(call);
    call->state = CALL_OVER;
    loop_timer_del(ch->loop, &call->deadline);
    reply->details = call->details;
    reply->details_len = call->details_len;
    reply->placed = call->s.in.placed;
    call->done(reply, call->arg);
    rpc_msg_done(&call->s.out);
    inbox_done(&call->s.in);
    mem_free(call->message);
    mem_free(call->details);
    rpc_client_call_unref(call);
    channel_call_done(ch);
}

static void end_with(struct rpc_client_call *call, const struct status *why)
{
    struct rpc_reply reply = { .status = why };

    end(call, &reply);
}

/* Detached from its stream already, if it ever had one. */
static void end_as(struct rpc_client_call *call, enum mst_code code,
                   const char *msg)
{
    struct status st;

    status_set(&st, code, "%s", msg);
    end_with(call, &st);
}

static void end_later(struct rpc_client_call *call, enum mst_code code,
                      const char *msg)
{
    leave(call);
    call->state = CALL_ENDING;
    call->grpc_status = (int)code;
    mem_free(call->message);
    call->message = mem_str(msg);
    call->task.run = run_end;
    loop_post(call->channel->loop, &call->task);
}

static void run_end(struct loop_task *task)
{
    struct rpc_client_call *call =
        CONTAINER(task, struct rpc_client_call, task);

    end_as(call, (enum mst_code)call->grpc_status, call->message);
}

static int submit_request(struct rpc_client_call *call,
                          struct client_conn *conn)
{
    nghttp2_data_provider body = h2_body(&call->s);
    const char *target = call->channel->target;
    char timeout[TEXT_TIMEOUT_MAX];
    nghttp2_nv nv[8] = {
        H2_NV(":method", "POST"),
        H2_NV(":scheme", "http"),
        h2_nv(":path", call->path, strlen(call->path)),
        h2_nv(":authority", target, strlen(target)),
        H2_NV("te", "trailers"),
        H2_NV("content-type", "application/grpc"),
        H2_NV("user-agent", USER_AGENT),
    };
    size_t n = 7;

    if (call->deadline_ns) {
        uint64_t now = loop_now_ns(conn->h2.loop);
        uint64_t left = call->deadline_ns > now ? call->deadline_ns - now : 1;

        nv[n++] =
            h2_nv("grpc-timeout", timeout, text_timeout_format(left, timeout));
        nv[n - 1].flags |= NGHTTP2_NV_FLAG_NO_INDEX;
    }
    return nghttp2_submit_request(conn->h2.session, NULL, nv, n, &body,
                                  &call->s);
}

/* Sends the call on a connection that is ready. */
static void send_on(struct rpc_client_call *call, struct client_conn *conn)
{
    struct h2_stream *s = &call->s;
    int32_t id;

    s->unsent = false;
    s->keep_out = true;
    s->headers_len = 0;
    h2_body_begin(s);
    id = submit_request(call, conn);
    if (id < 0) {
        end_later(call, MST_INTERNAL, nghttp2_strerror(id));
        return;
    }
    call->state = CALL_ACTIVE;
    expect(call, 1);
    h2_attach(&conn->h2, s, id);
    h2_flush_later(&conn->h2);
    if (id >= call->channel->stream_id_max)
        channel_retire(conn);
}

static void wait_for_conn(struct rpc_client_call *call)
{
    call->state = CALL_WAITING;
    list_add(&call->channel->waiting, call);
}

/* The call is in no list. */
static void start(struct rpc_client_call *call)
{
    struct rpc_channel *ch = call->channel;
    struct client_conn *conn = channel_ready(ch);

    if (call->s.out.no_memory || call->s.out.len > UINT32_MAX) {
        end_later(call, MST_RESOURCE_EXHAUSTED, "the request is too large");
        return;
    }
    if (conn) {
        send_on(call, conn);
        return;
    }
    if (ch->state == CHANNEL_CLOSED) {
        end_later(call, MST_CANCELLED, "Channel closed!");
        return;
    }
    if (ch->failing && !call->wait_for_ready)
        end_later(call, ch->error.code, ch->error.msg);
    else
        wait_for_conn(call);
    channel_connect(ch);
}

static void run_start(struct loop_task *task)
{
    struct rpc_client_call *call =
        CONTAINER(task, struct rpc_client_call, task);

    if (call->deadline_ns)
        loop_timer_set(call->channel->loop, &call->deadline, call->deadline_ns);
    start(call);
}

void client_call_send_waiting(struct rpc_channel *ch)
{
    struct client_conn *conn;

    while (ch->waiting.first && (conn = channel_ready(ch))) {
        struct rpc_client_call *call = ch->waiting.first;

        list_del(&ch->waiting, call);
        call->state = CALL_NEW;
        send_on(call, conn);
    }
    if (ch->waiting.first)
        channel_connect(ch);
}

void client_call_end_waiting(struct rpc_channel *ch, bool all,
                             const struct status *why)
{
    struct call_list ending = { 0 };
    struct rpc_client_call *call = ch->waiting.first, *next;

    /* done() may add calls, so those that end are taken out first. */
    for (; call; call = next) {
        next = call->next;
        if (!all && call->wait_for_ready)
            continue;
        list_del(&ch->waiting, call);
        call->state = CALL_NEW;
        list_add(&ending, call);
    }
    while ((call = ending.first)) {
        list_del(&ending, call);
        end_with(call, why);
    }
}

void client_call_end_active(struct client_conn *conn, const struct status *why)
{
    while (conn->h2.streams) {
        struct rpc_client_call *call = call_of(conn->h2.streams);

        h2_reset(&call->s, NGHTTP2_CANCEL);
        end_with(call, why);
    }
}

void client_call_header(struct h2_stream *s, struct h2_text name,
                        struct h2_text value)
{
    struct rpc_client_call *call = call_of(s);

    if (H2_IS(name, "grpc-status")) {
        call->grpc_status = (int)text_status_parse(value.at, value.len);
    } else if (H2_IS(name, ":status")) {
        call->http_status = 0;
        for (size_t i = 0; i < value.len; i++)
            call->http_status = call->http_status * 10 + (value.at[i] - '0');
    } else if (H2_IS(name, "grpc-encoding")) {
        s->in.codec = inflate_codec_of(value.at, value.len);
    } else if (H2_IS(name, "grpc-message") && !call->message) {
        call->message = mem_strn(value.at, value.len);
        call->message[text_message_decode(call->message, value.len)] = '\0';
    } else if (H2_IS(name, "grpc-status-details-bin") && !call->details) {
        call->details = mem_new(value.len / 4 * 3 + 3);
        if (!text_base64_decode(value.at, value.len, call->details,
                                &call->details_len))
            call->details_len = 0;
    }
}

void client_call_headers(struct h2_stream *s)
{
}

void client_call_broken(struct h2_stream *s, const struct status *why)
{
    struct rpc_client_call *call = call_of(s);

    h2_reset(s, NGHTTP2_CANCEL);
    end_with(call, why);
}

/* The whole reply is there, or the peer says that there is none. */
static enum mst_code judge(struct rpc_client_call *call, struct rpc_data *ret,
                           struct status *st)
{
    if (call->grpc_status > 0)
        return status_set(st, (enum mst_code)call->grpc_status, "%s",
                          call->message ? call->message : "");
    if (call->http_status != 200)
        return status_set(st, text_status_of_http(call->http_status),
                          "Received http2 header with status: %d",
                          call->http_status);
    if (call->grpc_status < 0)
        return status_set(st, MST_UNKNOWN, "the reply has no grpc-status");
    return inbox_finish(&call->s.in, ret, st);
}

void client_call_ended(struct h2_stream *s)
{
    struct rpc_client_call *call = call_of(s);
    struct rpc_reply reply = { 0 };
    struct status st;

    /* An answer before the request was out: the rest of that is not wanted. */
    if (nghttp2_session_get_stream_local_close(s->conn->session, s->id))
        h2_detach(s);
    else
        h2_reset(s, NGHTTP2_NO_ERROR);
    st.code = MST_OK;
    st.worker_restarted = false;
    st.msg[0] = '\0';
    (void)!judge(call, &reply.msg, &st);
    reply.status = &st;
    end(call, &reply);
}

static void on_pause_over(struct loop_timer *timer)
{
    struct rpc_client_call *call =
        CONTAINER(timer, struct rpc_client_call, pause);

    call->state = CALL_NEW;
    start(call);
}

/* The peer has not looked at it: as if it had not been sent. If the connection
 * still takes calls, the peer has too many of them just now. */
static void again(struct rpc_client_call *call)
{
    struct loop *loop = call->channel->loop;

    leave(call);
    call->state = CALL_NEW;
    inbox_reset(&call->s.in);
    if (call->s.unsent || !channel_ready(call->channel)) {
        start(call);
        return;
    }
    call->state = CALL_PAUSED;
    call->pause.fire = on_pause_over;
    loop_timer_set(loop, &call->pause,
                   loop_now_ns(loop) + (AGAIN_NS << call->tries));
}

void client_call_closed(struct h2_stream *s, uint32_t h2_error)
{
    struct rpc_client_call *call = call_of(s);
    char text[64];

    if (h2_error == H2_LOST) {
        end_as(call, MST_UNAVAILABLE, s->lost);
        return;
    }
    if ((s->unsent || h2_error == NGHTTP2_REFUSED_STREAM) &&
        ++call->tries < TRIES_MAX) {
        again(call);
        return;
    }
    snprintf(text, sizeof(text), "Received RST_STREAM with error code %u",
             h2_error);
    end_as(call, text_status_of_h2(h2_error), text);
}

/* Ends a call that may be anywhere, on the loop. */
static void stop(struct rpc_client_call *call, enum mst_code code,
                 const char *msg)
{
    if (call->state == CALL_ENDING || call->state == CALL_OVER)
        return;
    if (call->s.conn)
        h2_reset(&call->s, NGHTTP2_CANCEL);
    end_as(call, code, msg);
}

static void on_deadline(struct loop_timer *timer)
{
    stop(CONTAINER(timer, struct rpc_client_call, deadline),
         MST_DEADLINE_EXCEEDED, "Deadline Exceeded");
}

static void run_cancel(struct loop_task *task)
{
    struct rpc_client_call *call =
        CONTAINER(task, struct rpc_client_call, cancel);

    stop(call, MST_CANCELLED, "Cancelled");
    rpc_client_call_unref(call);
}

struct rpc_client_call *rpc_channel_call(struct rpc_channel *channel,
                                         const struct rpc_request *request)
{
    struct rpc_client_call *call = call_new(channel);

    call->channel = rpc_channel_ref(channel);
    atomic_fetch_add(&channel->calls, 1);
    atomic_init(&call->refs, 2);
    call->path = request->path;
    call->wait_for_ready = request->wait_for_ready;
    call->done = request->done;
    call->arg = request->arg;
    call->grpc_status = -1;
    call->deadline.fire = on_deadline;
    call->cancel.run = run_cancel;
    call->task.run = run_start;
    if (request->deadline_ms)
        call->deadline_ns = clock_ns() + request->deadline_ms * 1000000;
    inbox_init(&call->s.in, channel->opts.reply_max);
    call->s.in.place = request->place;
    call->s.in.place_arg = request->arg;
    call->s.in.each = request->message;
    call->s.in.each_arg = request->arg;
    rpc_msg_move(&call->s.out, request->msg);
    if (loop_inside(channel->loop))
        run_start(&call->task);
    else
        loop_post(channel->loop, &call->task);
    return call;
}

void rpc_client_call_cancel(struct rpc_client_call *call)
{
    if (atomic_exchange(&call->cancelling, true))
        return;
    rpc_client_call_ref(call);
    loop_post(call->channel->loop, &call->cancel);
}

struct rpc_client_call *rpc_client_call_ref(struct rpc_client_call *call)
{
    atomic_fetch_add(&call->refs, 1);
    return call;
}

void rpc_client_call_unref(struct rpc_client_call *call)
{
    if (call && atomic_fetch_sub(&call->refs, 1) == 1)
        call_free(call);
}
