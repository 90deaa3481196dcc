/*
 * A graph as TensorFlow exports it: a MetaGraphDef (`.meta`, or `.pb` of
 * tf.compat.v1.train.export_meta_graph()) or a bare GraphDef.
 *
 * A MetaGraphDef says beside its graph what the graph is for: how it is saved,
 * which variables it has and how they begin, which ops initialise and train
 * it, under the names of TensorFlow's collections. For a bare GraphDef what can
 * be told from the nodes is: variables with their initial assignments, and a
 * saver under its usual names.
 *
 * Nodes stay in their wire form. Everything lives until meta_graph_done(), and
 * nothing changes: any thread may read.
 */
#ifndef CLIENT_META_GRAPH_H
#define CLIENT_META_GRAPH_H

#include "base/arena.h"
#include "base/map.h"
#include "base/status.h"
#include "tensor/tensor.h"

struct meta_text {
    const uint8_t *data;
    size_t len;
};

struct meta_node {
    const char *name, *op, *device;
    const uint8_t *wire; /* the NodeDef */
    size_t wire_len;
};

struct meta_variable {
    const char *name;        /* "w:0" */
    const char *initializer; /* the op that gives it its first value */
    const char *snapshot;    /* the tensor that reads it, or NULL */
    bool resource;
};

struct meta_saver {
    const char *filename; /* the tensor that the prefix is fed to */
    const char *save;     /* a tensor whose making saves */
    const char *restore;  /* an op */
    int max_to_keep;      /* 0: all */
};

struct meta_queue_runner {
    const char *queue, *close, *cancel; /* ops; the last two may be "" */
    const char **enqueue;
    int enqueue_count;
};

struct meta_graph {
    struct arena arena;
    uint8_t *bytes; /* of the file */
    size_t len;
    struct meta_text graph; /* the GraphDef in them */
    struct meta_node *nodes;
    int node_count;
    struct map names;           /* name -> index + 1 */
    struct map collections;     /* name -> struct meta_collection */
    struct map inputs, outputs; /* of all signatures: key -> tensor name */
    struct meta_variable *variables, *locals;
    int variable_count, local_count;
    struct meta_variable *global_step; /* or NULL */
    struct meta_saver *saver;          /* or NULL */
    struct meta_queue_runner *runners;
    int runner_count;
};

/* Names of nodes, or messages, as the collection has them. */
struct meta_collection {
    struct meta_text *values;
    int count;
};

enum mst_code meta_graph_read(struct meta_graph *g, const char *path,
                              struct status *st) MUST_USE;
/* The bytes are taken. name is what errors call it. */
enum mst_code meta_graph_parse(struct meta_graph *g, const char *name,
                               uint8_t *bytes, size_t len,
                               struct status *st) MUST_USE;
void meta_graph_done(struct meta_graph *g);

/* NULL when there is none. */
const struct meta_node *meta_graph_node(const struct meta_graph *g,
                                        const char *name, size_t len);
/* The collection's first or last value, terminated; NULL when it has none. */
const char *meta_graph_first(struct meta_graph *g, const char *name);
const char *meta_graph_last(struct meta_graph *g, const char *name);
/* The first, as an op: what is named "x:0" there is made by "x". */
const char *meta_graph_first_op(struct meta_graph *g, const char *name);
const struct meta_collection *meta_graph_collection(const struct meta_graph *g,
                                                    const char *name);

/* What a user calls a tensor: "x:0", "x" for the same, or what a signature
 * calls it. NOT_FOUND names what is near. The answer lives as long as g. */
enum mst_code meta_graph_tensor(struct meta_graph *g, const char *name,
                                const char **ret, struct status *st) MUST_USE;
/* The same for an op. */
enum mst_code meta_graph_op(struct meta_graph *g, const char *name,
                            const char **ret, struct status *st) MUST_USE;
/* The type and shape of a placeholder; false for any other node. */
bool meta_graph_placeholder(const struct meta_graph *g, const char *tensor,
                            enum dtype *ret_type, struct shape *ret_shape);

#endif
