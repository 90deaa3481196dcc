/*
 * Fusion: a tree of element-wise float nodes becomes its last node, which runs
 * all of them (kernel/fused.h).
 *
 * A node goes into the tree of its consumer when nobody else has its value or
 * waits for it, and it waits for nothing but its inputs. Then both run in the
 * same iteration, under the same conditions, and nobody can tell that the first
 * has no turn of its own. The node that stays has its name in the statistics of
 * a step; a failure names the node that failed.
 */
#include "exec/draft.h"

#include "base/mem.h"
#include "kernel/fused.h"

enum { USES_MANY = 2 };

struct fusing {
    struct draft *d;
    uint8_t *uses;        /* by node: 0, 1, or more */
    struct fused_op *ops; /* the tree at hand, in the order of running */
    int count, room;      /* ops in it, and how many may still come */
    struct graph_input in[FUSED_OPS_MAX + 1];
    int in_count;
};

static enum mst_code tree_run(struct op_ctx *c)
{
    struct plan_node *n = CONTAINER(c->node, struct plan_node, op);
    const struct op_node *self = c->node;
    const struct op_node *last = n->fused->ops[n->fused->count - 1].node;
    enum mst_code rc = fused_run(c, n->fused);

    if (c->node == last)
        c->node = self; /* last is a copy */
    return rc;
}

static void count_uses(struct fusing *f)
{
    const struct graph *g = f->d->g;

    for (int i = 0; i < g->count; i++) {
        const struct graph_node *n = &g->nodes[i];

        for (int k = 0; k < n->input_count && !f->d->p->nodes[i].gone; k++) {
            uint8_t *uses = &f->uses[n->inputs[k].node];

            *uses =
                n->inputs[k].output < 0 ? USES_MANY : MIN(*uses + 1, USES_MANY);
        }
    }
}

static bool is_float(const struct plan_node *n)
{
    if (n->gone || n->constant || n->fused || n->op.in_count < 1 ||
        n->op.in_count > 2 || n->op.out_count != 1 ||
        n->op.out_types[0] != DT_FLOAT)
        return false;
    for (int i = 0; i < n->op.in_count; i++)
        if (n->op.in_types[i] != DT_FLOAT)
            return false;
    return draft_is_pure(n);
}

/* Whether the node may be part of its only consumer's tree. */
static bool is_private(const struct fusing *f, int node)
{
    const struct graph_node *g = &f->d->g->nodes[node];

    return f->uses[node] == 1 && !g->wanted &&
           g->input_count == g->data_count && is_float(&f->d->p->nodes[node]);
}

static bool joins(const struct fusing *f, int node, struct fused_op *op)
{
    return f->room > 0 && is_private(f, node) &&
           fused_find(&f->d->p->nodes[node].op, op);
}

/* Whether the node may be the last of a tree; most are found not to be without
 * asking their kernels. */
static bool ends_tree(const struct fusing *f, int node, struct fused_op *op)
{
    const struct graph_node *g = &f->d->g->nodes[node];
    bool any = false;

    if (!is_float(&f->d->p->nodes[node]))
        return false;
    for (int k = 0; k < g->data_count; k++)
        any |= is_private(f, g->inputs[k].node);
    return any && fused_find(&f->d->p->nodes[node].op, op);
}

static int add_input(struct fusing *f, struct graph_input in)
{
    for (int i = 0; i < f->in_count; i++)
        if (f->in[i].node == in.node && f->in[i].output == in.output)
            return i;
    f->in[f->in_count] = in;
    return f->in_count++;
}

/* Adds what the node needs, then the node itself; its number in the tree. */
static int grow(struct fusing *f, int node, struct fused_op op)
{
    const struct graph_node *g = &f->d->g->nodes[node];

    for (int k = 0; k < g->data_count; k++) {
        struct fused_op before;
        int src = g->inputs[k].node;

        if (joins(f, src, &before)) {
            f->room--;
            op.arg[k] = ~grow(f, src, before);
        } else {
            op.arg[k] = add_input(f, g->inputs[k]);
        }
    }
    f->ops[f->count] = op;
    return f->count++;
}

/* The inputs of the tree become those of its last node. */
static void connect(struct fusing *f, int node)
{
    struct plan *p = f->d->p;
    struct plan_node *n = &p->nodes[node];
    struct graph_node *g = &f->d->g->nodes[node];
    int waits = g->input_count - g->data_count;
    struct graph_input *in =
        ARENA_ARRAY(f->d->g->arena, struct graph_input, f->in_count + waits);
    int *types = ARENA_ARRAY(&p->arena, int, f->in_count);

    memcpy(in, f->in, (size_t)f->in_count * sizeof(*in));
    memcpy(in + f->in_count, g->inputs + g->data_count,
           (size_t)waits * sizeof(*in));
    for (int i = 0; i < f->in_count; i++)
        types[i] = DT_FLOAT;
    g->inputs = in;
    g->data_count = n->op.in_count = f->in_count;
    g->input_count = f->in_count + waits;
    n->op.in_types = types;
    n->in_how = ARENA_ARRAY(&p->arena, uint8_t, f->in_count); /* IN_VALUE */
}

static void make_tree(struct fusing *f, int node)
{
    struct plan *p = f->d->p;
    struct plan_node *n = &p->nodes[node];
    size_t size = (size_t)f->count * sizeof(struct fused_op);
    struct fused *tree = arena_alloc(&p->arena, sizeof(*tree) + size);

    tree->count = f->count;
    memcpy(tree->ops, f->ops, size);
    if (!fused_lay_out(tree))
        return;
    for (int k = 0; k < f->count - 1; k++)
        CONTAINER(tree->ops[k].node, struct plan_node, op)->gone = true;
    tree->ops[f->count - 1].node = arena_copy(&p->arena, &n->op, sizeof(n->op));
    connect(f, node);
    n->op.run = tree_run;
    n->fused = tree;
}

void draft_fuse(struct draft *d)
{
    struct fused_op ops[FUSED_OPS_MAX];
    struct fusing f = { .d = d, .ops = ops };

    f.uses = mem_array((size_t)d->g->count, sizeof(*f.uses));
    count_uses(&f);
    /* Consumers first, so that trees are as large as they can be. */
    for (int k = d->g->count - 1; k >= 0; k--) {
        int i = d->g->order[k];
        struct fused_op op;

        if (!ends_tree(&f, i, &op))
            continue;
        f.count = f.in_count = 0;
        f.room = FUSED_OPS_MAX - 1;
        grow(&f, i, op);
        if (f.count > 1)
            make_tree(&f, i);
    }
    mem_free(f.uses);
}
