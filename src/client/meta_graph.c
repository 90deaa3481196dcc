#include "client/meta_graph.h"

#include <string.h>

#include "base/mem.h"
#include "store/file.h"
#include "tensor/proto.h"
#include "wire/pb.h"

/* Fields of a MetaGraphDef. */
enum {
    META_GRAPH = 2,
    META_SAVER = 3,
    META_COLLECTION = 4,
    META_SIGNATURE = 5
};

static const char *str(struct meta_graph *g, const struct pb_field *f)
{
    return arena_strn(&g->arena, (const char *)f->data, f->len);
}

static bool is(const struct pb_field *f, uint32_t number, enum pb_wire wire)
{
    return f->number == number && f->wire == wire;
}

/* ---- nodes ---- */

static bool parse_node(struct meta_graph *g, const struct pb_field *f,
                       struct meta_node *n)
{
    struct pb_in in = pb_in(f->data, f->len);
    struct pb_field part;

    *n = (struct meta_node){ "", "", "", f->data, f->len };
    while (pb_next(&in, &part)) {
        if (is(&part, 1, PB_LEN))
            n->name = str(g, &part);
        if (is(&part, 2, PB_LEN))
            n->op = str(g, &part);
        if (is(&part, 4, PB_LEN))
            n->device = str(g, &part);
    }
    return !in.bad && *n->name && *n->op;
}

static bool parse_nodes(struct meta_graph *g)
{
    struct pb_in in = pb_in(g->graph.data, g->graph.len);
    struct pb_field f;
    int room = 0;

    while (pb_next(&in, &f)) {
        if (!is(&f, 1, PB_LEN))
            continue;
        if (!parse_node(g, &f, MEM_PUSH(g->nodes, g->node_count, room)))
            return false;
        map_put_str(&g->names, g->nodes[g->node_count - 1].name,
                    (void *)(uintptr_t)g->node_count);
    }
    return !in.bad;
}

const struct meta_node *meta_graph_node(const struct meta_graph *g,
                                        const char *name, size_t len)
{
    uintptr_t at = (uintptr_t)map_get(&g->names, name, len);

    return at ? &g->nodes[at - 1] : NULL;
}

/* ---- collections ---- */

/* The values of a NodeList or BytesList: both are fields 1. */
static void parse_list(struct meta_graph *g, struct pb_in in,
                       struct meta_collection *c)
{
    struct pb_in again = in;
    struct pb_field f;
    int n = 0;

    while (pb_next(&in, &f))
        n += is(&f, 1, PB_LEN);
    c->values = ARENA_ARRAY(&g->arena, struct meta_text, n);
    while (pb_next(&again, &f))
        if (is(&f, 1, PB_LEN))
            c->values[c->count++] = (struct meta_text){ f.data, f.len };
}

static void parse_collection(struct meta_graph *g, struct pb_in in)
{
    struct meta_collection *c = ARENA_NEW(&g->arena, struct meta_collection);
    struct pb_field f, part, key = { 0 };

    while (pb_next(&in, &f)) {
        struct pb_in inner = pb_in(f.data, f.len);

        if (is(&f, 1, PB_LEN))
            key = f;
        if (is(&f, 2, PB_LEN))
            while (pb_next(&inner, &part))
                if (is(&part, 1, PB_LEN) || is(&part, 2, PB_LEN))
                    parse_list(g, pb_in(part.data, part.len), c);
    }
    if (key.len)
        map_put(&g->collections, key.data, key.len, c);
}

const struct meta_collection *meta_graph_collection(const struct meta_graph *g,
                                                    const char *name)
{
    static const struct meta_collection none;
    const struct meta_collection *c = map_get_str(&g->collections, name);

    return c ? c : &none;
}

static const char *value_at(struct meta_graph *g,
                            const struct meta_collection *c, int i)
{
    return c->count ? arena_strn(&g->arena, (const char *)c->values[i].data,
                                 c->values[i].len)
                    : NULL;
}

const char *meta_graph_first(struct meta_graph *g, const char *name)
{
    return value_at(g, meta_graph_collection(g, name), 0);
}

const char *meta_graph_last(struct meta_graph *g, const char *name)
{
    const struct meta_collection *c = meta_graph_collection(g, name);

    return value_at(g, c, c->count - 1);
}

const char *meta_graph_first_op(struct meta_graph *g, const char *name)
{
    const char *value = meta_graph_first(g, name);

    return value ? arena_strn(&g->arena, value, strcspn(value, ":")) : NULL;
}

/* ---- what collections are made of ---- */

static void parse_variable(struct meta_graph *g, struct meta_text def,
                           struct meta_variable *v)
{
    struct pb_in in = pb_in(def.data, def.len);
    struct pb_field f;

    *v = (struct meta_variable){ .name = "", .initializer = "" };
    while (pb_next(&in, &f)) {
        if (is(&f, 1, PB_LEN))
            v->name = str(g, &f);
        if (is(&f, 2, PB_LEN))
            v->initializer = str(g, &f);
        if (is(&f, 3, PB_LEN))
            v->snapshot = str(g, &f);
        if (is(&f, 5, PB_VARINT))
            v->resource = f.value != 0;
    }
}

static struct meta_variable *parse_variables(struct meta_graph *g,
                                             const char *name, int *ret_count)
{
    const struct meta_collection *c = meta_graph_collection(g, name);
    struct meta_variable *list =
        ARENA_ARRAY(&g->arena, struct meta_variable, c->count);

    for (int i = 0; i < c->count; i++)
        parse_variable(g, c->values[i], &list[i]);
    *ret_count = c->count;
    return list;
}

static void parse_saver(struct meta_graph *g, struct meta_text def)
{
    struct meta_saver *s = ARENA_NEW(&g->arena, struct meta_saver);
    struct pb_in in = pb_in(def.data, def.len);
    struct pb_field f;

    while (pb_next(&in, &f)) {
        if (is(&f, 1, PB_LEN))
            s->filename = str(g, &f);
        if (is(&f, 2, PB_LEN))
            s->save = str(g, &f);
        if (is(&f, 3, PB_LEN))
            s->restore = str(g, &f);
        if (is(&f, 4, PB_VARINT))
            s->max_to_keep = (int)f.value;
    }
    if (s->filename && s->save && s->restore)
        g->saver = s;
}

static void parse_runner(struct meta_graph *g, struct meta_text def,
                         struct meta_queue_runner *r)
{
    struct pb_in in = pb_in(def.data, def.len), again = in;
    struct pb_field f;
    int n = 0;

    *r = (struct meta_queue_runner){ "", "", "", NULL, 0 };
    while (pb_next(&in, &f))
        n += is(&f, 2, PB_LEN);
    r->enqueue = ARENA_ARRAY(&g->arena, const char *, n);
    while (pb_next(&again, &f)) {
        if (is(&f, 1, PB_LEN))
            r->queue = str(g, &f);
        if (is(&f, 2, PB_LEN))
            r->enqueue[r->enqueue_count++] = str(g, &f);
        if (is(&f, 3, PB_LEN))
            r->close = str(g, &f);
        if (is(&f, 4, PB_LEN))
            r->cancel = str(g, &f);
    }
}

static void parse_runners(struct meta_graph *g)
{
    const struct meta_collection *c = meta_graph_collection(g, "queue_runners");

    g->runners = ARENA_ARRAY(&g->arena, struct meta_queue_runner, c->count);
    for (int i = 0; i < c->count; i++)
        parse_runner(g, c->values[i], &g->runners[g->runner_count++]);
}

/* ---- signatures ---- */

/* An entry of a map from keys to TensorInfos. */
static void parse_info(struct meta_graph *g, struct pb_in in, struct map *into)
{
    struct pb_field f, part, key = { 0 };
    const char *tensor = NULL;

    while (pb_next(&in, &f)) {
        struct pb_in inner = pb_in(f.data, f.len);

        if (is(&f, 1, PB_LEN))
            key = f;
        if (is(&f, 2, PB_LEN))
            while (pb_next(&inner, &part))
                if (is(&part, 1, PB_LEN))
                    tensor = str(g, &part);
    }
    if (key.len && tensor)
        map_put(into, key.data, key.len, (void *)tensor);
}

static void parse_signature(struct meta_graph *g, struct pb_in in)
{
    struct pb_field f, part;

    while (pb_next(&in, &f)) {
        struct pb_in inner = pb_in(f.data, f.len);

        if (!is(&f, 2, PB_LEN))
            continue;
        while (pb_next(&inner, &part))
            if (is(&part, 1, PB_LEN) || is(&part, 2, PB_LEN))
                parse_info(g, pb_in(part.data, part.len),
                           part.number == 1 ? &g->inputs : &g->outputs);
    }
}

/* ---- a bare GraphDef ---- */

static const char *node_if(struct meta_graph *g, const char *name)
{
    const struct meta_node *n = meta_graph_node(g, name, strlen(name));

    return n ? n->name : NULL;
}

static bool is_variable(const char *op)
{
    return !strcmp(op, "VariableV2") || !strcmp(op, "Variable") ||
           !strcmp(op, "VarHandleOp");
}

/* Every variable with an assignment under its usual name. */
static void guess_variables(struct meta_graph *g)
{
    g->variables = ARENA_ARRAY(&g->arena, struct meta_variable, g->node_count);
    for (int i = 0; i < g->node_count; i++) {
        const struct meta_node *n = &g->nodes[i];
        bool resource = !strcmp(n->op, "VarHandleOp");
        const char *assign, *read;

        if (!is_variable(n->op))
            continue;
        assign = node_if(g, arena_printf(&g->arena, "%s/Assign", n->name));
        read =
            node_if(g, arena_printf(&g->arena, "%s/%s", n->name,
                                    resource ? "Read/ReadVariableOp" : "read"));
        if (assign)
            g->variables[g->variable_count++] = (struct meta_variable){
                .name = arena_printf(&g->arena, "%s:0", n->name),
                .initializer = assign,
                .snapshot = read ? arena_printf(&g->arena, "%s:0", read) : NULL,
                .resource = resource,
            };
    }
    for (int i = 0; i < g->variable_count; i++)
        if (!strcmp(g->variables[i].name, "global_step:0"))
            g->global_step = &g->variables[i];
}

static void guess_saver(struct meta_graph *g)
{
    struct meta_saver *s;

    if (!node_if(g, "save/Const") || !node_if(g, "save/restore_all") ||
        !(node_if(g, "save/control_dependency") || node_if(g, "save/Identity")))
        return;
    s = ARENA_NEW(&g->arena, struct meta_saver);
    *s = (struct meta_saver){ "save/Const:0",
                              node_if(g, "save/Identity")
                                  ? "save/Identity:0"
                                  : "save/control_dependency:0",
                              "save/restore_all", 5 };
    g->saver = s;
}

/* ---- the whole ---- */

/* A MetaGraphDef has a graph in field 2, whose first node has an op in its
 * field 2. What a GraphDef has there are functions, which have no field 2. */
static bool is_meta(const uint8_t *bytes, size_t len)
{
    struct pb_in in = pb_in(bytes, len);
    struct pb_field f, node, part;

    while (pb_next(&in, &f)) {
        struct pb_in graph = pb_in(f.data, f.len);

        if (!is(&f, META_GRAPH, PB_LEN))
            continue;
        while (pb_next(&graph, &node)) {
            struct pb_in fields = pb_in(node.data, node.len);

            if (!is(&node, 1, PB_LEN))
                continue;
            while (pb_next(&fields, &part))
                if (is(&part, 2, PB_LEN))
                    return true;
            return false;
        }
    }
    return false;
}

static void parse_meta(struct meta_graph *g)
{
    struct pb_in in = pb_in(g->bytes, g->len);
    struct pb_field f;

    while (pb_next(&in, &f)) {
        if (is(&f, META_GRAPH, PB_LEN))
            g->graph = (struct meta_text){ f.data, f.len };
        if (is(&f, META_COLLECTION, PB_LEN))
            parse_collection(g, pb_in(f.data, f.len));
        if (is(&f, META_SIGNATURE, PB_LEN))
            parse_signature(g, pb_in(f.data, f.len));
        if (is(&f, META_SAVER, PB_LEN))
            parse_saver(g, (struct meta_text){ f.data, f.len });
    }
}

static void parse_collections(struct meta_graph *g)
{
    const struct meta_collection *c = meta_graph_collection(g, "savers");
    int steps = 0;

    if (!g->saver && c->count)
        parse_saver(g, c->values[0]);
    g->variables = parse_variables(g, "variables", &g->variable_count);
    g->locals = parse_variables(g, "local_variables", &g->local_count);
    g->global_step = parse_variables(g, "global_step", &steps);
    if (!steps)
        g->global_step = NULL;
    parse_runners(g);
}

enum mst_code meta_graph_parse(struct meta_graph *g, const char *name,
                               uint8_t *bytes, size_t len, struct status *st)
{
    bool meta = is_meta(bytes, len);

    *g = (struct meta_graph){ .bytes = bytes, .len = len };
    arena_init(&g->arena);
    map_init(&g->names);
    map_init(&g->collections);
    map_init(&g->inputs);
    map_init(&g->outputs);
    g->graph = (struct meta_text){ bytes, len };
    if (meta)
        parse_meta(g);
    if (!parse_nodes(g) || !g->node_count) {
        meta_graph_done(g);
        return status_set(st, MST_INVALID_ARGUMENT,
                          "%s is no GraphDef or MetaGraphDef in binary form",
                          name);
    }
    if (meta)
        parse_collections(g);
    if (!g->variable_count)
        guess_variables(g);
    if (!g->saver)
        guess_saver(g);
    return MST_OK;
}

enum mst_code meta_graph_read(struct meta_graph *g, const char *path,
                              struct status *st)
{
    struct file_in file;
    struct buffer *probe;
    enum mst_code rc;
    uint8_t *bytes;

    rc = file_in_open(&file, path, st);
    if (rc)
        return rc;
    probe = buffer_new(file.size); /* a file may be larger than memory */
    if (!probe) {
        file_in_close(&file);
        return status_set(st, MST_RESOURCE_EXHAUSTED, "%s is too large", path);
    }
    buffer_unref(probe);
    bytes = mem_new(file.size);
    rc = file_in_read(&file, 0, bytes, file.size, st);
    if (rc)
        mem_free(bytes);
    else
        rc = meta_graph_parse(g, path, bytes, file.size, st);
    file_in_close(&file);
    return rc;
}

void meta_graph_done(struct meta_graph *g)
{
    map_done(&g->names);
    map_done(&g->collections);
    map_done(&g->inputs);
    map_done(&g->outputs);
    mem_free(g->nodes);
    mem_free(g->bytes);
    arena_done(&g->arena);
    *g = (struct meta_graph){ 0 };
}

/* ---- names ---- */

/* The node whose name is most like it: one that ends or begins with it. */
static const char *near(const struct meta_graph *g, const char *name)
{
    size_t len = strcspn(name, ":");

    for (int i = 0; i < g->node_count && len; i++) {
        const char *at = strstr(g->nodes[i].name, name);

        if (at || (len > 2 && !strncasecmp(g->nodes[i].name, name, len)))
            return g->nodes[i].name;
    }
    return NULL;
}

static enum mst_code not_there(const struct meta_graph *g, const char *what,
                               const char *name, struct status *st)
{
    const char *other = near(g, name);

    status_set(st, MST_NOT_FOUND, "The graph has no %s \"%s\"", what, name);
    if (other)
        status_append(st, "; did you mean \"%s\"?", other);
    return st->code;
}

enum mst_code meta_graph_tensor(struct meta_graph *g, const char *name,
                                const char **ret, struct status *st)
{
    size_t len = strcspn(name, ":");
    const char *told = map_get_str(&g->inputs, name);

    if (!told)
        told = map_get_str(&g->outputs, name);
    if (meta_graph_node(g, name, len))
        *ret = arena_printf(&g->arena, name[len] ? "%s" : "%s:0", name);
    else if (told && meta_graph_node(g, told, strcspn(told, ":")))
        *ret = told;
    else
        return not_there(g, "tensor", name, st);
    return MST_OK;
}

enum mst_code meta_graph_op(struct meta_graph *g, const char *name,
                            const char **ret, struct status *st)
{
    const struct meta_node *n = meta_graph_node(g, name, strcspn(name, ":"));

    if (!n)
        return not_there(g, "op", name, st);
    *ret = n->name;
    return MST_OK;
}

bool meta_graph_placeholder(const struct meta_graph *g, const char *tensor,
                            enum dtype *ret_type, struct shape *ret_shape)
{
    const struct meta_node *n =
        meta_graph_node(g, tensor, strcspn(tensor, ":"));
    struct pb_in in = pb_in(n ? n->wire : NULL, n ? n->wire_len : 0);
    struct status st = STATUS_INIT;
    struct pb_field f, part, value;

    *ret_type = DT_INVALID;
    *ret_shape = (struct shape){ .ndim = -1 };
    if (!n || strncmp(n->op, "Placeholder", 11))
        return false;
    while (pb_next(&in, &f)) {
        struct pb_in entry = pb_in(f.data, f.len), inner;
        struct pb_field key = { 0 };

        if (!is(&f, 5, PB_LEN))
            continue;
        while (pb_next(&entry, &part)) {
            if (is(&part, 1, PB_LEN))
                key = part;
            if (!is(&part, 2, PB_LEN))
                continue;
            inner = pb_in(part.data, part.len);
            while (pb_next(&inner, &value)) {
                if (is(&value, 6, PB_VARINT) && key.len == 5 &&
                    !memcmp(key.data, "dtype", 5))
                    *ret_type = (enum dtype)value.value;
                if (is(&value, 7, PB_LEN) && key.len == 5 &&
                    !memcmp(key.data, "shape", 5) &&
                    shape_from_proto(ret_shape, value.data, value.len, &st))
                    *ret_shape = (struct shape){ .ndim = -1 };
            }
        }
    }
    return dtype_valid((int)*ret_type);
}
