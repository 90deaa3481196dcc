#include "cli/humane.h"

#include <stdio.h>

/* "2 h", or "2 h 5 min" where the rest says something. */
static void two_units(uint64_t n, uint64_t rest, const char *unit,
                      const char *rest_unit, char *text)
{
    if (rest && n < 10)
        snprintf(text, HUMANE_MAX, "%llu %s %llu %s", (unsigned long long)n,
                 unit, (unsigned long long)rest, rest_unit);
    else
        snprintf(text, HUMANE_MAX, "%llu %s", (unsigned long long)n, unit);
}

void humane_duration(uint64_t ms, char text[HUMANE_MAX])
{
    uint64_t s = ms / 1000;

    if (s < 60)
        two_units(s, 0, "s", "", text);
    else if (s < 3600)
        two_units(s / 60, 0, "min", "", text);
    else if (s < 48 * 3600)
        two_units(s / 3600, s / 60 % 60, "h", "min", text);
    else
        two_units(s / 86400, s / 3600 % 24, "d", "h", text);
}

void humane_bytes(double bytes, char text[HUMANE_MAX])
{
    static const char *const units[] = { "B", "kB", "MB", "GB", "TB", "PB" };
    size_t i = 0;

    /* What would be rounded to 1000 is one of the next unit. */
    for (; bytes >= 999.5 && i + 1 < COUNT(units); i++)
        bytes /= 1000;
    snprintf(text, HUMANE_MAX, i && bytes < 9.95 ? "%.1f %s" : "%.0f %s", bytes,
             units[i]);
}

void humane_rate(double per_s, char text[HUMANE_MAX])
{
    if (per_s < 0.05)
        snprintf(text, HUMANE_MAX, "0");
    else
        snprintf(text, HUMANE_MAX, per_s < 99.95 ? "%.1f" : "%.0f", per_s);
}
