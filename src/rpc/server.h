/*
 * The server side of gRPC calls: one request, and one message or a stream of
 * them for an answer.
 *
 * A call exists from its request to its answer; it holds no thread. It starts
 * on the loop thread of its connection, and may be answered there or from any
 * other thread, at once or in an hour:
 *
 *   start()  -> rpc_call_reply() or rpc_call_fail(), exactly one of them, once
 *            -> done(), if hooks were set: the call is gone after it
 *
 * A method that streams answers otherwise:
 *
 *   start()  -> rpc_call_send() -> sent() -> rpc_call_send() -> sent() -> ...
 *            -> rpc_call_end() or rpc_call_fail(), at any moment, once
 *            -> done()
 *
 * There is one message under way at a time. sent() comes when the peer and the
 * socket have room for the next; who has news meanwhile remembers that and
 * makes one message of all of it then. So a peer that does not read costs one
 * message, however long it sleeps.
 *
 * If the peer cancels, the connection is lost or the deadline passes before the
 * answer, cancel() tells so, at most once. The call must still be answered;
 * the answer then goes nowhere.
 *
 * Threads: start, sent, cancel, done and place run on the loop thread of the
 * connection and must not block. None of them runs inside of a function of
 * this header, so these may be called with locks held.
 */
#ifndef RPC_SERVER_H
#define RPC_SERVER_H

#include "base/status.h"
#include "io/loop.h"
#include "rpc/msg.h"
#include "rpc/place.h"

struct rpc_server;
struct rpc_call;

struct rpc_method {
    const char *path; /* "/package.Service/Method" */
    void (*start)(struct rpc_call *call, void *arg);
    size_t request_max;  /* 0: the server's */
    rpc_place_fn *place; /* optional; its arg is the call */
    bool streams;        /* its answer is a stream of messages */
};

struct rpc_server_opts {
    struct loop_group *group;
    size_t request_max; /* 0: 2 GB less one, as TensorFlow's */
    bool held; /* connections wait in the kernel until rpc_server_serve() */
};

struct rpc_server *rpc_server_new(const struct rpc_server_opts *opts);
/* After it has stopped, or before it ever listened. */
void rpc_server_free(struct rpc_server *server);

/* Before the server listens. The table is not copied; arg goes to start(). */
void rpc_server_add(struct rpc_server *server, const struct rpc_method *methods,
                    size_t count, void *arg);

/* Before the server listens: who takes connections that are lanes (lane.h), on
 * their loop, until the server has stopped. The socket is theirs. */
void rpc_server_lanes(struct rpc_server *server,
                      void (*lane)(struct loop *loop, int fd, void *arg),
                      void *arg);

/* "host:port", "1.2.3.4:0", "[::1]:port", or ":port" for all addresses, by IPv6
 * and IPv4 where the host has both. Port 0 lets the kernel choose. May be
 * called for several addresses. */
enum mst_code rpc_server_listen(struct rpc_server *server, const char *addr,
                                uint16_t *ret_port, struct status *st) MUST_USE;

/* Once, for a server that was held. */
enum mst_code rpc_server_serve(struct rpc_server *server,
                               struct status *st) MUST_USE;

/* Takes no new connections or calls, lets the calls under way finish for up to
 * grace_ms, then cancels them and closes. stopped() runs once on a loop thread,
 * when every call has been answered and every connection is closed. A second
 * stop only shortens the grace of the first: its stopped must be NULL. */
void rpc_server_stop(struct rpc_server *server, uint64_t grace_ms,
                     void (*stopped)(void *arg), void *arg);

struct rpc_server_stats {
    uint64_t conns, conns_total;
    uint64_t calls, calls_total;
    uint64_t bytes_in, bytes_out;
};
void rpc_server_stats(struct rpc_server *server, struct rpc_server_stats *ret);

/* The request: valid until done(), or for as long as its owner is held. */
const struct rpc_data *rpc_call_request(const struct rpc_call *call);
/* What the method's place function decided; dest NULL if nothing. */
const struct rpc_place *rpc_call_placed(const struct rpc_call *call);
const char *rpc_call_path(const struct rpc_call *call);
/* Milliseconds left, 0 when passed, -1 when there is no deadline. */
int64_t rpc_call_deadline_ms(const struct rpc_call *call);
/* "ipv4:127.0.0.1:40312" or "ipv6:[::1]:40312" */
const char *rpc_call_peer(const struct rpc_call *call);
/* The peer no longer waits for the answer. Any thread. */
bool rpc_call_cancelled(const struct rpc_call *call);
struct loop *rpc_call_loop(const struct rpc_call *call);

/* Only from inside start(), and before the answer. Either may be NULL. */
void rpc_call_hooks(struct rpc_call *call, void (*cancel)(void *arg),
                    void (*done)(void *arg), void *arg);
/* Likewise; arg is that of the hooks. Not called after the end was told. */
void rpc_call_on_sent(struct rpc_call *call, void (*sent)(void *arg));

/* The answer; any thread. The message is taken. */
void rpc_call_reply(struct rpc_call *call, struct rpc_msg *msg);
/* The next message of a stream; any thread. It is taken. */
void rpc_call_send(struct rpc_call *call, struct rpc_msg *msg);
/* The stream is over, and well. What was sent before arrives before. */
void rpc_call_end(struct rpc_call *call);
/* details go in grpc-status-details-bin; may be NULL. A status that is OK is a
 * mistake of the handler and is sent as INTERNAL. */
void rpc_call_fail(struct rpc_call *call, const struct status *st,
                   const void *details, size_t details_len);

#endif
