/*
 * What `muster serve` is told, by flags or by TF_CONFIG: the cluster, which of
 * its tasks this is, and how to run it.
 *
 * Flags win over TF_CONFIG, piece by piece: a cluster in flags replaces the
 * one there, and so do --job_name and --task_index. A job name may be left out
 * when there is only one task to be. After a successful parse every field is
 * set and consistent: the task is in the cluster. With --join the cluster is
 * still to be asked for (cli/join.h).
 */
#ifndef CLI_SERVE_OPTIONS_H
#define CLI_SERVE_OPTIONS_H

#include <stdio.h>

#include "cli/options.h"
#include "cluster/spec.h"

struct serve_options {
    struct cluster_spec cluster;
    char *job_name;
    int task_index;
    char *address;   /* of this task, as the cluster has it */
    char *bind;      /* "host:port", or ":port" for all addresses */
    char *log;       /* a level that log_set_level() knows */
    int threads;     /* that compute; 0: as many as there are CPUs */
    int loops;       /* that serve sockets; 0: as the server thinks best */
    char *state_dir; /* of the membership's journal; NULL: the usual place */
    char *job_id;    /* as server_opts has it */
    int lease_s;     /* as server_opts has it */
    char *join;      /* a ps to get the cluster and the task from: then there
                        are none here yet, and bind is what --bind said */
    char *advertise; /* what a worker that joins is called; NULL: as it shows */
    bool help;       /* nothing else was looked at */
};

/* The flags as they were given; from them the options are worked out. Zero but
 * for task_index and lease, which are -1. */
struct serve_flags {
    char *ps_hosts, *worker_hosts, *cluster;
    char *job_name, *bind, *log;
    char *state_dir, *job_id, *join, *advertise;
    int task_index, threads, loops, lease;
    bool help;
};

void serve_options_done(struct serve_options *o);
/* argv are the words after `muster serve`; tf_config may be NULL. o is
 * overwritten, and to be done with in any case. */
MUST_USE enum mst_code serve_options_parse(struct serve_options *o, int argc,
                                           char **argv, const char *tf_config,
                                           struct status *st);
void serve_options_help(FILE *out);

/* For other commands that run a task: the rows fill a struct serve_flags,
 * which serve_options_take() empties. */
extern const struct option serve_options_table[];
MUST_USE enum mst_code serve_options_take(struct serve_options *o,
                                          struct serve_flags *f,
                                          const char *tf_config,
                                          struct status *st);

#endif
