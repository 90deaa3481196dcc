#include "api/cluster_call.h"

#include <semaphore.h>
#include <string.h>

#include "base/mem.h"
#include "cluster/spec_parse.h"
#include "rpc/channel.h"
#include "server/message.h"

/* Sockets are few in a process; names are looked up by a thread each. */
#define AT_ONCE 64

/* What the questions of one round share. */
struct round {
    struct loop_group *loops;
    uint64_t timeout_ms;
    sem_t room, over;
};

struct question {
    struct round *round;
    struct cluster_call *call;
    struct rpc_channel *channel;
};

enum mst_code cluster_call_address(const char *target, char **ret,
                                   struct status *st)
{
    static const char scheme[] = "grpc://";
    char *text = spec_parse_squeeze(target);
    bool has = !strncmp(text, scheme, strlen(scheme));
    struct cluster_address parts;
    enum mst_code rc = MST_OK;

    if (has)
        memmove(text, text + strlen(scheme), strlen(text + strlen(scheme)) + 1);
    if (!*text)
        rc = status_set(st, MST_INVALID_ARGUMENT,
                        "\"%s\" names no server: \"grpc://host:port\" is "
                        "needed",
                        target);
    else
        rc = cluster_address_split(text, &parts, st);
    if (rc)
        mem_free(text);
    else
        *ret = text;
    return rc;
}

static void on_closed(void *arg)
{
    struct question *q = arg;
    struct round *r = q->round;

    rpc_channel_unref(q->channel);
    mem_free(q);
    sem_post(&r->room);
    sem_post(&r->over);
}

static void on_done(const struct rpc_reply *reply, void *arg)
{
    struct question *q = arg;
    struct cluster_call *c = q->call;

    status_copy(&c->status, reply->status);
    if (!c->status.code) {
        c->answer = control_unpack(c->answers, reply->msg.data, reply->msg.len);
        if (!c->answer)
            status_set(&c->status, MST_INTERNAL,
                       "%s answered what cannot be read", c->target);
    }
    rpc_channel_close(q->channel, on_closed, q);
}

static void ask(struct round *r, struct cluster_call *c, const char *address)
{
    struct question *q = MEM_NEW(struct question);
    struct rpc_msg msg;

    *q = (struct question){ r, c, rpc_channel_new(r->loops, address, NULL) };
    message_pack(&msg, c->request);
    rpc_client_call_unref(rpc_channel_call(
        q->channel, &(struct rpc_request){ .path = c->path,
                                           .msg = &msg,
                                           .deadline_ms = r->timeout_ms,
                                           .done = on_done,
                                           .arg = q }));
}

void cluster_call_all(struct cluster_call *calls, size_t count,
                      uint64_t timeout_ms)
{
    struct round r = { .timeout_ms = timeout_ms };
    size_t asked = 0;

    r.loops =
        loop_group_new(&(struct loop_opts){ .loops = 1, .spin_us_max = -1 });
    sem_init(&r.room, 0, AT_ONCE);
    sem_init(&r.over, 0, 0);
    for (size_t i = 0; i < count; i++) {
        char *address;

        calls[i].answer = NULL;
        status_clear(&calls[i].status);
        if (cluster_call_address(calls[i].target, &address, &calls[i].status))
            continue;
        while (sem_wait(&r.room))
            ;
        ask(&r, &calls[i], address);
        asked++;
        mem_free(address);
    }
    while (asked)
        asked -= !sem_wait(&r.over);
    loop_group_free(r.loops);
    sem_destroy(&r.room);
    sem_destroy(&r.over);
}

void cluster_call_explain(const char *target, const char *path,
                          uint64_t timeout_ms, struct status *st)
{
    static const char lost[] = "failed to connect to all addresses";
    static const char cause[] = "Failed to connect to remote host: ";
    const char *text;
    struct status why;

    status_copy(&why, st);
    text = strstr(why.msg, cause);
    text = text ? text + strlen(cause) : why.msg;
    if (why.code == MST_UNIMPLEMENTED)
        status_set(st, why.code,
                   "%s is not a server of muster: it does not know the call "
                   "%s. A job's members are kept by parameter servers that "
                   "run `muster serve` or muster.Server",
                   target, strrchr(path, '/') + 1);
    else if (why.code == MST_UNAVAILABLE &&
             !strncmp(why.msg, lost, strlen(lost)))
        status_set(st, why.code, "Nobody answers at %s: %s", target, text);
    else if (why.code == MST_DEADLINE_EXCEEDED)
        status_set(st, why.code, "%s did not answer within %g s", target,
                   (double)timeout_ms / 1000);
}

enum mst_code cluster_call_one(struct cluster_call *call, uint64_t timeout_ms)
{
    cluster_call_all(call, 1, timeout_ms);
    cluster_call_explain(call->target, call->path, timeout_ms, &call->status);
    return call->status.code;
}
