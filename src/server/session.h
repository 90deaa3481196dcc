/*
 * Sessions of masters on this worker, and the graphs that they registered.
 *
 * A session has a table of peers (the server's own, or one that its master
 * brought), the name its devices go by, and the resources its graphs see (the
 * server's, or its own when it is isolated). Deleting it drops its graphs, not
 * the variables. Steps that run hold on to what they need.
 *
 * Lock: sessions->lock for both tables.
 */
#ifndef SERVER_SESSION_H
#define SERVER_SESSION_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/map.h"
#include "exec/plan.h"
#include "proto/worker.pb-c.h"
#include "server/message.h"
#include "server/peers.h"

struct session {
    atomic_int refs;
    char *handle;
    char *task;   /* "/job:ps/replica:0/task:0" */
    char *device; /* with "/device:CPU:0" */
    struct peers *peers;
    struct resources *resources;
    bool isolated;             /* the resources are its own, and end with it */
    struct resources *segment; /* see op/op.h */
    char *master_task;
    int64_t master_incarnation;
    uint64_t heard_ms; /* clock_ms() of its last call; under the table's lock */
    struct map graphs; /* handle -> plan; under the table's lock */
    uint64_t graph_next;
};

/* What a session has unless its master says otherwise. */
struct session_defaults {
    const char *job, *task, *device;
    struct peers *peers;
    struct resources *resources;
    struct loop_group *loops;
    /* A session left the table: its steps have no master any more. */
    void (*gone)(void *arg, const struct session *session);
    void *arg;
};

struct sessions {
    pthread_mutex_t lock;
    struct map by_handle;
    struct session *legacy; /* for masters that create none */
    struct session_defaults defaults;
};

void sessions_init(struct sessions *s, const struct session_defaults *d);
void sessions_done(struct sessions *s);
size_t sessions_count(struct sessions *s);

enum mst_code
sessions_create(struct sessions *s,
                const Tensorflow__CreateWorkerSessionRequest *request,
                struct status *st) MUST_USE;
void sessions_delete(struct sessions *s, const char *handle);
/* The sessions of a master's task. */
void sessions_delete_of(struct sessions *s, const char *master_task);
/* Tells of every session whose it is and when it was last heard of; fn is
 * called with the table locked. */
void sessions_each(struct sessions *s,
                   void (*fn)(void *arg, const struct session *session),
                   void *arg);
/* called: the master says that it created the session. One reference. */
enum mst_code sessions_find(struct sessions *s, struct message_text handle,
                            bool called, struct session **ret,
                            struct status *st) MUST_USE;
void session_unref(struct session *session);

/* The plan is taken over; the handle is to be freed. */
char *sessions_add_graph(struct sessions *s, struct session *session,
                         struct plan *plan);
/* One reference. */
enum mst_code sessions_find_graph(struct sessions *s, struct session *session,
                                  struct message_text handle, struct plan **ret,
                                  struct status *st) MUST_USE;
enum mst_code sessions_remove_graph(struct sessions *s, struct session *session,
                                    const char *handle,
                                    struct status *st) MUST_USE;

#endif
