/*
 * The membership's journal on disk: cluster/record.h has its format.
 *
 * A ps that is never told anything writes no file. The first entry makes it;
 * from then on entries are appended and fsynced, those that come together in
 * one go, on a thread of the pool. When the file has become much longer than
 * what it says, it is written anew beside itself and renamed over.
 *
 * What went wrong is told to whoever wanted the write, and the file is taken
 * back to where it was before; if even that fails it is written anew before
 * the next entry. So a write that failed leaves nothing behind.
 *
 * One server at a time: the file is locked while it is open.
 */
#ifndef SERVER_JOURNAL_H
#define SERVER_JOURNAL_H

#include "base/pool.h"
#include "cluster/members.h"

struct journal;

/* Reads what is there into the table. FAILED_PRECONDITION when there is
 * something else at that place, or another server has it open. What had to be
 * cut off or left out is logged. */
enum mst_code journal_open(const char *path, struct pool *pool,
                           struct members *into, struct journal **ret,
                           struct status *st) MUST_USE;
/* After the pool has ended. */
void journal_close(struct journal *j);
const char *journal_path(const struct journal *j);

/* Any thread; the entries are copied. done runs on a pool thread when they are
 * on disk, or with the reason why not. */
void journal_write(struct journal *j, const struct member *m, size_t count,
                   void (*done)(void *arg, uint64_t ticket,
                                const struct status *st),
                   void *arg, uint64_t ticket);

/* Where journals lie if nobody says: to be freed. */
char *journal_default_dir(void);
/* The journal of a ps of that cluster in a folder: to be freed. Jobs of the
 * same parameter servers are told apart by job_id, or not, if that is NULL.
 * INVALID_ARGUMENT if it cannot be part of a file's name. */
enum mst_code journal_name(const char *dir, const struct cluster_spec *cluster,
                           int task, const char *job_id, char **ret,
                           struct status *st) MUST_USE;

#endif
