/*
 * Gather by several numbers: each row of indices names an element of the first
 * D dimensions of params, and what lies below it goes into the output.
 *
 *   params  [P1 … PD, Q…]
 *   indices [I…, D]
 *   output  [I…, Q…]
 */
#include "kernel/args.h"
#include "kernel/rows.h"
#include "kernel/types.h"
#include "kernel/update.h"

#define ROW_NS  4.0
#define BYTE_NS 0.1

static enum mst_code gather_nd_init(struct op_node *n, struct status *st)
{
    bool *ignore = ARENA_NEW(n->arena, bool);
    const char *policy = "";

    if (op_attr(n, "bad_indices_policy"))
        policy = op_attr_str(n, "bad_indices_policy").data;
    if (strcmp(policy, "") && strcmp(policy, "DEFAULT") &&
        strcmp(policy, "ERROR") && strcmp(policy, "IGNORE"))
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Unknown bad indices handling attribute: %s", policy);
    *ignore = !strcmp(policy, "IGNORE");
    n->state = ignore;
    return MST_OK;
}

struct gather_nd {
    const struct tensor *params;
    struct tensor *out;
    struct rows rows;
};

RACY static void gather_nd_range(void *p, int64_t begin, int64_t end)
{
    const struct gather_nd *g = p;
    size_t size = dtype_size((enum dtype)g->params->dtype);
    size_t bytes = (size_t)g->rows.size * size;
    char *to = (char *)g->out->data + (size_t)begin * bytes;

    for (int64_t i = begin; i < end; i++, to += bytes) {
        int64_t at = rows_at(&g->rows, i);

        if (UNLIKELY(at < 0))
            memset(to, 0, bytes);
        else
            rows_copy(to, (const char *)g->params->data + (size_t)at * size,
                      bytes);
    }
}

static void gather_nd_objects(const struct gather_nd *g)
{
    int64_t n = g->rows.size;

    for (int64_t i = 0; i < g->rows.count; i++) {
        int64_t at = rows_at(&g->rows, i);

        if (at >= 0)
            tensor_copy_elems(g->out, i * n, g->params, at, n);
    }
}

static enum mst_code check(struct op_ctx *c, const struct tensor *params,
                           const struct tensor *indices)
{
    if (params->ndim < 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "params must be at least a vector");
    if (indices->ndim < 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "indices must be at least a vector");
    if (indices->dims[indices->ndim - 1] > params->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "index innermost dimension length must be <= params "
                       "rank; saw: %lld vs. %d",
                       (long long)indices->dims[indices->ndim - 1],
                       params->ndim);
    return MST_OK;
}

/* Output of shape I… Q…, of depth D. */
static enum mst_code make_output(struct op_ctx *c, struct gather_nd *g,
                                 const struct tensor *indices)
{
    const struct tensor *p = g->params;
    int64_t dims[2 * TENSOR_RANK_MAX], wanted = 1;
    int depth = (int)indices->dims[indices->ndim - 1], n = 0;
    char text[SHAPE_TEXT_MAX];
    enum mst_code rc;

    for (int i = 0; i + 1 < indices->ndim; i++)
        dims[n++] = indices->dims[i];
    for (int i = 0; i < n; i++)
        wanted = wanted && dims[i];
    if (p->count == 0 && wanted)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Requested more than 0 entries, but params is empty.  "
                       "Params shape: %s",
                       tensor_shape_text(p, text));
    for (int i = depth; i < p->ndim; i++)
        dims[n++] = p->dims[i];
    rc = op_out_new(c, 0, n, dims);
    if (rc)
        return rc;
    g->out = op_out(c, 0);
    rows_init(&g->rows, indices, depth, p->ndim, p->dims);
    if (g->rows.size)
        g->rows.count = g->out->count / g->rows.size;
    return MST_OK;
}

/* Params is a tensor or the value of a locked variable. */
static enum mst_code gather_nd(struct op_ctx *c, const struct tensor *params,
                               const struct tensor *indices)
{
    const bool *ignore = c->node->state;
    struct gather_nd g = { .params = params };
    enum mst_code rc = check(c, params, indices);
    int64_t bad;

    if (!rc)
        rc = make_output(c, &g, indices);
    if (rc || g.out->count == 0)
        return rc;
    bad = *ignore ? -1 : rows_bad(&g.rows);
    if (bad >= 0) {
        rc = rows_fail_nd(c, &g.rows, indices, bad, "param ", params->ndim,
                          params->dims);
        status_append(c->st, ", node name: %s", c->node->name);
        return rc;
    }
    if (dtype_is_plain((enum dtype)params->dtype))
        op_for(c, g.rows.count,
               ROW_NS +
                   BYTE_NS * (double)tensor_bytes(g.out) / (double)g.rows.count,
               gather_nd_range, &g);
    else
        gather_nd_objects(&g);
    return MST_OK;
}

static enum mst_code gather_nd_run(struct op_ctx *c)
{
    return gather_nd(c, op_in(c, 0), op_in(c, 1));
}

static enum mst_code resource_gather_nd_run(struct op_ctx *c)
{
    struct variable *v;
    enum mst_code rc = update_variable(c, 0, &v);

    if (rc)
        return rc;
    pthread_mutex_lock(&v->lock);
    rc = update_check_read(c, v);
    if (!rc)
        rc = gather_nd(c, &v->t, op_in(c, 1));
    pthread_mutex_unlock(&v->lock);
    return rc;
}

const struct op_def def_gather_nd = {
    .name = "GatherNd",
    .in = "params: Tparams, indices: Tindices",
    .out = "output: Tparams",
    .attr = "Tparams: type; Tindices: {int16, int32, int64}; "
            "bad_indices_policy: string = ''",
    .key = "Tparams",
    .init = gather_nd_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, gather_nd_run }, { 0 } },
};

const struct op_def def_resource_gather_nd = {
    .name = "ResourceGatherNd",
    .in = "resource: resource, indices: Tindices",
    .out = "output: dtype",
    .attr = "dtype: type; Tindices: {int32, int64}",
    .flags = OP_STATEFUL,
    .key = "dtype",
    .init = gather_nd_init,
    .kernel =
        (const struct op_kernel[]){ { DT_ANY, resource_gather_nd_run }, { 0 } },
};
