/*
 * The ops that make lookup tables, in their four forms: the old one (a
 * reference to strings as handle), the new one (a resource), and the anonymous
 * one, which makes a new table each time it runs.
 *
 * A table without a shared name has its node's, whether or not the node says
 * use_node_name_sharing: it has to be the same one for all graphs of a session
 * that name the node, and nodes do not know their session.
 */
#include "kernel/element.h"
#include "kernel/table.h"
#include "kernel/types.h"

struct make_state {
    struct handle *handle; /* NULL: anonymous */
    enum table_form form;
    int key_type, value_type;
    struct shape value_shape;
    int64_t buckets; /* TABLE_DENSE */
    float load_max;
};

static enum mst_code check_dense(struct op_node *n, struct make_state *s,
                                 struct status *st)
{
    int64_t buckets = op_attr_int(n, "initial_num_buckets");

    s->buckets = buckets;
    s->load_max = op_attr_float(n, "max_load_factor");
    if (!(s->load_max > 0 && s->load_max < 1))
        return status_set(st, MST_INVALID_ARGUMENT,
                          "max_load_factor must be between 0 and 1, got: %g",
                          (double)s->load_max);
    if (buckets < 4 || (buckets & (buckets - 1)))
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Number of buckets must be at least 4 and a power of "
                          "2, got: %lld",
                          (long long)buckets);
    return MST_OK;
}

static enum mst_code check_shape(const struct make_state *s, struct status *st)
{
    const struct shape *v = &s->value_shape;
    char text[SHAPE_TEXT_MAX];
    int64_t count;

    if (!element_shape_known(v))
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Shape %s is not fully defined",
                          shape_text(v->ndim, v->dims, text));
    if (s->form == TABLE_TENSORS && v->ndim != 1)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Default value must be a vector, got shape %s",
                          shape_text(v->ndim, v->dims, text));
    if (!shape_count(v->ndim, v->dims, dtype_size((enum dtype)s->value_type),
                     &count))
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Values of shape %s are too large",
                          shape_text(v->ndim, v->dims, text));
    return MST_OK;
}

static enum mst_code make_init(struct op_node *n, enum table_form form,
                               struct status *st)
{
    struct make_state *s = ARENA_NEW(n->arena, struct make_state);
    enum mst_code rc;

    s->form = form;
    s->key_type = op_attr_type(n, "key_dtype");
    s->value_type = op_attr_type(n, "value_dtype");
    if (form >= TABLE_TENSORS)
        s->value_shape = *op_attr_shape(n, "value_shape");
    rc = check_shape(s, st);
    if (!rc && form == TABLE_DENSE)
        rc = check_dense(n, s, st);
    if (rc)
        return rc;
    if (op_attr(n, "shared_name"))
        s->handle = op_node_handle(n, &table_kind);
    n->state = s;
    return MST_OK;
}

static void make_done(struct op_node *n)
{
    struct make_state *s = n->state;

    handle_unref(s->handle);
}

/* The two keys that a dense table does not take. */
static enum mst_code check_keys(const struct op_ctx *c, struct shape *shape,
                                struct status *st)
{
    const struct tensor *empty = op_in(c, 0);
    const struct tensor *deleted = c->node->in_count > 1 ? op_in(c, 1) : NULL;
    char a[SHAPE_TEXT_MAX], b[SHAPE_TEXT_MAX];
    bool same;

    *shape = element_shape_of(empty);
    if (empty->dtype == DT_STRING && empty->count != 1)
        return status_set(st, MST_UNIMPLEMENTED,
                          "Tables with vectors of strings as keys");
    if (!deleted)
        return MST_OK;
    if (!tensor_same_shape(empty, deleted))
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Empty and deleted keys must have same shape, got "
                          "shapes: %s and %s",
                          tensor_shape_text(empty, a),
                          tensor_shape_text(deleted, b));
    if (empty->dtype == DT_STRING)
        same =
            tensor_str(empty, 0)->len == tensor_str(deleted, 0)->len &&
            (!tensor_str(empty, 0)->len ||
             !memcmp(tensor_str(empty, 0)->data, tensor_str(deleted, 0)->data,
                     tensor_str(empty, 0)->len));
    else
        same = !empty->count ||
               !memcmp(empty->data, deleted->data, tensor_bytes(empty));
    return same ? status_set(st, MST_INVALID_ARGUMENT,
                             "Empty and deleted keys cannot be equal")
                : MST_OK;
}

static struct object *make_table(void *arg, struct status *st)
{
    struct op_ctx *c = arg;
    const struct make_state *s = c->node->state;
    struct shape key_shape = { 0 };
    struct table *t;

    if (s->form == TABLE_DENSE && check_keys(c, &key_shape, st))
        return NULL;
    t = table_new(s->handle, s->form, s->key_type, s->value_type, &key_shape,
                  &s->value_shape);
    if (s->form == TABLE_DENSE) {
        t->buckets = s->buckets;
        t->load_max = s->load_max;
        t->empty_key = tensor_ref(op_in(c, 0));
        if (c->node->in_count > 1)
            t->deleted_key = tensor_ref(op_in(c, 1));
    }
    return &t->o;
}

static enum mst_code matches(struct op_ctx *c, const struct table *t)
{
    const struct make_state *s = c->node->state;

    if (t->key_type == s->key_type && t->value_type == s->value_type)
        return MST_OK;
    return op_fail(c, MST_INVALID_ARGUMENT,
                   "Conflicting key/value dtypes %s->%s with %s-%s for table "
                   "%s",
                   dtype_name(s->key_type), dtype_name(s->value_type),
                   dtype_name(t->key_type), dtype_name(t->value_type), t->name);
}

static enum mst_code make_run(struct op_ctx *c)
{
    const struct make_state *s = c->node->state;
    struct object *o = handle_get_or_make(s->handle, make_table, c, c->st);
    enum mst_code rc;

    if (!o)
        return c->st->code;
    rc = matches(c, CONTAINER(o, struct table, o));
    object_unref(o);
    return rc ? rc : op_out_handle(c, 0, s->handle);
}

static enum mst_code make_anonymous_run(struct op_ctx *c)
{
    struct object *o = make_table(c, c->st);
    struct handle *h;
    enum mst_code rc;

    if (!o)
        return c->st->code;
    h = handle_anonymous(&table_kind, o, "");
    rc = op_out_handle(c, 0, h);
    handle_unref(h);
    return rc;
}

#define TABLE_DEF(stem, text, in_, out_, attr_, init_, run)                    \
    const struct op_def def_##stem = {                                         \
        .name = text,                                                          \
        .in = in_,                                                             \
        .out = "table_handle: " out_,                                          \
        .attr = attr_,                                                         \
        .flags = OP_STATEFUL,                                                  \
        .key = "key_dtype",                                                    \
        .init = init_,                                                         \
        .done = make_done,                                                     \
        .kernel = (const struct op_kernel[]){ { DT_INT32, run },               \
                                              { DT_INT64, run },               \
                                              { DT_STRING, run },              \
                                              { 0 } },                         \
    };

#define NAME_ATTRS                                                             \
    "container: string = ''; shared_name: string = ''; "                       \
    "use_node_name_sharing: bool = false; "
#define TYPE_ATTRS  "key_dtype: type; value_dtype: type"
#define SHAPE_ATTRS TYPE_ATTRS "; value_shape: shape = []"
#define DENSE_ATTRS                                                            \
    SHAPE_ATTRS                                                                \
    "; initial_num_buckets: int = 131072; max_load_factor: float = 0.8"

/* The three handle forms of a table. */
#define TABLE(stem, text, form, in_old, in_new, attrs)                         \
    static enum mst_code stem##_init(struct op_node *n, struct status *st)     \
    {                                                                          \
        return make_init(n, form, st);                                         \
    }                                                                          \
    TABLE_DEF(stem, text, in_old, "Ref(string)", NAME_ATTRS attrs,             \
              stem##_init, make_run)                                           \
    TABLE_DEF(stem##_v2, text "V2", in_new, "resource", NAME_ATTRS attrs,      \
              stem##_init, make_run)                                           \
    TABLE_DEF(anonymous_##stem, "Anonymous" text, in_new, "resource", attrs,   \
              stem##_init, make_anonymous_run)

TABLE(hash_table, "HashTable", TABLE_STATIC, NULL, NULL, TYPE_ATTRS)
TABLE(mutable_hash_table, "MutableHashTable", TABLE_MUTABLE, NULL, NULL,
      TYPE_ATTRS)
TABLE(mutable_hash_table_of_tensors, "MutableHashTableOfTensors", TABLE_TENSORS,
      NULL, NULL, SHAPE_ATTRS)
TABLE(mutable_dense_hash_table, "MutableDenseHashTable", TABLE_DENSE,
      "empty_key: key_dtype", "empty_key: key_dtype, deleted_key: key_dtype",
      DENSE_ATTRS)
