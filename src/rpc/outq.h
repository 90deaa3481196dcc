/*
 * What waits to be written to a socket: frame headers and small bodies, copied
 * into a ring of bytes, and pieces of messages by reference, in the order in
 * which they go out. A referenced piece is held until its last byte has been
 * written, whatever becomes of the call that sent it.
 */
#ifndef RPC_OUTQ_H
#define RPC_OUTQ_H

#include <sys/uio.h>

#include "base/base.h"
#include "base/buffer.h"

#define OUTQ_RING ((size_t)32 << 10)
#define OUTQ_IOV  256

struct outq {
    size_t bytes; /* all that waits */
    unsigned head, tail;
    size_t ring_at, ring_used;
    uint8_t *ring;
    struct iovec iov[OUTQ_IOV];
    struct buffer *owner[OUTQ_IOV];
};

void outq_init(struct outq *q);
void outq_done(struct outq *q);

/* Copies as much as there is room for, and says how much that was. */
size_t outq_copy(struct outq *q, const void *data, size_t len);
/* Takes the reference of owner over, which may be NULL. There must be room. */
void outq_ref(struct outq *q, const void *data, size_t len,
              struct buffer *owner);
/* Room for so many references, and for copies of `copy` bytes in all, made one
 * by one between them. */
bool outq_fits(struct outq *q, unsigned refs, size_t copy);

/* What to write next. */
static inline const struct iovec *outq_iov(const struct outq *q, int *ret_count)
{
    *ret_count = (int)(q->tail - q->head);
    return q->iov + q->head;
}
/* So many bytes of it were written. */
void outq_sent(struct outq *q, size_t len);

#endif
