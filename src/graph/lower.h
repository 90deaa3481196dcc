/*
 * Ops that call functions (If, Case, While, PartitionedCall and their twins)
 * taken apart, as TensorFlow's master does before it places a graph: If and
 * Case become Switch and Merge, While a loop of Enter, Merge, Switch,
 * NextIteration and Exit, and the functions' bodies stand where they are
 * called. So a body may be spread over tasks, and of a branch only that runs
 * which is asked for.
 *
 * The op's own node stays, as a NoOp that is done when the op would be; who
 * reads an output of it reads the `instead` of that output. Names are those of
 * TensorFlow: the product of a body is "cond/then/_0/product".
 *
 * What differs from TensorFlow: a body's arguments and results are no nodes
 * (Identity) but the values themselves, except for resources, which have to
 * know that the body runs.
 *
 * What cannot be taken apart (a function that calls itself, wrong types, ops
 * that we do not have) stays a call, and is judged by the task that runs it.
 */
#ifndef GRAPH_LOWER_H
#define GRAPH_LOWER_H

#include "graph/grow.h"
#include "graph/node_attr.h"

/* All nodes from g->first on. */
void lower_nodes(struct growing *g);

/* ---- what the files of it share ---- */

struct lowering {
    struct growing *g;
    int *depth; /* by node from g->first on: how many calls it is inside of */
    int depth_count, depth_room;
    int at; /* the node that is being taken apart */
};

struct lower_node {
    const char *name, *op;
    const char *device;
    size_t device_len;
    const struct graph_input *inputs; /* data first */
    int data, control;
};

/* "base/what/_7", with a number that makes it new. */
const char *lower_name(struct lowering *l, const char *base, const char *what);
/* Adds a node; attrs are taken and emptied. */
enum mst_code lower_add(struct lowering *l, const struct lower_node *n,
                        struct pb_out *attrs, int *ret) MUST_USE;
/* Gives a node its inputs, which must be of the right types. */
enum mst_code lower_connect(struct lowering *l, int node,
                            const struct graph_input *inputs, int data,
                            int control) MUST_USE;
/* The node becomes a NoOp with these control inputs. Both arrays are copied;
 * instead has one for each output. */
void lower_replace(struct lowering *l, int node,
                   const struct graph_input *controls, int count,
                   const struct graph_input *instead);

/* A node of control flow; inputs as in lower_add(). */
struct flow {
    const char *name, *op;
    int type; /* its attribute T; 0: none */
    int near; /* the node whose device it gets */
};

/* more: attributes besides T, taken and emptied; or NULL. */
enum mst_code lower_flow(struct lowering *l, const struct flow *f,
                         struct pb_out *more, const struct graph_input *in,
                         int data, int control, int *ret) MUST_USE;

/* A function that the op names. */
struct called {
    const struct graph_function *f;
    const uint8_t *attrs; /* a NameAttrList */
    size_t len;
};

static inline bool lower_has_effects(const struct called *c)
{
    return c->f->def->n_control_ret > 0;
}

/* Out of a NameAttrList, or the attribute of that name; false if there is no
 * such function. */
bool lower_find(const struct lowering *l, const struct pb_field *list,
                struct called *ret);
bool lower_find_attr(const struct lowering *l, const char *name,
                     struct called *ret);
/* A node that calls it, to be taken apart in its turn. */
enum mst_code lower_add_call(struct lowering *l, const char *name,
                             const struct called *c,
                             const struct graph_input *in, int data,
                             int control, int *ret) MUST_USE;
/* Whether a call has such outputs. */
enum mst_code lower_check_outputs(struct lowering *l, int call,
                                  const int *types, int count) MUST_USE;

/* The node l->at, by file: lower_branch.c, lower_loop.c. */
enum mst_code lower_if(struct lowering *l) MUST_USE;
enum mst_code lower_case(struct lowering *l) MUST_USE;
enum mst_code lower_while(struct lowering *l) MUST_USE;

/* lower_call.c: the node, a call, gives way to the function's body. */
enum mst_code lower_call(struct lowering *l, int node) MUST_USE;

#endif
