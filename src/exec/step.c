#include "exec/step.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "exec/frame.h"
#include "op/rendezvous.h"

/* From about how many elements on a kernel is worth moving to the pool: the
 * wake-up of a thread costs some 50 us, and so long others may wait. */
#define HEAVY_ELEMS     (384 << 10)
#define EXPENSIVE_ELEMS (16 << 10)
#define NEST_MAX        4
/* So long a thread that is not the pool's may stay in a step, and so much does
 * one of the pool's keep to itself while others are idle. */
#define INLINE_NS_MAX 300000
#define SHARE_NS      100000
#define INLINE_CHECK  16
#define IDLE_MAX      64
#define AHEAD         8 /* ready nodes that are looked at together */
#define OUT_FEW       8

enum phase { RUNNING, FINISHED, RETURNED };

static _Thread_local bool on_pool; /* this thread may compute for long */
static _Thread_local int nested;   /* op_finish() within op_finish() */

static void run_ready(struct step *s, struct ready *r);

/* ---- errors ---- */

void step_fail(struct step *s, const struct status *st)
{
    bool first;

    pthread_mutex_lock(&s->lock);
    first = !s->st.code;
    if (first)
        status_copy(&s->st, st);
    pthread_mutex_unlock(&s->lock);
    atomic_store(&s->failed, true);
    if (first && s->on_failed)
        s->on_failed(s->arg, st);
}

static void node_failed(struct step *s, const struct plan_node *n,
                        struct status *st, enum mst_code code)
{
    st->code = code;
    status_append(st, "\n\t [[{{node %s}}]]", n->op.name);
    step_fail(s, st);
}

/* ---- one node ---- */

static void record(struct step *s, const struct plan_node *n, uint64_t start_ns)
{
    struct step_stat *stat;
    static _Thread_local uint32_t thread;

    if (!thread)
        thread = (uint32_t)syscall(SYS_gettid);
    pthread_mutex_lock(&s->lock);
    stat = MEM_PUSH(s->stats, s->stat_count, s->stat_room);
    *stat = (struct step_stat){ .node = n,
                                .scheduled_ns = start_ns,
                                .start_ns = start_ns,
                                .end_ns = clock_ns(),
                                .thread = thread };
    pthread_mutex_unlock(&s->lock);
}

static void release_inputs(const struct plan_node *n, struct op_value *in)
{
    for (int i = 0; i < n->op.in_count; i++)
        value_release(&in[i]);
}

/* What TensorFlow keeps in such a handle: where its resource is to be found. */
static enum mst_code handle_text(struct tensor *t, struct status *st)
{
    const struct handle *h = CONTAINER(*tensor_object(t, 0), struct handle, o);
    struct tensor text;
    enum mst_code rc =
        tensor_new(&text, DT_STRING, 1, (const int64_t[]){ 2 }, st);

    if (rc)
        return rc;
    str_set(tensor_str(&text, 0), h->container, strlen(h->container));
    str_set(tensor_str(&text, 1), h->name, strlen(h->name));
    tensor_unref(t);
    tensor_move(t, &text);
    return MST_OK;
}

static enum mst_code prepare_input(const struct plan_node *n, int i,
                                   struct op_value *in, struct status *st)
{
    enum mst_code rc = MST_OK;
    bool has;

    if (n->kind == OP_MERGE && !value_set(in))
        return MST_OK;
    switch (n->in_how[i]) {
    case IN_HANDLE:
        return in->t.dtype == DT_RESOURCE
                   ? MST_OK
                   : status_set(st, MST_INVALID_ARGUMENT,
                                "Input %d is not a handle", i);
    case IN_REF:
        /* Loops and branches pass handles of the old form on, too. */
        if (!in->ref && n->kind != OP_ORDINARY && in->t.dtype == DT_RESOURCE)
            return MST_OK;
        if (!in->ref)
            return status_set(st, MST_INVALID_ARGUMENT,
                              "Input %d is not a reference to a variable", i);
        if (n->flags & OP_UNINIT_REF)
            return MST_OK;
        pthread_mutex_lock(&in->ref->lock);
        has = tensor_set(&in->ref->t);
        pthread_mutex_unlock(&in->ref->lock);
        break;
    case IN_DEREF:
        if (!in->ref)
            return handle_text(&in->t, st);
        rc = variable_read(in->ref, &in->t, st);
        if (rc)
            return rc;
        has = tensor_set(&in->t);
        break;
    default:
        return MST_OK;
    }
    if (!has)
        return status_set(st, MST_FAILED_PRECONDITION,
                          "Attempting to use uninitialized value %s",
                          in->ref->name);
    if (n->in_how[i] == IN_DEREF) {
        variable_unref(in->ref);
        in->ref = NULL;
    }
    return MST_OK;
}

static enum mst_code prepare_inputs(const struct plan_node *n,
                                    struct op_value *in, struct status *st)
{
    enum mst_code rc = MST_OK;

    if (n->in_plain)
        return MST_OK;
    for (int i = 0; i < n->op.in_count && !rc; i++)
        rc = prepare_input(n, i, &in[i], st);
    return rc;
}

/* Whatever a kernel or a peer gave is what the graph says, or the step fails:
 * the next kernel relies on it. */
static enum mst_code check_outputs(const struct plan_node *n,
                                   const struct op_value *out,
                                   struct status *st)
{
    for (int i = 0; i < n->op.out_count; i++) {
        int want = n->op.out_types[i];

        if (LIKELY(out[i].t.dtype == want && want))
            continue;
        if (!value_set(&out[i])) {
            if (n->kind == OP_SWITCH || n->kind == OP_RECV)
                continue;
            return status_set(st, MST_INTERNAL,
                              "Missing %d-th output from {{node %s}}", i,
                              n->op.name);
        }
        if (out[i].ref
                ? !dtype_is_ref(want)
                : out[i].t.dtype != dtype_base(want) &&
                      !(dtype_is_ref(want) && out[i].t.dtype == DT_RESOURCE))
            return status_set(
                st, MST_INTERNAL,
                "Output %d of type %s does not match declared output type %s "
                "for node {{node %s}}",
                i, out[i].ref ? "ref" : dtype_name(out[i].t.dtype),
                dtype_name(want), n->op.name);
    }
    return MST_OK;
}

/* The kernel has returned: hands its outputs on. */
static void complete(struct step *s, const struct item *it,
                     struct op_value *out, enum mst_code code,
                     struct status *st, struct ready *r)
{
    const struct plan_node *n = it->node;

    release_inputs(n, it->iter->slots + n->slot);
    if (code)
        node_failed(s, n, st, code);
    else if (check_outputs(n, out, st))
        step_fail(s, st);
    else if (!atomic_load_explicit(&s->failed, memory_order_relaxed))
        frame_propagate(s, n, it->iter, out, false, r);
    for (int i = 0; i < n->op.out_count; i++)
        value_release(&out[i]);
    frame_node_done(s, it->iter, r);
}

/* ---- asynchronous nodes ---- */

static void async_complete(struct step *s, struct async_run *a, struct ready *r)
{
    if (s->record)
        record(s, a->item.node, a->start_ns);
    complete(s, &a->item, a->out, a->code, &a->st, r);
}

/* Goes on with the step on this thread, from an asynchronous node on. The
 * node's part in step->live is this thread's now. */
static void async_resume(struct async_run *a)
{
    struct step *s = a->item.iter->frame->step;
    struct ready r;

    ready_init(&r);
    async_complete(s, a, &r);
    run_ready(s, &r);
    ready_done(&r);
    step_drop(s);
}

static void async_job(struct pool_job *job)
{
    struct async_run *a = CONTAINER(job, struct async_run, job);
    bool was = on_pool;

    on_pool = true;
    async_resume(a);
    on_pool = was;
}

static void async_finish(struct op_ctx *c, enum mst_code code)
{
    struct async_run *a = CONTAINER(c, struct async_run, c);
    struct step *s = a->item.iter->frame->step;

    a->code = code;
    if (atomic_exchange(&a->phase, FINISHED) == RUNNING)
        return; /* its run() has not returned yet: who called it goes on */
    if (nested >= NEST_MAX && s->plan->env.pool) {
        a->job.run = async_job;
        pool_post(s->plan->env.pool, &a->job);
        return;
    }
    nested++;
    async_resume(a);
    nested--;
}

static struct async_run *async_get(const struct item *it)
{
    const struct plan_node *n = it->node;
    struct async_run **at = &it->iter->async[n->async];
    struct async_run *a = *at;

    if (!a) {
        a = mem_new(sizeof(*a) +
                    (size_t)n->op.out_count * sizeof(struct op_value));
        *at = a;
    }
    a->item = *it;
    status_clear(&a->st);
    atomic_store_explicit(&a->phase, RUNNING, memory_order_relaxed);
    return a;
}

/* The node is over when it returns, or will come back by itself. */
static void async_run(struct step *s, const struct item *it, struct ready *r)
{
    struct async_run *a = async_get(it);
    const struct plan_node *n = it->node;
    enum mst_code rc;

    a->c = (struct op_ctx){ .node = &n->op,
                            .step = &s->env,
                            .in = it->iter->slots + n->slot,
                            .out = a->out,
                            .st = &a->st,
                            .frame_id = it->iter->frame->id,
                            .iter = it->iter->number,
                            .in_dead = it->dead,
                            .finish = async_finish,
                            .scratch = a->scratch };
    a->start_ns = s->record ? clock_ns() : 0;
    step_hold(s);
    rc = prepare_inputs(n, a->c.in, &a->st);
    if (!rc)
        rc = n->op.run(&a->c);
    if (rc != OP_LATER)
        a->code = rc;
    else if (atomic_exchange(&a->phase, RETURNED) != FINISHED)
        return;
    async_complete(s, a, r);
    step_drop(s); /* never the last: this thread has a part of its own */
}

/* ---- the loop ---- */

static void sync_run(struct step *s, const struct item *it, struct ready *r)
{
    const struct plan_node *n = it->node;
    struct op_value few[OUT_FEW], *out = few;
    struct status st;
    struct op_ctx c = { .node = &n->op,
                        .step = &s->env,
                        .in = it->iter->slots + n->slot,
                        .st = &st,
                        .frame_id = it->iter->frame->id,
                        .iter = it->iter->number,
                        .in_dead = it->dead };
    uint64_t start_ns = s->record ? clock_ns() : 0;
    enum mst_code rc;

    if (UNLIKELY(n->op.out_count > OUT_FEW))
        out = mem_take((size_t)n->op.out_count * sizeof(*out));
    for (int i = 0; i < n->op.out_count; i++) {
        tensor_unset(&out[i].t);
        out[i].t.ndim = 0;
        out[i].ref = NULL;
    }
    st.code = MST_OK;
    st.msg[0] = '\0';
    c.out = out;
    rc = prepare_inputs(n, c.in, &st);
    if (!rc)
        rc = n->op.run(&c);
    CHECK(rc != OP_LATER);
    if (rc && c.node != &n->op) /* one of those that it stands for */
        node_failed(s, CONTAINER(c.node, struct plan_node, op), &st, rc);
    if (s->record)
        record(s, n, start_ns);
    complete(s, it, out, rc, &st, r);
    if (UNLIKELY(out != few))
        mem_give(out);
}

static bool is_heavy(const struct item *it)
{
    const struct plan_node *n = it->node;
    const struct op_value *in = it->iter->slots + n->slot;
    int64_t elems = 0, variables = 0;

    if (n->flags & (OP_BLOCKING | OP_LIGHT))
        return n->flags & OP_BLOCKING;
    for (int i = 0; i < n->op.in_count; i++) {
        elems += in[i].t.dtype ? in[i].t.count : 0;
        variables += in[i].ref || in[i].t.dtype == DT_RESOURCE;
    }
    if (n->flags & OP_EXPENSIVE)
        return elems >= EXPENSIVE_ELEMS;
    /* An update goes over each of its variables. */
    return elems * MAX(1, variables) >= HEAVY_ELEMS;
}

static bool moves_values(const struct plan_node *n)
{
    return n->kind != OP_ORDINARY || (n->flags & OP_ASYNC);
}

static void items_job(struct pool_job *job)
{
    struct item_job *j = CONTAINER(job, struct item_job, job);
    struct step *s = j->item.iter->frame->step;
    bool was = on_pool;
    struct ready r;

    on_pool = true;
    ready_init(&r);
    for (; j; j = j->more)
        ready_push(&r, j->item);
    run_ready(s, &r);
    ready_done(&r);
    on_pool = was;
    step_drop(s);
}

/* Gives the first of the ready nodes to the pool, as one job. */
static void post(struct step *s, struct ready *r, int count)
{
    struct item_job *first = NULL, **at = &first;

    while (count--) {
        const struct item *it = &r->items[r->head++];
        struct item_job *j = &it->iter->jobs[it->node->index];

        j->item = *it;
        j->more = NULL;
        *at = j;
        at = &j->more;
    }
    step_hold(s);
    first->job.run = items_job;
    pool_post_near(s->plan->env.pool, &first->job);
}

static bool goes_to_pool(const struct item *it)
{
    return !it->dead && !moves_values(it->node) && is_heavy(it);
}

/* Lets one of the next ready nodes that is not heavy go first. */
static bool put_light_first(struct ready *r)
{
    struct item *first = &r->items[r->head];

    for (int i = 1; i <= AHEAD && r->head + i < r->tail; i++)
        if (!goes_to_pool(&first[i])) {
            struct item light = first[i];

            first[i] = *first;
            *first = light;
            return true;
        }
    return false;
}

/* True when the first of the ready nodes was given to the pool. A thread that
 * may compute does so with the last that is heavy itself, after all else. */
static bool post_heavy(struct step *s, struct ready *r)
{
    if (!s->plan->env.pool || (on_pool && r->head + 1 == r->tail))
        return false; /* nothing else to do here: run it here */
    if (!goes_to_pool(&r->items[r->head]) || (on_pool && put_light_first(r)))
        return false;
    post(s, r, 1);
    return true;
}

/* When a thread began with a step, and when it last looked up. */
struct spent {
    uint64_t since_ns, last_ns;
};

/*
 * Looks up now and then. A loop's thread has others to serve: when it has been
 * here for too long, as with a graph that loops, all that is ready moves to
 * the pool. A thread of the pool gives half of it to one that is idle, if it
 * seems to be enough, going by what the last nodes took.
 */
static void share(struct step *s, struct ready *r, struct spent *t)
{
    struct pool *pool = s->plan->env.pool;
    uint64_t now = pool ? clock_ns() : 0, last = t->last_ns;
    int count = r->tail - r->head;

    if (!pool)
        return;
    t->last_ns = now;
    if (!last)
        t->since_ns = now;
    else if (!on_pool && now - t->since_ns >= INLINE_NS_MAX)
        post(s, r, count);
    else if (on_pool && count > 1 &&
             (now - last) / INLINE_CHECK * (uint64_t)count >= SHARE_NS &&
             pool_idle(pool))
        post(s, r, count / 2);
}

static void process(struct step *s, const struct item *it, struct ready *r)
{
    const struct plan_node *n = it->node;

    if (UNLIKELY(atomic_load_explicit(&s->failed, memory_order_relaxed))) {
        release_inputs(n, it->iter->slots + n->slot);
        frame_node_done(s, it->iter, r);
    } else if (it->dead && n->kind != OP_SEND && n->kind != OP_RECV) {
        release_inputs(n, it->iter->slots + n->slot);
        frame_propagate(s, n, it->iter, NULL, true, r);
        frame_node_done(s, it->iter, r);
    } else if (n->async >= 0) {
        async_run(s, it, r);
    } else {
        sync_run(s, it, r);
    }
}

/* Runs until nothing is ready here. The caller has a part in step->live, so
 * the step is there all the time. */
static void run_ready(struct step *s, struct ready *r)
{
    struct rendezvous *rdv = s->env.rendezvous;
    struct spent spent = { 0 };

    for (int ran = 1; r->head < r->tail; ran++) {
        struct item it;

        if (ran % INLINE_CHECK == 0) {
            share(s, r, &spent);
            if (r->head == r->tail)
                break;
        }
        if (post_heavy(s, r))
            continue;
        it = r->items[r->head++];
        process(s, &it, r);
    }
    if (rdv && rdv->ops->flush)
        rdv->ops->flush(rdv);
}

/* ---- begin and end ---- */

static struct step *step_make(struct plan *p)
{
    struct step *s = MEM_NEW(struct step);

    s->plan = p;
    pthread_mutex_init(&s->lock, NULL);
    pthread_mutex_init(&s->frame_lock, NULL);
    s->spare = mem_array((size_t)p->frame_count, sizeof(*s->spare));
    s->spare_frames =
        mem_array((size_t)p->frame_count, sizeof(*s->spare_frames));
    s->root.step = s;
    s->root.def = &p->frames[0];
    s->root_iter = iteration_new(s, &s->root);
    if (p->arg_count)
        s->args = mem_array((size_t)p->arg_count, sizeof(*s->args));
    if (p->ret_count)
        s->rets = mem_array((size_t)p->ret_count, sizeof(*s->rets));
    return s;
}

static void step_free(struct step *s)
{
    for (int i = 0; i < s->plan->frame_count; i++)
        while (s->spare[i]) {
            struct iteration *it = s->spare[i];

            s->spare[i] = it->next;
            iteration_free(it, &s->plan->frames[i]);
        }
    iteration_free(s->root_iter, s->root.def);
    frame_free_spare(s);
    pthread_mutex_destroy(&s->lock);
    pthread_mutex_destroy(&s->frame_lock);
    mem_free(s->spare);
    mem_free(s->spare_frames);
    mem_free(s->args);
    mem_free(s->rets);
    mem_free(s->stats);
    mem_free(s);
}

void step_free_idle(struct plan *p)
{
    if (p->idle_one)
        step_free(p->idle_one);
    while (p->idle) {
        struct step *s = p->idle;

        p->idle = s->next;
        step_free(s);
    }
}

static struct step *step_get(struct plan *p)
{
    struct step *s = atomic_exchange(&p->idle_one, NULL);

    if (s)
        return s;
    pthread_mutex_lock(&p->idle_lock);
    s = p->idle;
    if (s) {
        p->idle = s->next;
        p->idle_count--;
    }
    pthread_mutex_unlock(&p->idle_lock);
    return s ? s : step_make(p);
}

static void keep_more(struct plan *p, struct step *s)
{
    bool keep;

    pthread_mutex_lock(&p->idle_lock);
    keep = p->idle_count < IDLE_MAX;
    if (keep) {
        s->next = p->idle;
        p->idle = s;
        p->idle_count++;
    }
    pthread_mutex_unlock(&p->idle_lock);
    if (!keep)
        step_free(s);
}

static void step_put(struct step *s)
{
    struct plan *p = s->plan;
    const struct plan_frame *root = s->root.def;

    if (atomic_load(&s->failed)) {
        frame_close_all(s);
        iteration_release(s->root_iter, root);
    }
    for (int i = 0; i < root->node_count; i++)
        atomic_store_explicit(&s->root_iter->state[i], root->pending[i],
                              memory_order_relaxed);
    atomic_store(&s->root_iter->outstanding, 0);
    s->root_iter->inner = 0;
    for (int i = 0; i < p->arg_count; i++)
        value_release(&s->args[i]);
    for (int i = 0; i < p->ret_count; i++)
        value_release(&s->rets[i]);
    s->stat_count = 0;
    if (!atomic_compare_exchange_strong(&p->idle_one, &(struct step *){ NULL },
                                        s))
        keep_more(p, s);
    plan_unref(plan_outermost(p));
}

static void finish(struct step *s)
{
    s->on_done(s->arg, s, &s->st);
    step_put(s);
}

struct step *step_new(struct plan *p, const struct step_opts *opts)
{
    struct step *s = step_get(p);

    plan_ref(plan_outermost(p)); /* it has those of its functions */
    s->env = opts->env;
    s->record = opts->record;
    s->on_failed = opts->failed;
    s->on_done = opts->done;
    s->arg = opts->arg;
    status_clear(&s->st);
    atomic_store(&s->failed, false);
    for (int i = 0; i < opts->arg_count; i++)
        value_move(&s->args[i], &opts->args[i]);
    atomic_store(&s->live, 1);
    return s;
}

void step_run(struct step *s)
{
    const struct plan *p = s->plan;
    struct ready r;

    ready_init(&r);
    for (int i = 0; i < p->root_count; i++)
        ready_push(
            &r, (struct item){ &p->nodes[p->roots[i]], s->root_iter, false });
    run_ready(s, &r);
    ready_done(&r);
    step_drop(s);
}

void step_hold(struct step *s)
{
    atomic_fetch_add_explicit(&s->live, 1, memory_order_relaxed);
}

void step_drop(struct step *s)
{
    if (atomic_fetch_sub_explicit(&s->live, 1, memory_order_acq_rel) == 1)
        finish(s);
}

struct op_value *step_results(struct step *s)
{
    return s->rets;
}

const struct step_stat *step_stats(const struct step *s, int *ret_count)
{
    *ret_count = s->stat_count;
    return s->stats;
}

/* ---- arguments and results of functions ---- */

struct place {
    int64_t index;
    bool shared; /* by several nodes */
};

/* An argument that one node takes is its own, so that the next kernel may
 * write over it. */
static void place_share(struct plan *p, struct place *place)
{
    struct place *first;

    if (!p->args)
        p->args = ARENA_ARRAY(&p->arena, void *, p->arg_count);
    first = p->args[place->index];
    if (!first)
        p->args[place->index] = place;
    else
        first->shared = place->shared = true;
}

static enum mst_code index_init(struct op_node *n, struct status *st)
{
    int64_t index = op_attr_int(n, "index");
    struct place *place = ARENA_NEW(n->arena, struct place);
    struct plan *p = n->env->plan;
    int limit = n->def->kind == OP_ARG ? p->arg_count : p->ret_count;

    if (index >= limit)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "{{node %s}} has index %lld of %d", n->name,
                          (long long)index, limit);
    place->index = index;
    if (n->def->kind == OP_ARG)
        place_share(p, place);
    n->state = place;
    return MST_OK;
}

static enum mst_code arg_run(struct op_ctx *c)
{
    struct step *s = CONTAINER(c->step, struct step, env);
    const struct place *place = c->node->state;
    struct op_value *v = &s->args[place->index];

    if (!value_set(v))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Argument %lld of the function was not given",
                       (long long)place->index);
    if (!place->shared) {
        value_move(&c->out[0], v);
        return MST_OK;
    }
    tensor_assign(&c->out[0].t, &v->t);
    buffer_ref(v->t.buf);
    c->out[0].ref = variable_ref(v->ref);
    return MST_OK;
}

const struct op_def def_arg = {
    .name = "_Arg",
    .out = "output: T",
    .attr = "T: type; index: int >= 0",
    .kind = OP_ARG,
    .flags = OP_STATEFUL,
    .init = index_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, arg_run }, { 0 } },
};

static enum mst_code retval_run(struct op_ctx *c)
{
    struct step *s = CONTAINER(c->step, struct step, env);
    const struct place *place = c->node->state;
    struct op_value *v = &s->rets[place->index];

    value_release(v);
    value_move(v, &c->in[0]);
    return MST_OK;
}

const struct op_def def_retval = {
    .name = "_Retval",
    .in = "input: T",
    .attr = "T: type; index: int >= 0",
    .kind = OP_RETVAL,
    .flags = OP_STATEFUL,
    .init = index_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, retval_run }, { 0 } },
};
