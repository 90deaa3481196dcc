#include "io/stream.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

static ssize_t plain_read(struct stream *s, const struct iovec *iov, int count)
{
    ssize_t n;

    do
        n = readv(s->fd, iov, count);
    while (n < 0 && errno == EINTR);
    return n;
}

static ssize_t plain_write(struct stream *s, const struct iovec *iov, int count)
{
    struct msghdr m = {
        .msg_iov = (struct iovec *)iov,
        .msg_iovlen = (size_t)count,
    };
    ssize_t n;

    do
        n = sendmsg(s->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    return n;
}

static void plain_close(struct stream *s)
{
    close(s->fd);
    s->fd = -1;
}

static const struct stream_ops plain_ops = {
    .read = plain_read,
    .write = plain_write,
    .close = plain_close,
};

void stream_init_plain(struct stream *s, int fd)
{
    s->ops = &plain_ops;
    s->fd = fd;
}
