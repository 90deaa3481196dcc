/*
 * Mutexes of graphs (tf.CriticalSection): MutexLock gives a value that is the
 * lock; it is held for as long as that value lives. Who waits for it holds no
 * thread.
 *
 * The value may end anywhere, also where locks are held. So the next in line
 * is finished by a job of the pool, not on the spot.
 */
#include "base/mem.h"
#include "kernel/types.h"
#include "kernel/wait.h"

struct mutex {
    struct object o;
    pthread_mutex_t lock;
    /* Both under lock. */
    bool held;
    struct wait_line waiting;
};

/* The value that holds the mutex. */
struct hold {
    struct object o;
    struct mutex *m; /* one reference */
};

static void mutex_free(struct object *o)
{
    struct mutex *m = CONTAINER(o, struct mutex, o);

    CHECK(!m->held && !m->waiting.first);
    pthread_mutex_destroy(&m->lock);
    mem_free(m);
}

static const struct object_kind mutex_kind = { "mutex", mutex_free };

struct waiter {
    struct wait wait;
    struct pool_job job;
};

_Static_assert(sizeof(struct waiter) <= OP_SCRATCH, "scratch is too small");

static void hold_free(struct object *o);

static const struct object_kind hold_kind = {
    "tensorflow::SharedPtrVariant<tensorflow::(anonymous namespace)::Mutex::"
    "LockReleaser>",
    hold_free
};

/* The op has the mutex: its output is the hold. */
static enum mst_code give(struct wait *w)
{
    struct mutex *m = CONTAINER(w->at, struct mutex, o);
    enum mst_code rc = w->code;
    struct hold *h;

    if (rc)
        return rc;
    h = MEM_NEW(struct hold);
    object_init(&h->o, &hold_kind);
    h->m = m;
    object_ref(&m->o);
    rc = tensor_new_scalar(op_out(w->c, 0), DT_VARIANT, w->c->st);
    if (rc)
        object_unref(&h->o);
    else
        *tensor_object(op_out(w->c, 0), 0) = &h->o;
    return rc;
}

static void end_one(struct wait *w)
{
    struct wait_line one = { w, w };

    w->prev = w->next = NULL;
    wait_end(&one);
}

static void end_job(struct pool_job *job)
{
    end_one(&CONTAINER(job, struct waiter, job)->wait);
}

static void hold_free(struct object *o)
{
    struct hold *h = CONTAINER(o, struct hold, o);
    struct mutex *m = h->m;
    struct wait_line ended = { 0 };
    struct wait *w;

    pthread_mutex_lock(&m->lock);
    w = m->waiting.first;
    if (w)
        wait_leave(w, MST_OK, &ended); /* held goes over to it */
    else
        m->held = false;
    pthread_mutex_unlock(&m->lock);
    if (w) {
        struct pool *pool = w->c->node->env->pool;
        struct waiter *x = CONTAINER(w, struct waiter, wait);

        x->job.run = end_job;
        if (pool)
            pool_post(pool, &x->job);
        else
            end_one(w);
    }
    mem_free(h);
    object_unref(&m->o);
}

static const char cancelled[] = "Lock acquisition cancelled.";

static void on_cancel(struct cancel_item *item)
{
    struct wait *w = CONTAINER(item, struct wait, item);

    wait_give_up(w, &CONTAINER(w->at, struct mutex, o)->lock, cancelled);
}

static enum mst_code lock_run(struct op_ctx *c)
{
    struct waiter *x = c->scratch;
    enum mst_code rc = OP_LATER;
    struct object *o;
    struct mutex *m;

    if (op_resource(c, 0, &mutex_kind, &o))
        return c->st->code;
    m = CONTAINER(o, struct mutex, o);
    *x = (struct waiter){ .wait = { .c = c, .at = o, .complete = give } };
    pthread_mutex_lock(&m->lock);
    if (!m->held) {
        m->held = true;
        rc = MST_OK;
    } else if (!wait_join(&m->waiting, &x->wait, on_cancel)) {
        rc = op_fail(c, MST_CANCELLED, "%s", cancelled);
    }
    pthread_mutex_unlock(&m->lock);
    if (rc == OP_LATER)
        return rc;
    if (!rc)
        rc = give(&x->wait);
    object_unref(o);
    return rc;
}

const struct op_def def_mutex_lock = {
    .name = "MutexLock",
    .in = "mutex: resource",
    .out = "mutex_lock: variant",
    .flags = OP_STATEFUL | OP_ASYNC,
    .kernel = (const struct op_kernel[]){ { DT_ANY, lock_run }, { 0 } },
};

/* Its input was the last to keep the lock. */
static enum mst_code consume_run(struct op_ctx *c)
{
    tensor_unref(&c->in[0].t);
    return MST_OK;
}

const struct op_def def_consume_mutex_lock = {
    .name = "ConsumeMutexLock",
    .in = "mutex_lock: variant",
    .flags = OP_STATEFUL,
    .kernel = (const struct op_kernel[]){ { DT_ANY, consume_run }, { 0 } },
};

/* ---- making ---- */

static enum mst_code make_init(struct op_node *n, struct status *st)
{
    (void)st;
    n->state = op_node_handle(n, &mutex_kind);
    return MST_OK;
}

static void make_done(struct op_node *n)
{
    handle_unref(n->state);
}

static struct object *make_mutex(void *arg, struct status *st)
{
    struct mutex *m = MEM_NEW(struct mutex);

    (void)arg;
    (void)st;
    object_init(&m->o, &mutex_kind);
    pthread_mutex_init(&m->lock, NULL);
    return &m->o;
}

static enum mst_code make_run(struct op_ctx *c)
{
    object_unref(handle_get_or_make(c->node->state, make_mutex, NULL, c->st));
    return op_out_handle(c, 0, c->node->state);
}

const struct op_def def_mutex_v2 = {
    .name = "MutexV2",
    .out = "resource: resource",
    .attr = "container: string = ''; shared_name: string = ''",
    .flags = OP_STATEFUL,
    .init = make_init,
    .done = make_done,
    .kernel = (const struct op_kernel[]){ { DT_ANY, make_run }, { 0 } },
};
