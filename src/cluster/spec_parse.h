/*
 * The forms that a cluster is told in, TensorFlow's ClusterDef message and
 * texts:
 *
 *   a list of hosts     ps0:2222,ps1:2222            --ps_hosts, --worker_hosts
 *   jobs with lists     ps=ps0:2222;worker=w0:1,w1:1                 --cluster
 *   TF_CONFIG           {"cluster": {"ps": ["ps0:2222"], ...},
 *                        "task": {"type": "ps", "index": 0}}
 *
 * Blanks mean nothing in the first two: people write them after commas and
 * colons. In the second, "worker/2=..." lets a list begin with task 2, and in
 * the third a job may be an object {"2": "host:port"}, as in TensorFlow.
 *
 * What is read is added to the spec. When a call fails, part of it may have
 * been; the caller drops the spec then.
 */
#ifndef CLUSTER_SPEC_PARSE_H
#define CLUSTER_SPEC_PARSE_H

#include "cluster/spec.h"
#include "proto/worker.pb-c.h"

/* A copy without blanks; the caller's to free. */
char *spec_parse_squeeze(const char *text);
/* Tasks first, first + 1, ... of the job. */
MUST_USE enum mst_code spec_parse_hosts(struct cluster_spec *spec,
                                        const char *job, int first,
                                        const char *list, struct status *st);
MUST_USE enum mst_code spec_parse_jobs(struct cluster_spec *spec,
                                       const char *text, struct status *st);
/* TensorFlow's message of it. */
MUST_USE enum mst_code spec_parse_def(struct cluster_spec *spec,
                                      const Tensorflow__ClusterDef *def,
                                      struct status *st);
/* *ret_job is the caller's to free, and NULL when TF_CONFIG has no task;
 * *ret_task is then -1. */
MUST_USE enum mst_code spec_parse_tf_config(struct cluster_spec *spec,
                                            const char *json, char **ret_job,
                                            int *ret_task, struct status *st);

#endif
