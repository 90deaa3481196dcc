/*
 * The walks of a window in one dimension, forward and back.
 */
#include "kernel/window_axis.h"

void window_axis_forward(struct window_axis *a, const struct window_dim *d)
{
    *a = (struct window_axis){ .count = d->out,
                               .step = d->stride,
                               .start = -d->before,
                               .reach = (d->size - 1) * d->dilation + 1,
                               .taps = d->size,
                               .off_step = d->dilation,
                               .tap_step = 1,
                               .out_step = 1,
                               .source = d->in,
                               .dest = d->out,
                               .size = d->size };
}

static int64_t gcd(int64_t a, int64_t b)
{
    while (b) {
        int64_t t = a % b;

        a = b;
        b = t;
    }
    return a;
}

/*
 * h + before = stride * i + phase. Tap k, when k * dilation - phase is a
 * multiple j of the stride, takes y[i - j] to it.
 */
void window_axis_back(struct window_axis *a, const struct window_dim *d,
                      int64_t phase)
{
    int64_t g = gcd(d->dilation, d->stride), step = d->stride / g;
    int64_t first = 0, last, far, i0, i1;

    while (first < step && (first * d->dilation - phase) % d->stride)
        first++;
    *a = (struct window_axis){ .step = 1,
                               .out_step = d->stride,
                               .source = d->out,
                               .dest = d->in,
                               .size = d->size };
    if (first < step && first < d->size)
        a->taps = (d->size - 1 - first) / step + 1;
    last = first + MAX(a->taps - 1, 0) * step;
    far = a->taps ? (last * d->dilation - phase) / d->stride : 0;
    a->off_step = d->dilation / g;
    a->tap = last;
    a->tap_step = -step;
    a->reach = a->taps ? (a->taps - 1) * a->off_step + 1 : 1;
    /* The first and the last i whose h is inside of x. */
    i0 = (d->before - phase + d->stride - 1) / d->stride;
    if (d->before < phase)
        i0 = 0;
    i1 = d->in - 1 + d->before - phase;
    i1 = i1 < 0 ? -1 : i1 / d->stride;
    a->count = MAX(i1 - i0 + 1, 0);
    a->start = i0 - far;
    a->out = d->stride * i0 + phase - d->before;
}
