/*
 * The table of ops, and what kernels use all the time.
 */
#include "op/op.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The shared pool is worth waking from about so much work on; where its threads
 * come at once. And how much of it a thread takes at a time. */
#define PARALLEL_NS        200000.0
#define PARALLEL_NS_PROMPT 100000.0
#define PIECE_NS           25000.0

/* ---- outputs ---- */

static enum dtype out_type(const struct op_ctx *c, int i)
{
    return dtype_base(c->node->out_types[i]);
}

enum mst_code op_out_new(struct op_ctx *c, int i, int ndim, const int64_t *dims)
{
    return tensor_new(op_out(c, i), out_type(c, i), ndim, dims, c->st);
}

enum mst_code op_out_like(struct op_ctx *c, int i, const struct tensor *like)
{
    return op_out_new(c, i, like->ndim, like->dims);
}

enum mst_code op_out_forward(struct op_ctx *c, int i, int in)
{
    struct tensor *t = &c->in[in].t;

    if (tensor_unique(t) && dtype_is_plain((enum dtype)t->dtype) &&
        dtype_size((enum dtype)t->dtype) == dtype_size(out_type(c, i))) {
        tensor_assign(op_out(c, i), t);
        op_out(c, i)->dtype = (uint8_t)out_type(c, i);
        t->buf = NULL; /* the output has the reference now */
        return MST_OK;
    }
    return op_out_like(c, i, t);
}

void op_out_same(struct op_ctx *c, int i, int in)
{
    struct tensor *t = &c->in[in].t;

    tensor_assign(op_out(c, i), t);
    t->buf = NULL;
}

void op_out_move(struct op_ctx *c, int i, int in)
{
    tensor_move(&c->out[i].t, &c->in[in].t);
    c->out[i].ref = c->in[in].ref;
    c->in[in].ref = NULL;
}

enum mst_code op_fail(struct op_ctx *c, enum mst_code code, const char *fmt,
                      ...)
{
    char text[1536];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    return status_set(c->st, code, "%s", text);
}

int op_threads(const struct op_ctx *c, double work_ns)
{
    struct pool *pool = c->node->env ? c->node->env->pool : NULL;

    if (!pool || work_ns < PARALLEL_NS_PROMPT)
        return 0;
    return work_ns >= PARALLEL_NS || pool_prompt(pool) ? pool_threads(pool) : 0;
}

void op_for(const struct op_ctx *c, int64_t n, double cost_ns,
            void (*fn)(void *arg, int64_t begin, int64_t end), void *arg)
{
    int64_t grain;

    if (n <= 0)
        return;
    if (!op_threads(c, (double)n * cost_ns)) {
        fn(arg, 0, n);
        return;
    }
    grain = (int64_t)(PIECE_NS / cost_ns);
    pool_for(c->node->env->pool, n, MAX(grain, 1), fn, arg);
}

/* ---- attributes ---- */

const struct attr *op_attr(const struct op_node *n, const char *name)
{
    return attr_find(n->attrs, n->attr_count, name);
}

static const struct attr_value *one(const struct op_node *n, const char *name,
                                    enum attr_kind kind)
{
    const struct attr *a = op_attr(n, name);

    CHECK(a && a->kind == kind && !a->list);
    return a->value;
}

int64_t op_attr_int(const struct op_node *n, const char *name)
{
    return one(n, name, ATTR_INT)->i;
}

float op_attr_float(const struct op_node *n, const char *name)
{
    return one(n, name, ATTR_FLOAT)->f;
}

bool op_attr_bool(const struct op_node *n, const char *name)
{
    return one(n, name, ATTR_BOOL)->b;
}

int op_attr_type(const struct op_node *n, const char *name)
{
    return one(n, name, ATTR_TYPE)->type;
}

struct attr_text op_attr_str(const struct op_node *n, const char *name)
{
    return one(n, name, ATTR_STRING)->s;
}

const struct shape *op_attr_shape(const struct op_node *n, const char *name)
{
    return one(n, name, ATTR_SHAPE)->shape;
}

const struct tensor *op_attr_tensor(const struct op_node *n, const char *name)
{
    return one(n, name, ATTR_TENSOR)->tensor;
}
