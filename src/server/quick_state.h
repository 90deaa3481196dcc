/*
 * What the files of the quick path share: quick.c (how lanes come and go),
 * quick_step.c (what the frames say).
 */
#ifndef SERVER_QUICK_STATE_H
#define SERVER_QUICK_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/device.h"
#include "base/map.h"
#include "server/quick.h"
#include "server/run.h"

#define QUICK_OPEN_PATH "/muster.Quick/Open"

enum quick_mode { QUICK_OFF, QUICK_TCP, QUICK_SHM };

struct quick {
    /* Constant. */
    enum quick_mode mode;
    struct worker *worker;
    struct loop_group *loops;
    uint8_t preface[LANE_PREFACE];
    char name[40]; /* of the socket for this host; "": none */
    quick_lost_fn *lost;
    void *lost_arg;

    struct loop_watch listener; /* the first loop's; fd -1: none */
    struct loop_task close_listener;

    pthread_mutex_t lock;
    pthread_cond_t changed; /* fewer sides, or fewer runs */
    struct map peers;       /* target -> quick_peer; under lock, as the rest */
    struct quick_side *sides; /* whose lanes are not lost */
    int side_count;
    int running; /* steps of others */
    bool stopping;
    uint64_t bytes_in, bytes_out; /* of lanes that were lost */
};

/* Another server, as a master here sees it. */
struct quick_peer {
    atomic_int refs; /* the table has none: the last one takes it out */
    struct quick *q;
    char *target;
    pthread_mutex_t lock;
    bool opening;            /* under lock, as the rest */
    struct quick_side *side; /* open; NULL: none, or not yet */
    uint64_t next_try_ms;
};

/* This server's end of a lane, whoever opened it. Counted: by the lane until
 * it is lost, by its peer, and by what runs. */
struct quick_side {
    atomic_int refs;
    struct quick *q;
    struct quick_side *prev, *next; /* in q->sides */
    struct quick_peer *peer;        /* NULL: it was opened from there */
    struct lane *lane;
    struct device_name from; /* who opened it there; under q->lock */
    bool retired; /* who is no member any more: no new steps; under q->lock */

    pthread_mutex_t lock;
    bool lost;          /* under lock, as the rest */
    struct map pending; /* step id -> quick_call: parts that run there */
    struct map running; /* step id -> what runs here for them */
    struct map kept;    /* step ids that they have still to clean up */
};

struct quick_side *quick_side_ref(struct quick_side *s);
/* quick.c: the other end says hello; false when it should not have. */
bool quick_hello(struct quick_side *s, const struct lane_frame *f);

/* quick_step.c */
void quick_frame(struct lane *lane, struct lane_frame *f, void *arg);
/* The lane is no more: everything that depended on it ends. */
void quick_side_ends(struct quick_side *s, const char *why);

#endif
