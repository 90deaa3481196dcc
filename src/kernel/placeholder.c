/*
 * Placeholders. One that is fed is replaced before a graph is compiled, so a
 * placeholder that runs has no value, unless it brought one.
 */
#include "kernel/types.h"

static enum mst_code placeholder(struct op_ctx *c)
{
    const struct shape *s = op_attr_shape(c->node, "shape");
    char text[SHAPE_TEXT_MAX];

    /* A scalar was once how graphs said that they knew no shape. */
    if (s->ndim <= 0)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "You must feed a value for placeholder tensor '%s' with "
                       "dtype %s",
                       c->node->name, dtype_name(c->node->out_types[0]));
    return op_fail(c, MST_INVALID_ARGUMENT,
                   "You must feed a value for placeholder tensor '%s' with "
                   "dtype %s and shape %s",
                   c->node->name, dtype_name(c->node->out_types[0]),
                   shape_text(s->ndim, s->dims, text));
}

const struct op_def def_placeholder = {
    .name = "Placeholder",
    .out = "output: dtype",
    .attr = "dtype: type; shape: shape = unknown",
    .key = "dtype",
    .kernel = (const struct op_kernel[]){ { DT_ANY, placeholder }, { 0 } },
};

const struct op_def def_placeholder_v2 = {
    .name = "PlaceholderV2",
    .out = "output: dtype",
    .attr = "dtype: type; shape: shape",
    .key = "dtype",
    .kernel = (const struct op_kernel[]){ { DT_ANY, placeholder }, { 0 } },
};

static enum mst_code placeholder_with_default(struct op_ctx *c)
{
    op_out_same(c, 0, 0);
    return MST_OK;
}

const struct op_def def_placeholder_with_default = {
    .name = "PlaceholderWithDefault",
    .in = "input: dtype",
    .out = "output: dtype",
    .attr = "dtype: type; shape: shape",
    .key = "dtype",
    .kernel = (const struct op_kernel[]){ { DT_ANY, placeholder_with_default },
                                          { 0 } },
};
