/*
 * Queue runners: threads that run the enqueue ops of a graph again and again,
 * as tf.compat.v1.train.QueueRunner and its Coordinator do, until the queue is
 * closed, the session ends or an op fails.
 */
#ifndef TRAIN_QUEUES_H
#define TRAIN_QUEUES_H

#include "client/meta_graph.h"
#include "client/session.h"

struct queues;

/* A thread for each enqueue op of the runners that `wanted` (NULL: all) takes.
 * The session outlives it. */
struct queues *
queues_start(struct client_session *session, const struct meta_graph *graph,
             bool (*wanted)(void *arg, const struct meta_queue_runner *r),
             void *arg);
/* Why one of them failed, if it was neither the end of the data nor a task
 * that is gone, which others notice too. */
enum mst_code queues_status(struct queues *q, struct status *st);
/* Gives up what they wait for, and ends them. NULL is taken. */
void queues_stop(struct queues *q);

#endif
