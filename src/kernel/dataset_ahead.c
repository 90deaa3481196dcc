#include "kernel/dataset_ahead.h"

#include "base/clock.h"
#include "base/mem.h"
#include "op/rendezvous.h"

/* So long a job keeps its thread before others have their turn. */
#define SLICE_NS 1000000u
/* Of elements, when their number is up to us. */
#define MOST_MIN 2
#define MOST_MAX 16

/* An element in line. */
struct slot {
    struct slot *next;
    bool ready; /* under the ahead's lock; the rest is fixed by then */
    bool end;   /* the function said so */
    enum mst_code code;
    struct status *st; /* NULL: no error */
    struct tensor *out;
    int count;
};

struct ahead {
    atomic_int refs; /* the iterator's, the pull's, each call's */
    struct dataset *d;
    struct dataset_iter *in; /* the pull's */
    /* Whom the input is pulled for, and functions are called for. */
    struct op_env env;
    struct op_node node;
    struct op_step step;
    struct cancel cancel;
    struct op_ctx c;
    struct status st; /* the pull's */
    struct pool_job job;
    pthread_mutex_t lock;
    /* All under lock. */
    struct slot *first, **last;
    int64_t count;
    bool pulling, over, dropped;
    struct ahead_iter *waiter;
};

struct ahead_iter {
    struct dataset_iter it;
    struct ahead *a;
    struct cancel_item item; /* while it waits */
};

/* A call of the function under way. */
struct call {
    struct ahead *a;
    struct slot *slot;
    struct op_step step;
    struct op_ctx c;
    struct status st;
    struct op_value *args;
    int arg_count;
};

/* ---- a step of its own ---- */

static enum mst_code no_send(struct rendezvous *r, const struct rdv_key *key,
                             struct tensor *value, bool dead, struct status *st)
{
    (void)r;
    (void)key;
    (void)dead;
    tensor_unref(value);
    return status_set(st, MST_UNIMPLEMENTED,
                      "A function of a dataset that is read ahead sends");
}

static void no_recv(struct rendezvous *r, const struct rdv_key *key,
                    struct rdv_recv *recv)
{
    (void)r;
    (void)key;
    recv->done(recv, status_set(recv->st, MST_UNIMPLEMENTED,
                                "A function of a dataset that is read ahead "
                                "receives"));
}

static const struct rendezvous_ops nowhere_ops = { no_send, no_recv, NULL };
static struct rendezvous nowhere = { &nowhere_ops };

/* Steps of clients have other numbers: theirs are not negative. */
static int64_t step_id(void)
{
    static atomic_llong last;

    return -2 - atomic_fetch_add_explicit(&last, 1, memory_order_relaxed);
}

static struct ahead *ahead_new(struct dataset *d)
{
    struct ahead *a = MEM_NEW(struct ahead);

    atomic_init(&a->refs, 1);
    pthread_mutex_init(&a->lock, NULL);
    cancel_init(&a->cancel);
    a->d = dataset_ref(d);
    a->in = dataset_iter_new(d->inputs[0]);
    a->last = &a->first;
    a->env.pool = d->pool;
    a->node = (struct op_node){ .name = "", .env = &a->env };
    a->step = (struct op_step){ .id = step_id(),
                                .cancel = &a->cancel,
                                .rendezvous = &nowhere };
    a->c = (struct op_ctx){ .node = &a->node, .step = &a->step, .st = &a->st };
    return a;
}

static void slot_free(struct slot *s)
{
    for (int i = 0; i < s->count; i++)
        tensor_unref(&s->out[i]);
    mem_free(s->out);
    mem_free(s->st);
    mem_free(s);
}

static void ahead_unref(struct ahead *a)
{
    if (atomic_fetch_sub(&a->refs, 1) != 1)
        return;
    while (a->first) {
        struct slot *s = a->first;

        a->first = s->next;
        slot_free(s);
    }
    dataset_iter_free(a->in);
    dataset_unref(a->d);
    cancel_done(&a->cancel);
    pthread_mutex_destroy(&a->lock);
    mem_free(a);
}

static void slot_fail(struct slot *s, enum mst_code code,
                      const struct status *st)
{
    s->code = code;
    s->st = MEM_NEW(struct status);
    status_copy(s->st, st);
}

/* ---- making ---- */

static void pull_job(struct pool_job *job);

/* Under lock: true when a pull is to begin, whose reference that is. */
static bool ahead_wants(struct ahead *a)
{
    if (a->pulling || a->over || a->dropped || a->count >= a->d->n[0] ||
        pool_stopping(a->d->pool))
        return false;
    a->pulling = true;
    atomic_fetch_add(&a->refs, 1);
    return true;
}

static void ahead_post(struct ahead *a)
{
    a->job.run = pull_job;
    pool_post(a->d->pool, &a->job);
}

/* Under lock: who waits, when there is something for it. */
static struct ahead_iter *ahead_served(struct ahead *a)
{
    struct ahead_iter *w = a->waiter;

    if (!w || (a->first ? !a->first->ready : !a->over))
        return NULL;
    a->waiter = NULL;
    return w;
}

/* Goes on, on this thread, with who waited. */
static void ahead_wake(struct ahead_iter *w)
{
    cancel_remove(w->it.c->step->cancel, &w->item);
    dataset_resume(&w->it, MST_OK);
}

/* ---- calls of the function ---- */

static void call_done(struct op_ctx *c, void *arg, enum mst_code code,
                      struct op_value *results, int count)
{
    struct call *call = arg;
    struct ahead *a = call->a;
    struct slot *s = call->slot;
    struct ahead_iter *w;

    (void)c;
    if (code == MST_OUT_OF_RANGE) { /* an end of its own */
        s->end = true;
    } else if (code) {
        slot_fail(s, code, &call->st);
    } else {
        s->out = mem_array((size_t)count, sizeof(*s->out));
        s->count = count;
        for (int i = 0; i < count; i++)
            tensor_move(&s->out[i], &results[i].t);
    }
    for (int i = 0; i < call->arg_count; i++) {
        tensor_unref(&call->args[i].t);
        variable_unref(call->args[i].ref);
    }
    mem_free(call->args);
    mem_free(call);
    pthread_mutex_lock(&a->lock);
    s->ready = true;
    w = ahead_served(a);
    pthread_mutex_unlock(&a->lock);
    if (w)
        ahead_wake(w);
    ahead_unref(a);
}

/* Of the element that was pulled, which is in line as s. */
static struct call *call_new(struct ahead *a, struct slot *s)
{
    const struct dataset_func *f = &a->d->func;
    struct call *call = MEM_NEW(struct call);
    int n = a->in->count;

    atomic_fetch_add(&a->refs, 1);
    call->a = a;
    call->slot = s;
    call->step = a->step;
    call->step.id = step_id();
    call->c = (struct op_ctx){ .node = &a->node,
                               .step = &call->step,
                               .st = &call->st };
    call->arg_count = n + f->captured_count;
    call->args = mem_array((size_t)call->arg_count, sizeof(*call->args));
    for (int i = 0; i < n; i++)
        tensor_move(&call->args[i].t, &a->in->out[i]);
    for (int i = 0; i < f->captured_count; i++)
        call->args[n + i].t = tensor_ref(&f->captured[i]);
    return call;
}

static void call_start(struct call *call)
{
    const struct dataset_func *f = &call->a->d->func;

    f->calls->start(f->callee, &call->c, call->args, call->arg_count, call_done,
                    call);
}

/* ---- pulls of the input ---- */

/* What the pull gave, as a place in line; NULL at the end. */
static struct slot *pulled_slot(struct ahead *a, enum mst_code code,
                                struct call **ret_call)
{
    struct slot *s;

    if (!code && a->in->end)
        return NULL;
    s = MEM_NEW(struct slot);
    if (code) {
        slot_fail(s, code, &a->st);
    } else if (a->d->func.callee) {
        *ret_call = call_new(a, s);
        return s;
    } else {
        s->out = a->in->out;
        s->count = a->in->count;
        a->in->out = NULL;
        a->in->count = 0;
    }
    s->ready = true;
    return s;
}

/*
 * The end of a pull. True when its thread is to begin the next one: not when
 * it has to call a function or to go on with who waited, as another thread can
 * pull meanwhile.
 */
static bool pulled(struct ahead *a, enum mst_code code)
{
    struct call *call = NULL;
    struct slot *s = pulled_slot(a, code, &call);
    struct ahead_iter *w;
    bool more;

    pthread_mutex_lock(&a->lock);
    a->pulling = false;
    a->over = !s;
    if (s) {
        *a->last = s;
        a->last = &s->next;
        a->count++;
    }
    w = ahead_served(a);
    more = ahead_wants(a);
    pthread_mutex_unlock(&a->lock);
    if (more && !call && !w) {
        ahead_unref(a); /* the next pull has one of its own */
        return true;
    }
    if (more)
        ahead_post(a);
    if (call)
        call_start(call);
    if (w)
        ahead_wake(w);
    ahead_unref(a);
    return false;
}

/* A pull that was later: on whatever thread, in the midst of something. */
static void on_pulled(struct dataset_iter *in, enum mst_code code)
{
    struct ahead *a = in->arg;

    if (pulled(a, code))
        ahead_post(a);
}

static void pull_job(struct pool_job *job)
{
    struct ahead *a = CONTAINER(job, struct ahead, job);
    uint64_t since = clock_ns();

    for (;;) {
        enum mst_code rc;

        status_clear(&a->st);
        rc = dataset_pull_root(a->in, &a->c, on_pulled, a);
        if (rc == OP_LATER || !pulled(a, rc))
            return;
        if (clock_ns() - since >= SLICE_NS)
            break;
    }
    ahead_post(a);
}

/* ---- giving ---- */

static void on_cancel(struct cancel_item *item)
{
    struct ahead_iter *w = CONTAINER(item, struct ahead_iter, item);
    struct ahead *a = w->a;
    bool mine;

    pthread_mutex_lock(&a->lock);
    mine = a->waiter == w;
    if (mine)
        a->waiter = NULL;
    pthread_mutex_unlock(&a->lock);
    if (mine)
        dataset_resume(
            &w->it, op_fail(w->it.c, MST_CANCELLED, "Iterator was cancelled"));
}

static enum mst_code slot_give(struct slot *s, struct dataset_iter *it)
{
    enum mst_code rc = s->code;

    if (rc)
        status_copy(it->c->st, s->st);
    it->end = s->end;
    dataset_room(it, 0);
    it->out = s->out;
    it->count = s->count;
    s->out = NULL;
    s->count = 0;
    slot_free(s);
    return rc;
}

static enum mst_code ahead_go(struct dataset_iter *it, enum mst_code got)
{
    struct ahead_iter *w = CONTAINER(it, struct ahead_iter, it);
    struct slot *s = NULL;
    struct ahead *a;
    bool more;

    if (got && got != DATASET_FRESH)
        return got;
    if (!w->a)
        w->a = ahead_new(it->d);
    a = w->a;
    got = MST_OK;
    pthread_mutex_lock(&a->lock);
    if (a->first && a->first->ready) {
        s = a->first;
        a->first = s->next;
        if (!a->first)
            a->last = &a->first;
        a->count--;
    } else if (a->first || !a->over) {
        a->waiter = w;
        got = OP_LATER;
        if (!cancel_add(it->c->step->cancel, &w->item, on_cancel)) {
            a->waiter = NULL;
            got = op_fail(it->c, MST_CANCELLED, "Iterator was cancelled");
        }
    }
    more = ahead_wants(a);
    pthread_mutex_unlock(&a->lock);
    if (more)
        ahead_post(a);
    if (got)
        return got;
    return s ? slot_give(s, it) : dataset_end(it);
}

void dataset_ahead_start(struct dataset_iter *it)
{
    struct ahead_iter *w = CONTAINER(it, struct ahead_iter, it);
    bool more;

    if (it->d->kind != &dataset_ahead_kind || w->a)
        return;
    w->a = ahead_new(it->d);
    pthread_mutex_lock(&w->a->lock);
    more = ahead_wants(w->a);
    pthread_mutex_unlock(&w->a->lock);
    if (more)
        ahead_post(w->a);
}

static void ahead_iter_done(struct dataset_iter *it)
{
    struct ahead *a = CONTAINER(it, struct ahead_iter, it)->a;

    if (!a)
        return;
    pthread_mutex_lock(&a->lock);
    CHECK(!a->waiter);
    a->dropped = true;
    pthread_mutex_unlock(&a->lock);
    cancel_all(&a->cancel);
    ahead_unref(a);
}

/* d->flag: the function is said to keep their number. */
static int64_t ahead_count(const struct dataset *d)
{
    return !d->func.callee || d->flag ? dataset_cardinality(d->inputs[0])
                                      : DATASET_UNKNOWN;
}

const struct dataset_kind dataset_ahead_kind = { sizeof(struct ahead_iter),
                                                 ahead_go, ahead_iter_done,
                                                 ahead_count };

int64_t dataset_ahead_most(const struct pool *pool, int64_t asked)
{
    return asked > 0 ? asked : MIN(MAX(pool_threads(pool), MOST_MIN), MOST_MAX);
}

struct dataset *dataset_ahead_new(struct dataset *input, struct pool *pool,
                                  int64_t most)
{
    struct dataset *d;

    if (!pool)
        return input;
    d = dataset_new(&dataset_ahead_kind, 1, 0);
    d->inputs[0] = input;
    d->pool = pool;
    d->n[0] = dataset_ahead_most(pool, most);
    return d;
}
