/* Optionals: made, asked whether they hold something, and taken apart. */
#include "tensor/optional.h"
#include "kernel/types.h"

static enum mst_code out_optional(struct op_ctx *c, struct optional *v)
{
    enum mst_code rc = op_out_new(c, 0, 0, NULL);

    if (rc)
        object_unref(&v->o);
    else
        *tensor_object(op_out(c, 0), 0) = &v->o;
    return rc;
}

static enum mst_code get(struct op_ctx *c, const struct optional **ret)
{
    const struct tensor *t = op_in(c, 0);
    struct object *o =
        t->dtype == DT_VARIANT && !t->ndim ? *tensor_object(t, 0) : NULL;

    if (!o || o->kind != &optional_kind)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input to %s must be an optional.", c->node->def->name);
    *ret = CONTAINER(o, struct optional, o);
    return MST_OK;
}

static enum mst_code from_value_run(struct op_ctx *c)
{
    struct optional *v = optional_new(c->node->in_count);

    for (int i = 0; i < v->count; i++)
        v->values[i] = tensor_ref(op_in(c, i));
    return out_optional(c, v);
}

const struct op_def def_optional_from_value = {
    .name = "OptionalFromValue",
    .in = "components: Toutput_types",
    .out = "optional: variant",
    .attr = "Toutput_types: list(type) >= 1",
    .kernel = (const struct op_kernel[]){ { DT_ANY, from_value_run }, { 0 } },
};

static enum mst_code none_run(struct op_ctx *c)
{
    return out_optional(c, optional_new(-1));
}

const struct op_def def_optional_none = {
    .name = "OptionalNone",
    .out = "optional: variant",
    .kernel = (const struct op_kernel[]){ { DT_ANY, none_run }, { 0 } },
};

static enum mst_code has_value_run(struct op_ctx *c)
{
    const struct optional *v;
    enum mst_code rc = get(c, &v);

    if (!rc)
        rc = op_out_new(c, 0, 0, NULL);
    if (!rc)
        *TENSOR_DATA(op_out(c, 0), bool) = v->count >= 0;
    return rc;
}

const struct op_def def_optional_has_value = {
    .name = "OptionalHasValue",
    .in = "optional: variant",
    .out = "has_value: bool",
    .kernel = (const struct op_kernel[]){ { DT_ANY, has_value_run }, { 0 } },
};

static enum mst_code value_init(struct op_node *n, struct status *st)
{
    const struct attr *shapes = op_attr(n, "output_shapes");

    if (shapes->count != op_attr(n, "output_types")->count)
        return status_set(
            st, MST_INVALID_ARGUMENT,
            "output_types and output_shapes must be same length, got:\n"
            "output_types: %d\noutput_shapes: %d",
            op_attr(n, "output_types")->count, shapes->count);
    n->state = (void *)shapes;
    return MST_OK;
}

static enum mst_code check_value(struct op_ctx *c, const struct optional *v)
{
    const struct attr *shapes = c->node->state;
    char a[SHAPE_TEXT_MAX], b[SHAPE_TEXT_MAX];

    if (v->count < 0)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "The given optional does not have a value.");
    if (v->count != c->node->out_count)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "The given optional has %d components, expected %d.",
                       v->count, c->node->out_count);
    for (int i = 0; i < v->count; i++) {
        const struct shape *s = shapes->value[i].shape;

        if (v->values[i].dtype != c->node->out_types[i])
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "The given optional does not match the expected "
                           "type for component %d. Expected: %s. Actual: %s.",
                           i, dtype_name(c->node->out_types[i]),
                           dtype_name(v->values[i].dtype));
        if (!shape_compatible(s, &v->values[i]))
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "The given optional does not match the expected "
                           "shape for component %d. Expected: %s. Actual: %s.",
                           i, shape_text(s->ndim, s->dims, a),
                           tensor_shape_text(&v->values[i], b));
    }
    return MST_OK;
}

static enum mst_code get_value_run(struct op_ctx *c)
{
    const struct optional *v;
    enum mst_code rc = get(c, &v);

    if (!rc)
        rc = check_value(c, v);
    for (int i = 0; !rc && i < v->count; i++)
        *op_out(c, i) = tensor_ref(&v->values[i]);
    return rc;
}

const struct op_def def_optional_get_value = {
    .name = "OptionalGetValue",
    .in = "optional: variant",
    .out = "components: output_types",
    .attr = "output_types: list(type) >= 1; output_shapes: list(shape) >= 1",
    .init = value_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, get_value_run }, { 0 } },
};
