/*
 * From GraphDef to graph: names become indices.
 *
 * A node may name inputs that come later in the list, and its own output
 * through NextIteration, so all nodes are entered first and then connected.
 */
#include "graph/graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "op/spec.h"
#include "wire/control.h"

struct building {
    struct graph_library *lib;
    struct graph *g;
    struct map names;        /* name -> index + 1 */
    const struct attr *args; /* a function's call attributes */
    int arg_count;
    bool in_function;
    struct status *st;
};

enum mst_code graph_unknown_op(const char *op, struct status *st)
{
    char host[128] = "localhost";

    (void)gethostname(host, sizeof(host) - 1);
    return status_set(
        st, MST_NOT_FOUND,
        "Op type not registered '%.200s' in binary running on %s. Make sure "
        "the Op and Kernel are registered in the binary running in this "
        "process.",
        op, host);
}

/* Letters, digits and a few signs; '_' at the front for TensorFlow's own. */
static bool name_valid(const char *name)
{
    return *name && !strchr("-/>\\", *name) &&
           !name[strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstu"
                              "vwxyz0123456789_.-/>\\")];
}

enum mst_code graph_check_name(const char *name, struct status *st)
{
    if (name_valid(name))
        return MST_OK;
    return status_set(st, MST_INVALID_ARGUMENT,
                      "Node '%.200s': Node name contains invalid characters",
                      name);
}

static enum mst_code enter_node(struct building *b, int at,
                                const Tensorflow__NodeDef *d)
{
    struct arena *arena = &b->lib->arena;
    struct graph_node *n = &b->g->nodes[at];

    n->name = arena_str(arena, d->name);
    n->op = arena_str(arena, d->op);
    n->device = arena_str(arena, d->device);
    if (graph_check_name(n->name, b->st))
        return b->st->code;
    if (map_put_str(&b->names, n->name, (void *)(intptr_t)(at + 1)))
        return status_set(b->st, MST_INVALID_ARGUMENT,
                          "Node '%.200s' is not unique", n->name);
    n->def = op_find(n->op);
    if (!n->def) {
        n->function = graph_function_find(b->lib, n->op);
        if (!n->function)
            return graph_unknown_op(n->op, b->st);
    }
    return graph_attrs(b->lib, n->name, d->attr, d->n_attr, b->args,
                       b->arg_count, &n->attrs, &n->attr_count, b->st);
}

/* ---- inputs ---- */

static enum mst_code bad_input(struct building *b, const struct graph_node *n,
                               const char *input)
{
    return status_set(b->st, MST_INVALID_ARGUMENT,
                      "Node '%.200s': Unknown input node '%.200s'", n->name,
                      input);
}

static int find_name(struct building *b, const char *text, size_t len)
{
    return (int)(intptr_t)map_get(&b->names, text, len) - 1;
}

const char *graph_input_split(const char *text, size_t len, size_t *ret_len,
                              int *ret_output)
{
    size_t digits = 0;
    int output = 0, unit = 1;

    if (len && *text == '^') {
        *ret_output = -1;
        *ret_len = len - 1;
        return text + 1;
    }
    while (digits < len && digits < 7 && text[len - digits - 1] >= '0' &&
           text[len - digits - 1] <= '9') {
        output += (text[len - ++digits] - '0') * unit;
        unit *= 10;
    }
    if (digits && digits < len && text[len - digits - 1] == ':') {
        *ret_output = output;
        *ret_len = len - digits - 1;
    } else {
        *ret_output = 0;
        *ret_len = len;
    }
    return text;
}

static enum mst_code parse_input(struct building *b, struct graph_node *n,
                                 const char *text, struct graph_input *ret)
{
    size_t len;
    const char *name =
        graph_input_split(text, strlen(text), &len, &ret->output);

    ret->node = find_name(b, name, len);
    return ret->node < 0 ? bad_input(b, n, text) : MST_OK;
}

/*
 * In a function's body: "arg", "n:outarg:2", or "^n". The output's number
 * counts from the first value of the argument of that name.
 */
static enum mst_code resolve_named(struct building *b, struct graph_node *n,
                                   const char *text,
                                   const struct graph_node *src,
                                   const char *arg, size_t arg_len, long index,
                                   int *ret)
{
    const struct op_spec *spec;
    int at = 0, *types, count;
    enum mst_code rc;

    if (src->function) {
        const Tensorflow__OpDef *sig = src->function->def->signature;

        for (size_t i = 0; i < sig->n_output_arg; i++)
            if (strlen(sig->output_arg[i]->name) == arg_len &&
                !memcmp(sig->output_arg[i]->name, arg, arg_len)) {
                *ret = (int)i + (int)index;
                return MST_OK;
            }
        return bad_input(b, n, text);
    }
    spec = spec_of(src->def);
    for (int i = 0; i < spec->out_count; i++) {
        struct op_spec one = { .def = src->def, .out_count = 1 };
        struct op_node node = { .name = src->name,
                                .def = src->def,
                                .arena = &b->lib->arena,
                                .attrs = src->attrs,
                                .attr_count = src->attr_count };

        if (strlen(spec->out[i].name) == arg_len &&
            !memcmp(spec->out[i].name, arg, arg_len)) {
            *ret = at + (int)index;
            return MST_OK;
        }
        rc = spec_complete_attrs(&node, b->st);
        if (rc)
            return rc;
        one.out[0] = spec->out[i];
        rc = spec_types(&one, node.attrs, node.attr_count, src->name,
                        &b->lib->arena, true, &types, &count, b->st);
        if (rc)
            return rc;
        at += count;
    }
    return bad_input(b, n, text);
}

static enum mst_code parse_function_input(struct building *b,
                                          struct graph_node *n,
                                          const char *text,
                                          struct graph_input *ret)
{
    const char *first = strchr(text, ':'), *second;
    long index = 0;

    if (*text == '^' || !first)
        return parse_input(b, n, text, ret);
    second = strchr(first + 1, ':');
    if (second) {
        char *end;

        index = strtol(second + 1, &end, 10);
        if (*end || index < 0 || index > 1 << 20)
            return bad_input(b, n, text);
    }
    ret->node = find_name(b, text, (size_t)(first - text));
    if (ret->node < 0)
        return bad_input(b, n, text);
    return resolve_named(b, n, text, &b->g->nodes[ret->node], first + 1,
                         second ? (size_t)(second - first - 1)
                                : strlen(first + 1),
                         index, &ret->output);
}

static enum mst_code connect(struct building *b, int at,
                             const Tensorflow__NodeDef *d)
{
    struct graph_node *n = &b->g->nodes[at];

    n->inputs = ARENA_ARRAY(&b->lib->arena, struct graph_input, d->n_input);
    for (size_t i = 0; i < d->n_input; i++) {
        struct graph_input *in = &n->inputs[n->input_count];
        enum mst_code rc = b->in_function
                               ? parse_function_input(b, n, d->input[i], in)
                               : parse_input(b, n, d->input[i], in);

        if (rc)
            return rc;
        if (in->output >= 0) {
            if (n->data_count != n->input_count)
                return status_set(
                    b->st, MST_INVALID_ARGUMENT,
                    "Node '%.200s': Control dependencies must come after "
                    "regular dependencies",
                    n->name);
            n->data_count++;
        }
        n->input_count++;
    }
    return MST_OK;
}

/* ---- what an edge must be ---- */

enum mst_code graph_check_edge(const char *dst, int input, int want,
                               const char *src, int output, int out_count,
                               const int *out_types, struct status *st)
{
    int got;

    if (output >= out_count)
        return status_set(
            st, MST_INVALID_ARGUMENT,
            "Node '%s': Connecting to invalid output %d of source node %s "
            "which has %d outputs.",
            dst, output, src, out_count);
    got = out_types[output];
    if (dtype_base(got) != dtype_base(want) ||
        (dtype_is_ref(want) && !dtype_is_ref(got)))
        return status_set(
            st, MST_INVALID_ARGUMENT,
            "Input %d of node %s was passed %s from %s:%d incompatible with "
            "expected %s.",
            input, dst, dtype_name(got), src, output, dtype_name(want));
    return MST_OK;
}

enum mst_code graph_bad_input_count(const char *name, const char *op,
                                    const int *types, int count, int given,
                                    struct status *st)
{
    status_set(st, MST_INVALID_ARGUMENT, "NodeDef expected inputs '");
    for (int i = 0; i < count; i++)
        status_append(st, "%s%s", i ? ", " : "", dtype_name(types[i]));
    status_append(st,
                  "' do not match %d inputs specified; Op<name=%s>; NodeDef: "
                  "{{node %s}}",
                  given, op, name);
    return MST_INVALID_ARGUMENT;
}

/* ---- cycles ---- */

/* Back edges of loops are the only ones allowed: from NextIteration to Merge.*/
static bool is_back_edge(const struct graph *g, int src, int dst)
{
    const struct op_def *s = g->nodes[src].def, *d = g->nodes[dst].def;

    return s && d && s->kind == OP_NEXT_ITERATION && d->kind == OP_MERGE;
}

/* Finds the order, and with it whether there is one. */
static enum mst_code find_order(struct graph *g, struct status *st)
{
    int *pending = mem_array((size_t)g->count, sizeof(int));
    int *first = mem_array((size_t)g->count + 1, sizeof(int));
    int *ready = ARENA_ARRAY(g->arena, int, g->count);
    int *edges, head = 0, tail = 0;
    enum mst_code rc = MST_OK;

    for (int i = 0; i < g->count; i++)
        for (int k = 0; k < g->nodes[i].input_count; k++) {
            int src = g->nodes[i].inputs[k].node;

            if (is_back_edge(g, src, i))
                continue;
            pending[i]++;
            first[src + 1]++;
        }
    for (int i = 0; i < g->count; i++)
        first[i + 1] += first[i];
    edges = mem_array((size_t)first[g->count], sizeof(int));
    for (int i = 0; i < g->count; i++)
        for (int k = 0; k < g->nodes[i].input_count; k++)
            if (!is_back_edge(g, g->nodes[i].inputs[k].node, i))
                edges[first[g->nodes[i].inputs[k].node]++] = i;
    for (int i = 0; i < g->count; i++)
        if (!pending[i])
            ready[tail++] = i;
    while (head < tail) {
        int i = ready[head++];

        /* first[i] now is the end of node i's edges. */
        for (int k = i ? first[i - 1] : 0; k < first[i]; k++)
            if (!--pending[edges[k]])
                ready[tail++] = edges[k];
    }
    if (tail != g->count)
        rc = status_set(st, MST_INVALID_ARGUMENT, "%d nodes in a cycle",
                        g->count - tail);
    g->order = ready;
    mem_free(pending);
    mem_free(first);
    mem_free(edges);
    return rc;
}

/* ---- the whole ---- */

static enum mst_code check_versions(const Tensorflow__VersionDef *v,
                                    struct status *st)
{
    if (v->min_consumer > GRAPH_VERSION)
        return status_set(
            st, MST_INVALID_ARGUMENT,
            "GraphDef min consumer version %d above current version %d for "
            "TensorFlow 2.21.0.  Please upgrade TensorFlow.",
            v->min_consumer, GRAPH_VERSION);
    for (size_t i = 0; i < v->n_bad_consumers; i++)
        if (v->bad_consumers[i] == GRAPH_VERSION)
            return status_set(
                st, MST_INVALID_ARGUMENT,
                "GraphDef disallows consumer version %d.  Please upgrade "
                "TensorFlow: this version is likely buggy.",
                GRAPH_VERSION);
    return MST_OK;
}

enum mst_code graph_check_versions(const void *data, size_t len,
                                   struct status *st)
{
    Tensorflow__VersionDef *v =
        CONTROL_UNPACK(tensorflow__version_def, data, len);
    enum mst_code rc = v ? check_versions(v, st)
                         : status_set(st, MST_INVALID_ARGUMENT,
                                      "The graph's versions cannot be read");

    control_free(v);
    return rc;
}

static void add_functions(struct graph_library *lib)
{
    Tensorflow__FunctionDefLibrary *l = lib->source->library;

    for (size_t i = 0; l && i < l->n_function; i++) {
        const Tensorflow__FunctionDef *d = l->function[i];
        struct graph_function *f;

        if (!d->signature)
            continue;
        f = ARENA_NEW(&lib->arena, struct graph_function);
        f->name = d->signature->name;
        f->def = d;
        f->in_count = (int)d->signature->n_input_arg;
        f->out_count = (int)d->signature->n_output_arg;
        (void)map_put_str(&lib->functions, f->name, f);
    }
}

static enum mst_code build_main(struct building *b, Tensorflow__GraphDef *def)
{
    enum mst_code rc = MST_OK;

    b->g->arena = &b->lib->arena;
    b->g->nodes = ARENA_ARRAY(b->g->arena, struct graph_node, def->n_node);
    b->g->count = (int)def->n_node;
    for (int i = 0; i < b->g->count && !rc; i++)
        rc = enter_node(b, i, def->node[i]);
    for (int i = 0; i < b->g->count && !rc; i++)
        rc = connect(b, i, def->node[i]);
    return rc ? rc : find_order(b->g, b->st);
}

struct graph_library *graph_library_new_empty(void)
{
    struct graph_library *lib = MEM_NEW(struct graph_library);

    arena_init(&lib->arena);
    map_init(&lib->functions);
    return lib;
}

enum mst_code graph_library_new(Tensorflow__GraphDef *def,
                                struct graph_library **ret, struct status *st)
{
    struct graph_library *lib = graph_library_new_empty();
    struct building b = { .lib = lib, .g = &lib->main, .st = st };
    enum mst_code rc;

    map_init(&b.names);
    lib->source = def;
    rc = def->versions ? check_versions(def->versions, st) : MST_OK;
    if (!rc) {
        add_functions(lib);
        rc = build_main(&b, def);
    }
    map_done(&b.names);
    if (rc) {
        graph_library_free(lib);
        return rc;
    }
    if (!lib->functions.count) {
        control_free(lib->source);
        lib->source = NULL;
    }
    *ret = lib;
    return MST_OK;
}

void graph_library_free(struct graph_library *lib)
{
    if (!lib)
        return;
    for (int i = 0; i < lib->tensor_count; i++)
        tensor_unref(lib->tensors[i]);
    mem_free(lib->tensors);
    control_free(lib->source);
    map_done(&lib->functions);
    arena_done(&lib->arena);
    mem_free(lib);
}

/* ---- functions ---- */

const struct graph_function *
graph_function_find(const struct graph_library *lib, const char *name)
{
    return map_get_str(&lib->functions, name);
}

static enum mst_code arg_type(const Tensorflow__ArgDef *a,
                              const struct attr *args, int arg_count,
                              const char *function, int *ret, struct status *st)
{
    const struct attr *given;

    *ret = a->type;
    if (*a->type_attr) {
        given = attr_find(args, arg_count, a->type_attr);
        if (given && given->kind == ATTR_TYPE && !given->list)
            *ret = given->value->type;
    }
    if (*a->number_attr || *a->type_list_attr || !dtype_valid(dtype_base(*ret)))
        return status_set(st, MST_UNIMPLEMENTED,
                          "Argument '%.100s' of function '%.200s' has no one "
                          "known type",
                          a->name, function);
    return MST_OK;
}

enum mst_code graph_function_types(struct graph_library *lib,
                                   const struct graph_function *f,
                                   const struct attr *args, int arg_count,
                                   bool outputs, int **ret_types,
                                   int *ret_count, struct status *st)
{
    const Tensorflow__OpDef *sig = f->def->signature;
    int n = outputs ? f->out_count : f->in_count;
    int *types = ARENA_ARRAY(&lib->arena, int, n);

    for (int i = 0; i < n; i++) {
        enum mst_code rc =
            arg_type(outputs ? sig->output_arg[i] : sig->input_arg[i], args,
                     arg_count, f->name, &types[i], st);

        if (rc)
            return rc;
    }
    *ret_types = types;
    *ret_count = n;
    return MST_OK;
}

/* The attributes of the _Arg or _Retval number `index`. */
static void put_arg_attrs(struct graph_library *lib, struct graph_node *n,
                          int type, int index)
{
    struct attr *a = ARENA_ARRAY(&lib->arena, struct attr, 2);
    struct attr_value *v = ARENA_ARRAY(&lib->arena, struct attr_value, 2);

    v[0].type = type;
    v[1].i = index;
    a[0] = (struct attr){ "T", ATTR_TYPE, false, 1, &v[0] };
    a[1] = (struct attr){ "index", ATTR_INT, false, 1, &v[1] };
    n->attrs = a;
    n->attr_count = 2;
    n->device = "";
}

static enum mst_code
enter_args(struct building *b, const struct graph_function *f, const int *types)
{
    for (int i = 0; i < f->in_count; i++) {
        struct graph_node *n = &b->g->nodes[i];

        n->name =
            arena_str(&b->lib->arena, f->def->signature->input_arg[i]->name);
        n->op = "_Arg";
        n->def = op_find("_Arg");
        put_arg_attrs(b->lib, n, types[i], i);
        if (map_put_str(&b->names, n->name, (void *)(intptr_t)(i + 1)))
            return status_set(b->st, MST_INVALID_ARGUMENT,
                              "Function '%.200s' has two arguments '%.200s'",
                              f->name, n->name);
    }
    return MST_OK;
}

static const char *ret_source(const Tensorflow__FunctionDef *d,
                              const char *name)
{
    for (size_t i = 0; i < d->n_ret; i++)
        if (!strcmp(d->ret[i]->key, name))
            return d->ret[i]->value;
    return NULL;
}

static enum mst_code enter_rets(struct building *b,
                                const struct graph_function *f,
                                const int *types, int at)
{
    for (int i = 0; i < f->out_count; i++) {
        struct graph_node *n = &b->g->nodes[at + i];
        const char *name = f->def->signature->output_arg[i]->name;
        const char *src = ret_source(f->def, name);
        enum mst_code rc;

        if (!src)
            return status_set(b->st, MST_INVALID_ARGUMENT,
                              "Return '%.100s' of function '%.200s' is missing",
                              name, f->name);
        n->name = arena_printf(&b->lib->arena, "%s_RetVal", name);
        n->op = "_Retval";
        n->def = op_find("_Retval");
        put_arg_attrs(b->lib, n, types[i], i);
        n->inputs = ARENA_NEW(&b->lib->arena, struct graph_input);
        rc = parse_function_input(b, n, src, n->inputs);
        if (rc)
            return rc;
        n->data_count = n->input_count = 1;
    }
    return MST_OK;
}

static void mark_wanted(struct building *b, const Tensorflow__FunctionDef *d)
{
    for (size_t i = 0; i < d->n_control_ret; i++) {
        const char *name = d->control_ret[i]->value;
        int at = find_name(b, name, strlen(name));

        if (at >= 0)
            b->g->nodes[at].wanted = true;
    }
}

enum mst_code graph_function_body(struct graph_library *lib,
                                  const struct graph_function *f,
                                  const struct attr *args, int arg_count,
                                  struct graph *ret, struct status *st)
{
    struct building b = { .lib = lib,
                          .g = ret,
                          .args = args,
                          .arg_count = arg_count,
                          .in_function = true,
                          .st = st };
    int nodes = (int)f->def->n_node_def, *in, *out, n;
    enum mst_code rc;

    map_init(&b.names);
    ret->arena = &lib->arena;
    ret->count = f->in_count + nodes + f->out_count;
    ret->nodes = ARENA_ARRAY(ret->arena, struct graph_node, ret->count);
    rc = graph_function_types(lib, f, args, arg_count, false, &in, &n, st);
    if (!rc)
        rc = graph_function_types(lib, f, args, arg_count, true, &out, &n, st);
    if (!rc)
        rc = enter_args(&b, f, in);
    for (int i = 0; i < nodes && !rc; i++)
        rc = enter_node(&b, f->in_count + i, f->def->node_def[i]);
    for (int i = 0; i < nodes && !rc; i++)
        rc = connect(&b, f->in_count + i, f->def->node_def[i]);
    if (!rc)
        rc = enter_rets(&b, f, out, f->in_count + nodes);
    if (!rc) {
        mark_wanted(&b, f->def);
        rc = find_order(ret, st);
    }
    map_done(&b.names);
    return rc;
}
