#include "server/push.h"

#include <string.h>

#include "server/message.h"

enum { DEAD = 1, MESSAGE = 2 };

struct head {
    int64_t step_id;
    uint8_t dtype, ndim, flags, zero;
    uint32_t key_len;
};

static void send_message(struct lane *lane, struct lane_out *out,
                         const struct tensor *t)
{
    struct rpc_data d;
    struct rpc_msg m;

    rpc_msg_init(&m);
    if (tensor_set(t))
        recv_tensor_put_response(&m, t, false);
    if (rpc_msg_len(&m) && rpc_msg_flatten(&m, &d)) {
        out->bulk = d.data;
        out->bulk_len = d.len;
        out->owner = d.owner;
        lane_send(lane, out);
        buffer_unref(d.owner);
    } else {
        lane_send(lane, out); /* without bytes: it cannot be read */
    }
    rpc_msg_done(&m);
}

void push_send(struct lane *lane, uint8_t kind, int64_t step_id,
               const struct rdv_key *key, const struct tensor *t, bool dead)
{
    bool plain = dead || dtype_is_plain((enum dtype)t->dtype);
    struct head h = { .step_id = step_id,
                      .flags = (dead ? DEAD : 0) | (plain ? 0 : MESSAGE),
                      .key_len = (uint32_t)key->len };
    struct iovec control[3] = { { &h, sizeof(h) } };
    struct lane_out out = { .kind = kind, .control = control };
    int n = 1;

    if (!dead && plain) {
        h.dtype = t->dtype;
        h.ndim = t->ndim;
        if (t->ndim)
            control[n++] =
                (struct iovec){ (void *)t->dims, t->ndim * sizeof(t->dims[0]) };
        out.bulk = t->data;
        out.bulk_len = tensor_bytes(t);
        out.owner = t->buf;
    }
    control[n++] = (struct iovec){ (void *)key->text, key->len };
    out.control_count = n;
    if (plain)
        lane_send(lane, &out);
    else
        send_message(lane, &out, t);
}

/* A bool of a peer may be any byte; ours are 0 or 1. */
static void set_straight(struct tensor *t)
{
    uint8_t *data = t->data;

    for (int64_t i = 0; t->dtype == DT_BOOL && i < t->count; i++)
        data[i] = data[i] != 0;
}

static bool read_plain(struct lane_frame *f, const struct head *h,
                       const int64_t *dims, struct tensor *ret)
{
    struct status st;
    int64_t count;

    if (!dtype_is_plain((enum dtype)h->dtype) ||
        !shape_count(h->ndim, dims, dtype_size((enum dtype)h->dtype), &count) ||
        (size_t)count * dtype_size((enum dtype)h->dtype) !=
            (f->bulk ? f->bulk->size : 0))
        return false;
    if (!f->bulk)
        return !tensor_new(ret, (enum dtype)h->dtype, h->ndim, dims, &st);
    tensor_wrap(ret, (enum dtype)h->dtype, h->ndim, dims, f->bulk,
                f->bulk->data);
    f->bulk = NULL; /* the tensor's alone: kernels may write over it */
    set_straight(ret);
    return true;
}

static void read_message(const struct lane_frame *f, struct tensor *ret)
{
    struct recv_tensor_answer a = { 0 };
    struct rpc_data msg = { 0 };
    struct status st = STATUS_INIT;

    if (!f->bulk)
        return;
    msg.data = f->bulk->data;
    msg.len = f->bulk->size;
    msg.owner = f->bulk;
    if (!recv_tensor_finish(&a, &msg, &(struct rpc_place){ 0 }, &st))
        tensor_move(ret, &a.tensor);
}

bool push_read(struct lane_frame *f, struct push *ret)
{
    const uint8_t *at = f->data + sizeof(struct head);
    int64_t dims[TENSOR_RANK_MAX];
    struct head h;

    if (f->len < sizeof(h))
        return false;
    memcpy(&h, f->data, sizeof(h));
    if (h.ndim > TENSOR_RANK_MAX ||
        f->len != sizeof(h) + h.ndim * sizeof(dims[0]) + h.key_len)
        return false;
    memcpy(dims, at, h.ndim * sizeof(dims[0]));
    at += h.ndim * sizeof(dims[0]);
    if (!rdv_key_parse((const char *)at, h.key_len, &ret->key))
        return false;
    ret->step_id = h.step_id;
    ret->dead = h.flags & DEAD;
    ret->value = (struct tensor){ 0 };
    if (ret->dead)
        return true;
    if (!(h.flags & MESSAGE))
        return read_plain(f, &h, dims, &ret->value);
    read_message(f, &ret->value);
    return true;
}
