/*
 * The client side of gRPC calls: one request, and one message or a stream of
 * them for an answer.
 *
 * A channel is one peer, named "host:port", and at most one connection that
 * takes new calls. It connects when the first call wants it to, reconnects by
 * itself with a growing pause (20 ms to 1 s, with jitter) while calls keep
 * coming or waiting, and falls idle otherwise.
 *
 * While the peer is down a call fails at once with UNAVAILABLE, unless it asked
 * to wait; but an attempt of which nothing is known yet is waited for by all,
 * so that the first call to a live peer does not fail. When a connection is
 * lost its calls end with UNAVAILABLE; those that the peer says it never looked
 * at (GOAWAY, REFUSED_STREAM) are sent again on a new one.
 *
 * Threads: everything here may be called from any thread. `done`, `message` and
 * `place` run on the channel's loop thread, never inside of a function of this
 * header.
 */
#ifndef RPC_CHANNEL_H
#define RPC_CHANNEL_H

#include "base/status.h"
#include "io/addr.h"
#include "io/loop.h"
#include "rpc/msg.h"
#include "rpc/place.h"

struct rpc_channel;
struct rpc_client_call;

struct rpc_channel_opts {
    /* A PING when nothing was heard for so long while calls are outstanding;
     * the connection is given up when no answer comes in 20 s. 0: never, as
     * gRPC servers take less than one in five minutes for abuse. */
    uint64_t keepalive_ms;
    size_t reply_max; /* 0: 2 GB less one */
};

/* One reference. opts may be NULL. Never fails: a target that cannot be parsed
 * or resolved shows in the status of calls. */
struct rpc_channel *rpc_channel_new(struct loop_group *group,
                                    const char *target,
                                    const struct rpc_channel_opts *opts);
struct rpc_channel *rpc_channel_ref(struct rpc_channel *channel);
void rpc_channel_unref(struct rpc_channel *channel);
/* Whether there are references beside the caller's, by calls or others. */
bool rpc_channel_is_shared(const struct rpc_channel *channel);
/* Ends all its calls with CANCELLED and lets go of the connection; later calls
 * fail with CANCELLED. closed, if not NULL, runs once on the loop thread, after
 * the last done(). To be called once, before the last unref. */
void rpc_channel_close(struct rpc_channel *channel, void (*closed)(void *arg),
                       void *arg);
const char *rpc_channel_target(const struct rpc_channel *channel);
/* Where it is connected to; on its loop. False when it is not. */
bool rpc_channel_addr(const struct rpc_channel *channel, struct addr *ret);
struct loop *rpc_channel_loop(const struct rpc_channel *channel);
/* Adds what went over it so far. */
void rpc_channel_bytes(struct rpc_channel *channel, uint64_t *in,
                       uint64_t *out);

struct rpc_reply {
    const struct status *status; /* OK, or why not, as the peer worded it */
    const uint8_t *details;      /* grpc-status-details-bin, decoded */
    size_t details_len;
    struct rpc_data msg;     /* what was not placed; empty on failure */
    struct rpc_place placed; /* as the sink decided; dest NULL if nothing */
};

struct rpc_request {
    const char *path;     /* stays valid until done */
    struct rpc_msg *msg;  /* taken */
    uint64_t deadline_ms; /* from now; 0: none */
    bool wait_for_ready;
    rpc_place_fn *place; /* optional; arg is its arg too */
    /* The answer is a stream: each of its messages, and then done, which gets
     * none. NULL: there is one. */
    rpc_message_fn *message;
    /* Exactly once. What the reply points to is valid until it returns; take
     * references of the buffers to keep bytes for longer. */
    void (*done)(const struct rpc_reply *reply, void *arg);
    void *arg;
};

/* Returns a handle for cancelling: unref it when done with it, before or after
 * the call is. */
struct rpc_client_call *rpc_channel_call(struct rpc_channel *channel,
                                         const struct rpc_request *request);
/* done gets CANCELLED, unless the call is over already. */
void rpc_client_call_cancel(struct rpc_client_call *call);
struct rpc_client_call *rpc_client_call_ref(struct rpc_client_call *call);
void rpc_client_call_unref(struct rpc_client_call *call); /* accepts NULL */

#endif
