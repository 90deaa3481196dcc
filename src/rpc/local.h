/*
 * Calls of a server's methods from inside of its process: the handler, its
 * hooks and its answer are those of any other call, but there is no
 * connection. For what a client in the same process asks for now and then;
 * the request and the answer are laid out in one piece, so nothing large and
 * nothing hot should go this way.
 *
 * Threads: all may be called from any. `done` runs on a loop of the server.
 */
#ifndef RPC_LOCAL_H
#define RPC_LOCAL_H

#include "rpc/channel.h"
#include "rpc/server.h"

struct rpc_local;

/* As rpc_channel_call(), without deadline and placement. A server that stops
 * gives UNAVAILABLE. The handle is for cancelling: unref it, before or after
 * the call is done. */
struct rpc_local *rpc_local_call(struct rpc_server *server,
                                 const struct rpc_request *request);
/* Tells the handler that nobody waits any more; done() still gets what it
 * answers. */
void rpc_local_cancel(struct rpc_local *local);
void rpc_local_unref(struct rpc_local *local); /* accepts NULL */

#endif
