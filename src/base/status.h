/*
 * What became of a call: a code, and a message for a person.
 *
 * A status belongs to its caller and holds its message inline, so that setting
 * one needs no memory. Functions that can fail return the code and fill the
 * status; on success they leave it as it was. Long messages are cut.
 */
#ifndef BASE_STATUS_H
#define BASE_STATUS_H

#include <stdarg.h>

#include "base/base.h"
#include "muster/status.h"

#define STATUS_MSG_MAX 2040

struct status {
    enum mst_code code;
    /* The error says that this task was restarted since the caller last saw it;
     * TensorFlow marks such errors in a payload. */
    bool worker_restarted;
    char msg[STATUS_MSG_MAX];
};

#define STATUS_INIT                                                            \
    {                                                                          \
        .code = MST_OK, .msg = ""                                              \
    }

/* Sets code and message, and returns the code, so that `return status_set(…)`
 * is the usual way out. */
enum mst_code status_set(struct status *st, enum mst_code code, const char *fmt,
                         ...) PRINTF(3, 4);
/* Adds to the end of the message. */
void status_append(struct status *st, const char *fmt, ...) PRINTF(2, 3);
/* A copy of src, without touching the unused tail of its message. */
enum mst_code status_copy(struct status *dst, const struct status *src);
void status_clear(struct status *st);
/* "INVALID_ARGUMENT" for MST_INVALID_ARGUMENT. */
const char *status_name(enum mst_code code);

#endif
