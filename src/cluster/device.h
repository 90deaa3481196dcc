/*
 * Device names: "/job:ps/replica:0/task:0/device:CPU:0", the older
 * "/job:ps/replica:0/task:0/cpu:0", and parts of them. A part that is absent,
 * or "*", says nothing.
 */
#ifndef CLUSTER_DEVICE_H
#define CLUSTER_DEVICE_H

#include "base/base.h"

struct device_name {
    char job[128]; /* "": not said */
    int replica;   /* -1: not said, as all of these */
    int task;
    char type[32]; /* upper case; "": not said */
    int id;
};

/* False when the text is no device name. */
bool device_parse(const char *text, size_t len, struct device_name *ret);
/* All that b says is what a says too; a is a full name. */
bool device_matches(const struct device_name *a, const struct device_name *b);

#endif
