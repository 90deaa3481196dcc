/*
 * A tensorflow.ServerDef as it comes from a user: checked as TensorFlow checks
 * it, and made ready for server_start().
 */
#ifndef API_SERVER_DEF_H
#define API_SERVER_DEF_H

#include "cluster/spec.h"

struct server_def {
    struct cluster_spec cluster;
    char *job;
    int task;
    char *host;  /* for clients */
    char *bind;  /* "localhost:2222", ":2222" */
    int threads; /* that compute; 0: as many as there are CPUs */
    uint8_t *config;
    size_t config_len;
};

enum mst_code server_def_parse(struct server_def *d, const void *data,
                               size_t len, struct status *st) MUST_USE;
/* Also after a failure. */
void server_def_done(struct server_def *d);

#endif
