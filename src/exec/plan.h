/*
 * A graph compiled for running: everything that does not change from step to
 * step. Names are gone, edges are (node, slot) pairs, attributes have been
 * read, kernels chosen, pending counts counted.
 *
 * Loops: nodes between Enter and Exit run once an iteration, in a frame. Which
 * frame a node belongs to is known from the graph alone, so each frame has its
 * own numbering of nodes and input slots, and an iteration of it is one block
 * of memory laid out by this plan.
 *
 * A plan is immutable, except for its list of idle steps (exec/step.c) and
 * what kernels keep under locks of their own. It is counted: steps hold on to
 * it.
 */
#ifndef EXEC_PLAN_H
#define EXEC_PLAN_H

#include <pthread.h>
#include <stdatomic.h>

#include "graph/graph.h"
#include "op/op.h"

#define EDGE_CONTROL (-1)
/* What the state word of a Merge can count: exec/frame.h. */
#define MERGE_INPUTS_MAX 0x3fff

struct plan_edge {
    int dst;  /* node */
    int slot; /* of dst, or EDGE_CONTROL */
};

/* How an input is made ready for the kernel. */
enum plan_in {
    IN_VALUE,
    IN_DEREF,  /* the producer gives a reference, the kernel wants the value */
    IN_REF,    /* a reference to a variable */
    IN_HANDLE, /* Ref(string): a handle, see op/resource.h */
};

struct plan_node {
    struct op_node op;
    enum op_kind kind;
    unsigned flags;
    int frame;     /* where it runs */
    int out_frame; /* where its outputs go: differs for Enter and Exit */
    int index;     /* in its frame */
    int slot;      /* of its first input, in its frame */
    int async;     /* number among the asynchronous nodes, or -1 */
    uint32_t data_in, control_in;
    const uint8_t *in_how; /* enum plan_in */
    bool in_plain;         /* all inputs are IN_VALUE */
    bool constant_enter;
    bool gone;               /* never runs: exec/optimise.h */
    struct tensor *constant; /* its outputs, if they are known by now */
    struct fused *fused;     /* what it does for others too: exec/fuse.c */
    const int *data_first;   /* edges of output i: [first[i], first[i + 1]) */
    const struct plan_edge *data, *control;
    int control_count;
};

struct plan_frame {
    const char *name;
    uint64_t name_hash;
    int parent; /* -1: the root */
    int node_count, slot_count, async_count, enter_count;
    int parallel;      /* iterations that may run at once */
    uint32_t *pending; /* by index: what a fresh iteration begins with */
    struct plan_node **nodes;
};

struct plan {
    atomic_int refs;
    struct arena arena;
    struct graph_library *lib; /* NULL in a function's plan */
    struct plan *parent;       /* whose function this is; not counted */
    struct op_env env;
    struct plan_node *nodes;
    int count;
    struct plan_frame *frames; /* [0] is the root */
    int frame_count;
    int *roots, root_count;
    int arg_count, ret_count;
    bool optimised;
    bool has_blocking;  /* itself, or a function that it calls */
    struct map callees; /* of the outermost plan: exec/call.c */
    void **args;        /* by index, exec/step.c's */
    struct step *_Atomic idle_one;
    pthread_mutex_t idle_lock;
    struct step *idle; /* more of them, under idle_lock */
    int idle_count;
};

/* Takes the library over, also on failure. env is copied; its resources get
 * one more reference. `device` of every node must be env's. */
enum mst_code plan_new(struct graph_library *lib, const struct op_env *env,
                       bool optimised, struct plan **ret,
                       struct status *st) MUST_USE;
/* The plan of a function's body, under the same environment. */
enum mst_code plan_new_function(struct plan *parent, struct graph *body,
                                int arg_count, int ret_count, struct plan **ret,
                                struct status *st) MUST_USE;
struct plan *plan_ref(struct plan *p);
void plan_unref(struct plan *p);

/* The outermost plan, which owns the library and the functions. */
struct plan *plan_outermost(struct plan *p);

#endif
