#include "exec/optimise.h"

#include "base/mem.h"
#include "exec/draft.h"

bool draft_is_pure(const struct plan_node *n)
{
    if (n->kind != OP_ORDINARY || !n->in_plain ||
        (n->flags & (OP_STATEFUL | OP_ASYNC | OP_BLOCKING)))
        return false;
    for (int i = 0; i < n->op.in_count + n->op.out_count; i++) {
        int t = i < n->op.in_count ? n->op.in_types[i]
                                   : n->op.out_types[i - n->op.in_count];

        if (dtype_is_ref(t) || t == DT_RESOURCE || t == DT_VARIANT)
            return false;
    }
    return true;
}

const struct tensor *draft_constant(const struct draft *d,
                                    const struct graph_input *in)
{
    const struct plan_node *n = &d->p->nodes[in->node];

    if (n->constant)
        return &n->constant[in->output];
    return n->op.def == d->constant ? n->op.state : NULL;
}

bool draft_is_free_constant(const struct draft *d, int node)
{
    return !d->g->nodes[node].input_count &&
           draft_constant(d, &(struct graph_input){ node, 0 });
}

/* ---- inputs as they are by now ---- */

static void resolve_data(struct draft *d, int node)
{
    struct graph_node *g = &d->g->nodes[node];
    bool merge = d->p->nodes[node].kind == OP_MERGE;

    for (int k = 0; k < g->data_count; k++) {
        struct graph_input *in = &g->inputs[k];
        const struct draft_instead *other = &d->instead[in->node];

        if (other->node >= 0) {
            in->node = other->node;
            if (other->output != INSTEAD_SAME)
                in->output = other->output;
        }
        if (!merge) /* a Merge does not wait for all of its inputs */
            d->stamp[in->node] = node + 1;
    }
}

/* Waiting twice for one node, or for one whose value is needed anyway, or for
 * a constant, is no waiting. */
static void resolve_control(struct draft *d, int node)
{
    struct graph_node *g = &d->g->nodes[node];
    int count = g->data_count;

    for (int k = g->data_count; k < g->input_count; k++) {
        struct graph_input in = g->inputs[k];
        int other = d->instead[in.node].node;

        if (other >= 0)
            in.node = other;
        if (other == INSTEAD_NOTHING || d->stamp[in.node] == node + 1 ||
            draft_is_free_constant(d, in.node))
            continue;
        d->stamp[in.node] = node + 1;
        g->inputs[count++] = in;
    }
    g->input_count = count;
}

/* ---- the whole ---- */

static void note_uses(struct draft *d)
{
    for (int i = 0; i < d->g->count; i++) {
        const struct graph_node *n = &d->g->nodes[i];

        for (int k = 0; k < n->input_count; k++)
            d->used[n->inputs[k].node] |=
                n->inputs[k].output >= 0 ? USED_DATA : USED_CONTROL;
    }
}

static void draft_init(struct draft *d, struct plan *p, struct graph *g)
{
    static const char *const identities[] = { "Identity", "StopGradient",
                                              "PreventGradient", "Snapshot" };
    size_t count = (size_t)g->count;

    *d = (struct draft){ .p = p, .g = g };
    d->instead = mem_array(count, sizeof(*d->instead));
    d->used = mem_array(count, sizeof(*d->used));
    d->stamp = mem_array(count, sizeof(*d->stamp));
    for (size_t i = 0; i < count; i++)
        d->instead[i] = (struct draft_instead){ INSTEAD_NONE, INSTEAD_SAME };
    d->constant = op_find("Const");
    d->no_op = op_find("NoOp");
    for (size_t i = 0; i < COUNT(identities); i++)
        d->identity[i] = op_find(identities[i]);
    cse_init(&d->cse, g->count);
    note_uses(d);
}

static void draft_done(struct draft *d)
{
    cse_done(&d->cse);
    mem_free(d->instead);
    mem_free(d->used);
    mem_free(d->stamp);
}

void optimise(struct plan *p, struct graph *g)
{
    struct draft d;

    draft_init(&d, p, g);
    for (int k = 0; k < g->count; k++) {
        int i = g->order[k];

        resolve_data(&d, i);
        resolve_control(&d, i);
        if (!draft_bypass(&d, i) && !draft_merge(&d, i))
            draft_fold(&d, i);
    }
    draft_sweep(&d);
    draft_fuse(&d);
    draft_done(&d);
}
