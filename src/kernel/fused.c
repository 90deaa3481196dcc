/*
 * How a tree of element-wise ops runs: see fused.h.
 *
 * The shape of every op's result is found first. Those that are smaller than
 * the tree's own (a scale made of scalars, a row of means) are computed whole,
 * by their own kernels, and are operands from then on. The others run in
 * blocks; their operands are whole, one element, a row that repeats, or a
 * column (each element repeats along the row).
 *
 * In place: the output may take the bytes of a whole operand, since the last op
 * of a block is the only one that writes to it.
 */
#include "kernel/fused.h"

#include <string.h>

#define BLOCK 1024

/* From this cost on a loop calls a function, whose last bit may depend on
 * where in a row it starts: pointwise.c. */
#define FUNCTION_COST_NS 1.0

/* A row of at most so many elements is laid out over a whole block, when there
 * are enough blocks: calls of a loop cost more than its elements do. */
#define TILED_ROW_MAX    256
#define TILED_BLOCKS_MIN 8
#define TILES_MAX        8

enum operand { WHOLE, ONE, ROW, COLUMN, OTHER };

struct fused_arg {
    enum operand kind;
    const float *data; /* NULL: the block of an op before */
    int slot;
};

struct fused_job {
    const struct fused *f;
    struct fused_arg args[FUSED_OPS_MAX][2];
    int64_t row[FUSED_OPS_MAX]; /* the length of a row; 0: no rows */
    bool whole[FUSED_OPS_MAX];  /* runs in blocks */
    bool tiled[FUSED_OPS_MAX];  /* its rows are as long as a block */
    struct tensor tiles[TILES_MAX];
    int tile_count;
    float *out;
    int64_t count;
};

bool fused_find(const struct op_node *n, struct fused_op *ret)
{
    static const int types[] = { DT_FLOAT, DT_FLOAT };
    const struct op_def *add;
    struct op_node plus;

    *ret = (struct fused_op){ .node = n };
    if (strcmp(n->def->name, "BiasAdd"))
        return pointwise_find(n, &ret->loop);
    if (strcmp(op_attr_str(n, "data_format").data, "NHWC"))
        return false;
    /* A sum with a row. */
    add = op_find("AddV2");
    ret->bias = true;
    plus = (struct op_node){ .name = n->name,
                             .def = add,
                             .in_count = 2,
                             .out_count = 1,
                             .in_types = types,
                             .out_types = types };
    for (const struct op_kernel *k = add->kernel; k->run; k++)
        if (k->dtype == DT_FLOAT)
            plus.run = k->run;
    return plus.run && pointwise_find(&plus, &ret->loop);
}

bool fused_lay_out(struct fused *f)
{
    int top = 0;

    for (int k = 0; k < f->count; k++) {
        struct fused_op *op = &f->ops[k];

        for (int i = 0; i < op->node->in_count; i++)
            top -= op->arg[i] < 0;
        op->slot = top++;
        if (top > FUSED_SLOTS_MAX)
            return false;
    }
    return true;
}

/* ---- op by op ---- */

/* Values: what op k gave, or only its shape. An argument is used up. */
static enum mst_code run_one(struct op_ctx *c, const struct fused *f, int k,
                             struct tensor *values)
{
    const struct fused_op *op = &f->ops[k];
    struct op_value in[2] = { 0 }, out = { 0 };
    struct op_ctx inner = *c;
    enum mst_code rc;

    for (int i = 0; i < op->node->in_count; i++) {
        if (op->arg[i] < 0)
            tensor_move(&in[i].t, &values[~op->arg[i]]);
        else
            in[i].t = tensor_ref(&c->in[op->arg[i]].t);
    }
    inner.node = op->node;
    inner.in = in;
    inner.out = &out;
    rc = op->node->run(&inner);
    for (int i = 0; i < op->node->in_count; i++)
        tensor_unref(&in[i].t);
    if (rc) {
        tensor_unref(&out.t);
        c->node = op->node;
        return rc;
    }
    values[k] = out.t;
    return MST_OK;
}

static enum mst_code run_apart(struct op_ctx *c, const struct fused *f,
                               struct tensor *values)
{
    enum mst_code rc = MST_OK;

    for (int k = 0; k < f->count && !rc; k++)
        if (!values[k].buf) /* it has not been computed yet */
            rc = run_one(c, f, k, values);
    if (!rc)
        tensor_move(op_out(c, 0), &values[f->count - 1]);
    return rc;
}

/* ---- shapes ---- */

static const struct tensor *argument(const struct op_ctx *c,
                                     const struct fused_op *op, int i,
                                     const struct tensor *values)
{
    return op->arg[i] < 0 ? &values[~op->arg[i]] : op_in(c, op->arg[i]);
}

static void set_shape(struct tensor *t, int ndim, const int64_t *dims,
                      int64_t count)
{
    t->dtype = DT_FLOAT;
    t->buf = NULL;
    t->data = NULL;
    t->ndim = (uint8_t)ndim;
    t->count = count;
    memcpy(t->dims, dims, (size_t)ndim * sizeof(dims[0]));
}

/* False: the op fails, and its kernel knows with which words. */
static bool find_shape(const struct op_ctx *c, const struct fused_op *op,
                       const struct tensor *values, struct tensor *ret)
{
    const struct tensor *x = argument(c, op, 0, values), *y;
    struct shape s;

    if (!op->loop.unary) {
        y = argument(c, op, 1, values);
        if (op->bias) {
            if (x->ndim < 2 || y->ndim != 1 ||
                y->dims[0] != x->dims[x->ndim - 1])
                return false;
        } else if (!tensor_same_shape(x, y)) {
            if (op->loop.pair || !shape_broadcast(x, y, &s))
                return false;
            set_shape(ret, s.ndim, s.dims, 1);
            for (int i = 0; i < s.ndim; i++)
                ret->count *= s.dims[i];
            return true;
        }
    }
    set_shape(ret, x->ndim, x->dims, x->count);
    return true;
}

static bool find_shapes(const struct op_ctx *c, const struct fused *f,
                        struct tensor *values)
{
    for (int k = 0; k < f->count; k++)
        if (!find_shape(c, &f->ops[k], values, &values[k]))
            return false;
    return true;
}

/* Of t, which is broadcast to s; a row or column has *ret_row elements. */
static enum operand find_operand(const struct tensor *t, const struct tensor *s,
                                 int64_t *ret_row)
{
    int first = s->ndim - t->ndim, d;
    int64_t inner = 1;

    *ret_row = 0;
    if (t->count == s->count)
        return WHOLE;
    if (t->count == 1)
        return ONE;
    for (d = s->ndim - 1; d >= first && t->dims[d - first] == s->dims[d]; d--)
        inner *= s->dims[d];
    if (inner == t->count) {
        *ret_row = inner;
        return ROW;
    }
    inner = 1;
    for (d = s->ndim - 1; d >= first && t->dims[d - first] == 1; d--)
        inner *= s->dims[d];
    if (inner * t->count != s->count)
        return OTHER;
    *ret_row = inner;
    return COLUMN;
}

/* False: not in blocks. */
static bool find_operands(const struct op_ctx *c, struct fused_job *j, int k,
                          const struct tensor *values, const struct tensor *s)
{
    const struct fused_op *op = &j->f->ops[k];

    j->row[k] = 0;
    for (int i = 0; i < op->node->in_count; i++) {
        const struct tensor *t = argument(c, op, i, values);
        struct fused_arg *a = &j->args[k][i];
        int64_t row;

        a->kind = find_operand(t, s, &row);
        a->data = t->data;
        a->slot = op->arg[i] < 0 ? j->f->ops[~op->arg[i]].slot : 0;
        if (a->kind == OTHER || (row && j->row[k] && row != j->row[k]))
            return false;
        j->row[k] = MAX(j->row[k], row);
    }
    return !j->row[k] || op->loop.cost_ns < FUNCTION_COST_NS;
}

/* Any position of a row begins a block's worth of it then. */
static enum mst_code tile_row(struct op_ctx *c, struct fused_job *j,
                              struct fused_arg *a, int64_t row)
{
    int64_t n = BLOCK + row;
    struct tensor *t = &j->tiles[j->tile_count];
    enum mst_code rc = tensor_new(t, DT_FLOAT, 1, &n, c->st);
    float *to = t->data;

    if (rc)
        return rc;
    j->tile_count++;
    for (int64_t i = 0; i < n; i += row)
        memcpy(to + i, a->data, (size_t)MIN(row, n - i) * sizeof(float));
    a->data = to;
    return MST_OK;
}

static bool is_tiled(const struct fused_job *j, int k)
{
    const struct fused_arg *a = j->args[k];

    return j->whole[k] && j->row[k] && j->row[k] <= TILED_ROW_MAX &&
           a[0].kind != COLUMN && a[1].kind != COLUMN &&
           j->tile_count + 2 <= TILES_MAX;
}

static enum mst_code tile_rows(struct op_ctx *c, struct fused_job *j)
{
    enum mst_code rc = MST_OK;

    if (j->count < TILED_BLOCKS_MIN * BLOCK)
        return MST_OK;
    for (int k = 0; k < j->f->count && !rc; k++) {
        j->tiled[k] = is_tiled(j, k);
        for (int i = 0; j->tiled[k] && i < 2 && !rc; i++)
            if (j->args[k][i].kind == ROW)
                rc = tile_row(c, j, &j->args[k][i], j->row[k]);
    }
    return rc;
}

/* ---- in blocks ---- */

static const float *at(const struct fused_arg *a, const float *blocks,
                       int64_t begin, int64_t pos, int64_t row)
{
    switch (a->kind) {
    case ONE:
        return a->data;
    case ROW:
        return a->data + pos % row;
    case COLUMN:
        return a->data + pos / row;
    default:
        return a->data ? a->data + pos
                       : blocks + (size_t)a->slot * BLOCK + (pos - begin);
    }
}

/* Elements [begin, end) of op k, at most a block of them. */
static void run_op(const struct fused_job *j, int k, float *blocks,
                   int64_t begin, int64_t end)
{
    const struct fused_op *op = &j->f->ops[k];
    const struct fused_arg *a = j->args[k];
    float *out = k == j->f->count - 1 ? j->out + begin
                                      : blocks + (size_t)op->slot * BLOCK;
    int64_t row = j->row[k], n;
    enum pointwise_span span = SPAN_BOTH;

    if (op->loop.unary) {
        op->loop.unary(out, at(&a[0], blocks, begin, begin, row), end - begin,
                       op->loop.p);
        return;
    }
    if (a[0].kind == ONE || a[0].kind == COLUMN)
        span = SPAN_X_ONE;
    else if (a[1].kind == ONE || a[1].kind == COLUMN)
        span = SPAN_Y_ONE;
    for (int64_t pos = begin; pos < end; pos += n) {
        n = row && !j->tiled[k] ? MIN(row - pos % row, end - pos) : end - pos;
        op->loop.binary(out + (pos - begin), at(&a[0], blocks, begin, pos, row),
                        at(&a[1], blocks, begin, pos, row), n, span,
                        op->loop.p);
    }
}

static void run_blocks(void *arg, int64_t begin, int64_t end)
{
    const struct fused_job *j = arg;
    _Alignas(64) float blocks[FUSED_SLOTS_MAX * BLOCK];

    for (int64_t b = begin; b < end; b++)
        for (int k = 0; k < j->f->count; k++)
            if (j->whole[k])
                run_op(j, k, blocks, b * BLOCK, MIN((b + 1) * BLOCK, j->count));
}

static enum mst_code make_output(struct op_ctx *c, const struct fused *f,
                                 const struct fused_job *j,
                                 const struct tensor *s)
{
    for (int k = 0; k < f->count; k++)
        for (int i = 0; i < f->ops[k].node->in_count; i++) {
            int in = f->ops[k].arg[i];

            if (in >= 0 && j->whole[k] && tensor_unique(op_in(c, in)) &&
                tensor_same_shape(op_in(c, in), s))
                return op_out_forward(c, 0, in);
        }
    return op_out_new(c, 0, s->ndim, s->dims);
}

/* Values have their shapes. When it turns out that it can not be done in
 * blocks, *ret_apart is set and nothing has happened. */
static enum mst_code run_together(struct op_ctx *c, const struct fused *f,
                                  struct tensor *values, bool *ret_apart)
{
    struct fused_job j;
    struct tensor s = values[f->count - 1];
    double cost_ns = 0;
    enum mst_code rc = MST_OK;

    j.f = f;
    j.count = s.count;
    j.tile_count = 0;
    for (int k = 0; k < f->count; k++) {
        j.whole[k] = values[k].count == s.count;
        j.tiled[k] = false;
        if (!j.whole[k])
            rc = run_one(c, f, k, values);
        else
            *ret_apart = !find_operands(c, &j, k, values, &s);
        if (rc || *ret_apart)
            return rc;
        cost_ns += f->ops[k].loop.cost_ns;
    }
    rc = make_output(c, f, &j, &s);
    if (!rc)
        rc = tile_rows(c, &j);
    if (!rc) {
        j.out = op_out(c, 0)->data;
        op_for(c, (j.count + BLOCK - 1) / BLOCK, cost_ns * BLOCK, run_blocks,
               &j);
    }
    for (int i = 0; i < j.tile_count; i++)
        tensor_unref(&j.tiles[i]);
    return rc;
}

enum mst_code fused_run(struct op_ctx *c, const struct fused *f)
{
    struct tensor values[FUSED_OPS_MAX];
    enum mst_code rc = MST_OK;
    bool apart;

    for (int k = 0; k < f->count; k++)
        values[k].buf = NULL;
    apart = !find_shapes(c, f, values) || !values[f->count - 1].count;
    if (!apart)
        rc = run_together(c, f, values, &apart);
    if (apart)
        rc = run_apart(c, f, values);
    for (int k = 0; k < f->count; k++)
        if (values[k].buf)
            tensor_unref(&values[k]);
    return rc;
}
