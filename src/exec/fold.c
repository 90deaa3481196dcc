/*
 * Constant folding: a pure node whose inputs are all constants is run by its
 * own kernel, here and now, and gives that result in every step.
 *
 * A node that fails stays as it is, and fails when a step runs it. One that
 * would give more than LIMIT_NODE bytes, or more than LIMIT_PLAN together with
 * the others, stays too: the kernel is refused the memory, so that a Fill of
 * gigabytes behind a branch that is never taken costs nothing.
 *
 * The node waits for what it waited for, and for what its inputs did: in a
 * loop and in a branch, constants are alive when something else is.
 */
#include <string.h>

#include "base/mem.h"
#include "exec/draft.h"
#include "tensor/limit.h"

#define LIMIT_NODE      (10u << 20)
#define LIMIT_PLAN      (64u << 20)
#define WAITS_MAX       16
#define FOLD_INPUTS_MAX 4096

static enum mst_code constant_run(struct op_ctx *c)
{
    const struct plan_node *n = CONTAINER(c->node, struct plan_node, op);

    for (int i = 0; i < n->op.out_count; i++)
        c->out[i].t = tensor_ref(&n->constant[i]);
    return MST_OK;
}

/* ---- what it has to wait for ---- */

static bool add_wait(struct graph_input *list, int *count, int node)
{
    for (int i = 0; i < *count; i++)
        if (list[i].node == node)
            return true;
    if (*count == WAITS_MAX)
        return false;
    list[(*count)++] = (struct graph_input){ node, -1 };
    return true;
}

/* All control inputs of the node and of its inputs; false: too many. */
static bool gather_waits(const struct draft *d, int node,
                         struct graph_input *list, int *ret_count)
{
    const struct graph_node *n = &d->g->nodes[node];

    for (int k = 0; k < n->input_count; k++) {
        const struct graph_node *in = &d->g->nodes[n->inputs[k].node];

        if (k >= n->data_count) {
            if (!add_wait(list, ret_count, n->inputs[k].node))
                return false;
            continue;
        }
        for (int c = in->data_count; c < in->input_count; c++)
            if (!add_wait(list, ret_count, in->inputs[c].node))
                return false;
    }
    return true;
}

/* ---- running it ---- */

static enum mst_code evaluate(const struct draft *d, int node,
                              struct op_value *in, struct op_value *out)
{
    const struct plan_node *n = &d->p->nodes[node];
    struct op_step step = { 0 };
    struct status st = STATUS_INIT;
    struct op_ctx c = {
        .node = &n->op, .step = &step, .in = in, .out = out, .st = &st
    };
    size_t left = LIMIT_PLAN - d->folded_bytes;
    enum mst_code rc;

    for (int k = 0; k < n->op.in_count; k++)
        in[k].t = tensor_ref(draft_constant(d, &d->g->nodes[node].inputs[k]));
    tensor_limit(MIN(LIMIT_NODE, left));
    rc = n->op.run(&c);
    tensor_limit(SIZE_MAX);
    for (int i = 0; i < n->op.out_count && !rc; i++)
        if (out[i].t.dtype != n->op.out_types[i])
            rc = MST_INTERNAL;
    return rc;
}

/* Its outputs are taken over. */
static void keep(struct draft *d, int node, struct op_value *out,
                 const struct graph_input *waits, int wait_count)
{
    struct plan_node *n = &d->p->nodes[node];
    struct graph_node *g = &d->g->nodes[node];

    n->constant = ARENA_ARRAY(&d->p->arena, struct tensor, n->op.out_count);
    for (int i = 0; i < n->op.out_count; i++) {
        tensor_move(&n->constant[i], &out[i].t);
        d->folded_bytes += tensor_bytes(&n->constant[i]);
    }
    n->op.run = constant_run;
    n->op.in_count = 0;
    g->data_count = 0;
    g->input_count = wait_count;
    g->inputs =
        arena_copy(d->g->arena, waits, (size_t)wait_count * sizeof(*waits));
}

static bool is_foldable(const struct draft *d, int node)
{
    const struct plan_node *n = &d->p->nodes[node];
    const struct graph_node *g = &d->g->nodes[node];

    if (!n->op.in_count || n->op.in_count > FOLD_INPUTS_MAX ||
        !n->op.out_count || d->folded_bytes >= LIMIT_PLAN)
        return false;
    for (int k = 0; k < g->data_count; k++)
        if (!draft_constant(d, &g->inputs[k]))
            return false;
    return draft_is_pure(n);
}

void draft_fold(struct draft *d, int node)
{
    const struct plan_node *n = &d->p->nodes[node];
    struct graph_input waits[WAITS_MAX];
    int wait_count = 0, in_count = n->op.in_count;
    struct op_value *in, *out;

    if (!is_foldable(d, node) || !gather_waits(d, node, waits, &wait_count))
        return;
    in = mem_array((size_t)in_count, sizeof(*in));
    out = mem_array((size_t)n->op.out_count, sizeof(*out));
    if (!evaluate(d, node, in, out))
        keep(d, node, out, waits, wait_count);
    for (int k = 0; k < in_count; k++)
        tensor_unref(&in[k].t);
    for (int i = 0; i < n->op.out_count; i++)
        tensor_unref(&out[i].t);
    mem_free(in);
    mem_free(out);
}
