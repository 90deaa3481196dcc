/*
 * Scatter by several numbers: each row of indices names an element of the
 * first D dimensions, and what lies below it is set to, increased by … a part
 * of updates.
 *
 *   target  [P1 … PD, Q…]
 *   indices [I…, D]
 *   updates [I…, Q…]
 *
 * The target is a variable (ScatterNdAdd, ResourceScatterNdAdd …), a copy of
 * an input (TensorScatterAdd …) or zeros of a given shape (ScatterNd).
 */
#include "kernel/args.h"
#include "kernel/combine.h"
#include "kernel/rows.h"
#include "kernel/update.h"

#define ELEMENT_NS 0.5
#define DEPTH_MAX  7 /* TensorFlow's, whose text says 5 */

struct nd_state {
    struct combiner k;
    bool ignore; /* indices outside */
};

static enum mst_code nd_init(struct op_node *n, struct status *st)
{
    struct nd_state *s = ARENA_NEW(n->arena, struct nd_state);
    const char *policy = op_attr_str(n, "bad_indices_policy").data;
    bool zeros = !strcmp(n->def->name, "ScatterNd");
    enum combine how = zeros ? COMBINE_ADD : combine_of(n->def->name);

    if (strcmp(policy, "") && strcmp(policy, "DEFAULT") &&
        strcmp(policy, "ERROR") && strcmp(policy, "IGNORE"))
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Unknown bad indices handling attribute: %s", policy);
    if (zeros && n->in_types[2] == DT_INT16)
        return status_set(st, MST_UNIMPLEMENTED,
                          "{{node %s}}: ScatterNd has no kernel for int16 "
                          "indices",
                          n->name);
    s->ignore = !strcmp(policy, "IGNORE");
    CHECK(combiner_init(&s->k, how, dtype_base(n->in_types[zeros ? 1 : 2])));
    n->state = s;
    return MST_OK;
}

/* ---- checks: in TensorFlow's words, of which there are two sets ---- */

struct nd {
    const struct tensor *indices, *updates;
    int ndim; /* of the target */
    const int64_t *dims;
    bool tensor_form; /* TensorScatter… */
};

static int nd_depth(const struct nd *a)
{
    int64_t last = a->indices->dims[a->indices->ndim - 1];

    /* Deeper than any tensor is as bad as much deeper. */
    return (int)MIN(last, TENSOR_RANK_MAX + 1);
}

/* TensorScatter…: indices and updates must fit each other and the target. */
static enum mst_code check_tensor_form(struct op_ctx *c, const struct nd *a)
{
    const struct tensor *ix = a->indices, *upd = a->updates;
    int depth = nd_depth(a), outer = ix->ndim - 1, inner = a->ndim - depth;
    char x[SHAPE_TEXT_MAX], y[SHAPE_TEXT_MAX];

    for (int i = 0; i < outer; i++)
        if (i >= upd->ndim || upd->dims[i] != ix->dims[i])
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Outer dimensions of indices and update must "
                           "match. Indices shape: %s, updates shape:%s",
                           tensor_shape_text(ix, x), tensor_shape_text(upd, y));
    if (inner < 0 || upd->ndim - outer != inner)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Inner dimensions of output shape must match inner "
                       "dimensions of updates shape. Output: %s updates: %s",
                       shape_text(a->ndim, a->dims, x),
                       tensor_shape_text(upd, y));
    for (int i = 0; i < inner; i++)
        if (upd->dims[outer + i] != a->dims[depth + i])
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "The inner %d dimensions of output.shape=%s must "
                           "match the inner %d dimensions of updates.shape=%s",
                           inner, shape_text(a->ndim, a->dims, x),
                           upd->ndim - outer, tensor_shape_text(upd, y));
    return MST_OK;
}

static enum mst_code check_plain_form(struct op_ctx *c, const struct nd *a)
{
    const struct tensor *ix = a->indices, *upd = a->updates;
    int depth = nd_depth(a), outer = ix->ndim - 1;
    int first = MAX(outer, 1); /* one vector: never right */
    char x[SHAPE_TEXT_MAX], y[SHAPE_TEXT_MAX];
    bool good;

    for (int i = 0; i < first; i++)
        if (i >= upd->ndim || upd->dims[i] != ix->dims[i])
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Dimensions [0,%d) of indices[shape=%s] = %ld must "
                           "match dimensions [0,%d) of updates[shape=%s] = %ld",
                           first, tensor_shape_text(ix, x), (long)ix->dims[i],
                           first, tensor_shape_text(upd, y),
                           i < upd->ndim ? (long)upd->dims[i] : 0l);
    good =
        outer > 0 && depth <= a->ndim && upd->ndim - outer == a->ndim - depth;
    for (int i = depth; i < a->ndim && good; i++)
        good = upd->dims[outer + i - depth] == a->dims[i];
    if (good)
        return MST_OK;
    return op_fail(c, MST_INVALID_ARGUMENT,
                   "Dimensions [%d,%d) of input[shape=%s] must match "
                   "dimensions [%d,%d) of updates[shape=%s]",
                   depth, a->ndim, shape_text(a->ndim, a->dims, x), depth,
                   upd->ndim, tensor_shape_text(upd, y));
}

static bool is_empty(const struct nd *a)
{
    for (int i = 0; i < a->ndim; i++)
        if (a->dims[i] == 0)
            return true;
    return false;
}

static enum mst_code check(struct op_ctx *c, const struct nd *a)
{
    int64_t ix = a->indices->count, upd = a->updates->count;
    char x[SHAPE_TEXT_MAX];
    enum mst_code rc;

    if (a->indices->ndim < 1 || a->updates->ndim < 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "%s shape must have rank at least one. Found:[]",
                       a->indices->ndim < 1 ? "Indices" : "Updates");
    if ((ix || upd) && (!ix || !upd || is_empty(a))) {
        if (a->tensor_form || a->ndim == 0)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Indices and updates specified for empty output "
                           "shape");
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Indices and updates specified for empty output.  "
                       "indices shape: %s",
                       tensor_shape_text(a->indices, x));
    }
    rc = a->tensor_form ? check_tensor_form(c, a) : MST_OK;
    if (rc || (a->tensor_form && is_empty(a)))
        return rc;
    return check_plain_form(c, a);
}

/* ---- running ---- */

struct nd_job {
    const struct combiner *k;
    struct tensor *target;
    const struct tensor *updates;
};

static void nd_part(void *p, const struct rows *part)
{
    const struct nd_job *j = p;

    for (int64_t i = 0; i < part->count; i++) {
        int64_t at = rows_at(part, i);

        if (at >= 0)
            combine_elems(j->k, j->target, at, j->updates, i * part->size,
                          false, part->size);
    }
}

/* The rows that are meant, after all checks; none of them when rows->count
 * is 0. */
static enum mst_code nd_rows(struct op_ctx *c, const struct nd *a,
                             struct rows *rows)
{
    const struct nd_state *s = c->node->state;
    enum mst_code rc = check(c, a);
    int64_t bad;

    rows->count = 0;
    if (!rc && !is_empty(a) && (nd_depth(a) < 1 || nd_depth(a) > DEPTH_MAX))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Only indices.shape[-1] values between 1 and 5 are "
                       "currently supported.  Requested rank: %d",
                       nd_depth(a));
    if (rc || a->indices->count == 0)
        return rc;
    rows_init(rows, a->indices, nd_depth(a), a->ndim, a->dims);
    bad = s->ignore ? -1 : rows_bad(rows);
    if (bad >= 0)
        return rows_fail_nd(c, rows, a->indices, bad, "", a->ndim, a->dims);
    return MST_OK;
}

static void nd_apply(struct op_ctx *c, const struct nd *a,
                     const struct rows *rows, struct tensor *target)
{
    const struct nd_state *s = c->node->state;
    struct nd_job j = { &s->k, target, a->updates };

    if (rows->count)
        rows_each(c, rows, ELEMENT_NS, nd_part, &j);
}

/* The variable is locked. */
static enum mst_code variable_locked(struct op_ctx *c, struct variable *v)
{
    struct nd a = { op_in(c, 1), op_in(c, 2), v->t.ndim, v->t.dims, false };
    struct rows rows = { 0 };
    enum mst_code rc = update_check(
        c, v, 2, "DType of scatter resource and updates does not match.");

    if (!rc)
        rc = nd_rows(c, &a, &rows);
    if (!rc && rows.count)
        rc = update_prepare_rows(c, v);
    if (!rc)
        nd_apply(c, &a, &rows, &v->t);
    return rc;
}

static enum mst_code variable_run(struct op_ctx *c)
{
    struct variable *v;
    enum mst_code rc = update_variable(c, 0, &v);

    if (rc)
        return rc;
    pthread_mutex_lock(&v->lock);
    rc = variable_locked(c, v);
    pthread_mutex_unlock(&v->lock);
    if (!rc && c->node->out_count)
        op_out_ref(c, 0, 0);
    return rc;
}

/* In place when nobody else has the input. */
static enum mst_code tensor_run(struct op_ctx *c)
{
    struct tensor *in = &c->in[0].t;
    struct nd a = { op_in(c, 1), op_in(c, 2), in->ndim, in->dims,
                    strncmp(c->node->def->name, "Tensor", 6) == 0 };
    struct rows rows;
    enum mst_code rc = nd_rows(c, &a, &rows);

    if (rc)
        return rc;
    if (tensor_unique(in))
        op_out_same(c, 0, 0);
    else
        rc = tensor_copy(op_out(c, 0), in, c->st);
    if (!rc)
        nd_apply(c, &a, &rows, op_out(c, 0));
    return rc;
}

static enum mst_code scatter_nd_run(struct op_ctx *c)
{
    struct nd a = { op_in(c, 0), op_in(c, 1), 0, NULL, false };
    struct shape shape;
    struct rows rows;
    enum mst_code rc;

    if (op_in(c, 2)->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT, "Shape must be a vector");
    rc = args_dims(c, op_in(c, 2), &shape);
    if (rc)
        return rc;
    a.ndim = shape.ndim;
    a.dims = shape.dims;
    rc = nd_rows(c, &a, &rows);
    if (!rc)
        rc = op_out_new(c, 0, shape.ndim, shape.dims);
    if (rc)
        return rc;
    tensor_zero(op_out(c, 0));
    nd_apply(c, &a, &rows, op_out(c, 0));
    return MST_OK;
}

/* ---- records ---- */

#define TYPES_ADD(X, fn) TYPES_NUMBER(X, fn) TYPES_BOOL(X, fn)

static const struct op_kernel set_variable[] = { { DT_ANY, variable_run },
                                                 { 0 } };
static const struct op_kernel add_variable[] = { TYPES_ADD(ROW_SAME,
                                                           variable_run){ 0 } };
static const struct op_kernel compare_variable[] = { TYPES_REAL(
    ROW_SAME, variable_run){ 0 } };
static const struct op_kernel set_tensor[] = { { DT_ANY, tensor_run }, { 0 } };
static const struct op_kernel add_tensor[] = { TYPES_ADD(ROW_SAME,
                                                         tensor_run){ 0 } };
static const struct op_kernel compare_tensor[] = { TYPES_REAL(
    ROW_SAME, tensor_run){ 0 } };

static const struct op_kernel add_zeros[] = {
    TYPES_ADD(ROW_SAME, scatter_nd_run){ DT_STRING, scatter_nd_run },
    { 0 },
};

#define ND_ATTR    "; bad_indices_policy: string = ''"
#define ND_INDICES "; Tindices: {int32, int64}"
#define ND_REF(stem, Suffix, types, locking, kernels)                          \
    const struct op_def def_scatter_nd_##stem = {                              \
        .name = "ScatterNd" Suffix,                                            \
        .in = "ref: Ref(T), indices: Tindices, updates: T",                    \
        .out = "output_ref: Ref(T)",                                           \
        .attr =                                                                \
            "T: " types ND_INDICES "; use_locking: bool = " locking ND_ATTR,   \
        .init = nd_init,                                                       \
        .kernel = kernels,                                                     \
    };
#define ND_RESOURCE(stem, Suffix, kernels)                                     \
    const struct op_def def_resource_scatter_nd_##stem = {                     \
        .name = "ResourceScatterNd" Suffix,                                    \
        .in = "ref: resource, indices: Tindices, updates: T",                  \
        .attr = "T: type" ND_INDICES "; use_locking: bool = true" ND_ATTR,     \
        .flags = OP_STATEFUL,                                                  \
        .init = nd_init,                                                       \
        .kernel = kernels,                                                     \
    };
#define ND_TENSOR(stem, Suffix, indices, kernels)                              \
    const struct op_def def_tensor_scatter_##stem = {                          \
        .name = "TensorScatter" Suffix,                                        \
        .in = "tensor: T, indices: Tindices, updates: T",                      \
        .out = "output: T",                                                    \
        .attr = "T: type" indices ND_ATTR,                                     \
        .init = nd_init,                                                       \
        .kernel = kernels,                                                     \
    };

ND_REF(update, "Update", "type", "true", set_variable)
ND_REF(add, "Add", "numbertype", "false", add_variable)
ND_REF(sub, "Sub", "numbertype", "false", add_variable)
ND_REF(min, "Min", "numbertype", "false", compare_variable)
ND_REF(max, "Max", "numbertype", "false", compare_variable)

ND_RESOURCE(update, "Update", set_variable)
ND_RESOURCE(add, "Add", add_variable)
ND_RESOURCE(sub, "Sub", add_variable)
ND_RESOURCE(min, "Min", compare_variable)
ND_RESOURCE(max, "Max", compare_variable)

ND_TENSOR(update, "Update", "; Tindices: {int16, int32, int64, uint16}",
          set_tensor)
ND_TENSOR(add, "Add", ND_INDICES, add_tensor)
ND_TENSOR(sub, "Sub", ND_INDICES, add_tensor)
ND_TENSOR(min, "Min", ND_INDICES, compare_tensor)
ND_TENSOR(max, "Max", ND_INDICES, compare_tensor)

const struct op_def def_scatter_nd_non_aliasing_add = {
    .name = "ScatterNdNonAliasingAdd",
    .in = "input: T, indices: Tindices, updates: T",
    .out = "output: T",
    .attr = "T: {float, double, int32, uint8, int16, int8, complex64, int64, "
            "qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, "
            "complex128, half, uint32, uint64, bool}" ND_INDICES ND_ATTR,
    .init = nd_init,
    .kernel = add_tensor,
};

const struct op_def def_scatter_nd = {
    .name = "ScatterNd",
    .in = "indices: Tindices, updates: T, shape: Tindices",
    .out = "output: T",
    .attr = "T: type; Tindices: {int16, int32, int64}" ND_ATTR,
    .init = nd_init,
    .kernel = add_zeros,
};
