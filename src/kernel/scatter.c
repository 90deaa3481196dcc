/*
 * Scatter: the rows of a variable that `indices` names are set to, increased
 * by, multiplied with … those of `updates`, or all with its one number.
 *
 *   ref     [R, …]      a variable, by reference or by resource handle
 *   indices [I…]
 *   updates [I…, …] or []
 *
 * A row that is named twice is changed twice, in order.
 */
#include "kernel/combine.h"
#include "kernel/rows.h"
#include "kernel/update.h"

#define ELEMENT_NS 0.5

static enum mst_code scatter_init(struct op_node *n, struct status *st)
{
    struct combiner *k = ARENA_NEW(n->arena, struct combiner);

    (void)st;
    CHECK(
        combiner_init(k, combine_of(n->def->name), dtype_base(n->in_types[2])));
    n->state = k;
    return MST_OK;
}

/* ---- checks ---- */

static bool is_prefix(const struct tensor *indices, const struct tensor *upd)
{
    for (int i = 0; i < indices->ndim; i++)
        if (upd->dims[i] != indices->dims[i])
            return false;
    return true;
}

static enum mst_code check_shapes(struct op_ctx *c, const struct tensor *var)
{
    const struct tensor *ix = op_in(c, 1), *upd = op_in(c, 2);
    char a[SHAPE_TEXT_MAX], b[SHAPE_TEXT_MAX], d[SHAPE_TEXT_MAX];
    bool by_ref = c->node->out_count > 0, rank, good;

    if (var->ndim < 1 && by_ref)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "params must be at least 1-D, got shape []");
    rank = var->ndim > 0 && upd->ndim == ix->ndim + var->ndim - 1;
    if (rank && !by_ref && !is_prefix(ix, upd))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "The shape of indices (%s) must be a prefix of the "
                       "shape of updates (%s)",
                       tensor_shape_text(ix, a), tensor_shape_text(upd, b));
    good = rank && is_prefix(ix, upd);
    for (int i = 1; i < var->ndim && good; i++)
        good = upd->dims[ix->ndim + i - 1] == var->dims[i];
    if (good || (upd->ndim == 0 && var->ndim > 0))
        return MST_OK;
    return op_fail(c, MST_INVALID_ARGUMENT,
                   "Must have updates.shape = indices.shape + params.shape[1:] "
                   "or updates.shape = [], got updates.shape %s, "
                   "indices.shape %s, params.shape %s",
                   tensor_shape_text(upd, a), tensor_shape_text(ix, b),
                   tensor_shape_text(var, d));
}

/* Whether some element is zero: all bits of it are, or all but the sign's. */
static bool has_zero(const struct tensor *t)
{
    size_t size = dtype_size((enum dtype)t->dtype);
    bool is_int = dtype_is_int((enum dtype)t->dtype);
    size_t parts = dtype_is_complex((enum dtype)t->dtype) ? 2 : 1;
    const unsigned char *at = t->data;

    for (int64_t i = 0; i < t->count; i++, at += size) {
        bool zero = true;

        for (size_t k = 0; k < size && zero; k++) {
            bool sign = !is_int && k % (size / parts) == size / parts - 1;

            zero = (at[k] & (sign ? 0x7f : 0xff)) == 0;
        }
        if (zero)
            return true;
    }
    return false;
}

/* Resource ops take no zeros; reference ops give infinities where there are
 * some, for which whole numbers have no room. */
static enum mst_code check_divisors(struct op_ctx *c, const struct combiner *k)
{
    if (k->how != COMBINE_DIV ||
        (c->node->out_count && !dtype_is_int(k->type)) ||
        !has_zero(op_in(c, 2)))
        return MST_OK;
    return op_fail(c, MST_INVALID_ARGUMENT, "updates must not contain 0");
}

static enum mst_code check(struct op_ctx *c, const struct variable *v)
{
    enum mst_code rc = update_check(
        c, v, 2, "DType of scatter resource and updates does not match.");

    if (!rc)
        rc = check_shapes(c, &v->t);
    if (!rc)
        rc = check_divisors(c, c->node->state);
    return rc;
}

/* ---- running ---- */

struct scatter_job {
    const struct combiner *k;
    struct tensor *var;
    const struct tensor *updates;
};

static void scatter_part(void *p, const struct rows *part)
{
    const struct scatter_job *j = p;
    bool one = j->updates->ndim == 0;
    struct rows_span spans[ROWS_SOME];
    int64_t next = 0, n;

    while ((n = rows_some(part, &next, spans))) {
        if (j->k->how == COMBINE_SET && j->k->size && !one)
            rows_copy_spans(j->var->data, j->updates->data, spans, n,
                            j->k->size, (size_t)part->size * j->k->size);
        else
            for (int64_t i = 0; i < n; i++)
                combine_elems(j->k, j->var, spans[i].at, j->updates,
                              one ? 0 : spans[i].from, one, part->size);
    }
}

/* The variable is locked. */
static enum mst_code scatter_locked(struct op_ctx *c, struct variable *v)
{
    struct scatter_job j = { c->node->state, &v->t, op_in(c, 2) };
    enum mst_code rc = check(c, v);
    struct rows rows;
    int64_t bad;

    if (rc || op_in(c, 1)->count == 0)
        return rc;
    rows_init(&rows, op_in(c, 1), 1, v->t.ndim, v->t.dims);
    bad = rows_bad(&rows);
    if (bad >= 0)
        return rows_fail(c, &rows, op_in(c, 1), bad);
    rc = update_prepare_rows(c, v);
    if (!rc)
        rows_each(c, &rows, ELEMENT_NS, scatter_part, &j);
    return rc;
}

static enum mst_code scatter_run(struct op_ctx *c)
{
    struct variable *v;
    enum mst_code rc = update_variable(c, 0, &v);

    if (rc)
        return rc;
    pthread_mutex_lock(&v->lock);
    rc = scatter_locked(c, v);
    pthread_mutex_unlock(&v->lock);
    if (!rc && c->node->out_count)
        op_out_ref(c, 0, 0);
    return rc;
}

/* ---- records ---- */

static const struct op_kernel any_kernels[] = {
    { DT_ANY, scatter_run },
    { 0 },
};
static const struct op_kernel number_kernels[] = { TYPES_NUMBER(
    ROW_SAME, scatter_run){ 0 } };
static const struct op_kernel real_kernels[] = { TYPES_REAL(ROW_SAME,
                                                            scatter_run){ 0 } };

#define SCATTER_REF(stem, Suffix, types, locking, kernels)                     \
    const struct op_def def_scatter_##stem = {                                 \
        .name = "Scatter" Suffix,                                              \
        .in = "ref: Ref(T), indices: Tindices, updates: T",                    \
        .out = "output_ref: Ref(T)",                                           \
        .attr = "T: " types "; Tindices: {int32, int64}; "                     \
                "use_locking: bool = " locking,                                \
        .init = scatter_init,                                                  \
        .kernel = kernels,                                                     \
    };
#define SCATTER_RESOURCE(stem, Suffix, types, kernels)                         \
    const struct op_def def_resource_scatter_##stem = {                        \
        .name = "ResourceScatter" Suffix,                                      \
        .in = "resource: resource, indices: Tindices, updates: dtype",         \
        .attr = "dtype: " types "; Tindices: {int32, int64}",                  \
        .flags = OP_STATEFUL,                                                  \
        .key = "dtype",                                                        \
        .init = scatter_init,                                                  \
        .kernel = kernels,                                                     \
    };
#define SMALL_SET "{half, bfloat16, float, double, int32, int64}"

SCATTER_REF(update, "Update", "type", "true", any_kernels)
SCATTER_REF(add, "Add", "numbertype", "false", number_kernels)
SCATTER_REF(sub, "Sub", "numbertype", "false", number_kernels)
SCATTER_REF(mul, "Mul", "numbertype", "false", number_kernels)
SCATTER_REF(div, "Div", "numbertype", "false", number_kernels)
SCATTER_REF(min, "Min", SMALL_SET, "false", real_kernels)
SCATTER_REF(max, "Max", SMALL_SET, "false", real_kernels)

SCATTER_RESOURCE(update, "Update", "type", any_kernels)
SCATTER_RESOURCE(add, "Add", "numbertype", number_kernels)
SCATTER_RESOURCE(sub, "Sub", "numbertype", number_kernels)
SCATTER_RESOURCE(mul, "Mul", "numbertype", number_kernels)
SCATTER_RESOURCE(div, "Div", "numbertype", number_kernels)
SCATTER_RESOURCE(min, "Min", "numbertype", real_kernels)
SCATTER_RESOURCE(max, "Max", "numbertype", real_kernels)
