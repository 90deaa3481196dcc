/*
 * A connected stream of bytes, as connections see it: read into, write from,
 * close. Plain sockets are what there is now. TLS takes its place here: a
 * struct with a `struct stream` as its first member, its own ops, and a
 * handshake that ends before the connection is handed on; its reads decrypt
 * into the same iovecs, so that nothing above has to know.
 *
 * Both functions behave as readv() and sendmsg() do on a non-blocking socket,
 * errno included; reading 0 bytes is the end of the stream.
 */
#ifndef IO_STREAM_H
#define IO_STREAM_H

#include <sys/uio.h>

#include "base/base.h"

struct stream;

struct stream_ops {
    ssize_t (*read)(struct stream *, const struct iovec *iov, int count);
    ssize_t (*write)(struct stream *, const struct iovec *iov, int count);
    void (*close)(struct stream *);
};

struct stream {
    const struct stream_ops *ops;
    int fd; /* what the loop watches; -1 when closed */
};

/* The stream owns the socket from here on. */
void stream_init_plain(struct stream *s, int fd);

static inline ssize_t stream_read(struct stream *s, const struct iovec *iov,
                                  int count)
{
    return s->ops->read(s, iov, count);
}

static inline ssize_t stream_write(struct stream *s, const struct iovec *iov,
                                   int count)
{
    return s->ops->write(s, iov, count);
}

static inline void stream_close(struct stream *s)
{
    if (s->fd >= 0)
        s->ops->close(s);
}

#endif
