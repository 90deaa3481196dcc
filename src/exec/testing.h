/*
 * Plans for tests: a graph of graph/testing.h compiled and run with arguments
 * (nodes of op _Arg) to results (_Retval), in the order of their numbers.
 */
#ifndef EXEC_TESTING_H
#define EXEC_TESTING_H

#include "exec/step.h"
#include "graph/testing.h"

#define PLAN_TEST_VALUES 4

struct plan_test {
    struct plan *plan;
    struct op_env env;
    struct cancel cancel;
    struct tensor args[PLAN_TEST_VALUES], rets[PLAN_TEST_VALUES];
    struct status st;
    int done, ran; /* nodes that ran */
};

static inline void plan_test_open(struct plan_test *t, struct graph_text *g,
                                  bool optimised)
{
    struct graph_library *lib;

    memset(t, 0, sizeof(*t));
    cancel_init(&t->cancel);
    t->env.resources = resources_new("localhost");
    t->env.device = g->device;
    lib = graph_text_library(g, &t->st);
    CHECK(lib && !plan_new(lib, &t->env, optimised, &t->plan, &t->st));
}

static inline void plan_test_forget(struct tensor *list)
{
    for (int i = 0; i < PLAN_TEST_VALUES; i++)
        tensor_unref(&list[i]);
}

static inline void plan_test_close(struct plan_test *t)
{
    plan_unref(t->plan);
    plan_test_forget(t->args);
    plan_test_forget(t->rets);
    resources_unref(t->env.resources);
    cancel_done(&t->cancel);
}

static inline void plan_test_done(void *arg, struct step *s,
                                  const struct status *st)
{
    struct plan_test *t = arg;

    status_copy(&t->st, st);
    for (int i = 0; i < t->plan->ret_count && !st->code; i++)
        tensor_move(&t->rets[i], &step_results(s)[i].t);
    (void)step_stats(s, &t->ran);
    t->done++;
}

/* Once, on this thread: graphs of tests wait for nothing. */
static inline enum mst_code plan_test_run(struct plan_test *t)
{
    struct op_value args[PLAN_TEST_VALUES] = { 0 };
    struct step_opts opts = { .env = { .id = 1, .cancel = &t->cancel },
                              .record = true,
                              .args = args,
                              .arg_count = t->plan->arg_count,
                              .done = plan_test_done,
                              .arg = t };

    for (int i = 0; i < t->plan->arg_count; i++)
        args[i].t = tensor_ref(&t->args[i]);
    plan_test_forget(t->rets);
    t->done = 0;
    step_run(step_new(t->plan, &opts));
    CHECK(t->done == 1);
    return t->st.code;
}

/* A float argument of that shape; element i is value + i. */
static inline void plan_test_arg(struct plan_test *t, int at, int ndim,
                                 const int64_t *dims, float value)
{
    struct status st = STATUS_INIT;

    tensor_unref(&t->args[at]);
    CHECK(!tensor_new(&t->args[at], DT_FLOAT, ndim, dims, &st));
    for (int64_t i = 0; i < t->args[at].count; i++)
        TENSOR_DATA(&t->args[at], float)[i] = value + (float)i;
}

static inline float plan_test_float(const struct plan_test *t, int at)
{
    CHECK(t->rets[at].dtype == DT_FLOAT);
    return *TENSOR_DATA(&t->rets[at], float);
}

static inline struct plan_node *plan_test_node(const struct plan_test *t,
                                               const char *name)
{
    for (int i = 0; i < t->plan->count; i++)
        if (!strcmp(t->plan->nodes[i].op.name, name))
            return &t->plan->nodes[i];
    return NULL;
}

static inline bool plan_test_gone(const struct plan_test *t, const char *name)
{
    return plan_test_node(t, name)->gone;
}

/* ---- nodes ---- */

static inline void plan_test_put(struct graph_text *g, const char *name,
                                 const char *op, const char *inputs)
{
    graph_text_node(g, name, op, inputs);
    graph_text_type(g, "T", DT_FLOAT);
}

static inline void plan_test_put_arg(struct graph_text *g, const char *name,
                                     int index)
{
    plan_test_put(g, name, "_Arg", NULL);
    graph_text_int(g, "index", index);
}

static inline void plan_test_put_ret(struct graph_text *g, const char *name,
                                     const char *input, int index)
{
    plan_test_put(g, name, "_Retval", input);
    graph_text_int(g, "index", index);
}

static inline void plan_test_put_const(struct graph_text *g, const char *name,
                                       float value)
{
    graph_text_const(g, name, DT_FLOAT, &value);
}

#endif
