/*
 * A graph out of the wire: nodes with typed attributes, and inputs resolved to
 * (node, output). Everything of it lies in one arena. It does not change once
 * it is made, but for its inputs when it is compiled (exec/optimise.h).
 *
 * A function's body is a graph too: its arguments are nodes of op _Arg, its
 * results of op _Retval, in the order of the signature.
 */
#ifndef GRAPH_GRAPH_H
#define GRAPH_GRAPH_H

#include "base/arena.h"
#include "base/map.h"
#include "op/attr.h"
#include "op/op.h"
#include "proto/graph.pb-c.h"

/* The GraphDef version this library speaks: TensorFlow 2.21's. */
#define GRAPH_VERSION              2474
#define GRAPH_VERSION_MIN_CONSUMER 12

struct graph_input {
    int node;
    int output; /* -1: a control edge */
};

struct graph_node {
    const char *name, *op, *device;
    const struct op_def *def; /* NULL: a call of `function` */
    const struct graph_function *function;
    struct graph_input *inputs; /* data first, then control */
    int data_count, input_count;
    const struct attr *attrs;
    int attr_count;
    bool wanted; /* in a function: its control_ret names it */
};

struct graph {
    struct arena *arena; /* the library's, which owns all */
    struct graph_node *nodes;
    int *order; /* of nodes: inputs first, but for back edges of loops */
    int count;
};

struct graph_function {
    const char *name;
    const Tensorflow__FunctionDef *def; /* while the library has its source */
    int in_count, out_count;
};

/* A graph and the functions that it may call. */
struct graph_library {
    struct arena arena;
    struct graph main;
    struct map functions;         /* name -> struct graph_function */
    Tensorflow__GraphDef *source; /* function bodies are made from it */
    struct tensor **tensors;      /* of attributes, to be released */
    int tensor_count, tensor_room;
};

/* Takes the GraphDef over, also on failure. */
enum mst_code graph_library_new(Tensorflow__GraphDef *def,
                                struct graph_library **ret,
                                struct status *st) MUST_USE;
struct graph_library *graph_library_new_empty(void);
void graph_library_free(struct graph_library *lib); /* accepts NULL */

const struct graph_function *
graph_function_find(const struct graph_library *lib, const char *name);
/* The body of a function as it is called with such attributes. */
enum mst_code graph_function_body(struct graph_library *lib,
                                  const struct graph_function *f,
                                  const struct attr *args, int arg_count,
                                  struct graph *ret,
                                  struct status *st) MUST_USE;
/* The types of a function's arguments or results. */
enum mst_code graph_function_types(struct graph_library *lib,
                                   const struct graph_function *f,
                                   const struct attr *args, int arg_count,
                                   bool outputs, int **ret_types,
                                   int *ret_count, struct status *st) MUST_USE;

/* ---- the checks that every graph goes through, with TensorFlow's texts ----
 */

enum mst_code graph_check_name(const char *name, struct status *st) MUST_USE;
enum mst_code graph_check_versions(const void *data, size_t len,
                                   struct status *st) MUST_USE;
enum mst_code graph_unknown_op(const char *op, struct status *st);
/* want: the type that input number `input` of dst expects. */
enum mst_code graph_check_edge(const char *dst, int input, int want,
                               const char *src, int output, int out_count,
                               const int *out_types,
                               struct status *st) MUST_USE;
enum mst_code graph_bad_input_count(const char *name, const char *op,
                                    const int *types, int count, int given,
                                    struct status *st);
/* Takes "n", "n:2" or "^n" apart: the name (part of the text), and the output
 * or -1 for a control input. */
const char *graph_input_split(const char *text, size_t len, size_t *ret_len,
                              int *ret_output);

/* Makes the attributes of a node: graph/attrs.c. */
enum mst_code graph_attrs(struct graph_library *lib, const char *node_name,
                          Tensorflow__AttrEntry *const *entries, size_t count,
                          const struct attr *args, int arg_count,
                          const struct attr **ret, int *ret_count,
                          struct status *st) MUST_USE;

#endif
