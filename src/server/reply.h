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
    struct rpc_msg m;

    message_pack(&m, p);
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

/* The request as a control message; answers the call when it is none. */
static inline void *reply_unpack(struct rpc_call *call,
                                 const ProtobufCMessageDescriptor *type)
{
    const struct rpc_data *d = rpc_call_request(call);
    void *message = control_unpack(type, d->data, d->len);

    if (!message)
        reply_fail_with(call, MST_INTERNAL, "Unable to parse request");
    return message;
}

#endif
