/*
 * While: a frame of its own, as tf.while_loop made it before there were
 * functions.
 *
 *   Enter -> Merge -> the condition -> LoopCond
 *            Merge -> Switch -> the body -> NextIteration -> Merge
 *                     Switch -> Exit
 *
 * A resource that the body only hands on enters as a constant, and leaves as
 * what came in.
 */
#include <string.h>

#include "graph/lower.h"

#define PARALLEL_ITER 10 /* unless the node says */

struct loop {
    struct called cond, body;
    const char *cond_name, *body_name;
    int64_t parallel;
    int count;                  /* of variables */
    int lead;                   /* the first that is no resource */
    struct graph_input *vars;   /* as the condition, then the body, has them */
    struct graph_input *enters; /* by variable, as all of these */
    int *merges, *switches;
    int call; /* of the body */
};

static bool is_resource(const struct lowering *l, int k)
{
    return l->g->s->nodes[l->at].in_types[k] == DT_RESOURCE;
}

/* Whether the body hands on its argument number k as it is. */
static bool is_invariant(const struct called *body, int k)
{
    const Tensorflow__FunctionDef *d = body->f->def;
    const char *arg = d->signature->input_arg[k]->name, *at = NULL;

    for (size_t i = 0; i < d->n_ret; i++)
        if (!strcmp(d->ret[i]->key, d->signature->output_arg[k]->name))
            at = d->ret[i]->value;
    for (int hops = 0; at && hops < 8; hops++) {
        const char *next = NULL;
        size_t len = strcspn(at, ":");

        if (!strcmp(at, arg))
            return true;
        for (size_t i = 0; i < d->n_node_def; i++)
            if (strlen(d->node_def[i]->name) == len &&
                !memcmp(d->node_def[i]->name, at, len) &&
                !strcmp(d->node_def[i]->op, "Identity") &&
                d->node_def[i]->n_input)
                next = d->node_def[i]->input[0];
        at = next;
    }
    return false;
}

static enum mst_code read_loop(struct lowering *l, struct loop *w)
{
    struct source *s = l->g->s;
    const struct source_node *n = &s->nodes[l->at];
    struct pb_field f;
    bool good = lower_find_attr(l, "cond", &w->cond) &&
                lower_find_attr(l, "body", &w->body) &&
                n->in_count == n->out_count &&
                w->body.f->in_count == n->in_count &&
                w->body.f->out_count == n->in_count;

    w->count = n->in_count;
    w->parallel = PARALLEL_ITER;
    if (node_attr_find(n, "parallel_iterations", 3, &f))
        w->parallel = (int64_t)f.value;
    w->lead = -1;
    for (int k = w->count - 1; k >= 0 && good; k--) {
        if (!is_resource(l, k))
            w->lead = k;
        else
            good = is_invariant(&w->body, k);
    }
    if (!good || w->lead < 0)
        return status_set(l->g->st, MST_INVALID_ARGUMENT,
                          "The loop cannot be taken apart");
    w->vars = ARENA_ARRAY(&s->arena, struct graph_input, w->count + 1);
    w->enters = ARENA_ARRAY(&s->arena, struct graph_input, w->count);
    w->merges = ARENA_ARRAY(&s->arena, int, w->count);
    w->switches = ARENA_ARRAY(&s->arena, int, w->count);
    return MST_OK;
}

static enum mst_code add_enters(struct lowering *l, struct loop *w)
{
    struct source *s = l->g->s;
    struct source_node n = s->nodes[l->at];
    struct graph_input in[2];
    enum mst_code rc = MST_OK;
    int control = n.input_count - n.data_count;

    for (int k = 0; k < w->count && !rc; k++) {
        struct pb_out a;

        pb_out_init(&a);
        node_attr_put_text(&a, "frame_name", n.name, strlen(n.name));
        node_attr_put_num(&a, "parallel_iterations", 3, (uint64_t)w->parallel);
        if (is_resource(l, k))
            node_attr_put_num(&a, "is_constant", 5, true);
        rc = lower_flow(l,
                        &(struct flow){ .name = lower_name(l, n.name, "enter"),
                                        .op = "Enter",
                                        .type = n.in_types[k],
                                        .near = n.inputs[k].node },
                        &a, &n.inputs[k], 1, 0, &w->enters[k].node);
    }
    if (rc || !control)
        return rc;
    in[1].output = -1;
    rc = lower_flow(
        l,
        &(struct flow){ .name = lower_name(l, n.name, "LoopControlInputs"),
                        .op = "NoOp",
                        .near = l->at },
        NULL, n.inputs + n.data_count, 0, control, &in[1].node);
    for (int k = 0; k < w->count && !rc; k++) {
        in[0] = n.inputs[k];
        rc = lower_connect(l, w->enters[k].node, in, 1, 1);
    }
    return rc;
}

/* The variables at the start of an iteration, and whether there is one. */
static enum mst_code add_condition(struct lowering *l, struct loop *w,
                                   struct graph_input *ret)
{
    struct source *s = l->g->s;
    struct source_node n = s->nodes[l->at];
    struct graph_input in[2];
    enum mst_code rc = MST_OK;
    int call;

    for (int k = 0; k < w->count && !rc; k++) {
        struct pb_out a;

        w->vars[k] = w->enters[k];
        if (is_resource(l, k))
            continue;
        pb_out_init(&a);
        node_attr_put_num(&a, "N", 3, 2);
        in[0] = in[1] = w->enters[k]; /* [1] will be the next iteration's */
        rc = lower_flow(l,
                        &(struct flow){ .name = lower_name(l, n.name, "merge"),
                                        .op = "Merge",
                                        .type = n.in_types[k],
                                        .near = w->enters[k].node },
                        &a, in, 2, 0, &w->merges[k]);
        w->vars[k] = (struct graph_input){ w->merges[k], 0 };
    }
    if (rc)
        return rc;
    w->vars[w->count] = (struct graph_input){ w->merges[w->lead], -1 };
    rc = lower_add_call(l, w->cond_name, &w->cond, w->vars, w->count, 1, &call);
    if (!rc)
        rc = lower_check_outputs(l, call, (int[]){ DT_BOOL }, 1);
    if (rc)
        return rc;
    in[0] = (struct graph_input){ call, 0 };
    ret->output = 0;
    return lower_flow(l,
                      &(struct flow){ .name = lower_name(l, n.name, "LoopCond"),
                                      .op = "LoopCond",
                                      .near = l->at },
                      NULL, in, 1, 0, &ret->node);
}

static enum mst_code add_body(struct lowering *l, struct loop *w,
                              struct graph_input cond)
{
    struct source *s = l->g->s;
    struct source_node n = s->nodes[l->at];
    struct graph_input in[2];
    enum mst_code rc = MST_OK;
    int lead;

    for (int k = 0; k < w->count && !rc; k++) {
        const char *var = s->nodes[n.inputs[k].node].name;

        if (is_resource(l, k))
            continue;
        in[0] = (struct graph_input){ w->merges[k], 0 };
        in[1] = cond;
        rc = lower_flow(
            l,
            &(struct flow){
                .name = lower_name(l, n.name,
                                   arena_printf(&s->arena, "%s_switch", var)),
                .op = "Switch",
                .type = n.in_types[k],
                .near = w->merges[k] },
            NULL, in, 2, 0, &w->switches[k]);
        w->vars[k] = (struct graph_input){ w->switches[k], 1 };
    }
    if (!rc)
        rc = lower_flow(
            l,
            &(struct flow){ .name = lower_name(l, n.name, "loop_body_control"),
                            .op = "Identity",
                            .type = n.in_types[w->lead],
                            .near = l->at },
            NULL, &w->vars[w->lead], 1, 0, &lead);
    if (rc)
        return rc;
    w->vars[w->count] = (struct graph_input){ lead, -1 };
    rc = lower_add_call(l, w->body_name, &w->body, w->vars, w->count, 1,
                        &w->call);
    return rc ? rc : lower_check_outputs(l, w->call, n.out_types, n.out_count);
}

/* Where the variables go from an iteration: on, or out. */
static enum mst_code close_loop(struct lowering *l, struct loop *w)
{
    struct source *s = l->g->s;
    struct source_node n = s->nodes[l->at];
    struct graph_input *out =
        ARENA_ARRAY(&s->arena, struct graph_input, w->count);
    struct graph_input *exits =
        ARENA_ARRAY(&s->arena, struct graph_input, w->count);
    struct graph_input in[2];
    enum mst_code rc = MST_OK;
    int exit_count = 0, next;

    for (int k = 0; k < w->count && !rc; k++) {
        out[k] = n.inputs[k]; /* a resource */
        if (is_resource(l, k))
            continue;
        in[0] = (struct graph_input){ w->switches[k], 0 };
        rc = lower_flow(l,
                        &(struct flow){ .name = lower_name(l, n.name, "exit"),
                                        .op = "Exit",
                                        .type = n.in_types[k],
                                        .near = w->switches[k] },
                        NULL, in, 1, 0, &out[k].node);
        out[k].output = 0;
        exits[exit_count++] = (struct graph_input){ out[k].node, -1 };
    }
    s->lowered++; /* as "LoopExecuted" of TensorFlow's, which is the NoOp */
    for (int k = 0; k < w->count && !rc; k++) {
        if (is_resource(l, k))
            continue;
        in[0] = (struct graph_input){ w->call, k };
        in[1] = (struct graph_input){ w->call, -1 };
        rc = lower_flow(
            l,
            &(struct flow){ .name = lower_name(l, n.name, "next_iteration"),
                            .op = "NextIteration",
                            .type = n.in_types[k],
                            .near = w->merges[k] },
            NULL, in, 1, lower_has_effects(&w->body), &next);
        s->nodes[w->merges[k]].inputs[1] = (struct graph_input){ next, 0 };
    }
    if (!rc)
        lower_replace(l, l->at, exits, exit_count, out);
    return rc;
}

enum mst_code lower_while(struct lowering *l)
{
    const char *name = l->g->s->nodes[l->at].name;
    struct loop w = { 0 };
    struct graph_input cond = { 0 };
    enum mst_code rc = read_loop(l, &w);

    if (rc)
        return rc;
    w.cond_name = lower_name(l, name, "cond");
    w.body_name = lower_name(l, name, "body");
    rc = add_enters(l, &w);
    if (!rc)
        rc = add_condition(l, &w, &cond);
    if (!rc)
        rc = add_body(l, &w, cond);
    return rc ? rc : close_loop(l, &w);
}
