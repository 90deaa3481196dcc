/*
 * Whether a loop should poll for a while before it sleeps, and for how long.
 *
 * Waking a sleeping thread takes 60-80 us on a virtual machine, several times
 * what a small call over loopback costs otherwise. Polling avoids that, but it
 * takes a core from whoever could compute on it. So a loop polls only while
 *
 *  - the last gaps between events were short: a moving average of them is what
 *    the next one is guessed to be, and polling lasts twice that, at most;
 *  - the machine has a core to spare: no more threads are runnable on it than
 *    it has cores, as /proc/loadavg says (asked at most once in CHECK_NS);
 *  - there is more than one core.
 *
 * Where the cores were busy a moment ago they will be again: there only the
 * shortest waits are polled through, NS_BUSY at most. (Two ps and two workers
 * on two cores: a sixth more steps than with the full time, or with none.)
 *
 * An idle process has long gaps, so it does not poll at all.
 */
#ifndef IO_SPIN_H
#define IO_SPIN_H

#include "base/base.h"

struct spin {
    uint64_t ns_max;     /* 0: never poll */
    uint64_t gap_ns;     /* the guess */
    uint64_t ns_check;   /* when the cores were last asked about */
    uint64_t ns_crowded; /* ... and last found busy */
    int cores, load_fd;
};

/* us_max as in struct loop_opts. */
void spin_init(struct spin *s, int us_max);
void spin_done(struct spin *s);
/* How long to poll now; 0 for going to sleep at once. `expecting`: an answer is
 * outstanding, which makes an event likelier. */
uint64_t spin_budget_ns(struct spin *s, uint64_t now_ns, bool expecting);
/* So long did the loop wait, polling and sleeping, until an event came. */
void spin_waited(struct spin *s, uint64_t ns);

#endif
