/*
 * Counting and summing in variables: AssignAdd, AssignSub and CountUpTo, in
 * the reference and the resource form.
 */
#include "kernel/combine.h"
#include "kernel/update.h"

/* Nanoseconds an element takes. */
#define ELEMENT_NS 0.5

static enum mst_code add_init(struct op_node *n, struct status *st)
{
    struct combiner *k = ARENA_NEW(n->arena, struct combiner);
    bool sub = !strncmp(n->def->name, "AssignSub", 9);

    (void)st;
    CHECK(combiner_init(k, sub ? COMBINE_SUB : COMBINE_ADD,
                        dtype_base(n->in_types[1])));
    n->state = k;
    return MST_OK;
}

static enum mst_code add_check(struct op_ctx *c, const struct variable *v)
{
    char a[SHAPE_TEXT_MAX], b[SHAPE_TEXT_MAX];
    enum mst_code rc = update_check(
        c, v, 1, "DType of variable handle and value does not match.");

    if (rc || tensor_same_shape(&v->t, op_in(c, 1)))
        return rc;
    if (c->node->out_count)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Parameters and update must be the same size");
    return op_fail(c, MST_INVALID_ARGUMENT,
                   "Cannot update variable with shape %s using a Tensor with "
                   "shape %s, shapes must be equal.",
                   tensor_shape_text(&v->t, a),
                   tensor_shape_text(op_in(c, 1), b));
}

struct add_job {
    const struct combiner *k;
    const char *old, *value;
    char *to;
};

static void add_range(void *p, int64_t begin, int64_t end)
{
    const struct add_job *j = p;
    size_t at = (size_t)begin * j->k->size;

    combine(j->k, j->to + at, j->old + at, j->value + at, end - begin);
}

/* The variable is locked. */
static enum mst_code add_locked(struct op_ctx *c, struct variable *v)
{
    const struct combiner *k = c->node->state;
    struct tensor fresh;
    enum mst_code rc = add_check(c, v);
    struct add_job j;

    if (!rc)
        rc = variable_prepare(v, &fresh, c->st);
    if (rc)
        return rc;
    j = (struct add_job){ k, v->t.data, op_in(c, 1)->data, fresh.data };
    op_for(c, v->t.count, ELEMENT_NS, add_range, &j);
    variable_publish(v, &fresh);
    return MST_OK;
}

static enum mst_code add_run(struct op_ctx *c)
{
    struct variable *v;
    enum mst_code rc = update_variable(c, 0, &v);

    if (rc)
        return rc;
    pthread_mutex_lock(&v->lock);
    rc = add_locked(c, v);
    pthread_mutex_unlock(&v->lock);
    if (!rc && c->node->out_count)
        op_out_ref(c, 0, 0);
    return rc;
}

static const struct op_kernel add_kernels[] = { TYPES_NUMBER(ROW_SAME,
                                                             add_run){ 0 } };

const struct op_def def_assign_add = {
    .name = "AssignAdd",
    .in = "ref: Ref(T), value: T",
    .out = "output_ref: Ref(T)",
    .attr = "T: numbertype; use_locking: bool = false",
    .init = add_init,
    .kernel = add_kernels,
};

const struct op_def def_assign_sub = {
    .name = "AssignSub",
    .in = "ref: Ref(T), value: T",
    .out = "output_ref: Ref(T)",
    .attr = "T: numbertype; use_locking: bool = false",
    .init = add_init,
    .kernel = add_kernels,
};

const struct op_def def_assign_add_variable_op = {
    .name = "AssignAddVariableOp",
    .in = "resource: resource, value: dtype",
    .attr = "dtype: type",
    .flags = OP_STATEFUL,
    .key = "dtype",
    .init = add_init,
    .kernel = add_kernels,
};

const struct op_def def_assign_sub_variable_op = {
    .name = "AssignSubVariableOp",
    .in = "resource: resource, value: dtype",
    .attr = "dtype: type",
    .flags = OP_STATEFUL,
    .key = "dtype",
    .init = add_init,
    .kernel = add_kernels,
};

/* ---- CountUpTo ---- */

static enum mst_code count_init(struct op_node *n, struct status *st)
{
    int64_t *limit = ARENA_NEW(n->arena, int64_t);

    (void)st;
    *limit = op_attr_int(n, "limit");
    n->state = limit;
    return MST_OK;
}

static enum mst_code count_check(struct op_ctx *c, const struct variable *v)
{
    char text[SHAPE_TEXT_MAX];

    if (!tensor_set(&v->t))
        return op_fail(c, MST_FAILED_PRECONDITION,
                       "Attempting to use uninitialized value %s", v->name);
    if (v->t.ndim)
        return op_fail(c, MST_INVALID_ARGUMENT, "input is not a scalar: %s",
                       tensor_shape_text(&v->t, text));
    if (v->t.dtype != c->node->out_types[0])
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Trying to count in a variable of type %s as %s",
                       dtype_name(v->t.dtype),
                       dtype_name(c->node->out_types[0]));
    return MST_OK;
}

RACY static void put_int(struct tensor *t, int64_t value)
{
    if (t->dtype == DT_INT32)
        *TENSOR_DATA(t, int32_t) = (int32_t)value;
    else
        *TENSOR_DATA(t, int64_t) = value;
}

/* The variable is locked. */
static enum mst_code count_locked(struct op_ctx *c, struct variable *v)
{
    const int64_t *limit = c->node->state;
    struct tensor fresh;
    enum mst_code rc = count_check(c, v);
    int64_t now;

    if (rc)
        return rc;
    now = tensor_int(&v->t, 0);
    if (now >= *limit)
        return op_fail(c, MST_OUT_OF_RANGE, "Reached limit of %ld",
                       (long)*limit);
    rc = op_out_new(c, 0, 0, NULL);
    if (!rc)
        rc = variable_prepare(v, &fresh, c->st);
    if (rc)
        return rc;
    put_int(op_out(c, 0), now);
    put_int(&fresh, now + 1);
    variable_publish(v, &fresh);
    return MST_OK;
}

static enum mst_code count_run(struct op_ctx *c)
{
    struct variable *v;
    enum mst_code rc = update_variable(c, 0, &v);

    if (rc)
        return rc;
    pthread_mutex_lock(&v->lock);
    rc = count_locked(c, v);
    pthread_mutex_unlock(&v->lock);
    return rc;
}

static const struct op_kernel count_kernels[] = { TYPES_INDEX(ROW_SAME,
                                                              count_run){ 0 } };

const struct op_def def_count_up_to = {
    .name = "CountUpTo",
    .in = "ref: Ref(T)",
    .out = "output: T",
    .attr = "limit: int; T: {int32, int64}",
    .init = count_init,
    .kernel = count_kernels,
};

const struct op_def def_resource_count_up_to = {
    .name = "ResourceCountUpTo",
    .in = "resource: resource",
    .out = "output: T",
    .attr = "limit: int; T: {int32, int64}",
    .flags = OP_STATEFUL,
    .init = count_init,
    .kernel = count_kernels,
};
