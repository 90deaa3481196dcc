/*
 * One line a message on standard error: time, level, text. Only the outermost
 * owner of a piece of work logs; library code returns its errors.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/base.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

/* "error", "warn", "info", "debug"; false when it is none of them. */
bool log_set_level(const char *name);
bool log_enabled(enum log_level level);
void log_line(enum log_level level, const char *fmt, ...) PRINTF(2, 3);

#endif
