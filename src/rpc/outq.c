/*
 * The ring holds copied bytes in the order of sending, so space comes free at
 * one end as it is taken at the other. An entry of the ring is told from a
 * reference by where it points to.
 */
#include "rpc/outq.h"

#include <string.h>

#include "base/mem.h"

void outq_init(struct outq *q)
{
    q->bytes = q->ring_at = q->ring_used = 0;
    q->head = q->tail = 0;
    q->ring = mem_grow(NULL, 1, OUTQ_RING);
}

void outq_done(struct outq *q)
{
    while (q->head < q->tail)
        buffer_unref(q->owner[q->head++]);
    mem_free(q->ring);
    q->ring = NULL;
}

static bool in_ring(const struct outq *q, const void *p)
{
    return (uintptr_t)p - (uintptr_t)q->ring < OUTQ_RING;
}

/* Makes place for n more entries at the end. */
static bool make_place(struct outq *q, unsigned n)
{
    unsigned used = q->tail - q->head;

    if (q->tail + n <= OUTQ_IOV)
        return true;
    if (used + n > OUTQ_IOV)
        return false;
    memmove(q->iov, q->iov + q->head, used * sizeof(q->iov[0]));
    memmove(q->owner, q->owner + q->head, used * sizeof(q->owner[0]));
    q->head = 0;
    q->tail = used;
    return true;
}

static void push(struct outq *q, const void *data, size_t len,
                 struct buffer *owner)
{
    q->iov[q->tail] = (struct iovec){ (void *)data, len };
    q->owner[q->tail++] = owner;
    q->bytes += len;
}

static void push_copy(struct outq *q, const void *data, size_t len)
{
    struct iovec *last = q->iov + q->tail - 1;
    uint8_t *at = q->ring + q->ring_at;

    memcpy(at, data, len);
    q->ring_at = (q->ring_at + len) % OUTQ_RING;
    q->ring_used += len;
    if (q->head < q->tail && (uint8_t *)last->iov_base + last->iov_len == at &&
        in_ring(q, last->iov_base)) {
        last->iov_len += len;
        q->bytes += len;
    } else {
        push(q, at, len, NULL);
    }
}

size_t outq_copy(struct outq *q, const void *data, size_t len)
{
    size_t done = 0;

    while (done < len) {
        size_t n = MIN(len - done, OUTQ_RING - q->ring_used);

        n = MIN(n, OUTQ_RING - q->ring_at);
        if (!n || !make_place(q, 1))
            break;
        push_copy(q, (const uint8_t *)data + done, n);
        done += n;
    }
    return done;
}

void outq_ref(struct outq *q, const void *data, size_t len,
              struct buffer *owner)
{
    CHECK(make_place(q, 1));
    push(q, data, len, owner);
}

bool outq_fits(struct outq *q, unsigned refs, size_t copy)
{
    /* Between two references there may be a copy, and one copy may be cut in
     * two by the end of the ring. */
    return make_place(q, 2 * refs + 2) && OUTQ_RING - q->ring_used >= copy;
}

void outq_sent(struct outq *q, size_t len)
{
    q->bytes -= len;
    while (len) {
        struct iovec *v = &q->iov[q->head];
        size_t n = MIN(len, v->iov_len);

        if (in_ring(q, v->iov_base))
            q->ring_used -= n;
        v->iov_base = (uint8_t *)v->iov_base + n;
        v->iov_len -= n;
        len -= n;
        if (!v->iov_len)
            buffer_unref(q->owner[q->head++]);
    }
    if (q->head == q->tail)
        q->head = q->tail = 0;
    if (!q->ring_used)
        q->ring_at = 0;
}
