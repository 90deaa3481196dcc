/*
 * A client's graph, as a session of the master holds it: it grows by Extend,
 * and steps are cut out of it.
 *
 * Nodes stay in their wire form, because most of what a NodeDef says is only
 * passed on to the task that will run it. What the master itself needs is
 * beside the bytes: the op, resolved inputs, types of inputs and outputs, and,
 * once it is placed, the device. Attributes are read once, for the types, and
 * dropped.
 *
 * Not locked: its owner sees to it that nobody reads while it grows.
 */
#ifndef GRAPH_SOURCE_H
#define GRAPH_SOURCE_H

#include "base/buffer.h"
#include "graph/graph.h"

struct source_node {
    const char *name, *op;
    const struct op_def *def; /* NULL: a call of a function */
    const uint8_t *wire;      /* the NodeDef */
    size_t wire_len;
    const char *device; /* as the client wrote it; not terminated */
    size_t device_len;
    struct graph_input *inputs; /* data first, then control */
    int data_count, input_count;
    const int *in_types, *out_types; /* enum dtype, + DT_REF */
    int in_count, out_count;
    bool foreign; /* an op of TensorFlow's that we do not have: no types */
    bool calls;   /* has a function among its attributes, or is a call */
    const struct graph_input *instead; /* by output: see graph/lower.h */
    bool branch; /* a call that graph/lower.c made of another op */
    int group;   /* towards the node that stands for its colocation group */
    int place;   /* of the group's head: the device; -1: not placed yet */
};

struct source {
    struct arena arena;
    struct source_node *nodes;
    int count, room;
    struct map names;     /* name -> index + 1 */
    struct map functions; /* name -> struct graph_function */
    Tensorflow__FunctionDef **defs;
    int def_count, def_room;
    struct pb_out *library; /* all FunctionDefs, as fields of a library */
    struct buffer **owners; /* of the bytes */
    int owner_count, owner_room;
    const uint8_t *versions; /* the first VersionDef that came */
    size_t versions_len;
    int lowered;        /* the next number for a name in graph/lower.c */
    struct map classes; /* "loc:@x" of no node -> index + 1 of one with it */
};

void source_init(struct source *s);
void source_done(struct source *s);

/* Adds the nodes and functions of a GraphDef. The bytes are kept: owner is
 * referenced. On failure nothing has changed but memory. */
enum mst_code source_extend(struct source *s, const void *def, size_t len,
                            struct buffer *owner, struct status *st) MUST_USE;

/* Forgets the nodes from `first` on. */
void source_truncate(struct source *s, int first);

/* -1 when there is none. */
int source_find(const struct source *s, const char *name, size_t len);
/* A data input, to what stands there instead. */
void source_resolve(const struct source *s, struct graph_input *in);
/* The head of a node's group. */
int source_group(struct source *s, int node);

/* Calls fn for each string of the list attribute `_class`. */
void source_each_class(const struct source_node *n,
                       void (*fn)(void *arg, const char *text, size_t len),
                       void *arg);

#endif
