#include "client/runner.h"

#include <string.h>

#include "base/clock.h"
#include "base/fpu.h"
#include "base/mem.h"
#include "base/rng.h"
#include "server/master.h"
#include "server/message.h"
#include "tensor/proto.h"

#define METHOD(name) "/tensorflow.MasterService/" name

struct client_runner {
    struct client_session *session;
    int64_t handle; /* of the callable */
    int feed_count, fetch_count;
    struct client_wait wait;
    /* In the master's process: */
    struct master_session *ms;
    struct compiled *compiled;
    bool aside;
};

/* ---- making ---- */

static void put_names(struct pb_out *o, uint32_t field,
                      const char *const *names, int count)
{
    for (int i = 0; i < count; i++)
        pb_put_bytes(o, field, names[i], strlen(names[i]));
}

static enum mst_code make_callable(struct client_runner *r,
                                   const struct client_want *want,
                                   uint64_t timeout_ms, struct status *st)
{
    const char *session = r->session->handle;
    struct client_answer answer;
    struct pb_out o;
    struct pb_field f;
    struct rpc_msg m;
    struct pb_in in;

    pb_out_init(&o);
    put_names(&o, 1, want->feeds, want->feed_count);
    put_names(&o, 2, want->fetches, want->fetch_count);
    put_names(&o, 3, want->targets, want->target_count);
    rpc_msg_init(&m);
    message_put_bytes(&m, 1, session, strlen(session));
    message_put_bytes(&m, 2, o.data, o.len);
    message_put_uint(&m, 3, rng_u64());
    pb_out_done(&o);
    if (client_link_call(&r->session->link,
                         &(struct client_ask){ .path = METHOD("MakeCallable"),
                                               .msg = &m,
                                               .timeout_ms = timeout_ms },
                         &answer, st))
        return st->code;
    in = pb_in(answer.msg.data, answer.msg.len);
    while (pb_next(&in, &f))
        if (f.number == 1 && f.wire == PB_VARINT)
            r->handle = (int64_t)f.value;
    buffer_unref(answer.msg.owner);
    return MST_OK;
}

enum mst_code client_runner_new(struct client_session *s,
                                const struct client_want *want,
                                uint64_t timeout_ms, struct client_runner **ret,
                                struct status *st)
{
    struct client_runner *r = MEM_NEW(struct client_runner);
    enum mst_code rc;

    r->session = s;
    r->feed_count = want->feed_count;
    r->fetch_count = want->fetch_count;
    rc = make_callable(r, want, timeout_ms, st);
    if (!rc && s->link.server &&
        !master_find_callable(server_master(s->link.server), s->handle,
                              r->handle, &r->ms, &r->compiled))
        rc = status_set(st, MST_ABORTED, "Session %s is not found.", s->handle);
    if (rc) {
        mem_free(r);
        return rc;
    }
    client_wait_init(&r->wait);
    *ret = r;
    return MST_OK;
}

void client_runner_free(struct client_runner *r)
{
    struct status st = STATUS_INIT;
    struct client_answer answer;
    struct rpc_msg m;

    if (!r)
        return;
    rpc_msg_init(&m);
    message_put_bytes(&m, 1, r->session->handle, strlen(r->session->handle));
    message_put_uint(&m, 2, (uint64_t)r->handle);
    if (!client_link_call(&r->session->link,
                          &(struct client_ask){
                              .path = METHOD("ReleaseCallable"), .msg = &m },
                          &answer, &st))
        buffer_unref(answer.msg.owner);
    compiled_unref(r->compiled);
    master_session_unref(r->ms);
    client_wait_done(&r->wait);
    mem_free(r);
}

void client_runner_aside(struct client_runner *r)
{
    r->aside = true;
}

/* ---- in the master's process ---- */

static void run_over(struct master_run *run)
{
    client_wait_signal(run->over_arg);
}

static enum mst_code run_here(struct client_runner *r,
                              const struct tensor *feeds,
                              struct tensor *fetches, uint64_t timeout_ms,
                              struct status *st)
{
    uint64_t deadline_ns = timeout_ms ? clock_ns() + timeout_ms * 1000000 : 0;
    struct loop *loop =
        r->aside ? NULL : server_only_loop(r->session->link.server);
    struct client_call call = { 0 };
    unsigned long fpu = fpu_control();
    struct pool_kept kept;
    enum mst_code rc;

    fpu_flush_denormals(); /* kernels run on this thread */
    client_wait_reset(&r->wait, loop);
    pool_keep(&kept);
    call.run = master_run_direct(r->ms, r->compiled, feeds, run_over, &r->wait);
    pool_keep_end();
    client_link_enter(&r->session->link, &call);
    if (!client_wait_inside(&r->wait, &kept, deadline_ns)) {
        master_run_cancel(call.run, MST_DEADLINE_EXCEEDED,
                          "Timed out waiting for notification");
        (void)client_wait_until(&r->wait, 0);
    }
    (void)client_link_leave(&r->session->link, &call);
    fpu_restore(fpu);
    rc = call.run->st.code;
    if (rc)
        status_copy(st, &call.run->st);
    for (int i = 0; i < r->fetch_count && !rc; i++)
        tensor_move(&fetches[i], &call.run->rets[i].t);
    master_run_unref(call.run);
    return rc;
}

/* ---- over a channel ---- */

static bool place(void *arg, const uint8_t *head, size_t have, size_t total,
                  struct rpc_place *ret)
{
    return recv_tensor_place(arg, head, have, total, ret);
}

/* The fetches in their order; the first may have been placed. */
static enum mst_code take_fetches(struct client_runner *r,
                                  const struct client_answer *answer,
                                  struct recv_tensor_answer *first,
                                  struct tensor *fetches, struct status *st)
{
    bool placed = first->placed && answer->placed.dest;
    size_t skip = placed ? answer->placed.skip : 0;
    struct pb_in in = pb_in(answer->msg.data + skip, answer->msg.len - skip);
    enum mst_code rc = MST_OK;
    struct pb_field f;
    int n = 0;

    if (placed && r->fetch_count)
        tensor_move(&fetches[n++], &first->tensor);
    while (!rc && pb_next(&in, &f))
        if (f.number == 1 && f.wire == PB_LEN && n < r->fetch_count) {
            rc = tensor_from_proto(&fetches[n], f.data, f.len,
                                   answer->msg.owner, st);
            n += !rc;
        }
    if (!rc && (in.bad || n < r->fetch_count))
        rc = status_set(st, MST_INTERNAL, "The master's answer cannot be read");
    while (rc && n > 0)
        tensor_unref(&fetches[--n]);
    return rc;
}

static enum mst_code run_there(struct client_runner *r,
                               const struct tensor *feeds,
                               struct tensor *fetches, uint64_t timeout_ms,
                               struct status *st)
{
    const char *session = r->session->handle;
    struct recv_tensor_answer first = { 0 };
    struct client_answer answer;
    struct rpc_msg m;
    enum mst_code rc;

    rpc_msg_init(&m);
    message_put_bytes(&m, 1, session, strlen(session));
    message_put_uint(&m, 2, (uint64_t)r->handle);
    for (int i = 0; i < r->feed_count; i++)
        message_put_tensor(&m, 3, &feeds[i]);
    message_put_uint(&m, 4, rng_u64());
    rc = client_link_call(&r->session->link,
                          &(struct client_ask){ .path = METHOD("RunCallable"),
                                                .msg = &m,
                                                .timeout_ms = timeout_ms,
                                                .place = place,
                                                .place_arg = &first,
                                                .wait = &r->wait },
                          &answer, st);
    if (!rc) {
        rc = take_fetches(r, &answer, &first, fetches, st);
        buffer_unref(answer.msg.owner);
    }
    tensor_unref(&first.tensor);
    return rc;
}

enum mst_code client_runner_run(struct client_runner *r,
                                const struct tensor *feeds,
                                struct tensor *fetches, uint64_t timeout_ms,
                                struct status *st)
{
    return r->ms ? run_here(r, feeds, fetches, timeout_ms, st)
                 : run_there(r, feeds, fetches, timeout_ms, st);
}
