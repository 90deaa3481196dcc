/*
 * An outgoing message in pieces. Small pieces are copied into the message;
 * large ones stay where they are, pinned by a reference until the last of
 * their bytes has been handed to the kernel. A message that fits its inline
 * room, as most replies do, allocates nothing.
 *
 * A message is a value with one owner. The functions that send one take it:
 * they leave an empty message behind, which needs no rpc_msg_done().
 */
#ifndef RPC_MSG_H
#define RPC_MSG_H

#include "base/base.h"
#include "base/buffer.h"
#include "rpc/place.h"

#define RPC_MSG_INLINE 256
#define RPC_MSG_PIECES 4

/* Bytes at `data`; or, when that is NULL, inline ones from `at` on. */
struct rpc_piece {
    const uint8_t *data;
    size_t len;
    struct buffer *owner; /* NULL: inline, or memory that never goes away */
    uint32_t at;
};

struct rpc_msg {
    size_t len;
    uint32_t count, room; /* of pieces */
    uint32_t used;        /* of inline bytes */
    bool no_memory;       /* a piece could not be had; sending will fail */
    struct buffer *chunk; /* where further copies go; its pieces own it */
    size_t chunk_used;
    struct rpc_piece *more; /* all pieces, once there are too many */
    struct rpc_piece few[RPC_MSG_PIECES];
    uint8_t bytes[RPC_MSG_INLINE];
};

void rpc_msg_init(struct rpc_msg *m);
void rpc_msg_done(struct rpc_msg *m);

/* Appends a copy. */
void rpc_msg_copy(struct rpc_msg *m, const void *data, size_t len);
/* Appends len bytes that the caller is to fill in, at once. NULL when there is
 * no memory; the message is then good for nothing and sending it fails with
 * RESOURCE_EXHAUSTED. */
uint8_t *rpc_msg_reserve(struct rpc_msg *m, size_t len);
/* Appends by reference (a few bytes are copied all the same). Takes a new
 * reference of owner; owner may be NULL for memory that never goes away. */
void rpc_msg_ref(struct rpc_msg *m, const void *data, size_t len,
                 struct buffer *owner);

static inline size_t rpc_msg_len(const struct rpc_msg *m)
{
    return m->len;
}

static inline struct rpc_piece *rpc_msg_pieces(struct rpc_msg *m)
{
    return m->more ? m->more : m->few;
}

static inline const uint8_t *rpc_piece_data(const struct rpc_msg *m,
                                            const struct rpc_piece *p)
{
    return p->data ? p->data : m->bytes + p->at;
}

/* The whole in one piece, with a reference of its owner; false when there is
 * no memory for it. */
bool rpc_msg_flatten(struct rpc_msg *m, struct rpc_data *ret) MUST_USE;

/* dst, which holds nothing, becomes src; src becomes empty. */
void rpc_msg_move(struct rpc_msg *dst, struct rpc_msg *src);

#endif
