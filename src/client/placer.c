#include "client/placer.h"

#include <stdio.h>
#include <string.h>

#include "base/device.h"
#include "base/mem.h"

#define DEVICE_MAX 256

/* What replica_device_setter() takes for state. */
static const char *const ps_ops[] = {
    "Variable",
    "VariableV2",
    "AutoReloadVariable",
    "MutableHashTable",
    "MutableHashTableV2",
    "MutableHashTableOfTensors",
    "MutableHashTableOfTensorsV2",
    "MutableDenseHashTable",
    "MutableDenseHashTableV2",
    "VarHandleOp",
    "BoostedTreesEnsembleResourceHandleOp",
    "BoostedTreesQuantileStreamResourceHandleOp",
    "ResourceConditionalAccumulator",
    "DecisionTreeResource",
};

/* Where workers' gradients meet. */
static const char *const gathering_ops[] = {
    "ConditionalAccumulator",
    "SparseConditionalAccumulator",
};

static bool among(const char *op, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(op, list[i]))
            return true;
    return false;
}

static bool names_a_job(const char *device)
{
    struct device_name d;

    return *device && device_parse(device, strlen(device), &d) && *d.job;
}

static bool is_placed(const struct meta_graph *g)
{
    for (int i = 0; i < g->node_count; i++)
        if (names_a_job(g->nodes[i].device))
            return true;
    return false;
}

/* The op that this one was made beside: the last in its `_class`, -1 for
 * none. */
static int beside(const struct meta_graph *g, const struct meta_node *n)
{
    struct pb_in in = pb_in(n->wire, n->wire_len);
    struct pb_field f, part, list, s;
    int found = -1;

    while (pb_next(&in, &f)) {
        struct pb_in entry = pb_in(f.data, f.len);
        bool right = false;

        if (f.number != 5 || f.wire != PB_LEN)
            continue;
        while (pb_next(&entry, &part)) {
            struct pb_in value = pb_in(part.data, part.len);

            if (part.wire != PB_LEN)
                continue;
            if (part.number == 1)
                right = part.len == 6 && !memcmp(part.data, "_class", 6);
            if (part.number != 2 || !right || !pb_next(&value, &list) ||
                list.number != 1 || list.wire != PB_LEN)
                continue;
            value = pb_in(list.data, list.len);
            while (pb_next(&value, &s))
                if (s.number == 2 && s.wire == PB_LEN && s.len > 5 &&
                    !memcmp(s.data, "loc:@", 5)) {
                    const struct meta_node *other =
                        meta_graph_node(g, (const char *)s.data + 5, s.len - 5);

                    found =
                        other && other != n ? (int)(other - g->nodes) : found;
                }
        }
    }
    return found;
}

/* base, with what the node says itself on top. */
static void merge(const struct device_name *base, const char *own,
                  char text[DEVICE_MAX])
{
    struct device_name d = *base, o;

    if (*own && device_parse(own, strlen(own), &o)) {
        if (*o.job)
            snprintf(d.job, sizeof(d.job), "%s", o.job);
        if (o.replica >= 0)
            d.replica = o.replica;
        if (o.task >= 0)
            d.task = o.task;
        if (*o.type)
            snprintf(d.type, sizeof(d.type), "%s", o.type);
        if (o.id >= 0)
            d.id = o.id;
    }
    device_format(&d, text, DEVICE_MAX);
}

static struct device_name task_of(const char *job, int task)
{
    struct device_name d = { .replica = -1, .task = task, .id = -1 };

    snprintf(d.job, sizeof(d.job), "%s", job);
    return d;
}

/* The node with another device. */
static void put_node(struct pb_out *ret, const struct meta_node *n,
                     const char *device)
{
    struct pb_in in = pb_in(n->wire, n->wire_len);
    const uint8_t *from = in.at;
    struct pb_field f;
    struct pb_out o;

    pb_out_init(&o);
    while (pb_next(&in, &f)) {
        if (f.number != 4)
            pb_put_raw(&o, from, (size_t)(in.at - from));
        from = in.at;
    }
    pb_put_bytes(&o, 4, device, strlen(device));
    pb_put_bytes(ret, 1, o.data, o.len);
    pb_out_done(&o);
}

/* What a GraphDef has beside its nodes. */
static void put_rest(struct pb_out *ret, const struct meta_graph *g)
{
    struct pb_in in = pb_in(g->graph.data, g->graph.len);
    const uint8_t *from = in.at;
    struct pb_field f;

    while (pb_next(&in, &f)) {
        if (f.number != 1)
            pb_put_raw(ret, from, (size_t)(in.at - from));
        from = in.at;
    }
}

static void complete(const struct meta_graph *g, const struct placer_opts *o,
                     struct pb_out *ret)
{
    for (int i = 0; i < g->node_count; i++) {
        const char *device = g->nodes[i].device;
        char text[DEVICE_MAX];
        struct device_name d;

        if (device_parse(device, strlen(device), &d) && d.task < 0 &&
            !strcmp(d.job, o->job)) {
            d.task = o->task;
            device_format(&d, text, sizeof(text));
            device = text;
        }
        put_node(ret, &g->nodes[i], device);
    }
}

struct placing {
    const struct meta_graph *g;
    const struct placer_opts *opts;
    int *task; /* by node: of the ps, -1 for the worker's, -2 unknown */
    int next;
};

/* Nodes come after what they were made beside, but that is not promised. */
static int place_one(struct placing *p, int i, int depth)
{
    const struct meta_node *n = &p->g->nodes[i];
    int other = beside(p->g, n);

    if (p->task[i] != -2)
        return p->task[i];
    if (other >= 0 && depth < 64)
        p->task[i] = place_one(p, other, depth + 1);
    else if (p->opts->ps_tasks && among(n->op, ps_ops, COUNT(ps_ops)))
        p->task[i] = p->next++ % p->opts->ps_tasks;
    else
        p->task[i] = -1;
    return p->task[i];
}

static void set_devices(const struct meta_graph *g, const struct placer_opts *o,
                        struct pb_out *ret)
{
    struct placing p = { g, o, mem_array((size_t)g->node_count, sizeof(int)),
                         0 };

    for (int i = 0; i < g->node_count; i++)
        p.task[i] = -2;
    for (int i = 0; i < g->node_count; i++) {
        int task = place_one(&p, i, 0);
        struct device_name d =
            task >= 0 ? task_of(o->ps_job, task) : task_of(o->job, o->task);
        char text[DEVICE_MAX];

        merge(&d, g->nodes[i].device, text);
        put_node(ret, &g->nodes[i], text);
    }
    mem_free(p.task);
}

enum mst_code placer_place(const struct meta_graph *g,
                           const struct placer_opts *opts, struct pb_out *ret,
                           struct status *st)
{
    if (is_placed(g)) {
        complete(g, opts, ret);
        put_rest(ret, g);
        return MST_OK;
    }
    for (int i = 0; i < g->node_count && opts->workers > 1; i++)
        if (among(g->nodes[i].op, gathering_ops, COUNT(gathering_ops)))
            return status_set(
                st, MST_FAILED_PRECONDITION,
                "The graph gathers gradients of several workers (\"%s\") and "
                "names no devices: export it under "
                "tf.compat.v1.train.replica_device_setter()",
                g->nodes[i].name);
    set_devices(g, opts, ret);
    put_rest(ret, g);
    return MST_OK;
}
