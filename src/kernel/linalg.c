/*
 * Checks, outputs and the loop over the batch. Errors of single matrices are
 * constant texts, so that threads have little to agree on: whichever comes
 * first is the op's.
 */
#include "kernel/linalg.h"

#include "kernel/cast.h"

/* An empty batch may be of matrices that nobody could count the elements of. */
static enum mst_code too_large(const struct linalg *l, int i)
{
    return op_fail(l->c, MST_RESOURCE_EXHAUSTED,
                   "a matrix of [%lld,%lld] is too large",
                   (long long)l->rows[i], (long long)l->cols[i]);
}

enum mst_code linalg_begin(struct linalg *l, struct op_ctx *c, int in_count)
{
    const struct tensor *first = op_in(c, 0);

    *l = (struct linalg){ .c = c, .in_count = in_count, .count = 1 };
    if (first->ndim < 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input tensor 0 must have rank >= 2, got %d",
                       first->ndim);
    l->batch.ndim = first->ndim - 2;
    for (int d = 0; d < l->batch.ndim; d++) {
        l->batch.dims[d] = first->dims[d];
        l->count *= first->dims[d];
    }
    for (int i = 0; i < in_count; i++) {
        const struct tensor *t = op_in(c, i);

        if (t->ndim != first->ndim)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "All input tensors must have the same rank.");
        for (int d = 0; d < l->batch.ndim; d++)
            if (t->dims[d] != first->dims[d])
                return op_fail(c, MST_INVALID_ARGUMENT,
                               "All input tensors must have the same outer "
                               "dimensions.");
        l->rows[i] = t->dims[t->ndim - 2];
        l->cols[i] = t->dims[t->ndim - 1];
        if (l->rows[i] > INT32_MAX || l->cols[i] > INT32_MAX)
            return too_large(l, i);
    }
    return MST_OK;
}

enum mst_code linalg_square(const struct linalg *l)
{
    if (l->rows[0] == l->cols[0])
        return MST_OK;
    return op_fail(l->c, MST_INVALID_ARGUMENT, "Input matrix must be square.");
}

enum mst_code linalg_out(struct linalg *l, int i, int ndim, int64_t a,
                         int64_t b)
{
    struct shape s = l->batch;

    if (ndim > 0)
        s.dims[s.ndim] = a;
    if (ndim > 1)
        s.dims[s.ndim + 1] = b;
    s.ndim += ndim;
    l->out_size[i] = (ndim > 0 ? a : 1) * (ndim > 1 ? b : 1);
    return op_out_new(l->c, i, s.ndim, s.dims);
}

enum mst_code linalg_out_none(struct linalg *l, int i)
{
    enum mst_code rc = op_out_new(l->c, i, 0, NULL);

    l->out_size[i] = 0;
    if (!rc)
        tensor_zero(op_out(l->c, i));
    return rc;
}

/* ---- the loop ---- */

struct batch_run {
    struct linalg *l;
    const char *(*fn)(const struct linalg_one *m);
    size_t bytes; /* of scratch */
    _Atomic(const char *) wrong;
    atomic_bool no_memory;
};

static void *matrix_at(const struct tensor *t, int64_t size, int64_t i)
{
    size_t elem = dtype_size((enum dtype)t->dtype);

    return size ? (uint8_t *)t->data + (size_t)(size * i) * elem : NULL;
}

static void run_some(void *arg, int64_t begin, int64_t end)
{
    struct batch_run *r = arg;
    struct linalg *l = r->l;
    struct buffer *scratch = r->bytes ? buffer_new(r->bytes) : NULL;

    if (r->bytes && !scratch) {
        atomic_store(&r->no_memory, true);
        return;
    }
    for (int64_t i = begin; i < end && !atomic_load(&r->wrong); i++) {
        struct linalg_one m = { .l = l,
                                .scratch = scratch ? scratch->data : NULL };
        const char *wrong;

        for (int k = 0; k < l->in_count; k++)
            m.in[k] = matrix_at(op_in(l->c, k), l->rows[k] * l->cols[k], i);
        for (int k = 0; k < MIN(l->c->node->out_count, LINALG_ARGS); k++)
            m.out[k] = matrix_at(op_out(l->c, k), l->out_size[k], i);
        wrong = r->fn(&m);
        if (wrong)
            atomic_store(&r->wrong, wrong);
    }
    buffer_unref(scratch);
}

enum mst_code linalg_run(struct linalg *l, double cost_ns, int64_t elems,
                         size_t elem_size,
                         const char *(*fn)(const struct linalg_one *m))
{
    struct batch_run r = { .l = l, .fn = fn };

    if (!l->count)
        return MST_OK;
    if (elems < 0 || elems > TENSOR_BYTES_MAX / (int64_t)elem_size)
        return too_large(l, 0);
    r.bytes = (size_t)elems * elem_size;
    op_for(l->c, l->count, cost_ns, run_some, &r);
    if (atomic_load(&r.wrong))
        return op_fail(l->c, MST_INVALID_ARGUMENT, "%s", atomic_load(&r.wrong));
    if (atomic_load(&r.no_memory))
        return op_fail(l->c, MST_RESOURCE_EXHAUSTED,
                       "no memory for %zu bytes of work space", r.bytes);
    return MST_OK;
}

/* ---- half ---- */

enum mst_code linalg_half(struct op_ctx *c,
                          enum mst_code (*run)(struct op_ctx *c))
{
    static const int floats[LINALG_ARGS] = { DT_FLOAT, DT_FLOAT, DT_FLOAT,
                                             DT_FLOAT };
    struct op_value in[LINALG_ARGS] = { { .ref = NULL } };
    struct op_value out[LINALG_ARGS] = { { .ref = NULL } };
    struct op_node node = *c->node;
    struct op_ctx wide = *c;
    enum mst_code rc = MST_OK;

    CHECK(node.in_count <= LINALG_ARGS && node.out_count <= LINALG_ARGS);
    node.in_types = node.out_types = floats;
    wide.node = &node;
    wide.in = in;
    wide.out = out;
    for (int i = 0; i < node.in_count && !rc; i++)
        rc = cast_tensor(c, &in[i].t, DT_FLOAT, op_in(c, i));
    if (!rc)
        rc = run(&wide);
    for (int i = 0; i < node.out_count && !rc; i++)
        rc = cast_tensor(c, op_out(c, i), DT_HALF, &out[i].t);
    for (int i = 0; i < LINALG_ARGS; i++) {
        tensor_unref(&in[i].t);
        tensor_unref(&out[i].t);
    }
    return rc;
}
