/*
 * `muster train`: one worker of a training job. Its task runs in this process,
 * and the steps are function calls on its master.
 *
 * SIGINT and SIGTERM end it in order: the step under way is finished (or given
 * up, if it takes longer than a moment), the chief saves, and the exit code is
 * 130 or 0. A second signal does not wait.
 */
#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "cli/command.h"
#include "cli/join.h"
#include "cli/progress.h"
#include "cli/train_plan.h"
#include "train/training.h"

#define PATIENCE_S 1
#define SAVE_SECS  600
#define EVAL_ROWS  256
#define NUMBERS    32
#define SIGEND     SIGUSR1 /* ends the thread that waits for signals */

struct trainer {
    const struct train_options *o;
    struct train_plan plan;
    struct data data;
    struct server *server;
    struct training *training;
    struct progress progress;
    struct tensor feeds[NUMBERS], fetches[NUMBERS];
    int64_t global_step;
    uint64_t saved_ns;
    int64_t saved_step;
    sigset_t signals;
    pthread_t watcher;
    atomic_int signal;     /* that ended it, or 0 */
    atomic_bool finishing; /* what is under way is not to be given up */
    atomic_llong steps;    /* of this worker */
    sem_t requests;        /* of --bench, with end_ns set; or a signal */
    atomic_ullong end_ns;
};

/* ---- signals ---- */

static void *watch_signals(void *arg)
{
    struct timespec patience = { PATIENCE_S, 0 };
    struct trainer *t = arg;
    int got;

    sigwait(&t->signals, &got);
    if (got == SIGEND)
        return NULL;
    atomic_store(&t->signal, got);
    training_stop(t->training, false);
    sem_post(&t->requests);
    for (;;) {
        got = sigtimedwait(&t->signals, NULL, &patience);
        if (got == SIGEND)
            return NULL;
        if (got > 0)
            _exit(128 + got);
        if (errno == EAGAIN && !atomic_load(&t->finishing))
            training_stop(t->training, true);
    }
}

static void start_watching(struct trainer *t)
{
    CHECK(!thread_start(&t->watcher, NULL, watch_signals, t));
}

static void stop_watching(struct trainer *t)
{
    pthread_kill(t->watcher, SIGEND);
    pthread_join(t->watcher, NULL);
}

/* ---- steps ---- */

static void drop(struct tensor *list, int count)
{
    for (int i = 0; i < count; i++)
        tensor_unref(&list[i]);
}

/* Runs one step; again, after recovering, if a task was lost. */
static enum mst_code step_once(struct trainer *t, struct status *st)
{
    enum mst_code rc;

    rc = data_next(&t->data, t->feeds, st);
    if (rc)
        return rc;
    while (training_is_lost(
        rc = training_step(t->training, t->feeds, t->fetches, st))) {
        progress_say(&t->progress, st->msg);
        progress_say(&t->progress, "a task was lost; beginning again");
        rc = training_recover(t->training, st);
        if (rc)
            break;
    }
    drop(t->feeds, t->data.count);
    return rc;
}

/* The numbers of the step; the last fetch may be the global step. */
static enum mst_code report(struct trainer *t, struct status *st)
{
    const struct train_plan *p = &t->plan;
    struct progress_number numbers[NUMBERS];
    enum mst_code rc = MST_OK;
    int n = p->labels.count;

    for (int i = 0; i < n && !rc; i++) {
        numbers[i].name = p->labels.list[i];
        rc = train_plan_number(&t->fetches[i], p->fetches.list[i],
                               &numbers[i].value, st);
    }
    /* The value is from before or from after the update. */
    t->global_step = p->fetches.count > n ? tensor_int(&t->fetches[n], 0)
                                          : t->global_step + 1;
    drop(t->fetches, p->fetches.count);
    if (!rc)
        progress_step(&t->progress, t->global_step, numbers, n);
    atomic_store_explicit(&t->steps, t->progress.steps, memory_order_relaxed);
    return rc;
}

static enum mst_code is_reached(struct trainer *t, bool *ret, struct status *st)
{
    int goal = t->o->steps;
    enum mst_code rc;
    int64_t now;

    *ret = goal && t->global_step >= goal;
    if (!goal || !training_step_tensor(t->training) ||
        t->global_step + 1 < goal)
        return MST_OK;
    rc = training_global_step(t->training, &now, st);
    *ret = !rc && now >= goal;
    return training_is_lost(rc) ? MST_OK : rc; /* the next step notices */
}

static bool is_chief(const struct trainer *t)
{
    const struct serve_options *task = &t->o->task;

    if (!strcmp(task->job_name, "chief") || !strcmp(task->job_name, "master"))
        return true;
    return task->task_index == 0 &&
           !cluster_spec_job(&task->cluster, "chief") &&
           !cluster_spec_job(&task->cluster, "master");
}

static enum mst_code save(struct trainer *t, struct status *st)
{
    enum mst_code rc;
    int64_t now;

    rc = training_global_step(t->training, &now, st);
    if (!rc && !training_step_tensor(t->training))
        now = t->global_step;
    if (!rc)
        rc = training_save(t->training, now, st);
    t->saved_ns = clock_ns();
    t->saved_step = t->global_step;
    return rc;
}

static enum mst_code save_if_due(struct trainer *t, struct status *st)
{
    const struct train_options *o = t->o;
    int secs = o->save_secs ? o->save_secs : o->save_steps ? 0 : SAVE_SECS;
    enum mst_code rc;
    bool due;

    if (!o->checkpoint_dir || !is_chief(t))
        return MST_OK;
    due = (o->save_steps && t->global_step - t->saved_step >= o->save_steps) ||
          (secs && clock_ns() - t->saved_ns >= (uint64_t)secs * 1000000000);
    if (!due)
        return MST_OK;
    rc = save(t, st);
    return training_is_lost(rc) ? MST_OK : rc; /* the next step notices */
}

/* Until the goal, the end of the time or of the data, or a signal. */
static enum mst_code train_until(struct trainer *t, uint64_t end_ns,
                                 struct status *st)
{
    bool reached = false;
    enum mst_code rc = MST_OK;

    while (!rc && !reached && !training_stopped(t->training) &&
           !(end_ns && clock_ns() >= end_ns)) {
        rc = step_once(t, st);
        if (!rc)
            rc = report(t, st);
        if (!rc)
            rc = save_if_due(t, st);
        if (!rc)
            rc = is_reached(t, &reached, st);
    }
    if (rc == MST_OUT_OF_RANGE ||
        (rc == MST_CANCELLED && training_stopped(t->training))) {
        status_clear(st);
        rc = MST_OK;
    }
    return rc;
}

/* ---- bench ---- */

/* Reads the requests and answers them in time, also when the step that is under
 * way then waits for a worker who has paused before, as a synchronous one may.
 * The end of the input is as SIGTERM. */
static void *answer_requests(void *arg)
{
    struct trainer *t = arg;
    char line[64];

    while (fgets(line, sizeof(line), stdin)) {
        long long before = atomic_load(&t->steps), steps;
        uint64_t begin = clock_ns();
        uint64_t end = begin + (uint64_t)(MAX(atof(line), 0) * 1e9);
        struct timespec until = { (time_t)(end / 1000000000),
                                  (long)(end % 1000000000) };
        double took;

        atomic_store(&t->end_ns, end);
        sem_post(&t->requests);
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL))
            ;
        steps = atomic_load(&t->steps) - before;
        took = (double)(clock_ns() - begin) / 1e9;
        printf("{\"steps\": %lld, \"seconds\": %.4f, \"steps_per_s\": %.3f}\n",
               steps, took, (double)steps / MAX(took, 1e-9));
        fflush(stdout);
    }
    if (!atomic_load(&t->signal))
        pthread_kill(t->watcher, SIGTERM);
    return NULL;
}

static enum mst_code train_on_request(struct trainer *t, struct status *st)
{
    enum mst_code rc = MST_OK;
    pthread_t answerer;

    puts("{\"ready\": true}");
    fflush(stdout);
    CHECK(!thread_start(&answerer, NULL, answer_requests, t));
    while (!rc && !training_stopped(t->training)) {
        if (!sem_wait(&t->requests))
            rc = train_until(t, atomic_load(&t->end_ns), st);
    }
    pthread_cancel(answerer);
    pthread_join(answerer, NULL);
    return rc;
}

/* ---- evaluation ---- */

static enum mst_code eval_rows(struct trainer *t, struct client_runner *r,
                               const struct data *d, int64_t at, int64_t n,
                               double *sums, struct status *st)
{
    const struct train_plan *p = &t->plan;
    enum mst_code rc;

    rc = data_rows(d, at, n, t->feeds, st);
    if (rc)
        return rc;
    rc = client_runner_run(r, t->feeds, t->fetches, 0, st);
    drop(t->feeds, d->count);
    if (rc)
        return rc;
    for (int i = 0; i < p->evals.count && !rc; i++) {
        double value;

        rc = train_plan_number(&t->fetches[i], p->evals.list[i], &value, st);
        sums[i] += rc ? 0 : value * (double)n;
    }
    drop(t->fetches, p->evals.count);
    return rc;
}

/* The mean over all rows. */
static enum mst_code evaluate(struct trainer *t, struct progress_number *ret,
                              struct status *st)
{
    const struct train_plan *p = &t->plan;
    struct client_want want = train_plan_eval(p);
    double sums[NUMBERS] = { 0 };
    struct client_runner *r = NULL;
    struct data d = { 0 };
    enum mst_code rc;

    rc = data_open(&d, p->eval_sources, p->eval_feeds.count,
                   &(struct data_opts){
                       .files = t->o->eval_data ? t->o->eval_data : t->o->data,
                       .batch = 1 },
                   st);
    if (!rc)
        rc = client_runner_new(training_session(t->training), &want, 0, &r, st);
    if (!rc && !d.count)
        d.rows = 1; /* fed from nothing: asked once */
    for (int64_t at = 0; at < d.rows && !rc; at += EVAL_ROWS)
        rc = eval_rows(t, r, &d, at, MIN(EVAL_ROWS, d.rows - at), sums, st);
    for (int i = 0; i < p->evals.count && !rc; i++)
        ret[i] = (struct progress_number){ p->eval_labels.list[i],
                                           sums[i] / (double)d.rows };
    client_runner_free(r);
    data_close(&d);
    return rc;
}

/* ---- the whole ---- */

static void say(void *arg, const char *text)
{
    progress_say(&((struct trainer *)arg)->progress, text);
}

static enum mst_code finish(struct trainer *t, struct status *st)
{
    struct progress_number evals[NUMBERS];
    enum mst_code rc = MST_OK;
    int count = 0;

    atomic_store(&t->finishing, true);
    if (t->o->checkpoint_dir && is_chief(t))
        rc = save(t, st);
    if (!rc && t->plan.evals.count && is_chief(t) && !atomic_load(&t->signal)) {
        rc = evaluate(t, evals, st);
        count = rc ? 0 : t->plan.evals.count;
    }
    if (training_step_tensor(t->training) && !rc)
        rc = training_global_step(t->training, &t->global_step, st);
    if (!t->o->bench)
        progress_end(&t->progress, t->global_step, evals, count);
    return rc;
}

static enum mst_code run(struct trainer *t, struct status *st)
{
    const struct train_options *o = t->o;
    enum mst_code rc;

    rc = training_begin(t->training, st);
    if (rc == MST_CANCELLED && training_stopped(t->training))
        return MST_OK;
    if (!rc)
        rc = training_global_step(t->training, &t->global_step, st);
    if (rc)
        return rc;
    t->saved_ns = clock_ns();
    t->saved_step = t->global_step;
    progress_begin(&t->progress);
    rc = o->bench
             ? train_on_request(t, st)
             : train_until(t,
                           o->seconds
                               ? clock_ns() + (uint64_t)o->seconds * 1000000000
                               : 0,
                           st);
    return rc ? rc : finish(t, st);
}

static enum mst_code make_training(struct trainer *t, struct status *st)
{
    const struct train_options *o = t->o;
    const struct serve_options *task = &o->task;
    const struct cluster_job *ps = cluster_spec_job(&task->cluster, "ps");
    const struct cluster_job *own =
        cluster_spec_job(&task->cluster, task->job_name);

    return training_new(
        &(struct training_opts){ .graph = &t->plan.graph,
                                 .place = { .job = task->job_name,
                                            .task = task->task_index,
                                            .ps_job = "ps",
                                            .ps_tasks = ps ? ps->count : 0,
                                            .workers = own ? own->count : 1 },
                                 .server = t->server,
                                 .chief = is_chief(t),
                                 .checkpoint_dir = o->checkpoint_dir,
                                 .keep = o->keep,
                                 .want = train_plan_step(&t->plan),
                                 .say = o->quiet ? NULL : say,
                                 .arg = t },
        &t->training, st);
}

static enum mst_code start_server(struct trainer *t, struct status *st)
{
    const struct serve_options *task = &t->o->task;

    (void)log_set_level(task->log);
    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&t->signals);
    sigaddset(&t->signals, SIGTERM);
    sigaddset(&t->signals, SIGINT);
    sigaddset(&t->signals, SIGEND);
    pthread_sigmask(SIG_BLOCK, &t->signals, NULL);
    return server_start(&(struct server_opts){ .job = task->job_name,
                                               .task = task->task_index,
                                               .cluster = &task->cluster,
                                               .bind = task->bind,
                                               .threads = task->threads,
                                               .loops = task->loops,
                                               .state_dir = task->state_dir,
                                               .job_id = task->job_id,
                                               .lease_s = task->lease_s },
                        &t->server, st);
}

static enum mst_code load(struct trainer *t, struct status *st)
{
    const struct train_options *o = t->o;
    struct train_plan *p = &t->plan;
    const struct cluster_job *own;
    enum mst_code rc;

    rc = train_plan_read(p, o, st);
    if (rc)
        return rc;
    if (p->feeds.count > NUMBERS || p->fetches.count > NUMBERS ||
        p->evals.count > NUMBERS || p->eval_feeds.count > NUMBERS)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "More than %d feeds or fetches", NUMBERS);
    own = cluster_spec_job(&o->task.cluster, o->task.job_name);
    return data_open(&t->data, p->sources, p->feeds.count,
                     &(struct data_opts){ .files = o->data,
                                          .batch = o->batch,
                                          .shuffle = o->shuffle,
                                          .seed = (uint64_t)o->seed,
                                          .shard = o->task.task_index,
                                          .shards = own ? own->count : 1 },
                     st);
}

static int train(struct train_options *o)
{
    struct trainer *t = MEM_NEW(struct trainer);
    struct status st = STATUS_INIT;
    enum mst_code rc = MST_OK;
    int code;

    t->o = o;
    sem_init(&t->requests, 0, 0);
    progress_init(&t->progress, o->json, o->quiet || o->bench, o->log_steps,
                  o->steps);
    if (o->task.join)
        rc = join_cluster(&o->task, &st);
    if (!rc)
        rc = load(t, &st);
    if (!rc)
        rc = start_server(t, &st);
    if (!rc)
        rc = make_training(t, &st);
    if (!rc) {
        start_watching(t);
        rc = run(t, &st);
        stop_watching(t);
    }
    training_free(t->training);
    if (o->task.join)
        join_leave(&o->task);
    if (t->server)
        server_stop(t->server, 0);
    if (rc)
        fprintf(stderr, "muster train: %s\n", st.msg);
    code = rc                                  ? EXIT_FAILURE
           : atomic_load(&t->signal) == SIGINT ? 130
                                               : EXIT_SUCCESS;
    data_close(&t->data);
    train_plan_done(&t->plan);
    sem_destroy(&t->requests);
    mem_free(t);
    return code;
}

int train_main(int argc, char **argv)
{
    struct status st = STATUS_INIT;
    struct train_options o;
    int rc = EXIT_SUCCESS;

    if (train_options_parse(&o, argc, argv, getenv("TF_CONFIG"), &st)) {
        fprintf(stderr, "muster train: %s\n", st.msg);
        rc = EXIT_USAGE;
    } else if (o.task.help) {
        train_options_help(stdout);
    } else {
        rc = train(&o);
    }
    train_options_done(&o);
    return rc;
}
