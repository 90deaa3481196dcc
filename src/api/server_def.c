#include "api/server_def.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "proto/worker.pb-c.h"
#include "wire/control.h"
#include "wire/pb.h"

enum { CONFIG_INTRA_OP = 2, CONFIG_INTER_OP = 5 };

void server_def_done(struct server_def *d)
{
    cluster_spec_done(&d->cluster);
    mem_free(d->job);
    mem_free(d->host);
    mem_free(d->bind);
    mem_free(d->config);
    *d = (struct server_def){ 0 };
}

/* Where the cluster says that this task listens. */
static enum mst_code find_address(const Tensorflow__ServerDef *def,
                                  const char **ret, struct status *st)
{
    size_t jobs = def->cluster ? def->cluster->n_job : 0;

    for (size_t j = 0; j < jobs; j++) {
        const Tensorflow__JobDef *job = def->cluster->job[j];

        if (strcmp(job->name, def->job_name))
            continue;
        for (size_t i = 0; i < job->n_tasks; i++)
            if (job->tasks[i]->key == def->task_index) {
                *ret = job->tasks[i]->value;
                return MST_OK;
            }
        return status_set(st, MST_INTERNAL,
                          "Task %d was not defined in job \"%s\"",
                          def->task_index, def->job_name);
    }
    return status_set(st, MST_INTERNAL, "Job \"%s\" was not defined in cluster",
                      def->job_name);
}

/* The digits after the last colon; -1 when there are none. */
static int port_of(const char *address)
{
    const char *colon = strrchr(address, ':');
    char *end;
    long port;

    if (!colon || colon[1] < '0' || colon[1] > '9')
        return -1;
    port = strtol(colon + 1, &end, 10);
    return *end || port > 65535 ? -1 : (int)port;
}

static bool on_loopback(const char *host)
{
    return !strcmp(host, "localhost") || !strcmp(host, "127.0.0.1") ||
           !strcmp(host, "[::1]");
}

/* A task whose host is not plainly loopback is for the network, and listens on
 * all addresses: its name may be one that only others know. */
static enum mst_code choose_bind(struct server_def *d, const char *address,
                                 int port, struct status *st)
{
    const char *colon = strrchr(address, ':');

    if (!port)
        port = port_of(address);
    if (port < 0 || port > 65535)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Could not parse port for local server from \"%s\".",
                          address);
    d->host = colon > address ? mem_strn(address, (size_t)(colon - address))
                              : mem_str("localhost");
    d->bind = mem_printf("%s:%d", on_loopback(d->host) ? d->host : "", port);
    return MST_OK;
}

/* The own address needs no host: nobody else may be in the cluster. */
static enum mst_code take_cluster(struct server_def *d,
                                  const Tensorflow__ServerDef *def,
                                  const char *own, struct status *st)
{
    enum mst_code rc = MST_OK;

    for (size_t j = 0; j < def->cluster->n_job && !rc; j++) {
        const Tensorflow__JobDef *job = def->cluster->job[j];

        for (size_t i = 0; i < job->n_tasks && !rc; i++) {
            const char *value = job->tasks[i]->value;
            bool bare = value == own && *value == ':';
            char *address = mem_printf("%s%s", bare ? "localhost" : "", value);

            rc = cluster_spec_add(&d->cluster, job->name, job->tasks[i]->key,
                                  address, st);
            mem_free(address);
        }
    }
    return rc;
}

/* TensorFlow has a pool for ops and one for the parts of an op, ours is one
 * for both. Zero, there, is a thread for each CPU. */
static enum mst_code take_config(struct server_def *d,
                                 const Tensorflow__ServerDef *def,
                                 struct status *st)
{
    const ProtobufCBinaryData *c = &def->default_session_config;
    struct pb_in in = pb_in(c->data, c->len);
    int intra = 0, inter = 0;
    struct pb_field f;

    while (pb_next(&in, &f)) {
        if (f.wire == PB_VARINT && f.number == CONFIG_INTRA_OP)
            intra = (int)(int64_t)f.value;
        if (f.wire == PB_VARINT && f.number == CONFIG_INTER_OP)
            inter = (int)(int64_t)f.value;
    }
    if (in.bad)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Could not parse the default_session_config");
    if (intra && inter)
        d->threads = MAX(1, MAX(intra, inter));
    d->config = mem_copy(c->data, c->len);
    d->config_len = c->len;
    return MST_OK;
}

static enum mst_code take(struct server_def *d,
                          const Tensorflow__ServerDef *def, struct status *st)
{
    const char *address;
    enum mst_code rc;

    if (strcmp(def->protocol, "grpc"))
        return status_set(st, MST_NOT_FOUND,
                          "No server factory registered for the given "
                          "ServerDef: protocol \"%s\"\nThe available server "
                          "factories are: [ GRPC_SERVER ]",
                          def->protocol);
    rc = find_address(def, &address, st);
    if (!rc)
        rc = choose_bind(d, address, def->port, st);
    if (!rc)
        rc = take_cluster(d, def, address, st);
    if (!rc)
        rc = take_config(d, def, st);
    d->job = mem_str(def->job_name);
    d->task = def->task_index;
    return rc;
}

enum mst_code server_def_parse(struct server_def *d, const void *data,
                               size_t len, struct status *st)
{
    Tensorflow__ServerDef *def =
        CONTROL_UNPACK(tensorflow__server_def, data, len);
    enum mst_code rc;

    *d = (struct server_def){ 0 };
    cluster_spec_init(&d->cluster);
    if (!def)
        return status_set(
            st, MST_INVALID_ARGUMENT,
            "Could not parse provided bytes into a ServerDef protocol buffer");
    rc = take(d, def, st);
    control_free(def);
    return rc;
}
