#include "kernel/summary.h"

#include "kernel/real.h"

static void add_element(struct text *t, const struct tensor *x, int64_t i)
{
    enum dtype dt = (enum dtype)x->dtype;

    if (dt == DT_DOUBLE) {
        text_add_double(t, TENSOR_DATA(x, double)[i]);
    } else if (dtype_is_float(dt)) {
        text_add_float(t, (float)real_load(x, i));
    } else if (dt == DT_STRING) {
        text_add_escaped(t, tensor_str(x, i));
    } else if (dt == DT_BOOL) {
        text_addf(t, "%d", TENSOR_DATA(x, bool)[i]);
    } else if (dt == DT_UINT64) {
        text_addf(t, "%llu", (unsigned long long)TENSOR_DATA(x, uint64_t)[i]);
    } else if (dtype_is_int(dt)) {
        text_addf(t, "%lld", (long long)tensor_int(x, i));
    } else {
        text_add(t, "?", 1);
    }
}

/* Between two elements of dimension d: a space, or new lines and an indent. */
static void add_space(struct text *t, int d, int ndim)
{
    if (d == ndim - 1) {
        text_add(t, " ", 1);
        return;
    }
    for (int i = 0; i < ndim - d - 1; i++)
        text_add(t, "\n", 1);
    for (int i = 0; i <= d; i++)
        text_add(t, " ", 1);
}

static void add_dim(struct text *t, const struct tensor *x, int64_t ends, int d,
                    int64_t at, int64_t step)
{
    int64_t n;

    if (d == x->ndim) {
        text_add(t, "\"", x->dtype == DT_STRING);
        add_element(t, x, at);
        text_add(t, "\"", x->dtype == DT_STRING);
        return;
    }
    n = x->dims[d];
    step = n ? step / n : 0;
    text_add(t, "[", 1);
    for (int64_t i = 0; i < MIN(ends, n); i++) {
        if (i)
            add_space(t, d, x->ndim);
        add_dim(t, x, ends, d + 1, at + i * step, step);
    }
    if (n > 2 * ends) {
        add_space(t, d, x->ndim);
        text_add(t, "...", 3);
    }
    for (int64_t i = MAX(ends, n - ends); i < n; i++) {
        add_space(t, d, x->ndim);
        add_dim(t, x, ends, d + 1, at + i * step, step);
    }
    text_add(t, "]", 1);
}

void summary_add(struct text *t, const struct tensor *x, int64_t ends)
{
    if (ends < 0 || ends > x->count)
        ends = x->count;
    if (!x->ndim && !ends)
        text_add(t, "...", 3);
    else
        add_dim(t, x, ends, 0, 0, x->count);
}

/* ---- the older form ---- */

static void add_first(struct text *t, const struct tensor *x, int d,
                      int64_t most, int64_t *at)
{
    if (*at >= most)
        return;
    if (d == x->ndim - 1) {
        for (int64_t i = 0; i < x->dims[d]; i++) {
            if (*at >= most) {
                text_add(t, "...", d ? 3 : 0);
                return;
            }
            text_add(t, " ", i > 0);
            add_element(t, x, (*at)++);
        }
        return;
    }
    for (int64_t i = 0; i < x->dims[d] && *at < most; i++) {
        text_add(t, "[", 1);
        add_first(t, x, d + 1, most, at);
        text_add(t, "]", 1);
    }
}

void summary_add_first(struct text *t, const struct tensor *x, int64_t most)
{
    int64_t at = 0;

    if (most < 0 || most > x->count)
        most = x->count;
    if (x->ndim)
        add_first(t, x, 0, most, &at);
    else if (most)
        add_element(t, x, 0);
    if (x->count > most && (most || x->dtype != DT_BOOL))
        text_add(t, "...", 3);
}
