/*
 * Dead code. What a step is run for stays, and all that it needs: results and
 * what is sent, effects, control flow, and in a graph (not in a function) the
 * nodes that nobody used to begin with: a master has pruned it, so these are
 * the targets. A function's body was never pruned; there the nodes that its
 * control_ret names stay, and what is left is dropped, as TensorFlow does.
 *
 * A pure node that others only wait for is needed for its time, not its value:
 * it stays, hollow, and waits for its inputs. The gradient of a model's input
 * is of that kind, a product or convolution as large as any other.
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

static bool may_be_hollow(const struct draft *d, int node)
{
    const struct plan_node *n = &d->p->nodes[node];

    return n->op.in_count && !n->constant && draft_is_pure(n) &&
           !is_wanted(d, node);
}

static enum mst_code run_hollow(struct op_ctx *c)
{
    (void)c;
    return MST_OK;
}

/* Inputs are waited for instead; but those stay that may be dead while their
 * node is not, so that this one is dead, too. */
static void hollow(struct draft *d, int node)
{
    struct plan_node *n = &d->p->nodes[node];
    struct graph_node *g = &d->g->nodes[node];
    struct graph_input *in =
        ARENA_ARRAY(d->g->arena, struct graph_input, g->input_count);
    int *types = ARENA_ARRAY(&d->p->arena, int, g->data_count);
    int data = 0, waits = g->input_count;

    for (int k = g->input_count - 1; k >= 0; k--) {
        enum op_kind kind = d->p->nodes[g->inputs[k].node].kind;

        if (k < g->data_count && (kind == OP_SWITCH || kind == OP_RECV)) {
            types[data] = n->op.in_types[k];
            in[data++] = g->inputs[k];
        } else {
            in[--waits] = g->inputs[k];
            in[waits].output = -1;
        }
    }
    g->inputs = in;
    g->data_count = n->op.in_count = data;
    n->op.in_types = types;
    n->op.out_count = 0;
    n->op.run = run_hollow;
    n->flags = OP_LIGHT;
}

void draft_sweep(struct draft *d)
{
    const struct graph *g = d->g;
    uint8_t *needed = mem_array((size_t)g->count, sizeof(*needed));

    /* Only NextIteration comes after its consumer, and it is wanted. */
    for (int k = g->count - 1; k >= 0; k--) {
        int i = g->order[k];
        const struct graph_node *n = &g->nodes[i];

        if (!needed[i] && !is_wanted(d, i)) {
            drop(&d->p->nodes[i]);
            continue;
        }
        if (needed[i] == USED_CONTROL && may_be_hollow(d, i))
            hollow(d, i);
        for (int e = 0; e < n->input_count; e++)
            needed[n->inputs[e].node] |=
                n->inputs[e].output >= 0 ? USED_DATA : USED_CONTROL;
    }
    mem_free(needed);
}
