#include "server/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "cluster/record.h"

/* Lines that need not be there before the file is written anew. */
#define SLACK         1000
#define SIZE_MAX_READ ((off_t)256 << 20)
#define ID_MAX        64

struct entry {
    struct entry *next;
    struct members wants; /* what is to be written */
    void (*done)(void *arg, uint64_t ticket, const struct status *st);
    void *arg;
    uint64_t ticket;
};

struct journal {
    char *path;
    struct pool *pool;
    pthread_mutex_t lock;
    struct entry *first, **last; /* under lock */
    bool busy;                   /* under lock: the job is posted or running */
    struct pool_job job;
    /* The job's. */
    int fd; /* -1: there is no file yet */
    size_t len;
    int lines;          /* appended since it was written anew, or more */
    bool anew;          /* the file is not to be trusted */
    struct members has; /* what is on disk */
};

static enum mst_code failed(struct status *st, const char *path,
                            const char *what)
{
    int error = errno;
    enum mst_code code = MST_FAILED_PRECONDITION;

    if (error == ENOSPC || error == EDQUOT || error == EFBIG)
        code = MST_RESOURCE_EXHAUSTED;
    else if (error == EACCES || error == EPERM || error == EROFS)
        code = MST_PERMISSION_DENIED;
    return status_set(st, code, "the journal %s cannot be %s: %s", path, what,
                      strerror(error));
}

/* ---- writing ---- */

static bool write_all(int fd, const char *data, size_t len)
{
    while (len) {
        ssize_t n = write(fd, data, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        data += n;
        len -= (size_t)n;
    }
    return true;
}

/* Makes the folders above a file. */
static bool make_folders(const char *path)
{
    char *copy = mem_str(path);
    bool ok = true;

    for (char *at = strchr(copy + 1, '/'); at && ok; at = strchr(at + 1, '/')) {
        *at = '\0';
        ok = !mkdir(copy, 0700) || errno == EEXIST;
        *at = '/';
    }
    mem_free(copy);
    return ok;
}

/* A rename, or a new file, is on disk when its folder is. */
static bool sync_folder(const char *path)
{
    char *folder = mem_str(path), *end = strrchr(folder, '/');
    int fd;
    bool ok;

    if (end)
        *(end == folder ? end + 1 : end) = '\0';
    fd = open(end ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ok = fd >= 0 && !fsync(fd);
    if (fd >= 0)
        close(fd);
    mem_free(folder);
    return ok;
}

/* Lines for all of them; how many. */
static int put_lines(struct record_text *text, const struct members *wants)
{
    struct members_walk at = { 0 };
    const struct member *m;
    int lines = 0;

    while ((m = members_next(wants, &at))) {
        record_put(text, m);
        lines++;
    }
    return lines;
}

/*
 * A new file in place of the old one: what that has, and behind it what is
 * wanted. If the folder cannot be synced, it has one or the other from now on,
 * and nobody knows which; so the new one is cut to what both have.
 */
static enum mst_code write_anew(struct journal *j, const struct members *wants,
                                struct status *st)
{
    char *temporary = mem_printf("%s.new", j->path);
    struct record_text text = { 0 };
    enum mst_code rc = MST_OK;
    size_t had;
    int fd = -1;

    record_put_all(&text, &j->has);
    had = text.len;
    put_lines(&text, wants);
    if (make_folders(j->path))
        fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) ||
        !write_all(fd, text.text, text.len) || fsync(fd) ||
        rename(temporary, j->path)) {
        rc = failed(st, j->path, "written");
        if (fd >= 0)
            close(fd);
        unlink(temporary);
        j->anew = true;
    } else {
        if (j->fd >= 0)
            close(j->fd);
        j->fd = fd;
        j->len = text.len;
        j->lines = 0;
        j->anew = !sync_folder(j->path);
        if (j->anew) {
            rc = failed(st, j->path, "written");
            if (ftruncate(fd, (off_t)had) || fsync(fd))
                log_line(LOG_ERROR, "the journal %s cannot be taken back: %s",
                         j->path, strerror(errno));
        }
    }
    record_text_done(&text);
    mem_free(temporary);
    return rc;
}

static enum mst_code append(struct journal *j, const struct members *wants,
                            struct status *st)
{
    struct record_text text = { 0 };
    int lines = put_lines(&text, wants);
    enum mst_code rc = MST_OK;

    if (!write_all(j->fd, text.text, text.len) || fdatasync(j->fd)) {
        rc = failed(st, j->path, "written");
        if (ftruncate(j->fd, (off_t)j->len) ||
            lseek(j->fd, (off_t)j->len, SEEK_SET) < 0 || fdatasync(j->fd))
            j->anew = true;
    } else {
        j->len += text.len;
        j->lines += lines;
    }
    record_text_done(&text);
    return rc;
}

static void merge_all(struct members *into, const struct members *from)
{
    struct members_walk at = { 0 };
    const struct member *m;

    while ((m = members_next(from, &at)))
        members_merge(into, m);
}

/* What is wanted goes to disk, by whichever way. */
static enum mst_code put_down(struct journal *j, const struct members *wants,
                              struct status *st)
{
    enum mst_code rc;

    if (j->fd >= 0 && !j->anew && j->lines <= 2 * j->has.present + SLACK)
        rc = append(j, wants, st);
    else
        rc = write_anew(j, wants, st);
    if (!rc)
        merge_all(&j->has, wants);
    return rc;
}

static void run_job(struct pool_job *job)
{
    struct journal *j = CONTAINER(job, struct journal, job);
    struct status st = STATUS_INIT;
    struct entry *list, *e;
    struct members wants;

    pthread_mutex_lock(&j->lock);
    list = j->first;
    j->first = NULL;
    j->last = &j->first;
    pthread_mutex_unlock(&j->lock);
    members_init(&wants);
    for (e = list; e; e = e->next)
        merge_all(&wants, &e->wants);
    if (put_down(j, &wants, &st))
        log_line(LOG_ERROR, "%s", st.msg);
    members_done(&wants);
    while ((e = list)) {
        list = e->next;
        e->done(e->arg, e->ticket, &st);
        members_done(&e->wants);
        mem_free(e);
    }
    pthread_mutex_lock(&j->lock);
    j->busy = j->first;
    if (j->busy)
        pool_post(j->pool, &j->job);
    pthread_mutex_unlock(&j->lock);
}

void journal_write(struct journal *j, const struct member *m, size_t count,
                   void (*done)(void *, uint64_t, const struct status *),
                   void *arg, uint64_t ticket)
{
    struct entry *e = MEM_NEW(struct entry);

    members_init(&e->wants);
    for (size_t i = 0; i < count; i++)
        members_merge(&e->wants, &m[i]);
    e->done = done;
    e->arg = arg;
    e->ticket = ticket;
    pthread_mutex_lock(&j->lock);
    *j->last = e;
    j->last = &e->next;
    if (!j->busy) {
        j->busy = true;
        pool_post(j->pool, &j->job);
    }
    pthread_mutex_unlock(&j->lock);
}

/* ---- opening ---- */

static enum mst_code read_file(struct journal *j, char **ret, struct status *st)
{
    struct stat info;
    size_t len = 0;
    ssize_t n;

    if (fstat(j->fd, &info))
        return failed(st, j->path, "read");
    if (!S_ISREG(info.st_mode) || info.st_size > SIZE_MAX_READ)
        return status_set(st, MST_FAILED_PRECONDITION,
                          "%s is no journal; move it away, or give another "
                          "--state_dir",
                          j->path);
    *ret = mem_new((size_t)info.st_size + 1);
    while (len < (size_t)info.st_size) {
        n = read(j->fd, *ret + len, (size_t)info.st_size - len);
        if (n < 0 && errno != EINTR)
            return failed(st, j->path, "read");
        if (!n)
            break;
        len += n > 0 ? (size_t)n : 0;
    }
    j->len = len;
    return MST_OK;
}

/* What does not hold is kept aside for a person to look at. */
static void keep_damaged(const struct journal *j, const char *text)
{
    char *path = mem_printf("%s.damaged", j->path);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    if (fd >= 0 && write_all(fd, text, j->len))
        log_line(LOG_WARN, "the damaged journal is kept as %s", path);
    if (fd >= 0)
        close(fd);
    mem_free(path);
}

static enum mst_code take_up(struct journal *j, const char *text,
                             struct status *st)
{
    struct record_report report;
    struct status why;

    if (record_scan(text, j->len, &j->has, &report, &why))
        return status_set(st, why.code,
                          "the journal %s cannot be used: %s; move it away, or "
                          "give another --state_dir",
                          j->path, why.msg);
    if (report.damaged) {
        log_line(LOG_ERROR,
                 "%d lines of the journal %s are damaged and do not count",
                 report.damaged, j->path);
        keep_damaged(j, text);
    } else if (report.good < j->len) {
        log_line(LOG_WARN,
                 "the journal %s ends with %zu bytes of a write that was cut "
                 "off; it was not acknowledged",
                 j->path, j->len - report.good);
    }
    /* Anything but a clean file is written anew before the next entry. */
    j->anew = report.good < j->len || report.damaged || !report.good;
    j->lines = report.entries;
    log_line(LOG_INFO, "%d entries read from the journal %s", report.entries,
             j->path);
    return MST_OK;
}

enum mst_code journal_open(const char *path, struct pool *pool,
                           struct members *into, struct journal **ret,
                           struct status *st)
{
    struct journal *j = MEM_NEW(struct journal);
    enum mst_code rc = MST_OK;
    char *text = NULL;

    j->path = mem_str(path);
    j->pool = pool;
    j->last = &j->first;
    j->job.run = run_job;
    pthread_mutex_init(&j->lock, NULL);
    members_init(&j->has);
    j->fd = open(path, O_RDWR | O_APPEND | O_CLOEXEC);
    if (j->fd < 0 && errno != ENOENT && errno != ENOTDIR)
        rc = failed(st, path, "opened");
    else if (j->fd >= 0 && flock(j->fd, LOCK_EX | LOCK_NB))
        rc = status_set(st, MST_FAILED_PRECONDITION,
                        "the journal %s is in use by another server", path);
    else if (j->fd >= 0)
        rc = read_file(j, &text, st);
    if (!rc && j->fd >= 0)
        rc = take_up(j, text, st);
    mem_free(text);
    if (rc) {
        journal_close(j);
        return rc;
    }
    merge_all(into, &j->has);
    *ret = j;
    return MST_OK;
}

void journal_close(struct journal *j)
{
    if (!j)
        return;
    CHECK(!j->first);
    if (j->fd >= 0)
        close(j->fd);
    members_done(&j->has);
    pthread_mutex_destroy(&j->lock);
    mem_free(j->path);
    mem_free(j);
}

const char *journal_path(const struct journal *j)
{
    return j->path;
}

/* ---- where ---- */

char *journal_default_dir(void)
{
    const char *dir;

    if ((dir = getenv("MUSTER_STATE_DIR")) && *dir)
        return mem_str(dir);
    if ((dir = getenv("STATE_DIRECTORY")) && *dir)
        return mem_str(dir);
    if ((dir = getenv("XDG_STATE_HOME")) && *dir)
        return mem_printf("%s/muster", dir);
    if ((dir = getenv("HOME")) && *dir)
        return mem_printf("%s/.local/state/muster", dir);
    return mem_printf("/var/tmp/muster-%u", (unsigned)getuid());
}

static bool is_id(const char *id)
{
    size_t len = strlen(id);

    return len && len <= ID_MAX && *id != '.' &&
           strspn(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                      "0123456789._-") == len;
}

enum mst_code journal_name(const char *dir, const struct cluster_spec *cluster,
                           int task, const char *job_id, char **ret,
                           struct status *st)
{
    const struct cluster_job *ps = cluster_spec_job(cluster, "ps");
    uint64_t hash = 0;

    if (job_id && !is_id(job_id))
        return status_set(st, MST_INVALID_ARGUMENT,
                          "A job id is up to %d letters, digits, \".\", \"_\" "
                          "and \"-\", with no \".\" first, not \"%s\"",
                          ID_MAX, job_id);
    for (int i = 0; ps && i < ps->count; i++)
        hash = hash_combine(hash, hash_str(ps->tasks[i].address));
    *ret = mem_printf("%s/ps%d-%016" PRIx64 "%s%s.journal", dir, task, hash,
                      job_id ? "-" : "", job_id ? job_id : "");
    return MST_OK;
}
