#include "server/master_run.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "server/reply.h"
#include "server/stats.h"
#include "tensor/proto.h"

#define STEP_ID_MASK ((1ull << 57) - 1)
#define FEEDS_FEW    16

struct master_run *master_run_ref(struct master_run *r)
{
    atomic_fetch_add(&r->refs, 1);
    return r;
}

void master_run_unref(struct master_run *r)
{
    if (atomic_fetch_sub(&r->refs, 1) != 1)
        return;
    for (int i = 0; r->rets && i < r->c->want.fetch_count; i++)
        tensor_unref(&r->rets[i].t);
    for (int i = 0; r->calls && i < r->c->count; i++)
        master_part_done(&r->calls[i]);
    mem_give(r->rets);
    mem_give(r->calls);
    mem_free(r->derived);
    root_errors_done(&r->roots);
    master_partial_free(r->partial);
    if (r->exchange)
        exchange_unref(r->exchange);
    compiled_unref(r->c);
    master_session_unref(r->ms);
    cancel_done(&r->cancel);
    pb_out_done(&r->stats);
    run_step_free(&r->q);
    pthread_mutex_destroy(&r->lock);
    mem_give(r);
}

struct master_run *master_run_new(struct master_session *ms,
                                  struct rpc_call *call)
{
    struct master_run *r = MEM_TAKE(struct master_run);

    atomic_init(&r->refs, 1);
    r->ms = master_session_ref(ms);
    r->call = call;
    r->step_id = (int64_t)(rng_u64() & STEP_ID_MASK);
    cancel_init(&r->cancel);
    pthread_mutex_init(&r->lock, NULL);
    pb_out_init(&r->stats);
    return r;
}

/* ---- the session's list of runs ---- */

/* False when the session is closed. */
bool master_run_enter(struct master_run *r)
{
    struct master_session *ms = r->ms;
    bool open;

    pthread_mutex_lock(&ms->lock);
    open = !ms->closed;
    if (open) {
        r->next = ms->runs;
        if (r->next)
            r->next->prev = r;
        ms->runs = master_run_ref(r);
    }
    pthread_mutex_unlock(&ms->lock);
    return open;
}

static void leave(struct master_run *r)
{
    struct master_session *ms = r->ms;
    void (*idle)(void *arg) = NULL;

    pthread_mutex_lock(&ms->lock);
    if (r->prev)
        r->prev->next = r->next;
    else
        ms->runs = r->next;
    if (r->next)
        r->next->prev = r->prev;
    if (ms->closed && !ms->runs) {
        idle = ms->idle;
        ms->idle = NULL;
    }
    pthread_mutex_unlock(&ms->lock);
    if (idle)
        idle(ms->idle_arg);
    master_run_unref(r);
}

/* ---- answers ---- */

static void answer_error(struct master_run *r, const struct status *st)
{
    struct rpc_msg m;

    if (r->over) {
        if (st != &r->st)
            status_copy(&r->st, st);
        r->over(r);
        return;
    }
    if (!r->store_errors) {
        reply_fail(r->call, st);
        return;
    }
    rpc_msg_init(&m);
    run_step_put_error(&m, st);
    rpc_call_reply(r->call, &m);
}

static void put_metadata(struct master_run *r, struct rpc_msg *m)
{
    struct pb_out o;

    if (!r->stats.len && !r->graphs)
        return;
    pb_out_init(&o);
    pb_put_raw(&o, r->stats.data, r->stats.len);
    if (r->graphs)
        pb_put_raw(&o, r->c->graphs->data, r->c->graphs->len);
    message_put_bytes(m, 2, o.data, o.len);
    pb_out_done(&o);
}

/* The tensor of a fetch was never made: its node is dead. */
static void fail_dead(struct master_run *r, int i)
{
    const struct part_name *name = &r->c->want.fetches[i];
    const char *device = r->ms->local->device;

    status_set(&r->st, MST_INTERNAL,
               "From %s:\nFailed to fetch outputs for step %lld. (Original "
               "error message: The tensor returned for "
               "%s;%016llx;%s;%.*s;0:0 was not valid.)",
               r->ms->local->task, (long long)r->step_id, device,
               (unsigned long long)worker_incarnation(r->ms->worker), device,
               (int)MIN(name->len, 300), name->text);
}

static void answer(struct master_run *r)
{
    const struct part_want *want = &r->c->want;
    struct rpc_msg m;

    for (int i = 0; i < want->fetch_count && !r->st.code; i++)
        if (!r->rets || !tensor_set(&r->rets[i].t))
            fail_dead(r, i);
    if (r->st.code) {
        answer_error(r, &r->st);
        return;
    }
    if (r->over) {
        r->over(r);
        return;
    }
    rpc_msg_init(&m);
    for (int i = 0; i < want->fetch_count; i++) {
        struct message_text name = { want->fetches[i].text,
                                     want->fetches[i].len };

        if (r->callable)
            run_callable_put_fetch(&m, &r->rets[i].t);
        else
            run_graph_put_recv(&m, name, &r->rets[i].t);
    }
    put_metadata(r, &m);
    rpc_call_reply(r->call, &m);
}

/* ---- the end ---- */

static void cleanup(struct master_run *r)
{
    struct status st = STATUS_INIT;

    if (!r->exchange && !r->calls && !r->partial)
        return; /* nobody but this task knows of it */
    for (int i = 0; i < r->c->count; i++)
        master_part_cleanup(r, i);
    if (r->exchange) {
        status_set(&st, MST_ABORTED, "Cleanup %lld", (long long)r->step_id);
        steps_cleanup(worker_steps(r->ms->worker), r->step_id, &st);
    }
}

void master_run_settle(struct master_run *r)
{
    if (atomic_fetch_sub(&r->left, 1) != 1)
        return;
    pthread_mutex_lock(&r->lock);
    if (!r->st.code && r->derived)
        status_copy(&r->st, r->derived);
    root_errors_join(&r->roots, &r->st);
    r->ended = true;
    pthread_mutex_unlock(&r->lock);
    if (r->partial)
        master_partial_over(r);
    else
        answer(r);
    cleanup(r);
    leave(r);
}

/* ---- failure ---- */

/* All parts are told to stop. Once. */
static void cancel_parts(struct master_run *r, const struct status *st)
{
    struct part_call *calls = NULL;
    struct step *s = NULL;

    pthread_mutex_lock(&r->lock);
    if (r->cancelled) {
        pthread_mutex_unlock(&r->lock);
        return;
    }
    r->cancelled = true;
    s = r->step;
    if (s)
        step_hold(s);
    if (r->calls) {
        calls = mem_array((size_t)r->c->count, sizeof(*calls));
        for (int i = 0; i < r->c->count; i++)
            master_part_copy(&calls[i], &r->calls[i]);
    }
    pthread_mutex_unlock(&r->lock);
    if (s) {
        step_fail(s, st);
        step_drop(s);
    }
    for (int i = 0; calls && i < r->c->count; i++) {
        master_part_cancel(&calls[i]);
        master_part_done(&calls[i]);
    }
    mem_free(calls);
}

/*
 * Whether the part failed because of another: at one of the receives that were
 * put between them, with an error that the other will report itself. What the
 * transport says (a task is gone, or another one now) is nobody else's to tell,
 * nor that a value could not be read: but where it was to be read first.
 */
static bool is_derived(const struct status *st)
{
    const char *mark = NULL, *at = st->msg, *tail;
    int marks = 0;

    if (st->code == MST_UNAVAILABLE || st->code == MST_ABORTED ||
        st->code == MST_CANCELLED || st->code == MST_DEADLINE_EXCEEDED)
        return false;
    for (; (at = strstr(at, "[[{{node ")) != NULL; marks++)
        mark = at++;
    if (st->code == MST_INTERNAL && marks == 1 &&
        !strncmp(st->msg, MESSAGE_UNPARSABLE, strlen(MESSAGE_UNPARSABLE)))
        return false;
    tail = mark ? strstr(mark, "}}]]") : NULL;
    while (tail && tail > mark && tail[-1] >= '0' && tail[-1] <= '9')
        tail--;
    return tail && tail - mark > 3 && !memcmp(tail - 3, "/_R", 3);
}

/*
 * A part failed. The first to do so on its own stops all others; what has
 * failed on its own by then is told too. Not what fails because it was stopped,
 * nor what happens after the client has given up.
 */
void master_run_part_failed(struct master_run *r, int task,
                            const struct status *st)
{
    const char *name = r->ms->tasks[task].name;
    bool stopped = false;

    pthread_mutex_lock(&r->lock);
    if (r->ended) {
        /* A lane was lost that it does not need any more. */
    } else if (is_derived(st) && r->c->count > 1) {
        if (!r->derived && !r->st.code) {
            r->derived = MEM_NEW(struct status);
            status_set(r->derived, st->code, "From %s:\n%s", name, st->msg);
        }
    } else if (!r->st.code) {
        root_errors_add(&r->roots, name, st);
        root_errors_join(&r->roots, &r->st);
        stopped = true;
    } else if (r->roots.count && st->code != MST_CANCELLED) {
        root_errors_add(&r->roots, name, st);
    }
    pthread_mutex_unlock(&r->lock);
    if (!stopped)
        return;
    cancel_parts(r, st);
    if (r->partial)
        master_partial_release(r);
}

/* The client or the session's end stops the run. */
void master_run_cancel(struct master_run *r, enum mst_code code,
                       const char *text)
{
    struct status st = STATUS_INIT;
    bool ended;

    status_set(&st, code, "%s", text);
    pthread_mutex_lock(&r->lock);
    ended = r->ended;
    if (!ended && !r->st.code)
        status_copy(&r->st, &st);
    pthread_mutex_unlock(&r->lock);
    if (ended)
        return;
    cancel_parts(r, &st);
    if (r->partial)
        master_partial_release(r);
}

static void call_cancelled(void *arg)
{
    master_run_cancel(arg, MST_CANCELLED, "RPC Request was cancelled");
}

static void call_over(void *arg)
{
    struct master_run *r = arg;

    loop_timer_del(rpc_call_loop(r->call), &r->timer);
    master_run_unref(r);
}

static void time_up(struct loop_timer *timer)
{
    struct master_run *r = CONTAINER(timer, struct master_run, timer);

    master_run_cancel(r, MST_DEADLINE_EXCEEDED,
                      "Timed out waiting for notification");
}

/* A client that has a timeout gives up by itself; one that the server was
 * given holds for all its sessions. In the call's start(). */
static void set_timeout(struct master_run *r, int64_t own_ms)
{
    int64_t ms = own_ms > 0 ? own_ms : r->ms->timeout_ms;
    struct loop *loop = rpc_call_loop(r->call);

    if (ms <= 0 || ms > INT64_MAX / 2000000)
        return;
    r->timer.fire = time_up;
    loop_timer_set(loop, &r->timer, loop_now_ns(loop) + (uint64_t)ms * 1000000);
}

/* ---- the part of this task ---- */

static void step_failed(void *arg, const struct status *st)
{
    struct master_run *r = arg;

    if (r->exchange)
        exchange_abort(r->exchange, st, true);
    cancel_all(&r->cancel);
}

static void step_done(void *arg, struct step *s, const struct status *st)
{
    struct master_run *r = arg;
    const struct step_stat *stats;
    int count;

    stats = step_stats(s, &count);
    pthread_mutex_lock(&r->lock);
    r->step = NULL;
    if (count)
        stats_put(&r->stats, 1, r->ms->local->device, stats, count);
    pthread_mutex_unlock(&r->lock);
    if (st->code) {
        master_run_part_failed(r, r->ms->own_task, st);
    } else if (r->rets) {
        struct op_value *rets = step_results(s);

        for (int i = 0; i < r->c->want.fetch_count; i++) {
            r->rets[i] = rets[i];
            rets[i] = (struct op_value){ 0 };
        }
    }
    master_run_settle(r);
    master_run_unref(r);
}

/* The step is made, but does not run yet. args are taken. */
static struct step *prepare_here(struct master_run *r, struct plan *plan,
                                 struct op_value *args)
{
    bool fetches = r->c->want.fetch_count && !r->c->want.partial;
    struct step_opts opts = {
        .env = { .id = r->step_id,
                 .cancel = &r->cancel,
                 .rendezvous =
                     r->exchange ? exchange_rendezvous(r->exchange) : NULL },
        .record = r->trace,
        .args = args,
        .arg_count = r->c->want.partial ? 0 : r->c->want.feed_count,
        .failed = step_failed,
        .done = step_done,
        .arg = r
    };

    if (fetches)
        r->rets = mem_take((size_t)r->c->want.fetch_count * sizeof(*r->rets));
    return step_new(plan, &opts);
}

static void start_here(struct master_run *r, struct step *s)
{
    struct status st = STATUS_INIT;
    bool cancelled;

    master_run_ref(r);
    step_hold(s);
    pthread_mutex_lock(&r->lock);
    cancelled = r->cancelled;
    r->step = s;
    status_copy(&st, &r->st);
    pthread_mutex_unlock(&r->lock);
    if (cancelled)
        step_fail(s, &st);
    step_run(s);
    step_drop(s);
}

/* ---- beginning ---- */

enum mst_code master_run_bind(struct master_run *r, struct status *st)
{
    bool transfers = r->c->want.partial;

    for (int i = 0; i < r->c->count; i++)
        transfers |= r->c->parts[i].between ||
                     (r->c->parts[i].transfers && r->c->parts[i].plan);
    if (!transfers)
        return MST_OK;
    r->exchange = steps_get(worker_steps(r->ms->worker), r->step_id);
    return exchange_bind(r->exchange, r->ms->local->task, r->ms->local->peers,
                         r->ms->local, st);
}

/* The run is in the session's list; it ends by master_run_settle(). */
void master_run_start(struct master_run *r, struct op_value *args)
{
    struct step *here = NULL;

    /* A partial run also waits for its last call. */
    atomic_init(&r->left,
                r->c->count + 1 + (r->partial && !r->partial->released));
    if (r->c->count > 1 || !r->c->count || !r->c->parts[0].plan) {
        struct part_call *calls =
            mem_take((size_t)r->c->count * sizeof(*calls));

        pthread_mutex_lock(&r->lock);
        r->calls = calls;
        pthread_mutex_unlock(&r->lock);
        master_part_choose(r);
    }
    for (int i = 0; i < r->c->count; i++)
        if (r->c->parts[i].plan)
            here = prepare_here(r, r->c->parts[i].plan, args);
        else
            master_part_start(r, i);
    master_part_started(r);
    if (here)
        start_here(r, here);
    master_part_flush(r); /* with what the part here had to send at once */
    master_run_settle(r);
}

static enum mst_code bad_feed_type(struct master_run *r, int i, int got,
                                   struct status *st)
{
    const struct part_name *name = &r->c->want.feeds[i];

    return status_set(st, MST_INVALID_ARGUMENT,
                      "Tensor %.*s was fed a value of type %s, it is of type "
                      "%s",
                      (int)MIN(name->len, 200), name->text, dtype_name(got),
                      dtype_name(r->c->feed_types[i]));
}

/* A tensor that a client feeds. */
enum mst_code master_run_feed(struct master_run *r, int i,
                              const struct message_named *n,
                              struct buffer *owner, struct tensor *ret,
                              struct status *st)
{
    enum mst_code rc;

    if (!n->tensor)
        return status_set(st, MST_INVALID_ARGUMENT, "A feed has no value");
    rc = tensor_from_proto(ret, n->tensor, n->len, owner, st);
    if (!rc && ret->dtype != r->c->feed_types[i]) {
        rc = bad_feed_type(r, i, ret->dtype, st);
        tensor_unref(ret);
    }
    return rc;
}

static void refuse(struct master_run *r, const struct status *st)
{
    answer_error(r, st);
    master_run_unref(r);
}

/* A tensor of a client in this process. */
static enum mst_code feed_direct(struct master_run *r, int i,
                                 const struct tensor *feed, struct tensor *ret,
                                 struct status *st)
{
    if (feed->dtype != r->c->feed_types[i])
        return bad_feed_type(r, i, feed->dtype, st);
    *ret = tensor_ref(feed);
    return MST_OK;
}

/* Where a run's feeds come from: a message, or tensors. */
struct feeds {
    const struct message_named *named;
    struct buffer *owner;
    const struct tensor *tensors;
};

/* Everything is there: the run begins. Takes the caller's reference. */
static void begin(struct master_run *r, const struct feeds *from)
{
    struct op_value few[FEEDS_FEW] = { 0 };
    int count = r->c->want.feed_count;
    struct op_value *args =
        count > FEEDS_FEW ? mem_take((size_t)count * sizeof(*args)) : few;
    struct status st = STATUS_INIT;
    enum mst_code rc = MST_OK;

    for (int i = 0; i < count && !rc; i++)
        rc = from->tensors
                 ? feed_direct(r, i, &from->tensors[i], &args[i].t, &st)
                 : master_run_feed(r, i, &from->named[i], from->owner,
                                   &args[i].t, &st);
    if (!rc)
        rc = master_run_bind(r, &st);
    if (!rc && !master_run_enter(r))
        rc = status_set(&st, MST_FAILED_PRECONDITION, MASTER_CLOSED_TEXT);
    if (rc) {
        for (int i = 0; i < count; i++)
            tensor_unref(&args[i].t);
        cleanup(r);
        refuse(r, &st);
    } else {
        master_run_start(r, args);
        master_run_unref(r);
    }
    if (args != few)
        mem_give(args);
}

static void begin_compiled(struct compile_wait *w, struct compiled *c,
                           const struct status *st)
{
    struct master_run *r = CONTAINER(w, struct master_run, wait);

    r->c = c;
    if (c)
        begin(r, &(struct feeds){ .named = r->q.feeds,
                                  .owner = rpc_call_request(r->call)->owner });
    else
        refuse(r, st);
}

struct compiled *master_compile(struct master_session *ms,
                                const struct run_step_request *q, bool partial,
                                struct compile_wait *w)
{
    struct part_name *names = mem_take((size_t)q->feed_count * sizeof(*names));
    struct compiled *c;

    for (int i = 0; i < q->feed_count; i++)
        names[i] =
            (struct part_name){ q->feeds[i].name.data, q->feeds[i].name.len };
    c = compiled_get(ms,
                     &(struct part_want){ .feeds = names,
                                          .fetches = q->fetches,
                                          .targets = q->targets,
                                          .feed_count = q->feed_count,
                                          .fetch_count = q->fetch_count,
                                          .target_count = q->target_count,
                                          .links = q->links,
                                          .link_count = q->link_count,
                                          .partial = partial,
                                          .keep = q->partition_graphs },
                     w);
    mem_give(names);
    return c;
}

void master_run_step(struct master_session *ms, struct rpc_call *call,
                     struct run_step_request *q)
{
    struct master_run *r;
    struct compiled *c;

    if (q->partial_handle.len) {
        master_partial_step(ms, call, q);
        return;
    }
    r = master_run_new(ms, call);
    r->q = *q; /* with its memory */
    r->store_errors = q->store_errors;
    r->trace = q->trace;
    r->graphs = q->partition_graphs;
    r->wait.done = begin_compiled;
    rpc_call_hooks(call, call_cancelled, call_over, master_run_ref(r));
    set_timeout(r, q->timeout_ms);
    c = master_compile(ms, q, false, &r->wait);
    if (c)
        begin_compiled(&r->wait, c, NULL);
}

void master_run_callable(struct master_session *ms, struct compiled *c,
                         struct rpc_call *call,
                         const struct run_callable_request *q)
{
    struct master_run *r = master_run_new(ms, call);
    struct message_named *feeds =
        mem_take((size_t)c->want.feed_count * sizeof(*feeds));
    size_t at = 0;

    r->c = compiled_ref(c);
    r->callable = true;
    rpc_call_hooks(call, call_cancelled, call_over, master_run_ref(r));
    set_timeout(r, 0);
    for (int i = 0; i < c->want.feed_count; i++)
        (void)run_callable_next(q, &at, &feeds[i]);
    begin(r, &(struct feeds){ .named = feeds,
                              .owner = rpc_call_request(call)->owner });
    mem_give(feeds);
}

struct master_run *master_run_direct(struct master_session *ms,
                                     struct compiled *c,
                                     const struct tensor *feeds,
                                     void (*over)(struct master_run *r),
                                     void *arg)
{
    struct master_run *r = master_run_new(ms, NULL);

    r->c = compiled_ref(c);
    r->over = over;
    r->over_arg = arg;
    master_run_ref(r);
    begin(r, &(struct feeds){ .tensors = feeds });
    return r;
}

/* ---- all runs of a session ---- */

/* Under ms->lock: the runs, each with a reference. */
static struct master_run **list_runs(struct master_session *ms, int *ret_count)
{
    struct master_run **runs;
    int count = 0, n = 0;

    for (struct master_run *r = ms->runs; r; r = r->next)
        count++;
    runs = mem_array((size_t)count, sizeof(*runs));
    for (struct master_run *r = ms->runs; r; r = r->next)
        runs[n++] = master_run_ref(r);
    *ret_count = count;
    return runs;
}

/* The part that took the side, unless the run has failed already; -1: none. */
static int part_of_side(struct master_run *r, const struct quick_side *side)
{
    int found = -1;

    pthread_mutex_lock(&r->lock);
    for (int i = 0; r->calls && i < r->c->count && !r->st.code; i++)
        if (r->calls[i].side == side)
            found = i;
    pthread_mutex_unlock(&r->lock);
    return found;
}

void master_runs_lost(struct master_session *ms, const struct quick_side *side,
                      const char *why)
{
    struct master_run **runs;
    struct status st = STATUS_INIT;
    int count;

    status_set(&st, MST_UNAVAILABLE, "%s", why);
    pthread_mutex_lock(&ms->lock);
    runs = list_runs(ms, &count);
    pthread_mutex_unlock(&ms->lock);
    for (int i = 0; i < count; i++) {
        int part = part_of_side(runs[i], side);

        if (part >= 0)
            master_run_part_failed(runs[i], runs[i]->c->parts[part].task, &st);
        master_run_unref(runs[i]);
    }
    mem_free(runs);
}

bool master_close_steps(struct master_session *ms, void (*idle)(void *arg),
                        void *arg)
{
    struct master_run **runs;
    int count;
    bool first, now;

    pthread_mutex_lock(&ms->lock);
    first = !ms->closed;
    ms->closed = true;
    runs = list_runs(ms, &count);
    now = first && !count;
    if (first && count) {
        ms->idle = idle;
        ms->idle_arg = arg;
    }
    pthread_mutex_unlock(&ms->lock);
    for (int i = 0; i < count; i++) {
        master_run_cancel(runs[i], MST_CANCELLED,
                          "Step was cancelled by an explicit call to "
                          "`Session::Close()`.");
        master_partial_abandon(runs[i]);
        master_run_unref(runs[i]);
    }
    mem_free(runs);
    if (now)
        idle(arg);
    return first;
}
