#include "kernel/widen.h"

#include "kernel/narrow.h"

#define VALUES_MAX 24

static enum mst_code widen(struct tensor *to, const struct tensor *from,
                           struct status *st)
{
    enum mst_code rc;

    if (!narrow_is((enum dtype)from->dtype)) {
        *to = tensor_ref(from);
        return MST_OK;
    }
    rc = tensor_new_like(to, DT_FLOAT, from, st);
    if (!rc)
        narrow_load((enum dtype)from->dtype, to->data, from->data, from->count);
    return rc;
}

/* The output of the node's own type; `from` is no more. */
static enum mst_code narrow(struct op_ctx *c, int i, struct tensor *from)
{
    enum mst_code rc = MST_OK;

    if (!tensor_set(from))
        return MST_OK;
    if (!narrow_is((enum dtype)c->node->out_types[i])) {
        tensor_move(op_out(c, i), from);
        return MST_OK;
    }
    rc = op_out_like(c, i, from);
    if (!rc)
        narrow_store((enum dtype)op_out(c, i)->dtype, op_out(c, i)->data,
                     from->data, from->count);
    return rc;
}

enum mst_code widen_run(struct op_ctx *c,
                        enum mst_code (*run)(struct op_ctx *c))
{
    int ins = c->node->in_count, outs = c->node->out_count;
    struct op_value in[VALUES_MAX] = { 0 }, out[VALUES_MAX] = { 0 };
    int in_types[VALUES_MAX], out_types[VALUES_MAX];
    struct op_node node = *c->node;
    struct op_ctx wide = *c;
    enum mst_code rc = MST_OK;

    CHECK(ins <= VALUES_MAX && outs <= VALUES_MAX);
    for (int i = 0; i < ins; i++)
        in_types[i] = narrow_is((enum dtype)node.in_types[i])
                          ? DT_FLOAT
                          : node.in_types[i];
    for (int i = 0; i < outs; i++)
        out_types[i] = narrow_is((enum dtype)node.out_types[i])
                           ? DT_FLOAT
                           : node.out_types[i];
    node.in_types = in_types;
    node.out_types = out_types;
    wide.node = &node;
    wide.in = in;
    wide.out = out;
    for (int i = 0; i < ins && !rc; i++)
        rc = widen(&in[i].t, op_in(c, i), c->st);
    if (!rc)
        rc = run(&wide);
    for (int i = 0; i < outs && !rc; i++)
        rc = narrow(c, i, &out[i].t);
    for (int i = 0; i < ins; i++)
        tensor_unref(&in[i].t);
    for (int i = 0; i < outs; i++)
        tensor_unref(&out[i].t);
    return rc;
}
