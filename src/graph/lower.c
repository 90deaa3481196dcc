#include "graph/lower.h"

#include <string.h>

#include "base/mem.h"

#define DEPTH_MAX 64
#define MADE_MAX  200000 /* nodes that one graph may grow by */
#define FUNC_AT   10     /* field of an AttrValue */

/* ---- nodes ---- */

const char *lower_name(struct lowering *l, const char *base, const char *what)
{
    struct source *s = l->g->s;
    const char *name;

    do
        name = arena_printf(&s->arena, "%s/%s/_%d", base, what, s->lowered++);
    while (source_find(s, name, strlen(name)) >= 0);
    return name;
}

enum mst_code lower_connect(struct lowering *l, int node,
                            const struct graph_input *inputs, int data,
                            int control)
{
    struct source *s = l->g->s;
    struct source_node *n = &s->nodes[node];

    if (data != n->in_count)
        return graph_bad_input_count(n->name, n->op, n->in_types, n->in_count,
                                     data, l->g->st);
    for (int i = 0; i < data; i++) {
        const struct source_node *src = &s->nodes[inputs[i].node];
        enum mst_code rc = graph_check_edge(
            n->name, i, n->in_types[i], src->name, inputs[i].output,
            src->out_count, src->out_types, l->g->st);

        if (rc)
            return rc;
    }
    n->inputs = arena_copy(&s->arena, inputs,
                           sizeof(*inputs) * (size_t)(data + control));
    n->data_count = data;
    n->input_count = data + control;
    return MST_OK;
}

enum mst_code lower_add(struct lowering *l, const struct lower_node *n,
                        struct pb_out *attrs, int *ret)
{
    struct source *s = l->g->s;
    struct pb_out o;
    enum mst_code rc;
    const uint8_t *wire;

    pb_out_init(&o);
    pb_put_bytes(&o, 1, n->name, strlen(n->name));
    pb_put_bytes(&o, 2, n->op, strlen(n->op));
    if (n->device_len)
        pb_put_bytes(&o, 4, n->device, n->device_len);
    if (attrs) {
        pb_put_raw(&o, attrs->data, attrs->len);
        pb_out_done(attrs);
    }
    wire = arena_copy(&s->arena, o.data, o.len);
    rc = source_enter(l->g, wire, o.len);
    pb_out_done(&o);
    if (rc)
        return rc;
    *ret = s->count - 1;
    s->nodes[*ret].device =
        arena_copy(&s->arena, n->device_len ? n->device : "", n->device_len);
    s->nodes[*ret].device_len = n->device_len;
    return lower_connect(l, *ret, n->inputs, n->data, n->control);
}

void lower_replace(struct lowering *l, int node,
                   const struct graph_input *controls, int count,
                   const struct graph_input *instead)
{
    struct source *s = l->g->s;
    struct source_node *n = &s->nodes[node];
    struct pb_out o;

    pb_out_init(&o);
    pb_put_bytes(&o, 1, n->name, strlen(n->name));
    pb_put_bytes(&o, 2, "NoOp", 4);
    n->wire = arena_copy(&s->arena, o.data, o.len);
    n->wire_len = o.len;
    pb_out_done(&o);
    n->op = "NoOp";
    n->def = op_find("NoOp");
    n->in_count = n->data_count = 0;
    n->calls = false;
    n->inputs =
        arena_copy(&s->arena, controls, sizeof(*controls) * (size_t)count);
    n->input_count = count;
    n->instead =
        arena_copy(&s->arena, instead, sizeof(*instead) * (size_t)n->out_count);
}

/* ---- making nodes of control flow ---- */

enum mst_code lower_flow(struct lowering *l, const struct flow *f,
                         struct pb_out *more, const struct graph_input *in,
                         int data, int control, int *ret)
{
    const struct source_node *near = &l->g->s->nodes[f->near];
    struct pb_out a;

    pb_out_init(&a);
    if (f->type)
        node_attr_put_num(&a, "T", 6, (uint64_t)f->type);
    if (more) {
        pb_put_raw(&a, more->data, more->len);
        pb_out_done(more);
    }
    return lower_add(l,
                     &(struct lower_node){ .name = f->name,
                                           .op = f->op,
                                           .device = near->device,
                                           .device_len = near->device_len,
                                           .inputs = in,
                                           .data = data,
                                           .control = control },
                     &a, ret);
}

/* ---- functions that are called ---- */

bool lower_find(const struct lowering *l, const struct pb_field *list,
                struct called *ret)
{
    struct pb_in in = pb_in(list->data, list->len);
    struct pb_field f;

    *ret = (struct called){ .attrs = list->data, .len = list->len };
    while (list->wire == PB_LEN && pb_next(&in, &f))
        if (f.number == 1 && f.wire == PB_LEN)
            ret->f = map_get(&l->g->s->functions, f.data, f.len);
    return ret->f != NULL;
}

bool lower_find_attr(const struct lowering *l, const char *name,
                     struct called *ret)
{
    struct pb_field f;

    return node_attr_find(&l->g->s->nodes[l->at], name, FUNC_AT, &f) &&
           lower_find(l, &f, ret);
}

/* The call itself, as a node whose op is the function. */
enum mst_code lower_add_call(struct lowering *l, const char *name,
                             const struct called *c,
                             const struct graph_input *in, int data,
                             int control, int *ret)
{
    const struct source_node *n = &l->g->s->nodes[l->at];
    struct pb_in list = pb_in(c->attrs, c->len);
    struct pb_field f;
    struct pb_out a;
    enum mst_code rc;

    pb_out_init(&a);
    while (pb_next(&list, &f))
        if (f.number == 2 && f.wire == PB_LEN)
            pb_put_bytes(&a, 5, f.data, f.len);
    rc = lower_add(l,
                   &(struct lower_node){ .name = name,
                                         .op = c->f->name,
                                         .device = n->device,
                                         .device_len = n->device_len,
                                         .inputs = in,
                                         .data = data,
                                         .control = control },
                   &a, ret);
    if (!rc)
        l->g->s->nodes[*ret].branch = true;
    return rc;
}

enum mst_code lower_check_outputs(struct lowering *l, int call,
                                  const int *types, int count)
{
    const struct source_node *n = &l->g->s->nodes[call];

    if (n->out_count != count ||
        memcmp(n->out_types, types, sizeof(*types) * (size_t)count))
        return status_set(l->g->st, MST_INVALID_ARGUMENT,
                          "The results of %.200s are not what the op says",
                          n->op);
    return MST_OK;
}

/* ---- all of them ---- */

static bool op_is(const struct source_node *n, const char *a, const char *b)
{
    return !strcmp(n->op, a) || !strcmp(n->op, b);
}

static enum mst_code lower_one(struct lowering *l)
{
    const struct source_node *n = &l->g->s->nodes[l->at];
    struct pb_field f;

    if (n->foreign || !n->calls)
        return MST_OK;
    if (op_is(n, "PartitionedCall", "StatefulPartitionedCall") || n->branch)
        return lower_call(l, l->at);
    if (!node_attr_find(n, "_lower_using_switch_merge", 5, &f) || !f.value)
        return MST_OK;
    if (op_is(n, "If", "StatelessIf"))
        return lower_if(l);
    if (op_is(n, "Case", "StatelessCase"))
        return lower_case(l);
    if (op_is(n, "While", "StatelessWhile"))
        return lower_while(l);
    return MST_OK;
}

/* New nodes are one call deeper than the one that they come from. */
static void set_depths(struct lowering *l)
{
    int depth = l->depth[l->at - l->g->first] + 1;

    while (l->depth_count < l->g->s->count - l->g->first)
        *MEM_PUSH(l->depth, l->depth_count, l->depth_room) = depth;
}

static void resolve_inputs(struct growing *g)
{
    struct source *s = g->s;

    for (int i = g->first; i < s->count; i++)
        for (int k = 0; k < s->nodes[i].data_count; k++)
            source_resolve(s, &s->nodes[i].inputs[k]);
}

void lower_nodes(struct growing *g)
{
    struct source *s = g->s;
    struct lowering l = { .g = g };
    int given = s->count;

    for (int i = g->first; i < given; i++)
        *MEM_PUSH(l.depth, l.depth_count, l.depth_room) = 0;
    for (int i = g->first; i < s->count; i++) {
        int count = s->count;

        l.at = i;
        if (l.depth[i - g->first] > DEPTH_MAX || s->count - given > MADE_MAX)
            continue;
        if (lower_one(&l)) { /* it stays as it is */
            source_truncate(s, count);
            status_clear(g->st);
        }
        set_depths(&l);
    }
    mem_free(l.depth);
    resolve_inputs(g);
}
