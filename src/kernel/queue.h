/*
 * A queue: rows of tensors, and two lines of ops that wait, to put and to
 * take. What distinguishes TensorFlow's four kinds is the order in which rows
 * come out, a small table of functions; the rest is one body.
 *
 * Invariants, under the lock
 *  1. The op at the head of a line cannot go on, or the queue is just being
 *     flushed. Later ones wait for their turn even if they could: first come,
 *     first served.
 *  2. A batch is put and taken row by row, as rows and room come; a batch may
 *     be larger than the capacity. A batch that is cancelled, or that the
 *     queue's end cuts short, gives back what it has taken. Only a queue whose
 *     order depends on all its rows (priority) takes a batch at once.
 *  3. Closing waits in the line of those who put before it. Once closed, there
 *     is nobody in that line.
 *
 * Threads: any; see kernel/wait.h for the rules of the lock.
 */
#ifndef KERNEL_QUEUE_H
#define KERNEL_QUEUE_H

#include "kernel/philox.h"
#include "kernel/wait.h"

#define QUEUE_UNBOUNDED INT32_MAX

struct queue;

struct queue_order {
    const char *name;      /* "FIFOQueue": of the op, in texts */
    const char *text_name; /* in the texts of a single enqueue or dequeue */
    bool whole_batch;      /* takes a batch at once or not at all */
    bool partial_shapes;   /* pads rows of a batch to the largest */
    /* Rows are moved in and out. give_back() undoes take(). */
    void (*put)(struct queue *q, struct tensor *row);
    void (*take)(struct queue *q, struct tensor *row);
    void (*give_back)(struct queue *q, struct tensor *row);
};

extern const struct queue_order queue_fifo, queue_padding, queue_shuffle,
    queue_priority;

/* What a node asks for; made in init(), constant from then on. */
struct queue_config {
    const struct queue_order *order;
    int64_t capacity;
    int columns; /* components of a row */
    const int *types;
    const struct shape *shapes; /* shape_count is columns, or 0: any shape */
    int shape_count;
    int64_t min_after_dequeue, seed, seed2; /* queue_shuffle */
};

struct queue {
    struct object o; /* kind: &queue_kind */
    char *name;
    struct queue_config config; /* with copies of its own */
    pthread_mutex_t lock;
    /* All under lock. Row i is at (head + i) modulo room, a power of two. */
    struct tensor *rows;
    size_t head, count, room;
    struct wait_line puts, takes;
    struct tensor *spare; /* one row, to build or pass on */
    bool closed;
    struct philox_words random; /* queue_shuffle */
};

extern const struct object_kind queue_kind;

struct queue *queue_new(const char *name, const struct queue_config *config);
/* Row i of those that are there, i < q->room. Under the lock. */
struct tensor *queue_row(const struct queue *q, size_t i);

/* What an op wants of a queue. */
enum queue_wish {
    QUEUE_PUT,  /* inputs 1.. are a row */
    QUEUE_PUTS, /* inputs 1.. are batches of rows */
    QUEUE_CLOSE,
    QUEUE_TAKE,        /* the outputs get a row */
    QUEUE_TAKES,       /* the outputs get `count` rows as a batch */
    QUEUE_TAKES_UP_TO, /* … or fewer, when the queue is closed */
};

/* Does it for the op, or returns OP_LATER and does it when it can. Takes over
 * one reference of q. The inputs have been checked. */
enum mst_code queue_run(struct queue *q, struct op_ctx *c, enum queue_wish wish,
                        int64_t count) MUST_USE;
/* Puts a row, moved in, whatever the capacity. */
void queue_put_now(struct queue *q, struct tensor *row);
/* Closes at once; those who wait to put are cancelled. */
void queue_close_now(struct queue *q);
int64_t queue_size(struct queue *q);
bool queue_is_closed(struct queue *q);

/* ---- for kernels ---- */

/* The op's inputs from `fixed` on, or if `out` its outputs, have the types of
 * the queue's columns. */
enum mst_code queue_check_signature(struct op_ctx *c, const struct queue *q,
                                    int fixed, bool out) MUST_USE;
/* The outputs get a batch of no rows. */
enum mst_code queue_take_nothing(struct op_ctx *c,
                                 const struct queue *q) MUST_USE;
/* "[[], [2,3]]", to the end of a message. */
void queue_append_shapes(struct status *st, const struct shape *shapes,
                         int count);

#endif
