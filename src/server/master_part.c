/*
 * The parts of a step that run on other tasks: begun by RunGraph, or by the
 * quick path where there is a lane; told to stop, and forgotten.
 */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "server/master_run.h"

void master_part_done(struct part_call *c)
{
    rpc_client_call_unref(c->rpc);
    quick_call_unref(c->quick);
    quick_side_unref(c->side);
}

void master_part_copy(struct part_call *to, const struct part_call *from)
{
    if (from->rpc)
        to->rpc = rpc_client_call_ref(from->rpc);
    if (from->quick)
        to->quick = quick_call_ref(from->quick);
}

void master_part_cancel(const struct part_call *c)
{
    if (c->rpc)
        rpc_client_call_cancel(c->rpc);
    if (c->quick)
        quick_call_cancel(c->quick);
}

/* ---- beginning ---- */

struct asked {
    struct master_run *r;
    int part;
};

static void ran_there(const struct rpc_reply *reply, void *arg)
{
    struct asked *a = arg;
    struct master_run *r = a->r;
    int task = r->c->parts[a->part].task;
    struct status st = STATUS_INIT;

    if (reply->status->code) {
        status_copy(&st, reply->status);
        st.worker_restarted =
            message_is_restarted(reply->details, reply->details_len);
    } else {
        struct pb_in in = pb_in(reply->msg.data, reply->msg.len);
        struct pb_field f;

        while (pb_next(&in, &f)) {
            if (f.number == 5 && f.wire == PB_VARINT)
                st.code = (enum mst_code)f.value;
            if (f.number == 6 && f.wire == PB_LEN)
                snprintf(st.msg, sizeof(st.msg), "%.*s",
                         (int)MIN(f.len, sizeof(st.msg) - 1),
                         (const char *)f.data);
            if (f.number == 2 && f.wire == PB_LEN) {
                pthread_mutex_lock(&r->lock);
                pb_put_bytes(&r->stats, 1, f.data, f.len);
                pthread_mutex_unlock(&r->lock);
            }
        }
    }
    if (st.code)
        master_run_part_failed(r, task, &st);
    mem_give(a);
    master_run_settle(r);
    master_run_unref(r);
}

/* Whether others may want values of the part when it has ended. */
static bool must_keep(const struct master_run *r, int part)
{
    const struct compiled_part *p = &r->c->parts[part];

    return p->late || (p->between && !r->relays);
}

static struct rpc_client_call *ask_by_rpc(struct master_run *r, int part,
                                          struct asked *a)
{
    const struct compiled_part *p = &r->c->parts[part];
    struct rpc_msg m;

    rpc_msg_init(&m);
    run_graph_put_request(
        &m, &(struct run_graph_request){
                .session_handle = { r->ms->handle, strlen(r->ms->handle) },
                .graph_handle = { p->handle ? p->handle : "",
                                  p->handle ? strlen(p->handle) : 0 },
                .step_id = r->step_id,
                .request_id = (int64_t)rng_u64(),
                .create_worker_session_called = true,
                .store_errors = true,
                .record_timeline = r->trace });
    return rpc_channel_call(
        r->ms->tasks[p->task].channel,
        &(struct rpc_request){ .path = "/tensorflow.WorkerService/RunGraph",
                               .msg = &m,
                               .done = ran_there,
                               .arg = a });
}

void master_part_start(struct master_run *r, int part)
{
    const struct compiled_part *p = &r->c->parts[part];
    struct quick_side *side = r->calls[part].side;
    struct asked *a = MEM_TAKE(struct asked);
    struct part_call call = { 0 };
    bool cancelled;

    a->r = master_run_ref(r);
    a->part = part;
    if (side)
        call.quick =
            quick_run(side,
                      &(struct quick_run){ .session = r->ms->handle,
                                           .graph = p->handle ? p->handle : "",
                                           .step_id = r->step_id,
                                           .relay = r->relays,
                                           .keep = must_keep(r, part) },
                      ran_there, a);
    else
        call.rpc = ask_by_rpc(r, part, a);
    pthread_mutex_lock(&r->lock);
    r->calls[part].rpc = call.rpc;
    r->calls[part].quick = call.quick;
    cancelled = r->cancelled;
    pthread_mutex_unlock(&r->lock);
    if (cancelled)
        master_part_cancel(&call);
}

/* A traced step shows its transfers, a partial one has more than one
 * beginning: both go the plain way. */
void master_part_choose(struct master_run *r)
{
    bool all = true, between = false;

    if (r->trace || r->partial)
        return;
    for (int i = 0; i < r->c->count; i++) {
        const struct compiled_part *p = &r->c->parts[i];
        const struct master_task *t = &r->ms->tasks[p->task];
        struct quick_side *side = quick_peer_side(t->quick, t->channel);

        pthread_mutex_lock(&r->lock); /* master_runs_lost() looks */
        r->calls[i].side = side;
        pthread_mutex_unlock(&r->lock);
        if (side && r->exchange)
            exchange_push(r->exchange, t->name, quick_side_lane(side));
        all = all && (side || p->plan);
        between = between || p->between;
    }
    r->relays = all && between;
    if (r->relays)
        exchange_relay_hold(r->exchange);
}

void master_part_started(struct master_run *r)
{
    if (r->relays)
        exchange_relay_go(r->exchange);
}

void master_part_flush(struct master_run *r)
{
    for (int i = 0; r->calls && i < r->c->count; i++)
        if (r->calls[i].side)
            lane_flush(quick_side_lane(r->calls[i].side));
}

/* ---- the end ---- */

static void cleaned(const struct rpc_reply *reply, void *arg)
{
    (void)reply;
    (void)arg;
}

void master_part_cleanup(struct master_run *r, int part)
{
    const struct compiled_part *p = &r->c->parts[part];
    struct quick_side *side = r->calls ? r->calls[part].side : NULL;
    struct rpc_msg m;

    if (p->task == r->ms->own_task || (side && !must_keep(r, part)))
        return; /* nobody else knows of the step there, and it has ended */
    if (side) {
        quick_cleanup(side, r->step_id);
        return;
    }
    rpc_msg_init(&m);
    message_put_uint(&m, 1, (uint64_t)r->step_id);
    rpc_client_call_unref(rpc_channel_call(
        r->ms->tasks[p->task].channel,
        &(struct rpc_request){ .path = "/tensorflow.WorkerService/CleanupGraph",
                               .msg = &m,
                               .done = cleaned }));
}
