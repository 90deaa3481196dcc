/*
 * Copies go inline first, then into chunks that grow with the message. A chunk
 * is a buffer whose references belong to the pieces that lie in it; the message
 * only remembers the newest one. Neighbouring copies share a piece.
 */
#include "rpc/msg.h"

#include <string.h>

#include "base/mem.h"

/* Shorter than this, a copy is cheaper than a reference and an iovec. */
#define COPY_MAX  ((size_t)512)
#define CHUNK_MIN ((size_t)4096)
#define CHUNK_MAX ((size_t)1 << 20)

void rpc_msg_init(struct rpc_msg *m)
{
    memset(m, 0, offsetof(struct rpc_msg, few));
}

void rpc_msg_done(struct rpc_msg *m)
{
    struct rpc_piece *pieces = rpc_msg_pieces(m);

    for (uint32_t i = 0; i < m->count; i++)
        buffer_unref(pieces[i].owner);
    mem_free(m->more);
    rpc_msg_init(m);
}

static void push(struct rpc_msg *m, struct rpc_piece piece)
{
    if (!m->more && m->count < RPC_MSG_PIECES) {
        m->few[m->count++] = piece;
        return;
    }
    if (!m->more) {
        m->room = 4 * RPC_MSG_PIECES;
        m->more = mem_array(m->room, sizeof(*m->more));
        memcpy(m->more, m->few, sizeof(m->few));
    } else if (m->count == m->room) {
        m->room *= 2;
        m->more = mem_grow(m->more, m->room, sizeof(*m->more));
    }
    m->more[m->count++] = piece;
}

static uint8_t *reserve_inline(struct rpc_msg *m, size_t len)
{
    struct rpc_piece *last = rpc_msg_pieces(m) + m->count - 1;
    uint8_t *at = m->bytes + m->used;

    if (m->count && !last->data)
        last->len += len;
    else
        push(m, (struct rpc_piece){ .len = len, .at = m->used });
    m->used += (uint32_t)len;
    return at;
}

/* The message ends where the used part of the chunk does. */
static bool ends_in_chunk(struct rpc_msg *m)
{
    const struct rpc_piece *last = rpc_msg_pieces(m) + m->count - 1;

    return m->count && last->owner == m->chunk &&
           last->data + last->len == m->chunk->data + m->chunk_used;
}

static uint8_t *reserve_chunk(struct rpc_msg *m, size_t len)
{
    bool fits = m->chunk && m->chunk->size - m->chunk_used >= len;
    uint8_t *at;

    if (!fits) {
        size_t size = MAX(len, MIN(MAX(m->len, CHUNK_MIN), CHUNK_MAX));
        struct buffer *chunk = buffer_new(size);

        if (!chunk)
            return NULL;
        m->chunk = chunk;
        m->chunk_used = 0;
    }
    at = m->chunk->data + m->chunk_used;
    if (fits && ends_in_chunk(m))
        rpc_msg_pieces(m)[m->count - 1].len += len;
    else
        push(m, (struct rpc_piece){
                    .data = at,
                    .len = len,
                    .owner = fits ? buffer_ref(m->chunk) : m->chunk,
                });
    m->chunk_used += len;
    return at;
}

uint8_t *rpc_msg_reserve(struct rpc_msg *m, size_t len)
{
    uint8_t *at = len <= RPC_MSG_INLINE - m->used ? reserve_inline(m, len)
                                                  : reserve_chunk(m, len);

    if (at)
        m->len += len;
    else
        m->no_memory = true;
    return at;
}

void rpc_msg_copy(struct rpc_msg *m, const void *data, size_t len)
{
    uint8_t *at = len ? rpc_msg_reserve(m, len) : NULL;

    if (at)
        memcpy(at, data, len);
}

void rpc_msg_ref(struct rpc_msg *m, const void *data, size_t len,
                 struct buffer *owner)
{
    if (len <= COPY_MAX) {
        rpc_msg_copy(m, data, len);
        return;
    }
    push(m, (struct rpc_piece){
                .data = data,
                .len = len,
                .owner = buffer_ref(owner),
            });
    m->len += len;
}

void rpc_msg_move(struct rpc_msg *dst, struct rpc_msg *src)
{
    memcpy(dst, src, offsetof(struct rpc_msg, few));
    if (!src->more)
        memcpy(dst->few, src->few, src->count * sizeof(src->few[0]));
    memcpy(dst->bytes, src->bytes, src->used);
    rpc_msg_init(src);
}

bool rpc_msg_flatten(struct rpc_msg *m, struct rpc_data *ret)
{
    const struct rpc_piece *p = rpc_msg_pieces(m);
    uint8_t *at;

    *ret = (struct rpc_data){ .len = m->len };
    if (!m->no_memory && m->count == 1 && p->data && p->owner) {
        ret->data = p->data;
        ret->owner = buffer_ref(p->owner);
        return true;
    }
    ret->owner = m->no_memory ? NULL : buffer_new(m->len);
    if (!ret->owner)
        return false;
    ret->data = at = ret->owner->data;
    for (uint32_t i = 0; i < m->count; i++) {
        memcpy(at, rpc_piece_data(m, &p[i]), p[i].len);
        at += p[i].len;
    }
    return true;
}
