/*
 * Graphs for tests, written down as bytes of a GraphDef:
 *
 *   struct graph_text g;
 *   graph_text_init(&g);
 *   graph_text_node(&g, "c", "Const", NULL);
 *   graph_text_type(&g, "dtype", DT_FLOAT);
 *   graph_text_float(&g, "value", 2);
 *   graph_text_node(&g, "n", "Neg", "c");
 *   …
 *   lib = graph_text_library(&g, &st);
 */
#ifndef GRAPH_TESTING_H
#define GRAPH_TESTING_H

#include <string.h>

#include "graph/graph.h"
#include "tensor/proto.h"
#include "wire/control.h"
#include "wire/pb.h"

struct graph_text {
    struct pb_out graph, node;
    bool open;
    const char *device;
};

static inline void graph_text_init(struct graph_text *g)
{
    pb_out_init(&g->graph);
    pb_out_init(&g->node);
    g->open = false;
    g->device = "/job:localhost/replica:0/task:0/device:CPU:0";
}

static inline void graph_text_close(struct graph_text *g)
{
    if (g->open)
        pb_put_bytes(&g->graph, 1, g->node.data, g->node.len);
    g->open = false;
    pb_out_done(&g->node);
}

/* inputs: "a,b:1,^c", or NULL. Attributes that follow belong to it. */
static inline void graph_text_node(struct graph_text *g, const char *name,
                                   const char *op, const char *inputs)
{
    graph_text_close(g);
    pb_put_bytes(&g->node, 1, name, strlen(name));
    pb_put_bytes(&g->node, 2, op, strlen(op));
    while (inputs && *inputs) {
        size_t n = strcspn(inputs, ",");

        pb_put_bytes(&g->node, 3, inputs, n);
        inputs += n + (inputs[n] == ',');
    }
    pb_put_bytes(&g->node, 4, g->device, strlen(g->device));
    g->open = true;
}

static inline void graph_text_attr(struct graph_text *g, const char *name,
                                   const struct pb_out *value)
{
    struct pb_out entry;

    pb_out_init(&entry);
    pb_put_bytes(&entry, 1, name, strlen(name));
    pb_put_bytes(&entry, 2, value->data, value->len);
    pb_put_bytes(&g->node, 5, entry.data, entry.len);
    pb_out_done(&entry);
}

static inline void graph_text_num(struct graph_text *g, const char *name,
                                  uint32_t field, uint64_t value)
{
    struct pb_out v;

    pb_out_init(&v);
    pb_put_uint(&v, field, value);
    graph_text_attr(g, name, &v);
    pb_out_done(&v);
}

static inline void graph_text_type(struct graph_text *g, const char *name,
                                   int dt)
{
    graph_text_num(g, name, 6, (uint64_t)dt);
}

static inline void graph_text_int(struct graph_text *g, const char *name,
                                  int64_t value)
{
    graph_text_num(g, name, 3, (uint64_t)value);
}

static inline void graph_text_bool(struct graph_text *g, const char *name,
                                   bool value)
{
    graph_text_num(g, name, 5, value);
}

static inline void graph_text_str(struct graph_text *g, const char *name,
                                  const char *value)
{
    struct pb_out v;

    pb_out_init(&v);
    pb_put_bytes(&v, 2, value, strlen(value));
    graph_text_attr(g, name, &v);
    pb_out_done(&v);
}

static inline void graph_text_tensor(struct graph_text *g, const char *name,
                                     const struct tensor *t)
{
    struct tensor_proto_size size = tensor_proto_size(t);
    struct pb_out v, p;

    pb_out_init(&p);
    tensor_proto_put_head(&p, t, size);
    tensor_proto_put_content(&p, t);
    pb_out_init(&v);
    pb_put_bytes(&v, 8, p.data, p.len);
    graph_text_attr(g, name, &v);
    pb_out_done(&v);
    pb_out_done(&p);
}

/* A node "name" that is a constant scalar. */
static inline void graph_text_const(struct graph_text *g, const char *name,
                                    enum dtype dt, const void *value)
{
    struct status st = STATUS_INIT;
    struct tensor t;

    CHECK(!tensor_new_scalar(&t, dt, &st));
    memcpy(t.data, value, dtype_size(dt));
    graph_text_node(g, name, "Const", NULL);
    graph_text_type(g, "dtype", dt);
    graph_text_tensor(g, "value", &t);
    tensor_unref(&t);
}

/* The end: NULL, with st filled, when the graph is refused. */
static inline struct graph_library *graph_text_library(struct graph_text *g,
                                                       struct status *st)
{
    struct graph_library *lib = NULL;
    Tensorflow__GraphDef *def;

    graph_text_close(g);
    def = CONTROL_UNPACK(tensorflow__graph_def, g->graph.data, g->graph.len);
    CHECK(def);
    if (graph_library_new(def, &lib, st))
        lib = NULL;
    pb_out_done(&g->graph);
    return lib;
}

#endif
