#include "server/run.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "exec/step.h"
#include "server/stats.h"
#include "tensor/proto.h"

#define CANCEL_GRACE_NS 1000000000ull

/* The plan under way. Counted: by the step until it is done, by each call. */
struct run {
    atomic_int refs;
    struct run_table *table;
    struct session *session;
    struct plan *plan;
    struct exchange *exchange;
    struct cancel cancel;
    pthread_mutex_t lock;
    struct step *step;        /* under lock; NULL once it is done */
    bool over;                /* under lock */
    struct status st;         /* under lock: how it ended */
    struct pb_out stats;      /* under lock: a StepStats, if it was asked for */
    struct run_call *waiting; /* under lock: calls that want to know the end */
    bool partial;
    atomic_bool gave_up; /* the peer did */
};

/* One request. Its results are collected, then it is answered. */
struct run_call {
    atomic_int refs; /* the hooks of the call, and whoever will answer it */
    struct run_table *table;
    struct run *run;
    struct rpc_call *call; /* NULL: it came over a lane */
    struct lane *lane;
    bool relay; /* all other tasks are reached by it */
    run_answered_fn *answered;
    void *arg;
    int64_t step_id;
    struct loop *loop;
    struct loop_timer grace;
    struct run_call *next; /* in run->waiting */
    bool store_errors;
    atomic_int left; /* what the answer still waits for */
    pthread_mutex_t lock;
    struct status st; /* under lock: the first error */
    int fetch_count;
    struct fetch {
        struct rdv_recv recv;
        struct run_call *rc;
        struct message_text key;
        struct status st;
    } fetch[];
};

static void run_unref(struct run *r)
{
    if (atomic_fetch_sub(&r->refs, 1) != 1)
        return;
    exchange_unref(r->exchange);
    plan_unref(r->plan);
    session_unref(r->session);
    cancel_done(&r->cancel);
    pb_out_done(&r->stats);
    pthread_mutex_destroy(&r->lock);
    mem_give(r);
}

static struct run *run_ref(struct run *r)
{
    atomic_fetch_add(&r->refs, 1);
    return r;
}

/* ---- answering ---- */

struct run_call *run_call_ref(struct run_call *c)
{
    atomic_fetch_add(&c->refs, 1);
    return c;
}

void run_call_unref(struct run_call *c)
{
    if (atomic_fetch_sub(&c->refs, 1) != 1)
        return;
    for (int i = 0; i < c->fetch_count; i++)
        tensor_unref(&c->fetch[i].recv.value);
    pthread_mutex_destroy(&c->lock);
    if (c->run)
        run_unref(c->run);
    lane_unref(c->lane);
    mem_give(c);
}

static void call_failed(struct run_call *c, const struct status *st)
{
    pthread_mutex_lock(&c->lock);
    if (!c->st.code)
        status_copy(&c->st, st);
    pthread_mutex_unlock(&c->lock);
}

static void answer(struct run_call *c)
{
    struct rpc_msg m;

    if (!c->call) {
        c->answered(c->arg, c->step_id, &c->st);
        run_call_unref(c);
        return;
    }
    if (c->st.code && !c->store_errors) {
        rpc_call_fail(c->call, &c->st,
                      c->st.worker_restarted ? message_restarted : NULL,
                      c->st.worker_restarted ? message_restarted_len : 0);
        run_call_unref(c);
        return;
    }
    rpc_msg_init(&m);
    if (c->st.code) {
        run_graph_put_error(&m, &c->st);
    } else {
        for (int i = 0; i < c->fetch_count; i++)
            run_graph_put_recv(&m, c->fetch[i].key, &c->fetch[i].recv.value);
    }
    if (c->run && c->run->stats.len)
        rpc_msg_copy(&m, c->run->stats.data, c->run->stats.len);
    rpc_call_reply(c->call, &m);
    run_call_unref(c);
}

/* One thing less to wait for. */
static void settle(struct run_call *c)
{
    if (atomic_fetch_sub(&c->left, 1) == 1)
        answer(c);
}

/* ---- fetches ---- */

/* As TensorFlow words it. */
static void wrap_failure(const struct run_call *c, struct status *st)
{
    char why[1024];

    snprintf(why, sizeof(why), "%s", st->msg);
    status_set(st, MST_INTERNAL,
               "Failed to fetch outputs for step %lld. (Original error "
               "message: %s)",
               (long long)exchange_step_id(c->run->exchange), why);
}

static void fetched(struct rdv_recv *recv, enum mst_code code)
{
    struct fetch *f = CONTAINER(recv, struct fetch, recv);
    struct run_call *c = f->rc;

    if (!code && recv->dead)
        code = status_set(&f->st, MST_INTERNAL,
                          "The tensor returned for %.*s was not valid.",
                          (int)MIN(f->key.len, 500), f->key.data);
    if (code) {
        if (!c->run->partial)
            wrap_failure(c, &f->st);
        call_failed(c, &f->st);
    }
    settle(c);
}

static void start_fetches(struct run_call *c)
{
    struct rendezvous *r = exchange_rendezvous(c->run->exchange);

    for (int i = 0; i < c->fetch_count; i++) {
        struct fetch *f = &c->fetch[i];
        struct rdv_key key;

        f->recv.done = fetched;
        f->recv.st = &f->st;
        if (!rdv_key_parse(f->key.data, f->key.len, &key)) {
            status_set(&f->st, MST_INVALID_ARGUMENT,
                       "Invalid  rendezvous key: %.*s",
                       (int)MIN(f->key.len, 500), f->key.data);
            fetched(&f->recv, MST_INVALID_ARGUMENT);
        } else {
            r->ops->recv(r, &key, &f->recv);
        }
    }
}

/* ---- the plan's end ---- */

static void on_failed(void *arg, const struct status *st)
{
    struct run *r = arg;

    exchange_abort(r->exchange, st, !atomic_load(&r->gave_up));
    cancel_all(&r->cancel);
}

static void on_done(void *arg, struct step *s, const struct status *st)
{
    struct run *r = arg;
    struct run_call *list;
    const struct step_stat *stats;
    int count;

    stats = step_stats(s, &count);
    pthread_mutex_lock(&r->lock);
    r->step = NULL;
    r->over = true;
    status_copy(&r->st, st);
    if (count)
        stats_put(&r->stats, 2, r->session->device, stats, count);
    list = r->waiting;
    r->waiting = NULL;
    pthread_mutex_unlock(&r->lock);
    while (list) {
        struct run_call *c = list;

        list = c->next;
        if (st->code)
            call_failed(c, st);
        else if (!r->partial)
            start_fetches(c);
        if (st->code && !r->partial)
            atomic_fetch_sub(&c->left, c->fetch_count);
        settle(c);
    }
    run_unref(r);
}

/* The call wants to hear of the end; perhaps it has been already. */
static void await_end(struct run *r, struct run_call *c)
{
    bool over;

    pthread_mutex_lock(&r->lock);
    over = r->over;
    if (!over) {
        c->next = r->waiting;
        r->waiting = c;
    }
    pthread_mutex_unlock(&r->lock);
    if (!over)
        return;
    if (r->st.code)
        call_failed(c, &r->st);
    settle(c);
}

/* ---- giving up ---- */

static void fail_run(struct run *r, const struct status *st)
{
    struct step *s;

    pthread_mutex_lock(&r->lock);
    s = r->step;
    if (s)
        step_hold(s);
    pthread_mutex_unlock(&r->lock);
    if (!s)
        return;
    step_fail(s, st);
    step_drop(s);
}

static void grace_over(struct loop_timer *timer)
{
    struct run_call *c = CONTAINER(timer, struct run_call, grace);
    struct run *r = c->run;
    struct run_table *t = r->table;
    struct status st = STATUS_INIT;

    status_set(&st, MST_ABORTED, "Step %lld cancelled.  Cancelling rendezvous.",
               (long long)exchange_step_id(r->exchange));
    steps_cleanup(t->steps, exchange_step_id(r->exchange), &st);
    run_call_unref(c);
    pthread_mutex_lock(&t->lock);
    t->graces--;
    pthread_cond_signal(&t->idle);
    pthread_mutex_unlock(&t->lock);
}

void run_call_cancel(struct run_call *c)
{
    struct status st = STATUS_INIT;

    status_set(&st, MST_CANCELLED, "Step %lld cancelled.",
               (long long)exchange_step_id(c->run->exchange));
    atomic_fetch_add(&c->refs, 1);
    pthread_mutex_lock(&c->run->table->lock);
    c->run->table->graces++;
    pthread_mutex_unlock(&c->run->table->lock);
    c->grace.fire = grace_over;
    loop_timer_set(c->loop, &c->grace, loop_now_ns(c->loop) + CANCEL_GRACE_NS);
    atomic_store(&c->run->gave_up, true);
    fail_run(c->run, &st);
}

static void call_cancelled(void *arg)
{
    run_call_cancel(arg);
}

static void call_over(void *arg)
{
    run_call_unref(arg);
}

/* ---- beginning ---- */

static enum mst_code feed(struct run *r, const struct run_graph_request *q,
                          struct buffer *owner, struct status *st)
{
    struct rendezvous *rdv = exchange_rendezvous(r->exchange);
    struct message_named n;
    size_t at = 0;

    while (run_graph_next_send(q, &at, &n)) {
        struct tensor t = { 0 };
        struct rdv_key key;
        enum mst_code rc;

        if (!rdv_key_parse(n.name.data, n.name.len, &key))
            return status_set(
                st, MST_INVALID_ARGUMENT, "Invalid  rendezvous key: %.*s",
                (int)MIN(n.name.len, 500), n.name.data ? n.name.data : "");
        rc = tensor_from_proto(&t, n.tensor, n.len, owner, st);
        if (!rc)
            rc = rdv->ops->send(rdv, &key, &t, false, st);
        tensor_unref(&t);
        if (rc)
            return rc;
    }
    return MST_OK;
}

static enum mst_code run_new(struct run_table *t,
                             const struct run_graph_request *q,
                             struct run **ret, struct status *st)
{
    struct run *r = MEM_TAKE(struct run);
    enum mst_code rc;

    atomic_init(&r->refs, 1);
    cancel_init(&r->cancel);
    pthread_mutex_init(&r->lock, NULL);
    pb_out_init(&r->stats);
    r->table = t;
    r->partial = q->is_partial;
    rc = sessions_find(t->sessions, q->session_handle,
                       q->create_worker_session_called, &r->session, st);
    if (!rc)
        rc = sessions_find_graph(t->sessions, r->session, q->graph_handle,
                                 &r->plan, st);
    if (!rc) {
        r->exchange = steps_get(t->steps, q->step_id);
        rc = exchange_bind(r->exchange, r->session->task, r->session->peers,
                           r->session, st);
    }
    if (rc)
        run_unref(r);
    else
        *ret = r;
    return rc;
}

static struct run_call *call_new(struct run_table *t, struct loop *loop,
                                 const struct run_graph_request *q)
{
    struct run_call *c =
        mem_take(sizeof(*c) + (size_t)q->recv_count * sizeof(c->fetch[0]));
    size_t at = 0;

    atomic_init(&c->refs, 1);
    pthread_mutex_init(&c->lock, NULL);
    c->table = t;
    c->loop = loop;
    c->step_id = q->step_id;
    c->store_errors = q->store_errors;
    while (c->fetch_count < q->recv_count &&
           run_graph_next_recv(q, &at, &c->fetch[c->fetch_count].key))
        c->fetch[c->fetch_count++].rc = c;
    return c;
}

static void start_plan(struct run *r, bool record)
{
    struct step_opts opts = { .env = { .id = exchange_step_id(r->exchange),
                                       .cancel = &r->cancel,
                                       .rendezvous =
                                           exchange_rendezvous(r->exchange) },
                              .record = record,
                              .failed = on_failed,
                              .done = on_done,
                              .arg = run_ref(r) };
    struct step *s = step_new(r->plan, &opts);

    pthread_mutex_lock(&r->lock);
    r->step = s;
    pthread_mutex_unlock(&r->lock);
    step_run(s);
}

/* The run of this partial request: the one under way, or a new one. */
static enum mst_code partial_run(struct run_table *t,
                                 const struct run_graph_request *q,
                                 struct run **ret, bool *ret_first,
                                 struct status *st)
{
    enum mst_code rc = MST_OK;
    struct run *r;

    pthread_mutex_lock(&t->lock);
    r = map_get_num(&t->partial, (uint64_t)q->step_id);
    *ret_first = !r;
    if (!r) {
        rc = run_new(t, q, &r, st);
        if (!rc)
            map_put_num(&t->partial, (uint64_t)q->step_id, run_ref(r));
    } else if (q->is_last_partial) {
        map_take_num(&t->partial, (uint64_t)q->step_id);
    } else {
        run_ref(r);
    }
    pthread_mutex_unlock(&t->lock);
    if (!rc)
        *ret = r;
    return rc;
}

static void refuse(struct run_call *c, const struct status *st)
{
    call_failed(c, st);
    atomic_store(&c->left, 1);
    settle(c);
}

void run_graph(struct run_table *t, struct rpc_call *call,
               const struct run_graph_request *q)
{
    struct run_call *c = call_new(t, rpc_call_loop(call), q);
    struct status st = STATUS_INIT;
    bool first = true, waits = !q->is_partial || q->is_last_partial;
    struct run *r;
    enum mst_code rc;

    c->call = call;
    rc = q->is_partial ? partial_run(t, q, &r, &first, &st)
                       : run_new(t, q, &r, &st);
    if (!rc) {
        c->run = r;
        rc = feed(r, q, rpc_call_request(call)->owner, &st);
    }
    if (rc) {
        refuse(c, &st);
        return;
    }
    atomic_store(&c->left, c->fetch_count + waits + 1);
    atomic_fetch_add(&c->refs, 1);
    rpc_call_hooks(call, call_cancelled, call_over, c);
    if (waits)
        await_end(r, c);
    if (q->is_partial)
        start_fetches(c);
    if (first)
        start_plan(r, q->record_timeline);
    settle(c);
}

struct run_call *run_call_new(struct run_table *t, struct lane *lane,
                              bool relay, const struct run_graph_request *q,
                              run_answered_fn *answered, void *arg)
{
    struct run_call *c = call_new(t, lane_loop(lane), q);

    c->lane = lane_ref(lane);
    c->relay = relay;
    c->answered = answered;
    c->arg = arg;
    return c;
}

void run_call_start(struct run_call *c, const struct run_graph_request *q)
{
    struct status st = STATUS_INIT;
    struct run *r;

    atomic_fetch_add(&c->refs, 1); /* for the answer */
    if (run_new(c->table, q, &r, &st)) {
        refuse(c, &st);
        return;
    }
    c->run = r;
    exchange_push(r->exchange, r->session->master_task, c->lane);
    if (c->relay)
        exchange_relay_by(r->exchange, c->lane);
    atomic_store(&c->left, 2);
    await_end(r, c);
    start_plan(r, q->record_timeline);
    settle(c);
}

void run_cleanup(struct run_table *t, int64_t step_id)
{
    struct status st = STATUS_INIT;
    struct run *r;

    pthread_mutex_lock(&t->lock);
    r = map_take_num(&t->partial, (uint64_t)step_id);
    pthread_mutex_unlock(&t->lock);
    if (!r)
        return;
    status_set(&st, MST_ABORTED, "Cleanup %lld", (long long)step_id);
    fail_run(r, &st);
    run_unref(r);
}

void run_table_init(struct run_table *t, struct steps *steps,
                    struct sessions *sessions)
{
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->idle, NULL);
    t->graces = 0;
    map_init(&t->partial);
    t->steps = steps;
    t->sessions = sessions;
}

void run_table_done(struct run_table *t)
{
    struct map_slot *s;
    size_t at = 0;

    pthread_mutex_lock(&t->lock);
    while (t->graces)
        pthread_cond_wait(&t->idle, &t->lock);
    pthread_mutex_unlock(&t->lock);
    while ((s = map_next(&t->partial, &at)))
        run_unref(s->value);
    map_done(&t->partial);
    pthread_cond_destroy(&t->idle);
    pthread_mutex_destroy(&t->lock);
}
