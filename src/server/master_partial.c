/*
 * Partial runs: one step that is fed and fetched in several calls. Its parts
 * begin with the first call; feeds and fetches of this task meet them in the
 * step's exchange. It ends when all parts have, and its last call was made.
 */
#include "server/master_run.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "server/reply.h"

void master_partial_free(struct master_partial *p)
{
    if (!p)
        return;
    mem_free(p->fed);
    mem_free(p->fetched);
    mem_free(p);
}

/* The last call of a partial run was made, or none will be. */
void master_partial_release(struct master_run *r)
{
    bool settles;

    pthread_mutex_lock(&r->lock);
    settles = !r->partial->released && r->partial->started;
    r->partial->released = true;
    pthread_mutex_unlock(&r->lock);
    if (settles)
        master_run_settle(r);
}

/* A partial run that never began has nothing that could end. */
void master_partial_abandon(struct master_run *r)
{
    bool begin;

    if (!r->partial)
        return;
    pthread_mutex_lock(&r->lock);
    begin = !r->partial->started;
    r->partial->started = true;
    pthread_mutex_unlock(&r->lock);
    if (begin)
        master_run_start(r, NULL);
}

struct partial_call {
    atomic_int refs; /* hooks, and what will answer it */
    atomic_int left;
    struct master_run *r;
    struct rpc_call *call;
    bool store_errors;
    pthread_mutex_t lock;
    struct status st;
    int count;
    struct partial_fetch {
        struct rdv_recv recv;
        struct partial_call *pc;
        struct status st;
        char *name;
    } fetch[];
};

static void partial_call_unref(struct partial_call *pc)
{
    if (atomic_fetch_sub(&pc->refs, 1) != 1)
        return;
    for (int i = 0; i < pc->count; i++) {
        tensor_unref(&pc->fetch[i].recv.value);
        mem_free(pc->fetch[i].name);
    }
    pthread_mutex_destroy(&pc->lock);
    master_run_unref(pc->r);
    mem_free(pc);
}

static void partial_call_failed(struct partial_call *pc,
                                const struct status *st)
{
    pthread_mutex_lock(&pc->lock);
    if (!pc->st.code)
        status_copy(&pc->st, st);
    pthread_mutex_unlock(&pc->lock);
}

static void partial_settle(struct partial_call *pc)
{
    struct rpc_msg m;

    if (atomic_fetch_sub(&pc->left, 1) != 1)
        return;
    if (pc->st.code && !pc->store_errors) {
        reply_fail(pc->call, &pc->st);
    } else {
        rpc_msg_init(&m);
        if (pc->st.code)
            run_step_put_error(&m, &pc->st);
        for (int i = 0; i < pc->count && !pc->st.code; i++)
            run_graph_put_recv(
                &m,
                (struct message_text){ pc->fetch[i].name,
                                       strlen(pc->fetch[i].name) },
                &pc->fetch[i].recv.value);
        rpc_call_reply(pc->call, &m);
    }
    partial_call_unref(pc);
}

/* All parts have ended. */
void master_partial_over(struct master_run *r)
{
    struct master_partial *p = r->partial;
    struct partial_call *pc;

    pthread_mutex_lock(&r->ms->lock);
    map_take_str(&r->ms->partials, p->handle);
    pthread_mutex_unlock(&r->ms->lock);
    if (r->st.code && r->exchange)
        exchange_abort(r->exchange, &r->st, true);
    pthread_mutex_lock(&r->lock);
    p->over = true;
    pc = p->waiting;
    p->waiting = NULL;
    pthread_mutex_unlock(&r->lock);
    if (!pc)
        return;
    if (r->st.code)
        partial_call_failed(pc, &r->st);
    partial_settle(pc);
}

static void partial_fetched(struct rdv_recv *recv, enum mst_code code)
{
    struct partial_fetch *f = CONTAINER(recv, struct partial_fetch, recv);
    struct partial_call *pc = f->pc;

    if (!code && recv->dead)
        code = status_set(&f->st, MST_INTERNAL,
                          "The tensor returned for %.300s was not valid.",
                          f->name);
    if (code) {
        struct status st = STATUS_INIT;

        pthread_mutex_lock(&pc->r->lock); /* the root says more */
        status_copy(&st, pc->r->st.code ? &pc->r->st : &f->st);
        pthread_mutex_unlock(&pc->r->lock);
        partial_call_failed(pc, &st);
    }
    partial_settle(pc);
}

/* The client's key of a tensor: both ends are this task. */
static char *client_key(struct master_run *r, const char *name, size_t len)
{
    const char *device = r->ms->local->device;
    int output;
    size_t n;
    const char *text = graph_input_split(name, len, &n, &output);

    return mem_printf("%s;%016llx;%s;%.*s:%d;0:0", device,
                      (unsigned long long)worker_incarnation(r->ms->worker),
                      device, (int)n, text, output);
}

static int find_name(const struct part_name *names, int count, const char *text,
                     size_t len)
{
    for (int i = 0; i < count; i++)
        if (names[i].len == len && !memcmp(names[i].text, text, len))
            return i;
    return -1;
}

/* Claims the feeds and fetches of one call; the last one leaves none. */
static enum mst_code partial_claim(struct master_run *r,
                                   const struct run_step_request *q,
                                   bool *ret_last, struct status *st)
{
    struct master_partial *p = r->partial;
    const struct part_want *want = &r->c->want;

    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < q->feed_count; i++) {
            struct message_text name = q->feeds[i].name;
            int at =
                find_name(want->feeds, want->feed_count, name.data, name.len);

            if (at < 0)
                return status_set(st, MST_INVALID_ARGUMENT,
                                  "The feed %.*s was not specified in "
                                  "partial_run_setup.",
                                  (int)MIN(name.len, 200), name.data);
            if (!pass && p->fed[at])
                return status_set(st, MST_INVALID_ARGUMENT,
                                  "The feed %.*s has already been fed.",
                                  (int)MIN(name.len, 200), name.data);
            p->fed[at] = p->fed[at] || pass;
        }
        for (int i = 0; i < q->fetch_count; i++) {
            const struct part_name *name = &q->fetches[i];
            int at = find_name(want->fetches, want->fetch_count, name->text,
                               name->len);

            if (at < 0)
                return status_set(st, MST_INVALID_ARGUMENT,
                                  "The fetch %.*s was not specified in "
                                  "partial_run_setup.",
                                  (int)MIN(name->len, 200), name->text);
            if (!pass && p->fetched[at])
                return status_set(st, MST_INVALID_ARGUMENT,
                                  "The fetch %.*s has already been fetched.",
                                  (int)MIN(name->len, 200), name->text);
            p->fetched[at] = p->fetched[at] || pass;
        }
    }
    *ret_last = true;
    for (int i = 0; i < want->feed_count; i++)
        *ret_last = *ret_last && p->fed[i];
    for (int i = 0; i < want->fetch_count; i++)
        *ret_last = *ret_last && p->fetched[i];
    return MST_OK;
}

static enum mst_code partial_feed(struct master_run *r,
                                  const struct run_step_request *q,
                                  struct buffer *owner, struct status *st)
{
    struct rendezvous *rdv = exchange_rendezvous(r->exchange);

    for (int i = 0; i < q->feed_count; i++) {
        struct message_text name = q->feeds[i].name;
        int at = find_name(r->c->want.feeds, r->c->want.feed_count, name.data,
                           name.len);
        struct tensor t = { 0 };
        enum mst_code rc = master_run_feed(r, at, &q->feeds[i], owner, &t, st);
        struct rdv_key key;
        char *text;

        if (rc)
            return rc;
        text = client_key(r, name.data, name.len);
        if (rdv_key_parse(text, strlen(text), &key))
            rc = rdv->ops->send(rdv, &key, &t, false, st);
        mem_free(text);
        tensor_unref(&t);
        if (rc)
            return rc;
    }
    return MST_OK;
}

static void partial_fetch(struct partial_call *pc)
{
    struct rendezvous *rdv = exchange_rendezvous(pc->r->exchange);

    for (int i = 0; i < pc->count; i++) {
        struct partial_fetch *f = &pc->fetch[i];
        char *text = client_key(pc->r, f->name, strlen(f->name));
        struct rdv_key key;

        f->recv.done = partial_fetched;
        f->recv.st = &f->st;
        if (rdv_key_parse(text, strlen(text), &key))
            rdv->ops->recv(rdv, &key, &f->recv);
        else
            partial_fetched(&f->recv,
                            status_set(&f->st, MST_INTERNAL,
                                       "The key %.300s is none", text));
        mem_free(text);
    }
}

static struct partial_call *partial_call_new(struct master_run *r,
                                             struct rpc_call *call,
                                             const struct run_step_request *q)
{
    struct partial_call *pc =
        mem_new(sizeof(*pc) + (size_t)q->fetch_count * sizeof(pc->fetch[0]));

    atomic_init(&pc->refs, 1);
    pthread_mutex_init(&pc->lock, NULL);
    pc->r = master_run_ref(r);
    pc->call = call;
    pc->store_errors = q->store_errors;
    pc->count = q->fetch_count;
    for (int i = 0; i < pc->count; i++) {
        pc->fetch[i].pc = pc;
        pc->fetch[i].name = mem_strn(q->fetches[i].text, q->fetches[i].len);
    }
    atomic_init(&pc->left, pc->count + 1);
    return pc;
}

static void partial_cancelled(void *arg)
{
    struct partial_call *pc = arg;

    master_run_cancel(pc->r, MST_CANCELLED, "RPC Request was cancelled");
}

static void partial_call_over(void *arg)
{
    partial_call_unref(arg);
}

void master_partial_step(struct master_session *ms, struct rpc_call *call,
                         struct run_step_request *q)
{
    struct master_run *r = NULL;
    struct status st = STATUS_INIT;
    struct partial_call *pc;
    struct master_partial *p;
    bool last = false, first = false;
    enum mst_code rc;

    pthread_mutex_lock(&ms->lock);
    p = map_get(&ms->partials, q->partial_handle.data, q->partial_handle.len);
    if (p)
        r = master_run_ref(p->r);
    pthread_mutex_unlock(&ms->lock);
    if (!r) {
        reply_fail_with(call, MST_INVALID_ARGUMENT,
                        "Must run setup before performing partial runs!");
        run_step_free(q);
        return;
    }
    pc = partial_call_new(r, call, q);
    atomic_fetch_add(&pc->refs, 1);
    rpc_call_hooks(call, partial_cancelled, partial_call_over, pc);
    pthread_mutex_lock(&r->lock);
    rc = partial_claim(r, q, &last, &st);
    if (!rc) {
        first = !p->started;
        p->started = true;
        if (last && !p->over) {
            atomic_fetch_add(&pc->left, 1);
            p->waiting = pc;
        }
    }
    pthread_mutex_unlock(&r->lock);
    if (!rc)
        rc = partial_feed(r, q, rpc_call_request(call)->owner, &st);
    if (rc) {
        partial_call_failed(pc, &st);
        atomic_fetch_sub(&pc->left, pc->count);
        if (p->waiting == pc)
            master_run_cancel(r, st.code, st.msg);
    } else {
        partial_fetch(pc);
    }
    if (first)
        master_run_start(r, NULL);
    if (last)
        master_partial_release(r);
    partial_settle(pc);
    run_step_free(q);
    master_run_unref(r);
}

static void partial_ready(struct compile_wait *w, struct compiled *c,
                          const struct status *st)
{
    struct master_run *r = CONTAINER(w, struct master_run, wait);
    struct rpc_call *call = r->call;
    struct master_partial *p = r->partial;
    struct status why = STATUS_INIT;
    struct pb_out o;

    r->call = NULL;
    r->c = c;
    if (!c) {
        reply_fail(call, st);
        master_run_unref(r);
        return;
    }
    p->fed = mem_array((size_t)c->want.feed_count, sizeof(bool));
    p->fetched = mem_array((size_t)c->want.fetch_count, sizeof(bool));
    if (master_run_bind(r, &why) || !master_run_enter(r)) {
        if (!why.code)
            status_set(&why, MST_FAILED_PRECONDITION, MASTER_CLOSED_TEXT);
        reply_fail(call, &why);
        master_run_unref(r);
        return;
    }
    pthread_mutex_lock(&r->ms->lock);
    map_put_str(&r->ms->partials, p->handle, p);
    pthread_mutex_unlock(&r->ms->lock);
    pb_out_init(&o);
    pb_put_bytes(&o, 1, p->handle, strlen(p->handle));
    reply_bytes(call, &o);
    master_run_unref(r);
}

void master_partial_setup(struct master_session *ms, struct rpc_call *call,
                          const struct run_step_request *q)
{
    struct master_run *r = master_run_new(ms, call);
    struct compiled *c;

    r->partial = MEM_NEW(struct master_partial);
    r->partial->r = r;
    snprintf(r->partial->handle, sizeof(r->partial->handle), "%016llx",
             (unsigned long long)rng_u64());
    r->wait.done = partial_ready;
    c = master_compile(ms, q, true, &r->wait);
    if (c)
        partial_ready(&r->wait, c, NULL);
}
