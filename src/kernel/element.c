#include "kernel/element.h"

#include <string.h>

bool element_shape_known(const struct shape *s)
{
    for (int i = 0; i < s->ndim; i++)
        if (s->dims[i] < 0)
            return false;
    return s->ndim >= 0;
}

struct shape element_shape_of(const struct tensor *t)
{
    struct shape s = { .ndim = t->ndim };

    memcpy(s.dims, t->dims, t->ndim * sizeof(s.dims[0]));
    return s;
}

bool element_shape_merge(const struct shape *a, const struct shape *b,
                         struct shape *ret)
{
    struct shape s = a->ndim < 0 ? *b : *a;

    if (a->ndim >= 0 && b->ndim >= 0) {
        if (a->ndim != b->ndim)
            return false;
        for (int i = 0; i < s.ndim; i++) {
            if (a->dims[i] >= 0 && b->dims[i] >= 0 && a->dims[i] != b->dims[i])
                return false;
            s.dims[i] = MAX(a->dims[i], b->dims[i]);
        }
    }
    *ret = s;
    return true;
}

enum mst_code element_shape_join(struct op_ctx *c, struct shape *a,
                                 const struct shape *b)
{
    char x[SHAPE_TEXT_MAX], y[SHAPE_TEXT_MAX];

    if (element_shape_merge(a, b, a))
        return MST_OK;
    if (a->ndim != b->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "PartialTensorShape: Incompatible ranks during merge: "
                       "%d vs. %d",
                       a->ndim, b->ndim);
    return op_fail(c, MST_INVALID_ARGUMENT,
                   "PartialTensorShape: Incompatible shapes during merge: %s "
                   "vs. %s",
                   shape_text(a->ndim, a->dims, x),
                   shape_text(b->ndim, b->dims, y));
}

struct shape element_shape_tail(const struct shape *s)
{
    struct shape tail = { .ndim = s->ndim < 0 ? -1 : s->ndim - 1 };

    if (tail.ndim > 0)
        memcpy(tail.dims, s->dims + 1,
               (size_t)tail.ndim * sizeof(tail.dims[0]));
    return tail;
}

bool element_shape_batch(const struct shape *s, int64_t n, struct shape *ret)
{
    struct shape batch = { .ndim = s->ndim + 1 };

    if (s->ndim < 0 || s->ndim >= TENSOR_RANK_MAX)
        return false;
    batch.dims[0] = n;
    memcpy(batch.dims + 1, s->dims, (size_t)s->ndim * sizeof(s->dims[0]));
    *ret = batch;
    return true;
}

enum mst_code element_row(const struct tensor *t, int64_t i, struct tensor *ret,
                          struct status *st)
{
    struct tensor row;
    enum mst_code rc = tensor_slice(&row, t, i, 1, st);

    if (rc)
        return rc;
    row.ndim--;
    memmove(row.dims, row.dims + 1, row.ndim * sizeof(row.dims[0]));
    *ret = row;
    return MST_OK;
}
