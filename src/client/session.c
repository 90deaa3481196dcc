#include "client/session.h"

#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "client/runner.h"
#include "server/message.h"
#include "tensor/proto.h"

#define METHOD(name) "/tensorflow.MasterService/" name

static enum mst_code unparsable(struct status *st)
{
    return status_set(st, MST_INTERNAL, "The master's answer cannot be read");
}

/* ---- life ---- */

static void session_free(struct client_session *s)
{
    client_link_close(&s->link);
    pthread_mutex_destroy(&s->lock);
    mem_free(s->handle);
    mem_free(s);
}

enum mst_code client_session_open(struct client_session *s,
                                  const struct client_session_opts *o,
                                  struct status *st)
{
    struct client_answer answer;
    struct pb_field f;
    struct rpc_msg m;
    struct pb_in in;

    rpc_msg_init(&m);
    message_put_bytes(&m, 1, o->graph, o->graph_len);
    if (o->config_len)
        message_put_bytes(&m, 2, o->config, o->config_len);
    if (client_link_call(&s->link,
                         &(struct client_ask){ .path = METHOD("CreateSession"),
                                               .msg = &m,
                                               .timeout_ms = o->timeout_ms,
                                               .wait_for_ready = true },
                         &answer, st))
        return st->code;
    in = pb_in(answer.msg.data, answer.msg.len);
    while (pb_next(&in, &f)) {
        if (f.number == 1 && f.wire == PB_LEN && !s->handle)
            s->handle = mem_strn((const char *)f.data, f.len);
        if (f.number == 2 && f.wire == PB_VARINT)
            s->version = (int64_t)f.value;
    }
    buffer_unref(answer.msg.owner);
    return s->handle && !in.bad ? MST_OK : unparsable(st);
}

enum mst_code client_session_new(const char *target, struct server *server,
                                 struct client_session **ret, struct status *st)
{
    struct client_session *s = MEM_NEW(struct client_session);
    enum mst_code rc = MST_OK;

    pthread_mutex_init(&s->lock, NULL);
    if (server)
        client_link_open_local(&s->link, server);
    else
        rc = client_link_open(&s->link, target, st);
    if (rc)
        session_free(s);
    else
        *ret = s;
    return rc;
}

/* A message that begins with the session. */
static void begin(const struct client_session *s, struct rpc_msg *m)
{
    rpc_msg_init(m);
    message_put_bytes(m, 1, s->handle, strlen(s->handle));
}

/* A call whose answer says nothing. */
static enum mst_code tell(struct client_link *l, const char *path,
                          struct rpc_msg *m, uint64_t timeout_ms,
                          struct status *st)
{
    struct client_answer answer;

    if (client_link_call(l,
                         &(struct client_ask){
                             .path = path, .msg = m, .timeout_ms = timeout_ms },
                         &answer, st))
        return st->code;
    buffer_unref(answer.msg.owner);
    return MST_OK;
}

void client_session_close(struct client_session *s, uint64_t timeout_ms)
{
    struct status st = STATUS_INIT;
    struct rpc_msg m;

    if (!s)
        return;
    if (s->handle) {
        begin(s, &m);
        (void)tell(&s->link, METHOD("CloseSession"), &m, timeout_ms, &st);
    }
    session_free(s);
}

void client_session_cancel(struct client_session *s)
{
    client_link_cancel(&s->link);
}

/* ---- what is asked now and then ---- */

enum mst_code client_session_extend(struct client_session *s, const void *graph,
                                    size_t len, uint64_t timeout_ms,
                                    struct status *st)
{
    struct client_answer answer;
    struct pb_field f;
    struct rpc_msg m;
    struct pb_in in;
    enum mst_code rc;

    begin(s, &m);
    message_put_bytes(&m, 2, graph, len);
    pthread_mutex_lock(&s->lock);
    message_put_uint(&m, 3, (uint64_t)s->version);
    rc = client_link_call(&s->link,
                          &(struct client_ask){ .path = METHOD("ExtendSession"),
                                                .msg = &m,
                                                .timeout_ms = timeout_ms },
                          &answer, st);
    if (!rc) {
        in = pb_in(answer.msg.data, answer.msg.len);
        while (pb_next(&in, &f))
            if (f.number == 4 && f.wire == PB_VARINT)
                s->version = (int64_t)f.value;
        buffer_unref(answer.msg.owner);
    }
    pthread_mutex_unlock(&s->lock);
    return rc;
}

static void each_device(struct pb_in in, void (*fn)(void *, const char *),
                        void *arg)
{
    struct pb_field f, part;

    while (pb_next(&in, &f)) {
        struct pb_in inner = pb_in(f.data, f.len);

        if ((f.number != 1 && f.number != 2) || f.wire != PB_LEN)
            continue;
        while (pb_next(&inner, &part))
            if (part.number == 1 && part.wire == PB_LEN) {
                char *name = mem_strn((const char *)part.data, part.len);

                fn(arg, name);
                mem_free(name);
            }
    }
}

enum mst_code client_session_devices(struct client_session *s,
                                     void (*fn)(void *arg, const char *name),
                                     void *arg, uint64_t timeout_ms,
                                     struct status *st)
{
    struct client_answer answer;
    struct rpc_msg m;

    begin(s, &m);
    if (client_link_call(&s->link,
                         &(struct client_ask){ .path = METHOD("ListDevices"),
                                               .msg = &m,
                                               .timeout_ms = timeout_ms },
                         &answer, st))
        return st->code;
    each_device(pb_in(answer.msg.data, answer.msg.len), fn, arg);
    buffer_unref(answer.msg.owner);
    return MST_OK;
}

enum mst_code client_session_reset(const char *target,
                                   const char *const *containers, int count,
                                   uint64_t timeout_ms, struct status *st)
{
    struct client_link link;
    struct rpc_msg m;
    enum mst_code rc;

    rc = client_link_open(&link, target, st);
    if (rc)
        return rc;
    rpc_msg_init(&m);
    for (int i = 0; i < count; i++)
        message_put_bytes(&m, 1, containers[i], strlen(containers[i]));
    rc = tell(&link, METHOD("Reset"), &m, timeout_ms, st);
    client_link_close(&link);
    return rc;
}

/* ---- one step ---- */

/* RunStep as its request has it. */
static void put_run_step(const struct client_session *s,
                         const struct client_want *want,
                         const struct tensor *feeds, uint64_t timeout_ms,
                         struct rpc_msg *m)
{
    struct pb_out o;

    begin(s, m);
    for (int i = 0; i < want->feed_count; i++)
        message_put_named(
            m, 2,
            (struct message_text){ want->feeds[i], strlen(want->feeds[i]) },
            &feeds[i]);
    pb_out_init(&o);
    for (int i = 0; i < want->fetch_count; i++)
        pb_put_bytes(&o, 3, want->fetches[i], strlen(want->fetches[i]));
    for (int i = 0; i < want->target_count; i++)
        pb_put_bytes(&o, 4, want->targets[i], strlen(want->targets[i]));
    rpc_msg_copy(m, o.data, o.len);
    pb_out_done(&o);
    if (timeout_ms) { /* RunOptions */
        pb_out_init(&o);
        pb_put_uint(&o, 2, timeout_ms);
        message_put_bytes(m, 5, o.data, o.len);
        pb_out_done(&o);
    }
    message_put_uint(m, 8, rng_u64());
}

/* A NamedTensorProto of the answer goes to the fetch of its name. */
static enum mst_code take_named(const struct client_want *want,
                                const struct pb_field *named,
                                struct buffer *owner, struct tensor *fetches,
                                struct status *st)
{
    struct pb_in in = pb_in(named->data, named->len);
    struct pb_field f, name = { 0 }, tensor = { 0 };
    enum mst_code rc = MST_OK;

    while (pb_next(&in, &f)) {
        if (f.number == 1 && f.wire == PB_LEN)
            name = f;
        if (f.number == 2 && f.wire == PB_LEN)
            tensor = f;
    }
    for (int i = 0; i < want->fetch_count && !rc; i++)
        if (!tensor_set(&fetches[i]) && strlen(want->fetches[i]) == name.len &&
            !memcmp(want->fetches[i], name.data, name.len))
            rc = tensor_from_proto(&fetches[i], tensor.data, tensor.len, owner,
                                   st);
    return rc;
}

static enum mst_code take_results(const struct client_want *want,
                                  const struct rpc_data *msg,
                                  struct tensor *fetches, struct status *st)
{
    struct pb_in in = pb_in(msg->data, msg->len);
    enum mst_code rc = MST_OK;
    struct pb_field f;

    while (!rc && pb_next(&in, &f))
        if (f.number == 1 && f.wire == PB_LEN)
            rc = take_named(want, &f, msg->owner, fetches, st);
    if (!rc && in.bad)
        rc = unparsable(st);
    for (int i = 0; i < want->fetch_count && !rc; i++)
        if (!tensor_set(&fetches[i]))
            rc = status_set(st, MST_INTERNAL, "The master sent no \"%s\"",
                            want->fetches[i]);
    for (int i = 0; i < want->fetch_count && rc; i++)
        tensor_unref(&fetches[i]);
    return rc;
}

static enum mst_code run_remote(struct client_session *s,
                                const struct client_want *want,
                                const struct tensor *feeds,
                                struct tensor *fetches, uint64_t timeout_ms,
                                struct status *st)
{
    struct client_answer answer;
    struct rpc_msg m;
    enum mst_code rc;

    put_run_step(s, want, feeds, timeout_ms, &m);
    if (client_link_call(&s->link,
                         &(struct client_ask){ .path = METHOD("RunStep"),
                                               .msg = &m,
                                               .timeout_ms = timeout_ms },
                         &answer, st))
        return st->code;
    for (int i = 0; i < want->fetch_count; i++)
        fetches[i] = (struct tensor){ 0 };
    rc = take_results(want, &answer.msg, fetches, st);
    buffer_unref(answer.msg.owner);
    return rc;
}

enum mst_code client_session_run(struct client_session *s,
                                 const struct client_want *want,
                                 const struct tensor *feeds,
                                 struct tensor *fetches, uint64_t timeout_ms,
                                 struct status *st)
{
    struct client_runner *r;
    enum mst_code rc;

    if (!s->link.server)
        return run_remote(s, want, feeds, fetches, timeout_ms, st);
    rc = client_runner_new(s, want, timeout_ms, &r, st);
    if (rc)
        return rc;
    rc = client_runner_run(r, feeds, fetches, timeout_ms, st);
    client_runner_free(r);
    return rc;
}
