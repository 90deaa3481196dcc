#include "server/message.h"

#include <string.h>

#include "base/clock.h"
#include "tensor/proto.h"
#include "wire/pb.h"

/* Below this a tensor is cheaper to copy than to place. */
#define PLACE_MIN 4096

#define RESTARTED                                                              \
    "type.googleapis.com/tensorflow.distributed_runtime."                      \
    "WorkerPossiblyRestarted"

/* map<string, bytes> payloads = 1, one entry with an empty value. */
const uint8_t message_restarted[] = "\x0a\x4e\x0a\x4a" RESTARTED "\x12\x00";
const size_t message_restarted_len = sizeof(message_restarted) - 1;

_Static_assert(sizeof(RESTARTED) - 1 == 0x4a, "the lengths above");

void message_pack(struct rpc_msg *m, const ProtobufCMessage *p)
{
    uint8_t *at;

    rpc_msg_init(m);
    at = rpc_msg_reserve(m, protobuf_c_message_get_packed_size(p));
    if (at)
        protobuf_c_message_pack(p, at);
}

bool message_is_restarted(const uint8_t *details, size_t len)
{
    return len &&
           memmem(details, len, RESTARTED, sizeof(RESTARTED) - 1) != NULL;
}

static struct message_text text(const struct pb_field *f)
{
    return (struct message_text){ (const char *)f->data, f->len };
}

/* ---- RunGraph ---- */

enum {
    RUN_GRAPH_HANDLE = 1,
    RUN_STEP_ID = 2,
    RUN_SEND = 3,
    RUN_RECV_KEY = 4,
    RUN_EXEC_OPTS = 5,
    RUN_IS_PARTIAL = 6,
    RUN_IS_LAST_PARTIAL = 7,
    RUN_SESSION_HANDLE = 8,
    RUN_STORE_ERRORS = 9,
    RUN_SESSION_CALLED = 10,
    RUN_REQUEST_ID = 11,
};

static bool records_timeline(const struct pb_field *opts)
{
    struct pb_in in = pb_in(opts->data, opts->len);
    struct pb_field f;
    bool yes = false;

    while (pb_next(&in, &f))
        if (f.number == 3 && f.wire == PB_VARINT)
            yes = f.value != 0;
    return yes;
}

static void run_graph_number(struct run_graph_request *r,
                             const struct pb_field *f)
{
    switch (f->number) {
    case RUN_STEP_ID:
        r->step_id = (int64_t)f->value;
        break;
    case RUN_IS_PARTIAL:
        r->is_partial = f->value != 0;
        break;
    case RUN_IS_LAST_PARTIAL:
        r->is_last_partial = f->value != 0;
        break;
    case RUN_STORE_ERRORS:
        r->store_errors = f->value != 0;
        break;
    case RUN_SESSION_CALLED:
        r->create_worker_session_called = f->value != 0;
        break;
    case RUN_REQUEST_ID:
        r->request_id = (int64_t)f->value;
        break;
    }
}

bool run_graph_parse(struct run_graph_request *r, const void *data, size_t len)
{
    struct pb_in in = pb_in(data, len);
    struct pb_field f;

    *r = (struct run_graph_request){ .data = data, .len = len };
    while (pb_next(&in, &f)) {
        if (f.wire == PB_VARINT) {
            run_graph_number(r, &f);
            continue;
        }
        if (f.wire != PB_LEN)
            continue;
        switch (f.number) {
        case RUN_GRAPH_HANDLE:
            r->graph_handle = text(&f);
            break;
        case RUN_SESSION_HANDLE:
            r->session_handle = text(&f);
            break;
        case RUN_EXEC_OPTS:
            r->record_timeline = records_timeline(&f);
            break;
        case RUN_SEND:
            r->send_count++;
            break;
        case RUN_RECV_KEY:
            r->recv_count++;
            break;
        }
    }
    return !in.bad;
}

static bool next_of(const struct run_graph_request *r, size_t *at,
                    uint32_t number, struct pb_field *f)
{
    struct pb_in in = pb_in(r->data + *at, r->len - *at);

    while (pb_next(&in, f)) {
        if (f->number == number && f->wire == PB_LEN) {
            *at = (size_t)(in.at - r->data);
            return true;
        }
    }
    return false;
}

bool run_graph_next_send(const struct run_graph_request *r, size_t *at,
                         struct message_named *ret)
{
    struct pb_field f, part;
    struct pb_in in;

    if (!next_of(r, at, RUN_SEND, &f))
        return false;
    *ret = (struct message_named){ 0 };
    in = pb_in(f.data, f.len);
    while (pb_next(&in, &part)) {
        if (part.wire != PB_LEN)
            continue;
        if (part.number == 1) {
            ret->name = text(&part);
        } else if (part.number == 2) {
            ret->tensor = part.data;
            ret->len = part.len;
        }
    }
    return true;
}

bool run_graph_next_recv(const struct run_graph_request *r, size_t *at,
                         struct message_text *ret)
{
    struct pb_field f;

    if (!next_of(r, at, RUN_RECV_KEY, &f))
        return false;
    *ret = text(&f);
    return true;
}

/* The elements, by reference where they lie still. */
static void put_content(struct rpc_msg *m, const struct tensor *t, size_t len)
{
    struct pb_out o;
    uint8_t *at;

    if (dtype_is_plain((enum dtype)t->dtype)) {
        rpc_msg_ref(m, t->data, len, t->buf);
        return;
    }
    at = len ? rpc_msg_reserve(m, len) : NULL;
    if (!at)
        return;
    pb_out_into(&o, at, len);
    tensor_proto_put_content(&o, t);
    CHECK(o.len == len);
}

/* What o holds, and the tensor behind it. o ends. */
static void put_tensor(struct rpc_msg *m, struct pb_out *o,
                       const struct tensor *t, struct tensor_proto_size size)
{
    tensor_proto_put_head(o, t, size);
    rpc_msg_copy(m, o->data, o->len);
    pb_out_done(o);
    put_content(m, t, size.content);
}

void message_put_named(struct rpc_msg *m, uint32_t field,
                       struct message_text key, const struct tensor *t)
{
    struct tensor_proto_size size = tensor_proto_size(t);
    size_t tensor = size.head + size.content;
    size_t named = 1 + pb_varint_size(key.len) + key.len + 1 +
                   pb_varint_size(tensor) + tensor;
    struct pb_out o;

    pb_out_init(&o);
    pb_put_tag(&o, field, PB_LEN);
    pb_put_varint(&o, named);
    pb_put_bytes(&o, 1, key.data, key.len);
    pb_put_tag(&o, 2, PB_LEN);
    pb_put_varint(&o, tensor);
    put_tensor(m, &o, t, size);
}

void run_graph_put_recv(struct rpc_msg *m, struct message_text key,
                        const struct tensor *t)
{
    message_put_named(m, 1, key, t);
}

static void put_error(struct rpc_msg *m, uint32_t code_field,
                      const struct status *st)
{
    struct pb_out o;

    pb_out_init(&o);
    pb_put_uint(&o, code_field, (uint64_t)st->code);
    pb_put_bytes(&o, code_field + 1, st->msg, strlen(st->msg));
    rpc_msg_copy(m, o.data, o.len);
    pb_out_done(&o);
}

void run_graph_put_error(struct rpc_msg *m, const struct status *st)
{
    put_error(m, 5, st);
}

void run_graph_put_request(struct rpc_msg *m, const struct run_graph_request *r)
{
    struct pb_out o;

    pb_out_init(&o);
    pb_put_bytes(&o, RUN_GRAPH_HANDLE, r->graph_handle.data,
                 r->graph_handle.len);
    pb_put_uint(&o, RUN_STEP_ID, (uint64_t)r->step_id);
    if (r->record_timeline)
        pb_put_bytes(&o, RUN_EXEC_OPTS, "\x18\x01", 2);
    else
        pb_put_bytes(&o, RUN_EXEC_OPTS, "", 0);
    pb_put_bytes(&o, RUN_SESSION_HANDLE, r->session_handle.data,
                 r->session_handle.len);
    pb_put_uint(&o, RUN_STORE_ERRORS, r->store_errors);
    pb_put_uint(&o, RUN_SESSION_CALLED, r->create_worker_session_called);
    pb_put_uint(&o, RUN_REQUEST_ID, (uint64_t)r->request_id);
    rpc_msg_copy(m, o.data, o.len);
    pb_out_done(&o);
}

/* ---- answers of the master ---- */

void run_step_put_error(struct rpc_msg *m, const struct status *st)
{
    put_error(m, 3, st);
}

void message_put_tensor(struct rpc_msg *m, uint32_t field,
                        const struct tensor *t)
{
    struct tensor_proto_size size = tensor_proto_size(t);
    struct pb_out o;

    pb_out_init(&o);
    pb_put_tag(&o, field, PB_LEN);
    pb_put_varint(&o, size.head + size.content);
    put_tensor(m, &o, t, size);
}

void run_callable_put_fetch(struct rpc_msg *m, const struct tensor *t)
{
    message_put_tensor(m, 1, t);
}

void message_put_device(struct pb_out *o, uint32_t field, const char *device,
                        const char *type, uint64_t incarnation)
{
    struct pb_out d;

    pb_out_init(&d);
    pb_put_bytes(&d, 1, device, strlen(device));
    pb_put_bytes(&d, 2, type, strlen(type));
    pb_put_uint(&d, 4, 268435456); /* memory, as TensorFlow's CPUs say */
    pb_put_tag(&d, 6, PB_FIXED64);
    pb_put_raw(&d, &incarnation, 8);
    pb_put_bytes(&d, 7, MESSAGE_OURS, strlen(MESSAGE_OURS));
    pb_put_uint(&d, 8, (uint64_t)-1);
    pb_put_bytes(o, field, d.data, d.len);
    pb_out_done(&d);
}

void message_put_bytes(struct rpc_msg *m, uint32_t field, const void *data,
                       size_t len)
{
    struct pb_out o;

    pb_out_init(&o);
    pb_put_bytes(&o, field, data, len);
    rpc_msg_copy(m, o.data, o.len);
    pb_out_done(&o);
}

void message_put_uint(struct rpc_msg *m, uint32_t field, uint64_t value)
{
    struct pb_out o;

    pb_out_init(&o);
    pb_put_uint(&o, field, value);
    rpc_msg_copy(m, o.data, o.len);
    pb_out_done(&o);
}

/* ---- RecvTensor ---- */

bool recv_tensor_parse(struct recv_tensor_request *r, const void *data,
                       size_t len)
{
    struct pb_in in = pb_in(data, len);
    struct pb_field f;

    *r = (struct recv_tensor_request){ 0 };
    while (pb_next(&in, &f)) {
        if (f.number == 1 && f.wire == PB_VARINT)
            r->step_id = (int64_t)f.value;
        else if (f.number == 2 && f.wire == PB_LEN)
            r->key = text(&f);
        else if (f.number == 7 && f.wire == PB_VARINT)
            r->request_id = (int64_t)f.value;
    }
    return !in.bad;
}

void recv_tensor_put_request(struct rpc_msg *m, int64_t step_id,
                             struct message_text key, int64_t request_id)
{
    struct pb_out o;

    pb_out_init(&o);
    pb_put_uint(&o, 1, (uint64_t)step_id);
    pb_put_bytes(&o, 2, key.data, key.len);
    pb_put_uint(&o, 7, (uint64_t)request_id);
    rpc_msg_copy(m, o.data, o.len);
    pb_out_done(&o);
}

/* A dead tensor is a float tensor of shape [0], whatever its type is. */
static const uint8_t dead_tensor[] = { 0x0a, 0x0a, 0x08, 0x01, 0x12, 0x04,
                                       0x12, 0x02, 0x08, 0x00, 0x22, 0x00 };

void recv_tensor_put_response(struct rpc_msg *m, const struct tensor *t,
                              bool dead)
{
    struct pb_out o;

    pb_out_init(&o);
    if (dead)
        pb_put_uint(&o, 2, 1);
    pb_put_uint(&o, 3, clock_wall_us());
    if (dead) {
        pb_put_raw(&o, dead_tensor, sizeof(dead_tensor));
        rpc_msg_copy(m, o.data, o.len);
    } else {
        struct tensor_proto_size size = tensor_proto_size(t);

        pb_put_tag(&o, 1, PB_LEN);
        pb_put_varint(&o, size.head + size.content);
        put_tensor(m, &o, t, size);
    }
    pb_out_done(&o);
}

/*
 * Finds where the elements begin, if the answer is laid out as TensorFlow and
 * this library do it: small fields, then the tensor, its content last. Any
 * other answer is taken whole.
 */
bool recv_tensor_place(struct recv_tensor_answer *a, const uint8_t *head,
                       size_t have, size_t total, struct rpc_place *ret)
{
    const uint8_t *at = head, *end = head + have;
    struct tensor_head h;
    struct status st;
    uint64_t tag, v, size;
    int64_t count;

    ret->dest = NULL;
    if (total < PLACE_MIN)
        return true;
    for (;;) {
        if (!pb_varint(&at, end, &tag) || !pb_varint(&at, end, &v))
            return have > 64;
        if (tag == (1 << 3 | PB_LEN))
            break;
        if ((tag & 7) != PB_VARINT || tag >> 3 > 5)
            return true;
        if (tag == (2 << 3 | PB_VARINT) && v)
            a->dead = true;
    }
    if (!tensor_proto_head(&h, at, (size_t)(end - at)))
        return have > 512;
    size = (uint64_t)(at - head) + h.content_at;
    if (!dtype_is_plain(h.dtype) || h.dtype == DT_BOOL ||
        h.content_len < PLACE_MIN || h.content_at + h.content_len != v ||
        size + h.content_len > total || h.shape.ndim < 0 ||
        !shape_count(h.shape.ndim, h.shape.dims, dtype_size(h.dtype), &count) ||
        (uint64_t)count * dtype_size(h.dtype) != h.content_len ||
        tensor_new(&a->tensor, h.dtype, h.shape.ndim, h.shape.dims, &st))
        return true;
    a->placed = true;
    ret->skip = (size_t)size;
    ret->dest = a->tensor.data;
    ret->len = h.content_len;
    ret->owner = buffer_ref(a->tensor.buf);
    return true;
}

static enum mst_code unparsable(struct status *st)
{
    return status_set(st, MST_INTERNAL, MESSAGE_UNPARSABLE);
}

/* What follows the elements, at the message's own level. */
static enum mst_code finish_placed(struct recv_tensor_answer *a,
                                   const struct rpc_data *msg,
                                   const struct rpc_place *placed,
                                   struct status *st)
{
    struct pb_in in = pb_in(msg->data + placed->skip, msg->len - placed->skip);
    struct pb_field f;

    while (pb_next(&in, &f))
        if (f.number == 2 && f.wire == PB_VARINT)
            a->dead = f.value != 0;
    return in.bad ? unparsable(st) : MST_OK;
}

enum mst_code recv_tensor_finish(struct recv_tensor_answer *a,
                                 const struct rpc_data *msg,
                                 const struct rpc_place *placed,
                                 struct status *st)
{
    struct pb_in in = pb_in(msg->data, msg->len);
    struct pb_field f, tensor = { 0 };
    struct status why;

    if (a->placed && placed->dest)
        return finish_placed(a, msg, placed, st);
    while (pb_next(&in, &f)) {
        if (f.number == 1 && f.wire == PB_LEN)
            tensor = f;
        else if (f.number == 2 && f.wire == PB_VARINT)
            a->dead = f.value != 0;
    }
    if (in.bad)
        return unparsable(st);
    if (a->dead)
        return MST_OK;
    if (tensor_from_proto(&a->tensor, tensor.data, tensor.len, msg->owner,
                          &why))
        return unparsable(st);
    return MST_OK;
}
