/*
 * One incoming message, as its bytes arrive: the five bytes of gRPC's prefix,
 * then the message itself, which goes partly to where a place function wants it
 * and else into one contiguous buffer. Of a stream of messages each is shown as
 * soon as it is whole, and then makes room for the next: there is never more
 * than one of them, so a receiver that is slow slows its sender down.
 *
 * The reader of the socket asks inbox_room() where the next bytes belong, reads
 * them there, and then feeds them from that very place: nothing is copied.
 * Bytes that were read elsewhere are fed just the same, and copied.
 *
 * The length in the prefix is only a claim. Up to INBOX_TRUST bytes are
 * allocated on the strength of it; beyond that a buffer grows eightfold when
 * the last one is full, so that a peer must send an eighth of what it makes us
 * reserve.
 *
 * Threads: the loop thread of the connection.
 */
#ifndef RPC_INBOX_H
#define RPC_INBOX_H

#include "base/status.h"
#include "rpc/inflate.h"
#include "rpc/place.h"

#define INBOX_TRUST  ((size_t)1 << 20)
#define INBOX_PREFIX 5

struct inbox {
    size_t max; /* longest message */
    rpc_place_fn *place;
    void *place_arg;
    rpc_message_fn *each; /* NULL: one message, for inbox_finish() */
    void *each_arg;
    enum inflate_codec codec;
    uint64_t copied; /* bytes that did not come straight from the socket */

    /* Of the present message. */
    uint8_t prefix[INBOX_PREFIX];
    uint8_t prefix_len;
    bool compressed;
    bool decided; /* about the place */
    size_t total; /* as the prefix says */
    size_t got;
    size_t kept;        /* of these, in buf; the others are placed */
    struct buffer *buf; /* NULL: none yet */
    struct rpc_place placed;
};

void inbox_init(struct inbox *in, size_t max);
void inbox_done(struct inbox *in);
/* Forgets what has come; what was decided before stays. */
void inbox_reset(struct inbox *in);

/* RESOURCE_EXHAUSTED: too large, or no memory. INTERNAL: not one message. */
enum mst_code inbox_feed(struct inbox *in, const uint8_t *data, size_t len,
                         struct status *st) MUST_USE;
/* Where the next bytes of the message belong, and how many of them. NULL if it
 * is not known yet; read them anywhere then. */
uint8_t *inbox_room(struct inbox *in, size_t *ret_len);
/* So many bytes of the message are still to come. */
static inline size_t inbox_left(const struct inbox *in)
{
    return in->total - in->got;
}
/* The stream has ended: exactly one whole message, inflated if need be. The
 * result points into the inbox. If each was shown: nothing, and none is cut. */
enum mst_code inbox_finish(struct inbox *in, struct rpc_data *ret,
                           struct status *st) MUST_USE;
/* Nothing at all has come. */
static inline bool inbox_empty(const struct inbox *in)
{
    return !in->prefix_len;
}

#endif
