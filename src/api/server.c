/*
 * The server of the public API: a struct server with a state that any thread
 * may ask for.
 *
 *   HELD --start--> SERVING --stop--> STOPPING --> STOPPED
 *     |                                  ^
 *     +--------------stop----------------+
 *
 * One thread, the first that asks for it, stops the server; others wait until
 * it has. What a child of fork() inherits is of no use: the threads are not
 * there and the lock may be held by one of them, so the child, known by its
 * process id, leaves everything alone.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/server.h"

#include "api/error.h"
#include "api/server_def.h"
#include "base/clock.h"
#include "base/mem.h"

enum state { HELD, SERVING, STOPPING, STOPPED };

struct mst_server {
    pid_t owner;
    struct server *server;
    int port;
    char *target;
    pthread_mutex_t lock;
    pthread_cond_t change;
    enum state state; /* under lock */
};

static bool elsewhere(const struct mst_server *s)
{
    return s->owner != getpid();
}

struct server *server_of_api(mst_server *s)
{
    return s->server;
}

/* A port that cannot be had is to TensorFlow what is wrong with the whole. */
static enum mst_code not_bound(struct status *st)
{
    struct status why;

    status_copy(&why, st);
    return status_set(st, MST_UNKNOWN, "Could not start gRPC server: %s",
                      why.msg);
}

static enum mst_code start_held(const struct server_def *d,
                                const struct mst_server_opts *opts,
                                struct server **ret, struct status *st)
{
    if (server_start(&(struct server_opts){ .job = d->job,
                                            .task = d->task,
                                            .cluster = &d->cluster,
                                            .bind = d->bind,
                                            .threads = d->threads,
                                            .state_dir = opts->state_dir,
                                            .job_id = opts->job_id,
                                            .lease_s = opts->lease_s,
                                            .held = true,
                                            .config = d->config,
                                            .config_len = d->config_len },
                     ret, st))
        return not_bound(st);
    return MST_OK;
}

static struct mst_server *wrap(struct server *server, const char *host)
{
    struct mst_server *s = MEM_NEW(struct mst_server);
    pthread_condattr_t attr;

    s->owner = getpid();
    s->server = server;
    s->port = server_port(server);
    s->target = mem_printf("grpc://%s:%d", host, s->port);
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&s->change, &attr);
    pthread_condattr_destroy(&attr);
    return s;
}

enum mst_code mst_server_new(const void *def, size_t def_len, mst_server **ret,
                             struct mst_error *error)
{
    return mst_server_new_opts(def, def_len, &(struct mst_server_opts){ 0 },
                               ret, error);
}

enum mst_code mst_server_new_opts(const void *def, size_t def_len,
                                  const struct mst_server_opts *opts,
                                  mst_server **ret, struct mst_error *error)
{
    struct status st = STATUS_INIT;
    struct server *server;
    struct server_def d;
    enum mst_code rc;

    rc = server_def_parse(&d, def, def_len, &st);
    if (!rc)
        rc = start_held(&d, opts, &server, &st);
    if (!rc)
        *ret = wrap(server, d.host);
    server_def_done(&d);
    return rc ? error_tell(error, &st) : MST_OK;
}

enum mst_code mst_server_start(mst_server *s, struct mst_error *error)
{
    struct status st = STATUS_INIT;

    if (elsewhere(s)) {
        status_set(&st, MST_FAILED_PRECONDITION,
                   "This server belongs to the parent process.");
        return error_tell(error, &st);
    }
    pthread_mutex_lock(&s->lock);
    if (s->state >= STOPPING)
        status_set(&st, MST_FAILED_PRECONDITION, "Server has stopped.");
    else if (s->state == HELD && !server_serve(s->server, &st))
        s->state = SERVING;
    pthread_mutex_unlock(&s->lock);
    return st.code ? error_tell(error, &st) : MST_OK;
}

/* Whether it is this caller that has to do it. */
static bool begin_stop(struct mst_server *s)
{
    bool mine;

    pthread_mutex_lock(&s->lock);
    mine = s->state < STOPPING;
    if (mine)
        s->state = STOPPING;
    while (!mine && s->state != STOPPED)
        pthread_cond_wait(&s->change, &s->lock);
    pthread_mutex_unlock(&s->lock);
    return mine;
}

void mst_server_stop(mst_server *s, int grace_ms)
{
    if (elsewhere(s) || !begin_stop(s))
        return;
    server_stop(s->server, (uint64_t)MAX(grace_ms, 0));
    pthread_mutex_lock(&s->lock);
    s->state = STOPPED;
    pthread_cond_broadcast(&s->change);
    pthread_mutex_unlock(&s->lock);
}

void mst_server_free(mst_server *s)
{
    if (!s || elsewhere(s))
        return;
    mst_server_stop(s, 0);
    pthread_cond_destroy(&s->change);
    pthread_mutex_destroy(&s->lock);
    mem_free(s->target);
    mem_free(s);
}

int mst_server_wait(mst_server *s, int timeout_ms)
{
    uint64_t end = clock_ns() + (uint64_t)MAX(timeout_ms, 0) * 1000000;
    struct timespec until = { (time_t)(end / 1000000000),
                              (long)(end % 1000000000) };
    int late = 0;
    bool over;

    if (elsewhere(s))
        return 1;
    pthread_mutex_lock(&s->lock);
    while ((s->state == SERVING || s->state == STOPPING) && !late)
        late = timeout_ms < 0
                   ? pthread_cond_wait(&s->change, &s->lock)
                   : pthread_cond_timedwait(&s->change, &s->lock, &until);
    over = s->state == STOPPED || s->state == HELD;
    pthread_mutex_unlock(&s->lock);
    return over;
}

int mst_server_port(const mst_server *s)
{
    return s->port;
}

const char *mst_server_target(const mst_server *s)
{
    return s->target;
}
