/*
 * Ops that call functions of the graph's library: PartitionedCall, If, Case,
 * While and their twins for functions with and without state. How a function
 * runs is the executor's matter (op/call.h); these kernels choose which one
 * and hand values on.
 *
 * While alternates its condition and its body. A call may end before the
 * call that started it returns, or on another thread; either way the loop
 * must go on exactly once and without growing the stack. Hence the turn: who
 * started the call and who was told of its end both add to it, the second of
 * them goes on. Loop variables stay in the op's input slots.
 */
#include "base/mem.h"
#include "kernel/types.h"
#include "op/call.h"

struct callees {
    int count;
    struct callee *f[];
};

static enum mst_code find(struct op_node *n, int attr_count,
                          const char *const *attrs, struct status *st)
{
    struct callees *s;
    int total = 0;

    if (!n->env->calls)
        return status_set(st, MST_UNIMPLEMENTED,
                          "{{node %s}} calls a function, and there are none",
                          n->name);
    for (int i = 0; i < attr_count; i++)
        total += op_attr(n, attrs[i])->count;
    s = arena_alloc(n->arena, sizeof(*s) + (size_t)total * sizeof(s->f[0]));
    for (int i = 0; i < attr_count; i++) {
        const struct attr *a = op_attr(n, attrs[i]);

        for (int k = 0; k < a->count; k++) {
            enum mst_code rc =
                n->env->calls->find(n, &a->value[k], &s->f[s->count++], st);

            if (rc)
                return rc;
        }
    }
    n->state = s;
    return MST_OK;
}

static void move_value(struct op_value *to, struct op_value *from)
{
    tensor_move(&to->t, &from->t);
    to->ref = from->ref;
    from->ref = NULL;
}

static enum mst_code check_results(struct op_ctx *c,
                                   const struct op_value *results, int count)
{
    const struct op_node *n = c->node;

    if (count != n->out_count)
        return op_fail(c, MST_INTERNAL,
                       "Expect to produce %d tensors, but only get %d",
                       n->out_count, count);
    for (int i = 0; i < count; i++)
        if (results[i].t.dtype != n->out_types[i])
            return op_fail(
                c, MST_INTERNAL, "Expect %d-th output is of type %s but get %s",
                i, dtype_name(n->out_types[i]), dtype_name(results[i].t.dtype));
    return MST_OK;
}

static void call_done(struct op_ctx *c, void *arg, enum mst_code code,
                      struct op_value *results, int count)
{
    (void)arg;
    if (!code)
        code = check_results(c, results, count);
    for (int i = 0; i < count && !code; i++)
        move_value(&c->out[i], &results[i]);
    op_finish(c, code);
}

/* Starts a call whose results are the op's outputs. */
static void call(struct op_ctx *c, int which, int first_arg)
{
    const struct callees *s = c->node->state;

    c->node->env->calls->start(s->f[which], c, c->in + first_arg,
                               c->node->in_count - first_arg, call_done, NULL);
}

/* ---- PartitionedCall ---- */

static enum mst_code call_init(struct op_node *n, struct status *st)
{
    return find(n, 1, (const char *const[]){ "f" }, st);
}

static enum mst_code call_run(struct op_ctx *c)
{
    call(c, 0, 0);
    return OP_LATER;
}

#define CALL(stem, text, flags_)                                               \
    const struct op_def def_##stem = {                                         \
        .name = text,                                                          \
        .in = "args: Tin",                                                     \
        .out = "output: Tout",                                                 \
        .attr = "Tin: list(type) >= 0; Tout: list(type) >= 0; f: func; "       \
                "config: string = ''; config_proto: string = ''; "             \
                "executor_type: string = ''",                                  \
        .flags = OP_ASYNC | flags_,                                            \
        .init = call_init,                                                     \
        .kernel = (const struct op_kernel[]){ { DT_ANY, call_run }, { 0 } },   \
    };

CALL(partitioned_call, "PartitionedCall", 0)
CALL(stateful_partitioned_call, "StatefulPartitionedCall", OP_STATEFUL)

/* ---- If ---- */

#define IS_TRUE(s, T, A, DT, LD, ST)                                           \
    case DT:                                                                   \
        *ret = LD(*TENSOR_DATA(t, T)) != 0;                                    \
        return MST_OK;

/* A scalar that is not zero or not empty, or a tensor with elements. */
static enum mst_code truth(struct op_ctx *c, const struct tensor *t, bool *ret)
{
    if (t->ndim) {
        *ret = t->count > 0;
        return MST_OK;
    }
    switch (t->dtype) {
        TYPES_REAL(IS_TRUE)
        TYPES_BOOL(IS_TRUE)
    case DT_STRING:
        *ret = tensor_str(t, 0)->len > 0;
        return MST_OK;
    default:
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "%s cannot be converted to a boolean",
                       dtype_name(t->dtype));
    }
}

static enum mst_code if_init(struct op_node *n, struct status *st)
{
    return find(n, 2, (const char *const[]){ "then_branch", "else_branch" },
                st);
}

static enum mst_code if_run(struct op_ctx *c)
{
    bool yes;
    enum mst_code rc = truth(c, op_in(c, 0), &yes);

    if (rc)
        return rc;
    call(c, yes ? 0 : 1, 1);
    return OP_LATER;
}

#define IF(stem, text, flags_)                                                 \
    const struct op_def def_##stem = {                                         \
        .name = text,                                                          \
        .in = "cond: Tcond, input: Tin",                                       \
        .out = "output: Tout",                                                 \
        .attr = "Tcond: type; Tin: list(type) >= 0; Tout: list(type) >= 0; "   \
                "then_branch: func; else_branch: func; "                       \
                "output_shapes: list(shape) = []",                             \
        .flags = OP_ASYNC | flags_,                                            \
        .init = if_init,                                                       \
        .kernel = (const struct op_kernel[]){ { DT_ANY, if_run }, { 0 } },     \
    };

IF(if, "If", OP_STATEFUL)
IF(stateless_if, "StatelessIf", 0)

/* ---- Case ---- */

static enum mst_code case_init(struct op_node *n, struct status *st)
{
    return find(n, 1, (const char *const[]){ "branches" }, st);
}

static enum mst_code case_run(struct op_ctx *c)
{
    const struct callees *s = c->node->state;
    int64_t branch;

    if (op_in(c, 0)->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT, "branch_index must be scalar");
    branch = tensor_int(op_in(c, 0), 0);
    if (branch < 0 || branch >= s->count)
        branch = s->count - 1;
    call(c, (int)branch, 1);
    return OP_LATER;
}

#define CASE(stem, text, flags_)                                               \
    const struct op_def def_##stem = {                                         \
        .name = text,                                                          \
        .in = "branch_index: int32, input: Tin",                               \
        .out = "output: Tout",                                                 \
        .attr = "Tin: list(type) >= 0; Tout: list(type) >= 0; "                \
                "branches: list(func) >= 1; output_shapes: list(shape) = []",  \
        .flags = OP_ASYNC | flags_,                                            \
        .init = case_init,                                                     \
        .kernel = (const struct op_kernel[]){ { DT_ANY, case_run }, { 0 } },   \
    };

CASE(case, "Case", OP_STATEFUL)
CASE(stateless_case, "StatelessCase", 0)

/* ---- While ---- */

enum { COND, BODY };

/* In the op's scratch memory. */
struct loop {
    atomic_int turn;
    int running;           /* COND or BODY */
    enum mst_code code;    /* of the call that ended last */
    bool again;            /* what the condition said */
    struct op_value *args; /* of the condition: it must not eat the values */
};

_Static_assert(sizeof(struct loop) <= OP_SCRATCH, "scratch is too small");

static enum mst_code while_init(struct op_node *n, struct status *st)
{
    return find(n, 2, (const char *const[]){ "cond", "body" }, st);
}

static enum mst_code cond_done(struct op_ctx *c, struct loop *l,
                               const struct op_value *results, int count)
{
    if (count != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Expected a single scalar return value from WhileOp "
                       "cond, got %d tensors.",
                       count);
    return truth(c, &results[0].t, &l->again);
}

static enum mst_code body_done(struct op_ctx *c, struct op_value *results,
                               int count)
{
    const struct op_node *n = c->node;

    if (count != n->in_count)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Expected %d return values from WhileOp body, got %d.",
                       n->in_count, count);
    for (int i = 0; i < count; i++) {
        if (results[i].t.dtype != n->in_types[i])
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Expected type %s for return value %d but got %s.",
                           dtype_name(n->in_types[i]), i,
                           dtype_name(results[i].t.dtype));
        /* The call may have left its arguments where they were. */
        tensor_unref(&c->in[i].t);
        variable_unref(c->in[i].ref);
        move_value(&c->in[i], &results[i]);
    }
    return MST_OK;
}

static bool go_on(struct op_ctx *c);

static void while_done(struct op_ctx *c, void *arg, enum mst_code code,
                       struct op_value *results, int count)
{
    struct loop *l = arg;

    if (!code)
        code = l->running == COND ? cond_done(c, l, results, count)
                                  : body_done(c, results, count);
    l->code = code;
    if (atomic_fetch_add(&l->turn, 1) == 0)
        return; /* who started the call has not returned and goes on */
    if (!go_on(c))
        op_finish(c, l->code);
}

static void release_args(const struct op_ctx *c, struct loop *l)
{
    for (int i = 0; i < c->node->in_count; i++) {
        tensor_unref(&l->args[i].t);
        variable_unref(l->args[i].ref);
        l->args[i].ref = NULL;
    }
}

/* Starts the condition or the body; true when its end has been told. */
static bool start(struct op_ctx *c, struct loop *l, int which)
{
    const struct callees *s = c->node->state;
    int n = c->node->in_count;

    l->running = which;
    atomic_store(&l->turn, 0);
    for (int i = 0; i < n && which == COND; i++)
        l->args[i] = (struct op_value){ tensor_ref(&c->in[i].t),
                                        variable_ref(c->in[i].ref) };
    c->node->env->calls->start(s->f[which], c, which == COND ? l->args : c->in,
                               n, while_done, l);
    return atomic_fetch_add(&l->turn, 1) != 0;
}

/* After the end of a call: the next one, and so on. True when one is under
 * way; false at the loop's end, with l->code. */
static bool go_on(struct op_ctx *c)
{
    struct loop *l = c->scratch;

    for (;;) {
        if (l->running == COND)
            release_args(c, l);
        if (!l->code && cancel_is_set(c->step->cancel))
            l->code =
                op_fail(c, MST_CANCELLED, "Loop execution was cancelled.");
        if (l->code || (l->running == COND && !l->again))
            break;
        if (!start(c, l, l->running == COND ? BODY : COND))
            return true;
    }
    mem_free(l->args);
    for (int i = 0; i < c->node->in_count && !l->code; i++)
        move_value(&c->out[i], &c->in[i]);
    return false;
}

static enum mst_code while_run(struct op_ctx *c)
{
    struct loop *l = c->scratch;

    *l = (struct loop){ 0 };
    l->args = mem_array((size_t)c->node->in_count, sizeof(*l->args));
    if (!start(c, l, COND) || go_on(c))
        return OP_LATER;
    return l->code;
}

#define WHILE(stem, text, flags_)                                              \
    const struct op_def def_##stem = {                                         \
        .name = text,                                                          \
        .in = "input: T",                                                      \
        .out = "output: T",                                                    \
        .attr = "T: list(type) >= 0; cond: func; body: func; "                 \
                "output_shapes: list(shape) = []; "                            \
                "parallel_iterations: int = 10",                               \
        .flags = OP_ASYNC | flags_,                                            \
        .init = while_init,                                                    \
        .kernel = (const struct op_kernel[]){ { DT_ANY, while_run }, { 0 } },  \
    };

WHILE(while, "While", OP_STATEFUL)
WHILE(stateless_while, "StatelessWhile", 0)
