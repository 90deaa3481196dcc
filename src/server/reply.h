/* Short answers to calls, for all services. */
#ifndef SERVER_REPLY_H
#define SERVER_REPLY_H

#include "rpc/server.h"
#include "server/message.h"
#include "wire/control.h"
#include "wire/pb.h"

static inline void reply_empty(struct rpc_call *call)
{
    struct rpc_msg m;

    rpc_msg_init(&m);
    rpc_call_reply(call, &m);
}

/* The writer is emptied. */
static inline void reply_bytes(struct rpc_call *call, struct pb_out *o)
{
    struct rpc_msg m;

    rpc_msg_init(&m);
    rpc_msg_copy(&m, o->data, o->len);
    rpc_call_reply(call, &m);
    pb_out_done(o);
}

static inline void reply_message(struct rpc_call *call,
                                 const ProtobufCMessage *p)
{
    size_t len = protobuf_c_message_get_packed_size(p);
    struct rpc_msg m;
    uint8_t *at;

    rpc_msg_init(&m);
    at = rpc_msg_reserve(&m, len);
    if (at)
        protobuf_c_message_pack(p, at);
    rpc_call_reply(call, &m);
}

static inline void reply_fail(struct rpc_call *call, const struct status *st)
{
    rpc_call_fail(call, st, st->worker_restarted ? message_restarted : NULL,
                  st->worker_restarted ? message_restarted_len : 0);
}

static inline void reply_fail_with(struct rpc_call *call, enum mst_code code,
                                   const char *text)
{
    struct status st = STATUS_INIT;

    status_set(&st, code, "%s", text);
    reply_fail(call, &st);
}

#endif
