/*
 * A plan while it is optimised, and the passes over it.
 *
 * Nodes are visited once, inputs before consumers. By then the inputs of a node
 * name what really makes the value: a pass that finds another maker for what a
 * node gives only notes it in `instead`, and consumers follow when their turn
 * comes. Nodes that nobody names any more are dropped at the end (sweep.c).
 *
 * One thread. A draft lives for the time of optimise().
 */
#ifndef EXEC_DRAFT_H
#define EXEC_DRAFT_H

#include "exec/plan.h"

#define INSTEAD_NONE    (-1) /* the node itself */
#define INSTEAD_NOTHING (-2) /* who waits for it need not */
#define INSTEAD_SAME    (-1) /* output i of the other is its output i */

/* Who gives a node's outputs in its place. */
struct draft_instead {
    int node, output;
};

enum { USED_DATA = 1, USED_CONTROL = 2 };

/* Nodes that have been seen, by what they compute: cse.c. */
struct cse {
    int *table; /* node + 1, by hash; the size is a power of two */
    uint32_t mask;
    uint32_t *hash; /* by node */
};

struct draft {
    struct plan *p;
    struct graph *g;
    struct draft_instead *instead;
    uint8_t *used; /* how its outputs are used in the graph as it came */
    int *stamp;    /* the last node, plus one, that was found to name it */
    struct cse cse;
    size_t folded_bytes;
    const struct op_def *constant, *no_op, *identity[4];
};

/* Neither state, nor references, nor handles, nor waiting: what it gives is a
 * matter of its inputs and attributes alone. */
bool draft_is_pure(const struct plan_node *n);
/* What an output is known to be at compile time, or NULL. */
const struct tensor *draft_constant(const struct draft *d,
                                    const struct graph_input *in);
/* A constant that waits for nothing, so nothing has to wait for it. */
bool draft_is_free_constant(const struct draft *d, int node);

/* Each is true when the node has found someone to stand in for it. */
bool draft_bypass(struct draft *d, int node);
bool draft_merge(struct draft *d, int node);
void cse_init(struct cse *c, int count);
void cse_done(struct cse *c);
/* Computes the node, if it can be, and keeps the result. */
void draft_fold(struct draft *d, int node);
/* Makes one node of trees of element-wise ones. */
void draft_fuse(struct draft *d);
/* Marks as gone what no result, effect or target needs. */
void draft_sweep(struct draft *d);

#endif
