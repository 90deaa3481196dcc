/*
 * The run state of loops, and of the root, which is a frame of one iteration.
 *
 * An iteration is a block of memory: for each of its frame's nodes a state
 * word, for each input a slot. Values are delivered along edges into slots;
 * the delivery that completes a node makes it ready.
 *
 * The state word of an ordinary node: bits 0-30 count what is still to come,
 * bit 31 says that something came dead. That of a Merge: bits 0-15 count
 * control inputs still to come, 16-29 dead data inputs, bit 30 is taken by the
 * first live input, bit 31 says that its value is in its slot.
 *
 * A node of one input needs no word: what comes is all that it waits for. Nor
 * does the last delivery have to change it, since nobody looks any more.
 *
 * Invariants
 *  1. An iteration's `outstanding` counts nodes that are ready or running. It
 *     becomes zero only when nothing inside of the iteration can make a node
 *     ready any more; what may still come from outside (Enter, the iteration
 *     before, a loop inside) is counted apart. The root's is not kept.
 *  2. Iteration i ends when outstanding is 0, no inner frame is open, and for
 *     i = 0 all Enters have come, for i > 0 iteration i - 1 has ended.
 *  3. A frame ends when its last iteration has and all Enters have come. Only
 *     then do its dead Exits reach the parent; which ones they are is written
 *     in their state words in the last iteration.
 *  4. outstanding becomes zero under frame_lock only, so whoever holds a count
 *     of an iteration knows that it and its frame are there. A node that ends
 *     gives the nodes that it made ready in its own iteration its own count
 *     first, and changes the word by the difference: not at all in a chain.
 *  5. While a node of iteration i runs, iteration i + 1 does not end. So a
 *     value goes on to it without the lock, once it has begun (`newest`).
 *
 * Lock: step->frame_lock for opening and ending frames and iterations, and for
 * all fields without another word. Slots and state words are atomic or belong
 * to who delivers. The root iteration never ends before the step does.
 */
#ifndef EXEC_FRAME_H
#define EXEC_FRAME_H

#include "exec/plan.h"
#include "exec/step.h"

#define STATE_DEAD     0x80000000u
#define MERGE_TAKEN    0x40000000u
#define MERGE_LIVE     0x80000000u
#define MERGE_DEAD_ONE 0x00010000u
#define MERGE_DEAD(w)  (((w) >> 16) & 0x3fffu)
#define MERGE_LEFT(w)  ((w)&0xffffu)

struct iteration;

/* A node that can run. */
struct item {
    const struct plan_node *node;
    struct iteration *iter;
    bool dead;
};

/* What is posted to the pool: an item and those that follow it. */
struct item_job {
    struct pool_job job;
    struct item item;
    struct item_job *more;
};

struct iteration {
    struct frame *frame;
    int64_t number;
    atomic_int outstanding;
    int inner;              /* frames opened from here */
    struct iteration *next; /* in the list of spare ones */
    struct frame *children;
    struct op_value *slots;
    atomic_uint *state;
    struct item_job *jobs;    /* one a node: for posting to the pool */
    struct async_run **async; /* made when first needed, then kept */
};

/* A value that waits for its iteration to begin, or is constant for all. */
struct held {
    const struct plan_node *node;
    struct op_value value;
    bool dead;
};

struct frame {
    struct step *step;
    const struct plan_frame *def;
    int def_index;
    struct frame *parent;
    struct iteration *parent_iter;
    struct frame *sibling;
    uint64_t id;
    int enters_left;
    atomic_llong newest;     /* number of the last iteration begun */
    int alive;               /* iterations that have not ended */
    struct iteration **ring; /* by number modulo parallel + 1 */
    struct held *constants, *waiting;
    int constant_count, constant_room, waiting_count, waiting_room;
};

/* Nodes made ready and not yet run, on one thread. */
struct ready {
    struct iteration *current; /* of the node whose values are delivered */
    int gained;                /* nodes made ready in it so far */
    int head, tail, room;
    struct item *items;
    struct buffer *memory; /* of items, once few is too few */
    struct item few[64];
};

struct async_run {
    struct op_ctx c;
    struct status st;
    struct item item;
    struct pool_job job;
    atomic_int phase;
    enum mst_code code;
    uint64_t start_ns;
    _Alignas(16) uint8_t scratch[OP_SCRATCH];
    struct op_value out[];
};

struct step {
    struct op_step env;
    struct plan *plan;
    struct step *next; /* idle */
    /* Who may still make nodes ready: threads that run some, jobs posted to
     * the pool, asynchronous nodes under way, and holders. */
    atomic_int live;
    atomic_bool failed;
    bool record;
    pthread_mutex_t lock;
    struct status st;        /* under lock */
    struct step_stat *stats; /* under lock */
    int stat_count, stat_room;
    pthread_mutex_t frame_lock;
    struct frame root;
    struct iteration *root_iter;
    struct iteration **spare;    /* by frame, under frame_lock */
    struct frame **spare_frames; /* likewise */
    struct op_value *args, *rets;
    int arg_count;
    void (*on_failed)(void *arg, const struct status *st);
    void (*on_done)(void *arg, struct step *s, const struct status *st);
    void *arg;
};

void ready_init(struct ready *r);
void ready_done(struct ready *r);
void ready_push(struct ready *r, struct item item);

/* Gives outs (NULL: all dead) of a node that ran in iter to its consumers.
 * Then frame_node_done() is called. */
void frame_propagate(struct step *s, const struct plan_node *n,
                     struct iteration *iter, struct op_value *outs, bool dead,
                     struct ready *r);
/* A node of a loop's iteration came to its end. */
void frame_node_done(struct step *s, struct iteration *iter, struct ready *r);

struct iteration *iteration_new(struct step *s, struct frame *f);
void iteration_free(struct iteration *it, const struct plan_frame *def);
void iteration_release(struct iteration *it, const struct plan_frame *def);
/* After a failure: everything that is still open. */
void frame_close_all(struct step *s);
/* The end of the step's memory: frames that were kept for reuse. */
void frame_free_spare(struct step *s);

static inline void value_release(struct op_value *v)
{
    if (v->t.dtype)
        tensor_unref(&v->t);
    if (v->ref) {
        variable_unref(v->ref);
        v->ref = NULL;
    }
}

/* dst, which has nothing, gets what src had. */
static inline void value_move(struct op_value *dst, struct op_value *src)
{
    tensor_move(&dst->t, &src->t);
    dst->ref = src->ref;
    src->ref = NULL;
}

static inline bool value_set(const struct op_value *v)
{
    return v->t.dtype != DT_INVALID || v->ref;
}

#endif
