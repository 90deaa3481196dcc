/* A client's graph while it grows: for the files that add nodes to it. */
#ifndef GRAPH_GROW_H
#define GRAPH_GROW_H

#include "graph/source.h"

struct growing {
    struct source *s;
    struct graph_library *scratch; /* where attributes are for a moment */
    int first;                     /* the first new node */
    struct status *st;
};

/* Adds the node of a NodeDef, whose bytes stay, but none of its inputs. */
enum mst_code source_enter(struct growing *g, const uint8_t *data,
                           size_t len) MUST_USE;

#endif
