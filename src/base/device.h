/*
 * Device names: "/job:ps/replica:0/task:0/device:CPU:0", the older
 * "/job:ps/replica:0/task:0/cpu:0", and parts of them. A part that is absent,
 * or "*", says nothing.
 */
#ifndef BASE_DEVICE_H
#define BASE_DEVICE_H

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
/* Nothing that one says is denied by the other. */
bool device_compatible(const struct device_name *a,
                       const struct device_name *b);
/* What b says is added to a; false when they contradict each other. With soft
 * a contradiction about type and id is settled by saying neither. */
bool device_merge(struct device_name *a, const struct device_name *b,
                  bool soft);
/* As TensorFlow writes it, only what is said. */
void device_format(const struct device_name *d, char *buf, size_t room);

#endif
