#include "server/server.h"

#include <pthread.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/pool.h"
#include "rpc/server.h"
#include "server/master.h"
#include "server/master_message.h"
#include "server/quick.h"
#include "server/roster.h"
#include "server/worker.h"

#define THREADS_MAX   256
#define TRIM_EVERY_NS 1000000000ull
#define TRIM_AGE_MS   2000

struct server {
    struct loop_group *loops;
    struct pool *pool;
    struct rpc_server *rpc;
    struct worker *worker;
    struct master *master;
    struct quick *quick;
    struct roster *roster;
    uint16_t port;
    struct loop_timer trim;
    struct loop_task begin;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stopped; /* under lock */
};

/* Large buffers that nobody uses any more go back to the system. */
static void trim(struct loop_timer *timer)
{
    struct server *s = CONTAINER(timer, struct server, trim);
    struct loop *loop = loop_group_at(s->loops, 0);

    buffer_trim(TRIM_AGE_MS);
    loop_timer_set(loop, timer, loop_now_ns(loop) + TRIM_EVERY_NS);
}

static void begin(struct loop_task *task)
{
    trim(&CONTAINER(task, struct server, begin)->trim);
}

static int cpu_count(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);

    return n > 0 ? (int)n : 1;
}

static void server_free(struct server *s)
{
    rpc_server_free(s->rpc);
    pool_free(s->pool);
    master_free(s->master);
    worker_free(s->worker);
    loop_group_free(s->loops);
    quick_free(s->quick);
    roster_free(s->roster);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->wake);
    mem_free(s);
}

enum mst_code server_start(const struct server_opts *opts, struct server **ret,
                           struct status *st)
{
    struct server *s = MEM_NEW(struct server);
    struct session_config config;
    int threads = opts->threads;
    enum mst_code rc;

    if (!session_config_parse(&config, opts->config, opts->config_len))
        config = (struct session_config){ 0 };
    if (!threads)
        threads =
            config.threads ? MIN(config.threads, THREADS_MAX) : cpu_count();
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->wake, NULL);
    s->loops = loop_group_new(&(struct loop_opts){ .loops = opts->loops });
    s->pool = pool_new(threads);
    s->worker = worker_new(&(struct worker_opts){ .job = opts->job,
                                                  .task = opts->task,
                                                  .cluster = opts->cluster,
                                                  .cpus = config.cpus,
                                                  .loops = s->loops,
                                                  .pool = s->pool });
    session_config_free(&config);
    s->quick = quick_new(s->worker, s->loops);
    s->master =
        master_new(&(struct master_opts){ .job = opts->job,
                                          .task = opts->task,
                                          .cluster = opts->cluster,
                                          .config = opts->config,
                                          .config_len = opts->config_len,
                                          .worker = s->worker,
                                          .quick = s->quick,
                                          .loops = s->loops,
                                          .pool = s->pool });
    s->rpc = rpc_server_new(
        &(struct rpc_server_opts){ .group = s->loops, .held = opts->held });
    worker_add_methods(s->worker, s->rpc);
    master_add_methods(s->master, s->rpc);
    quick_add(s->quick, s->rpc);
    rc = roster_new(&(struct roster_opts){ .job = opts->job,
                                           .task = opts->task,
                                           .cluster = opts->cluster,
                                           .state_dir = opts->state_dir,
                                           .job_id = opts->job_id,
                                           .lease_s = opts->lease_s,
                                           .worker = s->worker,
                                           .master = s->master,
                                           .quick = s->quick,
                                           .loops = s->loops,
                                           .pool = s->pool },
                    &s->roster, st);
    if (!rc) {
        roster_add_methods(s->roster, s->rpc);
        rc = rpc_server_listen(s->rpc, opts->bind, &s->port, st);
    }
    if (rc) {
        server_free(s);
        return rc;
    }
    s->trim.fire = trim;
    s->begin.run = begin;
    loop_post(loop_group_at(s->loops, 0), &s->begin);
    roster_begin(s->roster);
    *ret = s;
    return MST_OK;
}

enum mst_code server_serve(struct server *s, struct status *st)
{
    return rpc_server_serve(s->rpc, st);
}

int server_port(const struct server *s)
{
    return s->port;
}

struct loop_group *server_loops(const struct server *s)
{
    return s->loops;
}

struct loop *server_only_loop(const struct server *s)
{
    return loop_group_size(s->loops) == 1 ? loop_group_at(s->loops, 0) : NULL;
}

struct rpc_server *server_rpc(const struct server *s)
{
    return s->rpc;
}

struct master *server_master(const struct server *s)
{
    return s->master;
}

static void on_stopped(void *arg)
{
    struct server *s = arg;

    pthread_mutex_lock(&s->lock);
    s->stopped = true;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
}

void server_stop(struct server *s, uint64_t grace_ms)
{
    roster_stop(s->roster);
    master_stop(s->master);
    rpc_server_stop(s->rpc, grace_ms, on_stopped, s);
    quick_stop(s->quick, grace_ms);
    pthread_mutex_lock(&s->lock);
    while (!s->stopped)
        pthread_cond_wait(&s->wake, &s->lock);
    pthread_mutex_unlock(&s->lock);
    server_free(s);
}
