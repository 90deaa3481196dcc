/*
 * What channel.c and client_call.c share: the insides of a channel and of its
 * calls. Public functions are in channel.h.
 *
 * References: a call holds one of its channel for as long as its memory lives.
 * A call has two owners: the caller's handle, and the loop until done() ran.
 */
#ifndef RPC_CLIENT_H
#define RPC_CLIENT_H

#include <pthread.h>
#include <stdatomic.h>

#include "io/resolve.h"
#include "rpc/channel.h"
#include "rpc/h2.h"

enum channel_state {
    CHANNEL_IDLE,       /* nothing is known about the peer */
    CHANNEL_RESOLVING,  /* its name is being looked up */
    CHANNEL_CONNECTING, /* to addrs[addr_at] */
    CHANNEL_GREETING,   /* connected; its SETTINGS are still to come */
    CHANNEL_READY,      /* conn takes calls */
    CHANNEL_PAUSED,     /* an attempt failed; the timer starts the next one */
    CHANNEL_CLOSED,
};

struct client_conn {
    struct h2_conn h2;
    struct rpc_channel *channel;
    struct client_conn *next; /* in channel->conns */
    struct loop_timer alive;
    bool pinged;
};

struct call_list {
    struct rpc_client_call *first, *last;
};

struct rpc_channel {
    /* Constant. */
    struct loop *loop;
    char *target;
    struct addr_name name;
    struct status bad_target; /* OK, or why name is empty */
    struct rpc_channel_opts opts;
    int32_t stream_id_max; /* a connection takes no call beyond it */

    /* Any thread. */
    atomic_uint refs;
    atomic_uint calls; /* begun and not done */
    pthread_mutex_t lock;
    struct rpc_client_call *free_calls; /* under lock */
    unsigned free_count;                /* under lock */
    struct h2_counters io;              /* written by the loop */
    atomic_uint_fast64_t conns_total;   /* likewise */

    /* The loop's. */
    enum channel_state state;
    bool failing; /* the last attempt failed */
    bool gone;    /* no reference is left */
    unsigned failures;
    uint64_t wanted_ns; /* when the last call asked for a connection */
    struct call_list waiting;
    struct client_conn *conn;  /* GREETING or READY */
    struct client_conn *conns; /* all, also those that only finish calls */
    struct resolve *resolve;
    struct addr addrs[RESOLVE_MAX];
    int addr_count, addr_at;
    struct loop_watch connecting;
    struct loop_timer timer; /* of the attempt, or of the pause */
    struct loop_task close, destroy;
    void (*closed)(void *);
    void *closed_arg;
    struct status error; /* why the last attempt failed */
};

enum call_state {
    CALL_NEW,
    CALL_WAITING, /* in channel->waiting */
    CALL_ACTIVE,  /* s.conn */
    CALL_PAUSED,  /* refused; the timer sends it again */
    CALL_ENDING,  /* task will call done */
    CALL_OVER,
};

struct rpc_client_call {
    struct h2_stream s;
    struct rpc_channel *channel;
    struct rpc_client_call *prev, *next; /* waiting, or free */
    atomic_uint refs;
    atomic_bool cancelling;
    enum call_state state;
    bool wait_for_ready;
    unsigned tries;
    const char *path;
    uint64_t deadline_ns; /* 0: none */
    struct loop_timer deadline, pause;
    void (*done)(const struct rpc_reply *, void *);
    void *arg;
    struct loop_task task, cancel;
    /* The answer. */
    int http_status;
    int grpc_status; /* -1: none */
    char *message;
    uint8_t *details;
    size_t details_len;
};

/* channel.c */
/* The connection that takes calls now, or NULL. */
struct client_conn *channel_ready(struct rpc_channel *ch);
/* A call waits: see to it that there will be a connection. */
void channel_connect(struct rpc_channel *ch);
/* Takes no more calls on this connection. */
void channel_retire(struct client_conn *conn);
/* A call is done. */
void channel_call_done(struct rpc_channel *ch);

/* client_call.c */
void client_call_header(struct h2_stream *s, struct h2_text name,
                        struct h2_text value);
void client_call_headers(struct h2_stream *s);
void client_call_broken(struct h2_stream *s, const struct status *why);
void client_call_ended(struct h2_stream *s);
void client_call_closed(struct h2_stream *s, uint32_t h2_error);
/* Sends all waiting calls on the connection. */
void client_call_send_waiting(struct rpc_channel *ch);
/* Ends the waiting calls; `all`, or those that do not wait for ready. */
void client_call_end_waiting(struct rpc_channel *ch, bool all,
                             const struct status *why);
/* Ends the calls of a connection. */
void client_call_end_active(struct client_conn *conn, const struct status *why);
void client_call_free_all(struct rpc_channel *ch);

#endif
