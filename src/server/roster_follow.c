/*
 * Tasks that keep no list: they watch a parameter server for changes, and pass
 * on to one what they are asked to change.
 *
 * A watch is one call, whose answer is a stream without an end. When a ps is
 * lost, or silent for longer than a living one would be, the next one is tried,
 * a second later; when it is TensorFlow's, not before long.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "server/reply.h"
#include "server/roster_state.h"
#include "server/worker.h"

#define SILENCE_MS (3 * ROSTER_BEAT_MS)
#define AGAIN_MS   1000
#define FOREIGN_MS 30000
#define PASS_MS    8000

struct follow {
    struct roster *r;
    struct rpc_client_call *call; /* the watch under way, or NULL */
    int tried; /* how many ps were; the present one is behind them */
    uint64_t heard_ms, next_ms;
};

/* The nth ps, counted round and round; NULL when there is none. */
static const struct member *nth_ps(const struct roster *r, int n)
{
    struct members_walk at = { 0 };
    const struct member *m, *first = NULL;
    int count = 0;

    while ((m = members_next(membership_table(r->ms), &at)))
        count += !strcmp(m->job, "ps") && m->address;
    if (!count)
        return NULL;
    n %= count;
    at = (struct members_walk){ 0 };
    while ((m = members_next(membership_table(r->ms), &at)))
        if (!strcmp(m->job, "ps") && m->address && n-- == 0)
            first = m;
    return first;
}

static void on_message(const struct rpc_data *msg, void *arg)
{
    struct follow *f = arg;
    struct roster *r = f->r;
    Muster__WatchResponse *p =
        CONTROL_UNPACK(muster__watch_response, msg->data, msg->len);
    struct member *m = p ? roster_members(p->members, p->n_members) : NULL;

    pthread_mutex_lock(&r->lock);
    f->heard_ms = clock_ms();
    if (!p) {
        rpc_client_call_cancel(f->call);
    } else if (!r->stopped) {
        membership_learn(r->ms, m, p->n_members);
        roster_changed(r);
    }
    pthread_mutex_unlock(&r->lock);
    mem_free(m);
    control_free(p);
}

static void on_over(const struct rpc_reply *reply, void *arg)
{
    struct follow *f = arg;
    struct roster *r = f->r;

    pthread_mutex_lock(&r->lock);
    rpc_client_call_unref(f->call);
    f->call = NULL;
    f->tried++;
    f->next_ms =
        clock_ms() +
        (reply->status->code == MST_UNIMPLEMENTED ? FOREIGN_MS : AGAIN_MS);
    pthread_mutex_unlock(&r->lock);
}

static void watch(struct follow *f)
{
    struct roster *r = f->r;
    const struct member *ps = nth_ps(r, f->tried);
    struct rpc_channel *channel;
    struct rpc_msg m;

    if (!ps)
        return;
    channel = peers_channel(r->peers, ps->job, ps->task);
    rpc_msg_init(&m); /* from the beginning: each ps counts for itself */
    f->heard_ms = clock_ms();
    f->call = rpc_channel_call(
        channel, &(struct rpc_request){ .path = ROSTER_PATH("Watch"),
                                        .msg = &m,
                                        .message = on_message,
                                        .done = on_over,
                                        .arg = f });
    rpc_channel_unref(channel);
}

struct follow *roster_follow_new(struct roster *r)
{
    struct follow *f = MEM_NEW(struct follow);

    f->r = r;
    return f;
}

void roster_follow_tick(struct follow *f)
{
    uint64_t now = clock_ms();

    if (f->call && now > f->heard_ms + SILENCE_MS)
        rpc_client_call_cancel(f->call);
    else if (!f->call && now >= f->next_ms)
        watch(f);
}

void roster_follow_free(struct follow *f)
{
    mem_free(f);
}

/* ---- passing on ---- */

struct passing {
    struct roster *r;
    struct roster_call *c; /* gone when the roster has stopped */
    const char *path;
    uint8_t *body;
    size_t len;
    int tried, tries;
};

static void pass(struct passing *p);

static void passing_free(struct passing *p)
{
    mem_free(p->body);
    mem_free(p);
}

static void on_passed(const struct rpc_reply *reply, void *arg)
{
    struct passing *p = arg;
    struct roster *r = p->r;
    struct rpc_msg m;

    pthread_mutex_lock(&r->lock);
    if (!r->stopped && reply->status->code == MST_UNAVAILABLE &&
        ++p->tried < p->tries) {
        pass(p);
        pthread_mutex_unlock(&r->lock);
        return;
    }
    if (!r->stopped) {
        if (reply->status->code && !strcmp(p->path, ROSTER_PATH("List"))) {
            roster_answer_list(r, p->c->call);
        } else if (reply->status->code) {
            reply_fail(p->c->call, reply->status);
        } else {
            rpc_msg_init(&m);
            rpc_msg_copy(&m, reply->msg.data, reply->msg.len);
            rpc_call_reply(p->c->call, &m);
        }
        roster_call_end(p->c);
    }
    pthread_mutex_unlock(&r->lock);
    passing_free(p);
}

static void pass(struct passing *p)
{
    const struct member *ps = nth_ps(p->r, p->tried);
    struct rpc_channel *channel = peers_channel(p->r->peers, ps->job, ps->task);
    struct rpc_msg m;

    rpc_msg_init(&m);
    rpc_msg_copy(&m, p->body, p->len);
    rpc_client_call_unref(
        rpc_channel_call(channel, &(struct rpc_request){ .path = p->path,
                                                         .msg = &m,
                                                         .deadline_ms = PASS_MS,
                                                         .done = on_passed,
                                                         .arg = p }));
    rpc_channel_unref(channel);
}

/* tries: how many ps, beginning with the first. */
static void pass_on(struct roster *r, struct rpc_call *call, const char *path,
                    const void *body, size_t len, int tries)
{
    struct passing *p;

    pthread_mutex_lock(&r->lock);
    if (r->stopped || !nth_ps(r, 0)) {
        pthread_mutex_unlock(&r->lock);
        reply_fail_with(call, MST_UNAVAILABLE,
                        "There is no parameter server to ask");
        return;
    }
    p = MEM_NEW(struct passing);
    p->r = r;
    p->c = roster_call_new(r, call);
    p->path = path;
    p->body = mem_copy(body, len);
    p->len = len;
    p->tries = tries;
    pass(p);
    pthread_mutex_unlock(&r->lock);
}

void roster_follow_pass(struct roster *r, struct rpc_call *call)
{
    const struct rpc_data *d = rpc_call_request(call);

    /* Twice round: one that has just come up is not known to be up yet. */
    pass_on(r, call, rpc_call_path(call), d->data, d->len, 4);
}

void roster_follow_join(struct roster *r, struct rpc_call *call,
                        const char *job, const char *address)
{
    Muster__JoinRequest q = MUSTER__JOIN_REQUEST__INIT;
    size_t len;
    uint8_t *body;

    q.job = (char *)job;
    q.address = (char *)address;
    len = muster__join_request__get_packed_size(&q);
    body = mem_new(len + 1);
    muster__join_request__pack(&q, body);
    pass_on(r, call, ROSTER_PATH("Join"), body, len, 1);
    mem_free(body);
}
