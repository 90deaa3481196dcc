#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const char *const names[] = { "error", "warn", "info", "debug" };
static atomic_int level_max = LOG_INFO;

bool log_set_level(const char *name)
{
    for (int i = 0; i < (int)COUNT(names); i++)
        if (!strcmp(name, names[i])) {
            atomic_store(&level_max, i);
            return true;
        }
    return false;
}

bool log_enabled(enum log_level level)
{
    return (int)level <= atomic_load_explicit(&level_max, memory_order_relaxed);
}

void log_line(enum log_level level, const char *fmt, ...)
{
    char line[2048];
    struct timespec now;
    struct tm tm;
    va_list args;
    size_t n;

    if (!log_enabled(level))
        return;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    n = strftime(line, sizeof(line), "%Y-%m-%dT%H:%M:%S", &tm);
    n += (size_t)snprintf(line + n, sizeof(line) - n, ".%03ldZ %-5s ",
                          now.tv_nsec / 1000000, names[level]);
    va_start(args, fmt);
    vsnprintf(line + n, sizeof(line) - n - 1, fmt, args);
    va_end(args);
    n = strlen(line);
    line[n++] = '\n';
    fwrite(line, 1, n, stderr);
}
