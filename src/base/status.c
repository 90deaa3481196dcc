#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void base_panic(const char *file, int line, const char *what)
{
    fprintf(stderr, "muster: %s:%d: this must hold: %s\n", file, line, what);
    abort();
}

enum mst_code status_set(struct status *st, enum mst_code code, const char *fmt,
                         ...)
{
    va_list args;

    st->code = code;
    st->worker_restarted = false;
    va_start(args, fmt);
    vsnprintf(st->msg, sizeof(st->msg), fmt, args);
    va_end(args);
    return code;
}

void status_append(struct status *st, const char *fmt, ...)
{
    size_t used = strlen(st->msg);
    va_list args;

    va_start(args, fmt);
    vsnprintf(st->msg + used, sizeof(st->msg) - used, fmt, args);
    va_end(args);
}

enum mst_code status_copy(struct status *dst, const struct status *src)
{
    if (dst != src) {
        dst->code = src->code;
        dst->worker_restarted = src->worker_restarted;
        memcpy(dst->msg, src->msg, strlen(src->msg) + 1);
    }
    return dst->code;
}

void status_clear(struct status *st)
{
    st->code = MST_OK;
    st->worker_restarted = false;
    st->msg[0] = '\0';
}

const char *status_name(enum mst_code code)
{
    static const char *const names[] = {
        "OK",
        "CANCELLED",
        "UNKNOWN",
        "INVALID_ARGUMENT",
        "DEADLINE_EXCEEDED",
        "NOT_FOUND",
        "ALREADY_EXISTS",
        "PERMISSION_DENIED",
        "RESOURCE_EXHAUSTED",
        "FAILED_PRECONDITION",
        "ABORTED",
        "OUT_OF_RANGE",
        "UNIMPLEMENTED",
        "INTERNAL",
        "UNAVAILABLE",
        "DATA_LOSS",
        "UNAUTHENTICATED",
    };

    return (size_t)code < COUNT(names) ? names[code] : "UNKNOWN";
}
