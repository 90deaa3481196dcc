/*
 * One question to several tasks: goes on when all have answered. The calls are
 * kept so that they can be given up.
 *
 *   fan_init() -> fan_call() for each -> fan_end() -> ... over()
 */
#ifndef SERVER_FAN_H
#define SERVER_FAN_H

#include <pthread.h>
#include <stdatomic.h>

#include "rpc/channel.h"

struct fan {
    atomic_int left;
    pthread_mutex_t lock;
    struct status st; /* under lock: the first error */
    bool cancelled;   /* under lock */
    struct rpc_client_call **calls;
    int count;
    /* One answer; with NULL as reply after the last. */
    void (*answered)(struct fan *f, int i, const struct rpc_reply *reply);
    void (*over)(struct fan *f);
};

void fan_init(struct fan *f, int count);
void fan_done(struct fan *f);
/* wait: for a task that is not up yet. */
void fan_call(struct fan *f, int i, struct rpc_channel *channel,
              const char *path, struct rpc_msg *m, bool wait);
/* No more questions; or one thing less to wait for. */
void fan_end(struct fan *f);
void fan_cancel(struct fan *f);

#endif
