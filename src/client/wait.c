#include "client/wait.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"

enum { WAITING, SLEEPING, INSIDE, SIGNALLED };

void client_wait_init(struct client_wait *w)
{
    atomic_init(&w->state, WAITING);
    spin_init(&w->spin, 0);
}

void client_wait_done(struct client_wait *w)
{
    spin_done(&w->spin);
}

void client_wait_reset(struct client_wait *w, struct loop *loop)
{
    w->loop = loop;
    atomic_store(&w->state, WAITING);
}

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

/* True when it was signalled meanwhile. */
static bool poll(struct client_wait *w, uint64_t now_ns)
{
    uint64_t end_ns = now_ns + spin_budget_ns(&w->spin, now_ns, true);

    if (end_ns == now_ns)
        return false;
    do {
        for (int i = 0; i < 32; i++) {
            if (atomic_load_explicit(&w->state, memory_order_acquire) ==
                SIGNALLED)
                return true;
            relax();
        }
    } while (clock_ns() < end_ns);
    return false;
}

static bool sleep_until(struct client_wait *w, uint64_t deadline_ns)
{
    struct timespec until = { (time_t)(deadline_ns / 1000000000),
                              (long)(deadline_ns % 1000000000) };
    int expected = atomic_load(&w->state); /* WAITING, or INSIDE until now */

    if (expected == SIGNALLED ||
        !atomic_compare_exchange_strong(&w->state, &expected, SLEEPING))
        return true;
    while (atomic_load(&w->state) != SIGNALLED) {
        if (deadline_ns && clock_ns() >= deadline_ns)
            return false;
        syscall(SYS_futex, &w->state, FUTEX_WAIT_BITSET_PRIVATE, SLEEPING,
                deadline_ns ? &until : NULL, NULL, FUTEX_BITSET_MATCH_ANY);
    }
    return true;
}

bool client_wait_until(struct client_wait *w, uint64_t deadline_ns)
{
    uint64_t now_ns;
    bool good;

    if (atomic_load_explicit(&w->state, memory_order_acquire) == SIGNALLED)
        return true;
    now_ns = clock_ns();
    good = poll(w, now_ns) || sleep_until(w, deadline_ns);
    spin_waited(&w->spin, clock_ns() - now_ns);
    return good;
}

static bool is_signalled(struct client_wait *w)
{
    return atomic_load_explicit(&w->state, memory_order_acquire) == SIGNALLED;
}

/* Turns of the loop until one brought something to do, or the end. False when
 * another thread wants to have the loop. */
static bool take_turns(struct client_wait *w, struct pool_kept *kept,
                       uint64_t deadline_ns)
{
    bool mine = loop_enter(w->loop);

    if (!mine)
        return false;
    pool_keep(kept);
    while (mine && !kept->first && !is_signalled(w) &&
           !(deadline_ns && clock_ns() >= deadline_ns))
        mine = loop_turn(w->loop, deadline_ns);
    pool_keep_end();
    loop_leave(w->loop);
    return mine;
}

bool client_wait_inside(struct client_wait *w, struct pool_kept *kept,
                        uint64_t deadline_ns)
{
    int state = WAITING;
    bool mine = w->loop != NULL;

    if (mine)
        atomic_compare_exchange_strong(&w->state, &state, INSIDE);
    for (;;) {
        while (pool_kept_run(kept))
            ;
        if (is_signalled(w))
            return true;
        if (deadline_ns && clock_ns() >= deadline_ns)
            return false;
        if (!mine)
            return client_wait_until(w, deadline_ns);
        mine = take_turns(w, kept, deadline_ns);
    }
}

void client_wait_signal(struct client_wait *w)
{
    struct loop *loop = w->loop; /* w may be gone once it is signalled */
    int was = atomic_exchange(&w->state, SIGNALLED);

    if (was == SLEEPING)
        syscall(SYS_futex, &w->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    else if (was == INSIDE)
        loop_nudge(loop);
}
