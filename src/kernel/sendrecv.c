/*
 * Send and receive: the ends of edges that cross partitions. The key is made
 * when the graph is compiled; only inside of loops does every iteration need
 * one of its own, with the frame's id and the iteration's number at the end.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/hash.h"
#include "kernel/types.h"
#include "op/rendezvous.h"

#define KEY_MAX 4096

struct transfer {
    struct rdv_key key; /* outside of loops */
    size_t prefix_len;  /* of the text, up to "frame:iter" */
};

static enum mst_code transfer_init(struct op_node *n, struct status *st)
{
    struct transfer *t = ARENA_NEW(n->arena, struct transfer);
    char *text = arena_printf(
        n->arena, "%s;%016" PRIx64 ";%s;%s;0:0",
        op_attr_str(n, "send_device").data,
        (uint64_t)op_attr_int(n, "send_device_incarnation"),
        op_attr_str(n, "recv_device").data, op_attr_str(n, "tensor_name").data);

    if (strlen(text) > KEY_MAX || !rdv_key_parse(text, strlen(text), &t->key))
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Invalid  rendezvous key: %.1000s", text);
    t->prefix_len = strlen(text) - strlen("0:0");
    t->key.late = op_attr_bool(n, "_late");
    n->state = t;
    return MST_OK;
}

#define KEY_TAIL_MAX 48

/* The key of this run; room is prefix_len + KEY_TAIL_MAX bytes. */
static void key_of(const struct op_ctx *c, char *room, struct rdv_key *ret)
{
    const struct transfer *t = c->node->state;
    size_t n = t->prefix_len;

    *ret = t->key;
    if (!c->frame_id && !c->iter)
        return;
    memcpy(room, t->key.text, n);
    n += (size_t)snprintf(room + n, KEY_TAIL_MAX, "%" PRIu64 ":%" PRId64,
                          c->frame_id, c->iter);
    ret->text = room;
    ret->len = n;
    ret->hash = hash_bytes(room, n, HASH_SEED);
    ret->src_device = room;
    ret->dst_device = room + (t->key.dst_device - t->key.text);
}

static enum mst_code send_run(struct op_ctx *c)
{
    const struct transfer *t = c->node->state;
    struct rendezvous *r = c->step->rendezvous;
    char room[t->prefix_len + KEY_TAIL_MAX];
    struct rdv_key key;

    if (!r)
        return op_fail(c, MST_INTERNAL,
                       "Op kernel context needs to provide a rendezvous.");
    key_of(c, room, &key);
    return r->ops->send(r, &key, &c->in[0].t, c->in_dead, c->st);
}

/* A receive under way, in the run's scratch memory. */
struct receiving {
    struct rdv_recv recv;
    struct op_ctx *c;
};

_Static_assert(sizeof(struct receiving) <= OP_SCRATCH, "scratch is too small");

static void received(struct rdv_recv *recv, enum mst_code code)
{
    struct receiving *r = CONTAINER(recv, struct receiving, recv);
    struct op_ctx *c = r->c;

    if (!code && !recv->dead)
        tensor_move(op_out(c, 0), &recv->value);
    tensor_unref(&recv->value);
    op_finish(c, code);
}

static enum mst_code recv_run(struct op_ctx *c)
{
    const struct transfer *t = c->node->state;
    struct rendezvous *r = c->step->rendezvous;
    char room[t->prefix_len + KEY_TAIL_MAX];
    struct receiving *recv;
    struct rdv_key key;

    if (!r)
        return op_fail(c, MST_INTERNAL,
                       "Op kernel context needs to provide a rendezvous.");
    key_of(c, room, &key);
    recv = c->scratch;
    *recv =
        (struct receiving){ .recv = { .done = received, .st = c->st }, .c = c };
    r->ops->recv(r, &key, &recv->recv);
    return OP_LATER;
}

#define SEND_RECORD(text)                                                      \
    .name = text, .in = "tensor: T",                                           \
    .attr = "T: type; tensor_name: string; send_device: string; "              \
            "send_device_incarnation: int; recv_device: string; "              \
            "client_terminated: bool = false; _late: bool = false",            \
    .kind = OP_SEND, .flags = OP_STATEFUL, .init = transfer_init,              \
    .kernel = (const struct op_kernel[])                                       \
    {                                                                          \
        { DT_ANY, send_run },                                                  \
        {                                                                      \
            0                                                                  \
        }                                                                      \
    }

#define RECV_RECORD(text)                                                      \
    .name = text, .out = "tensor: tensor_type",                                \
    .attr = "tensor_type: type; tensor_name: string; send_device: string; "    \
            "send_device_incarnation: int; recv_device: string; "              \
            "client_terminated: bool = false; _late: bool = false",            \
    .kind = OP_RECV, .flags = OP_STATEFUL | OP_ASYNC, .key = "tensor_type",    \
    .init = transfer_init, .kernel = (const struct op_kernel[])                \
    {                                                                          \
        { DT_ANY, recv_run },                                                  \
        {                                                                      \
            0                                                                  \
        }                                                                      \
    }

const struct op_def def_send = { SEND_RECORD("_Send") };
const struct op_def def_host_send = { SEND_RECORD("_HostSend") };
const struct op_def def_recv = { RECV_RECORD("_Recv") };
const struct op_def def_host_recv = { RECV_RECORD("_HostRecv") };
