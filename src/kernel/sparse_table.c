/*
 * Sparse tensors kept in a table under numbers, which can be batched and
 * queued like any others. Whoever takes one takes it out.
 */
#include "base/map.h"
#include "base/mem.h"
#include "kernel/sparse_batch.h"
#include "kernel/types.h"

struct sparse_table {
    struct object o;
    char *name;
    pthread_mutex_t lock;
    struct map parts;  /* under lock: struct sparse_part by number */
    uint64_t next_key; /* under lock */
};

static void part_free(struct sparse_part *p)
{
    if (p)
        sparse_part_done(p);
    mem_free(p);
}

static void sparse_table_free(struct object *o)
{
    struct sparse_table *t = CONTAINER(o, struct sparse_table, o);
    struct map_slot *s;
    size_t at = 0;

    while ((s = map_next(&t->parts, &at)))
        part_free(s->value);
    map_done(&t->parts);
    pthread_mutex_destroy(&t->lock);
    mem_free(t->name);
    mem_free(t);
}

static const struct object_kind sparse_table_kind = { "SparseTensorsMap",
                                                      sparse_table_free };

static enum mst_code table_init(struct op_node *n, struct status *st)
{
    (void)st;
    n->state = op_node_handle(n, &sparse_table_kind);
    return MST_OK;
}

static void table_done(struct op_node *n)
{
    handle_unref(n->state);
}

static struct object *make_table(void *arg, struct status *st)
{
    const struct handle *h = arg;
    struct sparse_table *t = MEM_NEW(struct sparse_table);

    (void)st;
    object_init(&t->o, &sparse_table_kind);
    t->name = mem_str(h->name);
    pthread_mutex_init(&t->lock, NULL);
    map_init(&t->parts);
    return &t->o;
}

/* With a reference for the caller. */
static struct sparse_table *get(struct op_ctx *c)
{
    struct handle *h = c->node->state;

    return CONTAINER(handle_get_or_make(h, make_table, h, c->st),
                     struct sparse_table, o);
}

/* ---- in ---- */

static int64_t add(struct sparse_table *t, const struct sparse_part *p)
{
    struct sparse_part *own = mem_copy(p, sizeof(*p));
    uint64_t key;

    pthread_mutex_lock(&t->lock);
    key = t->next_key++;
    map_put_num(&t->parts, key, own);
    pthread_mutex_unlock(&t->lock);
    return (int64_t)key;
}

static enum mst_code add_sparse(struct op_ctx *c)
{
    struct sparse_table *t;
    struct sparse_part p;
    struct sparse s;
    int64_t size;
    enum mst_code rc = sparse_batch_ranks(c);

    if (!rc)
        rc = sparse_create(c, 0, &s);
    if (!rc)
        rc = sparse_size(c, s.shape, &size);
    if (!rc)
        rc = op_out_new(c, 0, 0, NULL);
    if (rc)
        return rc;
    p = (struct sparse_part){ tensor_ref(s.indices), tensor_ref(s.values),
                              tensor_ref(s.shape) };
    t = get(c);
    *TENSOR_DATA(op_out(c, 0), int64_t) = add(t, &p);
    object_unref(&t->o);
    return MST_OK;
}

static enum mst_code add_rows(struct op_ctx *c, struct sparse_table *t,
                              const struct sparse *s)
{
    int64_t rows = tensor_int(s->shape, 0), at = 0;
    enum mst_code rc = op_out_new(c, 0, 1, &rows);

    for (int64_t i = 0; i < rows && !rc; i++) {
        struct sparse_part p;

        rc = sparse_batch_cut(c, s, i, &at, &p);
        if (!rc)
            TENSOR_DATA(op_out(c, 0), int64_t)[i] = add(t, &p);
    }
    return rc;
}

/* Cut rows are refused with other words than serialised ones. */
static enum mst_code check_many(struct op_ctx *c)
{
    const struct tensor *index = op_in(c, 0);
    char text[SHAPE_TEXT_MAX];
    enum mst_code rc = sparse_batch_ranks(c);

    if (rc)
        return rc;
    if (index->dims[0] != op_in(c, 1)->count)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Number of values must match first dimension of "
                       "indices. Got %lld values, indices shape: %s",
                       (long long)op_in(c, 1)->count,
                       tensor_shape_text(index, text));
    if (index->dims[1] != op_in(c, 2)->count)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Number of dimensions must match second dimension of "
                       "indices. Got %lld dimensions, indices shape: %s",
                       (long long)op_in(c, 2)->count,
                       tensor_shape_text(index, text));
    return MST_OK;
}

static enum mst_code add_many_sparse(struct op_ctx *c)
{
    struct tensor own = { 0 };
    struct sparse_table *t = get(c);
    struct sparse s;
    enum mst_code rc = check_many(c);

    if (!rc)
        rc = sparse_batch_in(c, &s, &own);
    if (!rc)
        rc = add_rows(c, t, &s);
    tensor_unref(&own);
    object_unref(&t->o);
    return rc;
}

#define ADD(stem, text, out_, fn)                                              \
    const struct op_def def_##stem = {                                         \
        .name = text,                                                          \
        .in = "sparse_indices: int64, sparse_values: T, sparse_shape: int64",  \
        .out = out_,                                                           \
        .attr = "T: type; container: string = ''; shared_name: string = ''",   \
        .flags = OP_STATEFUL,                                                  \
        .init = table_init,                                                    \
        .done = table_done,                                                    \
        .kernel = (const struct op_kernel[]){ { DT_ANY, fn }, { 0 } },         \
    };

ADD(add_sparse_to_tensors_map, "AddSparseToTensorsMap", "sparse_handle: int64",
    add_sparse)
ADD(add_many_sparse_to_tensors_map, "AddManySparseToTensorsMap",
    "sparse_handles: int64", add_many_sparse)

/* ---- out ---- */

static enum mst_code take(struct op_ctx *c, struct sparse_table *t,
                          struct sparse_part *parts, int64_t n)
{
    enum mst_code rc = MST_OK;

    pthread_mutex_lock(&t->lock);
    for (int64_t i = 0; i < n && !rc; i++) {
        int64_t key = tensor_int(op_in(c, 0), i);
        struct sparse_part *p = map_take_num(&t->parts, (uint64_t)key);

        if (!p) {
            rc = op_fail(c, MST_INVALID_ARGUMENT,
                         "Unable to find SparseTensor: %lld in map: %s",
                         (long long)key, t->name);
            break;
        }
        parts[i] = *p;
        mem_free(p);
    }
    pthread_mutex_unlock(&t->lock);
    return rc;
}

static enum mst_code check_parts(struct op_ctx *c,
                                 const struct sparse_part *parts, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (parts[i].values.dtype != c->node->out_types[1])
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Requested SparseTensor of type %s but "
                           "SparseTensor[%lld].values.dtype() == %s",
                           dtype_name(c->node->out_types[1]), (long long)i,
                           dtype_name(parts[i].values.dtype));
        if (parts[i].shape.count != parts[0].shape.count)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Inconsistent rank across SparseTensors: rank prior "
                           "to SparseTensor[%lld] was: %lld but rank of "
                           "SparseTensor[%lld] is: %lld",
                           (long long)i, (long long)parts[0].shape.count + 1,
                           (long long)i, (long long)parts[i].shape.count + 1);
    }
    return MST_OK;
}

static enum mst_code take_many_sparse(struct op_ctx *c)
{
    const struct tensor *keys = op_in(c, 0);
    struct sparse_part *parts;
    struct sparse_table *t;
    char text[SHAPE_TEXT_MAX];
    enum mst_code rc;

    if (keys->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "sparse_handles should be a vector but received shape "
                       "%s",
                       tensor_shape_text(keys, text));
    if (!keys->count)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Must have at least 1 serialized SparseTensor, but "
                       "input matrix has 0 rows");
    parts = mem_array((size_t)keys->count, sizeof(*parts));
    t = get(c);
    rc = take(c, t, parts, keys->count);
    if (!rc)
        rc = check_parts(c, parts, keys->count);
    if (!rc)
        rc = sparse_batch_stack(c, parts, keys->count, 1, &keys->count);
    for (int64_t i = 0; i < keys->count; i++)
        sparse_part_done(&parts[i]);
    mem_free(parts);
    object_unref(&t->o);
    return rc;
}

const struct op_def def_take_many_sparse_from_tensors_map = {
    .name = "TakeManySparseFromTensorsMap",
    .in = "sparse_handles: int64",
    .out = "sparse_indices: int64, sparse_values: dtype, sparse_shape: int64",
    .attr = "dtype: type; container: string = ''; shared_name: string = ''",
    .flags = OP_STATEFUL,
    .init = table_init,
    .done = table_done,
    .kernel = (const struct op_kernel[]){ { DT_ANY, take_many_sparse }, { 0 } },
};
