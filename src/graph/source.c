#include "graph/source.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "graph/lower.h"
#include "op/spec.h"
#include "wire/control.h"
#include "wire/pb.h"

void source_init(struct source *s)
{
    memset(s, 0, sizeof(*s));
    arena_init(&s->arena);
    map_init(&s->names);
    map_init(&s->functions);
    map_init(&s->classes);
    s->library = MEM_NEW(struct pb_out);
    pb_out_init(s->library);
}

void source_done(struct source *s)
{
    for (int i = 0; i < s->def_count; i++)
        control_free(s->defs[i]);
    for (int i = 0; i < s->owner_count; i++)
        buffer_unref(s->owners[i]);
    mem_free(s->defs);
    mem_free(s->owners);
    mem_free(s->nodes);
    map_done(&s->names);
    map_done(&s->functions);
    map_done(&s->classes);
    pb_out_done(s->library);
    mem_free(s->library);
    arena_done(&s->arena);
}

int source_find(const struct source *s, const char *name, size_t len)
{
    return (int)(intptr_t)map_get(&s->names, name, len) - 1;
}

int source_group(struct source *s, int node)
{
    while (s->nodes[node].group != node) {
        s->nodes[node].group = s->nodes[s->nodes[node].group].group;
        node = s->nodes[node].group;
    }
    return node;
}

void source_resolve(const struct source *s, struct graph_input *in)
{
    for (int hops = 0; hops < s->count && s->nodes[in->node].instead; hops++)
        *in = s->nodes[in->node].instead[in->output];
}

/* ---- `_class` ---- */

static void each_in_list(const struct pb_field *list,
                         void (*fn)(void *arg, const char *text, size_t len),
                         void *arg)
{
    struct pb_in in = pb_in(list->data, list->len);
    struct pb_field f;

    while (pb_next(&in, &f))
        if (f.number == 2 && f.wire == PB_LEN)
            fn(arg, (const char *)f.data, f.len);
}

void source_each_class(const struct source_node *n,
                       void (*fn)(void *arg, const char *text, size_t len),
                       void *arg)
{
    struct pb_field list;

    if (node_attr_find(n, "_class", 1, &list) && list.wire == PB_LEN)
        each_in_list(&list, fn, arg);
}

/* ---- ops that we do not have ---- */

#define FOREIGN_OUTPUTS 64

static const char *const foreign_ops[] = {
#define OP(name) #name,
#include "graph/foreign_ops.h"
#undef OP
};

static int compare_names(const void *a, const void *b)
{
    return strcmp(a, *(const char *const *)b);
}

static bool is_foreign(const char *op)
{
    return bsearch(op, foreign_ops, COUNT(foreign_ops), sizeof(char *),
                   compare_names) != NULL;
}

/* ---- growing ---- */

static enum mst_code enter_function(struct growing *e, const uint8_t *data,
                                    size_t len)
{
    struct source *s = e->s;
    Tensorflow__FunctionDef *d =
        CONTROL_UNPACK(tensorflow__function_def, data, len);
    struct graph_function *f;

    if (!d || !d->signature) {
        control_free(d);
        return status_set(e->st, MST_INVALID_ARGUMENT,
                          "A function of the graph's library cannot be read");
    }
    if (map_get_str(&s->functions, d->signature->name)) {
        control_free(d); /* clients send their whole library each time */
        return MST_OK;
    }
    *MEM_PUSH(s->defs, s->def_count, s->def_room) = d;
    f = ARENA_NEW(&s->arena, struct graph_function);
    f->name = d->signature->name;
    f->def = d;
    f->in_count = (int)d->signature->n_input_arg;
    f->out_count = (int)d->signature->n_output_arg;
    map_put_str(&s->functions, f->name, f);
    pb_put_bytes(s->library, 1, data, len);
    return MST_OK;
}

static enum mst_code enter_library(struct growing *e,
                                   const struct pb_field *lib)
{
    struct pb_in in = pb_in(lib->data, lib->len);
    enum mst_code rc = MST_OK;
    struct pb_field f;

    while (!rc && pb_next(&in, &f))
        if (f.number == 1 && f.wire == PB_LEN)
            rc = enter_function(e, f.data, f.len);
    return rc;
}

static enum mst_code node_types(struct growing *e, struct source_node *n,
                                const struct attr *attrs, int attr_count,
                                const struct graph_function *function)
{
    struct op_node op = { .name = n->name,
                          .def = n->def,
                          .arena = &e->scratch->arena,
                          .attrs = attrs,
                          .attr_count = attr_count };
    int *types;
    enum mst_code rc;

    for (int outputs = 0; outputs < 2; outputs++) {
        int *count = outputs ? &n->out_count : &n->in_count;

        if (function) {
            rc = graph_function_types(e->scratch, function, attrs, attr_count,
                                      outputs, &types, count, e->st);
        } else {
            rc = outputs ? MST_OK : spec_complete_attrs(&op, e->st);
            if (!rc)
                rc = spec_types(spec_of(n->def), op.attrs, op.attr_count,
                                n->name, &e->scratch->arena, outputs, &types,
                                count, e->st);
        }
        if (rc)
            return rc;
        types =
            arena_copy(&e->s->arena, types, (size_t)*count * sizeof(*types));
        *(outputs ? &n->out_types : &n->in_types) = types;
    }
    return MST_OK;
}

static bool has_function(const struct attr *attrs, int count)
{
    for (int i = 0; i < count; i++)
        if (attrs[i].kind == ATTR_FUNC)
            return true;
    return false;
}

enum mst_code source_enter(struct growing *e, const uint8_t *data, size_t len)
{
    struct source *s = e->s;
    int at = s->count, had;
    struct source_node *n = MEM_PUSH(s->nodes, s->count, s->room);
    Tensorflow__NodeDef *d = CONTROL_UNPACK(tensorflow__node_def, data, len);
    const struct graph_function *function = NULL;
    const struct attr *attrs;
    int attr_count;
    enum mst_code rc;

    *n = (struct source_node){
        .wire = data, .wire_len = len, .group = at, .place = -1
    };
    if (!d) {
        s->count--;
        return status_set(e->st, MST_INVALID_ARGUMENT,
                          "A node of the graph cannot be read");
    }
    n->name = arena_str(&s->arena, d->name);
    had = source_find(s, n->name, strlen(n->name));
    if (had >= 0) {
        s->count--;
        rc = had < e->first
                 ? status_set(e->st, MST_INVALID_ARGUMENT,
                              "GraphDef argument to Extend includes node "
                              "'%.200s', which was created by a previous call "
                              "to Create or Extend in this session.",
                              n->name)
                 : status_set(e->st, MST_INVALID_ARGUMENT,
                              "Node '%.200s' is not unique", n->name);
        control_free(d);
        return rc;
    }
    map_put_str(&s->names, n->name, (void *)(intptr_t)(at + 1));
    rc = graph_check_name(n->name, e->st);
    if (!rc) {
        n->def = op_find(d->op);
        if (!n->def)
            function = map_get_str(&s->functions, d->op);
        n->op = n->def ? n->def->name : arena_str(&s->arena, d->op);
        n->calls = function != NULL;
        n->foreign = !n->def && !function && is_foreign(d->op);
        if (!n->def && !function && !n->foreign)
            rc = graph_unknown_op(d->op, e->st);
    }
    if (n->foreign) {
        static const int unknown[FOREIGN_OUTPUTS];

        n->out_types = unknown;
        n->out_count = FOREIGN_OUTPUTS;
        control_free(d);
        return rc;
    }
    if (!rc)
        rc = graph_attrs(e->scratch, n->name, d->attr, d->n_attr, NULL, 0,
                         &attrs, &attr_count, e->st);
    if (!rc) {
        n->calls |= has_function(attrs, attr_count);
        rc = node_types(e, n, attrs, attr_count, function);
    }
    control_free(d);
    return rc;
}

/* ---- connecting ---- */

static enum mst_code connect_one(struct growing *e, struct source_node *n,
                                 const char *text, size_t len)
{
    struct graph_input in;
    size_t name_len;
    const char *name = graph_input_split(text, len, &name_len, &in.output);

    in.node = source_find(e->s, name, name_len);
    if (in.node < 0)
        return status_set(e->st, MST_INVALID_ARGUMENT,
                          "Node '%.200s': Unknown input node '%.*s'", n->name,
                          (int)MIN(len, 200), text);
    if (in.output >= 0) {
        const struct source_node *src = &e->s->nodes[in.node];
        enum mst_code rc;

        if (n->data_count != n->input_count)
            return status_set(e->st, MST_INVALID_ARGUMENT,
                              "Node '%.200s': Control dependencies must come "
                              "after regular dependencies",
                              n->name);
        if (in.output >= src->out_count ||
            (n->data_count < n->in_count && !n->foreign && !src->foreign)) {
            rc = graph_check_edge(
                n->name, n->data_count, n->in_types[n->data_count], src->name,
                in.output, src->out_count, src->out_types, e->st);
            if (rc)
                return rc;
        }
        n->data_count++;
        source_resolve(e->s, &in);
    }
    n->inputs[n->input_count++] = in;
    return MST_OK;
}

static enum mst_code connect(struct growing *e, int at)
{
    struct source_node *n = &e->s->nodes[at];
    struct pb_in in = pb_in(n->wire, n->wire_len);
    enum mst_code rc = MST_OK;
    struct pb_field f;
    int count = 0;

    while (pb_next(&in, &f))
        count += f.number == 3 && f.wire == PB_LEN;
    n->inputs = ARENA_ARRAY(&e->s->arena, struct graph_input, count);
    in = pb_in(n->wire, n->wire_len);
    while (!rc && pb_next(&in, &f)) {
        if (f.number == 3 && f.wire == PB_LEN)
            rc = connect_one(e, n, (const char *)f.data, f.len);
        if (f.number == 4 && f.wire == PB_LEN) {
            n->device = (const char *)f.data;
            n->device_len = f.len;
        }
    }
    if (n->foreign) {
        n->in_count = n->data_count;
        n->in_types = ARENA_ARRAY(&e->s->arena, int, n->in_count);
    } else if (!rc && n->data_count != n->in_count)
        rc = graph_bad_input_count(n->name, n->op, n->in_types, n->in_count,
                                   n->data_count, e->st);
    return rc;
}

void source_truncate(struct source *s, int first)
{
    for (int i = first; i < s->count; i++)
        map_take_str(&s->names, s->nodes[i].name);
    s->count = first;
}

enum mst_code source_extend(struct source *s, const void *def, size_t len,
                            struct buffer *owner, struct status *st)
{
    struct growing e = { .s = s,
                         .scratch = graph_library_new_empty(),
                         .first = s->count,
                         .st = st };
    struct pb_in in = pb_in(def, len);
    enum mst_code rc = MST_OK;
    struct pb_field f;

    if (owner)
        *MEM_PUSH(s->owners, s->owner_count, s->owner_room) = buffer_ref(owner);
    while (!rc && pb_next(&in, &f)) {
        if (f.wire != PB_LEN)
            continue;
        if (f.number == 2)
            rc = enter_library(&e, &f);
        if (f.number == 4) {
            rc = graph_check_versions(f.data, f.len, st);
            if (!s->versions) {
                s->versions = f.data;
                s->versions_len = f.len;
            }
        }
    }
    if (!rc && in.bad)
        rc = status_set(st, MST_INVALID_ARGUMENT, "The graph cannot be read");
    in = pb_in(def, len);
    while (!rc && pb_next(&in, &f))
        if (f.number == 1 && f.wire == PB_LEN)
            rc = source_enter(&e, f.data, f.len);
    for (int i = e.first; i < s->count && !rc; i++)
        rc = connect(&e, i);
    if (rc)
        source_truncate(s, e.first);
    else
        lower_nodes(&e);
    graph_library_free(e.scratch);
    return rc;
}
