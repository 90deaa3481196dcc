/*
 * One dimension of a window as a walk: every position of a destination sees
 * some taps of the window, each at its own place of a source.
 *
 * Forward, the destination is the output and the source the input. For the
 * gradient of the input it is the other way round; with a stride of s the
 * positions of the input fall into s phases, which see different taps, and each
 * phase is a walk of its own.
 */
#ifndef KERNEL_WINDOW_AXIS_H
#define KERNEL_WINDOW_AXIS_H

#include "kernel/window.h"

struct window_axis {
    int64_t count;         /* positions */
    int64_t step;          /* of the source, from one to the next */
    int64_t start;         /* of the source, where position 0 begins */
    int64_t reach;         /* of the source, that a position sees */
    int64_t taps;          /* how many of the window */
    int64_t off_step;      /* of the source, from tap to tap */
    int64_t tap, tap_step; /* which they are */
    int64_t out, out_step; /* where positions are in the destination */
    int64_t source, dest;  /* how long they are */
    int64_t size;          /* of the window */
};

void window_axis_forward(struct window_axis *a, const struct window_dim *d);
/* Positions h of the input with (h + before) % stride == phase. */
void window_axis_back(struct window_axis *a, const struct window_dim *d,
                      int64_t phase);

/* Taps [*lo, *hi) of position i are inside of the source. */
static inline void window_axis_inside(const struct window_axis *a, int64_t i,
                                      int64_t *lo, int64_t *hi)
{
    int64_t at = a->start + i * a->step, room = a->source - at;

    *lo = at < 0 ? (-at + a->off_step - 1) / a->off_step : 0;
    *hi = room > 0 ? MIN((room - 1) / a->off_step + 1, a->taps) : 0;
    *lo = MIN(*lo, *hi);
}

/* How many positions from i on have all of their taps inside; 0 for none. */
static inline int64_t window_axis_whole(const struct window_axis *a, int64_t i)
{
    int64_t at = a->start + i * a->step, last = a->source - a->reach;

    return at < 0 || at > last ? 0
                               : MIN((last - at) / a->step + 1, a->count - i);
}

#endif
