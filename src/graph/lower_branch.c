/*
 * If and Case: every input goes through a Switch to the branch that is taken,
 * every output comes out of a Merge. A branch without inputs hangs on its
 * pivot, a value that is alive when the branch is.
 */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "graph/lower.h"

#define BRANCHES_MAX 1000
#define LIST_FUNC_AT 9 /* field of a list */

static void put_class(struct pb_out *a, const char *node)
{
    struct pb_out list, v;
    char *text = mem_printf("loc:@%s", node);

    pb_out_init(&list);
    pb_out_init(&v);
    pb_put_bytes(&list, 2, text, strlen(text));
    pb_put_bytes(&v, 1, list.data, list.len);
    node_attr_put(a, "_class", &v);
    pb_out_done(&list);
    pb_out_done(&v);
    mem_free(text);
}

/* Branch b lives behind output port[b] of a Switch. */
struct branches {
    bool is_if;
    int count;
    struct called *fn;
    const char **name;
    struct graph_input *pivot;
    int *call;
};

static int port(const struct branches *b, int i)
{
    return b->is_if ? 1 - i : i;
}

static void read_branches(struct lowering *l, struct branches *b)
{
    struct source *s = l->g->s;
    struct pb_field list, f;
    struct pb_in in;

    if (b->is_if) {
        b->fn = ARENA_ARRAY(&s->arena, struct called, 2);
        if (lower_find_attr(l, "then_branch", &b->fn[0]) &&
            lower_find_attr(l, "else_branch", &b->fn[1]))
            b->count = 2;
        return;
    }
    if (!node_attr_find(&s->nodes[l->at], "branches", 1, &list) ||
        list.wire != PB_LEN)
        return;
    b->fn = ARENA_ARRAY(&s->arena, struct called, BRANCHES_MAX);
    in = pb_in(list.data, list.len);
    while (pb_next(&in, &f))
        if (f.number == LIST_FUNC_AT) {
            if (b->count == BRANCHES_MAX ||
                !lower_find(l, &f, &b->fn[b->count]))
                break;
            b->count++;
        }
    if (pb_next(&in, &f) || in.bad)
        b->count = 0;
}

/* A Switch of In number k, by the op's first. */
static enum mst_code add_switch(struct lowering *l, const struct branches *b,
                                const char *name, int k, int *ret)
{
    struct source *s = l->g->s;
    struct source_node n = s->nodes[l->at];
    struct graph_input in[2] = { n.inputs[k], n.inputs[0] };
    struct pb_out a;

    pb_out_init(&a);
    if (!b->is_if)
        node_attr_put_num(&a, "num_outs", 3, (uint64_t)b->count);
    if (k)
        put_class(&a, s->nodes[in[0].node].name);
    return lower_flow(l,
                      &(struct flow){ .name = name,
                                      .op = b->is_if ? "Switch" : "_SwitchN",
                                      .type = n.in_types[k],
                                      .near = k ? in[0].node : l->at },
                      &a, in, 2, 0, ret);
}

/* One node of each branch that is alive when the branch is. */
static enum mst_code add_pivots(struct lowering *l, struct branches *b)
{
    struct source *s = l->g->s;
    struct source_node n = s->nodes[l->at];
    enum mst_code rc;
    int sw;

    rc = add_switch(
        l, b, lower_name(l, n.name, b->is_if ? "switch_pred" : "branch_index"),
        0, &sw);
    if (rc)
        return rc;
    s->nodes[sw].inputs =
        ARENA_ARRAY(&s->arena, struct graph_input, 2 + n.input_count);
    s->nodes[sw].inputs[0] = s->nodes[sw].inputs[1] = n.inputs[0];
    for (int i = n.data_count; i < n.input_count; i++)
        s->nodes[sw].inputs[s->nodes[sw].data_count + i - n.data_count] =
            n.inputs[i];
    s->nodes[sw].input_count += n.input_count - n.data_count;
    for (int p = 0; p < b->count && !rc; p++) {
        struct graph_input in = { sw, p };
        char what[32];
        int at;

        if (b->is_if)
            snprintf(what, sizeof(what), "pivot_%c", p ? 't' : 'f');
        else
            snprintf(what, sizeof(what), "pivot_%d", p);
        rc = lower_flow(l,
                        &(struct flow){ .name = lower_name(l, n.name, what),
                                        .op = "Identity",
                                        .type = n.in_types[0],
                                        .near = l->at },
                        NULL, &in, 1, 0, &at);
        b->pivot[port(b, p)] = (struct graph_input){ at, 0 };
    }
    return rc;
}

static enum mst_code add_branches(struct lowering *l, struct branches *b)
{
    struct source *s = l->g->s;
    struct source_node n = s->nodes[l->at];
    struct graph_input *in =
        ARENA_ARRAY(&s->arena, struct graph_input, n.data_count + 1);
    enum mst_code rc = MST_OK;

    for (int k = 1; k < n.data_count && !rc; k++) {
        const char *src = s->nodes[n.inputs[k].node].name;

        rc = add_switch(l, b, lower_name(l, n.name, src), k, &in[k - 1].node);
    }
    for (int i = 0; i < b->count && !rc; i++) {
        for (int k = 0; k < n.data_count - 1; k++)
            in[k].output = port(b, i);
        in[n.data_count - 1] = (struct graph_input){ b->pivot[i].node, -1 };
        rc = lower_add_call(l, b->name[i], &b->fn[i], in, n.data_count - 1, 1,
                            &b->call[i]);
        if (!rc)
            rc = lower_check_outputs(l, b->call[i], n.out_types, n.out_count);
    }
    return rc;
}

/* A Merge over all branches. */
static enum mst_code add_merge(struct lowering *l, const struct branches *b,
                               const char *what, int type,
                               const struct graph_input *in, int control,
                               int *ret)
{
    struct pb_out a;

    pb_out_init(&a);
    node_attr_put_num(&a, "N", 3, (uint64_t)b->count);
    return lower_flow(
        l,
        &(struct flow){ .name = lower_name(l, l->g->s->nodes[l->at].name, what),
                        .op = "Merge",
                        .type = type,
                        .near = l->at },
        &a, in, b->count, control, ret);
}

static enum mst_code join_branches(struct lowering *l, const struct branches *b)
{
    struct source *s = l->g->s;
    struct source_node n = s->nodes[l->at];
    struct graph_input *in =
        ARENA_ARRAY(&s->arena, struct graph_input, 2 * b->count);
    struct graph_input *out =
        ARENA_ARRAY(&s->arena, struct graph_input, n.out_count);
    struct graph_input done = { 0, -1 };
    enum mst_code rc = MST_OK;
    int control = 0;

    for (int k = 0; k < n.out_count && !rc; k++) {
        for (int i = 0; i < b->count; i++)
            in[i] = (struct graph_input){ b->call[i], k };
        rc = add_merge(l, b, b->is_if ? "output" : "merge", n.out_types[k], in,
                       0, &out[k].node);
    }
    for (int i = 0; i < b->count; i++) {
        in[i] = b->pivot[i];
        if (lower_has_effects(&b->fn[i]))
            in[b->count + control++] = (struct graph_input){ b->call[i], -1 };
    }
    if (!rc)
        rc = add_merge(l, b, "branch_executed", n.in_types[0], in, control,
                       &done.node);
    if (!rc)
        lower_replace(l, l->at, &done, 1, out);
    return rc;
}

static enum mst_code lower_branches(struct lowering *l, bool is_if)
{
    struct source *s = l->g->s;
    const char *name = s->nodes[l->at].name;
    struct branches b = { .is_if = is_if };
    enum mst_code rc;

    read_branches(l, &b);
    if (!b.count || (is_if && s->nodes[l->at].in_types[0] != DT_BOOL))
        return status_set(l->g->st, MST_INVALID_ARGUMENT, "No branches");
    b.name = ARENA_ARRAY(&s->arena, const char *, b.count);
    b.pivot = ARENA_ARRAY(&s->arena, struct graph_input, b.count);
    b.call = ARENA_ARRAY(&s->arena, int, b.count);
    for (int i = 0; i < b.count; i++) {
        char what[32];

        snprintf(what, sizeof(what), "branch%d", i);
        b.name[i] = lower_name(l, name, !is_if ? what : i ? "else" : "then");
    }
    rc = add_pivots(l, &b);
    if (!rc)
        rc = add_branches(l, &b);
    return rc ? rc : join_branches(l, &b);
}

enum mst_code lower_if(struct lowering *l)
{
    return lower_branches(l, true);
}

enum mst_code lower_case(struct lowering *l)
{
    return lower_branches(l, false);
}
