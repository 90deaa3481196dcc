/*
 * How lanes come and go.
 *
 * Opening one begins with a unary call, Open, over the connection that the
 * master has anyway. A server that does not know it answers UNIMPLEMENTED and
 * is left alone. The answer has a secret, which the preface of the lane has to
 * repeat, and the name of a socket that can be reached on the same host only:
 * if that connects, the two are on one host. Else the lane is a second
 * connection to the same port, where rpc/door.c tells it from HTTP/2.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "io/socket.h"
#include "server/message.h"
#include "server/quick_state.h"
#include "server/reply.h"
#include "server/worker.h"

#define OPEN_MS    5000
#define AGAIN_MS   200   /* after a lane was lost, or could not be opened */
#define REFUSED_MS 60000 /* after the peer said that it has none */
#define BACKLOG    128

/* ---- sides ---- */

struct quick_side *quick_side_ref(struct quick_side *s)
{
    atomic_fetch_add(&s->refs, 1);
    return s;
}

void quick_side_unref(struct quick_side *s)
{
    if (!s || atomic_fetch_sub(&s->refs, 1) != 1)
        return;
    lane_unref(s->lane);
    quick_peer_unref(s->peer);
    map_done(&s->pending);
    map_done(&s->running);
    map_done(&s->kept);
    pthread_mutex_destroy(&s->lock);
    mem_free(s);
}

struct lane *quick_side_lane(const struct quick_side *s)
{
    return s->lane;
}

static void leave_list(struct quick_side *s)
{
    struct quick *q = s->q;

    pthread_mutex_lock(&q->lock);
    if (s->prev)
        s->prev->next = s->next;
    else
        q->sides = s->next;
    if (s->next)
        s->next->prev = s->prev;
    lane_bytes(s->lane, &q->bytes_in, &q->bytes_out);
    q->side_count--;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
}

static void peer_lost(struct quick_peer *p, struct quick_side *s)
{
    struct quick_side *was;

    pthread_mutex_lock(&p->lock);
    p->opening = false;
    p->next_try_ms = clock_ms() + AGAIN_MS;
    was = p->side;
    p->side = NULL;
    pthread_mutex_unlock(&p->lock);
    CHECK(!was || was == s);
    quick_side_unref(was);
}

static void on_lost(struct lane *lane, const char *why, void *arg)
{
    struct quick_side *s = arg;

    if (s->peer)
        peer_lost(s->peer, s);
    quick_side_ends(s, why);
    leave_list(s);
    quick_side_unref(s);
}

static const struct lane_ops lane_ops = { quick_frame, on_lost };

/* Takes the socket. The lane's own reference keeps it until it is lost. NULL
 * when the server stops. */
static struct quick_side *side_new(struct quick *q, struct quick_peer *peer,
                                   struct lane_opts *opts)
{
    struct quick_side *s = MEM_NEW(struct quick_side);
    bool good;

    atomic_init(&s->refs, 1);
    s->q = q;
    s->from.task = -1;
    map_init(&s->pending);
    map_init(&s->running);
    map_init(&s->kept);
    pthread_mutex_init(&s->lock, NULL);
    opts->shared = q->mode == QUICK_SHM;
    opts->pool = worker_steps(q->worker)->pool;
    opts->opens = peer != NULL;
    opts->ops = &lane_ops;
    opts->arg = s;
    pthread_mutex_lock(&q->lock);
    good = !q->stopping;
    if (good) {
        s->lane = lane_new(opts); /* on its loop: no frame comes in between */
        good = s->lane != NULL;
    } else {
        close(opts->fd);
    }
    if (good) {
        s->next = q->sides;
        if (s->next)
            s->next->prev = s;
        q->sides = s;
        q->side_count++;
    }
    pthread_mutex_unlock(&q->lock);
    if (!good) {
        quick_side_unref(s);
        return NULL;
    }
    if (peer) {
        atomic_fetch_add(&peer->refs, 1);
        s->peer = peer;
    }
    return s;
}

/* ---- being opened ---- */

static void accept_lane(struct quick *q, struct loop *loop, int fd, bool local)
{
    struct lane_opts opts = { .loop = loop, .fd = fd, .local = local };
    struct quick_side *s;

    memcpy(opts.preface, q->preface, LANE_PREFACE);
    s = side_new(q, NULL, &opts);
    if (!s)
        return;
    lane_send(s->lane, &(struct lane_out){ .kind = QUICK_HELLO });
    lane_flush(s->lane);
}

static void accept_tcp(struct loop *loop, int fd, void *arg)
{
    accept_lane(arg, loop, fd, false);
}

/* Whoever reaches the socket is on this host; it must be the same user, too. */
static bool is_friend(int fd)
{
    struct ucred who;
    socklen_t len = sizeof(who);

    return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) &&
           who.uid == geteuid();
}

/* A connection on its way to its loop. */
struct arrival {
    struct loop_task task;
    struct quick *q;
    struct loop *loop;
    int fd;
};

static void run_arrival(struct loop_task *task)
{
    struct arrival *a = CONTAINER(task, struct arrival, task);

    accept_lane(a->q, a->loop, a->fd, true);
    mem_free(a);
}

static void on_connection(struct loop_watch *watch, uint32_t events)
{
    struct quick *q = CONTAINER(watch, struct quick, listener);
    int fd = accept4(watch->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    struct arrival *a;

    if (fd < 0)
        return;
    if (!is_friend(fd)) {
        close(fd);
        return;
    }
    a = MEM_NEW(struct arrival);
    a->task.run = run_arrival;
    a->q = q;
    a->loop = loop_group_next(q->loops);
    a->fd = fd;
    loop_post(a->loop, &a->task);
}

/* The name is one of no file, so nothing is left of it. */
static socklen_t unix_addr(const char *name, size_t len, struct sockaddr_un *a)
{
    *a = (struct sockaddr_un){ .sun_family = AF_UNIX };
    memcpy(a->sun_path + 1, name, len);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len);
}

static void listen_local(struct quick *q)
{
    struct sockaddr_un a;
    struct status st;
    socklen_t len;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    snprintf(q->name, sizeof(q->name), "muster-%016llx",
             (unsigned long long)rng_u64());
    len = unix_addr(q->name, strlen(q->name), &a);
    q->listener = (struct loop_watch){ .fd = fd, .ready = on_connection };
    if (fd >= 0 && !bind(fd, (struct sockaddr *)&a, len) &&
        !listen(fd, BACKLOG) &&
        !loop_watch_add(loop_group_at(q->loops, 0), &q->listener, EPOLLIN, &st))
        return;
    if (fd >= 0)
        close(fd);
    q->listener.fd = -1;
    q->name[0] = '\0';
}

/* "/job:worker/replica:0/task:2" of a member. */
static bool is_member(struct quick *q, const void *text, size_t len,
                      struct device_name *ret)
{
    return device_parse(text, len, ret) && ret->task >= 0 &&
           peers_know(worker_peers(q->worker), ret->job, ret->task);
}

/* The request is the task's name. Answers with the preface (1) and the socket's
 * name (2). */
static void open_start(struct rpc_call *call, void *arg)
{
    const struct rpc_data *d = rpc_call_request(call);
    struct quick *q = arg;
    struct device_name from;
    struct rpc_msg m;

    if (!is_member(q, d->data, d->len, &from)) {
        reply_fail_with(call, MST_UNAVAILABLE, "No such task is known");
        return;
    }

    rpc_msg_init(&m);
    message_put_bytes(&m, 1, q->preface, LANE_PREFACE);
    message_put_bytes(&m, 2, q->name, strlen(q->name));
    rpc_call_reply(call, &m);
}

static const struct rpc_method methods[] = {
    { .path = QUICK_OPEN_PATH, .start = open_start, .request_max = 4096 }
};

/* ---- opening ---- */

struct opening {
    struct quick_peer *p;
    struct rpc_channel *channel;
};

static int connect_local(const struct pb_field *name)
{
    struct sockaddr_un a;
    socklen_t len;
    int fd;

    if (!name->len || name->len >= sizeof(a.sun_path))
        return -1;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    len = unix_addr((const char *)name->data, name->len, &a);
    if (!connect(fd, (struct sockaddr *)&a, len) && is_friend(fd))
        return fd;
    close(fd);
    return -1;
}

static int connect_tcp(struct rpc_channel *channel)
{
    struct addr to;

    return rpc_channel_addr(channel, &to) ? socket_connect(&to) : -1;
}

/* True when a lane is on its way. */
static bool go(struct opening *o, const struct rpc_data *msg)
{
    struct lane_opts opts = { .loop = rpc_channel_loop(o->channel), .fd = -1 };
    struct pb_in in = pb_in(msg->data, msg->len);
    struct pb_field f, name = { 0 };
    bool secret = false;

    while (pb_next(&in, &f)) {
        if (f.number == 1 && f.wire == PB_LEN && f.len == LANE_PREFACE &&
            !memcmp(f.data, LANE_MAGIC, strlen(LANE_MAGIC))) {
            memcpy(opts.preface, f.data, LANE_PREFACE);
            secret = true;
        }
        if (f.number == 2 && f.wire == PB_LEN)
            name = f;
    }
    if (!secret)
        return false;
    if (o->p->q->mode == QUICK_SHM)
        opts.fd = connect_local(&name);
    opts.local = opts.fd >= 0;
    if (!opts.local)
        opts.fd = connect_tcp(o->channel);
    return opts.fd >= 0 && side_new(o->p->q, o->p, &opts);
}

static void on_opened(const struct rpc_reply *reply, void *arg)
{
    struct opening *o = arg;
    struct quick_peer *p = o->p;
    uint64_t pause_ms =
        reply->status->code == MST_UNIMPLEMENTED ? REFUSED_MS : AGAIN_MS;

    if (reply->status->code || !go(o, &reply->msg)) {
        pthread_mutex_lock(&p->lock);
        p->opening = false;
        p->next_try_ms = clock_ms() + pause_ms;
        pthread_mutex_unlock(&p->lock);
    }
    rpc_channel_unref(o->channel);
    quick_peer_unref(p);
    mem_free(o);
}

/* The lane that was opened from here is ready. */
static void side_ready(struct quick_side *s)
{
    const char *task = worker_task(s->q->worker);
    struct quick_peer *p = s->peer;
    struct quick_side *was;

    lane_send(s->lane,
              &(struct lane_out){
                  .kind = QUICK_HELLO,
                  .control = &(struct iovec){ (void *)task, strlen(task) },
                  .control_count = 1 });
    pthread_mutex_lock(&p->lock);
    was = p->side;
    p->side = quick_side_ref(s);
    p->opening = false;
    pthread_mutex_unlock(&p->lock);
    quick_side_unref(was); /* a HELLO that came twice */
}

bool quick_hello(struct quick_side *s, const struct lane_frame *f)
{
    struct device_name from;
    bool member;

    if (s->peer) {
        side_ready(s);
        return true;
    }
    /* With the lock, so that quick_forget() finds it or it finds out. */
    pthread_mutex_lock(&s->q->lock);
    member = is_member(s->q, f->data, f->len, &from);
    if (member)
        s->from = from;
    pthread_mutex_unlock(&s->q->lock);
    return member;
}

static void open_lane(struct quick_peer *p, struct rpc_channel *channel)
{
    struct opening *o = MEM_NEW(struct opening);
    const char *task = worker_task(p->q->worker);
    struct rpc_msg m;

    atomic_fetch_add(&p->refs, 1);
    o->p = p;
    o->channel = rpc_channel_ref(channel);
    rpc_msg_init(&m);
    rpc_msg_copy(&m, task, strlen(task));
    rpc_client_call_unref(rpc_channel_call(
        channel, &(struct rpc_request){ .path = QUICK_OPEN_PATH,
                                        .msg = &m,
                                        .deadline_ms = OPEN_MS,
                                        .done = on_opened,
                                        .arg = o }));
}

struct quick_side *quick_peer_side(struct quick_peer *p,
                                   struct rpc_channel *channel)
{
    struct quick_side *s = NULL;
    bool open = false;

    if (!p)
        return NULL;
    pthread_mutex_lock(&p->lock);
    if (p->side) {
        s = quick_side_ref(p->side);
    } else if (!p->opening && clock_ms() >= p->next_try_ms) {
        p->opening = open = true;
    }
    pthread_mutex_unlock(&p->lock);
    if (open)
        open_lane(p, channel);
    return s;
}

struct quick_peer *quick_peer_get(struct quick *q, struct rpc_channel *channel)
{
    const char *target = rpc_channel_target(channel);
    struct quick_peer *p;

    if (q->mode == QUICK_OFF)
        return NULL;
    pthread_mutex_lock(&q->lock);
    p = map_get_str(&q->peers, target);
    if (p) {
        atomic_fetch_add(&p->refs, 1);
    } else {
        p = MEM_NEW(struct quick_peer);
        atomic_init(&p->refs, 1);
        p->q = q;
        p->target = mem_str(target);
        pthread_mutex_init(&p->lock, NULL);
        map_put_str(&q->peers, target, p);
    }
    pthread_mutex_unlock(&q->lock);
    quick_side_unref(quick_peer_side(p, channel));
    return p;
}

void quick_peer_unref(struct quick_peer *p)
{
    struct quick *q;
    bool last;

    if (!p)
        return;
    q = p->q;
    pthread_mutex_lock(&q->lock); /* the table finds it until it is gone */
    last = atomic_fetch_sub(&p->refs, 1) == 1;
    if (last)
        map_take_str(&q->peers, p->target);
    pthread_mutex_unlock(&q->lock);
    if (!last)
        return;
    pthread_mutex_destroy(&p->lock);
    mem_free(p->target);
    mem_free(p);
}

/* ---- the whole ---- */

static enum quick_mode mode_of(const char *text)
{
    if (text && !strcmp(text, "off"))
        return QUICK_OFF;
    return text && !strcmp(text, "tcp") ? QUICK_TCP : QUICK_SHM;
}

struct quick *quick_new(struct worker *worker, struct loop_group *loops)
{
    struct quick *q = MEM_NEW(struct quick);
    uint64_t secret[2] = { rng_u64(), rng_u64() };

    q->mode = mode_of(getenv("MUSTER_QUICK"));
    q->worker = worker;
    q->loops = loops;
    q->listener.fd = -1;
    memcpy(q->preface, LANE_MAGIC, 8);
    memcpy(q->preface + 8, secret, sizeof(secret));
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->changed, NULL);
    map_init(&q->peers);
    return q;
}

void quick_on_lost(struct quick *q, quick_lost_fn *fn, void *arg)
{
    q->lost = fn;
    q->lost_arg = arg;
}

void quick_add(struct quick *q, struct rpc_server *server)
{
    if (q->mode == QUICK_OFF)
        return;
    if (q->mode == QUICK_SHM)
        listen_local(q);
    rpc_server_add(server, methods, COUNT(methods), q);
    rpc_server_lanes(server, accept_tcp, q);
}

static void run_close_listener(struct loop_task *task)
{
    struct quick *q = CONTAINER(task, struct quick, close_listener);

    if (q->listener.fd < 0)
        return;
    loop_watch_del(loop_group_at(q->loops, 0), &q->listener);
    close(q->listener.fd);
    q->listener.fd = -1;
}

void quick_stop(struct quick *q, uint64_t grace_ms)
{
    uint64_t end_ns = clock_wall_us() * 1000 + grace_ms * 1000000;
    struct timespec until = { (time_t)(end_ns / 1000000000),
                              (long)(end_ns % 1000000000) };

    q->close_listener.run = run_close_listener;
    loop_post(loop_group_at(q->loops, 0), &q->close_listener);
    pthread_mutex_lock(&q->lock);
    q->stopping = true;
    while (q->running)
        if (pthread_cond_timedwait(&q->changed, &q->lock, &until))
            break;
    for (struct quick_side *s = q->sides; s; s = s->next)
        lane_shut(s->lane, "The server is stopping");
    while (q->side_count || q->running)
        pthread_cond_wait(&q->changed, &q->lock);
    pthread_mutex_unlock(&q->lock);
}

void quick_forget(struct quick *q, const char *job, int task)
{
    pthread_mutex_lock(&q->lock);
    for (struct quick_side *s = q->sides; s; s = s->next)
        if (s->from.task == task && !strcmp(s->from.job, job))
            s->retired = true;
    pthread_mutex_unlock(&q->lock);
}

void quick_bytes(struct quick *q, uint64_t *ret_in, uint64_t *ret_out)
{
    pthread_mutex_lock(&q->lock);
    *ret_in = q->bytes_in;
    *ret_out = q->bytes_out;
    for (struct quick_side *s = q->sides; s; s = s->next)
        lane_bytes(s->lane, ret_in, ret_out);
    pthread_mutex_unlock(&q->lock);
}

void quick_free(struct quick *q)
{
    if (!q)
        return;
    if (q->listener.fd >= 0)
        close(q->listener.fd);
    map_done(&q->peers);
    pthread_cond_destroy(&q->changed);
    pthread_mutex_destroy(&q->lock);
    mem_free(q);
}
