/*
 * The errors that a step failed of, when several tasks fail at once, and how
 * they are told in one text: as TensorFlow's master does it, one after the
 * other between two lines, sorted from the last to the first; the code is that
 * of the first one there. One alone is told as it is.
 *
 * Not locked: its owner does.
 */
#ifndef SERVER_ROOT_ERROR_H
#define SERVER_ROOT_ERROR_H

#include "base/status.h"

struct root_errors {
    struct status *list;
    int count, room;
};

void root_errors_done(struct root_errors *e); /* zeroed is empty */
/* The error of that task, unless it only repeats one that is known. */
void root_errors_add(struct root_errors *e, const char *task,
                     const struct status *st);
/* ret is left alone when there are none. */
void root_errors_join(const struct root_errors *e, struct status *ret);

#endif
