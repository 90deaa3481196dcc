#include "op/harness.h"

#include <string.h>

#include "op/spec.h"

void harness_init(struct harness *h, const char *op)
{
    memset(h, 0, sizeof(*h));
    arena_init(&h->arena);
    cancel_init(&h->cancel);
    pthread_mutex_init(&h->lock, NULL);
    pthread_cond_init(&h->wake, NULL);
    h->env.resources = resources_new("localhost");
    h->env.device = "/job:localhost/replica:0/task:0/device:CPU:0";
    h->node.name = "node";
    h->node.def = op_find(op);
    CHECK(h->node.def);
    h->node.env = &h->env;
    h->node.arena = &h->arena;
    h->node.attrs = h->attrs;
    h->step.id = 1;
    h->step.cancel = &h->cancel;
}

static void release(struct op_value *values, int count)
{
    for (int i = 0; i < count; i++) {
        tensor_unref(&values[i].t);
        variable_unref(values[i].ref);
        values[i].ref = NULL;
    }
}

void harness_done(struct harness *h)
{
    release(h->in, HARNESS_ARGS_MAX);
    release(h->out, HARNESS_ARGS_MAX);
    if (h->ready && h->node.def->done)
        h->node.def->done(&h->node);
    for (size_t i = 0; i < COUNT(h->attrs); i++)
        if (h->attrs[i].kind == ATTR_TENSOR)
            tensor_unref(h->attrs[i].value->tensor);
    resources_unref(h->env.resources);
    cancel_done(&h->cancel);
    pthread_mutex_destroy(&h->lock);
    pthread_cond_destroy(&h->wake);
    arena_done(&h->arena);
}

void harness_share(struct harness *h, struct resources *r)
{
    resources_unref(h->env.resources);
    h->env.resources = resources_ref(r);
}

void harness_name(struct harness *h, const char *node_name)
{
    h->node.name = node_name;
}

static struct attr_value *add(struct harness *h, const char *name,
                              enum attr_kind kind, bool list, int count)
{
    struct attr_value *v = ARENA_ARRAY(&h->arena, struct attr_value, count);

    CHECK(h->node.attr_count < (int)COUNT(h->attrs));
    h->attrs[h->node.attr_count++] = (struct attr){
        .name = name, .kind = kind, .list = list, .count = count, .value = v
    };
    return v;
}

void harness_int(struct harness *h, const char *attr, int64_t value)
{
    add(h, attr, ATTR_INT, false, 1)->i = value;
}

void harness_float(struct harness *h, const char *attr, float value)
{
    add(h, attr, ATTR_FLOAT, false, 1)->f = value;
}

void harness_bool(struct harness *h, const char *attr, bool value)
{
    add(h, attr, ATTR_BOOL, false, 1)->b = value;
}

void harness_str(struct harness *h, const char *attr, const char *value)
{
    add(h, attr, ATTR_STRING, false, 1)->s =
        (struct attr_text){ value, strlen(value) };
}

void harness_type(struct harness *h, const char *attr, int dt)
{
    add(h, attr, ATTR_TYPE, false, 1)->type = dt;
}

void harness_types(struct harness *h, const char *attr, int count,
                   const int *dts)
{
    struct attr_value *v = add(h, attr, ATTR_TYPE, true, count);

    for (int i = 0; i < count; i++)
        v[i].type = dts[i];
}

void harness_ints(struct harness *h, const char *attr, int count,
                  const int64_t *values)
{
    struct attr_value *v = add(h, attr, ATTR_INT, true, count);

    for (int i = 0; i < count; i++)
        v[i].i = values[i];
}

void harness_shape(struct harness *h, const char *attr, int ndim,
                   const int64_t *dims)
{
    struct shape *s = ARENA_NEW(&h->arena, struct shape);

    s->ndim = ndim;
    for (int i = 0; i < ndim; i++)
        s->dims[i] = dims[i];
    add(h, attr, ATTR_SHAPE, false, 1)->shape = s;
}

void harness_shapes(struct harness *h, const char *attr, int count,
                    const struct shape *shapes)
{
    struct attr_value *v = add(h, attr, ATTR_SHAPE, true, count);

    for (int i = 0; i < count; i++)
        v[i].shape = arena_copy(&h->arena, &shapes[i], sizeof(shapes[i]));
}

static void add_funcs(struct harness *h, const char *attr, bool list, int count,
                      const char *const *names)
{
    struct attr_value *v = add(h, attr, ATTR_FUNC, list, count);

    for (int i = 0; i < count; i++)
        v[i].s = (struct attr_text){ names[i], strlen(names[i]) };
}

void harness_func(struct harness *h, const char *attr, const char *name)
{
    add_funcs(h, attr, false, 1, &name);
}

void harness_funcs(struct harness *h, const char *attr, int count,
                   const char *const *names)
{
    add_funcs(h, attr, true, count, names);
}

void harness_tensor(struct harness *h, const char *attr, struct tensor t)
{
    add(h, attr, ATTR_TENSOR, false, 1)->tensor =
        arena_copy(&h->arena, &t, sizeof(t));
}

void harness_in(struct harness *h, struct tensor t)
{
    CHECK(h->in_count < HARNESS_ARGS_MAX);
    h->in[h->in_count++].t = t;
}

void harness_in_ref(struct harness *h, struct variable *v)
{
    CHECK(h->in_count < HARNESS_ARGS_MAX);
    h->in[h->in_count++].ref = variable_ref(v);
}

static struct tensor make(enum dtype dt, int ndim, const int64_t *dims)
{
    struct status st = STATUS_INIT;
    struct tensor t = { 0 };

    CHECK(!tensor_new(&t, dt, ndim, dims, &st));
    return t;
}

static void fill(struct tensor *t, const void *values)
{
    if (t->count) /* else there may be no values */
        memcpy(t->data, values, tensor_bytes(t));
}

struct tensor harness_floats(int ndim, const int64_t *dims, const float *values)
{
    struct tensor t = make(DT_FLOAT, ndim, dims);

    fill(&t, values);
    return t;
}

struct tensor harness_int32s(int ndim, const int64_t *dims,
                             const int32_t *values)
{
    struct tensor t = make(DT_INT32, ndim, dims);

    fill(&t, values);
    return t;
}

struct tensor harness_int64s(int ndim, const int64_t *dims,
                             const int64_t *values)
{
    struct tensor t = make(DT_INT64, ndim, dims);

    fill(&t, values);
    return t;
}

struct tensor harness_strs(int ndim, const int64_t *dims,
                           const char *const *values)
{
    struct tensor t = make(DT_STRING, ndim, dims);

    for (int64_t i = 0; i < t.count; i++)
        str_set(tensor_str(&t, i), values[i], strlen(values[i]));
    return t;
}

static void finish(struct op_ctx *c, enum mst_code code)
{
    struct harness *h = CONTAINER(c, struct harness, ctx);

    pthread_mutex_lock(&h->lock);
    h->finished = true;
    h->code = code;
    pthread_cond_signal(&h->wake);
    pthread_mutex_unlock(&h->lock);
}

enum mst_code harness_run(struct harness *h)
{
    enum mst_code rc;

    release(h->out, HARNESS_ARGS_MAX);
    status_clear(&h->st);
    if (!h->ready) {
        rc = spec_complete(&h->node, &h->st);
        if (!rc && h->node.def->init)
            rc = h->node.def->init(&h->node, &h->st);
        if (rc)
            return rc;
        h->ready = true;
    }
    CHECK(h->node.in_count == h->in_count);
    h->finished = false;
    h->ctx = (struct op_ctx){ .node = &h->node,
                              .step = &h->step,
                              .in = h->in,
                              .out = h->out,
                              .st = &h->st,
                              .finish = finish,
                              .scratch = h->scratch };
    rc = h->node.run(&h->ctx);
    if (rc != OP_LATER) {
        release(h->in, h->in_count);
        h->in_count = 0;
    }
    return rc;
}

enum mst_code harness_wait(struct harness *h)
{
    pthread_mutex_lock(&h->lock);
    while (!h->finished)
        pthread_cond_wait(&h->wake, &h->lock);
    pthread_mutex_unlock(&h->lock);
    release(h->in, h->in_count);
    h->in_count = 0;
    return h->code;
}
