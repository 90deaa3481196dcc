/*
 * Datasets: input pipelines that a graph describes and an iterator runs.
 *
 * A dataset is a value, an element of a DT_VARIANT tensor: what to do, with
 * which inputs, sizes and functions. It never changes. An iterator of it is
 * the state of going through it once; iterators form the same tree as their
 * datasets, parents above inputs.
 *
 * No thread waits. Asking for the next element (dataset_pull) either answers at
 * once or says OP_LATER, as a function of the pipeline may wait for anything.
 * Each kind of iterator is a state machine, go(): it is called with
 * DATASET_FRESH when an element is wanted, and again with the outcome of what
 * it waited for. Once a pull or a call of its own has said OP_LATER, go()
 * returns that at once and touches nothing: another thread may be in go()
 * already.
 *
 * Nothing is computed before it is asked for, except where a pipeline says so:
 * prefetching and parallel datasets (dataset_ahead.h) begin a tree of their
 * own below them.
 *
 * Functions are called under the step of the op that wants the element, or of
 * what reads ahead, hence cancelled with it. They belong to the graph that the
 * dataset came from, which is kept alive for as long as the dataset is.
 *
 * Threads: an iterator is used by one pull at a time, on whatever thread; the
 * owner of the tree sees to it (dataset_iterator.c, dataset_ahead.c).
 */
#ifndef KERNEL_DATASET_H
#define KERNEL_DATASET_H

#include "kernel/philox.h"
#include "op/call.h"
#include "op/op.h"

#define DATASET_FRESH    ((enum mst_code)(-2))
#define DATASET_INFINITE (-1)
#define DATASET_UNKNOWN  (-2)

struct dataset_iter;
struct dataset;

struct dataset_kind {
    size_t iter_size; /* of the struct that begins with a dataset_iter */
    enum mst_code (*go)(struct dataset_iter *it, enum mst_code got);
    void (*iter_done)(struct dataset_iter *it);      /* may be NULL */
    int64_t (*cardinality)(const struct dataset *d); /* NULL: unknown */
};

/* A function with the values that it was made with. */
struct dataset_func {
    const struct op_calls *calls;
    struct callee *callee;
    struct tensor *captured;
    int captured_count;
};

struct dataset {
    struct object o; /* kind: &dataset_kind */
    const struct dataset_kind *kind;
    struct dataset **inputs;
    int input_count;
    struct tensor *tensors; /* what it was given, by kind */
    int tensor_count;
    int64_t n[3]; /* sizes, by kind */
    int format;   /* of files */
    bool flag;
    struct dataset_func func;
    struct pool *pool; /* of those that read ahead */
    pthread_mutex_t lock;
    struct philox_words seeds; /* under lock: of iterators to come */
    struct tensor *cache;      /* under lock: all elements, one by one */
    int64_t cached;            /* under lock: tensors in it; -1: not yet */
};

extern const struct object_kind dataset_object_kind;

struct dataset_iter {
    struct dataset *d;
    struct dataset_iter *up; /* who pulls; NULL: the root */
    struct op_ctx *c;        /* for whom */
    struct dataset_iter **in;
    /* The element, or `end`. */
    struct tensor *out;
    int count;
    bool end;
    int stage; /* what go() waits for, by kind */
    int64_t at;
    /* A call under way. */
    atomic_int turn;
    enum mst_code called;
    struct op_value *args;
    int arg_count;
    /* The root's. */
    void (*finish)(struct dataset_iter *it, enum mst_code code);
    void *arg;
};

/* ---- datasets ---- */

struct dataset *dataset_new(const struct dataset_kind *kind, int inputs,
                            int tensors);
struct dataset *dataset_ref(struct dataset *d);
void dataset_unref(struct dataset *d);
/* The dataset in a scalar, borrowed; NULL when there is none. */
struct dataset *dataset_of(const struct tensor *t);
int64_t dataset_cardinality(const struct dataset *d);

/* ---- iterators ---- */

struct dataset_iter *dataset_iter_new(struct dataset *d);
void dataset_iter_free(struct dataset_iter *it); /* accepts NULL */
/* The iterator of input i, made when it is first wanted. */
struct dataset_iter *dataset_iter_input(struct dataset_iter *it, int i);
void dataset_iter_drop_input(struct dataset_iter *it, int i);
/* The next element of `in`, for `it`. */
enum mst_code dataset_pull(struct dataset_iter *in,
                           struct dataset_iter *it) MUST_USE;
/* The same for the root of a tree; finish() when it is later. */
enum mst_code dataset_pull_root(struct dataset_iter *it, struct op_ctx *c,
                                void (*finish)(struct dataset_iter *it,
                                               enum mst_code code),
                                void *arg) MUST_USE;
/* What `it` waited for has come: goes on there, and up the tree. */
void dataset_resume(struct dataset_iter *it, enum mst_code code);
/* Calls a function with these (moved) and what it captured; it->out are the
 * results. */
enum mst_code dataset_call(struct dataset_iter *it,
                           const struct dataset_func *f, struct tensor *args,
                           int count) MUST_USE;
/* The element of `from` is that of `it`. */
void dataset_take(struct dataset_iter *it, struct dataset_iter *from);
/* Room for an element of so many components. */
void dataset_room(struct dataset_iter *it, int count);
static inline enum mst_code dataset_end(struct dataset_iter *it)
{
    it->end = true;
    return MST_OK;
}

/* ---- for the ops that make datasets ---- */

#define DATASET_ATTRS                                                          \
    "output_types: list(type) >= 1; output_shapes: list(shape) >= 1"
#define DATASET_META "; metadata: string = ''"

/* Output 0 is that dataset; its one reference is taken over. */
enum mst_code dataset_put(struct op_ctx *c, struct dataset *d) MUST_USE;
/* A dataset of the first `inputs` inputs, which must be such. */
enum mst_code dataset_make(struct op_ctx *c, const struct dataset_kind *kind,
                           int inputs, int tensors,
                           struct dataset **ret) MUST_USE;
/* The outputs are the element of the root: of the types that they have. */
enum mst_code dataset_give(struct op_ctx *c,
                           struct dataset_iter *root) MUST_USE;
/* A whole number, a scalar. */
enum mst_code dataset_number(struct op_ctx *c, int i, const char *name,
                             int64_t *ret) MUST_USE;
/* For init(): node->state is the callee of a function attribute. */
enum mst_code dataset_func_init(struct op_node *n, const char *attr,
                                struct status *st) MUST_USE;
/* d's function captures inputs [first, first + count). */
void dataset_capture(struct op_ctx *c, struct dataset *d, int first, int count);

#endif
