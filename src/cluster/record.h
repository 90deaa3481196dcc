/*
 * The journal's format: a line of text an entry, each with its own checksum,
 * so that a person can read the file and a machine can tell which lines hold.
 *
 *   1b2c3d4e journal 1
 *   5f60718a 3 00a1b2c3d4e5f607 1763280000000 add worker 2 w2:2222
 *   9cadbecf 4 00a1b2c3d4e5f607 1763280009000 remove worker 2
 *
 * checksum (CRC-32C of the rest of the line), epoch, origin, wall clock in
 * milliseconds, what. Lines are only ever appended. An entry stands for
 * itself: when one is damaged the others still count, in any order, since
 * their versions say which is newer.
 *
 * A write that was cut leaves a last line without an end, or with a wrong
 * checksum: the tail. `good` says where it begins, so that it can be cut off
 * before anything is appended to it. A text that is not even a whole first
 * line, as a file that was never finished is, has good 0: write it anew.
 *
 * What the owner of the file has to see to (server/journal.c; tests/sim does
 * the same with its own disk):
 *  - a write that failed is cut off again, on the disk too, before it is said
 *    to have failed: otherwise it comes to life at the next start;
 *  - a journal that is written anew, to be shorter, has the entries whose
 *    writing is under way too, not only those of the table; it takes the old
 *    one's place in one step (rename) when it is on the disk.
 */
#ifndef CLUSTER_RECORD_H
#define CLUSTER_RECORD_H

#include "cluster/members.h"

/* A growing text. */
struct record_text {
    char *text;
    size_t len, room;
};

void record_text_done(struct record_text *t);
/* The first line of a journal. */
void record_put_head(struct record_text *t);
/* An entry that member_check() lets pass, with a version. */
void record_put(struct record_text *t, const struct member *m);
/* Every entry of the table that has a version, behind a head. */
void record_put_all(struct record_text *t, const struct members *members);

struct record_report {
    int entries;
    int damaged; /* lines that do not hold, the tail not counted */
    size_t good; /* length up to the end of the last good line */
};

/* Merges what holds into the table. FAILED_PRECONDITION when the text is not a
 * journal, or one of another format; the table is untouched then. */
MUST_USE enum mst_code record_scan(const char *text, size_t len,
                                   struct members *into,
                                   struct record_report *ret,
                                   struct status *st);

#endif
