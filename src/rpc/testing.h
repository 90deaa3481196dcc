/*
 * What the tests of this folder share: a server and a channel in one process,
 * over loopback, and calls that are waited for.
 */
#ifndef RPC_TESTING_H
#define RPC_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "rpc/channel.h"
#include "rpc/server.h"

/* A call, and what came back. Zero it; set what the request should have. */
struct tcall {
    const char *path;
    uint64_t deadline_ms;
    bool wait_for_ready;
    rpc_place_fn *place;
    void *user;

    struct rpc_client_call *handle;
    sem_t over;
    int done_count;
    struct status status;
    uint8_t *data;
    size_t len;
    uint8_t *details;
    size_t details_len;
    struct rpc_place placed;
};

static inline void tcall_done(const struct rpc_reply *r, void *arg)
{
    struct tcall *t = arg;

    t->done_count++;
    status_copy(&t->status, r->status);
    t->len = r->msg.len;
    t->data = r->msg.len ? mem_copy(r->msg.data, r->msg.len) : NULL;
    t->details_len = r->details_len;
    t->details = r->details_len ? mem_copy(r->details, r->details_len) : NULL;
    t->placed = r->placed;
    sem_post(&t->over);
}

static inline void tcall_start_msg(struct rpc_channel *ch, struct tcall *t,
                                   struct rpc_msg *msg)
{
    struct rpc_request rq = {
        .path = t->path,
        .msg = msg,
        .deadline_ms = t->deadline_ms,
        .wait_for_ready = t->wait_for_ready,
        .place = t->place,
        .done = tcall_done,
        .arg = t,
    };

    sem_init(&t->over, 0, 0);
    t->handle = rpc_channel_call(ch, &rq);
}

static inline void tcall_start(struct rpc_channel *ch, struct tcall *t,
                               const void *data, size_t len)
{
    struct rpc_msg msg;

    rpc_msg_init(&msg);
    rpc_msg_copy(&msg, data, len);
    tcall_start_msg(ch, t, &msg);
}

/* Waits, and returns the code. */
static inline int tcall_wait(struct tcall *t)
{
    sem_wait(&t->over);
    assert_int_equal(t->done_count, 1);
    rpc_client_call_unref(t->handle);
    t->handle = NULL;
    return (int)t->status.code;
}

static inline void tcall_clear(struct tcall *t)
{
    mem_free(t->data);
    mem_free(t->details);
    sem_destroy(&t->over);
}

/* A whole call with nothing special; returns the code. */
static inline int tcall_simple(struct rpc_channel *ch, const char *path,
                               const void *data, size_t len)
{
    struct tcall t = { .path = path };
    int code;

    tcall_start(ch, &t, data, len);
    code = tcall_wait(&t);
    tcall_clear(&t);
    return code;
}

static inline void post_sem(void *arg)
{
    sem_post(arg);
}

static inline void stop_and_free(struct rpc_server *server, uint64_t grace_ms)
{
    sem_t over;

    sem_init(&over, 0, 0);
    rpc_server_stop(server, grace_ms, post_sem, &over);
    sem_wait(&over);
    sem_destroy(&over);
    rpc_server_free(server);
}

static inline void close_and_unref(struct rpc_channel *ch)
{
    sem_t over;

    sem_init(&over, 0, 0);
    rpc_channel_close(ch, post_sem, &over);
    sem_wait(&over);
    sem_destroy(&over);
    rpc_channel_unref(ch);
}

static inline uint16_t listen_any(struct rpc_server *server)
{
    struct status st = STATUS_INIT;
    uint16_t port = 0;

    assert_int_equal(rpc_server_listen(server, "127.0.0.1:0", &port, &st), 0);
    return port;
}

static inline struct rpc_channel *channel_to(struct loop_group *group,
                                             uint16_t port)
{
    char target[32];

    snprintf(target, sizeof(target), "127.0.0.1:%u", port);
    return rpc_channel_new(group, target, NULL);
}

#endif
