/*
 * Variables: making, assigning and reading them, in the reference form
 * (VariableV2, Assign) and in the resource form (VarHandleOp and its kin).
 */
#include "base/mem.h"
#include "kernel/types.h"

/* ---- reference form ---- */

static struct object *make_ref_variable(void *arg, struct status *st)
{
    struct op_node *n = arg;
    struct variable *v;

    (void)st;
    v = variable_new(n->name, dtype_base(n->out_types[0]), true);
    v->shape = *op_attr_shape(n, "shape");
    return &v->o;
}

static enum mst_code variable_init(struct op_node *n, struct status *st)
{
    (void)st;
    n->state = op_node_handle(n, &variable_kind);
    return MST_OK;
}

static void handle_state_done(struct op_node *n)
{
    handle_unref(n->state);
}

static enum mst_code variable_run(struct op_ctx *c)
{
    struct object *o = handle_get_or_make(c->node->state, make_ref_variable,
                                          (void *)c->node, c->st);

    c->out[0].ref = CONTAINER(o, struct variable, o);
    if (c->out[0].ref->dtype != (int)dtype_base(c->node->out_types[0]))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Variable %s has dtype %s, and is used with %s",
                       c->out[0].ref->name, dtype_name(c->out[0].ref->dtype),
                       dtype_name(dtype_base(c->node->out_types[0])));
    return MST_OK;
}

#define VARIABLE_RECORD(text)                                                  \
    .name = text, .out = "ref: Ref(dtype)",                                    \
    .attr = "shape: shape; dtype: type; container: string = ''; "              \
            "shared_name: string = ''",                                        \
    .flags = OP_STATEFUL, .key = "dtype", .init = variable_init,               \
    .done = handle_state_done, .kernel = (const struct op_kernel[])            \
    {                                                                          \
        { DT_ANY, variable_run },                                              \
        {                                                                      \
            0                                                                  \
        }                                                                      \
    }

const struct op_def def_variable_v2 = { VARIABLE_RECORD("VariableV2") };
const struct op_def def_variable = { VARIABLE_RECORD("Variable") };

struct assign_state {
    bool validate_shape;
};

static enum mst_code assign_init(struct op_node *n, struct status *st)
{
    struct assign_state *s = ARENA_NEW(n->arena, struct assign_state);

    (void)st;
    s->validate_shape = op_attr_bool(n, "validate_shape");
    n->state = s;
    return MST_OK;
}

/* The input's own bytes when nobody else has them, else a copy: a variable
 * must not change under whoever still holds the assigned value. */
static enum mst_code take_input(struct op_ctx *c, int i, struct tensor *ret)
{
    struct tensor *in = &c->in[i].t;

    if (tensor_unique(in) || !dtype_is_plain((enum dtype)in->dtype)) {
        *ret = tensor_ref(in);
        tensor_unref(in);
        return MST_OK;
    }
    return tensor_copy(ret, in, c->st);
}

static enum mst_code assign_run(struct op_ctx *c)
{
    const struct assign_state *s = c->node->state;
    struct variable *v = c->in[0].ref;
    char want[SHAPE_TEXT_MAX], got[SHAPE_TEXT_MAX];
    struct tensor value;
    enum mst_code rc;
    bool same;

    pthread_mutex_lock(&v->lock);
    if (tensor_set(&v->t)) {
        same = tensor_same_shape(&v->t, op_in(c, 1));
        tensor_shape_text(&v->t, want);
    } else {
        same = shape_compatible(&v->shape, op_in(c, 1));
        shape_text(v->shape.ndim, v->shape.dims, want);
    }
    pthread_mutex_unlock(&v->lock);
    if (s->validate_shape && !same)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Assign requires shapes of both tensors to match. lhs "
                       "shape= %s rhs shape= %s",
                       want, tensor_shape_text(op_in(c, 1), got));
    rc = take_input(c, 1, &value);
    if (rc)
        return rc;
    variable_assign(v, &value);
    op_out_ref(c, 0, 0);
    return MST_OK;
}

const struct op_def def_assign = {
    .name = "Assign",
    .in = "ref: Ref(T), value: T",
    .out = "output_ref: Ref(T)",
    .attr = "T: type; validate_shape: bool = true; use_locking: bool = true",
    .flags = OP_UNINIT_REF,
    .init = assign_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, assign_run }, { 0 } },
};

static enum mst_code out_bool(struct op_ctx *c, bool value)
{
    enum mst_code rc = tensor_new_scalar(op_out(c, 0), DT_BOOL, c->st);

    if (!rc)
        *TENSOR_DATA(op_out(c, 0), bool) = value;
    return rc;
}

static bool has_value(struct variable *v)
{
    bool has;

    pthread_mutex_lock(&v->lock);
    has = tensor_set(&v->t);
    pthread_mutex_unlock(&v->lock);
    return has;
}

static enum mst_code is_variable_initialized(struct op_ctx *c)
{
    return out_bool(c, has_value(c->in[0].ref));
}

const struct op_def def_is_variable_initialized = {
    .name = "IsVariableInitialized",
    .in = "ref: Ref(dtype)",
    .out = "is_initialized: bool",
    .attr = "dtype: type",
    .key = "dtype",
    .flags = OP_UNINIT_REF,
    .kernel = (const struct op_kernel[]){ { DT_ANY, is_variable_initialized },
                                          { 0 } },
};

/* ---- resource form ---- */

static enum mst_code var_handle_init(struct op_node *n, struct status *st)
{
    struct handle *h = op_node_handle(n, &variable_kind);

    (void)st;
    pthread_mutex_lock(&h->lock);
    h->dtype = op_attr_type(n, "dtype");
    h->shape = *op_attr_shape(n, "shape");
    pthread_mutex_unlock(&h->lock);
    n->state = h;
    return MST_OK;
}

static enum mst_code var_handle_run(struct op_ctx *c)
{
    return op_out_handle(c, 0, c->node->state);
}

const struct op_def def_var_handle_op = {
    .name = "VarHandleOp",
    .out = "resource: resource",
    .attr = "container: string = ''; shared_name: string = ''; "
            "debug_name: string = ''; dtype: type; shape: shape; "
            "allowed_devices: list(string) = []",
    .flags = OP_STATEFUL,
    .key = "dtype",
    .init = var_handle_init,
    .done = handle_state_done,
    .kernel = (const struct op_kernel[]){ { DT_ANY, var_handle_run }, { 0 } },
};

struct making {
    const struct handle *h;
    int dtype;
};

static struct object *make_resource_variable(void *arg, struct status *st)
{
    const struct making *m = arg;

    (void)st;
    return &variable_new(m->h->name, m->dtype, false)->o;
}

static enum mst_code check_assigned(struct op_ctx *c, struct variable *v,
                                    const struct tensor *value)
{
    char want[SHAPE_TEXT_MAX], got[SHAPE_TEXT_MAX];
    bool same = true;

    if (v->dtype != value->dtype)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Trying to assign variable with wrong dtype. Expected "
                       "%s got %s",
                       dtype_name(v->dtype), dtype_name(value->dtype));
    if (!((const struct assign_state *)c->node->state)->validate_shape)
        return MST_OK;
    pthread_mutex_lock(&v->lock);
    if (tensor_set(&v->t)) {
        same = tensor_same_shape(&v->t, value);
        tensor_shape_text(&v->t, want);
    }
    pthread_mutex_unlock(&v->lock);
    if (same)
        return MST_OK;
    return op_fail(c, MST_INVALID_ARGUMENT,
                   "Trying to assign to variable with tensor with wrong "
                   "shape. Expected %s got %s",
                   want, tensor_shape_text(value, got));
}

static enum mst_code assign_variable_run(struct op_ctx *c)
{
    struct making m = { .dtype = op_in(c, 1)->dtype };
    struct handle *h;
    struct object *o;
    struct tensor value;
    struct variable *v;
    enum mst_code rc = op_handle(c, 0, &variable_kind, &h);

    if (rc)
        return rc;
    m.h = h;
    o = handle_get_or_make(h, make_resource_variable, &m, c->st);
    v = CONTAINER(o, struct variable, o);
    rc = check_assigned(c, v, op_in(c, 1));
    if (!rc)
        rc = take_input(c, 1, &value);
    if (!rc)
        variable_assign(v, &value);
    object_unref(o);
    return rc;
}

const struct op_def def_assign_variable_op = {
    .name = "AssignVariableOp",
    .in = "resource: resource, value: dtype",
    .attr = "dtype: type; validate_shape: bool = false",
    .flags = OP_STATEFUL,
    .key = "dtype",
    .init = assign_init,
    .kernel =
        (const struct op_kernel[]){ { DT_ANY, assign_variable_run }, { 0 } },
};

static enum mst_code read_variable_run(struct op_ctx *c)
{
    struct variable *v;
    enum mst_code rc = op_variable(c, 0, true, &v);

    if (rc)
        return rc;
    if (v->dtype != c->node->out_types[0])
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Trying to read variable with wrong dtype. Expected %s "
                       "got %s",
                       dtype_name(v->dtype), dtype_name(c->node->out_types[0]));
    return variable_read(v, op_out(c, 0), c->st);
}

const struct op_def def_read_variable_op = {
    .name = "ReadVariableOp",
    .in = "resource: resource",
    .out = "value: dtype",
    .attr = "dtype: type",
    .flags = OP_STATEFUL,
    .key = "dtype",
    .kernel =
        (const struct op_kernel[]){ { DT_ANY, read_variable_run }, { 0 } },
};

static enum mst_code var_is_initialized_run(struct op_ctx *c)
{
    struct handle *h;
    struct object *o;
    enum mst_code rc = op_handle(c, 0, &variable_kind, &h);
    bool has;

    if (rc)
        return rc;
    o = handle_get(h);
    has = o && has_value(CONTAINER(o, struct variable, o));
    object_unref(o);
    return out_bool(c, has);
}

const struct op_def def_var_is_initialized_op = {
    .name = "VarIsInitializedOp",
    .in = "resource: resource",
    .out = "is_initialized: bool",
    .flags = OP_STATEFUL,
    .kernel =
        (const struct op_kernel[]){ { DT_ANY, var_is_initialized_run }, { 0 } },
};

static enum mst_code variable_shape_run(struct op_ctx *c)
{
    struct variable *v;
    struct tensor t;
    enum mst_code rc = op_variable(c, 0, true, &v);
    int64_t n;

    if (rc)
        return rc;
    pthread_mutex_lock(&v->lock);
    t = tensor_ref(&v->t);
    pthread_mutex_unlock(&v->lock);
    n = t.ndim;
    rc = op_out_new(c, 0, 1, &n);
    for (int i = 0; i < t.ndim && !rc; i++) {
        if (c->node->out_types[0] == DT_INT32)
            TENSOR_DATA(op_out(c, 0), int32_t)[i] = (int32_t)t.dims[i];
        else
            TENSOR_DATA(op_out(c, 0), int64_t)[i] = t.dims[i];
    }
    tensor_unref(&t);
    return rc;
}

const struct op_def def_variable_shape = {
    .name = "VariableShape",
    .in = "input: resource",
    .out = "output: out_type",
    .attr = "out_type: {int32, int64} = int32",
    .flags = OP_STATEFUL,
    .kernel =
        (const struct op_kernel[]){ { DT_ANY, variable_shape_run }, { 0 } },
};

struct destroy_state {
    bool ignore_lookup_error;
};

static enum mst_code destroy_init(struct op_node *n, struct status *st)
{
    struct destroy_state *s = ARENA_NEW(n->arena, struct destroy_state);

    (void)st;
    s->ignore_lookup_error = op_attr_bool(n, "ignore_lookup_error");
    n->state = s;
    return MST_OK;
}

static enum mst_code destroy_run(struct op_ctx *c)
{
    const struct destroy_state *s = c->node->state;
    struct handle *h;
    enum mst_code rc = op_handle(c, 0, NULL, &h);

    if (rc)
        return rc;
    if (!handle_drop(h) && !s->ignore_lookup_error)
        return op_fail(c, MST_NOT_FOUND,
                       "Resource %s/%s/<unknown> does not exist.", h->container,
                       h->name);
    return MST_OK;
}

const struct op_def def_destroy_resource_op = {
    .name = "DestroyResourceOp",
    .in = "resource: resource",
    .attr = "ignore_lookup_error: bool = true",
    .flags = OP_STATEFUL,
    .init = destroy_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, destroy_run }, { 0 } },
};

/* What a reader gets is a copy only where row updates make it necessary, and
 * then it stays so: the op only looks the variable up. */
static enum mst_code disable_copy_on_read_run(struct op_ctx *c)
{
    struct variable *v;

    return op_variable(c, 0, false, &v);
}

const struct op_def def_disable_copy_on_read = {
    .name = "DisableCopyOnRead",
    .in = "resource: resource",
    .flags = OP_STATEFUL,
    .kernel = (const struct op_kernel[]){ { DT_ANY, disable_copy_on_read_run },
                                          { 0 } },
};
