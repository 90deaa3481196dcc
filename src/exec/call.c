#include "exec/call.h"

#include <string.h>

#include "base/mem.h"
#include "exec/step.h"

/* A function as it is called with certain attributes, compiled once. */
struct callee {
    struct plan *plan;
};

#define CALL_DEPTH_MAX 64

static _Thread_local int compile_depth;

/* The name and, if there are any, the types it is called with. */
static char *callee_key(const struct attr_value *func)
{
    char *key = mem_str(func->s.data);

    for (int i = 0; i < func->arg_count; i++) {
        const struct attr *a = &func->args[i];
        char *longer;

        if (a->kind != ATTR_TYPE || a->list)
            continue;
        longer = mem_printf("%s;%s=%d", key, a->name, a->value->type);
        mem_free(key);
        key = longer;
    }
    return key;
}

static enum mst_code compile_callee(struct plan *top, struct callee *c,
                                    const struct attr_value *func,
                                    struct status *st)
{
    const struct graph_function *f =
        graph_function_find(top->lib, func->s.data);
    struct graph body;
    enum mst_code rc;

    if (!f)
        return status_set(st, MST_NOT_FOUND,
                          "Function '%.200s' is not in the graph's library",
                          func->s.data);
    if (compile_depth >= CALL_DEPTH_MAX)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Functions call each other more than %d deep",
                          CALL_DEPTH_MAX);
    rc = graph_function_body(top->lib, f, func->args, func->arg_count, &body,
                             st);
    if (rc)
        return rc;
    compile_depth++;
    rc = plan_new_function(top, &body, f->in_count, f->out_count, &c->plan, st);
    compile_depth--;
    return rc;
}

static enum mst_code find(struct op_node *n, const struct attr_value *func,
                          struct callee **ret, struct status *st)
{
    struct plan *top = plan_outermost(n->env->plan);
    char *key = callee_key(func);
    struct callee *c = map_get_str(&top->callees, key);
    enum mst_code rc = MST_OK;

    if (!c) {
        c = MEM_NEW(struct callee);
        map_put_str(&top->callees, key, c);
        rc = compile_callee(top, c, func, st);
    }
    mem_free(key);
    if (!rc)
        *ret = c;
    return rc;
}

void call_free_callees(struct plan *p)
{
    struct map_slot *s;
    size_t at = 0;

    while ((s = map_next(&p->callees, &at))) {
        struct callee *c = s->value;

        plan_unref(c->plan);
        mem_free(c);
    }
}

/*
 * A call under way. What waits inside of it can be cancelled on its own: when
 * the function fails it ends at once, and its caller hears of it; when the
 * caller is cancelled, so is the call.
 */
struct running {
    atomic_int refs; /* the step's, and the caller's cancellation's */
    struct op_ctx *c;
    void (*done)(struct op_ctx *, void *, enum mst_code, struct op_value *,
                 int);
    void *arg;
    int ret_count;
    struct cancel cancel;
    struct cancel_item outer;
    bool linked;
};

static void running_unref(struct running *r)
{
    if (atomic_fetch_sub(&r->refs, 1) != 1)
        return;
    cancel_done(&r->cancel);
    mem_give(r);
}

static void caller_cancelled(struct cancel_item *item)
{
    struct running *r = CONTAINER(item, struct running, outer);

    atomic_fetch_add(&r->refs, 1);
    cancel_all(&r->cancel);
    running_unref(r);
}

static void call_failed(void *arg, const struct status *st)
{
    struct running *r = arg;

    (void)st;
    cancel_all(&r->cancel);
}

static void call_done(void *arg, struct step *s, const struct status *st)
{
    struct running *r = arg;

    if (r->linked)
        cancel_remove(r->c->step->cancel, &r->outer);
    if (st->code)
        status_copy(r->c->st, st);
    r->done(r->c, r->arg, st->code, step_results(s), r->ret_count);
    running_unref(r);
}

static void start(struct callee *f, struct op_ctx *c, struct op_value *args,
                  int arg_count,
                  void (*done)(struct op_ctx *c, void *arg, enum mst_code code,
                               struct op_value *results, int count),
                  void *arg)
{
    struct running *r = MEM_TAKE(struct running);
    struct step_opts opts = { .env = *c->step,
                              .args = args,
                              .arg_count = arg_count,
                              .failed = call_failed,
                              .done = call_done,
                              .arg = r };

    if (!f->plan || arg_count != f->plan->arg_count) {
        status_set(c->st, MST_INVALID_ARGUMENT,
                   "Function is called with %d arguments and takes %d",
                   arg_count, f->plan ? f->plan->arg_count : 0);
        done(c, arg, MST_INVALID_ARGUMENT, NULL, 0);
        mem_give(r);
        return;
    }
    atomic_init(&r->refs, 1);
    r->c = c;
    r->done = done;
    r->arg = arg;
    r->ret_count = f->plan->ret_count;
    cancel_init(&r->cancel);
    opts.env.cancel = &r->cancel;
    r->linked = c->step->cancel &&
                cancel_add(c->step->cancel, &r->outer, caller_cancelled);
    if (c->step->cancel && !r->linked)
        cancel_all(&r->cancel);
    step_run(step_new(f->plan, &opts));
}

/* A function's plan belongs to the outermost one. */
static void hold(struct callee *f)
{
    if (f->plan)
        plan_ref(plan_outermost(f->plan));
}

static void release(struct callee *f)
{
    if (f->plan)
        plan_unref(plan_outermost(f->plan));
}

const struct op_calls call_ops = { find, start, hold, release };

/* ---- an op that is a function's name ---- */

enum mst_code call_init_direct(struct op_node *n, const char *function,
                               struct status *st)
{
    struct attr_value func = { .s = { function, strlen(function) },
                               .args = n->attrs,
                               .arg_count = n->attr_count };

    return find(n, &func, (struct callee **)&n->state, st);
}

static void direct_done(struct op_ctx *c, void *arg, enum mst_code code,
                        struct op_value *results, int count)
{
    (void)arg;
    for (int i = 0; !code && i < count; i++) {
        tensor_move(&c->out[i].t, &results[i].t);
        c->out[i].ref = results[i].ref;
        results[i].ref = NULL;
    }
    op_finish(c, code);
}

static enum mst_code direct_run(struct op_ctx *c)
{
    start(c->node->state, c, c->in, c->node->in_count, direct_done, NULL);
    return OP_LATER;
}

const struct op_def call_def = {
    .name = "(function)",
    .flags = OP_STATEFUL | OP_ASYNC,
    .kernel = (const struct op_kernel[]){ { DT_ANY, direct_run }, { 0 } },
};
