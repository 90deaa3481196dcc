/*
 * How a client reaches a master: over a channel, or by calling the master of a
 * server in the same process, with the same messages and without a socket.
 *
 * A call is synchronous and has a deadline. What is under way can be given up
 * from another thread; a call that was ends with CANCELLED.
 *
 * Threads: any; each call waits on its own.
 */
#ifndef CLIENT_LINK_H
#define CLIENT_LINK_H

#include <pthread.h>

#include "client/wait.h"
#include "rpc/channel.h"
#include "rpc/local.h"
#include "server/master_run.h"
#include "server/server.h"

struct client_link {
    struct loop_group *loops; /* of the channel */
    struct rpc_channel *channel;
    struct server *server; /* instead: in this process */
    pthread_mutex_t lock;
    struct client_call *calls; /* under way; under lock */
};

/* Something that is under way and can be given up: one of the three. */
struct client_call {
    struct client_call *prev, *next;
    struct rpc_client_call *remote;
    struct rpc_local *local;
    struct master_run *run;
    bool cancelled;
};

/* target is "grpc://host:port". */
enum mst_code client_link_open(struct client_link *l, const char *target,
                               struct status *st) MUST_USE;
/* server outlives the link. */
void client_link_open_local(struct client_link *l, struct server *server);
void client_link_close(struct client_link *l);

struct client_ask {
    const char *path;    /* a constant */
    struct rpc_msg *msg; /* taken */
    uint64_t timeout_ms; /* 0: none */
    bool wait_for_ready; /* for a master that is not up yet */
    rpc_place_fn *place; /* optional; over a channel only */
    void *place_arg;
    struct client_wait *wait; /* optional: one that is kept between calls */
};
struct client_answer {
    struct rpc_data msg; /* with a reference of its owner */
    struct rpc_place placed;
};
/* What came back is the caller's, and on success only. */
enum mst_code client_link_call(struct client_link *l,
                               const struct client_ask *ask,
                               struct client_answer *ret,
                               struct status *st) MUST_USE;

/* For who runs steps himself: it is known from here on, until it leaves. */
void client_link_enter(struct client_link *l, struct client_call *c);
/* Whether it was given up. */
bool client_link_leave(struct client_link *l, struct client_call *c);
/* Gives up all that is under way now. */
void client_link_cancel(struct client_link *l);

#endif
