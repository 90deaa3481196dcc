/*
 * Who is in a job: for each job name, tasks by index, each with the
 * "host:port" where it listens. This is TensorFlow's ClusterSpec, with the
 * same freedom: indices may have gaps, so a late task need not pretend that
 * those before it exist.
 *
 * A spec is a value: one owner, no lock. Jobs keep the order in which they
 * were named, tasks are sorted by index. Addresses are checked when they come
 * in, so whoever holds a spec may split any of them. Reading the text forms
 * (flags, TF_CONFIG) is spec_parse.h's matter; what may change while a job
 * runs is the membership table's (members.h).
 */
#ifndef CLUSTER_SPEC_H
#define CLUSTER_SPEC_H

#include "base/base.h"
#include "base/status.h"

struct cluster_task {
    int index;
    char *address; /* "host:port", "[v6]:port" */
};

struct cluster_job {
    char *name;
    struct cluster_task *tasks; /* by index */
    int count, room;
};

struct cluster_spec {
    struct cluster_job *jobs; /* as they were named */
    int count, room;
};

/* The two halves of an address; host points into the text it came from and
 * has no brackets. */
struct cluster_address {
    const char *host;
    int host_len;
    int port;
};

void cluster_spec_init(struct cluster_spec *spec);
void cluster_spec_done(struct cluster_spec *spec);
/* dst is overwritten, not freed. */
void cluster_spec_copy(struct cluster_spec *dst,
                       const struct cluster_spec *src);

/* Adds a task. A bad job name, index or address, and a task that is there
 * already, are INVALID_ARGUMENT. */
MUST_USE enum mst_code cluster_spec_add(struct cluster_spec *spec,
                                        const char *job, int task,
                                        const char *address, struct status *st);
/* Takes a task out, if it is there. */
void cluster_spec_remove(struct cluster_spec *spec, const char *job, int task);
/* No address may serve two tasks. */
MUST_USE enum mst_code cluster_spec_check(const struct cluster_spec *spec,
                                          struct status *st);

/* NULL when there is none. */
const struct cluster_job *cluster_spec_job(const struct cluster_spec *spec,
                                           const char *job);
const char *cluster_spec_address(const struct cluster_spec *spec,
                                 const char *job, int task);
/* The same, but says which part is unknown and what is there instead. */
MUST_USE enum mst_code cluster_spec_find(const struct cluster_spec *spec,
                                         const char *job, int task,
                                         const char **ret_address,
                                         struct status *st);
/* Tasks of all jobs. */
int cluster_spec_size(const struct cluster_spec *spec);

/* TensorFlow's rule for the job part of a device name. */
bool cluster_job_valid(const char *name);
/* Splits "host:port" and "[v6]:port". The message begins as TensorFlow's
 * does. Port 0 is taken: it asks the kernel for one. */
MUST_USE enum mst_code cluster_address_split(const char *text,
                                             struct cluster_address *ret,
                                             struct status *st);

#endif
