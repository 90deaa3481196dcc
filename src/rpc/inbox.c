#include "rpc/inbox.h"

#include <string.h>

#define GROW 8

void inbox_init(struct inbox *in, size_t max)
{
    *in = (struct inbox){ .max = max };
}

void inbox_done(struct inbox *in)
{
    buffer_unref(in->buf);
    buffer_unref(in->placed.owner);
    in->buf = NULL;
    in->placed.owner = NULL;
}

void inbox_reset(struct inbox *in)
{
    size_t head = offsetof(struct inbox, prefix);

    inbox_done(in);
    memset((uint8_t *)in + head, 0, sizeof(*in) - head);
}

static enum mst_code no_memory(const struct inbox *in, struct status *st)
{
    return status_set(st, MST_RESOURCE_EXHAUSTED,
                      "no memory for a message of %zu bytes", in->total);
}

/* The prefix is complete. */
static enum mst_code begin(struct inbox *in, struct status *st)
{
    const uint8_t *p = in->prefix;

    in->total =
        (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4];
    in->compressed = p[0] == 1;
    in->decided = !in->place || in->compressed || !in->total;
    if (p[0] > 1)
        return status_set(st, MST_INTERNAL, "Bad GRPC frame type 0x%02x", p[0]);
    if (in->total > in->max)
        return status_set(st, MST_RESOURCE_EXHAUSTED,
                          "Received message larger than max (%zu vs. %zu)",
                          in->total, in->max);
    if (in->compressed && in->codec == INFLATE_IDENTITY)
        return status_set(st, MST_INTERNAL,
                          "compressed message without grpc-encoding");
    if (in->compressed && in->codec == INFLATE_UNKNOWN)
        return status_set(st, MST_UNIMPLEMENTED,
                          "the message's compression is not supported");
    return MST_OK;
}

/* Makes buf hold at least `size` bytes, keeping the first `kept`. */
static bool enlarge(struct inbox *in, size_t size)
{
    struct buffer *b = buffer_new(size);

    if (!b)
        return false;
    if (in->kept)
        memcpy(b->data, in->buf->data, in->kept);
    in->copied += in->kept;
    buffer_unref(in->buf);
    in->buf = b;
    return true;
}

/* Room in buf for at least one more byte of the `final` that it will hold. */
static bool make_room(struct inbox *in, size_t final)
{
    if (!in->buf)
        return enlarge(in, MIN(final, INBOX_TRUST));
    if (in->kept < in->buf->size)
        return true;
    return enlarge(in, MIN(final, MAX(in->buf->size * GROW, INBOX_TRUST)));
}

static bool in_place(const struct inbox *in)
{
    const struct rpc_place *p = &in->placed;

    return p->dest && in->got >= p->skip && in->got - p->skip < p->len;
}

uint8_t *inbox_room(struct inbox *in, size_t *ret_len)
{
    const struct rpc_place *p = &in->placed;
    size_t left = in->total - in->got;

    if (in->prefix_len < INBOX_PREFIX || !in->decided || !left)
        return NULL;
    if (in_place(in)) {
        *ret_len = p->skip + p->len - in->got;
        return p->dest + (in->got - p->skip);
    }
    if (!make_room(in, in->total - (p->dest ? p->len : 0)))
        return NULL;
    if (p->dest && in->got < p->skip)
        left = p->skip - in->got;
    *ret_len = MIN(left, in->buf->size - in->kept);
    return in->buf->data + in->kept;
}

/* Takes bytes to where they belong; the place is decided. */
static enum mst_code take(struct inbox *in, const uint8_t *data, size_t len,
                          struct status *st)
{
    while (len) {
        bool keep = !in_place(in);
        size_t room = 0, n;
        uint8_t *to = inbox_room(in, &room);

        if (!to)
            return no_memory(in, st);
        n = MIN(room, len);
        if (to != data) {
            memcpy(to, data, n);
            in->copied += n;
        }
        in->got += n;
        in->kept += keep ? n : 0;
        data += n;
        len -= n;
    }
    return MST_OK;
}

/* Moves those of the kept head bytes that are to be placed. */
static void place_head(struct inbox *in)
{
    const struct rpc_place *p = &in->placed;
    size_t n;

    if (!p->dest || in->kept <= p->skip)
        return;
    n = MIN(in->kept - p->skip, p->len);
    memcpy(p->dest, in->buf->data + p->skip, n);
    memmove(in->buf->data + p->skip, in->buf->data + p->skip + n,
            in->kept - p->skip - n);
    in->kept -= n;
    in->copied += n;
}

/* Asks for the place with the head as it is now. */
static enum mst_code ask(struct inbox *in, const uint8_t *head, size_t have,
                         struct status *st)
{
    struct rpc_place *p = &in->placed;

    in->decided = in->place(in->place_arg, head, have, in->total, p);
    if (!in->decided) {
        *p = (struct rpc_place){ 0 };
        in->decided = have == in->total || have >= RPC_PLACE_HEAD;
        return MST_OK;
    }
    if (!p->dest || !p->len) {
        buffer_unref(p->owner);
        *p = (struct rpc_place){ 0 };
    } else if (p->skip > in->total || p->len > in->total - p->skip) {
        p->dest = NULL;
        return status_set(st, MST_INTERNAL,
                          "a place outside of the message was asked for");
    }
    return MST_OK;
}

/*
 * Takes the next bytes of the head. The first time they are shown where they
 * lie, which is nearly always enough; else the head is kept until it is.
 */
static enum mst_code take_head(struct inbox *in, const uint8_t *data,
                               size_t len, size_t *ret_used, struct status *st)
{
    size_t n = MIN(len, RPC_PLACE_HEAD - in->kept);
    enum mst_code code;

    *ret_used = 0;
    if (!in->kept) {
        code = ask(in, data, n, st);
        if (code || in->decided)
            return code;
    }
    if (!in->buf && !enlarge(in, MIN(in->total, RPC_PLACE_HEAD)))
        return no_memory(in, st);
    memcpy(in->buf->data + in->kept, data, n);
    in->copied += n;
    *ret_used = n;
    in->got += n;
    in->kept += n;
    if (in->kept == n)
        return MST_OK;
    code = ask(in, in->buf->data, in->kept, st);
    if (!code)
        place_head(in);
    return code;
}

static bool is_whole(const struct inbox *in)
{
    return in->prefix_len == INBOX_PREFIX && in->got == in->total;
}

/* A message, inflated if need be. */
static enum mst_code finish(struct inbox *in, struct rpc_data *ret,
                            struct status *st)
{
    struct buffer *plain;
    enum mst_code code;

    if (in->compressed) {
        code = inflate_message(in->codec, in->buf ? in->buf->data : in->prefix,
                               in->kept, in->max, &plain, st);
        if (code)
            return code;
        buffer_unref(in->buf);
        in->buf = plain;
        in->kept = plain->size;
    }
    ret->owner = in->buf;
    ret->data = in->buf ? in->buf->data : in->prefix;
    ret->len = in->kept;
    return MST_OK;
}

/* Shows a message of a stream. */
static enum mst_code show(struct inbox *in, struct status *st)
{
    struct rpc_data msg;
    enum mst_code code = finish(in, &msg, st);

    if (code)
        return code;
    in->each(&msg, in->each_arg);
    inbox_reset(in);
    return MST_OK;
}

enum mst_code inbox_feed(struct inbox *in, const uint8_t *data, size_t len,
                         struct status *st)
{
    enum mst_code code = MST_OK;

    while (len && !code) {
        size_t n = MIN(len, in->total - in->got);

        if (in->prefix_len < INBOX_PREFIX) {
            n = 1;
            in->prefix[in->prefix_len++] = *data;
            if (in->prefix_len == INBOX_PREFIX)
                code = begin(in, st);
        } else if (!n) {
            code = status_set(st, MST_INTERNAL,
                              "more than one message in a unary call");
        } else if (!in->decided) {
            code = take_head(in, data, n, &n, st);
        } else {
            code = take(in, data, n, st);
        }
        data += n;
        len -= n;
        if (!code && in->each && is_whole(in))
            code = show(in, st);
    }
    return code;
}

enum mst_code inbox_finish(struct inbox *in, struct rpc_data *ret,
                           struct status *st)
{
    if (in->each && inbox_empty(in)) {
        *ret = (struct rpc_data){ 0 };
        return MST_OK;
    }
    if (!is_whole(in))
        return status_set(st, MST_INTERNAL,
                          in->prefix_len ? "the message is truncated"
                                         : "there is no message");
    return finish(in, ret, st);
}
