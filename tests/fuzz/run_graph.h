/*
 * Compiles a GraphDef and runs it twice. Sends go nowhere, receives get
 * nothing. What does not end by itself in a while is cancelled, and must end
 * then. Graphs with ops that touch files are compiled only.
 */
#ifndef FUZZ_RUN_GRAPH_H
#define FUZZ_RUN_GRAPH_H

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/pool.h"
#include "exec/step.h"
#include "op/rendezvous.h"
#include "wire/control.h"

#define PATIENCE_MS 200

struct waiting {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct cancel cancel;
    struct step *step; /* under lock; NULL once it is done */
};

static enum mst_code drop(struct rendezvous *r, const struct rdv_key *key,
                          struct tensor *value, bool dead, struct status *st)
{
    (void)r, (void)key, (void)dead, (void)st;
    tensor_unref(value);
    return MST_OK;
}

static void none(struct rendezvous *r, const struct rdv_key *key,
                 struct rdv_recv *recv)
{
    (void)r, (void)key;
    recv->done(recv, status_set(recv->st, MST_NOT_FOUND, "nothing"));
}

static const struct rendezvous_ops nowhere_ops = { drop, none, NULL };
static struct rendezvous nowhere = { &nowhere_ops };

static void on_failed(void *arg, const struct status *st)
{
    struct waiting *w = arg;

    (void)st;
    cancel_all(&w->cancel);
}

static void on_done(void *arg, struct step *s, const struct status *st)
{
    struct waiting *w = arg;

    (void)s, (void)st;
    pthread_mutex_lock(&w->lock);
    w->step = NULL;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
}

/* Waits for the end; cancels when it does not come. Under lock. */
static void await(struct waiting *w)
{
    struct status st = STATUS_INIT;
    struct timespec until;
    struct step *s;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += PATIENCE_MS * 1000000l;
    until.tv_sec += until.tv_nsec / 1000000000l;
    until.tv_nsec %= 1000000000l;
    while (w->step &&
           pthread_cond_timedwait(&w->wake, &w->lock, &until) != ETIMEDOUT)
        ;
    s = w->step;
    if (s) {
        step_hold(s);
        pthread_mutex_unlock(&w->lock);
        status_set(&st, MST_CANCELLED, "no patience");
        step_fail(s, &st);
        step_drop(s);
        pthread_mutex_lock(&w->lock);
    }
    while (w->step)
        pthread_cond_wait(&w->wake, &w->lock);
}

static void run_plan(struct plan *p)
{
    struct waiting w = { .lock = PTHREAD_MUTEX_INITIALIZER,
                         .wake = PTHREAD_COND_INITIALIZER };
    struct step_opts opts = {
        .env = { .id = 1, .cancel = &w.cancel, .rendezvous = &nowhere },
        .failed = on_failed,
        .done = on_done,
        .arg = &w
    };
    struct step *s;

    cancel_init(&w.cancel);
    w.step = s = step_new(p, &opts);
    step_run(s);
    pthread_mutex_lock(&w.lock);
    await(&w);
    pthread_mutex_unlock(&w.lock);
    cancel_done(&w.cancel);
}

static void run_graph(const void *data, size_t size)
{
    static struct pool *pool;
    struct op_env env = { .device = "/job:ps/replica:0/task:0/device:CPU:0" };
    Tensorflow__GraphDef *def;
    struct graph_library *lib;
    struct status st = STATUS_INIT;
    struct plan *plan;

    if (!pool)
        pool = pool_new(1);
    buffer_limit((size_t)256 << 20);
    def = CONTROL_UNPACK(tensorflow__graph_def, data, size);
    if (!def || graph_library_new(def, &lib, &st))
        return;
    env.pool = pool;
    env.resources = resources_new("ps");
    if (!plan_new(lib, &env, true, &plan, &st)) {
        for (int i = 0; i < 2 && !plan->has_blocking; i++)
            run_plan(plan);
        plan_unref(plan);
    }
    resources_unref(env.resources);
}

#endif
