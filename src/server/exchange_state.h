/*
 * What the files of an exchange share: exchange.c (the table where values and
 * those who wait for them meet), exchange_ask.c (values that are asked of other
 * tasks by RecvTensor), exchange_push.c (values that go over lanes).
 */
#ifndef SERVER_EXCHANGE_STATE_H
#define SERVER_EXCHANGE_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "server/exchange.h"
#include "server/message.h"

#define EXCHANGE_BUCKETS 64
#define EXCHANGE_LANES   4

/* A value that nobody asked for yet, or someone who waits for one. */
struct entry {
    struct entry *next;
    struct buffer *memory; /* this very piece */
    uint64_t hash;
    struct tensor value;
    bool dead;
    bool held;             /* for another task, which is still to be told */
    bool pull;             /* ... that its value is wanted */
    struct rdv_recv *recv; /* a local receive waits */
    struct waiter *waiter; /* a call waits */
    struct lane *lane;     /* the other end of a lane waits */
    size_t key_len;
    char key[];
};

/* A RecvTensor that this task asks of another. */
struct asking {
    struct asking *prev, *next; /* in x->asked, under x->lock */
    struct exchange *x;
    struct rdv_recv *recv;
    struct rpc_client_call *call; /* under x->lock; NULL until it is known */
    struct peers_wait *wait;      /* under x->lock: for the task to be known */
    struct rpc_channel *channel;
    struct recv_tensor_answer answer;
    struct exchange_transfer *transfer;
    bool cancelled; /* under x->lock */
};

/* A task to which, and from which, this step's values are pushed. */
struct pushed {
    const char *task; /* not ours; stays for as long as the step runs */
    size_t task_len;
    struct lane *lane;
};

struct exchange {
    struct rendezvous base;
    atomic_int refs;
    int64_t step_id;
    struct pool *pool;
    pthread_mutex_t lock;
    char *task; /* NULL until bound */
    struct peers *peers;
    const void *owner; /* which session's; only compared */
    bool aborted, calls_aborted;
    struct status *why; /* of aborted */
    int count;
    struct entry *bucket[EXCHANGE_BUCKETS];
    struct asking asked;                        /* head of a ring */
    struct pushed few[EXCHANGE_LANES], *pushed; /* before anything is run */
    int pushed_count;
    struct lane *relay; /* to all other tasks; one of those, or NULL */
    bool holding;       /* under lock: nothing is passed on yet */
    atomic_bool unsent; /* something was pushed and not flushed */
    void (*orphaned)(void *arg, struct exchange *x);
    void *arg;
};

/* ---- exchange.c ---- */

/* Under lock: takes the first entry of that key which is (or is not) a value.
 */
struct entry *exchange_take(struct exchange *x, const struct rdv_key *key,
                            bool value);
/* Under lock. */
void exchange_put(struct exchange *x, struct entry *e);
struct entry *exchange_entry_new(const struct rdv_key *key);
void exchange_entry_free(struct entry *e);
/* Puts the value under its key, or hands it to who waits. It is taken. */
enum mst_code exchange_put_value(struct exchange *x, const struct rdv_key *key,
                                 struct tensor *value, bool dead,
                                 struct status *st);
enum mst_code exchange_recv_failed(struct rdv_recv *recv,
                                   const struct status *why);

/* The device is one of this task. */
bool exchange_is_here(const struct exchange *x, const char *device, size_t len);

/* ---- exchange_ask.c ---- */

/* Asks the task that the key names. */
void exchange_ask(struct exchange *x, const struct rdv_key *key,
                  struct rdv_recv *recv);
/* Under lock: all that was asked is told that nobody waits any more. */
void exchange_ask_cancel(struct exchange *x);

/* ---- exchange_push.c ---- */

/* The lane to the task of that device, if its values are pushed. */
struct lane *exchange_lane(const struct exchange *x, const char *device,
                           size_t len);
/* The value goes over the lane. It is taken. */
void exchange_send(struct exchange *x, struct lane *lane,
                   const struct rdv_key *key, struct tensor *value, bool dead);
void exchange_flush(struct exchange *x);
/* The other end is told that a late value is wanted now. */
void exchange_send_pull(struct exchange *x, const struct rdv_key *key,
                        struct lane *lane);

#endif
