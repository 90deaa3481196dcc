/*
 * What `muster status` shows: the table of members that one server has, and
 * what each member says of itself.
 *
 * The table says who should be there and whom that server has heard of; each
 * present member is then asked, all at once and with a short deadline. A member
 * that does not know the question is TensorFlow's.
 */
#ifndef CLI_STATUS_VIEW_H
#define CLI_STATUS_VIEW_H

#include "cli/targets.h"
#include "proto/membership.pb-c.h"

enum status_kind {
    STATUS_NOT_ASKED, /* it is gone, or removed */
    STATUS_NO_ANSWER,
    STATUS_MUSTER,
    STATUS_TENSORFLOW
};

struct status_row {
    const Muster__Member *member;
    enum status_kind kind;
    Muster__StatusResponse *says; /* of a server of muster, else NULL */
    Muster__Member__State state;  /* of the table, or of the answer */
};

struct status_view {
    const char *target; /* that answered */
    Muster__ListResponse *list;
    struct status_row *rows; /* by job and task, as in the list */
    size_t count;
    uint64_t now_ms; /* wall clock */
};

/* Asks the targets in turn. `all`: removed members are rows, too. */
MUST_USE enum mst_code status_view_load(struct status_view *v,
                                        const struct targets *targets, bool all,
                                        uint64_t timeout_ms, struct status *st);
/* Also after a failure. */
void status_view_done(struct status_view *v);

#endif
