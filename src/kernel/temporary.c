/*
 * Variables of one step: TemporaryVariable makes one, references to it are
 * passed on, DestroyTemporaryVariable takes the value.
 *
 * The reference is what keeps it; the name only serves to notice mistakes: two
 * of one name, or the end of one that is not there. The names of all steps lie
 * in one list, which is as long as there are such variables at this moment.
 */
#include "base/mem.h"
#include "kernel/types.h"

struct temporary {
    struct variable v; /* first: ends with it */
    const char *name;  /* its node's */
    const struct op_step *step;
    uint64_t frame_id;
    int64_t iter;
    /* Under lock. */
    bool listed;
    struct temporary *prev, *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct temporary *first; /* under lock */

static void take_out(struct temporary *t)
{
    if (!t->listed)
        return;
    *(t->prev ? &t->prev->next : &first) = t->next;
    if (t->next)
        t->next->prev = t->prev;
    t->listed = false;
}

static struct temporary *find(const struct op_ctx *c, const char *name)
{
    struct temporary *t = first;

    while (t && (t->step != c->step || t->frame_id != c->frame_id ||
                 t->iter != c->iter || strcmp(t->name, name)))
        t = t->next;
    return t;
}

static void temporary_free(struct object *o)
{
    struct temporary *t = CONTAINER(o, struct temporary, v.o);

    pthread_mutex_lock(&lock);
    take_out(t);
    pthread_mutex_unlock(&lock);
    variable_kind.free(o);
}

static const struct object_kind temporary_kind = { "temporary variable",
                                                   temporary_free };

/* ---- making ---- */

struct make_state {
    const struct shape *shape;
    const char *name;
};

static enum mst_code make_init(struct op_node *n, struct status *st)
{
    struct make_state *s = ARENA_NEW(n->arena, struct make_state);
    struct attr_text name = op_attr_str(n, "var_name");

    s->shape = op_attr_shape(n, "shape");
    s->name = name.len ? name.data : n->name;
    n->state = s;
    if (s->shape->ndim < 0)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "The shape of {{node %s}} is not known", n->name);
    return MST_OK;
}

static bool put_in(struct op_ctx *c, struct temporary *t)
{
    bool free;

    pthread_mutex_lock(&lock);
    free = !find(c, t->name);
    if (free) {
        t->next = first;
        if (first)
            first->prev = t;
        first = t;
        t->listed = true;
    }
    pthread_mutex_unlock(&lock);
    return free;
}

static enum mst_code make_run(struct op_ctx *c)
{
    const struct make_state *s = c->node->state;
    struct temporary *t = MEM_NEW(struct temporary);
    int dtype = dtype_base(c->node->out_types[0]);
    enum mst_code rc;

    variable_begin(&t->v, &temporary_kind, c->node->name, dtype, true);
    t->name = s->name;
    t->step = c->step;
    t->frame_id = c->frame_id;
    t->iter = c->iter;
    rc = tensor_new(&t->v.t, (enum dtype)dtype, s->shape->ndim, s->shape->dims,
                    c->st);
    if (!rc && !put_in(c, t))
        rc = op_fail(c, MST_ALREADY_EXISTS,
                     "Resource __per_step_%lld/%s/TmpVar already exists",
                     (long long)c->step->id, s->name);
    if (rc)
        variable_unref(&t->v);
    else
        c->out[0].ref = &t->v;
    return rc;
}

const struct op_def def_temporary_variable = {
    .name = "TemporaryVariable",
    .out = "ref: Ref(dtype)",
    .attr = "shape: shape; dtype: type; var_name: string = ''",
    .flags = OP_STATEFUL,
    .key = "dtype",
    .init = make_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, make_run }, { 0 } },
};

/* ---- its end ---- */

static enum mst_code destroy_init(struct op_node *n, struct status *st)
{
    (void)st;
    n->state = (void *)op_attr_str(n, "var_name").data;
    return MST_OK;
}

static enum mst_code destroy_run(struct op_ctx *c)
{
    const char *name = c->node->state;
    struct temporary *t;

    pthread_mutex_lock(&lock);
    t = find(c, name);
    if (t)
        take_out(t);
    pthread_mutex_unlock(&lock);
    if (!t)
        return op_fail(c, MST_NOT_FOUND,
                       "Resource __per_step_%lld/%s/TmpVar does not exist.",
                       (long long)c->step->id, name);
    return variable_read(c->in[0].ref, op_out(c, 0), c->st);
}

const struct op_def def_destroy_temporary_variable = {
    .name = "DestroyTemporaryVariable",
    .in = "ref: Ref(T)",
    .out = "value: T",
    .attr = "T: type; var_name: string",
    .init = destroy_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, destroy_run }, { 0 } },
};
