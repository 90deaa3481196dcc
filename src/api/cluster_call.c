#include "api/cluster_call.h"

#include <string.h>

#include "base/mem.h"
#include "client/link.h"
#include "cluster/spec_parse.h"
#include "server/message.h"

/* Sockets are few in a process; names are looked up by a thread each. */
#define AT_ONCE 64

struct question {
    struct cluster_call *call;
    struct client_link link;
    struct client_asking asking;
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

static void begin(struct question *q, struct cluster_call *c,
                  struct loop_group *loops, uint64_t timeout_ms)
{
    struct rpc_msg msg;
    char *address;

    c->answer = NULL;
    status_clear(&c->status);
    q->call = NULL;
    if (cluster_call_address(c->target, &address, &c->status))
        return;
    q->call = c;
    client_link_open_at(&q->link, address, loops);
    message_pack(&msg, c->request);
    client_link_begin(&q->link,
                      &(struct client_ask){ .path = c->path,
                                            .msg = &msg,
                                            .timeout_ms = timeout_ms },
                      &q->asking);
    mem_free(address);
}

static void end(struct question *q)
{
    struct cluster_call *c = q->call;
    struct client_answer got;

    if (!c)
        return;
    if (!client_link_end(&q->link, &q->asking, &got, &c->status)) {
        c->answer = control_unpack(c->answers, got.msg.data, got.msg.len);
        if (!c->answer)
            status_set(&c->status, MST_INTERNAL,
                       "%s answered what cannot be read", c->target);
        buffer_unref(got.msg.owner);
    }
    client_link_close(&q->link);
}

void cluster_call_all(struct cluster_call *calls, size_t count,
                      uint64_t timeout_ms)
{
    size_t room = MIN(count, (size_t)AT_ONCE);
    struct question *q = mem_array(room + 1, sizeof(*q));
    struct loop_group *loops =
        loop_group_new(&(struct loop_opts){ .loops = 1, .spin_us_max = -1 });

    for (size_t i = 0; i < count; i++) {
        if (i >= room)
            end(&q[i % room]);
        begin(&q[i % room], &calls[i], loops, timeout_ms);
    }
    for (size_t i = 0; i < room; i++)
        end(&q[i]);
    loop_group_free(loops);
    mem_free(q);
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
