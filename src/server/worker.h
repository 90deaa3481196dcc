/*
 * TensorFlow's WorkerService: what a master asks of a task, and what other
 * tasks ask of it.
 *
 * All handlers run on the loop thread of their connection and answer there,
 * except RegisterGraph, which compiles on the pool, and what has to wait.
 */
#ifndef SERVER_WORKER_H
#define SERVER_WORKER_H

#include "base/pool.h"
#include "cluster/spec.h"
#include "rpc/server.h"
#include "server/session.h"
#include "server/steps.h"
#include "wire/pb.h"

struct worker;
struct run_table;

struct worker_opts {
    const char *job;
    int task;
    const struct cluster_spec *cluster;
    int cpus; /* devices that it says it has; they share all there is */
    struct loop_group *loops;
    struct pool *pool;
};

struct worker *worker_new(const struct worker_opts *opts);
/* After the server that has its methods has stopped. */
void worker_free(struct worker *w);
/* Adds the service to a server that does not listen yet. */
void worker_add_methods(struct worker *w, struct rpc_server *server);

/* ---- for the master in the same process ---- */

const char *worker_task(const struct worker *w);
int worker_cpus(const struct worker *w);
uint64_t worker_incarnation(const struct worker *w);
struct sessions *worker_sessions(struct worker *w);
struct steps *worker_steps(struct worker *w);
struct run_table *worker_runs(struct worker *w);
void worker_count_step(struct worker *w); /* one more that was asked for */
struct peers *worker_peers(struct worker *w);
/* Takes the GraphDef over. The plan belongs to the caller alone. */
enum mst_code worker_compile(struct worker *w, struct session *session,
                             Tensorflow__GraphDef *def, bool optimised,
                             struct plan **ret, struct status *st) MUST_USE;
/* Appends the DeviceAttributes of its devices. */
void worker_put_devices(const struct worker *w, struct pb_out *o,
                        uint32_t field);
/* Drops what a container holds; "" is the default one. */
void worker_clear(struct worker *w, const char *container);

struct worker_status {
    size_t sessions, steps;
    uint64_t steps_run;
};
void worker_status(struct worker *w, struct worker_status *ret);

#endif
