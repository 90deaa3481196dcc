#include "train/queues.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"
#include "client/runner.h"

#define CANCEL_AGAIN_NS 20000000u

struct queue_thread {
    struct queues *queues;
    const struct meta_queue_runner *runner;
    const char *op;
    pthread_t thread;
};

struct queues {
    struct client_session *session;
    atomic_bool stopping;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    struct status st; /* under lock: the first error */
    int live;         /* under lock */
    struct queue_thread *threads;
    int count, room;
};

static bool is_end(enum mst_code code)
{
    return code == MST_OUT_OF_RANGE || code == MST_CANCELLED;
}

static void run_once(struct queues *q, const char *op)
{
    struct client_want want = { .targets = &op, .target_count = 1 };
    struct status st = STATUS_INIT;

    (void)!client_session_run(q->session, &want, NULL, NULL, 0, &st);
}

static void failed(struct queues *q, const struct status *st)
{
    if (is_end(st->code) || st->code == MST_UNAVAILABLE ||
        st->code == MST_ABORTED)
        return;
    pthread_mutex_lock(&q->lock);
    if (!q->st.code)
        status_copy(&q->st, st);
    pthread_mutex_unlock(&q->lock);
}

static void enqueue(struct queue_thread *t)
{
    struct client_want want = { .targets = &t->op, .target_count = 1 };
    struct queues *q = t->queues;
    struct status st = STATUS_INIT;
    struct client_runner *r;

    if (client_runner_new(q->session, &want, 0, &r, &st)) {
        failed(q, &st);
        return;
    }
    client_runner_aside(r);
    while (!atomic_load(&q->stopping) &&
           !client_runner_run(r, NULL, NULL, 0, &st))
        ;
    client_runner_free(r);
    failed(q, &st);
    if (st.code == MST_OUT_OF_RANGE && *t->runner->close)
        run_once(q, t->runner->close);
}

static void *thread_main(void *arg)
{
    struct queue_thread *t = arg;
    struct queues *q = t->queues;

    enqueue(t);
    pthread_mutex_lock(&q->lock);
    q->live--;
    pthread_cond_signal(&q->ended);
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

static void add(struct queues *q, const struct meta_queue_runner *r)
{
    for (int i = 0; i < r->enqueue_count; i++)
        *MEM_PUSH(q->threads, q->count, q->room) = (struct queue_thread){
            .queues = q, .runner = r, .op = r->enqueue[i]
        };
}

struct queues *
queues_start(struct client_session *session, const struct meta_graph *graph,
             bool (*wanted)(void *arg, const struct meta_queue_runner *r),
             void *arg)
{
    struct queues *q = MEM_NEW(struct queues);
    pthread_condattr_t attr;

    q->session = session;
    pthread_mutex_init(&q->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&q->ended, &attr);
    pthread_condattr_destroy(&attr);
    for (int i = 0; i < graph->runner_count; i++)
        if (!wanted || wanted(arg, &graph->runners[i]))
            add(q, &graph->runners[i]);
    q->live = q->count;
    for (int i = 0; i < q->count; i++) {
        struct queue_thread *t = &q->threads[i];

        CHECK(!thread_start(&t->thread, NULL, thread_main, t));
    }
    return q;
}

enum mst_code queues_status(struct queues *q, struct status *st)
{
    enum mst_code rc;

    pthread_mutex_lock(&q->lock);
    rc = q->st.code;
    if (rc)
        status_copy(st, &q->st);
    pthread_mutex_unlock(&q->lock);
    return rc;
}

/* A thread that is just about to run its op misses a cancellation, and gets
 * the next. */
static void await_end(struct queues *q)
{
    pthread_mutex_lock(&q->lock);
    while (q->live) {
        uint64_t end = clock_ns() + CANCEL_AGAIN_NS;
        struct timespec until = { (time_t)(end / 1000000000),
                                  (long)(end % 1000000000) };

        pthread_mutex_unlock(&q->lock);
        client_session_cancel(q->session);
        pthread_mutex_lock(&q->lock);
        if (q->live)
            pthread_cond_timedwait(&q->ended, &q->lock, &until);
    }
    pthread_mutex_unlock(&q->lock);
}

void queues_stop(struct queues *q)
{
    if (!q)
        return;
    atomic_store(&q->stopping, true);
    await_end(q);
    for (int i = 0; i < q->count; i++)
        pthread_join(q->threads[i].thread, NULL);
    pthread_cond_destroy(&q->ended);
    pthread_mutex_destroy(&q->lock);
    mem_free(q->threads);
    mem_free(q);
}
