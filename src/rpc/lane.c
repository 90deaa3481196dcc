/*
 * Sending: a queue of pieces under a lock. Small bytes are copied into chunks,
 * large ones are referred to. Whoever flushes writes; if the socket is full,
 * the loop is told by an edge when it is not any more. A new segment of shared
 * memory is a frame of its own, and its descriptor goes out with that frame's
 * first byte: no write reaches beyond a piece that has one.
 *
 * Receiving: what comes is read into a stage, and frames are taken from there.
 * The rest of a bulk that is not all there is read straight to where it will
 * stay, with the stage behind it in the same call.
 */
#include "rpc/lane.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "io/shm.h"
#include "io/socket.h"

#define STAGE ((size_t)64 << 10)
#define CHUNK                                                                  \
    ((size_t)60 << 10) /* a buffer of a small class, with its head             \
                        */
#define COPY_MAX                                                               \
    ((size_t)4 << 10) /* a bulk that is copied rather than held                \
                       */
#define IOV_MAX_  64
#define WRITE_MAX ((size_t)1 << 20) /* a call; then others have their turn */
#define READS_MAX 16                /* a turn */
#define SPLIT_MIN ((size_t)2 << 20) /* a part of a copy, by one thread */
#define FDS_MAX   8

_Static_assert(LANE_CONTROL_MAX < CHUNK, "a frame's control fits a chunk");

enum { BULK_NONE, BULK_SENT, BULK_SHARED };
enum { KIND_SEGMENT = 128 };

struct head {
    uint8_t kind, where;
    uint16_t zero;
    uint32_t len; /* of the control bytes */
    uint64_t bulk;
    uint32_t segment, index;
};

_Static_assert(sizeof(struct head) == 24, "a head is 24 bytes on the wire");

struct segment_text {
    uint32_t count, zero;
    uint64_t room;
};

struct piece {
    const uint8_t *data;
    size_t len;
    struct buffer *owner;
    int fd; /* goes out with the first byte; -1: none */
};

struct lane {
    atomic_uint refs;
    /* Constant. */
    struct loop *loop;
    const struct lane_ops *ops;
    void *arg;
    bool local;
    struct pool *pool;

    pthread_mutex_t lock;
    int fd;     /* under lock; -1 when closed */
    bool lost;  /* under lock: nothing is sent any more */
    bool ended; /* under lock: the loop has been told */
    char why[64];
    struct piece *pieces; /* under lock: from `at` up to `count` */
    int at, count, room;
    struct buffer *chunk; /* under lock: where small bytes go */
    size_t chunk_used;
    struct shm_out *out; /* NULL: bulks are sent */

    /* The loop's. */
    struct loop_watch watch;
    struct loop_hook again;
    struct loop_task end;
    uint8_t preface[LANE_PREFACE];
    bool awaits_preface;
    bool to_the_end; /* a short read may leave something behind */
    bool tuned;      /* its socket, which may still have to connect at first */
    uint8_t *stage;
    size_t stage_len;
    struct buffer *filling; /* a bulk of which the rest is still to come */
    size_t filled;
    struct head filling_head;
    uint8_t *control; /* of that frame; LANE_CONTROL_MAX bytes */
    struct shm_in *in;
    int fds[FDS_MAX]; /* came, and not yet asked for */
    int fd_count;

    atomic_uint_fast64_t bytes_in, bytes_out;
};

struct loop *lane_loop(const struct lane *l)
{
    return l->loop;
}

bool lane_is_shared(const struct lane *l)
{
    return l->out != NULL;
}

void lane_bytes(const struct lane *l, uint64_t *in, uint64_t *out)
{
    *in += atomic_load_explicit(&l->bytes_in, memory_order_relaxed);
    *out += atomic_load_explicit(&l->bytes_out, memory_order_relaxed);
}

static void count(atomic_uint_fast64_t *counter, size_t bytes)
{
    atomic_fetch_add_explicit(counter, bytes, memory_order_relaxed);
}

/* ---- the queue; all under lock ---- */

static void push(struct lane *l, const void *data, size_t len,
                 struct buffer *owner, int fd)
{
    if (l->at == l->count)
        l->at = l->count = 0;
    *MEM_PUSH(l->pieces, l->count, l->room) =
        (struct piece){ data, len, owner, fd };
}

/* So many bytes to be filled in, behind what was copied before. */
static uint8_t *push_room(struct lane *l, size_t len, int fd)
{
    struct piece *last = l->at < l->count ? &l->pieces[l->count - 1] : NULL;
    uint8_t *to;

    if (!last && l->chunk && buffer_unique(l->chunk))
        l->chunk_used = 0;
    if (!l->chunk || l->chunk_used + len > CHUNK) {
        buffer_unref(l->chunk);
        l->chunk = buffer_new(CHUNK);
        CHECK(l->chunk);
        l->chunk_used = 0;
    }
    to = l->chunk->data + l->chunk_used;
    l->chunk_used += len;
    if (fd < 0 && last && last->data + last->len == to)
        last->len += len;
    else
        push(l, to, len, buffer_ref(l->chunk), fd);
    return to;
}

static void push_head(struct lane *l, const struct head *h,
                      const struct iovec *control, int control_count, int fd)
{
    uint8_t *to = push_room(l, sizeof(*h) + h->len, fd);

    memcpy(to, h, sizeof(*h));
    to += sizeof(*h);
    for (int i = 0; i < control_count; i++) {
        memcpy(to, control[i].iov_base, control[i].iov_len);
        to += control[i].iov_len;
    }
}

static void drop_pieces(struct lane *l)
{
    for (; l->at < l->count; l->at++) {
        buffer_unref(l->pieces[l->at].owner);
        if (l->pieces[l->at].fd >= 0)
            close(l->pieces[l->at].fd);
    }
}

/* ---- the end ---- */

struct lane *lane_ref(struct lane *l)
{
    atomic_fetch_add(&l->refs, 1);
    return l;
}

void lane_unref(struct lane *l)
{
    if (!l || atomic_fetch_sub(&l->refs, 1) != 1)
        return;
    drop_pieces(l);
    buffer_unref(l->chunk);
    buffer_unref(l->filling);
    while (l->fd_count)
        close(l->fds[--l->fd_count]);
    shm_out_free(l->out);
    shm_in_free(l->in);
    pthread_mutex_destroy(&l->lock);
    mem_free(l->pieces);
    mem_free(l->stage);
    mem_free(l->control);
    mem_free(l);
}

static void run_end(struct loop_task *task)
{
    struct lane *l = CONTAINER(task, struct lane, end);

    loop_watch_del(l->loop, &l->watch);
    loop_hook_del(&l->again);
    pthread_mutex_lock(&l->lock);
    close(l->fd);
    l->fd = -1;
    drop_pieces(l);
    pthread_mutex_unlock(&l->lock);
    l->ops->lost(l, l->why, l->arg);
    lane_unref(l);
}

/* Under lock. */
static void lose(struct lane *l, const char *why)
{
    l->lost = true;
    if (l->ended)
        return;
    l->ended = true;
    snprintf(l->why, sizeof(l->why), "%s", why);
    loop_post(l->loop, &l->end);
}

void lane_shut(struct lane *l, const char *why)
{
    pthread_mutex_lock(&l->lock);
    lose(l, why);
    pthread_mutex_unlock(&l->lock);
}

/* ---- sending ---- */

/* One write of pieces up to the next that has a descriptor; false when the
 * socket takes no more. */
static bool write_some(struct lane *l)
{
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec iov[IOV_MAX_];
    struct msghdr m = { .msg_iov = iov };
    struct piece *p = &l->pieces[l->at];
    size_t bytes = 0;
    ssize_t n;

    for (int i = l->at;
         i < l->count && m.msg_iovlen < IOV_MAX_ && bytes < WRITE_MAX &&
         (i == l->at || l->pieces[i].fd < 0);
         i++) {
        size_t len = MIN(l->pieces[i].len, WRITE_MAX - bytes);

        iov[m.msg_iovlen++] = (struct iovec){ (void *)l->pieces[i].data, len };
        bytes += len;
    }
    if (p->fd >= 0) {
        struct cmsghdr *c;

        m.msg_control = control.room;
        m.msg_controllen = sizeof(control.room);
        c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &p->fd, sizeof(int));
    }
    do
        n = sendmsg(l->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n < 0) {
        if (errno != EAGAIN)
            lose(l, strerrordesc_np(errno));
        return false;
    }
    if (p->fd >= 0) {
        close(p->fd);
        p->fd = -1;
    }
    count(&l->bytes_out, (size_t)n);
    for (size_t left = (size_t)n; left;) {
        size_t len = MIN(left, l->pieces[l->at].len);

        l->pieces[l->at].data += len;
        l->pieces[l->at].len -= len;
        left -= len;
        if (!l->pieces[l->at].len)
            buffer_unref(l->pieces[l->at++].owner);
    }
    return (size_t)n == bytes;
}

void lane_flush(struct lane *l)
{
    bool inside = loop_inside(l->loop);

    pthread_mutex_lock(&l->lock);
    while (!l->lost && l->at < l->count) {
        if (!write_some(l))
            break;
        if (inside && l->at < l->count) {
            loop_hook_add(l->loop, &l->again);
            break;
        }
    }
    pthread_mutex_unlock(&l->lock);
}

/* Under lock: a block for the bulk, of which the peer knows or will. */
static bool share(struct lane *l, size_t len, struct head *h, uint8_t **ret)
{
    struct shm_segment made;
    struct shm_block b;

    if (!l->out || len < LANE_SHARE_MIN ||
        !shm_out_take(l->out, len, &b, &made))
        return false;
    if (made.fd >= 0) {
        struct segment_text text = { .count = made.count, .room = made.room };

        push_head(l,
                  &(struct head){ .kind = KIND_SEGMENT, .len = sizeof(text) },
                  &(struct iovec){ &text, sizeof(text) }, 1, made.fd);
    }
    h->where = BULK_SHARED;
    h->segment = b.segment;
    h->index = b.index;
    *ret = b.data;
    return true;
}

struct copy {
    uint8_t *to;
    const uint8_t *from;
};

static void copy_part(void *arg, int64_t begin, int64_t end)
{
    const struct copy *c = arg;

    memcpy(c->to + begin, c->from + begin, (size_t)(end - begin));
}

void lane_send(struct lane *l, const struct lane_out *f)
{
    struct head h = { .kind = f->kind, .bulk = f->bulk_len };
    uint8_t *shared;

    for (int i = 0; i < f->control_count; i++)
        h.len += (uint32_t)f->control[i].iov_len;
    CHECK(h.len <= LANE_CONTROL_MAX && f->kind < KIND_SEGMENT);
    h.where = f->bulk_len ? BULK_SENT : BULK_NONE;
    pthread_mutex_lock(&l->lock);
    if (!l->lost && share(l, f->bulk_len, &h, &shared)) {
        /* The block is ours alone until its frame is on its way. */
        pthread_mutex_unlock(&l->lock);
        pool_for(l->pool, (int64_t)f->bulk_len, SPLIT_MIN, copy_part,
                 &(struct copy){ shared, f->bulk });
        count(&l->bytes_out, f->bulk_len);
        pthread_mutex_lock(&l->lock);
    }
    if (!l->lost) {
        push_head(l, &h, f->control, f->control_count, -1);
        if (h.where == BULK_SENT && f->bulk_len <= COPY_MAX)
            memcpy(push_room(l, f->bulk_len, -1), f->bulk, f->bulk_len);
        else if (h.where == BULK_SENT)
            push(l, f->bulk, f->bulk_len, buffer_ref(f->owner), -1);
    }
    pthread_mutex_unlock(&l->lock);
}

/* ---- receiving ---- */

static bool take_segment(struct lane *l, const uint8_t *data, size_t len)
{
    struct segment_text text;
    bool good;

    if (len != sizeof(text) || !l->fd_count)
        return false;
    memcpy(&text, data, sizeof(text));
    if (!l->in)
        l->in = shm_in_new();
    good = shm_in_add(l->in, &(struct shm_segment){ .fd = l->fds[0],
                                                    .count = text.count,
                                                    .room = text.room });
    memmove(l->fds, l->fds + 1, (size_t)--l->fd_count * sizeof(l->fds[0]));
    return good;
}

/* A whole frame; false when it makes no sense. Takes the bulk. */
static bool deliver(struct lane *l, const struct head *h, const uint8_t *data,
                    struct buffer *bulk)
{
    struct lane_frame f = { .kind = h->kind, .data = data, .len = h->len };

    if (h->kind == KIND_SEGMENT)
        return !bulk && take_segment(l, data, h->len);
    if (h->where == BULK_SHARED) {
        bulk =
            l->in ? shm_in_buffer(l->in, h->segment, h->index, h->bulk) : NULL;
        if (!bulk)
            return false;
        count(&l->bytes_in, h->bulk);
    }
    f.bulk = bulk;
    l->ops->frame(l, &f, l->arg);
    buffer_unref(f.bulk);
    return true;
}

/* The frame's bulk begins in the stage, and its rest is still to come. */
static bool begin_bulk(struct lane *l, const struct head *h,
                       const uint8_t *data, size_t have)
{
    l->filling = buffer_new(h->bulk);
    if (!l->filling)
        return false;
    if (!l->control)
        l->control = mem_new(LANE_CONTROL_MAX);
    memcpy(l->control, data, h->len);
    memcpy(l->filling->data, data + h->len, have);
    l->filled = have;
    l->filling_head = *h;
    return true;
}

/* One frame out of the stage. *at moves behind it, or stays if more is needed;
 * false when it makes no sense. */
static bool take_frame(struct lane *l, size_t *at, bool *ret_more)
{
    const uint8_t *from = l->stage + *at;
    size_t have = l->stage_len - *at, need = sizeof(struct head);
    struct buffer *bulk = NULL;
    struct head h;

    *ret_more = true;
    if (have < need)
        return true;
    memcpy(&h, from, sizeof(h));
    need += h.len;
    if (h.len > LANE_CONTROL_MAX || h.where > BULK_SHARED ||
        (h.where == BULK_NONE) != !h.bulk)
        return false;
    if (have < need)
        return true;
    if (h.where == BULK_SENT && have - need < h.bulk) {
        *at = l->stage_len;
        return begin_bulk(l, &h, from + sizeof(h), have - need);
    }
    if (h.where == BULK_SENT) {
        bulk = buffer_new(h.bulk);
        if (!bulk)
            return false;
        memcpy(bulk->data, from + need, h.bulk);
        need += h.bulk;
    }
    *at += need;
    *ret_more = false;
    return deliver(l, &h, from + sizeof(h), bulk);
}

static bool take_preface(struct lane *l, size_t *at)
{
    if (!l->awaits_preface || l->stage_len < LANE_PREFACE)
        return true;
    l->awaits_preface = false;
    *at = LANE_PREFACE;
    return !memcmp(l->stage, l->preface, LANE_PREFACE);
}

static bool take_frames(struct lane *l)
{
    size_t at = 0;
    bool more = l->awaits_preface && l->stage_len < LANE_PREFACE;

    if (!take_preface(l, &at))
        return false;
    while (!more)
        if (!take_frame(l, &at, &more))
            return false;
    memmove(l->stage, l->stage + at, l->stage_len - at);
    l->stage_len -= at;
    return true;
}

static void keep_fds(struct lane *l, struct msghdr *m)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        int n = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));

        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        for (int i = 0; i < n; i++) {
            int fd;

            memcpy(&fd, CMSG_DATA(c) + (size_t)i * sizeof(int), sizeof(int));
            if (l->fd_count < FDS_MAX)
                l->fds[l->fd_count++] = fd;
            else
                close(fd);
        }
    }
}

/* As readv(), but with the descriptors that came along. */
static ssize_t read_some(struct lane *l, struct iovec *iov, int iov_count)
{
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(FDS_MAX * sizeof(int))];
    } control;
    struct msghdr m = { .msg_iov = iov, .msg_iovlen = (size_t)iov_count };
    ssize_t n;

    if (l->local) {
        m.msg_control = control.room;
        m.msg_controllen = sizeof(control.room);
    }
    do
        n = recvmsg(l->fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n > 0 && l->local)
        keep_fds(l, &m);
    return n;
}

/* True when there may be more to read at once. */
static bool read_once(struct lane *l, const char **ret_why)
{
    struct iovec iov[2];
    size_t rest = l->filling ? l->filling->size - l->filled : 0, asked, got;
    int iov_count = 0;
    ssize_t n;

    if (rest)
        iov[iov_count++] = (struct iovec){ l->filling->data + l->filled, rest };
    iov[iov_count++] =
        (struct iovec){ l->stage + l->stage_len, STAGE - l->stage_len };
    asked = rest + STAGE - l->stage_len;
    n = read_some(l, iov, iov_count);
    if (n < 0 && errno == EAGAIN)
        return false;
    if (n <= 0) {
        *ret_why = n ? strerrordesc_np(errno) : "Socket closed";
        return false;
    }
    got = (size_t)n;
    count(&l->bytes_in, got);
    if (rest) {
        size_t to_bulk = MIN(rest, got);
        struct buffer *bulk = l->filling;

        l->filled += to_bulk;
        l->stage_len += got - to_bulk;
        if (l->filled < bulk->size)
            return got == asked || l->to_the_end;
        l->filling = NULL;
        if (!deliver(l, &l->filling_head, l->control, bulk))
            *ret_why = "the peer sent nonsense";
    } else {
        l->stage_len += got;
    }
    if (!*ret_why && !take_frames(l))
        *ret_why = "the peer sent nonsense";
    /* A short read has emptied a TCP socket, but for its end, which comes
     * without an edge of its own if it came with data; another kind of socket
     * may have stopped at a descriptor. */
    return !*ret_why && (got == asked || l->to_the_end);
}

static void on_ready(struct loop_watch *watch, uint32_t events)
{
    struct lane *l = CONTAINER(watch, struct lane, watch);
    const char *why = NULL;
    int rounds = 0;

    if (!l->tuned && !l->local && !(events & (EPOLLERR | EPOLLHUP))) {
        l->tuned = true;
        socket_tune(l->fd);
    }
    if (events & EPOLLOUT)
        lane_flush(l);
    if (!(events & ~(uint32_t)EPOLLOUT))
        return;
    if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        l->to_the_end = true;
    lane_ref(l);
    while (read_once(l, &why) && ++rounds < READS_MAX)
        ;
    if (why)
        lane_shut(l, why);
    else if (rounds == READS_MAX)
        loop_hook_add(l->loop, &l->again);
    lane_unref(l);
}

/* There was more to do than one turn of the loop is for. */
static void run_again(struct loop_hook *hook)
{
    struct lane *l = CONTAINER(hook, struct lane, again);

    on_ready(&l->watch, EPOLLIN | EPOLLOUT);
}

/* ---- the beginning ---- */

struct lane *lane_new(const struct lane_opts *opts)
{
    struct lane *l = MEM_NEW(struct lane);
    struct status st;

    atomic_init(&l->refs, 2);
    l->loop = opts->loop;
    l->ops = opts->ops;
    l->arg = opts->arg;
    l->local = l->to_the_end = opts->local;
    l->pool = opts->pool;
    l->fd = opts->fd;
    pthread_mutex_init(&l->lock, NULL);
    l->stage = mem_grow(NULL, 1, STAGE);
    l->end.run = run_end;
    l->again.run = run_again;
    l->watch = (struct loop_watch){ .fd = opts->fd, .ready = on_ready };
    memcpy(l->preface, opts->preface, LANE_PREFACE);
    l->awaits_preface = !opts->opens;
    if (opts->local && opts->shared)
        l->out = shm_out_new();
    if (opts->opens)
        memcpy(push_room(l, LANE_PREFACE, -1), l->preface, LANE_PREFACE);
    /* The first edge also flushes: the socket is writable. */
    if (loop_watch_add(l->loop, &l->watch,
                       EPOLLIN | EPOLLRDHUP | EPOLLOUT | EPOLLET, &st)) {
        close(l->fd);
        lane_unref(l);
        lane_unref(l);
        return NULL;
    }
    return l;
}
