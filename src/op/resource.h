/*
 * The state of a task that outlives steps, graphs and sessions: variables,
 * queues, accumulators, tables. Each is an object under (container, kind,
 * name).
 *
 * What travels on edges is a handle: the place in the table, whether an object
 * is in it or not. A node finds its handle once, when the graph is compiled;
 * from then on there is no look-up by name. A DT_RESOURCE element is a
 * struct handle (its `o` member). Old queue and accumulator ops declare their
 * handle output as Ref(string); between our own kernels that edge carries a
 * DT_RESOURCE tensor all the same.
 *
 * Emptying a container drops the objects, not the handles: a node that still
 * has one finds it empty, as TensorFlow's does.
 *
 * Threads: any. A handle's object is swapped under its lock.
 */
#ifndef OP_RESOURCE_H
#define OP_RESOURCE_H

#include <pthread.h>

#include "tensor/tensor.h"

struct resources;

struct handle {
    struct object o;                /* kind: &handle_kind */
    const struct object_kind *kind; /* of what may be in it */
    const char *container, *name;
    pthread_mutex_t lock;
    struct object *held; /* under lock; NULL: nothing there yet */
    /* What VarHandleOp says about the variable to come. */
    int dtype;
    struct shape shape;
};

extern const struct object_kind handle_kind;

/* default_container is used where a node names none: the job's name. */
struct resources *resources_new(const char *default_container);
struct resources *resources_ref(struct resources *r);
void resources_unref(struct resources *r);
const char *resources_default_container(const struct resources *r);

/* The handle of that place, made if it is new. One reference for the caller.
 * container "" is the default one. */
struct handle *resources_handle(struct resources *r, const char *container,
                                const struct object_kind *kind,
                                const char *name);
/* A handle that is in no table; takes over one reference of held. The name is
 * what programs see that ask for the handle's text. */
struct handle *handle_anonymous(const struct object_kind *kind,
                                struct object *held, const char *name);
void handle_unref(struct handle *h);

/* The object with a reference for the caller, or NULL. */
struct object *handle_get(struct handle *h);
/* The object; made by make() under the handle's lock if there is none. NULL on
 * failure, with st filled by make(). */
struct object *handle_get_or_make(struct handle *h,
                                  struct object *(*make)(void *arg,
                                                         struct status *st),
                                  void *arg, struct status *st);
/* Takes the object out: whoever has a reference may finish. False when there
 * was none. */
bool handle_drop(struct handle *h);

/* Drops every object of a container ("" is the default one). */
void resources_clear(struct resources *r, const char *container);
/* Calls fn for each object that is there, for status pages and tests. */
void resources_each(struct resources *r,
                    void (*fn)(void *arg, struct handle *h), void *arg);

/* ---- for kernels ---- */

struct op_ctx;
struct op_node;

/* The handle in input i; fails when the input is none of that kind. */
enum mst_code op_handle(struct op_ctx *c, int i, const struct object_kind *kind,
                        struct handle **ret) MUST_USE;
/* The object in the handle of input i, with a reference for the caller:
 * NOT_FOUND when there is none. */
enum mst_code op_resource(struct op_ctx *c, int i,
                          const struct object_kind *kind,
                          struct object **ret) MUST_USE;
/* The handle that a node makes: from its attributes container and shared_name,
 * or else its own name. For init(). */
struct handle *op_node_handle(struct op_node *n,
                              const struct object_kind *kind);
/* Output i is a scalar with that handle. */
enum mst_code op_out_handle(struct op_ctx *c, int i, struct handle *h) MUST_USE;

#endif
