/*
 * A disk that fails, for a process that is started with this in LD_PRELOAD.
 * What FAULT says happens to files whose name has ".journal" in it, whenever
 * the file FAULT_WHEN is there:
 *
 *   kill      SIGKILL when data has reached the disk, before anyone is told
 *   nospace   half of a write is done, then ENOSPC
 *   readonly  EROFS for every open for writing, and every write
 *   sync      EIO from fsync
 *   folder    EIO from fsync of a folder, after it has done what it should not
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int fault_is(const char *what)
{
    const char *fault = getenv("FAULT"), *when = getenv("FAULT_WHEN");

    return fault && when && !strcmp(fault, what) && !access(when, F_OK);
}

static int is_journal(int fd)
{
    char link[64], path[4096];
    ssize_t len;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    len = readlink(link, path, sizeof(path) - 1);
    if (len < 0)
        return 0;
    path[len] = '\0';
    return strstr(path, ".journal") != NULL;
}

static int is_folder(int fd)
{
    struct stat info;

    return !fstat(fd, &info) && S_ISDIR(info.st_mode);
}

static int after_sync(int fd, int result)
{
    if (!result && is_journal(fd) && fault_is("kill"))
        raise(SIGKILL);
    if ((is_journal(fd) && fault_is("sync")) ||
        (is_folder(fd) && fault_is("folder"))) {
        errno = EIO;
        return -1;
    }
    return result;
}

int fsync(int fd)
{
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");

    return after_sync(fd, real(fd));
}

int fdatasync(int fd)
{
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");

    return after_sync(fd, real(fd));
}

ssize_t write(int fd, const void *data, size_t len)
{
    ssize_t (*real)(int, const void *, size_t) =
        (ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");

    if (is_journal(fd) && fault_is("readonly")) {
        errno = EROFS;
        return -1;
    }
    if (is_journal(fd) && fault_is("nospace")) {
        if (len > 1)
            return real(fd, data, len / 2);
        errno = ENOSPC;
        return -1;
    }
    return real(fd, data, len);
}

int open(const char *path, int flags, ...)
{
    int (*real)(const char *, int, ...) =
        (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
    va_list more;
    int mode;

    va_start(more, flags);
    mode = flags & O_CREAT ? va_arg(more, int) : 0;
    va_end(more);
    if (strstr(path, ".journal") && flags & O_CREAT && fault_is("readonly")) {
        errno = EROFS;
        return -1;
    }
    return real(path, flags, mode);
}
