#include "store/bundle_load.h"

#include <pthread.h>

#include "base/crc32c.h"
#include "base/mem.h"
#include "store/bundle_plan.h"
#include "store/bundle_strings.h"

/* A tensor larger than this is read in pieces of it. */
#define PIECE ((uint64_t)8 << 20)
/* Bytes in all from which on it pays to wake other threads. */
#define PARALLEL_MIN ((uint64_t)4 << 20)
/* What is read, and then checksummed, at once. */
#define WINDOW ((size_t)256 << 10)

/* What one thread reads at once. */
struct piece {
    struct bundle_part *part;
    uint64_t at, len; /* within the part */
    uint32_t crc;     /* of the bytes read */
};

struct load {
    struct bundle_reader *r;
    struct bundle_plan plan;
    struct piece *pieces;
    int piece_count, piece_room;
    atomic_int next;
    pthread_mutex_t lock;
    int failed;           /* under lock: number of a piece, or INT_MAX */
    struct status *error; /* under lock: of that piece */
};

/* Cuts the parts, which are in order now; what cannot be cut is one piece. */
static uint64_t cut_pieces(struct load *l)
{
    uint64_t total = 0;

    for (int i = 0; i < l->plan.count; i++) {
        struct bundle_part *p = &l->plan.parts[i];
        uint64_t at = 0;

        do {
            uint64_t len = p->direct ? MIN(p->size - at, PIECE) : p->size;

            *MEM_PUSH(l->pieces, l->piece_count, l->piece_room) =
                (struct piece){ .part = p, .at = at, .len = len };
            at += len;
        } while (at < p->size);
        total += p->size;
    }
    return total;
}

/* ---- reading ---- */

/* In steps of what fits into a cache, so that the checksum finds the bytes
 * there. */
static enum mst_code read_direct(struct piece *c, struct status *st)
{
    const struct bundle_part *p = c->part;
    size_t elem = dtype_size((enum dtype)p->read->out.dtype);
    uint8_t *to = p->read->out.data;
    enum mst_code rc = MST_OK;

    if (c->len)
        to += (uint64_t)p->to_elem * elem + c->at;
    for (uint64_t at = 0; at < c->len && !rc; at += WINDOW) {
        size_t n = (size_t)MIN(c->len - at, WINDOW);

        rc = file_in_read(p->file, p->offset + c->at + at, to + at, n, st);
        if (!rc)
            c->crc = crc32c(c->crc, to + at, n);
    }
    return rc;
}

/*
 * A stored slice of which not all is wanted, or not in one run: it passes
 * through a window, from its first byte to its last, because the checksum is
 * over all of them.
 */
struct window {
    uint8_t *data;
    uint64_t at; /* of the window within the part */
    size_t len;
    uint32_t crc;
};

static enum mst_code window_next(const struct bundle_part *p, struct window *w,
                                 struct status *st)
{
    enum mst_code rc;

    w->at += w->len;
    w->len = (size_t)MIN(p->size - w->at, (uint64_t)WINDOW);
    rc = file_in_read(p->file, p->offset + w->at, w->data, w->len, st);
    if (!rc)
        w->crc = crc32c(w->crc, w->data, w->len);
    return rc;
}

static enum mst_code window_copy(const struct bundle_part *p, struct window *w,
                                 uint64_t from, uint8_t *to, uint64_t len,
                                 struct status *st)
{
    while (len) {
        uint64_t skip, n;

        if (from >= w->at + w->len) {
            enum mst_code rc = window_next(p, w, st);

            if (rc)
                return rc;
            continue;
        }
        skip = from - w->at;
        n = MIN(len, w->len - skip);
        memcpy(to, w->data + skip, (size_t)n);
        from += n;
        to += n;
        len -= n;
    }
    return MST_OK;
}

static enum mst_code read_scattered(struct piece *c, struct status *st)
{
    const struct bundle_part *p = c->part;
    size_t elem = dtype_size((enum dtype)p->read->out.dtype);
    struct window w = { .data = mem_new(WINDOW) };
    struct slice_walk walk;
    enum mst_code rc = MST_OK;

    slice_walk_init(&walk, &p->from, &p->to);
    while (!rc && slice_walk_next(&walk))
        rc = window_copy(p, &w, (uint64_t)walk.from * elem,
                         (uint8_t *)p->read->out.data + walk.to * (int64_t)elem,
                         (uint64_t)walk.run * elem, st);
    while (!rc && w.at + w.len < p->size)
        rc = window_next(p, &w, st);
    c->crc = w.crc;
    mem_free(w.data);
    return rc;
}

/* Strings come into a tensor of the stored shape; what is wanted of it moves
 * on into the output. */
static enum mst_code read_strings(struct load *l, struct piece *c,
                                  struct status *st)
{
    struct bundle_part *p = c->part;
    struct tensor stored = { 0 };
    struct slice_walk walk;
    struct buffer *buf;
    enum mst_code rc;

    if (!p->size) /* an empty tensor of older writers */
        return MST_OK;
    buf = buffer_new((size_t)p->size);
    if (!buf)
        return status_set(st, MST_RESOURCE_EXHAUSTED,
                          "No memory for %llu bytes of strings",
                          (unsigned long long)p->size);
    rc = file_in_read(p->file, p->offset, buf->data, (size_t)p->size, st);
    if (!rc)
        rc = tensor_new(&stored, DT_STRING, p->from.ndim, p->from.length, st);
    if (!rc)
        rc = bundle_strings_parse(&stored,
                                  cursor_over(buf->data, (size_t)p->size),
                                  l->r->unchecked, &c->crc, st);
    buffer_unref(buf);
    slice_walk_init(&walk, &p->from, &p->to);
    while (!rc && slice_walk_next(&walk))
        for (int64_t i = 0; i < walk.run; i++) {
            struct str *from = tensor_str(&stored, walk.from + i);
            struct str *to = tensor_str(&p->read->out, walk.to + i);
            struct str swap = *to;

            *to = *from;
            *from = swap;
        }
    tensor_unref(&stored);
    return rc;
}

static void fail(struct load *l, int piece, const struct status *st)
{
    pthread_mutex_lock(&l->lock);
    if (piece < l->failed) {
        l->failed = piece;
        status_copy(l->error, st);
    }
    pthread_mutex_unlock(&l->lock);
}

/* Every thread draws the next piece, so the file is read from its beginning
 * to its end, and none waits for the largest. */
static void work(void *arg, int64_t begin, int64_t end)
{
    struct status st = STATUS_INIT;
    struct load *l = arg;
    int i;

    (void)begin;
    (void)end;
    while ((i = atomic_fetch_add(&l->next, 1)) < l->piece_count) {
        struct piece *c = &l->pieces[i];
        enum mst_code rc;

        if (c->part->direct)
            rc = read_direct(c, &st);
        else if (c->part->read->out.dtype == DT_STRING)
            rc = read_strings(l, c, &st);
        else
            rc = read_scattered(c, &st);
        if (rc) {
            fail(l, i, &st);
            atomic_store(&l->next, l->piece_count); /* the others may stop */
        }
    }
}

/* The pieces of a part follow each other; *at is the first of this one. */
static enum mst_code check_part(const struct load *l,
                                const struct bundle_part *p, int *at,
                                struct status *st)
{
    uint32_t crc = 0;

    for (; *at < l->piece_count && l->pieces[*at].part == p; (*at)++)
        crc = crc32c_join(crc, l->pieces[*at].crc, l->pieces[*at].len);
    if (crc == p->crc || l->r->unchecked)
        return MST_OK;
    return status_set(st, MST_DATA_LOSS,
                      "TensorBundle at %s shard %d (%llu bytes): Checksum does "
                      "not match: stored %08u vs. calculated on the restored "
                      "bytes %u",
                      l->r->prefix, p->shard, (unsigned long long)p->size,
                      p->crc, crc);
}

static enum mst_code read_all(struct load *l, struct pool *pool,
                              struct status *st)
{
    enum mst_code rc = MST_OK;
    int at = 0;

    if (cut_pieces(l) < PARALLEL_MIN)
        pool = NULL;
    if (l->piece_count)
        pool_for(pool, MIN(pool ? pool_threads(pool) + 1 : 1, l->piece_count),
                 1, work, l);
    if (l->failed != INT32_MAX)
        return st->code;
    for (int i = 0; i < l->plan.count && !rc; i++)
        rc = check_part(l, &l->plan.parts[i], &at, st);
    return rc;
}

enum mst_code bundle_load(struct bundle_reader *r, struct bundle_read *reads,
                          int count, struct pool *pool, struct status *st)
{
    struct load l = { .r = r, .failed = INT32_MAX, .error = st };
    enum mst_code rc;

    pthread_mutex_init(&l.lock, NULL);
    rc = bundle_plan_make(&l.plan, r, reads, count, st);
    if (!rc)
        rc = read_all(&l, pool, st);
    for (int i = 0; i < count; i++) {
        bundle_entry_done(&reads[i].entry);
        if (rc)
            tensor_unref(&reads[i].out);
    }
    bundle_plan_done(&l.plan);
    mem_free(l.pieces);
    pthread_mutex_destroy(&l.lock);
    return rc;
}
