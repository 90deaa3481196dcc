/*
 * The table of a running job's tasks: job and task number to address, each
 * entry with a version.
 *
 * The last writer wins. A version is (epoch, origin): the epoch is one more
 * than the largest that its writer had seen, the origin is a number that no
 * two starts of a server share, so no two entries have the same version. A
 * removal is an entry too, without an address, and stays: otherwise an old
 * message could bring the worker back.
 *
 * What comes from flags has epoch 0. It fills gaps and never replaces
 * anything, as the hosts of a job may name each other differently. An index
 * that is given to whoever asks for one has epoch 1, less than that of any
 * entry that was asked for by its number: an index may be given away by
 * somebody who has not heard yet that it is taken, and must lose then.
 *
 * The parameter servers are what the flags of each say: their entries are not
 * in the digest, so that a ps which names another differently, or has a longer
 * list of them, does not differ from its peers for ever.
 *
 * Invariants:
 *  1. An entry of the table is never replaced by one with a smaller version,
 *     and no entry is ever taken out.
 *  2. Merging is commutative, associative and idempotent for entries with an
 *     epoch above 0: tables that saw the same entries, in any order and any
 *     number of times, are equal.
 *  3. The digest is a function of the entries; tables with the same entries
 *     have the same digest. (Of entries from flags it knows the task only; of
 *     ps nothing.)
 *  4. epoch is not below that of any entry.
 *  5. members_at() finds every address that an entry has, and of several
 *     entries with one address the newest.
 *
 *            merge, add            merge, remove
 *   absent ------------> present <----------------> removed
 *      |                  |  ^                         ^
 *      |                  +--+ merge, move             |
 *      +-----------------------------------------------+
 *
 * A table is a value: one owner, no lock, no clock, no I/O.
 */
#ifndef CLUSTER_MEMBERS_H
#define CLUSTER_MEMBERS_H

#include "base/map.h"
#include "cluster/spec.h"

#define MEMBER_PS_JOB "ps"

/* Above this a number is a mistake: a table has room for gaps, but a peer must
 * not make us believe in two billion workers. */
#define MEMBER_TASK_MAX 999999
/* What goes into a line of the journal (record.h). A host's name has at most
 * 253 letters. */
#define MEMBER_JOB_MAX     255
#define MEMBER_ADDRESS_MAX 320

#define MEMBER_EPOCH_FLAGS 0
#define MEMBER_EPOCH_GIVEN 1 /* an index that was asked for, by a join */
/* There must be a larger one. Nobody counts that far. */
#define MEMBER_EPOCH_MAX (UINT64_MAX / 2)

struct member_version {
    uint64_t epoch, origin;
};

/* Who passes one in keeps the texts; those of a table live as long as it. */
struct member {
    const char *job;
    int task;
    const char *address; /* NULL: removed */
    struct member_version version;
    uint64_t since_ms; /* wall clock of its writer: for people, not for us */
    uint64_t revision; /* of this table: when it came in, see below */
};

struct members_job;

struct members {
    struct members_job *jobs;
    int count, room;
    uint64_t epoch;    /* the largest */
    uint64_t revision; /* one more with every change of this table */
    uint64_t digest;
    int present; /* entries with an address */
    struct map by_address;
};

void members_init(struct members *t);
void members_done(struct members *t);

/* Takes a copy if it is newer than what is there. */
bool members_merge(struct members *t, const struct member *m);
/* Whether merging would change anything. */
bool members_wants(const struct members *t, const struct member *m);

/* NULL when nothing is known of the task; a removed one is known. */
const struct member *members_get(const struct members *t, const char *job,
                                 int task);
/* The present task with that address; of several, the one with the newest
 * version. */
const struct member *members_at(const struct members *t, const char *address);
/* One more than the largest number that was ever used in the job. */
int members_next_task(const struct members *t, const char *job);

/* All entries, by job and number: start with {0}; NULL at the end. */
struct members_walk {
    int job, task;
};
const struct member *members_next(const struct members *t,
                                  struct members_walk *at);

int member_version_compare(struct member_version a, struct member_version b);
/* What a peer or a file says of a member: INVALID_ARGUMENT if it cannot be. */
MUST_USE enum mst_code member_check(const struct member *m, struct status *st);

#endif
