#include "exec/plan.h"

#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "exec/call.h"
#include "exec/optimise.h"
#include "exec/step.h"
#include "op/spec.h"

#define PARALLEL_MAX 1024

/* ---- nodes ---- */

static enum mst_code make_call_node(struct plan *p, struct plan_node *n,
                                    const struct graph_node *g,
                                    struct status *st)
{
    struct graph_library *lib = plan_outermost(p)->lib;
    int *types;
    enum mst_code rc;

    n->op.def = &call_def;
    n->op.run = call_def.kernel->run;
    rc = graph_function_types(lib, g->function, g->attrs, g->attr_count, false,
                              &types, &n->op.in_count, st);
    if (rc)
        return rc;
    n->op.in_types = types;
    rc = graph_function_types(lib, g->function, g->attrs, g->attr_count, true,
                              &types, &n->op.out_count, st);
    n->op.out_types = types;
    return rc ? rc : call_init_direct(&n->op, g->function->name, st);
}

static enum mst_code make_node(struct plan *p, int at,
                               const struct graph_node *g, struct status *st)
{
    struct plan_node *n = &p->nodes[at];
    enum mst_code rc;

    n->op = (struct op_node){ .name = g->name,
                              .env = &p->env,
                              .arena = &p->arena,
                              .def = g->def,
                              .attrs = g->attrs,
                              .attr_count = g->attr_count };
    n->async = -1;
    if (!g->def) {
        rc = make_call_node(p, n, g, st);
    } else {
        rc = spec_complete(&n->op, st);
        if (!rc && g->def->init)
            rc = g->def->init(&n->op, st);
    }
    if (rc) {
        n->op.def = NULL; /* there is nothing to be done with it at the end */
        return rc;
    }
    n->kind = n->op.def->kind;
    n->flags = n->op.def->flags;
    p->has_blocking |= (n->flags & OP_BLOCKING) != 0;
    if (g->data_count != n->op.in_count)
        return graph_bad_input_count(n->op.name, n->op.def->name,
                                     n->op.in_types, n->op.in_count,
                                     g->data_count, st);
    return MST_OK;
}

/* ---- types along edges ---- */

static bool is_handle_arg(const struct plan_node *n, int input)
{
    const struct op_spec *spec = spec_of(n->op.def);

    /* Handles are declared alone and first, so the number is the argument. */
    return n->op.def != &call_def && input < spec->in_count &&
           spec->in[input].ref && spec->in[input].dtype == DT_STRING;
}

static enum mst_code check_edge(struct plan *p, const struct graph *g, int dst,
                                int input, uint8_t *ret_how, struct status *st)
{
    const struct graph_input *in = &g->nodes[dst].inputs[input];
    const struct plan_node *d = &p->nodes[dst], *s = &p->nodes[in->node];
    int want = d->op.in_types[input], got;
    enum mst_code rc =
        graph_check_edge(d->op.name, input, want, s->op.name, in->output,
                         s->op.out_count, s->op.out_types, st);

    if (rc)
        return rc;
    got = s->op.out_types[in->output];
    if (dtype_is_ref(want))
        *ret_how = is_handle_arg(d, input) ? IN_HANDLE : IN_REF;
    else if (!dtype_is_ref(got))
        *ret_how = IN_VALUE;
    else if (d->kind == OP_MERGE && dtype_is_ref(d->op.out_types[0]))
        *ret_how = IN_REF;
    else
        *ret_how = IN_DEREF;
    return MST_OK;
}

static enum mst_code check_edges(struct plan *p, const struct graph *g,
                                 struct status *st)
{
    for (int i = 0; i < p->count; i++) {
        struct plan_node *n = &p->nodes[i];
        uint8_t *how = ARENA_ARRAY(&p->arena, uint8_t, n->op.in_count);

        n->in_plain = true;
        for (int k = 0; k < n->op.in_count; k++) {
            enum mst_code rc = check_edge(p, g, i, k, &how[k], st);

            if (rc)
                return rc;
            if (k == 0)
                n->op.in_name = p->nodes[g->nodes[i].inputs[0].node].op.name;
            n->in_plain = n->in_plain && how[k] == IN_VALUE;
        }
        n->in_how = how;
        if (n->kind == OP_MERGE &&
            (g->nodes[i].input_count - g->nodes[i].data_count > 0xffff ||
             n->op.in_count > MERGE_INPUTS_MAX))
            return status_set(st, MST_INVALID_ARGUMENT,
                              "Node '%s' has too many inputs", n->op.name);
    }
    return MST_OK;
}

/* Nobody sends to a node that is gone. */
static int input_count(const struct plan *p, const struct graph *g, int node)
{
    return p->nodes[node].gone ? 0 : g->nodes[node].input_count;
}

/* Outgoing edges, grouped by output. */
static void make_edges(struct plan *p, const struct graph *g)
{
    int **first = mem_array((size_t)p->count, sizeof(*first));
    struct plan_edge **data = mem_array((size_t)p->count, sizeof(*data));
    struct plan_edge **control = mem_array((size_t)p->count, sizeof(*control));
    int *fill;

    for (int i = 0; i < p->count; i++)
        first[i] = ARENA_ARRAY(&p->arena, int, p->nodes[i].op.out_count + 2);
    for (int i = 0; i < p->count; i++)
        for (int k = 0; k < input_count(p, g, i); k++) {
            const struct graph_input *in = &g->nodes[i].inputs[k];

            if (in->output >= 0)
                first[in->node][in->output + 2]++;
            else
                p->nodes[in->node].control_count++;
        }
    for (int i = 0; i < p->count; i++) {
        struct plan_node *n = &p->nodes[i];

        /* first[o + 1] is where output o's edges are put next; in the end it
         * is where those of o + 1 begin, which is what data_first wants. */
        for (int o = 0; o < n->op.out_count; o++)
            first[i][o + 2] += first[i][o + 1];
        data[i] = ARENA_ARRAY(&p->arena, struct plan_edge,
                              first[i][n->op.out_count + 1]);
        control[i] = ARENA_ARRAY(&p->arena, struct plan_edge, n->control_count);
        n->data_first = first[i];
        n->data = data[i];
        n->control = control[i];
    }
    fill = mem_array((size_t)p->count, sizeof(*fill));
    for (int i = 0; i < p->count; i++)
        for (int k = 0; k < input_count(p, g, i); k++) {
            const struct graph_input *in = &g->nodes[i].inputs[k];

            if (in->output >= 0)
                data[in->node][first[in->node][in->output + 1]++] =
                    (struct plan_edge){ i, k };
            else
                control[in->node][fill[in->node]++] =
                    (struct plan_edge){ i, EDGE_CONTROL };
        }
    mem_free(fill);
    mem_free(first);
    mem_free(data);
    mem_free(control);
}

/* ---- frames ---- */

static int frame_of(struct plan *p, int parent, const char *name,
                    int64_t parallel, int *room)
{
    struct plan_frame *f;

    for (int i = 1; i < p->frame_count; i++)
        if (p->frames[i].parent == parent && !strcmp(p->frames[i].name, name))
            return i;
    f = MEM_PUSH(p->frames, p->frame_count, *room);
    *f = (struct plan_frame){ .name = name,
                              .name_hash = hash_str(name),
                              .parent = parent,
                              .parallel =
                                  (int)MAX(1, MIN(parallel, PARALLEL_MAX)) };
    return p->frame_count - 1;
}

static enum mst_code enter_frame(struct plan *p, struct plan_node *n, int *room,
                                 struct status *st)
{
    n->out_frame = n->frame;
    if (n->kind == OP_ENTER) {
        n->constant_enter = op_attr_bool(&n->op, "is_constant");
        n->out_frame =
            frame_of(p, n->frame, op_attr_str(&n->op, "frame_name").data,
                     op_attr_int(&n->op, "parallel_iterations"), room);
        p->frames[n->out_frame].enter_count++;
    } else if (n->kind == OP_EXIT) {
        if (n->frame == 0)
            return status_set(st, MST_INVALID_ARGUMENT,
                              "Node '%s' leaves a loop that it is not in",
                              n->op.name);
        n->out_frame = p->frames[n->frame].parent;
    } else if (n->kind == OP_NEXT_ITERATION && n->frame == 0) {
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Node '%s' goes on to an iteration outside of a loop",
                          n->op.name);
    }
    return MST_OK;
}

static bool is_back_edge(const struct plan_node *src,
                         const struct plan_node *dst)
{
    return src->kind == OP_NEXT_ITERATION && dst->kind == OP_MERGE;
}

/* A node is in the frame that its inputs come to. */
static enum mst_code find_frame(struct plan *p, const struct graph_node *g,
                                struct plan_node *n, struct status *st)
{
    int frame = -1;

    for (int k = 0; k < g->input_count; k++) {
        const struct plan_node *in = &p->nodes[g->inputs[k].node];

        if (is_back_edge(in, n))
            continue;
        if (frame >= 0 && frame != in->out_frame)
            return status_set(
                st, MST_INVALID_ARGUMENT,
                "{{node %s}} has inputs from different frames. The input "
                "{{node %s}} is in frame '%s'. Another is in frame '%s'.",
                n->op.name, in->op.name, p->frames[in->out_frame].name,
                p->frames[frame].name);
        frame = in->out_frame;
    }
    n->frame = MAX(frame, 0);
    return MST_OK;
}

/* Back edges are left to be checked when all frames are known. */
static enum mst_code check_back_edges(const struct plan *p,
                                      const struct graph *g, struct status *st)
{
    for (int i = 0; i < p->count; i++)
        for (int k = 0; k < g->nodes[i].data_count; k++) {
            const struct plan_node *n = &p->nodes[i];
            const struct plan_node *in = &p->nodes[g->nodes[i].inputs[k].node];

            if (in->out_frame != n->frame)
                return status_set(
                    st, MST_INVALID_ARGUMENT,
                    "{{node %s}} and {{node %s}} are in different frames",
                    in->op.name, n->op.name);
        }
    return MST_OK;
}

static enum mst_code find_frames(struct plan *p, const struct graph *g,
                                 struct status *st)
{
    int room = 0;
    enum mst_code rc = MST_OK;

    *MEM_PUSH(p->frames, p->frame_count, room) =
        (struct plan_frame){ .name = "", .parent = -1, .parallel = 1 };
    for (int k = 0; k < p->count && !rc; k++) {
        struct plan_node *n = &p->nodes[g->order[k]];

        rc = find_frame(p, &g->nodes[g->order[k]], n, st);
        if (!rc)
            rc = enter_frame(p, n, &room, st);
    }
    return rc ? rc : check_back_edges(p, g, st);
}

uint32_t plan_pending(const struct plan_node *n)
{
    if (n->kind == OP_MERGE)
        return n->control_in;
    return n->data_in + n->control_in;
}

/* Numbers nodes and slots inside of their frames. */
static void lay_out(struct plan *p, const struct graph *g)
{
    struct plan_frame *frames = arena_copy(
        &p->arena, p->frames, (size_t)p->frame_count * sizeof(*p->frames));

    mem_free(p->frames);
    p->frames = frames;
    for (int i = 0; i < p->count; i++) {
        struct plan_node *n = &p->nodes[i];
        struct plan_frame *f = &frames[n->frame];

        if (n->gone)
            continue;
        n->data_in = (uint32_t)n->op.in_count;
        n->control_in =
            (uint32_t)(g->nodes[i].input_count - g->nodes[i].data_count);
        n->index = f->node_count++;
        n->slot = f->slot_count;
        f->slot_count += n->op.in_count;
        if (n->flags & OP_ASYNC)
            n->async = f->async_count++;
    }
    for (int i = 0; i < p->frame_count; i++) {
        frames[i].pending =
            ARENA_ARRAY(&p->arena, uint32_t, frames[i].node_count);
        frames[i].nodes =
            ARENA_ARRAY(&p->arena, struct plan_node *, frames[i].node_count);
    }
    p->roots = ARENA_ARRAY(&p->arena, int, p->count);
    for (int i = 0; i < p->count; i++) {
        struct plan_node *n = &p->nodes[i];

        if (n->gone)
            continue;
        frames[n->frame].nodes[n->index] = n;
        frames[n->frame].pending[n->index] = plan_pending(n);
        if (!n->data_in && !n->control_in)
            p->roots[p->root_count++] = i;
    }
}

/* ---- the whole ---- */

static enum mst_code compile(struct plan *p, struct graph *g, struct status *st)
{
    enum mst_code rc = MST_OK;

    p->nodes = ARENA_ARRAY(&p->arena, struct plan_node, g->count);
    for (; p->count < g->count && !rc; p->count++)
        rc = make_node(p, p->count, &g->nodes[p->count], st);
    if (!rc)
        rc = check_edges(p, g, st);
    if (!rc)
        rc = find_frames(p, g, st);
    if (rc)
        return rc;
    if (p->optimised)
        optimise(p, g);
    make_edges(p, g);
    lay_out(p, g);
    return MST_OK;
}

static struct plan *new_plan(const struct op_env *env)
{
    struct plan *p = MEM_NEW(struct plan);

    atomic_init(&p->refs, 1);
    arena_init(&p->arena);
    map_init(&p->callees);
    pthread_mutex_init(&p->idle_lock, NULL);
    p->env = *env;
    p->env.plan = p;
    p->env.calls = &call_ops;
    resources_ref(p->env.resources);
    return p;
}

enum mst_code plan_new(struct graph_library *lib, const struct op_env *env,
                       bool optimised, struct plan **ret, struct status *st)
{
    struct plan *p = new_plan(env);
    enum mst_code rc;

    p->lib = lib;
    p->optimised = optimised;
    for (int i = 0; i < lib->main.count; i++) {
        const struct op_def *def = lib->main.nodes[i].def;

        p->arg_count += def && def->kind == OP_ARG;
        p->ret_count += def && def->kind == OP_RETVAL;
    }
    rc = compile(p, &lib->main, st);
    p->env.segment = NULL; /* it is the session's, which may end first */
    if (rc)
        plan_unref(p);
    else
        *ret = p;
    return rc;
}

enum mst_code plan_new_function(struct plan *parent, struct graph *body,
                                int arg_count, int ret_count, struct plan **ret,
                                struct status *st)
{
    struct plan *p = new_plan(&parent->env);
    enum mst_code rc;

    p->env.segment = NULL; /* names in functions are not the session's */
    p->parent = plan_outermost(parent);
    p->optimised = parent->optimised;
    p->arg_count = arg_count;
    p->ret_count = ret_count;
    rc = compile(p, body, st);
    p->parent->has_blocking |= p->has_blocking;
    if (rc)
        plan_unref(p);
    else
        *ret = p;
    return rc;
}

struct plan *plan_outermost(struct plan *p)
{
    return p->parent ? p->parent : p;
}

struct plan *plan_ref(struct plan *p)
{
    atomic_fetch_add(&p->refs, 1);
    return p;
}

void plan_unref(struct plan *p)
{
    if (!p || atomic_fetch_sub(&p->refs, 1) != 1)
        return;
    step_free_idle(p);
    for (int i = 0; i < p->count; i++) {
        struct op_node *n = &p->nodes[i].op;

        if (n->def && n->def->done)
            n->def->done(n);
        for (int o = 0; p->nodes[i].constant && o < n->out_count; o++)
            tensor_unref(&p->nodes[i].constant[o]);
    }
    call_free_callees(p);
    map_done(&p->callees);
    if (p->frames && !p->roots)
        mem_free(p->frames); /* not laid out yet */
    graph_library_free(p->lib);
    resources_unref(p->env.resources);
    pthread_mutex_destroy(&p->idle_lock);
    arena_done(&p->arena);
    mem_free(p);
}
