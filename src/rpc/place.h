/*
 * Incoming messages: what a receiver is given, and how it can have the large
 * part of a message read from the socket straight into its final place.
 */
#ifndef RPC_PLACE_H
#define RPC_PLACE_H

#include "base/base.h"
#include "base/buffer.h"

/* A received message, whole and contiguous, aligned to BUFFER_ALIGN. Who needs
 * it for longer takes a reference of owner (which may be NULL when len is 0).
 */
struct rpc_data {
    const uint8_t *data;
    size_t len;
    struct buffer *owner;
};

/* One message of a stream, whole; valid until it returns. On the loop thread.
 */
typedef void rpc_message_fn(const struct rpc_data *msg, void *arg);

/*
 * Where the bytes [skip, skip + len) of a message are to go. The rest of the
 * message, what is before and what is after, is delivered as rpc_data, without
 * a gap. `owner` keeps dest alive; a reference of it is taken over, and given
 * back after the call is over.
 */
struct rpc_place {
    size_t skip;
    uint8_t *dest; /* NULL: nothing is to be placed */
    size_t len;
    struct buffer *owner;
};

/*
 * Asked with the first bytes of a message, while it arrives: `have` of `total`.
 * Returns false to be asked again when there are more of them, true when it
 * has decided. Asked at most until RPC_PLACE_HEAD bytes are there; after that
 * nothing is placed. Not asked for compressed or empty messages. Runs on the
 * loop thread.
 */
#define RPC_PLACE_HEAD ((size_t)64 << 10)
typedef bool rpc_place_fn(void *arg, const uint8_t *head, size_t have,
                          size_t total, struct rpc_place *ret);

#endif
