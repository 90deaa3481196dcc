/*
 * Attributes out of the wire: AttrValue messages become struct attr.
 *
 * In a function's body an attribute may be a placeholder, "$T"; it takes the
 * value that the call gives for that name.
 */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "graph/graph.h"
#include "tensor/proto.h"

#define FUNC_DEPTH_MAX 16

struct making {
    struct graph_library *lib;
    const char *node;
    struct status *st;
    int depth;
};

static enum mst_code fail(struct making *m, const char *name)
{
    char why[256];

    snprintf(why, sizeof(why), "%s", m->st->msg);
    return status_set(m->st, m->st->code ? m->st->code : MST_INVALID_ARGUMENT,
                      "Attr '%.100s' of node '%.200s': %s", name, m->node, why);
}

static void set_text(struct making *m, struct attr_value *v, const void *data,
                     size_t len)
{
    v->s.data = arena_strn(&m->lib->arena, data, len);
    v->s.len = len;
}

static enum mst_code set_shape(struct making *m, struct attr_value *v,
                               const Tensorflow__TensorShapeProto *p)
{
    struct shape *s = ARENA_NEW(&m->lib->arena, struct shape);

    v->shape = s;
    if (p->unknown_rank) {
        s->ndim = -1;
        return MST_OK;
    }
    if (p->n_dim > TENSOR_RANK_MAX)
        return status_set(m->st, MST_UNIMPLEMENTED,
                          "shapes of more than %d dimensions are not supported",
                          TENSOR_RANK_MAX);
    s->ndim = (int)p->n_dim;
    for (int i = 0; i < s->ndim; i++) {
        s->dims[i] = p->dim[i]->size;
        if (s->dims[i] < -1)
            return status_set(m->st, MST_INVALID_ARGUMENT,
                              "dimension %d is %lld, which must be >= -1", i,
                              (long long)s->dims[i]);
    }
    return MST_OK;
}

static enum mst_code set_tensor(struct making *m, struct attr_value *v,
                                const ProtobufCBinaryData *p)
{
    struct graph_library *lib = m->lib;
    struct status why = STATUS_INIT;
    enum mst_code rc;

    v->tensor = ARENA_NEW(&lib->arena, struct tensor);
    rc = tensor_from_proto(v->tensor, p->data, p->len, NULL, &why);
    if (rc)
        return status_set(m->st, MST_INVALID_ARGUMENT,
                          "Cannot parse tensor from proto: %.1000s (node "
                          "'%.200s')",
                          why.msg, m->node);
    *MEM_PUSH(lib->tensors, lib->tensor_count, lib->tensor_room) = v->tensor;
    return MST_OK;
}

static enum mst_code set_func(struct making *m, struct attr_value *v,
                              const Tensorflow__NameAttrList *p)
{
    enum mst_code rc;

    set_text(m, v, p->name, strlen(p->name));
    if (++m->depth > FUNC_DEPTH_MAX)
        return status_set(m->st, MST_INVALID_ARGUMENT,
                          "functions are nested too deeply");
    rc = graph_attrs(m->lib, m->node, p->attr, p->n_attr, NULL, 0, &v->args,
                     &v->arg_count, m->st);
    m->depth--;
    return rc;
}

/* The elements of one kind of a list. */
#define LIST(field, how_kind, ...)                                             \
    if (l->n_##field) {                                                        \
        a->kind = how_kind;                                                    \
        a->count = (int)l->n_##field;                                          \
        v = ARENA_ARRAY(&m->lib->arena, struct attr_value, a->count);          \
        a->value = v;                                                          \
        for (int i = 0; i < a->count && !rc; i++) {                            \
            __VA_ARGS__;                                                       \
        }                                                                      \
        return rc;                                                             \
    }

static enum mst_code set_list(struct making *m, struct attr *a,
                              const Tensorflow__AttrValue__ListValue *l)
{
    enum mst_code rc = MST_OK;
    struct attr_value *v;

    a->list = true;
    a->kind = ATTR_NONE;
    LIST(s, ATTR_STRING, set_text(m, &v[i], l->s[i].data, l->s[i].len))
    LIST(i, ATTR_INT, v[i].i = l->i[i])
    LIST(f, ATTR_FLOAT, v[i].f = l->f[i])
    LIST(b, ATTR_BOOL, v[i].b = l->b[i])
    LIST(type, ATTR_TYPE, v[i].type = l->type[i])
    LIST(shape, ATTR_SHAPE, rc = set_shape(m, &v[i], l->shape[i]))
    LIST(tensor, ATTR_TENSOR, rc = set_tensor(m, &v[i], &l->tensor[i]))
    LIST(func, ATTR_FUNC, rc = set_func(m, &v[i], l->func[i]))
    return rc;
}

static enum mst_code set_attr(struct making *m, struct attr *a,
                              const Tensorflow__AttrValue *p)
{
    struct attr_value *v = ARENA_NEW(&m->lib->arena, struct attr_value);

    a->value = v;
    a->count = 1;
    switch (p ? p->value_case : TENSORFLOW__ATTR_VALUE__VALUE__NOT_SET) {
    case TENSORFLOW__ATTR_VALUE__VALUE_LIST:
        a->count = 0;
        return set_list(m, a, p->list);
    case TENSORFLOW__ATTR_VALUE__VALUE_S:
        a->kind = ATTR_STRING;
        set_text(m, v, p->s.data, p->s.len);
        return MST_OK;
    case TENSORFLOW__ATTR_VALUE__VALUE_I:
        a->kind = ATTR_INT;
        v->i = p->i;
        return MST_OK;
    case TENSORFLOW__ATTR_VALUE__VALUE_F:
        a->kind = ATTR_FLOAT;
        v->f = p->f;
        return MST_OK;
    case TENSORFLOW__ATTR_VALUE__VALUE_B:
        a->kind = ATTR_BOOL;
        v->b = p->b;
        return MST_OK;
    case TENSORFLOW__ATTR_VALUE__VALUE_TYPE:
        a->kind = ATTR_TYPE;
        v->type = p->type;
        return MST_OK;
    case TENSORFLOW__ATTR_VALUE__VALUE_SHAPE:
        a->kind = ATTR_SHAPE;
        return set_shape(m, v, p->shape);
    case TENSORFLOW__ATTR_VALUE__VALUE_TENSOR:
        a->kind = ATTR_TENSOR;
        return set_tensor(m, v, &p->tensor);
    case TENSORFLOW__ATTR_VALUE__VALUE_FUNC:
        a->kind = ATTR_FUNC;
        return set_func(m, v, p->func);
    case TENSORFLOW__ATTR_VALUE__VALUE_PLACEHOLDER:
        a->kind = ATTR_PLACEHOLDER;
        set_text(m, v, p->placeholder, strlen(p->placeholder));
        return MST_OK;
    default:
        a->kind = ATTR_NONE;
        return MST_OK;
    }
}

/* Notes, which other programs skip, begin with '_'. One is of our own master.
 */
static bool wanted(const char *name)
{
    return name[0] != '_' || !strcmp(name, "_late");
}

enum mst_code graph_attrs(struct graph_library *lib, const char *node_name,
                          Tensorflow__AttrEntry *const *entries, size_t count,
                          const struct attr *args, int arg_count,
                          const struct attr **ret, int *ret_count,
                          struct status *st)
{
    struct attr *attrs = ARENA_ARRAY(&lib->arena, struct attr, count);
    struct making m = { .lib = lib, .node = node_name, .st = st };
    int n = 0;

    for (size_t i = 0; i < count; i++) {
        struct attr *a = &attrs[n];
        const struct attr *given;

        if (!wanted(entries[i]->key))
            continue;
        status_clear(st);
        if (set_attr(&m, a, entries[i]->value)) /* tensors say it all */
            return a->kind == ATTR_TENSOR ? st->code
                                          : fail(&m, entries[i]->key);
        a->name = arena_str(&lib->arena, entries[i]->key);
        if (a->kind == ATTR_PLACEHOLDER) {
            given = attr_find(args, arg_count, a->value->s.data);
            if (given) {
                const char *name = a->name;

                *a = *given;
                a->name = name;
            }
        }
        n++;
    }
    *ret = attrs;
    *ret_count = n;
    return MST_OK;
}
