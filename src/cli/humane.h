/*
 * Durations and amounts as people say them: "45 s", "3 min", "2 h 5 min",
 * "1.5 GB". One or two numbers that can be compared down a column, no more.
 */
#ifndef CLI_HUMANE_H
#define CLI_HUMANE_H

#include "base/base.h"

#define HUMANE_MAX 32

void humane_duration(uint64_t ms, char text[HUMANE_MAX]);
/* Powers of ten, as networks and disks are sold. */
void humane_bytes(double bytes, char text[HUMANE_MAX]);
/* So many a second: "0", "0.4", "12.5", "1850". */
void humane_rate(double per_s, char text[HUMANE_MAX]);

#endif
