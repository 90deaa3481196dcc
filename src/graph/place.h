/*
 * Placement: which device of which task runs each node of a client's graph.
 *
 * A node's device says as much as its author cared to say. Nodes that must be
 * together (a `_class` attribute, a reference or a resource that goes from one
 * to the other) form a group, and what any of them says holds for all. Among
 * the devices that fit, the master's own is taken, else one of its task, else
 * the first by name; one that is no CPU only if it is asked for. Two kinds of
 * nodes that nobody placed follow others, to save a transfer: one without
 * inputs and with one reader goes to the reader, and one that only looks at a
 * tensor's shape to the tensor.
 *
 * What was placed stays where it is when the graph grows.
 */
#ifndef GRAPH_PLACE_H
#define GRAPH_PLACE_H

#include "base/device.h"
#include "graph/source.h"

struct place_device {
    const char *device; /* "/job:ps/replica:0/task:0/device:CPU:0" */
    struct device_name name;
    uint64_t incarnation;
    int task; /* a number */
};

struct place_opts {
    const struct place_device *devices; /* sorted by name */
    int count, task_count;
    int own;   /* the device of the master's client, on the master's task */
    bool soft; /* a device that is not there may be another of its task */
};

/* Places the nodes from `first` on. */
enum mst_code place_nodes(struct source *s, int first,
                          const struct place_opts *opts,
                          struct status *st) MUST_USE;

#endif
