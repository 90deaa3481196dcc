/*
 * Products of many matrices at once: BatchMatMul, where both inputs have the
 * same batch, and V2 and V3, where batches are broadcast.
 */
#include "kernel/batches.h"
#include "kernel/product.h"
#include "kernel/types.h"

struct batch_state {
    bool adj_x, adj_y;
    bool broadcast;
};

static enum mst_code batch_init(struct op_node *n, struct status *st)
{
    struct batch_state *s = ARENA_NEW(n->arena, struct batch_state);

    s->adj_x = op_attr_bool(n, "adj_x");
    s->adj_y = op_attr_bool(n, "adj_y");
    s->broadcast = strcmp(n->def->name, "BatchMatMul") != 0;
    n->state = s;
    return MST_OK;
}

/* V3's three types are attributes of their own, of which few sets go. */
static enum mst_code batch_v3_init(struct op_node *n, struct status *st)
{
    int a = n->in_types[0], b = n->in_types[1], out = n->out_types[0];
    bool bytes_a = a == DT_INT8 || a == DT_UINT8;
    bool bytes_b = b == DT_INT8 || b == DT_UINT8;
    bool mixed = (bytes_a && bytes_b && out == DT_INT32) ||
                 (bytes_a && b == DT_BFLOAT16 && out == DT_BFLOAT16) ||
                 (bytes_b && a == DT_BFLOAT16 && out == DT_BFLOAT16);

    if (!mixed && (a != b || a != out || bytes_a))
        return status_set(
            st, MST_INVALID_ARGUMENT,
            "No OpKernel was registered to support Op '%s' used by {{node "
            "%s}} with these attrs: [Ta=%s, Tb=%s, Tout=%s]",
            n->def->name, n->name, dtype_name(a), dtype_name(b),
            dtype_name(out));
    return batch_init(n, st);
}

static enum mst_code check_ranks(struct op_ctx *c)
{
    const struct batch_state *s = c->node->state;
    const struct tensor *x = op_in(c, 0), *y = op_in(c, 1);
    char xt[SHAPE_TEXT_MAX], yt[SHAPE_TEXT_MAX];

    tensor_shape_text(x, xt);
    tensor_shape_text(y, yt);
    if (!s->broadcast && x->ndim != y->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "In[0] and In[1] has different ndims: %s vs. %s", xt,
                       yt);
    for (int i = 0; i < 2; i++)
        if (op_in(c, i)->ndim < 2)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "In[%d] ndims must be >= 2: %d", i,
                           op_in(c, i)->ndim);
    for (int i = 0; !s->broadcast && i < x->ndim - 2; i++)
        if (x->dims[i] != y->dims[i])
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "In[0].dim(%d) and In[1].dim(%d) must be the same: "
                           "%s vs %s",
                           i, i, xt, yt);
    return MST_OK;
}

static enum mst_code run(struct op_ctx *c, struct gemm *g,
                         const struct shape *batch)
{
    const struct batch_state *s = c->node->state;
    const struct tensor *x = op_in(c, 0), *y = op_in(c, 1);
    struct tensor at = { 0 }; /* three arrays of offsets */
    enum mst_code rc;
    int64_t *places;

    if (!op_out(c, 0)->count)
        return MST_OK;
    g->batch = op_out(c, 0)->count / (g->m * g->n);
    rc = tensor_new(&at, DT_INT64, 2, (int64_t[]){ 3, g->batch }, c->st);
    if (rc)
        return rc;
    places = at.data;
    for (int64_t i = 0; i < g->batch; i++) {
        places[i] = batches_at(x, batch, i);
        places[g->batch + i] = batches_at(y, batch, i);
        places[2 * g->batch + i] = i * g->m * g->n;
    }
    g->a_at = places;
    g->b_at = places + g->batch;
    g->c_at = places + 2 * g->batch;
    rc = product_run(c, g, x, s->adj_x, y, s->adj_y, op_out(c, 0));
    tensor_unref(&at);
    return rc;
}

static enum mst_code batch_matmul(struct op_ctx *c)
{
    const struct batch_state *s = c->node->state;
    const struct tensor *x = op_in(c, 0), *y = op_in(c, 1);
    char xt[SHAPE_TEXT_MAX], yt[SHAPE_TEXT_MAX];
    enum mst_code rc = check_ranks(c);
    struct shape out;
    struct gemm g = { 0 };
    const int64_t *xd, *yd;

    if (rc)
        return rc;
    if (!batches_shape(x, y, &out))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "In[0] and In[1] must have compatible batch "
                       "dimensions: %s vs. %s",
                       tensor_shape_text(x, xt), tensor_shape_text(y, yt));
    xd = &x->dims[x->ndim - 2];
    yd = &y->dims[y->ndim - 2];
    if (xd[!s->adj_x] != yd[s->adj_y])
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Matrix size-incompatible: In[0]: %s, In[1]: %s %d %d",
                       tensor_shape_text(x, xt), tensor_shape_text(y, yt),
                       s->adj_x, s->adj_y);
    g.m = xd[s->adj_x];
    g.k = xd[!s->adj_x];
    g.n = yd[!s->adj_y];
    g.a_row = s->adj_x ? 1 : xd[1];
    g.a_col = s->adj_x ? xd[1] : 1;
    g.b_row = s->adj_y ? 1 : yd[1];
    g.b_col = s->adj_y ? yd[1] : 1;
    g.c_row = g.n;
    out.dims[out.ndim] = g.m;
    out.dims[out.ndim + 1] = g.n;
    rc = op_out_new(c, 0, out.ndim + 2, out.dims);
    return rc ? rc : run(c, &g, &out);
}

#define BATCH_KERNELS                                                          \
    KERNELS({ DT_FLOAT, batch_matmul }, { DT_DOUBLE, batch_matmul },           \
            { DT_HALF, batch_matmul }, { DT_BFLOAT16, batch_matmul },          \
            { DT_INT16, batch_matmul }, { DT_INT32, batch_matmul },            \
            { DT_INT64, batch_matmul }, { DT_COMPLEX64, batch_matmul },        \
            { DT_COMPLEX128, batch_matmul }, )
#define BATCH_ATTRS                                                            \
    "; adj_x: bool = false; adj_y: bool = false; grad_x: bool = false; "       \
    "grad_y: bool = false"

const struct op_def def_batch_mat_mul = {
    .name = "BatchMatMul",
    .in = "x: T, y: T",
    .out = "output: T",
    .attr = "T: {bfloat16, half, float, double, int32, int64, complex64, "
            "complex128}" BATCH_ATTRS,
    .flags = OP_EXPENSIVE,
    .init = batch_init,
    .kernel = BATCH_KERNELS,
};

const struct op_def def_batch_mat_mul_v2 = {
    .name = "BatchMatMulV2",
    .in = "x: T, y: T",
    .out = "output: T",
    .attr = "T: {bfloat16, half, float, double, int16, int32, int64, uint8, "
            "uint16, uint32, uint64, complex64, complex128}" BATCH_ATTRS,
    .flags = OP_EXPENSIVE,
    .init = batch_init,
    .kernel = BATCH_KERNELS,
};

#define SET_V3                                                                 \
    "{bfloat16, half, float, double, uint8, int8, int16, int32, int64, "       \
    "complex64, complex128}"

const struct op_def def_batch_mat_mul_v3 = {
    .name = "BatchMatMulV3",
    .in = "x: Ta, y: Tb",
    .out = "output: Tout",
    .attr = "Ta: " SET_V3 "; Tb: " SET_V3 "; "
            "Tout: {bfloat16, half, float, double, int16, int32, int64, "
            "complex64, complex128}" BATCH_ATTRS,
    .key = "Ta",
    .flags = OP_EXPENSIVE,
    .init = batch_v3_init,
    .kernel = KERNELS({ DT_ANY, batch_matmul }, ),
};
