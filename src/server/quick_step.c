/*
 * Steps over a lane.
 *
 *   RUN      step id, flags, lengths, the handles of session and graph
 *   RAN      step id, code, flags, text
 *   PUSH     server/push.h
 *   PULL     step id, key
 *   CANCEL   step id
 *   CLEANUP  step id
 *
 * A frame about a step that is not known (any more) is late, not wrong: a push
 * after a failure, a cancel that crossed an answer.
 */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "server/push.h"
#include "server/quick_state.h"
#include "server/worker.h"

enum { RUN_KEEP = 1, RUN_RELAY = 2 };
enum { RAN_RESTARTED = 1 };

struct run_head {
    int64_t step_id;
    uint32_t flags, zero;
    uint32_t session_len, graph_len;
};

struct ran_head {
    int64_t step_id;
    uint32_t code, flags;
};

/* ---- as a master ---- */

/* A part that runs elsewhere. Counted: by its handle, and until done. */
struct quick_call {
    atomic_int refs;
    struct quick_side *side;
    int64_t step_id;
    void (*done)(const struct rpc_reply *reply, void *arg);
    void *arg;
    struct status st;
    struct loop_task end; /* when it cannot be told at once */
    atomic_bool cancelled;
};

struct quick_call *quick_call_ref(struct quick_call *c)
{
    atomic_fetch_add(&c->refs, 1);
    return c;
}

void quick_call_unref(struct quick_call *c)
{
    if (!c || atomic_fetch_sub(&c->refs, 1) != 1)
        return;
    quick_side_unref(c->side);
    mem_give(c);
}

/* On a loop, after it was taken out of the table. */
static void call_end(struct quick_call *c)
{
    struct rpc_reply reply = { .status = &c->st };

    if (c->st.worker_restarted) {
        reply.details = message_restarted;
        reply.details_len = message_restarted_len;
    }
    c->done(&reply, c->arg);
    quick_call_unref(c);
}

static void run_call_end(struct loop_task *task)
{
    call_end(CONTAINER(task, struct quick_call, end));
}

static void end_later(struct quick_call *c)
{
    c->end.run = run_call_end;
    loop_post(lane_loop(c->side->lane), &c->end);
}

static void send_short(struct lane *lane, enum quick_kind kind, int64_t step_id)
{
    lane_send(lane, &(struct lane_out){
                        .kind = kind,
                        .control = &(struct iovec){ &step_id, sizeof(step_id) },
                        .control_count = 1 });
    lane_flush(lane);
}

struct quick_call *
quick_run(struct quick_side *s, const struct quick_run *run,
          void (*done)(const struct rpc_reply *reply, void *arg), void *arg)
{
    struct run_head h = { .step_id = run->step_id,
                          .flags = (run->keep ? RUN_KEEP : 0) |
                                   (run->relay ? RUN_RELAY : 0),
                          .session_len = (uint32_t)strlen(run->session),
                          .graph_len = (uint32_t)strlen(run->graph) };
    struct iovec control[] = { { &h, sizeof(h) },
                               { (void *)run->session, h.session_len },
                               { (void *)run->graph, h.graph_len } };
    struct quick_call *c = MEM_TAKE(struct quick_call);
    bool there;

    atomic_init(&c->refs, 2);
    c->side = quick_side_ref(s);
    c->step_id = run->step_id;
    c->done = done;
    c->arg = arg;
    pthread_mutex_lock(&s->lock);
    there = !s->lost;
    if (there)
        map_put_num(&s->pending, (uint64_t)c->step_id, c);
    pthread_mutex_unlock(&s->lock);
    if (there) {
        lane_send(s->lane,
                  &(struct lane_out){ .kind = QUICK_RUN,
                                      .control = control,
                                      .control_count = COUNT(control) });
    } else {
        status_set(&c->st, MST_UNAVAILABLE, "Socket closed");
        end_later(c);
    }
    return c;
}

static struct quick_call *take_call(struct quick_side *s, int64_t step_id)
{
    struct quick_call *c;

    pthread_mutex_lock(&s->lock);
    c = map_take_num(&s->pending, (uint64_t)step_id);
    pthread_mutex_unlock(&s->lock);
    return c;
}

static void run_cancel(struct loop_task *task)
{
    struct quick_call *c = CONTAINER(task, struct quick_call, end);

    if (take_call(c->side, c->step_id)) {
        status_set(&c->st, MST_CANCELLED, "RPC Request was cancelled");
        call_end(c);
    }
    quick_call_unref(c);
}

/* An answer that is already there, in the turn under way, still counts. */
void quick_call_cancel(struct quick_call *c)
{
    bool there;

    pthread_mutex_lock(&c->side->lock);
    there = map_get_num(&c->side->pending, (uint64_t)c->step_id) == c;
    pthread_mutex_unlock(&c->side->lock);
    if (!there || atomic_exchange(&c->cancelled, true))
        return;
    send_short(c->side->lane, QUICK_CANCEL, c->step_id);
    quick_call_ref(c);
    c->end.run = run_cancel;
    loop_post(lane_loop(c->side->lane), &c->end);
}

void quick_cleanup(struct quick_side *s, int64_t step_id)
{
    send_short(s->lane, QUICK_CLEANUP, step_id);
}

static bool on_ran(struct quick_side *s, const struct lane_frame *f)
{
    struct quick_call *c;
    struct ran_head h;

    if (f->len < sizeof(h))
        return false;
    memcpy(&h, f->data, sizeof(h));
    c = take_call(s, h.step_id);
    if (!c)
        return true;
    if (h.code)
        status_set(&c->st,
                   h.code <= MST_UNAUTHENTICATED ? (enum mst_code)h.code
                                                 : MST_UNKNOWN,
                   "%.*s", (int)(f->len - sizeof(h)),
                   (const char *)f->data + sizeof(h));
    c->st.worker_restarted = h.flags & RAN_RESTARTED;
    call_end(c);
    return true;
}

/* ---- for a master ---- */

/* A step of theirs. */
struct asked {
    struct quick_side *side;
    struct run_call *run;
    bool keep;
};

static void count_running(struct quick *q, int delta)
{
    pthread_mutex_lock(&q->lock);
    q->running += delta;
    if (delta < 0 && q->stopping)
        pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
}

static void send_ran(struct quick_side *s, int64_t step_id,
                     const struct status *st)
{
    struct ran_head h = { .step_id = step_id,
                          .code = st->code,
                          .flags = st->worker_restarted ? RAN_RESTARTED : 0 };
    struct iovec control[] = { { &h, sizeof(h) },
                               { (void *)st->msg, strlen(st->msg) } };

    lane_send(s->lane, &(struct lane_out){ .kind = QUICK_RAN,
                                           .control = control,
                                           .control_count = st->code ? 2 : 1 });
    lane_flush(s->lane);
}

static void clean_up(struct quick_side *s, int64_t step_id)
{
    struct status st = STATUS_INIT;

    status_set(&st, MST_ABORTED, "Cleanup %lld", (long long)step_id);
    steps_cleanup(worker_steps(s->q->worker), step_id, &st);
}

static void answered(void *arg, int64_t step_id, const struct status *st)
{
    struct asked *a = arg;
    struct quick_side *s = a->side;
    bool keep;

    pthread_mutex_lock(&s->lock);
    map_take_num(&s->running, (uint64_t)step_id);
    keep = a->keep && !s->lost;
    if (keep)
        map_put_num(&s->kept, (uint64_t)step_id, s);
    pthread_mutex_unlock(&s->lock);
    if (!keep)
        clean_up(s, step_id);
    send_ran(s, step_id, st);
    run_call_unref(a->run);
    mem_give(a);
    count_running(s->q, -1);
    quick_side_unref(s);
}

/* UNAVAILABLE when the server stops, or the master is no member any more. */
static enum mst_code may_run(struct quick_side *s, struct status *st)
{
    struct quick *q = s->q;

    pthread_mutex_lock(&q->lock);
    if (q->stopping)
        status_set(st, MST_UNAVAILABLE, "The server is stopping");
    else if (s->retired)
        status_set(st, MST_UNAVAILABLE,
                   "No worker known as /job:%s/replica:0/task:%d", s->from.job,
                   s->from.task);
    else
        q->running++;
    pthread_mutex_unlock(&q->lock);
    return st->code;
}

/* The lane of one that is no member ends with the steps under way. */
static void refuse(struct quick_side *s, int64_t step_id,
                   const struct status *st)
{
    bool idle;

    send_ran(s, step_id, st);
    pthread_mutex_lock(&s->lock);
    idle = !s->running.count;
    pthread_mutex_unlock(&s->lock);
    if (idle)
        lane_shut(s->lane, st->msg);
}

static bool on_run(struct quick_side *s, const struct lane_frame *f)
{
    struct run_table *runs = worker_runs(s->q->worker);
    struct run_graph_request q = { .create_worker_session_called = true };
    struct status st = STATUS_INIT;
    struct run_head h;
    struct asked *a;
    bool twice;

    if (f->len < sizeof(h))
        return false;
    memcpy(&h, f->data, sizeof(h));
    if (f->len - sizeof(h) != (uint64_t)h.session_len + h.graph_len)
        return false;
    q.step_id = h.step_id;
    q.session_handle = (struct message_text){ (const char *)f->data + sizeof(h),
                                              h.session_len };
    q.graph_handle =
        (struct message_text){ q.session_handle.data + h.session_len,
                               h.graph_len };
    if (may_run(s, &st)) {
        refuse(s, h.step_id, &st);
        return true;
    }
    a = MEM_TAKE(struct asked);
    a->side = quick_side_ref(s);
    a->keep = h.flags & RUN_KEEP;
    a->run = run_call_new(runs, s->lane, h.flags & RUN_RELAY, &q, answered, a);
    pthread_mutex_lock(&s->lock);
    twice = map_get_num(&s->running, (uint64_t)h.step_id) != NULL;
    if (!twice)
        map_put_num(&s->running, (uint64_t)h.step_id, a);
    pthread_mutex_unlock(&s->lock);
    if (twice) {
        run_call_unref(a->run);
        mem_give(a);
        count_running(s->q, -1);
        quick_side_unref(s);
        return false;
    }
    worker_count_step(s->q->worker);
    run_call_start(a->run, &q);
    return true;
}

static bool read_step_id(const struct lane_frame *f, int64_t *ret)
{
    if (f->len != sizeof(*ret))
        return false;
    memcpy(ret, f->data, sizeof(*ret));
    return true;
}

/* Under lock: a run that is still to be answered, with a reference. */
static struct run_call *run_of(struct asked *a)
{
    return a ? run_call_ref(a->run) : NULL;
}

static bool on_cancel(struct quick_side *s, const struct lane_frame *f)
{
    struct run_call *c;
    int64_t step_id;

    if (!read_step_id(f, &step_id))
        return false;
    pthread_mutex_lock(&s->lock);
    c = run_of(map_get_num(&s->running, (uint64_t)step_id));
    pthread_mutex_unlock(&s->lock);
    if (c) {
        run_call_cancel(c);
        run_call_unref(c);
    }
    return true;
}

static bool on_cleanup(struct quick_side *s, const struct lane_frame *f)
{
    int64_t step_id;

    if (!read_step_id(f, &step_id))
        return false;
    pthread_mutex_lock(&s->lock);
    map_take_num(&s->kept, (uint64_t)step_id);
    pthread_mutex_unlock(&s->lock);
    clean_up(s, step_id);
    return true;
}

/* ---- both ---- */

static bool on_push(struct quick_side *s, struct lane_frame *f)
{
    struct exchange *x;
    struct push p;

    if (!push_read(f, &p))
        return false;
    x = steps_find(worker_steps(s->q->worker), p.step_id);
    if (x)
        exchange_pushed(x, &p.key, &p.value, p.dead);
    else
        tensor_unref(&p.value);
    exchange_unref(x);
    return true;
}

static bool on_pull(struct quick_side *s, const struct lane_frame *f)
{
    struct rdv_key key;
    struct exchange *x;
    int64_t step_id;

    if (f->len < sizeof(step_id) ||
        !rdv_key_parse((const char *)f->data + sizeof(step_id),
                       f->len - sizeof(step_id), &key))
        return false;
    memcpy(&step_id, f->data, sizeof(step_id));
    x = steps_find(worker_steps(s->q->worker), step_id);
    if (x)
        exchange_pull(x, &key, s->lane);
    exchange_unref(x);
    return true;
}

void quick_frame(struct lane *lane, struct lane_frame *f, void *arg)
{
    struct quick_side *s = arg;
    bool good = false;

    switch (f->kind) {
    case QUICK_HELLO:
        good = quick_hello(s, f);
        break;
    case QUICK_RUN:
        good = on_run(s, f);
        break;
    case QUICK_RAN:
        good = on_ran(s, f);
        break;
    case QUICK_PUSH:
        good = on_push(s, f);
        break;
    case QUICK_PULL:
        good = on_pull(s, f);
        break;
    case QUICK_CANCEL:
        good = on_cancel(s, f);
        break;
    case QUICK_CLEANUP:
        good = on_cleanup(s, f);
        break;
    }
    if (!good)
        lane_shut(lane, "the peer sent nonsense");
}

/* Under lock: any of a table, taken out; NULL when it is empty. */
static void *take_any(struct map *m)
{
    struct map_slot *slot;
    size_t at = 0;

    slot = map_next(m, &at);
    return slot ? map_take_num(m, slot->number) : NULL;
}

static void end_pending(struct quick_side *s, const char *why)
{
    for (;;) {
        struct quick_call *c;

        pthread_mutex_lock(&s->lock);
        s->lost = true;
        c = take_any(&s->pending);
        pthread_mutex_unlock(&s->lock);
        if (!c)
            return;
        status_set(&c->st, MST_UNAVAILABLE, "%s", why);
        call_end(c);
    }
}

/* Their master will not say any more that it is done with these steps. No
 * others come: the side is lost. */
static void clean_up_kept(struct quick_side *s)
{
    struct map_slot *slot;
    size_t at = 0;

    while ((slot = map_next(&s->kept, &at)))
        clean_up(s, (int64_t)slot->number);
}

void quick_side_ends(struct quick_side *s, const char *why)
{
    struct run_call **runs;
    struct map_slot *slot;
    size_t at = 0, n = 0;

    end_pending(s, why);
    pthread_mutex_lock(&s->lock);
    runs = mem_array(s->running.count, sizeof(*runs));
    while ((slot = map_next(&s->running, &at)))
        runs[n++] = run_of(slot->value);
    pthread_mutex_unlock(&s->lock);
    while (n) {
        run_call_cancel(runs[--n]);
        run_call_unref(runs[n]);
    }
    mem_free(runs);
    clean_up_kept(s);
    if (s->q->lost)
        s->q->lost(s->q->lost_arg, s, why);
}
