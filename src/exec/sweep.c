/*
 * Dead code. What a step is run for stays, and all that it needs: results and
 * what is sent, effects, control flow, and in a graph (not in a function) the
 * nodes that nobody used to begin with: a master has pruned it, so these are
 * the targets. A function's body was never pruned; there the nodes that its
 * control_ret names stay, and what is left is dropped, as TensorFlow does.
 */
#include "base/mem.h"
#include "exec/draft.h"

static void drop(struct plan_node *n)
{
    n->gone = true;
    for (int i = 0; n->constant && i < n->op.out_count; i++)
        tensor_unref(&n->constant[i]);
}

static bool is_wanted(const struct draft *d, int node)
{
    const struct plan_node *n = &d->p->nodes[node];

    if (n->kind != OP_ORDINARY || (n->flags & OP_STATEFUL) ||
        d->g->nodes[node].wanted)
        return true;
    if (!d->p->parent)
        return !d->used[node];
    for (int i = 0; i < n->op.in_count; i++)
        if (dtype_is_ref(n->op.in_types[i]))
            return true;
    return false;
}

void draft_sweep(struct draft *d)
{
    const struct graph *g = d->g;
    bool *needed = mem_array((size_t)g->count, sizeof(bool));

    /* Only NextIteration comes after its consumer, and it is wanted. */
    for (int k = g->count - 1; k >= 0; k--) {
        int i = g->order[k];
        const struct graph_node *n = &g->nodes[i];

        if (!needed[i] && !is_wanted(d, i)) {
            drop(&d->p->nodes[i]);
            continue;
        }
        for (int e = 0; e < n->input_count; e++)
            needed[n->inputs[e].node] = true;
    }
    mem_free(needed);
}
