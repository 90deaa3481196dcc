#include "store/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/mem.h"

#define HEAD 12 /* the length and its checksum */
#define TAIL 4
/* So much is collected before it is written. */
#define PENDING_MAX (64u << 10)

/* ---- writing ---- */

enum mst_code record_writer_open(struct record_writer *w, const char *path,
                                 struct status *st)
{
    enum mst_code rc = file_make_dirs(path, st);
    int fd;

    if (rc)
        return rc;
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0)
        return file_fail(st, path, errno);
    *w = (struct record_writer){ .fd = fd, .path = mem_str(path) };
    return MST_OK;
}

enum mst_code record_writer_flush(struct record_writer *w, struct status *st)
{
    size_t done = 0;

    while (done < w->pending.len) {
        ssize_t n = write(w->fd, w->pending.data + done, w->pending.len - done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            int err = errno;

            memmove(w->pending.data, w->pending.data + done,
                    w->pending.len - done);
            w->pending.len -= done;
            return file_fail(st, w->path, err);
        }
        done += (size_t)n;
    }
    w->pending.len = 0;
    return MST_OK;
}

enum mst_code record_writer_add(struct record_writer *w, const void *data,
                                size_t len, struct status *st)
{
    uint64_t length = len;

    bytes_u64(&w->pending, length);
    bytes_u32(&w->pending, crc32c_mask(crc32c(0, &length, sizeof(length))));
    bytes_put(&w->pending, data, len);
    bytes_u32(&w->pending, crc32c_mask(crc32c(0, data, len)));
    if (w->pending.len >= PENDING_MAX)
        return record_writer_flush(w, st);
    return MST_OK;
}

enum mst_code record_writer_close(struct record_writer *w, struct status *st)
{
    enum mst_code rc = record_writer_flush(w, st);

    if (close(w->fd) && !rc)
        rc = file_fail(st, w->path, errno);
    bytes_done(&w->pending);
    mem_free(w->path);
    w->fd = -1;
    w->path = NULL;
    return rc;
}

/* ---- reading ---- */

enum mst_code record_reader_open(struct record_reader *r, const char *path,
                                 struct status *st)
{
    *r = (struct record_reader){ 0 };
    return file_in_open(&r->file, path, st);
}

void record_reader_close(struct record_reader *r)
{
    file_in_close(&r->file);
    free(r->data);
    r->data = NULL;
}

/* TensorFlow's words. */
static enum mst_code truncated(const struct record_reader *r, struct status *st)
{
    return status_set(st, MST_DATA_LOSS,
                      "truncated record at %llu' failed with Read less bytes "
                      "than requested",
                      (unsigned long long)r->at);
}

static enum mst_code corrupted(uint64_t at, struct status *st)
{
    return status_set(st, MST_DATA_LOSS, "corrupted record at %llu%s",
                      (unsigned long long)at,
                      at ? "" : " (Is this even a TFRecord file?)");
}

enum mst_code record_reader_next(struct record_reader *r, struct pb_in *ret,
                                 struct status *st)
{
    uint64_t left = r->file.size - r->at, len;
    uint8_t head[HEAD], *data;
    enum mst_code rc;

    if (!left)
        return status_set(st, MST_OUT_OF_RANGE, "eof");
    if (left < HEAD)
        return truncated(r, st);
    rc = file_in_read(&r->file, r->at, head, HEAD, st);
    if (rc)
        return rc;
    if (crc32c_unmask(load_u32(head + 8)) != crc32c(0, head, 8))
        return corrupted(r->at, st);
    memcpy(&len, head, 8);
    if (left < HEAD + TAIL || len > left - HEAD - TAIL)
        return truncated(r, st);
    if (r->room < len + TAIL) {
        data = realloc(r->data, (size_t)len + TAIL);
        if (!data)
            return status_set(st, MST_RESOURCE_EXHAUSTED,
                              "No memory for a record of %llu bytes: %s",
                              (unsigned long long)len, r->file.path);
        r->data = data;
        r->room = (size_t)len + TAIL;
    }
    rc = file_in_read(&r->file, r->at + HEAD, r->data, (size_t)len + TAIL, st);
    if (rc)
        return rc;
    if (crc32c_unmask(load_u32(r->data + len)) != crc32c(0, r->data, len))
        return corrupted(r->at + HEAD, st);
    r->at += HEAD + len + TAIL;
    *ret = cursor_over(r->data, (size_t)len);
    return MST_OK;
}
