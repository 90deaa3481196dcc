#include "api/cluster_watch.h"

#include <pthread.h>
#include <time.h>

#include "api/cluster_call.h"
#include "base/clock.h"
#include "base/mem.h"
#include "client/link.h"
#include "server/message.h"

struct cluster_watch {
    char *target; /* as the caller wrote it */
    struct client_link link;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    Muster__WatchResponse *news; /* not taken yet; NULL: none */
    bool over;
    struct status status; /* over: why */
};

static void on_message(const struct rpc_data *msg, void *arg)
{
    struct cluster_watch *w = arg;

    pthread_mutex_lock(&w->lock);
    if (!w->news || !w->news->n_members) {
        control_free(w->news);
        w->news = CONTROL_UNPACK(muster__watch_response, msg->data, msg->len);
        pthread_cond_signal(&w->changed);
    }
    pthread_mutex_unlock(&w->lock);
}

static void on_over(const struct rpc_reply *reply, void *arg)
{
    struct cluster_watch *w = arg;

    pthread_mutex_lock(&w->lock);
    w->over = true;
    if (reply->status->code)
        status_copy(&w->status, reply->status);
    else
        status_set(&w->status, MST_UNAVAILABLE, "%s has ended the watch",
                   w->target);
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

enum mst_code cluster_watch_open(const char *target, uint64_t revision,
                                 uint64_t instance, struct cluster_watch **ret,
                                 struct status *st)
{
    Muster__WatchRequest q = MUSTER__WATCH_REQUEST__INIT;
    struct cluster_watch *w;
    pthread_condattr_t attr;
    struct rpc_msg m;
    char *address;

    if (cluster_call_address(target, &address, st))
        return st->code;
    w = MEM_NEW(struct cluster_watch);
    w->target = mem_str(target);
    client_link_open_at(&w->link, address, NULL);
    pthread_mutex_init(&w->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&w->changed, &attr);
    pthread_condattr_destroy(&attr);
    q.revision = revision;
    q.instance = instance;
    message_pack(&m, &q.base);
    rpc_client_call_unref(rpc_channel_call(
        w->link.channel,
        &(struct rpc_request){ .path = CLUSTER_CALL_PATH(Watch),
                               .msg = &m,
                               .message = on_message,
                               .done = on_over,
                               .arg = w }));
    mem_free(address);
    *ret = w;
    return MST_OK;
}

void cluster_watch_close(struct cluster_watch *w)
{
    if (!w)
        return;
    client_link_close(&w->link);
    control_free(w->news);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    mem_free(w->target);
    mem_free(w);
}

enum mst_code cluster_watch_next(struct cluster_watch *w, uint64_t end_ms,
                                 Muster__WatchResponse **ret, struct status *st)
{
    struct timespec end = { (time_t)(end_ms / 1000),
                            (long)(end_ms % 1000 * 1000000) };
    enum mst_code rc = MST_OK;

    pthread_mutex_lock(&w->lock);
    while (!w->news && !w->over &&
           !pthread_cond_timedwait(&w->changed, &w->lock, &end))
        ;
    if (!w->news && w->over) {
        rc = status_copy(st, &w->status);
        cluster_call_explain(w->target, CLUSTER_CALL_PATH(Watch), 0, st);
    } else {
        *ret = w->news;
        w->news = NULL;
    }
    pthread_mutex_unlock(&w->lock);
    return rc;
}
