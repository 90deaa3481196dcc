/*
 * Nodes that only hand on: Identity and its kin, and NoOps that wait for at
 * most one other node.
 *
 * An Identity is more than it looks when it reads a variable through a
 * reference, when it has control inputs (its value then comes later than its
 * input's), and when others wait for it: behind a Switch, a node that waits for
 * the Identity of one side runs only on that side, whereas the Switch itself
 * runs always. A Merge knows an Enter by its edge, so Enters keep theirs.
 */
#include "exec/draft.h"

static bool is_identity(const struct draft *d, const struct plan_node *n)
{
    for (size_t i = 0; i < COUNT(d->identity); i++)
        if (n->op.def == d->identity[i])
            return true;
    return false;
}

static bool may_be_followed(const struct plan_node *src, unsigned used)
{
    switch (src->kind) {
    case OP_ENTER:
    case OP_NEXT_ITERATION:
        return false;
    case OP_SWITCH: /* an output may be dead while the node is not */
    case OP_RECV:
        return !(used & USED_CONTROL);
    default:
        return true;
    }
}

bool draft_bypass(struct draft *d, int node)
{
    const struct plan_node *n = &d->p->nodes[node];
    const struct graph_node *g = &d->g->nodes[node];

    if (!d->used[node])
        return false; /* a target, which is there to be run */
    if (is_identity(d, n)) {
        if (g->input_count != 1 || !n->in_plain ||
            !may_be_followed(&d->p->nodes[g->inputs[0].node], d->used[node]))
            return false;
        d->instead[node] =
            (struct draft_instead){ g->inputs[0].node, g->inputs[0].output };
        return true;
    }
    if (n->op.def != d->no_op || g->input_count > 1)
        return false;
    d->instead[node].node =
        g->input_count ? g->inputs[0].node : INSTEAD_NOTHING;
    return true;
}
