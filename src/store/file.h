/*
 * Files of the local file system, with the codes and texts that TensorFlow
 * gives for their errors ("path; No such file or directory").
 *
 * file_in reads at any place, from several threads at once. It can also stand
 * for bytes in memory, which tests and fuzzers use.
 *
 * file_out makes a file appear whole or not at all: it writes to a temporary
 * name beside the final one, and file_out_commit() syncs and renames. Bytes go
 * through a buffer of the size of a cache, never more: the source may be a
 * variable that other threads are updating, and the checksum must be that of
 * the bytes that reach the file, so it is computed over the copy.
 *
 * Threads: a file_out belongs to one; a file_in is constant once opened.
 */
#ifndef STORE_FILE_H
#define STORE_FILE_H

#include "base/status.h"

/* "path; strerror(err)" under TensorFlow's code for err. Returns the code. */
enum mst_code file_fail(struct status *st, const char *path, int err);

/* ---- paths ---- */

/* A path that came in a tensor: "file://" is taken off, other schemes and
 * bytes of zero are refused. The caller frees *ret. */
enum mst_code file_path(const char *data, size_t len, char **ret,
                        struct status *st) MUST_USE;
/* How long the directory part is: 3 of "a/b/c", 1 of "/x", 0 of "x". */
size_t file_dir_len(const char *path);
/* Makes the directory that path lies in, parents included. */
enum mst_code file_make_dirs(const char *path, struct status *st) MUST_USE;
/* Removes the directory that path lies in, if it is empty. */
void file_remove_dir(const char *path);
/* Makes renames in the directory of path durable, as well as it can. */
void file_sync_dir(const char *path);
bool file_exists(const char *path);

/* ---- reading ---- */

struct file_in {
    int fd;             /* -1: memory */
    const uint8_t *mem; /* someone else's */
    uint64_t size;      /* when it was opened */
    char *path;
};

enum mst_code file_in_open(struct file_in *f, const char *path,
                           struct status *st) MUST_USE;
void file_in_memory(struct file_in *f, const char *name, const void *data,
                    size_t size);
void file_in_close(struct file_in *f); /* accepts a zeroed one */
/* All len bytes at offset, or DATA_LOSS when the file has no such bytes. */
enum mst_code file_in_read(const struct file_in *f, uint64_t offset, void *data,
                           size_t len, struct status *st) MUST_USE;

/* ---- writing ---- */

/* A whole file in place, whatever was there; the directory exists. */
enum mst_code file_write(const char *path, const void *data, size_t len,
                         struct status *st) MUST_USE;

struct file_out {
    int fd; /* -1: not open */
    char *path, *temp;
    uint8_t *buf;
    size_t used;
    uint64_t size; /* bytes so far, those in the buffer too */
    uint32_t crc;  /* of what was written since the owner set it to 0 */
};

/* For a file_out that was never opened, so that abort accepts it. */
#define FILE_OUT_INIT                                                          \
    {                                                                          \
        .fd = -1                                                               \
    }

enum mst_code file_out_open(struct file_out *f, const char *path,
                            struct status *st) MUST_USE;
enum mst_code file_out_write(struct file_out *f, const void *data, size_t len,
                             struct status *st) MUST_USE;
/* Flushes and syncs, but leaves the temporary name. */
enum mst_code file_out_sync(struct file_out *f, struct status *st) MUST_USE;
/* Syncs if that was not done, renames, and ends it. */
enum mst_code file_out_commit(struct file_out *f, struct status *st) MUST_USE;
/* Ends it without a trace; after a commit it does nothing. */
void file_out_abort(struct file_out *f);

#endif
