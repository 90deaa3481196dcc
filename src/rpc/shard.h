/*
 * The part of a server that one loop owns: its connections and its calls. With
 * several loops a server has several shards, which share nothing that changes.
 *
 * Threads: the loop's, but for the counters, which anyone may read.
 */
#ifndef RPC_SHARD_H
#define RPC_SHARD_H

#include <stdatomic.h>

#include "base/map.h"
#include "io/addr.h"
#include "rpc/h2.h"
#include "rpc/server.h"

struct server_method {
    const struct rpc_method *def;
    void *arg;
};

/* What the shards read. Nothing in here changes once the server listens. */
struct server_config {
    struct map methods; /* path -> struct server_method */
    size_t request_max;
    /* Takes a socket that a lane comes by; NULL: there are none. */
    void (*lane)(struct loop *loop, int fd, void *arg);
    void *lane_arg;
};

/* What a peer may take to say who it is. */
#define SHARD_HELLO_NS ((uint64_t)30 * 1000000000u)

struct shard {
    const struct server_config *config;
    struct loop *loop;
    struct server_conn *conns;
    struct door_guest *guests;
    struct rpc_call *free_calls;
    unsigned free_count;
    struct rpc_call *locals; /* calls without a connection */
    bool stopping, emptied;
    struct loop_timer grace;
    void (*empty)(struct shard *); /* stopping, and nothing is left */
    /* Written by the loop only. */
    atomic_uint_fast64_t conn_count, conn_total, call_count, call_total;
    struct h2_counters io;
};

struct server_conn {
    struct h2_conn h2;
    struct shard *shard;
    struct server_conn *prev, *next;
    struct loop_timer hello; /* the peer must say who it is until then */
    unsigned calls;          /* that still point here */
    bool dead, last_word;
    char peer[ADDR_TEXT_MAX];
};

void shard_init(struct shard *sh, struct loop *loop,
                const struct server_config *config);
/* After it has become empty. */
void shard_done(struct shard *sh);
/* Takes the socket of whoever it is; of one that is known to speak HTTP/2. */
void shard_accept(struct shard *sh, int fd);
void shard_accept_h2(struct shard *sh, int fd);
/* Drains for up to grace_ms; then empty() is called. Again: a new grace. */
void shard_stop(struct shard *sh, uint64_t grace_ms);
/* A call is gone; conn is NULL if it had none. */
void shard_call_gone(struct shard *sh, struct server_conn *conn);
/* server.c: where calls from inside of the process are run. */
struct shard *server_shard_local(struct rpc_server *server);

/* call.c: what h2 tells about the streams of a server. */
bool call_begin(struct h2_conn *h2, int32_t id);
void call_header(struct h2_stream *s, struct h2_text name,
                 struct h2_text value);
void call_headers(struct h2_stream *s);
void call_broken(struct h2_stream *s, const struct status *why);
void call_ended(struct h2_stream *s);
void call_sent(struct h2_stream *s);
void call_closed(struct h2_stream *s, uint32_t h2_error);
void call_free_all(struct shard *sh);

/* Calls from inside of the process; all of it on the loop. */
struct call_local {
    /* The answer is st, or the message if that is OK; the call is gone when it
     * returns. Never inside of a function of this header. */
    void (*answered)(struct call_local *local, struct rpc_msg *msg);
    struct status st;
    uint8_t *details; /* to be freed */
    size_t details_len;
};
/* NULL, and st says why, if it cannot be. */
struct rpc_call *call_begin_local(struct shard *sh, const char *path,
                                  const struct rpc_data *request,
                                  struct call_local *local);
void call_start_local(struct rpc_call *call);
void call_cancel_local(struct rpc_call *call);
void call_cancel_locals(struct shard *sh);

#endif
