/*
 * From what a step asks for to what each task has to do: the part of a client's
 * graph that feeds, fetches and targets leave standing, cut along the borders
 * of tasks, as one GraphDef a task.
 *
 * Feeds and fetches belong to the client's task, which is the master's own.
 * There they are arguments and results (_Arg, _Retval) of the graph; in a
 * partial run, which is fed and fetched piece by piece, they go through the
 * rendezvous under "node:output".
 *
 * An edge between tasks becomes a pair of _Send and _Recv, shared by all
 * readers of a task. Inside of a loop a receive has to happen once an
 * iteration: on every task that receives inside of a frame a small loop beside
 * the real one counts along, driven by the frame's LoopCond.
 */
#ifndef GRAPH_PARTITION_H
#define GRAPH_PARTITION_H

#include "graph/place.h"
#include "wire/pb.h"

struct part_name {
    const char *text;
    size_t len;
};

struct part_want {
    const struct part_name *feeds, *fetches, *targets;
    int feed_count, fetch_count, target_count;
    /* In pairs: who reads the second gets the value of the first. */
    const struct part_name *links;
    int link_count; /* of names */
    bool partial;
    bool keep; /* the caller wants the graphs later on */
};

struct part {
    int task;
    int nodes;
    bool transfers;      /* something comes from or goes to another task */
    bool between;        /* ... that is not the client's */
    bool late;           /* ... and asks when this part may have ended */
    struct pb_out graph; /* a GraphDef */
};

struct parts {
    struct part *list;
    int count;
    int *feed_types; /* by feed */
};

enum mst_code partition(const struct source *s, const struct place_opts *where,
                        const struct part_want *want, struct parts *ret,
                        struct status *st) MUST_USE;
void parts_done(struct parts *p);

#endif
