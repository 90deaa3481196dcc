/*
 * A training session: what tf.compat.v1.train.MonitoredTrainingSession is in
 * Python, for a graph that was exported with all that it needs.
 *
 * training_begin() opens a session and sees to it that the model is ready. The
 * chief restores the newest checkpoint, or else initialises the variables; the
 * others wait until that has happened. Then come the local variables, what a
 * SyncReplicasOptimizer wants done, and the queue runners. When a step gives
 * UNAVAILABLE or ABORTED, because a task was lost, training_recover() does it
 * all again.
 *
 * Collections that are looked at: init_op, ready_op, ready_for_local_init_op,
 * local_init_op, variables, local_variables, savers, global_step,
 * queue_runners; and sync_chief_init_op, sync_local_init_op,
 * sync_init_tokens_op, which hold what the optimizer's hook would run. Where a
 * collection is missing the variables' own initializers serve, and readiness
 * is asked of every variable.
 *
 * Threads: one, but for training_stop().
 */
#ifndef TRAIN_TRAINING_H
#define TRAIN_TRAINING_H

#include "client/meta_graph.h"
#include "client/placer.h"
#include "client/runner.h"
#include "train/checkpoint.h"

struct training;

struct training_opts {
    struct meta_graph *graph; /* outlives it */
    struct placer_opts place;
    struct server *server; /* the worker's own task, or: */
    const char *target;    /* a master elsewhere */
    bool chief;
    const char *checkpoint_dir; /* NULL: nothing is kept */
    int keep;                   /* checkpoints; -1: as the graph's saver says */
    /* What a step feeds, fetches and runs. */
    struct client_want want;
    /* Told of what takes long, for a person; may be NULL. */
    void (*say)(void *arg, const char *text);
    void *arg;
};

enum mst_code training_new(const struct training_opts *opts,
                           struct training **ret, struct status *st) MUST_USE;
void training_free(struct training *t); /* accepts NULL */

/* Waits for the cluster, and for the chief, as long as it takes. CANCELLED
 * after training_stop(). */
enum mst_code training_begin(struct training *t, struct status *st) MUST_USE;
/* Whether a failed step may be had by training_recover(). */
bool training_is_lost(enum mst_code code);
enum mst_code training_recover(struct training *t, struct status *st) MUST_USE;
/* Closes the session; the tasks keep their variables. */
void training_end(struct training *t);

enum mst_code training_step(struct training *t, const struct tensor *feeds,
                            struct tensor *fetches, struct status *st) MUST_USE;
/* Anything else on the same session. */
enum mst_code training_run(struct training *t, const struct client_want *want,
                           const struct tensor *feeds, struct tensor *fetches,
                           struct status *st) MUST_USE;
struct client_session *training_session(struct training *t);

/* The tensor that reads the global step, or NULL; and its value, 0 if the
 * graph has none. */
const char *training_step_tensor(const struct training *t);
enum mst_code training_global_step(struct training *t, int64_t *ret,
                                   struct status *st) MUST_USE;
/* A checkpoint of this step; nothing happens if there is one already. */
enum mst_code training_save(struct training *t, int64_t step,
                            struct status *st) MUST_USE;

/* From any thread: nothing more is begun. `now`: what is under way is given
 * up as well. */
void training_stop(struct training *t, bool now);
bool training_stopped(struct training *t);

#endif
