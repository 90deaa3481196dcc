/*
 * A client's session on this master: its graph, the tasks it may use, and the
 * steps that were compiled for it.
 *
 * A step is compiled once for each combination of feeds, fetches and targets,
 * in the order in which the client names them: the graph is pruned and cut,
 * and every part is registered with its task. The part of this very task is
 * compiled in place; no message is sent for it, neither now nor when it runs.
 *
 * Locks: graph_lock for the graph, which may be held for long (a pool thread
 * works under it); lock for the tables, held for moments. graph_lock is taken
 * first.
 */
#ifndef SERVER_MASTER_SESSION_H
#define SERVER_MASTER_SESSION_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/map.h"
#include "base/pool.h"
#include "graph/partition.h"
#include "rpc/channel.h"
#include "server/quick.h"
#include "server/worker.h"

struct master_run;

/* One task of the session. */
struct master_task {
    char *name;                   /* "/job:ps/replica:0/task:0" */
    struct place_device *devices; /* those that it has said it has */
    int device_count, device_room;
    struct rpc_channel *channel; /* NULL: this task */
    bool ours;                   /* it runs muster */
    struct quick_peer *quick;    /* then; NULL: there is no quick path */
};

struct master_session {
    atomic_int refs;
    char handle[17];
    struct worker *worker;
    struct pool *pool;
    struct session *local; /* on this task's worker */
    struct peers *peers;   /* of a session with its own cluster, or NULL */
    struct master_task *tasks;
    int task_count, own_task;
    struct place_device *devices; /* of all tasks */
    struct place_opts place;
    bool log_placement;
    bool plain;         /* its steps are not optimised */
    int64_t timeout_ms; /* of steps that do not say; 0: none */
    pthread_mutex_t graph_lock;
    struct source graph; /* under graph_lock */
    int64_t version;     /* under graph_lock */
    pthread_mutex_t lock;
    struct map compiled;  /* under lock, as all that follows */
    struct map callables; /* number + 1 -> compiled */
    int64_t callable_next;
    struct map partials; /* handle -> master_partial */
    struct master_run *runs;
    bool closed;
    void (*idle)(void *arg); /* called once when closed and without runs */
    void *idle_arg;
};

/* One reference; everything else is the caller's to fill in. */
struct master_session *master_session_new(struct worker *worker,
                                          struct pool *pool);
struct master_session *master_session_ref(struct master_session *ms);
void master_session_unref(struct master_session *ms);

/* Adds nodes to the graph and places them. May take long. */
enum mst_code master_session_extend(struct master_session *ms,
                                    const void *graph, size_t len,
                                    struct buffer *owner,
                                    struct status *st) MUST_USE;

/* What one kind of step is, on each of its tasks. */
struct compiled_part {
    int task;
    bool transfers;
    bool between;      /* some with third tasks */
    bool late;         /* some perhaps after the part has ended */
    struct plan *plan; /* here */
    char *handle;      /* elsewhere */
};

struct compiled {
    atomic_int refs;
    struct arena arena; /* names */
    struct part_want want;
    int *feed_types;
    struct compiled_part *parts;
    int count;
    struct pb_out *graphs; /* the parts' GraphDefs as fields 3, for metadata */
    /* While it is being made: */
    bool ready; /* under the session's lock */
    struct compile_wait *waiting;
};

/* Someone who needs a compiled step. */
struct compile_wait {
    struct compile_wait *next;
    /* Once, on any thread. c has a reference for it; NULL on failure. */
    void (*done)(struct compile_wait *w, struct compiled *c,
                 const struct status *st);
};

/* Returns the compiled step when there is one, with a reference. Otherwise
 * NULL, and w->done will be called, perhaps before this returns. */
struct compiled *compiled_get(struct master_session *ms,
                              const struct part_want *want,
                              struct compile_wait *w);
struct compiled *compiled_ref(struct compiled *c);
void compiled_unref(struct compiled *c);

#endif
