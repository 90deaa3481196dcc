/*
 * Watch: the changes of the list, as a stream.
 *
 * A watch remembers up to which revision it was told, and no more. As soon as
 * the table is beyond that and the message before has left, one message tells
 * all members that have changed meanwhile, each as it is now: one that reads
 * slowly misses steps on the way, never where they led. The first message comes
 * at once, so that the caller knows where it stands, and a silent table sends
 * an empty one now and then, so that it knows that somebody is there.
 *
 * Life: hooks of the call find it until done(), which frees it; it is in the
 * ring until it was answered.
 */
#include "base/clock.h"
#include "base/mem.h"
#include "server/reply.h"
#include "server/roster_state.h"

struct roster_watch {
    struct roster_watch *prev, *next;
    struct roster *r;
    struct rpc_call *call;
    uint64_t revision; /* that it was told of */
    uint64_t beat_ns;  /* when it hears from us even so */
    bool sending, over;
};

static void tell(struct roster_watch *w, uint64_t now_ns)
{
    Muster__WatchResponse p = MUSTER__WATCH_RESPONSE__INIT;
    struct roster *r = w->r;
    struct roster_list l;
    struct rpc_msg m;

    roster_list(r, w->revision, &l);
    p.members = l.ptr;
    p.n_members = l.count;
    p.revision = w->revision = membership_table(r->ms)->revision;
    p.instance = r->instance;
    message_pack(&m, &p.base);
    roster_list_done(&l);
    w->beat_ns = now_ns + ROSTER_BEAT_MS * 1000000ull;
    w->sending = true;
    rpc_call_send(w->call, &m);
}

static bool is_behind(const struct roster_watch *w)
{
    return membership_table(w->r->ms)->revision > w->revision;
}

void roster_watch_tell(struct roster *r, uint64_t now_ns)
{
    for (struct roster_watch *w = r->watches; w; w = w->next)
        if (!w->sending && (is_behind(w) || now_ns >= w->beat_ns))
            tell(w, now_ns);
}

static void end(struct roster_watch *w, enum mst_code code, const char *text)
{
    if (w->prev)
        w->prev->next = w->next;
    else
        w->r->watches = w->next;
    if (w->next)
        w->next->prev = w->prev;
    w->over = true;
    reply_fail_with(w->call, code, text);
}

void roster_watch_end_all(struct roster *r)
{
    while (r->watches)
        end(r->watches, MST_UNAVAILABLE, "The server is stopping");
}

/* ---- hooks ---- */

static void on_sent(void *arg)
{
    struct roster_watch *w = arg;
    struct roster *r = w->r;

    pthread_mutex_lock(&r->lock);
    w->sending = false;
    if (!w->over && is_behind(w))
        tell(w, clock_ns());
    pthread_mutex_unlock(&r->lock);
}

static void on_cancel(void *arg)
{
    struct roster_watch *w = arg;
    struct roster *r = w->r;

    pthread_mutex_lock(&r->lock);
    if (!w->over)
        end(w, MST_CANCELLED, "Cancelled");
    pthread_mutex_unlock(&r->lock);
}

void roster_watch_add(struct roster *r, struct rpc_call *call,
                      const Muster__WatchRequest *q)
{
    struct roster_watch *w = MEM_NEW(struct roster_watch);

    w->r = r;
    w->call = call;
    w->revision = q->instance == r->instance ? q->revision : 0;
    w->next = r->watches;
    if (w->next)
        w->next->prev = w;
    r->watches = w;
    rpc_call_hooks(call, on_cancel, mem_free, w);
    rpc_call_on_sent(call, on_sent);
    tell(w, clock_ns());
}
