/*
 * The loop and its group. What a turn is stands in io/loop.h.
 *
 * Posting: a stack that any thread pushes on and that the loop takes as a
 * whole, then turns around, so that tasks run in the order of posting. The loop
 * says in `asleep` that it is about to sleep and looks at the stack once more
 * after that; a poster pushes first and looks at `asleep` after that. Both use
 * sequentially consistent operations, so at least one sees the other, and an
 * eventfd is written only when the loop really sleeps. The eventfd is watched
 * edge-triggered and never read: each write is an edge.
 */
#include "io/loop.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fpu.h"
#include "base/mem.h"
#include "base/thread.h"
#include "io/heap.h"
#include "io/spin.h"

#define EVENTS_MAX 64

struct loop {
    _Atomic(struct loop_task *) posted; /* newest first */
    atomic_bool asleep, nudged;
    pthread_mutex_t turn; /* held by who runs one */
    atomic_bool hosted;   /* the loop's own thread runs it, or is about to */
    atomic_int guests;    /* that run it, or want to */
    atomic_uint visits;   /* of guests so far; the loop's thread sleeps on it */
    uint64_t deadline_ns; /* of the turn under way; 0: none */
    pthread_t thread;
    int epoll_fd, event_fd;
    bool stopping;
    int expected;
    uint64_t now_ns;
    struct loop_hook hooks; /* a ring; this one is its head */
    struct heap timers;
    struct spin spin;
    int event_at, event_count; /* of the turn under way */
    struct epoll_event events[EVENTS_MAX];
    uint8_t *scratch;
    struct loop_task stop;
};

struct loop_group {
    int count;
    atomic_uint next;
    struct loop loops[];
};

static _Thread_local const struct loop *inside;

void loop_post(struct loop *loop, struct loop_task *task)
{
    uint64_t one = 1;

    task->next = atomic_load_explicit(&loop->posted, memory_order_relaxed);
    while (!atomic_compare_exchange_weak(&loop->posted, &task->next, task))
        ;
    /* The loop thread is awake when it posts to itself. */
    if (inside == loop || !atomic_load(&loop->asleep))
        return;
    if (atomic_exchange(&loop->asleep, false))
        CHECK(write(loop->event_fd, &one, sizeof(one)) == sizeof(one));
}

void loop_nudge(struct loop *loop)
{
    uint64_t one = 1;

    if (inside == loop)
        return;
    atomic_store(&loop->nudged, true);
    if (atomic_exchange(&loop->asleep, false))
        CHECK(write(loop->event_fd, &one, sizeof(one)) == sizeof(one));
}

bool loop_inside(const struct loop *loop)
{
    return inside == loop;
}

uint64_t loop_now_ns(const struct loop *loop)
{
    return loop->now_ns;
}

void loop_expect(struct loop *loop, int delta)
{
    loop->expected += delta;
}

uint8_t *loop_scratch(struct loop *loop)
{
    return loop->scratch;
}

static bool ring_empty(const struct loop_hook *head)
{
    return head->next == head;
}

static void ring_init(struct loop_hook *head)
{
    head->prev = head->next = head;
}

void loop_hook_add(struct loop *loop, struct loop_hook *hook)
{
    struct loop_hook *head = &loop->hooks;

    if (hook->next)
        return;
    hook->prev = head->prev;
    hook->next = head;
    head->prev->next = hook;
    head->prev = hook;
}

void loop_hook_del(struct loop_hook *hook)
{
    if (!hook->next)
        return;
    hook->prev->next = hook->next;
    hook->next->prev = hook->prev;
    hook->prev = hook->next = NULL;
}

void loop_timer_set(struct loop *loop, struct loop_timer *timer,
                    uint64_t when_ns)
{
    timer->when_ns = when_ns;
    heap_put(&loop->timers, timer);
}

void loop_timer_del(struct loop *loop, struct loop_timer *timer)
{
    heap_take(&loop->timers, timer);
}

enum mst_code loop_watch_add(struct loop *loop, struct loop_watch *watch,
                             uint32_t events, struct status *st)
{
    struct epoll_event ev = { .events = events, .data.ptr = watch };

    if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, watch->fd, &ev))
        return status_set(st, MST_RESOURCE_EXHAUSTED,
                          "cannot watch a descriptor: %s", strerror(errno));
    return MST_OK;
}

void loop_watch_del(struct loop *loop, struct loop_watch *watch)
{
    epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, watch->fd, NULL);
    for (int i = loop->event_at; i < loop->event_count; i++)
        if (loop->events[i].data.ptr == watch)
            loop->events[i].data.ptr = NULL;
}

static bool have_posted(struct loop *loop)
{
    return atomic_load(&loop->posted) != NULL || atomic_load(&loop->nudged);
}

/* When the wait ends without an event; UINT64_MAX: never. */
static uint64_t wait_end_ns(const struct loop *loop)
{
    const struct loop_timer *t = heap_first(&loop->timers);
    uint64_t end = loop->deadline_ns ? loop->deadline_ns : UINT64_MAX;

    return t ? MIN(t->when_ns, end) : end;
}

/* Milliseconds until then, rounded up. */
static int sleep_ms(const struct loop *loop)
{
    uint64_t end = wait_end_ns(loop), ms;

    if (end == UINT64_MAX)
        return -1;
    if (end <= loop->now_ns)
        return 0;
    ms = (end - loop->now_ns + 999999) / 1000000;
    return (int)MIN(ms, (uint64_t)INT32_MAX);
}

static int poll_events(struct loop *loop, int timeout_ms)
{
    int n = epoll_wait(loop->epoll_fd, loop->events, EVENTS_MAX, timeout_ms);

    CHECK(n >= 0 || errno == EINTR);
    loop->now_ns = clock_ns();
    return n < 0 ? 0 : n;
}

/* Polls until something is there or the budget is spent. */
static int poll_for(struct loop *loop, uint64_t budget_ns)
{
    uint64_t end = MIN(loop->now_ns + budget_ns, wait_end_ns(loop));
    int n;

    do
        n = poll_events(loop, 0);
    while (!n && !have_posted(loop) && loop->now_ns < end);
    return n;
}

static int sleep_for(struct loop *loop)
{
    int n = 0;

    atomic_store(&loop->asleep, true);
    if (!have_posted(loop))
        n = poll_events(loop, sleep_ms(loop));
    atomic_store(&loop->asleep, false);
    return n;
}

static int wait_events(struct loop *loop)
{
    uint64_t begin, budget;
    int n = 0;

    if (have_posted(loop) || !ring_empty(&loop->hooks))
        return poll_events(loop, 0);
    begin = loop->now_ns = clock_ns();
    budget =
        spin_budget_ns(&loop->spin, begin,
                       loop->expected > 0 || atomic_load(&loop->guests) > 0);
    if (budget)
        n = poll_for(loop, budget);
    if (!n && !have_posted(loop))
        n = sleep_for(loop);
    spin_waited(&loop->spin, loop->now_ns - begin);
    return n;
}

static void run_events(struct loop *loop, int n)
{
    loop->event_count = n;
    for (loop->event_at = 0; loop->event_at < n;) {
        struct epoll_event *ev = &loop->events[loop->event_at++];
        struct loop_watch *w = ev->data.ptr;

        if (w)
            w->ready(w, ev->events);
    }
    loop->event_count = 0;
}

static void run_posted(struct loop *loop)
{
    struct loop_task *newest = atomic_exchange(&loop->posted, NULL);
    struct loop_task *first = NULL;

    while (newest) {
        struct loop_task *next = newest->next;

        newest->next = first;
        first = newest;
        newest = next;
    }
    while (first) {
        struct loop_task *task = first;

        first = task->next;
        task->run(task);
    }
}

static void run_timers(struct loop *loop)
{
    struct loop_timer *t;

    while ((t = heap_first(&loop->timers)) && t->when_ns <= loop->now_ns) {
        heap_take(&loop->timers, t);
        t->fire(t);
    }
}

static void run_hooks(struct loop *loop)
{
    struct loop_hook mine, *head = &loop->hooks;

    if (ring_empty(head))
        return;
    /* Those that are added from now on are for the next turn. */
    mine = *head;
    mine.next->prev = mine.prev->next = &mine;
    ring_init(head);
    while (!ring_empty(&mine)) {
        struct loop_hook *hook = mine.next;

        loop_hook_del(hook);
        hook->run(hook);
    }
}

static void turn(struct loop *loop)
{
    run_events(loop, wait_events(loop));
    atomic_store_explicit(&loop->nudged, false, memory_order_relaxed);
    if (have_posted(loop))
        run_posted(loop);
    run_timers(loop);
    run_hooks(loop);
}

/* ---- guests ---- */

bool loop_enter(struct loop *loop)
{
    if (inside)
        return false;
    if (atomic_fetch_add(&loop->guests, 1) || atomic_load(&loop->hosted))
        loop_nudge(loop); /* someone is in a turn, and is to end it */
    pthread_mutex_lock(&loop->turn);
    atomic_fetch_add_explicit(&loop->visits, 1, memory_order_relaxed);
    inside = loop;
    return true;
}

bool loop_turn(struct loop *loop, uint64_t deadline_ns)
{
    loop->deadline_ns = deadline_ns;
    turn(loop);
    loop->deadline_ns = 0;
    return atomic_load(&loop->guests) == 1;
}

void loop_leave(struct loop *loop)
{
    inside = NULL;
    pthread_mutex_unlock(&loop->turn);
    atomic_fetch_sub(&loop->guests, 1);
}

/* The loop's thread: waits until the guests are gone for good. */
static void stay_away(struct loop *loop)
{
    const struct timespec away = { .tv_nsec = GUEST_AWAY_NS };
    unsigned visits;

    atomic_store(&loop->hosted, false);
    do {
        visits = atomic_load(&loop->visits);
        syscall(SYS_futex, &loop->visits, FUTEX_WAIT_PRIVATE, visits, &away,
                NULL, 0);
    } while (atomic_load(&loop->guests) ||
             atomic_load(&loop->visits) != visits);
    atomic_store(&loop->hosted, true);
}

static void *loop_main(void *arg)
{
    struct loop *loop = arg;
    bool stopping = false;

    fpu_flush_denormals(); /* cheap kernels run here */
    loop->now_ns = clock_ns();
    while (!stopping) {
        if (atomic_load(&loop->guests))
            stay_away(loop);
        pthread_mutex_lock(&loop->turn);
        inside = loop;
        if (!loop->stopping && !atomic_load(&loop->guests))
            turn(loop);
        stopping = loop->stopping;
        inside = NULL;
        pthread_mutex_unlock(&loop->turn);
    }
    inside = loop;
    /* What the last users left behind: closing, freeing. */
    while (atomic_load(&loop->posted) || !ring_empty(&loop->hooks)) {
        run_posted(loop);
        run_hooks(loop);
    }
    return NULL;
}

static void run_stop(struct loop_task *task)
{
    CONTAINER(task, struct loop, stop)->stopping = true;
}

/* The eventfd only has to end the wait. */
static void woken(struct loop_watch *watch, uint32_t events)
{
}

static void loop_start(struct loop *loop, int i, int spin_us_max)
{
    static struct loop_watch wake = { .ready = woken };
    struct epoll_event ev = { .events = EPOLLIN | EPOLLET, .data.ptr = &wake };
    char name[16];

    pthread_mutex_init(&loop->turn, NULL);
    atomic_init(&loop->hosted, true);
    ring_init(&loop->hooks);
    spin_init(&loop->spin, spin_us_max);
    loop->scratch = mem_new(LOOP_SCRATCH);
    loop->stop.run = run_stop;
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    loop->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    CHECK(loop->epoll_fd >= 0 && loop->event_fd >= 0);
    CHECK(!epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, loop->event_fd, &ev));
    CHECK(!thread_start(&loop->thread, NULL, loop_main, loop));
    snprintf(name, sizeof(name), "muster-io%d", i);
    pthread_setname_np(loop->thread, name);
}

struct loop_group *loop_group_new(const struct loop_opts *opts)
{
    int cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
    int count = opts && opts->loops > 0 ? opts->loops : MAX(1, cores / 4);
    struct loop_group *g =
        mem_new(sizeof(*g) + (size_t)count * sizeof(g->loops[0]));

    g->count = count;
    for (int i = 0; i < count; i++)
        loop_start(&g->loops[i], i, opts ? opts->spin_us_max : 0);
    return g;
}

static void loop_done(struct loop *loop)
{
    pthread_mutex_destroy(&loop->turn);
    close(loop->epoll_fd);
    close(loop->event_fd);
    heap_done(&loop->timers);
    spin_done(&loop->spin);
    mem_free(loop->scratch);
}

void loop_group_free(struct loop_group *group)
{
    if (!group)
        return;
    for (int i = 0; i < group->count; i++)
        loop_post(&group->loops[i], &group->loops[i].stop);
    for (int i = 0; i < group->count; i++)
        pthread_join(group->loops[i].thread, NULL);
    for (int i = 0; i < group->count; i++)
        loop_done(&group->loops[i]);
    mem_free(group);
}

int loop_group_size(const struct loop_group *group)
{
    return group->count;
}

struct loop *loop_group_at(struct loop_group *group, int i)
{
    return &group->loops[i];
}

struct loop *loop_group_next(struct loop_group *group)
{
    unsigned i = atomic_fetch_add(&group->next, 1);

    return &group->loops[i % (unsigned)group->count];
}
