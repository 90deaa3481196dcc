/*
 * For targets that talk to a whole server over a real connection. An input is
 * a list of calls, each a byte for the method, two for the length, and the
 * request.
 */
#ifndef FUZZ_SERVICE_H
#define FUZZ_SERVICE_H

#include <semaphore.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "rpc/channel.h"
#include "server/server.h"

#define CALLS_MAX   6
#define DEADLINE_MS 100
#define ALIVE_MS    20000 /* for the question whether it still serves */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct server *server;
static struct rpc_channel *channel;

/* A server that is task 0 of `job`; `peer` is another task, where nobody
 * listens, or NULL. */
static void start(const char *job, const char *peer)
{
    struct status st = STATUS_INIT;
    struct cluster_spec spec;
    char address[32];

    cluster_spec_init(&spec);
    CHECK(!peer || !cluster_spec_add(&spec, peer, 0, "127.0.0.1:1", &st));
    CHECK(!server_start(&(struct server_opts){ .job = job,
                                               .cluster = &spec,
                                               .bind = "127.0.0.1:0",
                                               .threads = 1,
                                               .loops = 1 },
                        &server, &st));
    snprintf(address, sizeof(address), "127.0.0.1:%d", server_port(server));
    channel = rpc_channel_new(server_loops(server), address, NULL);
    cluster_spec_done(&spec);
    buffer_limit((size_t)256 << 20);
}

struct calling {
    sem_t over;
    enum mst_code code;
    uint8_t head[64]; /* of the answer */
    size_t len;
};

static void on_done(const struct rpc_reply *reply, void *arg)
{
    struct calling *c = arg;

    c->code = reply->status->code;
    c->len = MIN(reply->msg.len, sizeof(c->head));
    if (c->len)
        memcpy(c->head, reply->msg.data, c->len);
    sem_post(&c->over);
}

static void call_for(struct calling *c, const char *path, const void *data,
                     size_t len, uint64_t deadline_ms)
{
    struct rpc_msg m;

    sem_init(&c->over, 0, 0);
    rpc_msg_init(&m);
    rpc_msg_copy(&m, data, len);
    rpc_client_call_unref(rpc_channel_call(
        channel, &(struct rpc_request){ .path = path,
                                        .msg = &m,
                                        .deadline_ms = deadline_ms,
                                        .wait_for_ready = true,
                                        .done = on_done,
                                        .arg = c }));
    while (sem_wait(&c->over))
        ;
    sem_destroy(&c->over);
}

static inline enum mst_code call(const char *path, const void *data, size_t len)
{
    struct calling c;

    call_for(&c, path, data, len, DEADLINE_MS);
    return c.code;
}

/* After all that was thrown at it. */
static inline bool still_serves(const char *path)
{
    struct calling c;

    call_for(&c, path, "", 0, ALIVE_MS);
    return c.code == MST_OK;
}

#endif
