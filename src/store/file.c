#include "store/file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/mem.h"
#include "base/rng.h"

/* What is copied, checksummed and written at once: half of a usual second
 * level cache. */
#define FILE_OUT_BUFFER (512u << 10)

static enum mst_code code_of(int err)
{
    switch (err) {
    case EINVAL:
    case ENAMETOOLONG:
    case ESPIPE:
    case EFAULT:
        return MST_INVALID_ARGUMENT;
    case ENOENT:
    case ENODEV:
    case ENXIO:
        return MST_NOT_FOUND;
    case EEXIST:
        return MST_ALREADY_EXISTS;
    case EPERM:
    case EACCES:
    case EROFS:
        return MST_PERMISSION_DENIED;
    case ENOTEMPTY:
    case EISDIR:
    case ENOTDIR:
    case EBADF:
    case EBUSY:
    case EPIPE:
    case ETXTBSY:
        return MST_FAILED_PRECONDITION;
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case EMLINK:
    case ENOMEM:
        return MST_RESOURCE_EXHAUSTED;
    case EFBIG:
    case EOVERFLOW:
        return MST_OUT_OF_RANGE;
    case ENOSYS:
    case EOPNOTSUPP:
    case EXDEV:
        return MST_UNIMPLEMENTED;
    case EAGAIN:
    case EINTR:
        return MST_UNAVAILABLE;
    case EDEADLK:
    case ESTALE:
        return MST_ABORTED;
    case ETIMEDOUT:
        return MST_DEADLINE_EXCEEDED;
    default:
        return MST_UNKNOWN;
    }
}

enum mst_code file_fail(struct status *st, const char *path, int err)
{
    char text[128];

    /* The GNU form: it may return a constant instead of filling text. */
    return status_set(st, code_of(err), "%s; %s", path,
                      strerror_r(err, text, sizeof(text)));
}

/* ---- paths ---- */

enum mst_code file_path(const char *data, size_t len, char **ret,
                        struct status *st)
{
    char *path = mem_strn(data, len), *mark = strstr(path, "://"), *at = path;

    if (strlen(path) != len) {
        status_set(st, MST_INVALID_ARGUMENT, "A file name has a zero byte: %s",
                   path);
        mem_free(path);
        return MST_INVALID_ARGUMENT;
    }
    while (isalnum((unsigned char)*at) || *at == '.')
        at++;
    if (mark && mark == at && isalpha((unsigned char)path[0])) {
        if (at - path != 4 || strncmp(path, "file", 4)) {
            status_set(st, MST_UNIMPLEMENTED,
                       "File system scheme '%.*s' not implemented (file: '%s')",
                       (int)(at - path), path, path);
            mem_free(path);
            return MST_UNIMPLEMENTED;
        }
        /* What stands before the path is a host's name. */
        at = strchrnul(mark + 3, '/');
        memmove(path, at, strlen(at) + 1);
    }
    *ret = path;
    return MST_OK;
}

size_t file_dir_len(const char *path)
{
    const char *slash = strrchr(path, '/');

    return !slash ? 0 : slash == path ? 1 : (size_t)(slash - path);
}

enum mst_code file_make_dirs(const char *path, struct status *st)
{
    size_t len = file_dir_len(path), end = len;
    char *dir = mem_strn(path, len);
    enum mst_code rc = MST_OK;
    struct stat have;

    if (!len)
        goto out;
    /* Down to what there is, then up again. */
    while (end > 1 && stat(dir, &have) && errno == ENOENT) {
        while (end > 1 && dir[end - 1] != '/')
            end--;
        while (end > 1 && dir[end - 1] == '/')
            end--;
        dir[end] = '\0';
    }
    while (end < len) {
        dir[end] = path[end];
        end += strlen(dir + end);
        if (mkdir(dir, 0777) && errno != EEXIST) {
            rc = file_fail(st, dir, errno);
            goto out;
        }
    }
out:
    mem_free(dir);
    return rc;
}

static char *dir_of(const char *path)
{
    size_t len = file_dir_len(path);

    return len ? mem_strn(path, len) : mem_str(".");
}

void file_remove_dir(const char *path)
{
    char *dir = dir_of(path);

    (void)rmdir(dir);
    mem_free(dir);
}

void file_sync_dir(const char *path)
{
    char *dir = dir_of(path);
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd >= 0) {
        (void)fsync(fd);
        close(fd);
    }
    mem_free(dir);
}

bool file_exists(const char *path)
{
    return !access(path, F_OK);
}

/* ---- reading ---- */

enum mst_code file_in_open(struct file_in *f, const char *path,
                           struct status *st)
{
    struct stat info;
    /* Without O_NONBLOCK the opening of a pipe would wait for its writer. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int err;

    if (fd < 0)
        return file_fail(st, path, errno);
    err = fstat(fd, &info) ? errno : S_ISDIR(info.st_mode) ? EISDIR : 0;
    if (err) {
        close(fd);
        return file_fail(st, path, err);
    }
    *f = (struct file_in){ .fd = fd,
                           .size = (uint64_t)info.st_size,
                           .path = mem_str(path) };
    return MST_OK;
}

void file_in_memory(struct file_in *f, const char *name, const void *data,
                    size_t size)
{
    *f = (struct file_in){
        .fd = -1, .mem = data, .size = size, .path = mem_str(name)
    };
}

void file_in_close(struct file_in *f)
{
    if (f->path && f->fd >= 0)
        close(f->fd);
    mem_free(f->path);
    *f = (struct file_in){ .fd = -1 };
}

enum mst_code file_in_read(const struct file_in *f, uint64_t offset, void *data,
                           size_t len, struct status *st)
{
    uint8_t *at = data;
    ssize_t n = 1;

    if (offset > f->size || len > f->size - offset)
        n = 0;
    else if (f->fd < 0 && len)
        memcpy(at, f->mem + offset, len);
    while (n && len && f->fd >= 0) {
        n = pread(f->fd, at, len, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return file_fail(st, f->path, errno);
        at += n;
        offset += (uint64_t)n;
        len -= (size_t)n;
    }
    if (!n)
        return status_set(st, MST_DATA_LOSS,
                          "%s is cut off: %zu bytes at %llu are missing, the "
                          "file has %llu",
                          f->path, len, (unsigned long long)offset,
                          (unsigned long long)f->size);
    return MST_OK;
}

/* ---- writing ---- */

/* All of it, or the number of the error. */
static int write_all(int fd, const uint8_t *data, size_t len)
{
    while (len) {
        ssize_t n = write(fd, data, len);

        if (n < 0 && errno != EINTR)
            return errno;
        if (n > 0) {
            data += n;
            len -= (size_t)n;
        }
    }
    return 0;
}

enum mst_code file_write(const char *path, const void *data, size_t len,
                         struct status *st)
{
    int fd =
        open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0666);
    int err;

    if (fd < 0)
        return file_fail(st, path, errno);
    err = write_all(fd, data, len);
    if (close(fd) && !err)
        err = errno;
    return err ? file_fail(st, path, err) : MST_OK;
}

enum mst_code file_out_open(struct file_out *f, const char *path,
                            struct status *st)
{
    *f = (struct file_out){
        .fd = -1,
        .path = mem_str(path),
        .temp =
            mem_printf("%s.tempstate%llu", path, (unsigned long long)rng_u64()),
    };
    f->fd = open(f->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (f->fd < 0) {
        enum mst_code rc = file_fail(st, f->temp, errno);

        file_out_abort(f);
        return rc;
    }
    f->buf = mem_new(FILE_OUT_BUFFER);
    return MST_OK;
}

static enum mst_code flush(struct file_out *f, struct status *st)
{
    int err = write_all(f->fd, f->buf, f->used);

    f->used = 0;
    return err ? file_fail(st, f->temp, err) : MST_OK;
}

/*
 * The source may be changing under our hands, as asynchronous training means
 * it to; a torn update of one float is what a reader of a variable gets too.
 * In the sanitizer's build the words are moved one by one, because its
 * memcpy() looks for races by itself.
 */
RACY static void copy_racy(uint8_t *to, const uint8_t *from, size_t len)
{
#ifdef BASE_TSAN
    for (size_t i = 0; i < len; i++)
        to[i] = ((const volatile uint8_t *)from)[i];
#else
    memcpy(to, from, len);
#endif
}

enum mst_code file_out_write(struct file_out *f, const void *data, size_t len,
                             struct status *st)
{
    const uint8_t *from = data;

    while (len) {
        size_t n = MIN(len, FILE_OUT_BUFFER - f->used);
        uint8_t *to = f->buf + f->used;

        copy_racy(to, from, n);
        f->crc = crc32c(f->crc, to, n);
        f->used += n;
        f->size += n;
        from += n;
        len -= n;
        if (f->used == FILE_OUT_BUFFER) {
            enum mst_code rc = flush(f, st);

            if (rc)
                return rc;
        }
    }
    return MST_OK;
}

enum mst_code file_out_sync(struct file_out *f, struct status *st)
{
    int fd = f->fd;
    enum mst_code rc;

    if (fd < 0)
        return MST_OK;
    rc = flush(f, st);
    if (!rc && fsync(fd) && errno != EINVAL)
        rc = file_fail(st, f->temp, errno);
    f->fd = -1;
    if (close(fd) && !rc)
        rc = file_fail(st, f->temp, errno);
    return rc;
}

enum mst_code file_out_commit(struct file_out *f, struct status *st)
{
    enum mst_code rc = file_out_sync(f, st);

    if (!rc && rename(f->temp, f->path))
        rc = file_fail(st, f->path, errno);
    if (!rc) {
        mem_free(f->temp);
        f->temp = NULL;
    }
    file_out_abort(f);
    return rc;
}

void file_out_abort(struct file_out *f)
{
    if (f->fd >= 0)
        close(f->fd);
    if (f->temp)
        (void)unlink(f->temp);
    mem_free(f->temp);
    mem_free(f->path);
    mem_free(f->buf);
    *f = (struct file_out)FILE_OUT_INIT;
}
