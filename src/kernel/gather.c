/*
 * Gather: slices of params that indices names, along one axis.
 *
 *   params  [B…, O…, R, S…]     axis is that of R
 *   indices [B…, I…]            as many B as batch_dims says
 *   output  [B…, O…, I…, S…]
 *
 * Params is a tensor or a variable. Of a variable only the rows that are
 * wanted are copied, under its lock, straight into the output.
 */
#include "kernel/args.h"
#include "kernel/rows.h"
#include "kernel/types.h"
#include "kernel/update.h"

/* Nanoseconds for a row, and for each byte of it. */
#define ROW_NS  3.0
#define BYTE_NS 0.1

static enum mst_code gather_init(struct op_node *n, struct status *st)
{
    int64_t *batch_dims = ARENA_NEW(n->arena, int64_t);

    (void)st;
    if (op_attr(n, "batch_dims"))
        *batch_dims = op_attr_int(n, "batch_dims");
    n->state = batch_dims;
    return MST_OK;
}

/* ---- the shape of it ---- */

struct gather {
    const struct tensor *params, *indices;
    int axis, batch_dims;
    int64_t batch, outer, rows, wanted; /* B, O, R, I: products */
    size_t row_bytes;                   /* of S */
    struct tensor *out;
};

/* The axis and batch_dims in place, if they make sense. */
static enum mst_code check(struct op_ctx *c, struct gather *g, int64_t axis)
{
    const int64_t *state = c->node->state;
    int ndim = g->params->ndim, most = g->indices->ndim;
    int64_t batch = *state < 0 ? *state + most : *state;

    if (ndim < 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "params must be at least 1 dimensional");
    if (!args_axis(axis, ndim, &g->axis))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Expected axis in the range [%d, %d), but got %lld",
                       -ndim, ndim, (long long)axis);
    if (batch < 0 || batch > most)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Expected batch_dims in the range [%d, %d], but got "
                       "%lld",
                       -most, most, (long long)*state);
    if (batch >= ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "batch_dims (%lld) must be less than rank(params) "
                       "(%d).",
                       (long long)batch, ndim);
    if (batch > g->axis)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "batch_dims (%lld) must be less than or equal to axis "
                       "(%d).",
                       (long long)batch, g->axis);
    g->batch_dims = (int)batch;
    return MST_OK;
}

static enum mst_code make_output(struct op_ctx *c, struct gather *g)
{
    const struct tensor *p = g->params, *ix = g->indices;
    int64_t dims[2 * TENSOR_RANK_MAX];
    int n = 0;

    for (int i = 0; i < g->batch_dims; i++)
        if (p->dims[i] != ix->dims[i])
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "params.shape[%d]: %lld should be equal to "
                           "indices.shape[%d]: %lld",
                           i, (long long)p->dims[i], i, (long long)ix->dims[i]);
    for (int i = 0; i < g->axis; i++)
        dims[n++] = p->dims[i];
    for (int i = g->batch_dims; i < ix->ndim; i++)
        dims[n++] = ix->dims[i];
    for (int i = g->axis + 1; i < p->ndim; i++)
        dims[n++] = p->dims[i];
    g->out = op_out(c, 0);
    return op_out_new(c, 0, n, dims);
}

/* The output has elements, so the products are no larger than their count. */
static void measure(struct gather *g)
{
    const struct tensor *p = g->params, *ix = g->indices;

    g->batch = args_product(p->dims, 0, g->batch_dims);
    g->outer = args_product(p->dims, g->batch_dims, g->axis);
    g->rows = p->dims[g->axis];
    g->wanted = args_product(ix->dims, g->batch_dims, ix->ndim);
    g->row_bytes = (size_t)args_product(p->dims, g->axis + 1, p->ndim) *
                   dtype_size((enum dtype)p->dtype);
}

/* ---- copying ---- */

/* A row into its place; bytes is constant where that pays. */
static inline __attribute__((always_inline)) void
copy_row(const struct gather *g, const struct rows *r, int64_t base, int64_t at,
         char *to, size_t bytes)
{
    int64_t row = rows_at(r, at);

    if (UNLIKELY(row < 0))
        memset(to, 0, bytes);
    else if (bytes <= 16)
        memcpy(to, (const char *)g->params->data + (size_t)(base + row) * bytes,
               bytes);
    else
        rows_copy(to,
                  (const char *)g->params->data + (size_t)(base + row) * bytes,
                  bytes);
}

/* Output rows [begin, end), counted over batch, outer and wanted. */
static inline __attribute__((always_inline)) void
copy_range(const struct gather *g, int64_t begin, int64_t end, size_t bytes)
{
    struct rows r;
    char *to = (char *)g->out->data + (size_t)begin * bytes;

    rows_init(&r, g->indices, 1, 1, &g->rows);
    while (begin < end) {
        int64_t group = begin / g->wanted, n = begin % g->wanted;
        int64_t m = MIN(end - begin, g->wanted - n);
        int64_t from = group / g->outer * g->wanted + n;

        for (int64_t i = 0; i < m; i++, to += bytes)
            copy_row(g, &r, group * g->rows, from + i, to, bytes);
        begin += m;
    }
}

RACY static void gather_range(void *p, int64_t begin, int64_t end)
{
    const struct gather *g = p;

    switch (g->row_bytes) {
    case 1:
        copy_range(g, begin, end, 1);
        break;
    case 2:
        copy_range(g, begin, end, 2);
        break;
    case 4:
        copy_range(g, begin, end, 4);
        break;
    case 8:
        copy_range(g, begin, end, 8);
        break;
    case 16:
        copy_range(g, begin, end, 16);
        break;
    default:
        copy_range(g, begin, end, g->row_bytes);
    }
}

static void gather_objects(const struct gather *g, int64_t size)
{
    int64_t count = g->batch * g->outer * g->wanted;
    struct rows r;

    rows_init(&r, g->indices, 1, 1, &g->rows);
    for (int64_t i = 0; i < count; i++) {
        int64_t group = i / g->wanted, n = i % g->wanted;
        int64_t row = rows_at(&r, group / g->outer * g->wanted + n);

        if (row >= 0)
            tensor_copy_elems(g->out, i * size, g->params,
                              (group * g->rows + row) * size, size);
    }
}

/* Params is a tensor or the value of a locked variable. */
static enum mst_code gather(struct op_ctx *c, const struct tensor *params,
                            const struct tensor *indices, int64_t axis)
{
    struct gather g = { .params = params, .indices = indices };
    enum mst_code rc = check(c, &g, axis);
    struct rows r;
    int64_t bad, n;

    if (!rc)
        rc = make_output(c, &g);
    if (rc || g.out->count == 0)
        return rc;
    measure(&g);
    rows_init(&r, indices, 1, 1, &g.rows);
    bad = rows_bad(&r);
    if (bad >= 0)
        return rows_fail(c, &r, indices, bad);
    n = g.batch * g.outer * g.wanted;
    if (dtype_is_plain((enum dtype)params->dtype))
        op_for(c, n, ROW_NS + BYTE_NS * (double)g.row_bytes, gather_range, &g);
    else
        gather_objects(&g, g.out->count / n);
    return MST_OK;
}

static enum mst_code gather_run(struct op_ctx *c)
{
    return gather(c, op_in(c, 0), op_in(c, 1), 0);
}

static enum mst_code gather_v2_run(struct op_ctx *c)
{
    if (op_in(c, 2)->ndim != 0)
        return op_fail(c, MST_INVALID_ARGUMENT, "axis must be scalar");
    return gather(c, op_in(c, 0), op_in(c, 1), tensor_int(op_in(c, 2), 0));
}

static enum mst_code resource_gather_run(struct op_ctx *c)
{
    const int64_t *batch_dims = c->node->state;
    struct variable *v;
    enum mst_code rc;

    if (*batch_dims < 0)
        return op_fail(c, MST_INVALID_ARGUMENT, "batch_dims is negative (%lld)",
                       (long long)*batch_dims);
    rc = update_variable(c, 0, &v);
    if (rc)
        return rc;
    pthread_mutex_lock(&v->lock);
    rc = update_check_read(c, v);
    if (!rc)
        rc = gather(c, &v->t, op_in(c, 1), *batch_dims);
    pthread_mutex_unlock(&v->lock);
    return rc;
}

/* ---- records ---- */

const struct op_def def_gather = {
    .name = "Gather",
    .in = "params: Tparams, indices: Tindices",
    .out = "output: Tparams",
    .attr = "validate_indices: bool = true; Tparams: type; "
            "Tindices: {int32, int64}",
    .key = "Tparams",
    .init = gather_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, gather_run }, { 0 } },
};

const struct op_def def_gather_v2 = {
    .name = "GatherV2",
    .in = "params: Tparams, indices: Tindices, axis: Taxis",
    .out = "output: Tparams",
    .attr = "batch_dims: int = 0; Tparams: type; "
            "Tindices: {int16, int32, int64}; Taxis: {int32, int64}",
    .key = "Tparams",
    .init = gather_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, gather_v2_run }, { 0 } },
};

const struct op_def def_resource_gather = {
    .name = "ResourceGather",
    .in = "resource: resource, indices: Tindices",
    .out = "output: dtype",
    .attr = "batch_dims: int = 0; validate_indices: bool = true; dtype: type; "
            "Tindices: {int32, int64}",
    .flags = OP_STATEFUL,
    .key = "dtype",
    .init = gather_init,
    .kernel =
        (const struct op_kernel[]){ { DT_ANY, resource_gather_run }, { 0 } },
};
