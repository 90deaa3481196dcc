/*
 * How a thread that waits reaches a server: over a channel, or by calling the
 * methods of a server in the same process, with the same messages and without a
 * socket. Sessions, the C API and the program make all their calls by this.
 *
 * A call has a deadline. It is made and waited for at once, or begun here and
 * ended later, for who has several. What is under way can be given up from
 * another thread; a call that was ends with CANCELLED.
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
    struct loop_group *loops; /* of the channel, if they are the link's own */
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
/* The same to "host:port"; on loops that outlive the link, or, if that is NULL,
 * on one of its own. */
void client_link_open_at(struct client_link *l, const char *address,
                         struct loop_group *loops);
/* server outlives the link. */
void client_link_open_local(struct client_link *l, struct server *server);
/* Ends all that is under way with CANCELLED. */
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
/* A call under way; nobody looks into it. */
struct client_asking {
    struct client_call call;
    struct client_ask ask;
    struct client_wait own;
    struct client_answer answer;
    struct status st;
};
/* The request is taken; the path stays valid until it has ended. */
void client_link_begin(struct client_link *l, const struct client_ask *ask,
                       struct client_asking *ret);
/* Waits. What came back is the caller's, and on success only. */
enum mst_code client_link_end(struct client_link *l, struct client_asking *a,
                              struct client_answer *ret,
                              struct status *st) MUST_USE;
/* Both. */
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
