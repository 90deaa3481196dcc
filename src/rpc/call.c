/*
 * A call on the server, from the first header of its request to done().
 *
 *   receiving --- ended ---> started --- answer ---> answering --- closed ---+
 *       |                       |                                            |
 *       | rejected, reset       | reset, lost, deadline                      |
 *       v                       v                                            v
 *     gone                   cancelled ---- answer (goes nowhere) ------>  gone
 *
 * Only the loop thread changes the state. An answer from another thread is put
 * into the call, which nobody else looks at before it has been posted, and
 * posted. The stream is attached (s.conn) while the peer can still be told
 * something; `conn` is the same connection, held for its name until the end.
 *
 * A stream of messages is in `started` between its messages, each of which is
 * submitted on its own. An answer that comes while one is under way waits for
 * call_sent(). Messages and the answer of a stream are always posted, so they
 * stay in their order whichever threads they come from.
 *
 * sent(), done() and cancel() run from the loop, never out of rpc_call_reply():
 * a handler may hold its locks.
 */
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "rpc/shard.h"
#include "rpc/text.h"

#define FREE_MAX 1024

/* A failure, or the good end of a stream, as it is sent, in one piece of
 * memory. */
struct call_error {
    enum mst_code code;
    size_t message_len, details_len;
    char text[]; /* message, percent-encoded; details in base64 */
};

struct rpc_call {
    struct h2_stream s;
    struct shard *shard;
    struct server_conn *conn;
    const struct server_method *method; /* NULL: unknown */
    struct rpc_call *next;              /* free ones */
    bool is_post, is_grpc, has_headers, started, answered;
    bool begun;          /* a stream's headers are out */
    atomic_bool sending; /* a message of it is under way */
    atomic_bool replied; /* by the handler */
    atomic_bool cancelled;
    uint64_t deadline_ns; /* 0: none */
    struct loop_timer deadline;
    void (*cancel)(void *);
    void (*sent)(void *);
    void (*done)(void *);
    void *arg;
    struct rpc_data request;
    struct call_error *error; /* the answer, if it is not s.out */
    struct loop_task send, answer;
    /* A call from inside of the process: there is no connection. */
    struct call_local *local;
    struct rpc_call *local_prev, *local_next; /* in shard->locals */
};

static void run_send(struct loop_task *task);
static void run_answer(struct loop_task *task);
static void on_deadline(struct loop_timer *timer);

static struct rpc_call *call_of(struct h2_stream *s)
{
    return CONTAINER(s, struct rpc_call, s);
}

static struct rpc_call *call_new(struct shard *sh)
{
    struct rpc_call *call = sh->free_calls;

    if (call) {
        sh->free_calls = call->next;
        sh->free_count--;
    } else {
        call = mem_grow(NULL, 1, sizeof(*call));
    }
    memset(call, 0, offsetof(struct rpc_call, s.out));
    memset(&call->s.out_left, 0,
           sizeof(*call) - offsetof(struct rpc_call, s.out_left));
    rpc_msg_init(&call->s.out);
    inbox_init(&call->s.in, sh->config->request_max);
    call->shard = sh;
    call->send.run = run_send;
    call->answer.run = run_answer;
    call->deadline.fire = on_deadline;
    h2_count(&sh->call_count, 1);
    h2_count(&sh->call_total, 1);
    return call;
}

bool call_begin(struct h2_conn *h2, int32_t id)
{
    struct server_conn *conn = CONTAINER(h2, struct server_conn, h2);
    struct rpc_call *call = call_new(conn->shard);

    call->conn = conn;
    conn->calls++;
    h2_attach(h2, &call->s, id);
    return true;
}

/* The end of a call that is detached and not needed by its handler. */
static void release(struct rpc_call *call)
{
    struct shard *sh = call->shard;
    struct server_conn *conn = call->conn;

    loop_timer_del(sh->loop, &call->deadline);
    rpc_msg_done(&call->s.out);
    inbox_done(&call->s.in);
    mem_free(call->error);
    if (call->done)
        call->done(call->arg);
    if (sh->free_count < FREE_MAX) {
        call->next = sh->free_calls;
        sh->free_calls = call;
        sh->free_count++;
    } else {
        mem_free(call);
    }
    shard_call_gone(sh, conn);
}

void call_free_all(struct shard *sh)
{
    while (sh->free_calls) {
        struct rpc_call *call = sh->free_calls;

        sh->free_calls = call->next;
        mem_free(call);
    }
}

static struct call_error *error_new(enum mst_code code, const char *msg,
                                    const void *details, size_t details_len)
{
    char text[TEXT_MESSAGE_ENCODED_MAX];
    size_t len = text_message_encode(msg, strlen(msg), text);
    struct call_error *e =
        mem_new(sizeof(*e) + len + (details_len + 2) / 3 * 4);

    e->code = code;
    e->message_len = len;
    memcpy(e->text, text, len);
    e->details_len = text_base64_encode(details, details_len, e->text + len);
    return e;
}

/* Answers with headers only; or with trailers, behind the messages of a stream.
 */
static int submit_error(struct rpc_call *call, const struct call_error *e)
{
    struct h2_stream *s = &call->s;
    char code[4];
    nghttp2_nv nv[6] = {
        H2_NV(":status", "200"),
        H2_NV("content-type", "application/grpc"),
    };
    size_t n = 2;

    code[0] = (char)('0' + e->code / 10);
    code[1] = (char)('0' + e->code % 10);
    nv[n++] = e->code < 10 ? h2_nv("grpc-status", code + 1, 1)
                           : h2_nv("grpc-status", code, 2);
    nv[n++] = h2_nv("grpc-message", e->text, e->message_len);
    if (e->details_len)
        nv[n++] = h2_nv("grpc-status-details-bin", e->text + e->message_len,
                        e->details_len);
    if (e->code == MST_UNIMPLEMENTED && s->in.compressed)
        nv[n++] = H2_NV("grpc-accept-encoding", "identity, deflate, gzip");
    h2_flush_later(s->conn);
    if (call->begun)
        return nghttp2_submit_trailer(s->conn->session, s->id, nv + 2, n - 2);
    return nghttp2_submit_response(s->conn->session, s->id, nv, n, NULL);
}

/* Answers a call that never got to its handler. */
static void reject(struct rpc_call *call, enum mst_code code, const char *msg)
{
    struct call_error *e = error_new(code, msg, NULL, 0);

    submit_error(call, e);
    mem_free(e);
    h2_detach(&call->s);
    release(call);
}

static void reject_http(struct rpc_call *call)
{
    const nghttp2_nv nv[] = { H2_NV(":status", "415") };

    nghttp2_submit_response(call->s.conn->session, call->s.id, nv, 1, NULL);
    h2_flush_later(call->s.conn);
    h2_detach(&call->s);
    release(call);
}

void call_header(struct h2_stream *s, struct h2_text name, struct h2_text value)
{
    struct rpc_call *call = call_of(s);
    uint64_t timeout_ns;

    if (call->has_headers)
        return;
    if (H2_IS(name, ":path")) {
        call->method =
            map_get(&call->shard->config->methods, value.at, value.len);
    } else if (H2_IS(name, ":method")) {
        call->is_post = H2_IS(value, "POST");
    } else if (H2_IS(name, "content-type")) {
        call->is_grpc =
            value.len >= 16 && !memcmp(value.at, "application/grpc", 16);
    } else if (H2_IS(name, "grpc-encoding")) {
        s->in.codec = inflate_codec_of(value.at, value.len);
    } else if (H2_IS(name, "grpc-timeout")) {
        if (text_timeout_parse(value.at, value.len, &timeout_ns))
            call->deadline_ns = loop_now_ns(s->conn->loop) + timeout_ns;
    }
}

void call_headers(struct h2_stream *s)
{
    struct rpc_call *call = call_of(s);
    const struct rpc_method *def;

    if (call->has_headers)
        return;
    call->has_headers = true;
    if (!call->is_grpc) {
        reject_http(call);
        return;
    }
    if (!call->is_post) {
        reject(call, MST_UNKNOWN, "Bad method header");
        return;
    }
    if (!call->method) {
        reject(call, MST_UNIMPLEMENTED, "");
        return;
    }
    def = call->method->def;
    if (def->request_max)
        s->in.max = def->request_max;
    s->in.place = def->place;
    s->in.place_arg = call;
    if (call->deadline_ns)
        loop_timer_set(s->conn->loop, &call->deadline, call->deadline_ns);
}

void call_broken(struct h2_stream *s, const struct status *why)
{
    reject(call_of(s), why->code, why->msg);
}

void call_ended(struct h2_stream *s)
{
    struct rpc_call *call = call_of(s);
    struct status st;

    if (inbox_finish(&s->in, &call->request, &st)) {
        reject(call, st.code, st.msg);
        return;
    }
    call->started = true;
    call->method->def->start(call, call->method->arg);
}

/* The peer is gone, or it has been told that it is too late. */
static void cancel(struct rpc_call *call)
{
    loop_timer_del(call->shard->loop, &call->deadline);
    atomic_store(&call->cancelled, true);
    if (call->cancel && !atomic_load(&call->replied))
        call->cancel(call->arg);
}

void call_closed(struct h2_stream *s, uint32_t h2_error)
{
    struct rpc_call *call = call_of(s);

    if (call->started && !call->answered)
        cancel(call);
    else
        release(call);
}

static void on_deadline(struct loop_timer *timer)
{
    struct rpc_call *call = CONTAINER(timer, struct rpc_call, deadline);
    struct call_error *e;

    if (!call->started) {
        reject(call, MST_DEADLINE_EXCEEDED, "Deadline Exceeded");
        return;
    }
    if (atomic_load(&call->sending)) {
        /* No trailers fit into the middle of a message. */
        h2_reset(&call->s, NGHTTP2_CANCEL);
    } else {
        e = error_new(MST_DEADLINE_EXCEEDED, "Deadline Exceeded", NULL, 0);
        submit_error(call, e);
        mem_free(e);
        h2_detach(&call->s);
    }
    if (call->answered)
        release(call);
    else
        cancel(call);
}

/* ---- calls from inside of the process ---- */

static void answer_local(struct rpc_call *call)
{
    struct shard *sh = call->shard;

    if (call->local_prev)
        call->local_prev->local_next = call->local_next;
    else
        sh->locals = call->local_next;
    if (call->local_next)
        call->local_next->local_prev = call->local_prev;
    if (call->done) /* while there is a request */
        call->done(call->arg);
    call->done = NULL;
    call->local->answered(call->local, &call->s.out);
}

struct rpc_call *call_begin_local(struct shard *sh, const char *path,
                                  const struct rpc_data *request,
                                  struct call_local *local)
{
    struct server_method *method =
        map_get(&sh->config->methods, path, strlen(path));
    struct rpc_call *call;

    if (sh->stopping) {
        status_set(&local->st, MST_UNAVAILABLE, "The server stops");
        return NULL;
    }
    if (!method || method->def->streams) {
        status_set(&local->st, MST_UNIMPLEMENTED, "No such method: %s", path);
        return NULL;
    }
    call = call_new(sh);
    call->local = local;
    call->method = method;
    call->request = *request;
    call->started = true;
    call->local_next = sh->locals;
    if (call->local_next)
        call->local_next->local_prev = call;
    sh->locals = call;
    return call;
}

void call_start_local(struct rpc_call *call)
{
    call->method->def->start(call, call->method->arg);
}

void call_cancel_local(struct rpc_call *call)
{
    if (!atomic_load(&call->cancelled))
        cancel(call);
}

void call_cancel_locals(struct shard *sh)
{
    for (struct rpc_call *call = sh->locals; call; call = call->local_next)
        call_cancel_local(call);
}

/* ---- answers ---- */

static int submit_message(struct rpc_call *call)
{
    static const nghttp2_nv nv[] = {
        H2_NV(":status", "200"),
        H2_NV("content-type", "application/grpc"),
    };
    struct h2_stream *s = &call->s;
    nghttp2_data_provider body = h2_body(s);
    bool first = !call->begun;

    call->begun = s->more = call->method->def->streams;
    s->trailers = !s->more;
    h2_body_begin(s);
    h2_flush_later(s->conn);
    if (!first)
        return nghttp2_submit_data(s->conn->session, NGHTTP2_FLAG_NONE, s->id,
                                   &body);
    return nghttp2_submit_response(s->conn->session, s->id, nv, COUNT(nv),
                                   &body);
}

static bool is_too_large(const struct rpc_msg *m)
{
    return m->no_memory || m->len > UINT32_MAX;
}

/* Sends the answer that lies in the call; the stream is attached. */
static void submit(struct rpc_call *call)
{
    int error;

    call->answered = true;
    if (atomic_load(&call->sending))
        return;
    loop_timer_del(call->shard->loop, &call->deadline);
    if (!call->error && is_too_large(&call->s.out))
        call->error = error_new(MST_RESOURCE_EXHAUSTED,
                                "the reply is too large", NULL, 0);
    error =
        call->error ? submit_error(call, call->error) : submit_message(call);
    if (!error)
        return;
    h2_reset(&call->s, NGHTTP2_INTERNAL_ERROR);
    loop_post(call->shard->loop, &call->answer);
}

static void run_answer(struct loop_task *task)
{
    struct rpc_call *call = CONTAINER(task, struct rpc_call, answer);

    if (call->s.conn) {
        submit(call);
        return;
    }
    if (call->local)
        answer_local(call);
    release(call);
}

static void run_send(struct loop_task *task)
{
    struct rpc_call *call = CONTAINER(task, struct rpc_call, send);

    if (!call->s.conn)
        return; /* Nobody listens any more, and cancel() has told so. */
    if (!is_too_large(&call->s.out) && !submit_message(call))
        return;
    h2_reset(&call->s, NGHTTP2_INTERNAL_ERROR);
    cancel(call);
}

void call_sent(struct h2_stream *s)
{
    struct rpc_call *call = call_of(s);

    rpc_msg_done(&s->out);
    rpc_msg_init(&s->out);
    atomic_store(&call->sending, false);
    if (call->answered)
        submit(call);
    else if (call->sent && !atomic_load(&call->replied))
        call->sent(call->arg);
}

/* The answer is in the call. */
static void answer(struct rpc_call *call)
{
    if (loop_inside(call->shard->loop) && call->s.conn &&
        !call->method->def->streams)
        submit(call);
    else
        loop_post(call->shard->loop, &call->answer);
}

void rpc_call_send(struct rpc_call *call, struct rpc_msg *msg)
{
    CHECK(call->method->def->streams && !atomic_load(&call->replied));
    CHECK(!atomic_exchange(&call->sending, true));
    rpc_msg_move(&call->s.out, msg);
    loop_post(call->shard->loop, &call->send);
}

void rpc_call_end(struct rpc_call *call)
{
    CHECK(call->method->def->streams);
    CHECK(!atomic_exchange(&call->replied, true));
    call->error = error_new(MST_OK, "", NULL, 0);
    answer(call);
}

void rpc_call_reply(struct rpc_call *call, struct rpc_msg *msg)
{
    CHECK(!call->method->def->streams);
    CHECK(!atomic_exchange(&call->replied, true));
    rpc_msg_move(&call->s.out, msg);
    answer(call);
}

void rpc_call_fail(struct rpc_call *call, const struct status *st,
                   const void *details, size_t details_len)
{
    enum mst_code code = st->code ? st->code : MST_INTERNAL;

    CHECK(!atomic_exchange(&call->replied, true));
    if (call->local) {
        status_copy(&call->local->st, st);
        call->local->st.code = code;
        call->local->details = mem_copy(details, details_len);
        call->local->details_len = details_len;
    } else {
        call->error = error_new(code, st->msg, details, details_len);
    }
    answer(call);
}

void rpc_call_hooks(struct rpc_call *call, void (*cancel_fn)(void *),
                    void (*done_fn)(void *), void *arg)
{
    call->cancel = cancel_fn;
    call->done = done_fn;
    call->arg = arg;
}

void rpc_call_on_sent(struct rpc_call *call, void (*sent)(void *))
{
    call->sent = sent;
}

const struct rpc_data *rpc_call_request(const struct rpc_call *call)
{
    return &call->request;
}

const struct rpc_place *rpc_call_placed(const struct rpc_call *call)
{
    return &call->s.in.placed;
}

const char *rpc_call_path(const struct rpc_call *call)
{
    return call->method->def->path;
}

int64_t rpc_call_deadline_ms(const struct rpc_call *call)
{
    uint64_t now = clock_ns();

    if (!call->deadline_ns)
        return -1;
    return call->deadline_ns <= now
               ? 0
               : (int64_t)((call->deadline_ns - now + 999999) / 1000000);
}

const char *rpc_call_peer(const struct rpc_call *call)
{
    return call->conn ? call->conn->peer : "local";
}

bool rpc_call_cancelled(const struct rpc_call *call)
{
    return atomic_load(&((struct rpc_call *)call)->cancelled);
}

struct loop *rpc_call_loop(const struct rpc_call *call)
{
    return call->shard->loop;
}
