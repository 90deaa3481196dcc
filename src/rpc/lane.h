/*
 * A lane: a stream of frames between two servers of ours, beside gRPC. A frame
 * is a few bytes that say what it is about, and perhaps a bulk of any size. It
 * costs no headers, no stream, no flow control and, when it goes through
 * memory that both share, no copy in the kernel.
 *
 *   frame = head (24 bytes), control bytes, bulk bytes unless these are shared
 *
 * Both ends are equal once the lane is open. Whoever connects sends a preface
 * of LANE_PREFACE bytes first, by which the other side knows a lane from
 * HTTP/2 and a friend from a stranger.
 *
 * What is sent waits until lane_flush(), so that small things travel together;
 * flushing writes on the calling thread, and only what the socket does not
 * take is left to the loop. A bulk is shared, copied or referred to, whichever
 * is cheapest; what is read goes from the socket to its final place.
 *
 * Threads: sending, flushing and shutting from any; frame() and lost() on the
 * loop. lost() is called once, when the lane is no more: the peer is gone, it
 * sent nonsense, or someone shut it. After that nothing is sent or received.
 */
#ifndef RPC_LANE_H
#define RPC_LANE_H

#include <sys/uio.h>

#include "base/buffer.h"
#include "base/pool.h"
#include "base/status.h"
#include "io/loop.h"

#define LANE_PREFACE     24
#define LANE_MAGIC       "MSTLANE2" /* how a preface begins */
#define LANE_CONTROL_MAX ((size_t)32 << 10)
/* From here on a bulk is shared rather than sent, where that can be. */
#define LANE_SHARE_MIN ((size_t)16 << 10)

struct lane;

struct lane_frame {
    uint8_t kind; /* the users' own, below 128 */
    const uint8_t *data;
    size_t len;
    struct buffer *bulk; /* NULL: none. Whoever takes it leaves NULL here. */
};

struct lane_ops {
    void (*frame)(struct lane *lane, struct lane_frame *f, void *arg);
    void (*lost)(struct lane *lane, const char *why, void *arg);
};

struct lane_opts {
    struct loop *loop;
    int fd;            /* connected, not blocking; taken */
    bool local;        /* a socket of this host that can carry descriptors */
    bool shared;       /* bulks may be shared; only if local */
    bool opens;        /* sends the preface; else it comes from the peer */
    struct pool *pool; /* helps to copy large bulks; NULL: nobody does */
    uint8_t preface[LANE_PREFACE];
    const struct lane_ops *ops;
    void *arg;
};

/* One reference for the caller; another is the lane's own until lost(). Frames
 * may come before this returns. NULL when the loop cannot watch the socket,
 * which is closed then. */
struct lane *lane_new(const struct lane_opts *opts);
struct lane *lane_ref(struct lane *lane);
void lane_unref(struct lane *lane); /* accepts NULL */

struct lane_out {
    uint8_t kind;
    const struct iovec *control; /* copied; LANE_CONTROL_MAX at most in all */
    int control_count;
    const void *bulk;
    size_t bulk_len;
    struct buffer *owner; /* of the bulk */
};

/* Nothing happens when the lane is lost. */
void lane_send(struct lane *lane, const struct lane_out *f);
void lane_flush(struct lane *lane);
void lane_shut(struct lane *lane, const char *why);

struct loop *lane_loop(const struct lane *lane);
bool lane_is_shared(const struct lane *lane);
/* All that went in and out so far, bulks in shared memory included. */
void lane_bytes(const struct lane *lane, uint64_t *in, uint64_t *out);

#endif
