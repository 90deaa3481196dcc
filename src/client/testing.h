/*
 * What the tests of this folder share: a task in this process, and sessions on
 * it by both ways.
 */
#ifndef CLIENT_TESTING_H
#define CLIENT_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "base/mem.h"
#include "client/runner.h"
#include "graph/testing.h"

struct testing {
    struct server *server;
    char target[64];
    bool local;
};

static inline struct server *testing_server(int port, struct status *st)
{
    struct cluster_spec cluster;
    struct server *s = NULL;
    char bind[32];
    enum mst_code rc;

    snprintf(bind, sizeof(bind), "127.0.0.1:%d", port);
    cluster_spec_init(&cluster);
    rc = cluster_spec_add(&cluster, "localhost", 0, "127.0.0.1:1", st);
    if (!rc)
        rc = server_start(&(struct server_opts){ .job = "localhost",
                                                 .cluster = &cluster,
                                                 .bind = bind,
                                                 .threads = 2,
                                                 .loops = 1 },
                          &s, st);
    cluster_spec_done(&cluster);
    return rc ? NULL : s;
}

static inline struct testing *testing_new(bool local)
{
    struct testing *t = MEM_NEW(struct testing);
    struct status st = STATUS_INIT;

    t->server = testing_server(0, &st);
    if (!t->server)
        fail_msg("%s", st.msg);
    snprintf(t->target, sizeof(t->target), "grpc://127.0.0.1:%d",
             server_port(t->server));
    t->local = local;
    return t;
}

static inline void testing_free(struct testing *t)
{
    if (t->server)
        server_stop(t->server, 0);
    mem_free(t);
}

/* The graph is closed. */
static inline struct client_session *testing_session(struct testing *t,
                                                     struct graph_text *g)
{
    struct status st = STATUS_INIT;
    struct client_session *s;

    graph_text_close(g);
    if (client_session_new(t->target, t->local ? t->server : NULL, &s, &st) ||
        client_session_open(
            s,
            &(struct client_session_opts){ .graph = g->graph.data,
                                           .graph_len = g->graph.len },
            &st))
        fail_msg("%s", st.msg);
    pb_out_done(&g->graph);
    return s;
}

#endif
