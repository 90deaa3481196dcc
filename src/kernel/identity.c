/*
 * Ops that hand their input on, and those that have nothing to hand on.
 */
#include "kernel/summary.h"
#include "kernel/types.h"

static enum mst_code identity(struct op_ctx *c)
{
    op_out_same(c, 0, 0);
    return MST_OK;
}

static const struct op_kernel identity_kernel[] = { { DT_ANY, identity },
                                                    { 0 } };

const struct op_def def_identity = {
    .name = "Identity",
    .in = "input: T",
    .out = "output: T",
    .attr = "T: type",
    .flags = OP_LIGHT,
    .kernel = identity_kernel,
};

const struct op_def def_snapshot = {
    .name = "Snapshot",
    .in = "input: T",
    .out = "output: T",
    .attr = "T: type",
    .flags = OP_LIGHT,
    .kernel = identity_kernel,
};

const struct op_def def_stop_gradient = {
    .name = "StopGradient",
    .in = "input: T",
    .out = "output: T",
    .attr = "T: type",
    .flags = OP_LIGHT,
    .kernel = identity_kernel,
};

const struct op_def def_prevent_gradient = {
    .name = "PreventGradient",
    .in = "input: T",
    .out = "output: T",
    .attr = "T: type; message: string = ''",
    .flags = OP_LIGHT,
    .kernel = identity_kernel,
};

static enum mst_code identity_n(struct op_ctx *c)
{
    for (int i = 0; i < c->node->in_count; i++)
        op_out_same(c, i, i);
    return MST_OK;
}

const struct op_def def_identity_n = {
    .name = "IdentityN",
    .in = "input: T",
    .out = "output: T",
    .attr = "T: list(type) >= 1",
    .flags = OP_LIGHT,
    .kernel = (const struct op_kernel[]){ { DT_ANY, identity_n }, { 0 } },
};

static enum mst_code ref_identity(struct op_ctx *c)
{
    op_out_ref(c, 0, 0);
    return MST_OK;
}

const struct op_def def_ref_identity = {
    .name = "RefIdentity",
    .in = "input: Ref(T)",
    .out = "output: Ref(T)",
    .attr = "T: type",
    .flags = OP_UNINIT_REF,
    .kernel = (const struct op_kernel[]){ { DT_ANY, ref_identity }, { 0 } },
};

static enum mst_code no_op(struct op_ctx *c)
{
    (void)c;
    return MST_OK;
}

const struct op_def def_no_op = {
    .name = "NoOp",
    .kernel = (const struct op_kernel[]){ { DT_ANY, no_op }, { 0 } },
};

const struct op_def def_control_trigger = {
    .name = "ControlTrigger",
    .kind = OP_CONTROL_TRIGGER,
    .kernel = (const struct op_kernel[]){ { DT_ANY, no_op }, { 0 } },
};

static enum mst_code constant(struct op_ctx *c)
{
    *op_out(c, 0) = tensor_ref(c->node->state);
    return MST_OK;
}

static enum mst_code constant_init(struct op_node *n, struct status *st)
{
    const struct tensor *t = op_attr_tensor(n, "value");

    if (t->dtype != op_attr_type(n, "dtype"))
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Type mismatch between value (%s) and dtype (%s)"
                          "\n\t [[{{node %s}}]]",
                          dtype_name(t->dtype),
                          dtype_name(op_attr_type(n, "dtype")), n->name);
    n->state = (void *)t;
    return MST_OK;
}

const struct op_def def_const = {
    .name = "Const",
    .out = "output: dtype",
    .attr = "value: tensor; dtype: type",
    .key = "dtype",
    .init = constant_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, constant }, { 0 } },
};

static enum mst_code assert_init(struct op_node *n, struct status *st)
{
    int64_t *summarize = ARENA_NEW(n->arena, int64_t);

    (void)st;
    *summarize = op_attr_int(n, "summarize");
    n->state = summarize;
    return MST_OK;
}

static enum mst_code assert_true(struct op_ctx *c)
{
    const struct tensor *t = op_in(c, 0);
    struct text text = { 0 };
    char shape[SHAPE_TEXT_MAX];

    if (t->count != 1)
        return op_fail(c, MST_INVALID_ARGUMENT, "In[0] should be a scalar: %s",
                       tensor_shape_text(t, shape));
    if (*TENSOR_DATA(t, bool))
        return MST_OK;
    for (int i = 1; i < c->node->in_count; i++) {
        text_addf(&text, " [");
        summary_add_first(&text, op_in(c, i), *(int64_t *)c->node->state);
        text_addf(&text, "]");
    }
    status_set(c->st, MST_INVALID_ARGUMENT, "assertion failed:%.*s",
               (int)MIN(text.len, STATUS_MSG_MAX), text.data);
    text_done(&text);
    return MST_INVALID_ARGUMENT;
}

const struct op_def def_assert = {
    .name = "Assert",
    .in = "condition: bool, data: T",
    .attr = "T: list(type) >= 1; summarize: int = 3",
    .flags = OP_STATEFUL,
    .init = assert_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, assert_true }, { 0 } },
};
