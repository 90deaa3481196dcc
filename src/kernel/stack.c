/*
 * Stacks: what loops keep their intermediate values on until the gradient
 * comes back for them.
 *
 * A stack belongs to one step. Nothing but values of that step leads to it, so
 * it ends with them; no table knows it. Old form (a reference to strings) and
 * new form (a resource) share their kernels.
 */
#include "base/mem.h"
#include "kernel/types.h"

struct stack {
    struct object o;
    char *name;
    int dtype;
    int64_t size_max;
    pthread_mutex_t lock;
    /* All under lock. */
    struct tensor *values;
    size_t count, room;
    bool closed;
};

static void stack_clear(struct stack *s)
{
    for (size_t i = 0; i < s->count; i++)
        tensor_unref(&s->values[i]);
    mem_free(s->values);
    s->values = NULL;
    s->count = s->room = 0;
}

static void stack_free(struct object *o)
{
    struct stack *s = CONTAINER(o, struct stack, o);

    stack_clear(s);
    pthread_mutex_destroy(&s->lock);
    mem_free(s->name);
    mem_free(s);
}

static const struct object_kind stack_kind = { "stack", stack_free };

/* ---- making ---- */

struct make_state {
    const char *name;
    int dtype;
};

static enum mst_code make_init(struct op_node *n, struct status *st)
{
    struct make_state *s = ARENA_NEW(n->arena, struct make_state);
    struct attr_text name = op_attr_str(n, "stack_name");

    (void)st;
    s->name = name.len ? name.data : n->name;
    s->dtype = op_attr_type(n, "elem_type");
    n->state = s;
    return MST_OK;
}

static enum mst_code make_run(struct op_ctx *c)
{
    static atomic_llong serial;
    const struct make_state *m = c->node->state;
    int64_t size_max = INT32_MAX;
    char text[SHAPE_TEXT_MAX];
    struct handle *h;
    struct stack *s;
    enum mst_code rc;

    if (c->node->in_count) {
        const struct tensor *t = op_in(c, 0);

        if (t->ndim)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Stack size must be a scalar, but had shape: %s",
                           tensor_shape_text(t, text));
        if (tensor_int(t, 0) >= 0)
            size_max = tensor_int(t, 0);
    }
    s = MEM_NEW(struct stack);
    object_init(&s->o, &stack_kind);
    pthread_mutex_init(&s->lock, NULL);
    s->name =
        mem_printf("%s_%lld", m->name, (long long)atomic_fetch_add(&serial, 1));
    s->dtype = m->dtype;
    s->size_max = size_max;
    h = handle_anonymous(&stack_kind, &s->o, s->name);
    rc = op_out_handle(c, 0, h);
    handle_unref(h);
    return rc;
}

#define STACK_ATTRS "elem_type: type; stack_name: string = ''"

const struct op_def def_stack = {
    .name = "Stack",
    .out = "handle: Ref(string)",
    .attr = STACK_ATTRS,
    .flags = OP_STATEFUL,
    .key = "elem_type",
    .init = make_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, make_run }, { 0 } },
};

const struct op_def def_stack_v2 = {
    .name = "StackV2",
    .in = "max_size: int32",
    .out = "handle: resource",
    .attr = STACK_ATTRS,
    .flags = OP_STATEFUL,
    .key = "elem_type",
    .init = make_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, make_run }, { 0 } },
};

/* ---- using ---- */

static enum mst_code get(struct op_ctx *c, struct stack **ret)
{
    struct object *o;
    enum mst_code rc = op_resource(c, 0, &stack_kind, &o);

    if (!rc)
        *ret = CONTAINER(o, struct stack, o);
    return rc;
}

static enum mst_code check_open(struct op_ctx *c, const struct stack *s)
{
    if (!s->closed)
        return MST_OK;
    return op_fail(c, MST_INVALID_ARGUMENT,
                   "Stack[%s] has already been closed.", s->name);
}

static enum mst_code push_run(struct op_ctx *c)
{
    struct stack *s;
    enum mst_code rc = get(c, &s);

    if (rc)
        return rc;
    pthread_mutex_lock(&s->lock);
    if (c->node->in_types[1] != s->dtype)
        rc = op_fail(c, MST_INVALID_ARGUMENT, "Must have type %d but got %d",
                     s->dtype, c->node->in_types[1]);
    else
        rc = check_open(c, s);
    if (!rc && (int64_t)s->count >= s->size_max)
        rc = op_fail(c, MST_INVALID_ARGUMENT,
                     "Stack[%s] overflowed its max_size (%lld)", s->name,
                     (long long)s->size_max);
    if (!rc) {
        *MEM_PUSH(s->values, s->count, s->room) = tensor_ref(op_in(c, 1));
        op_out_same(c, 0, 1);
    }
    pthread_mutex_unlock(&s->lock);
    object_unref(&s->o);
    return rc;
}

static enum mst_code pop_run(struct op_ctx *c)
{
    struct stack *s;
    enum mst_code rc = get(c, &s);

    if (rc)
        return rc;
    pthread_mutex_lock(&s->lock);
    rc = check_open(c, s);
    if (!rc && !s->count)
        rc = op_fail(c, MST_INVALID_ARGUMENT,
                     "Stack[%s] is empty when calling Pop().", s->name);
    if (!rc && c->node->out_types[0] != s->dtype)
        rc = op_fail(c, MST_INTERNAL,
                     "Output 0 of type %s does not match declared output type "
                     "%s for node {{node %s}}",
                     dtype_name(s->dtype), dtype_name(c->node->out_types[0]),
                     c->node->name);
    if (!rc)
        tensor_move(op_out(c, 0), &s->values[--s->count]);
    pthread_mutex_unlock(&s->lock);
    object_unref(&s->o);
    return rc;
}

static enum mst_code close_run(struct op_ctx *c)
{
    struct stack *s;
    enum mst_code rc = get(c, &s);

    if (rc)
        return rc;
    pthread_mutex_lock(&s->lock);
    stack_clear(s);
    s->closed = true;
    pthread_mutex_unlock(&s->lock);
    object_unref(&s->o);
    return MST_OK;
}

/* Both forms of an op. */
#define STACK_ACCESS(stem, text, more_in, out_, attr_)                         \
    const struct op_def def_stack_##stem = {                                   \
        .name = text,                                                          \
        .in = "handle: Ref(string)" more_in,                                   \
        .out = out_,                                                           \
        .attr = attr_,                                                         \
        .flags = OP_STATEFUL,                                                  \
        .kernel = (const struct op_kernel[]){ { DT_ANY, stem##_run }, { 0 } }, \
    };                                                                         \
    const struct op_def def_stack_##stem##_v2 = {                              \
        .name = text "V2",                                                     \
        .in = "handle: resource" more_in,                                      \
        .out = out_,                                                           \
        .attr = attr_,                                                         \
        .flags = OP_STATEFUL,                                                  \
        .kernel = (const struct op_kernel[]){ { DT_ANY, stem##_run }, { 0 } }, \
    };

STACK_ACCESS(push, "StackPush", ", elem: T", "output: T",
             "T: type; swap_memory: bool = false")
STACK_ACCESS(pop, "StackPop", "", "elem: elem_type", "elem_type: type")
STACK_ACCESS(close, "StackClose", "", NULL, NULL)
