/*
 * Who is in the job, as this server knows it: the membership of cluster/ with
 * a journal, a network and a clock, and the service muster.Membership on it.
 *
 * A parameter server keeps the list: it takes changes, writes them down, tells
 * the other ps, and looks after who is alive. Any other task follows: it
 * watches one ps, passes changes on to it, and answers questions from its copy.
 * In a cluster without job ps every task keeps a list of its own.
 *
 * The list's only effect on what runs is peers_set(): from the next transfer on
 * a task is somewhere else. No session, graph, variable or connection of
 * anybody else is touched.
 */
#ifndef SERVER_ROSTER_H
#define SERVER_ROSTER_H

#include "cluster/spec.h"
#include "rpc/server.h"

struct roster;
struct worker;
struct master;
struct pool;

struct roster_opts {
    const char *job;
    int task;
    const struct cluster_spec *cluster;
    /* Of the journal. NULL: where state is kept on this system; "none":
     * nowhere, and what is told is forgotten with the process. */
    const char *state_dir;
    /* Which of the jobs that this ps was ever in; its journals are apart, and
     * a ps that has another is not listened to. NULL: $MUSTER_JOB_ID, or none.
     */
    const char *job_id;
    /* Seconds after which the sessions of a worker that is gone are dropped.
     * -1: never; 0: a minute for workers of ours, never for TensorFlow's. */
    int lease_s;
    struct worker *worker;
    struct master *master;
    struct quick *quick;
    struct loop_group *loops;
    struct pool *pool;
};

/* Reads the journal. */
enum mst_code roster_new(const struct roster_opts *opts, struct roster **ret,
                         struct status *st) MUST_USE;
void roster_add_methods(struct roster *r, struct rpc_server *server);
/* The server listens: from now on the others are asked and told. */
void roster_begin(struct roster *r);
/* Answers what still waits. Nothing of the list changes any more. */
void roster_stop(struct roster *r);
/* After the pool and the loops have ended. */
void roster_free(struct roster *r);

#endif
