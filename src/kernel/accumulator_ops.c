/*
 * The ops of accumulators. The dense ones come in an old form (a reference to
 * strings as handle) and a resource form, the sparse ones in the old form
 * only; the kernels are the same.
 *
 * TensorFlow compares nothing when a second node names an accumulator that is
 * there already, and neither does this.
 */
#include "kernel/accumulator.h"
#include "kernel/types.h"

#define NUMBERS                                                                \
    "{float, double, int32, uint8, int16, int8, complex64, int64, qint8, "     \
    "quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, half, "    \
    "uint32, uint64}"

/* ---- making ---- */

struct make_state {
    struct handle *handle;
    struct accumulator_config config;
};

static enum mst_code make_init(struct op_node *n, bool sparse)
{
    struct make_state *s = ARENA_NEW(n->arena, struct make_state);

    s->config = (struct accumulator_config){
        .dtype = op_attr_type(n, "dtype"),
        .shape = *op_attr_shape(n, "shape"),
        .mean = !strcmp(op_attr_str(n, "reduction_type").data, "MEAN"),
        .sparse = sparse,
    };
    s->handle = op_node_handle(n, &accumulator_kind);
    n->state = s;
    return MST_OK;
}

static enum mst_code dense_init(struct op_node *n, struct status *st)
{
    (void)st;
    return make_init(n, false);
}

static enum mst_code sparse_init(struct op_node *n, struct status *st)
{
    (void)st;
    return make_init(n, true);
}

static void make_done(struct op_node *n)
{
    struct make_state *s = n->state;

    handle_unref(s->handle);
}

static struct object *make_accumulator(void *arg, struct status *st)
{
    (void)st;
    return &accumulator_new(arg)->o;
}

static enum mst_code make_run(struct op_ctx *c)
{
    struct make_state *s = c->node->state;

    object_unref(
        handle_get_or_make(s->handle, make_accumulator, &s->config, c->st));
    return op_out_handle(c, 0, s->handle);
}

#define ACCUMULATOR(stem, text, handle, init_)                                 \
    const struct op_def def_##stem = {                                         \
        .name = text,                                                          \
        .out = "handle: " handle,                                              \
        .attr = "dtype: " NUMBERS "; shape: shape; container: string = ''; "   \
                "shared_name: string = ''; "                                   \
                "reduction_type: {'MEAN', 'SUM'} = 'MEAN'",                    \
        .flags = OP_STATEFUL,                                                  \
        .key = "dtype",                                                        \
        .init = init_,                                                         \
        .done = make_done,                                                     \
        .kernel = (const struct op_kernel[]){ { DT_FLOAT, make_run },          \
                                              { DT_DOUBLE, make_run },         \
                                              { DT_HALF, make_run },           \
                                              { 0 } },                         \
    };

ACCUMULATOR(conditional_accumulator, "ConditionalAccumulator", "Ref(string)",
            dense_init)
ACCUMULATOR(resource_conditional_accumulator, "ResourceConditionalAccumulator",
            "resource", dense_init)
ACCUMULATOR(sparse_conditional_accumulator, "SparseConditionalAccumulator",
            "Ref(string)", sparse_init)

/* ---- using ---- */

static enum mst_code get(struct op_ctx *c, struct accumulator **ret)
{
    struct object *o;
    enum mst_code rc = op_resource(c, 0, &accumulator_kind, &o);

    if (!rc)
        *ret = CONTAINER(o, struct accumulator, o);
    return rc;
}

/* The op and the accumulator have the same form and type. */
static enum mst_code check_kind(struct op_ctx *c, const struct accumulator *a,
                                bool sparse, int dtype)
{
    if (a->config.sparse != sparse)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "The accumulator is %s, %s is for %s ones",
                       sparse ? "dense" : "sparse", c->node->def->name,
                       sparse ? "sparse" : "dense");
    if (a->config.dtype != dtype)
        return op_fail(
            c, MST_INVALID_ARGUMENT, "The accumulator has type %s, %s has %s",
            dtype_name(a->config.dtype), c->node->def->name, dtype_name(dtype));
    return MST_OK;
}

static enum mst_code check_scalar(struct op_ctx *c, int i, const char *name)
{
    char text[SHAPE_TEXT_MAX];

    if (!op_in(c, i)->ndim)
        return MST_OK;
    return op_fail(c, MST_INVALID_ARGUMENT,
                   "Argument %s must be scalar, but had bad shape %s", name,
                   tensor_shape_text(op_in(c, i), text));
}

static enum mst_code apply(struct op_ctx *c, bool sparse, bool known_shape)
{
    struct accumulator *a;
    enum mst_code rc = get(c, &a);

    if (rc)
        return rc;
    rc = check_kind(c, a, sparse, c->node->in_types[sparse ? 3 : 2]);
    if (!rc)
        rc = check_scalar(c, 1, "local_step");
    if (!rc)
        rc = accumulator_apply(a, c, tensor_int(op_in(c, 1), 0), known_shape);
    object_unref(&a->o);
    return rc;
}

static enum mst_code apply_dense_run(struct op_ctx *c)
{
    return apply(c, false, false);
}

static enum mst_code apply_sparse_run(struct op_ctx *c)
{
    const bool *known_shape = c->node->state;

    return apply(c, true, *known_shape);
}

static enum mst_code apply_sparse_init(struct op_node *n, struct status *st)
{
    bool *known_shape = ARENA_NEW(n->arena, bool);

    (void)st;
    *known_shape = op_attr_bool(n, "has_known_shape");
    n->state = known_shape;
    return MST_OK;
}

static enum mst_code take(struct op_ctx *c, bool sparse)
{
    struct accumulator *a;
    enum mst_code rc = get(c, &a);
    int64_t required;

    if (rc)
        return rc;
    rc = check_kind(c, a, sparse, c->node->out_types[sparse ? 1 : 0]);
    if (!rc)
        rc = check_scalar(c, 1, "num_required");
    required = rc ? 1 : tensor_int(op_in(c, 1), 0);
    if (required <= 0)
        rc = op_fail(c, MST_INVALID_ARGUMENT,
                     "Argument num_required must be positive, but was %lld",
                     (long long)required);
    if (!rc)
        return accumulator_take(a, c, required);
    object_unref(&a->o);
    return rc;
}

static enum mst_code take_dense_run(struct op_ctx *c)
{
    return take(c, false);
}

static enum mst_code take_sparse_run(struct op_ctx *c)
{
    return take(c, true);
}

static enum mst_code set_step_run(struct op_ctx *c)
{
    struct accumulator *a;
    enum mst_code rc = get(c, &a);

    if (rc)
        return rc;
    rc = check_scalar(c, 1, "new_global_step");
    if (!rc)
        accumulator_set_step(a, tensor_int(op_in(c, 1), 0));
    object_unref(&a->o);
    return rc;
}

static enum mst_code count_run(struct op_ctx *c)
{
    struct accumulator *a;
    enum mst_code rc = get(c, &a);

    if (rc)
        return rc;
    rc = op_out_new(c, 0, 0, NULL);
    if (!rc)
        *TENSOR_DATA(op_out(c, 0), int32_t) = (int32_t)accumulator_count(a);
    object_unref(&a->o);
    return rc;
}

#define ACCESS(stem, text, in_, out_, attr_, flags_, init_, run)               \
    const struct op_def def_##stem = {                                         \
        .name = text,                                                          \
        .in = in_,                                                             \
        .out = out_,                                                           \
        .attr = attr_,                                                         \
        .flags = OP_STATEFUL | flags_,                                         \
        .key = "dtype",                                                        \
        .init = init_,                                                         \
        .kernel = (const struct op_kernel[]){ { DT_ANY, run }, { 0 } },        \
    };
/* Both handle forms. */
#define ACCESS2(stem, text, in_, out_, attr_, flags_, run)                     \
    ACCESS(accumulator_##stem, "Accumulator" text, "handle: Ref(string)" in_,  \
           out_, attr_, flags_, NULL, run)                                     \
    ACCESS(resource_accumulator_##stem, "ResourceAccumulator" text,            \
           "handle: resource" in_, out_, attr_, flags_, NULL, run)

ACCESS2(apply_gradient, "ApplyGradient", ", local_step: int64, gradient: dtype",
        NULL, "dtype: " NUMBERS, 0, apply_dense_run)
ACCESS2(take_gradient, "TakeGradient", ", num_required: int32",
        "average: dtype", "dtype: " NUMBERS, OP_ASYNC, take_dense_run)
ACCESS2(set_global_step, "SetGlobalStep", ", new_global_step: int64", NULL,
        NULL, 0, set_step_run)
ACCESS2(num_accumulated, "NumAccumulated", "", "num_accumulated: int32", NULL,
        0, count_run)
ACCESS(sparse_accumulator_apply_gradient, "SparseAccumulatorApplyGradient",
       "handle: Ref(string), local_step: int64, gradient_indices: int64, "
       "gradient_values: dtype, gradient_shape: int64",
       NULL, "dtype: " NUMBERS "; has_known_shape: bool", 0, apply_sparse_init,
       apply_sparse_run)
ACCESS(sparse_accumulator_take_gradient, "SparseAccumulatorTakeGradient",
       "handle: Ref(string), num_required: int32",
       "indices: int64, values: dtype, shape: int64", "dtype: " NUMBERS,
       OP_ASYNC, NULL, take_sparse_run)
