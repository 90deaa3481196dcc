/* From a status of ours to the error of the public API. */
#ifndef API_ERROR_H
#define API_ERROR_H

#include <stdio.h>

#include "base/status.h"
#include "muster/api.h"

static inline enum mst_code error_tell(struct mst_error *error,
                                       const struct status *st)
{
    if (error) {
        error->code = st->code;
        snprintf(error->message, sizeof(error->message), "%s", st->msg);
    }
    return st->code;
}

#endif
