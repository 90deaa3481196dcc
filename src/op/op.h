/*
 * What an op is, and what its kernel sees when it runs.
 *
 * An op is one const record, `struct op_def`, in the file of its family in
 * kernel/, and one line OP(stem) in kernel/op_list.h. From the record come the
 * checks of nodes against it, the kernel's choice, docs/ops.md and the list
 * that the conformance test walks. docs/adding-an-op.md shows the way.
 *
 * Life of a node: a graph is compiled once. For each node an op_node is made
 * (in the plan's arena), its attributes are checked and completed, init() reads
 * them and may leave state in node->state. Then the kernel runs once a step,
 * perhaps many times at once on several threads: node and state are constant
 * by then, unless they have a lock of their own.
 *
 * A kernel takes its inputs from c->in, fills c->out, and returns. It never
 * waits: an op that has to (receive, dequeue, take) returns OP_LATER and calls
 * op_finish() when the time has come, from any thread, perhaps before its own
 * return. Such an op carries OP_ASYNC.
 */
#ifndef OP_OP_H
#define OP_OP_H

#include "base/arena.h"
#include "base/pool.h"
#include "op/attr.h"
#include "op/cancel.h"
#include "op/resource.h"
#include "op/variable.h"

struct op_ctx;
struct op_node;
struct rendezvous;

/* How the executor treats it. Almost all ops are ORDINARY. */
enum op_kind {
    OP_ORDINARY,
    OP_SWITCH, /* an output that it leaves unset is dead */
    OP_MERGE,
    OP_ENTER,
    OP_EXIT,
    OP_NEXT_ITERATION,
    OP_CONTROL_TRIGGER,
    OP_SEND, /* runs with a dead input too */
    OP_RECV, /* may leave its output unset: it is dead */
    OP_ARG,
    OP_RETVAL,
};

enum op_flags {
    OP_STATEFUL = 1,    /* never folded or merged with its twin */
    OP_ASYNC = 2,       /* may return OP_LATER */
    OP_BLOCKING = 4,    /* does file I/O: never on a loop's thread */
    OP_EXPENSIVE = 8,   /* costs more than its input's size tells */
    OP_UNINIT_REF = 16, /* takes a reference to a variable without value */
    OP_LIGHT = 32,      /* costs nothing, whatever its input's size */
};

#define OP_LATER   ((enum mst_code)(-1))
#define OP_SCRATCH 256
#define DT_ANY     DT_INVALID

struct op_kernel {
    enum dtype dtype; /* of the key attribute; DT_ANY for all */
    enum mst_code (*run)(struct op_ctx *c);
};

struct op_def {
    const char *name;
    /* "ref: Ref(T), value: T", "values: N * T", "components: Tcomponents"
     * (a list(type) attribute), "handle: resource", "axis: int32". */
    const char *in, *out;
    /* "T: {float, double}; N: int >= 1; axis: int = 0; name: string = ''",
     * separated by semicolons. Sets: numbertype, realnumbertype, type. */
    const char *attr;
    enum op_kind kind;
    unsigned flags;  /* enum op_flags */
    const char *key; /* the type attribute that picks the kernel; NULL: "T" */
    /* Once a node: reads attributes. May be NULL. */
    enum mst_code (*init)(struct op_node *n, struct status *st);
    void (*done)(struct op_node *n); /* the end of what init made */
    const struct op_kernel *kernel;  /* ends with { 0 } (run == NULL) */
};

/* What nodes of one graph on one device share. */
struct op_env {
    struct resources *resources;
    struct pool *pool;
    const char *device; /* "/job:ps/replica:0/task:0/device:CPU:0" */
    uint64_t device_incarnation;
    /* State of nodes by their names, shared by all graphs of one session (a
     * seeded random node goes on where another graph of the session left it,
     * as in TensorFlow); NULL: each node has its own. Only for init(). */
    struct resources *segment;
    /* How functions of the graph's library are called; see op/call.h. */
    const struct op_calls *calls;
    struct plan *plan;
};

/* A node of a compiled graph, as its kernel knows it. */
struct op_node {
    const char *name;
    const struct op_def *def;
    const struct op_env *env;
    struct arena *arena; /* lives as long as the node */
    const struct attr *attrs;
    int attr_count;
    int in_count, out_count;
    const char *in_name; /* of the node that input 0 comes from, or NULL */
    const int *in_types, *out_types; /* enum dtype, + DT_REF for references */
    enum mst_code (*run)(struct op_ctx *c);
    int key_type; /* what picked the kernel, or DT_ANY */
    void *state;  /* init()'s */
};

/* What lies on an edge: a tensor, or a counted reference to a variable. A dead
 * value is neither. */
struct op_value {
    struct tensor t;
    struct variable *ref;
};

/* One step, as kernels see it. */
struct op_step {
    int64_t id;
    struct cancel *cancel;
    struct rendezvous *rendezvous;
    struct step_store *store; /* stacks and tensor arrays of this step */
};

/* One run of a node's kernel. */
struct op_ctx {
    const struct op_node *node;
    struct op_step *step;
    struct op_value *in;  /* the kernel may move values out of it */
    struct op_value *out; /* all unset at the start */
    struct status *st;
    uint64_t frame_id; /* 0 outside of loops */
    int64_t iter;
    bool in_dead; /* only for OP_SEND: the input is dead */
    void (*finish)(struct op_ctx *c, enum mst_code code); /* the executor's */
    /* OP_SCRATCH bytes that last until op_finish(): asynchronous ops only. */
    void *scratch;
};

/* The end of a run that returned OP_LATER. On failure c->st is filled. */
static inline void op_finish(struct op_ctx *c, enum mst_code code)
{
    c->finish(c, code);
}

/* ---- for kernels ---- */

static inline const struct tensor *op_in(const struct op_ctx *c, int i)
{
    return &c->in[i].t;
}

static inline struct tensor *op_out(struct op_ctx *c, int i)
{
    return &c->out[i].t;
}

/* A fresh output. Its type is the node's for that output. */
enum mst_code op_out_new(struct op_ctx *c, int i, int ndim,
                         const int64_t *dims) MUST_USE;
enum mst_code op_out_like(struct op_ctx *c, int i,
                          const struct tensor *like) MUST_USE;
/* Output i of the shape of input `in`, over the input's own bytes when nobody
 * else has them and the element size is the same. The input can be read as
 * before, but the output has its reference then: it is handed on only once. */
enum mst_code op_out_forward(struct op_ctx *c, int i, int in) MUST_USE;
/* Output i is input `in`, the same value. Once, as above. */
void op_out_same(struct op_ctx *c, int i, int in);
/* All of it, a tensor or a reference; the input is unset after. */
void op_out_move(struct op_ctx *c, int i, int in);
enum mst_code op_fail(struct op_ctx *c, enum mst_code code, const char *fmt,
                      ...) PRINTF(3, 4);
/* How many threads besides this one are worth waking for so much work; 0: none.
 */
int op_threads(const struct op_ctx *c, double work_ns);
/* fn over [0, n) on the node's threads, when n * cost (about nanoseconds an
 * element) is worth it. */
void op_for(const struct op_ctx *c, int64_t n, double cost_ns,
            void (*fn)(void *arg, int64_t begin, int64_t end), void *arg);

/* ---- attributes: only those that the definition names ---- */

int64_t op_attr_int(const struct op_node *n, const char *name);
float op_attr_float(const struct op_node *n, const char *name);
bool op_attr_bool(const struct op_node *n, const char *name);
int op_attr_type(const struct op_node *n, const char *name);
struct attr_text op_attr_str(const struct op_node *n, const char *name);
const struct shape *op_attr_shape(const struct op_node *n, const char *name);
const struct tensor *op_attr_tensor(const struct op_node *n, const char *name);
/* The attribute itself: lists, functions, and attributes that may be absent
 * (NULL then). */
const struct attr *op_attr(const struct op_node *n, const char *name);

/* ---- the table of ops ---- */

const struct op_def *op_find(const char *name);
/* All of them, sorted by name, ends with NULL. */
const struct op_def *const *op_all(void);

#endif
