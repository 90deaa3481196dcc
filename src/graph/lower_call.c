/*
 * A call gives way to the body of its function.
 *
 * Nodes of the body are named by the call and their own name. A node that says
 * nothing about its device gets the call's. What the call waits for, every node
 * waits for that has no input of its own; so in a branch that is not taken all
 * of the body is dead.
 */
#include <string.h>

#include "base/device.h"
#include "base/mem.h"
#include "graph/lower.h"
#include "wire/control.h"

struct body {
    struct lowering *l;
    const struct source_node *call; /* a copy */
    const struct graph_function *f;
    const uint8_t *attrs; /* entries of the call: fields `field` in there */
    size_t attrs_len;
    uint32_t field;
    struct graph g;
    struct map names;         /* of the body's nodes */
    struct graph_input *args; /* what stands for the arguments */
    int base;                 /* the node that the body's first is */
};

/* ---- which function, and how it is called ---- */

/* Of a PartitionedCall the attribute `f` says it, of others the op. */
static bool find_function(struct body *b)
{
    struct source *s = b->l->g->s;
    struct pb_field f, part;
    struct pb_in in;

    if (!b->call->def) {
        b->f = map_get_str(&s->functions, b->call->op);
        b->attrs = b->call->wire;
        b->attrs_len = b->call->wire_len;
        b->field = 5;
        return b->f != NULL;
    }
    if (!node_attr_find(b->call, "f", 10, &f) || f.wire != PB_LEN)
        return false;
    in = pb_in(f.data, f.len);
    while (pb_next(&in, &part))
        if (part.number == 1 && part.wire == PB_LEN)
            b->f = map_get(&s->functions, part.data, part.len);
    b->attrs = f.data;
    b->attrs_len = f.len;
    b->field = 2;
    return b->f != NULL;
}

/* The value that the call gives for a name, as the bytes of an AttrValue. */
static bool find_value(const struct body *b, const char *name,
                       struct pb_field *ret)
{
    struct pb_in in = pb_in(b->attrs, b->attrs_len);
    struct pb_field f, part;

    while (pb_next(&in, &f)) {
        struct pb_in entry = pb_in(f.data, f.len);
        bool found = false;

        if (f.number != b->field || f.wire != PB_LEN)
            continue;
        while (pb_next(&entry, &part)) {
            if (part.number == 1 && part.wire == PB_LEN)
                found = part.len == strlen(name) &&
                        !memcmp(part.data, name, part.len);
            if (part.number == 2 && part.wire == PB_LEN && found) {
                *ret = part;
                return true;
            }
        }
    }
    return false;
}

/* The body with its inputs resolved, in the scratch memory. */
static enum mst_code make_body(struct body *b)
{
    struct growing *g = b->l->g;
    struct pb_in in = pb_in(b->attrs, b->attrs_len);
    struct pb_field f;
    struct pb_out o;
    Tensorflow__NodeDef *d;
    const struct attr *args;
    struct map none = g->scratch->functions;
    int count;
    enum mst_code rc;

    pb_out_init(&o);
    while (pb_next(&in, &f))
        if (f.number == b->field && f.wire == PB_LEN)
            pb_put_bytes(&o, 5, f.data, f.len);
    d = CONTROL_UNPACK(tensorflow__node_def, o.data, o.len);
    pb_out_done(&o);
    if (!d)
        return status_set(g->st, MST_INVALID_ARGUMENT,
                          "The attributes of a call cannot be read");
    rc = graph_attrs(g->scratch, b->call->name, d->attr, d->n_attr, NULL, 0,
                     &args, &count, g->st);
    control_free(d);
    g->scratch->functions = g->s->functions;
    if (!rc)
        rc = graph_function_body(g->scratch, b->f, args, count, &b->g, g->st);
    g->scratch->functions = none;
    return rc;
}

/* ---- nodes ---- */

static void put_entry(struct pb_out *o, const char *key, const uint8_t *value,
                      size_t len)
{
    struct pb_out v;

    pb_out_init(&v);
    pb_put_raw(&v, value, len);
    node_attr_put(o, key, &v);
    pb_out_done(&v);
}

/* `_class`: who is named, and of the body, has another name now. */
static void put_class(struct body *b, struct pb_out *o,
                      const Tensorflow__AttrValue *v)
{
    const Tensorflow__AttrValue__ListValue *l = v->list;
    struct pb_out list, value;

    pb_out_init(&list);
    pb_out_init(&value);
    for (size_t i = 0; i < l->n_s; i++) {
        const char *text = (const char *)l->s[i].data;
        size_t len = l->s[i].len;
        char *moved = NULL;

        if (len > 5 && !memcmp(text, "loc:@", 5) &&
            map_get(&b->names, text + 5, len - 5))
            moved = mem_printf("loc:@%s/%.*s", b->call->name, (int)len - 5,
                               text + 5);
        pb_put_bytes(&list, 2, moved ? moved : text,
                     moved ? strlen(moved) : len);
        mem_free(moved);
    }
    pb_put_bytes(&value, 1, list.data, list.len);
    node_attr_put(o, "_class", &value);
    pb_out_done(&list);
    pb_out_done(&value);
}

static void put_frame(struct body *b, struct pb_out *o,
                      const Tensorflow__AttrValue *v)
{
    char *name = mem_printf("%s/%.*s", b->call->name, (int)v->s.len,
                            (const char *)v->s.data);

    node_attr_put_text(o, "frame_name", name, strlen(name));
    mem_free(name);
}

static void put_attr(struct body *b, struct pb_out *o,
                     const Tensorflow__AttrEntry *e)
{
    const Tensorflow__AttrValue *v = e->value;
    struct pb_field given;
    uint8_t *bytes;
    size_t len;

    if (!v)
        return;
    if (v->value_case == TENSORFLOW__ATTR_VALUE__VALUE_PLACEHOLDER &&
        find_value(b, v->placeholder, &given)) {
        put_entry(o, e->key, given.data, given.len);
    } else if (v->value_case == TENSORFLOW__ATTR_VALUE__VALUE_LIST &&
               !strcmp(e->key, "_class")) {
        put_class(b, o, v);
    } else if (v->value_case == TENSORFLOW__ATTR_VALUE__VALUE_S &&
               !strcmp(e->key, "frame_name")) {
        put_frame(b, o, v);
    } else {
        len = protobuf_c_message_get_packed_size(&v->base);
        bytes = mem_new(len + 1);
        protobuf_c_message_pack(&v->base, bytes);
        put_entry(o, e->key, bytes, len);
        mem_free(bytes);
    }
}

/* What the node says of its device, and the call for the rest. */
static const char *choose_device(const struct body *b, const char *own,
                                 char *buf, size_t room)
{
    struct device_name d, more;

    if (!*own || !device_parse(own, strlen(own), &d) ||
        !device_parse(b->call->device ? b->call->device : "",
                      b->call->device_len, &more))
        return own;
    if (!*d.job)
        memcpy(d.job, more.job, sizeof(d.job));
    if (d.replica < 0)
        d.replica = more.replica;
    if (d.task < 0)
        d.task = more.task;
    if (!*d.type)
        memcpy(d.type, more.type, sizeof(d.type));
    if (d.id < 0)
        d.id = more.id;
    device_format(&d, buf, room);
    return buf;
}

/* Its inputs come later. */
static enum mst_code add_node(struct body *b, const Tensorflow__NodeDef *d)
{
    struct source *s = b->l->g->s;
    char buf[300];
    const char *device = choose_device(b, d->device, buf, sizeof(buf));
    size_t device_len = strlen(device);
    struct source_node *n;
    struct pb_out o;
    enum mst_code rc;

    if (!device_len) {
        device = b->call->device ? b->call->device : "";
        device_len = b->call->device_len;
    }
    pb_out_init(&o);
    pb_put_tag(&o, 1, PB_LEN);
    pb_put_varint(&o, strlen(b->call->name) + 1 + strlen(d->name));
    pb_put_raw(&o, b->call->name, strlen(b->call->name));
    pb_put_raw(&o, "/", 1);
    pb_put_raw(&o, d->name, strlen(d->name));
    pb_put_bytes(&o, 2, d->op, strlen(d->op));
    for (size_t i = 0; i < d->n_attr; i++)
        put_attr(b, &o, d->attr[i]);
    rc = source_enter(b->l->g, arena_copy(&s->arena, o.data, o.len), o.len);
    pb_out_done(&o);
    if (rc)
        return rc;
    n = &s->nodes[s->count - 1];
    n->device = arena_copy(&s->arena, device, device_len);
    n->device_len = device_len;
    return MST_OK;
}

/* ---- edges ---- */

/* A resource reaches a loop's body by an Enter that is there in every
 * iteration, also in the last, in which the body does not run. */
static enum mst_code add_args(struct body *b)
{
    const struct source_node *c = b->call;
    struct source *s = b->l->g->s;
    int control = c->input_count - c->data_count;
    enum mst_code rc = MST_OK;

    b->args = ARENA_ARRAY(&s->arena, struct graph_input, c->data_count);
    for (int i = 0; i < c->data_count && !rc; i++) {
        struct graph_input *in =
            ARENA_ARRAY(&s->arena, struct graph_input, 1 + control);
        struct pb_out a;
        int at;

        b->args[i] = in[0] = c->inputs[i];
        s->lowered++; /* every argument is a node of TensorFlow's */
        if (c->in_types[i] != DT_RESOURCE || !control)
            continue;
        memcpy(in + 1, c->inputs + c->data_count,
               sizeof(*in) * (size_t)control);
        pb_out_init(&a);
        node_attr_put_num(&a, "T", 6, DT_RESOURCE);
        s->lowered--;
        rc = lower_add(
            b->l,
            &(struct lower_node){
                .name = lower_name(
                    b->l, arena_printf(&s->arena, "Func/%s", c->name), "input"),
                .op = "Identity",
                .device = c->device,
                .device_len = c->device_len,
                .inputs = in,
                .data = 1,
                .control = control },
            &a, &at);
        b->args[i] = (struct graph_input){ at, 0 };
    }
    return rc;
}

/* A data input of the body, in the graph that it is now part of. */
static struct graph_input map_input(const struct body *b,
                                    const struct graph_input *in)
{
    if (in->node < b->f->in_count)
        return b->args[in->node];
    return (struct graph_input){ b->base + in->node - b->f->in_count,
                                 in->output };
}

/* Who waits for an argument waits for its value, and for the call. */
static int map_control(const struct body *b, const struct graph_input *in,
                       struct graph_input *out)
{
    const struct source_node *c = b->call;
    int n = 0;

    out[n++] = (struct graph_input){ map_input(b, in).node, -1 };
    for (int i = c->data_count; in->node < b->f->in_count && i < c->input_count;
         i++)
        out[n++] = c->inputs[i];
    return n;
}

/* A call inside needs it for what its own body has without inputs. */
static bool waits_for_call(const struct graph_node *g)
{
    return !g->input_count ||
           ((g->function || strstr(g->op, "PartitionedCall")) &&
            g->data_count == g->input_count);
}

static enum mst_code connect_node(struct body *b, int i)
{
    const struct graph_node *g = &b->g.nodes[b->f->in_count + i];
    const struct source_node *c = b->call;
    int control = c->input_count - c->data_count, n = 0;
    int room = g->input_count * (1 + control) + control;
    struct graph_input *in = mem_array((size_t)room, sizeof(*in));
    enum mst_code rc;

    for (int k = 0; k < g->data_count; k++)
        in[n++] = map_input(b, &g->inputs[k]);
    for (int k = g->data_count; k < g->input_count; k++)
        n += map_control(b, &g->inputs[k], in + n);
    for (int k = 0; k < control && waits_for_call(g); k++)
        in[n++] = c->inputs[c->data_count + k];
    rc = lower_connect(b->l, b->base + i, in, g->data_count, n - g->data_count);
    mem_free(in);
    return rc;
}

/* ---- the call's own node ---- */

static enum mst_code replace_call(struct body *b)
{
    struct lowering *l = b->l;
    const Tensorflow__FunctionDef *d = b->f->def;
    const struct source_node *c = b->call;
    const struct graph_node *rets =
        &b->g.nodes[b->f->in_count + (int)d->n_node_def];
    bool top = !l->depth[l->at - l->g->first];
    int n = 0, control = c->input_count - c->data_count;
    struct graph_input *out = mem_array((size_t)c->out_count, sizeof(*out));
    struct graph_input *in = mem_array(
        d->n_control_ret + (size_t)c->out_count + (size_t)control, sizeof(*in));
    enum mst_code rc = MST_OK;

    for (size_t i = 0; i < d->n_control_ret && !rc; i++) {
        int at =
            (int)(intptr_t)map_get_str(&b->names, d->control_ret[i]->value);

        if (at)
            in[n++] = (struct graph_input){ b->base + at - 1, -1 };
        else
            rc = status_set(l->g->st, MST_INVALID_ARGUMENT,
                            "A control output is no node");
    }
    for (int i = 0; i < c->out_count; i++) {
        out[i] = map_input(b, &rets[i].inputs[0]);
        if (top) /* who runs the call by its name means all of it */
            in[n++] = (struct graph_input){ out[i].node, -1 };
    }
    for (int i = 0; i < control && !n; i++)
        in[n++] = c->inputs[c->data_count + i];
    if (!rc)
        lower_replace(l, l->at, in, n, out);
    mem_free(in);
    mem_free(out);
    return rc;
}

static enum mst_code check_types(struct body *b)
{
    struct growing *g = b->l->g;
    const struct source_node *c = b->call;
    int at = b->f->in_count + (int)b->f->def->n_node_def;

    if (b->f->in_count != c->data_count || b->f->out_count != c->out_count)
        return status_set(g->st, MST_INVALID_ARGUMENT,
                          "The call does not fit the function");
    for (int i = 0; i < c->data_count; i++)
        if (b->g.nodes[i].attrs[0].value->type != c->in_types[i])
            return status_set(g->st, MST_INVALID_ARGUMENT,
                              "An argument does not fit the function");
    for (int i = 0; i < c->out_count; i++)
        if (b->g.nodes[at + i].attrs[0].value->type != c->out_types[i])
            return status_set(g->st, MST_INVALID_ARGUMENT,
                              "A result does not fit the function");
    return MST_OK;
}

static void reach(const struct graph *g, bool *reached, int *stack)
{
    int count = 0;

    for (int i = 0; i < g->count; i++)
        if (reached[i])
            stack[count++] = i;
    while (count) {
        const struct graph_node *n = &g->nodes[stack[--count]];

        for (int k = 0; k < n->input_count; k++)
            if (!reached[n->inputs[k].node]) {
                reached[n->inputs[k].node] = true;
                stack[count++] = n->inputs[k].node;
            }
    }
}

/*
 * All that has effects must lead to a result or be named as a control output,
 * or it would be left out of steps that need only the results. Functions of
 * TensorFlow 1 do not name it; calls of them stay calls.
 */
static enum mst_code check_effects(struct body *b)
{
    const Tensorflow__FunctionDef *d = b->f->def;
    int nodes = (int)d->n_node_def, first = b->f->in_count;
    bool *reached = mem_array((size_t)b->g.count, sizeof(bool));
    int *stack = mem_array((size_t)b->g.count, sizeof(int));
    bool lost = false;

    for (int i = first + nodes; i < b->g.count; i++)
        reached[i] = true;
    for (size_t i = 0; i < d->n_control_ret; i++) {
        int at =
            (int)(intptr_t)map_get_str(&b->names, d->control_ret[i]->value);

        if (at)
            reached[first + at - 1] = true;
    }
    reach(&b->g, reached, stack);
    for (int i = first; i < first + nodes; i++) {
        const struct graph_node *n = &b->g.nodes[i];

        lost |= !reached[i] && (!n->def || n->def->flags & OP_STATEFUL);
    }
    mem_free(reached);
    mem_free(stack);
    return lost ? status_set(b->l->g->st, MST_INVALID_ARGUMENT,
                             "The function has effects that nothing names")
                : MST_OK;
}

static enum mst_code check_results(struct body *b)
{
    const struct source_node *c = b->call;
    int at = b->f->in_count + (int)b->f->def->n_node_def;

    for (int i = 0; i < c->out_count; i++) {
        struct graph_input in = map_input(b, &b->g.nodes[at + i].inputs[0]);
        const struct source_node *src = &b->l->g->s->nodes[in.node];
        enum mst_code rc =
            graph_check_edge(c->name, i, c->out_types[i], src->name, in.output,
                             src->out_count, src->out_types, b->l->g->st);

        if (rc)
            return rc;
    }
    return MST_OK;
}

static enum mst_code inline_body(struct body *b)
{
    struct lowering *l = b->l;
    const Tensorflow__FunctionDef *d = b->f->def;
    enum mst_code rc = check_types(b);

    for (size_t i = 0; i < d->n_node_def; i++)
        map_put_str(&b->names, d->node_def[i]->name, (void *)(intptr_t)(i + 1));
    if (!rc && !b->call->branch)
        rc = check_effects(b);
    if (!rc && b->call->input_count > b->call->data_count)
        l->g->s->lowered++; /* the node that TensorFlow waits with */
    if (!rc)
        rc = add_args(b);
    b->base = l->g->s->count;
    for (size_t i = 0; i < d->n_node_def && !rc; i++)
        rc = add_node(b, d->node_def[i]);
    for (size_t i = 0; i < d->n_node_def && !rc; i++)
        rc = connect_node(b, (int)i);
    if (!rc)
        rc = check_results(b);
    if (!rc)
        rc = replace_call(b);
    if (!rc)
        l->g->s->lowered += b->call->out_count + 1;
    return rc;
}

enum mst_code lower_call(struct lowering *l, int node)
{
    struct source_node call = l->g->s->nodes[node];
    struct body b = { .l = l, .call = &call };
    enum mst_code rc;

    if (!find_function(&b))
        return status_set(l->g->st, MST_INVALID_ARGUMENT, "No such function");
    map_init(&b.names);
    rc = make_body(&b);
    if (!rc)
        rc = inline_body(&b);
    map_done(&b.names);
    return rc;
}
