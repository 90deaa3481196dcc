/*
 * The orders in which rows leave a queue.
 *
 * All keep their rows in the queue's one array. First-in-first-out uses it as
 * a ring; the others begin at its start. Shuffling takes the row that
 * TensorFlow's generator points to and fills the gap with the last one. The
 * priority queue is a binary heap. Both do every step as TensorFlow's do, so
 * that also rows of equal priority come out in its order.
 */
#include <string.h>

#include "base/mem.h"
#include "kernel/queue.h"

static size_t row_bytes(const struct queue *q)
{
    return (size_t)q->config.columns * sizeof(*q->rows);
}

static void set_row(struct queue *q, size_t i, const struct tensor *row)
{
    memcpy(queue_row(q, i), row, row_bytes(q));
}

static void resize(struct queue *q, size_t room)
{
    struct tensor *rows = mem_array(room, row_bytes(q));

    for (size_t i = 0; i < q->count; i++)
        memcpy(rows + i * (size_t)q->config.columns, queue_row(q, i),
               row_bytes(q));
    mem_free(q->rows);
    q->rows = rows;
    q->head = 0;
    q->room = room;
}

static void grow(struct queue *q)
{
    if (q->count == q->room)
        resize(q, q->room ? q->room * 2 : 4);
}

/* A queue that was long once does not stay large. */
static void shrink(struct queue *q)
{
    if (q->room > 64 && q->count < q->room / 8)
        resize(q, q->room / 2);
}

static void put_last(struct queue *q, struct tensor *row)
{
    grow(q);
    set_row(q, q->count++, row);
}

static void put_first(struct queue *q, struct tensor *row)
{
    grow(q);
    q->head = (q->head - 1) & (q->room - 1);
    q->count++;
    set_row(q, 0, row);
}

static void take_first(struct queue *q, struct tensor *row)
{
    memcpy(row, queue_row(q, 0), row_bytes(q));
    q->head = (q->head + 1) & (q->room - 1);
    q->count--;
    shrink(q);
}

const struct queue_order queue_fifo = {
    .name = "FIFOQueue",
    .text_name = "FIFOQueue",
    .put = put_last,
    .take = take_first,
    .give_back = put_first,
};

const struct queue_order queue_padding = {
    .name = "PaddingFIFOQueue",
    .text_name = "FIFOQueue",
    .partial_shapes = true,
    .put = put_last,
    .take = take_first,
    .give_back = put_first,
};

static void take_random(struct queue *q, struct tensor *row)
{
    size_t at = philox_word(&q->random) % q->count;

    memcpy(row, queue_row(q, at), row_bytes(q));
    q->count--;
    if (at != q->count)
        set_row(q, at, queue_row(q, q->count));
    shrink(q);
}

const struct queue_order queue_shuffle = {
    .name = "RandomShuffleQueue",
    .text_name = "RandomShuffleQueue",
    .put = put_last,
    .take = take_random,
    .give_back = put_last,
};

/* ---- priority ---- */

static int64_t priority(const struct tensor *row)
{
    return *TENSOR_DATA(&row[0], int64_t);
}

/* Moves later rows down from `at` until `row` finds its place. */
static void sift_up(struct queue *q, size_t at, const struct tensor *row)
{
    while (at > 0) {
        size_t parent = (at - 1) / 2;

        if (priority(queue_row(q, parent)) <= priority(row))
            break;
        set_row(q, at, queue_row(q, parent));
        at = parent;
    }
    set_row(q, at, row);
}

static void put_heap(struct queue *q, struct tensor *row)
{
    grow(q);
    sift_up(q, q->count++, row);
}

/* The gap at the top goes down to a leaf, then the last row takes it and goes
 * up again. */
static void take_heap(struct queue *q, struct tensor *row)
{
    size_t gap = 0, last = q->count - 1;

    memcpy(row, queue_row(q, 0), row_bytes(q));
    while (gap * 2 + 1 < last) {
        size_t child = gap * 2 + 2;

        if (child >= last ||
            priority(queue_row(q, child)) > priority(queue_row(q, child - 1)))
            child--;
        set_row(q, gap, queue_row(q, child));
        gap = child;
    }
    q->count--;
    if (gap != last)
        sift_up(q, gap, queue_row(q, last));
    shrink(q);
}

const struct queue_order queue_priority = {
    .name = "PriorityQueue",
    .text_name = "PriorityQueue",
    .whole_batch = true,
    .put = put_heap,
    .take = take_heap,
    .give_back = put_heap,
};
