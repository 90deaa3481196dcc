/* What the files of the master service share. */
#ifndef SERVER_MASTER_STATE_H
#define SERVER_MASTER_STATE_H

#include "cluster/spec.h"
#include "server/dedup.h"
#include "server/fan.h"
#include "server/master.h"
#include "server/master_session.h"
#include "server/reply.h"

#define METHOD_OF(name) "/tensorflow.WorkerService/" name

struct master {
    char *job;
    int task;
    struct cluster_spec cluster;
    uint8_t *config; /* under every session's own */
    size_t config_len;
    struct worker *worker;
    struct quick *quick;
    struct loop_group *loops;
    struct pool *pool;
    struct dedup ids;
    pthread_mutex_t lock;
    pthread_cond_t idle;
    struct map sessions; /* handle -> master_session, under lock */
    int closing;         /* sessions that are being closed, under lock */
};

/* A session of that handle, with a reference. Answers the call when there is
 * none, with that code and the text's tail. */
struct master_session *master_find_session(struct master *m,
                                           struct rpc_call *call,
                                           struct message_text handle,
                                           enum mst_code code,
                                           const char *tail);
/* True, and the call is answered, when its request could not be read. */
bool master_unreadable(struct rpc_call *call, bool good);
/* False, and the call is answered, when the request came before. */
bool master_is_new(struct master *m, struct rpc_call *call, int64_t id,
                   const char *what);

/* ---- the methods, by file ---- */

void master_create_session(struct rpc_call *call, void *arg);
void master_make_callable(struct rpc_call *call, void *arg);
void master_run_callable_start(struct rpc_call *call, void *arg);
void master_release_callable(struct rpc_call *call, void *arg);
void master_close_session(struct rpc_call *call, void *arg);
void master_reset(struct rpc_call *call, void *arg);

#endif
