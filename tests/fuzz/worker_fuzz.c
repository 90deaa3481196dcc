/*
 * Every RPC of the worker service, over a real connection: an input is a list
 * of calls, each a byte for the method, two for the length, and the request.
 * All run in one session, "s", which is new for each input, so graph handles
 * begin at 1. After each input the server must still answer.
 *
 * No seed has an op that touches files, and names of ops are looked up by their
 * hash, which gives the fuzzer no hint how to spell one.
 */
#include <semaphore.h>
#include <stdio.h>

#include "base/buffer.h"
#include "rpc/channel.h"
#include "server/server.h"

#define CALLS_MAX   6
#define DEADLINE_MS 100

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const paths[] = {
    "/tensorflow.WorkerService/RegisterGraph",
    "/tensorflow.WorkerService/RunGraph",
    "/tensorflow.WorkerService/RecvTensor",
    "/tensorflow.WorkerService/CleanupGraph",
    "/tensorflow.WorkerService/CreateWorkerSession",
    "/tensorflow.WorkerService/DeleteWorkerSession",
    "/tensorflow.WorkerService/DeregisterGraph",
    "/tensorflow.WorkerService/CleanupAll",
    "/tensorflow.WorkerService/GetStatus",
    "/tensorflow.WorkerService/MarkRecvFinished",
    "/tensorflow.WorkerService/Logging",
    "/tensorflow.WorkerService/Tracing",
    "/tensorflow.WorkerService/GetStepSequence",
    "/tensorflow.WorkerService/RecvBuf",
    "/tensorflow.WorkerService/CompleteGroup",
    "/tensorflow.WorkerService/CompleteInstance",
    "/tensorflow.WorkerService/NoSuchMethod",
};

static struct server *server;
static struct rpc_channel *channel;

static void start(void)
{
    struct status st = STATUS_INIT;
    struct cluster_spec spec;
    char address[32];

    cluster_spec_init(&spec);
    /* Nobody listens there; a graph may ask it for tensors all the same. */
    CHECK(!cluster_spec_add(&spec, "worker", 0, "127.0.0.1:1", &st));
    CHECK(!server_start(&(struct server_opts){ .job = "ps",
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
};

static void on_done(const struct rpc_reply *reply, void *arg)
{
    struct calling *c = arg;

    c->code = reply->status->code;
    sem_post(&c->over);
}

static enum mst_code call(const char *path, const void *data, size_t len)
{
    struct calling c;
    struct rpc_msg m;

    sem_init(&c.over, 0, 0);
    rpc_msg_init(&m);
    rpc_msg_copy(&m, data, len);
    rpc_client_call_unref(rpc_channel_call(
        channel, &(struct rpc_request){ .path = path,
                                        .msg = &m,
                                        .deadline_ms = DEADLINE_MS,
                                        .wait_for_ready = true,
                                        .done = on_done,
                                        .arg = &c }));
    while (sem_wait(&c.over))
        ;
    sem_destroy(&c.over);
    return c.code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t session[] = { 0x0a, 0x01, 's' };
    const uint8_t *at = data, *end = data + size;

    if (!channel)
        start();
    call(paths[4], session, sizeof(session));
    for (int i = 0; i < CALLS_MAX && end - at >= 3; i++) {
        size_t len = MIN((size_t)(at[1] | at[2] << 8), (size_t)(end - at - 3));

        call(paths[at[0] % COUNT(paths)], at + 3, len);
        at += 3 + len;
    }
    call(paths[5], session, sizeof(session));
    CHECK(call(paths[8], NULL, 0) != MST_UNAVAILABLE);
    return 0;
}
