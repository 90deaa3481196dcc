/*
 * Whom a command asks about a running job: a list of servers, of which the
 * first that answers will do. They come as --ps_hosts=a:1,b:1, the flag that
 * everybody has at hand, or as a word "grpc://a:1".
 */
#ifndef CLI_TARGETS_H
#define CLI_TARGETS_H

#include "base/base.h"
#include "base/status.h"

struct targets {
    char **at; /* "host:port" */
    int count, room;
};

/* Adds those of a list, separated by commas. INVALID_ARGUMENT if one of them
 * is no address; blanks and empty items are taken. */
MUST_USE enum mst_code targets_add(struct targets *t, const char *list,
                                   struct status *st);
void targets_done(struct targets *t);
/* Whether a word can only be a target: "grpc://...". */
bool targets_is_one(const char *word);
/* Whether another server may do better than the one that answered so. */
bool targets_try_next(enum mst_code code);

#endif
