/*
 * The ops on lookup tables, in both handle forms.
 *
 * Keys are a tensor of any shape, that of a key at its end. Values have that
 * shape with a value's in place of a key's.
 */
#include "kernel/element.h"
#include "kernel/signature.h"
#include "kernel/table.h"
#include "kernel/types.h"

static enum mst_code check_types(struct op_ctx *c, const struct table *t,
                                 bool values_in, bool values_out)
{
    int in[2] = { t->key_type, t->value_type };
    struct signature out = { &in[1], values_out };

    return signature_check(c, 1, (struct signature){ in, 1 + (int)values_in },
                           out);
}

/* How many keys there are, and the shape of their values. */
static enum mst_code check_keys(struct op_ctx *c, const struct table *t,
                                struct shape *values, int64_t *ret_count)
{
    const struct tensor *keys = op_in(c, 1);
    const struct shape *k = &t->key_shape, *v = &t->value_shape;
    int batch = keys->ndim - k->ndim;
    char a[SHAPE_TEXT_MAX], b[SHAPE_TEXT_MAX];

    if (batch < 0 || memcmp(keys->dims + batch, k->dims,
                            (size_t)k->ndim * sizeof(k->dims[0])))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input key shape %s must end with the table's key shape "
                       "%s",
                       tensor_shape_text(keys, a),
                       shape_text(k->ndim, k->dims, b));
    if (batch + v->ndim > TENSOR_RANK_MAX)
        return op_fail(c, MST_UNIMPLEMENTED, "A tensor of rank %d",
                       batch + v->ndim);
    *values = (struct shape){ .ndim = batch + v->ndim };
    memcpy(values->dims, keys->dims, (size_t)batch * sizeof(values->dims[0]));
    memcpy(values->dims + batch, v->dims,
           (size_t)v->ndim * sizeof(values->dims[0]));
    *ret_count = t->key_width ? keys->count / t->key_width : 0;
    return MST_OK;
}

static bool same_key(const struct table *t, const struct tensor *keys,
                     int64_t at, const struct tensor *other)
{
    size_t bytes = (size_t)t->key_width * dtype_size((enum dtype)keys->dtype);

    if (!tensor_set(other))
        return false;
    if (keys->dtype == DT_STRING) {
        const struct str *x = tensor_str(keys, at), *y = tensor_str(other, 0);

        return x->len == y->len &&
               (!x->len || !memcmp(x->data, y->data, x->len));
    }
    return !memcmp((uint8_t *)keys->data + (size_t)at * bytes, other->data,
                   bytes);
}

/* A dense table does not take its two special keys. */
static enum mst_code check_allowed(struct op_ctx *c, const struct table *t,
                                   int64_t count)
{
    const struct tensor *keys = op_in(c, 1);

    for (int64_t i = 0; i < count && t->form == TABLE_DENSE; i++) {
        bool empty = same_key(t, keys, i, &t->empty_key);

        if (empty || same_key(t, keys, i, &t->deleted_key))
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Using the %s_key as a table key is not allowed",
                           empty ? "empty" : "deleted");
    }
    return MST_OK;
}

/* ---- finding ---- */

/* One default for all, or one for each key. */
static enum mst_code check_default(struct op_ctx *c, const struct table *t,
                                   const struct shape *values, bool *ret_each)
{
    const struct tensor *d = op_in(c, 2);
    const struct shape *v = &t->value_shape;
    char a[SHAPE_TEXT_MAX], b[SHAPE_TEXT_MAX], got[SHAPE_TEXT_MAX];

    *ret_each = false;
    if (t->form == TABLE_STATIC && d->count)
        return MST_OK; /* TensorFlow takes the first element */
    if (shape_compatible(v, d))
        return MST_OK;
    *ret_each = true;
    if (shape_compatible(values, d))
        return MST_OK;
    return op_fail(c, MST_INVALID_ARGUMENT,
                   "Expected shape %s or %s for default value, got %s",
                   shape_text(v->ndim, v->dims, a),
                   shape_text(values->ndim, values->dims, b),
                   tensor_shape_text(d, got));
}

static enum mst_code find(struct op_ctx *c, struct table *t)
{
    struct tensor *out = op_out(c, 0);
    struct shape values;
    int64_t n, w = t->value_width;
    bool each;
    enum mst_code rc = check_types(c, t, true, true);

    if (!rc)
        rc = check_keys(c, t, &values, &n);
    if (!rc)
        rc = check_default(c, t, &values, &each);
    if (!rc)
        rc = check_allowed(c, t, n);
    if (!rc)
        rc = op_out_new(c, 0, values.ndim, values.dims);
    if (rc)
        return rc;
    pthread_rwlock_rdlock(&t->lock);
    if (t->form == TABLE_STATIC && !t->ready)
        rc = op_fail(c, MST_FAILED_PRECONDITION, "Table not initialized.");
    for (int64_t i = 0; i < n && !rc; i++) {
        int64_t row = table_row(t, op_in(c, 1), i);

        if (row >= 0)
            tensor_copy_elems(out, i * w, &t->values, row * w, w);
        else
            tensor_copy_elems(out, i * w, op_in(c, 2), each ? i * w : 0, w);
    }
    pthread_rwlock_unlock(&t->lock);
    return rc;
}

static enum mst_code find_run(struct op_ctx *c)
{
    struct table *t;
    enum mst_code rc = table_get(c, &t);

    if (rc)
        return rc;
    rc = find(c, t);
    object_unref(&t->o);
    return rc;
}

/* ---- writing ---- */

static enum mst_code check_values(struct op_ctx *c, const struct table *t,
                                  int64_t *ret_count)
{
    struct shape values;
    char want[SHAPE_TEXT_MAX], got[SHAPE_TEXT_MAX];
    enum mst_code rc = check_keys(c, t, &values, ret_count);

    if (!rc && !shape_compatible(&values, op_in(c, 2)))
        rc = op_fail(c, MST_INVALID_ARGUMENT,
                     "Expected shape %s for value, got %s",
                     shape_text(values.ndim, values.dims, want),
                     tensor_shape_text(op_in(c, 2), got));
    return rc ? rc : check_allowed(c, t, *ret_count);
}

/* The buckets that a dense table of TensorFlow's has before n more keys. */
static void grow_buckets(struct table *t, int64_t n)
{
    while (t->form == TABLE_DENSE &&
           (double)(t->count + n) > (double)t->buckets * t->load_max)
        t->buckets *= 2;
}

static enum mst_code write_rows(struct op_ctx *c, struct table *t, bool clear)
{
    int64_t n;
    enum mst_code rc = check_values(c, t, &n);

    if (rc)
        return rc;
    pthread_rwlock_wrlock(&t->lock);
    if (clear)
        table_clear(t);
    grow_buckets(t, n);
    for (int64_t i = 0; i < n && !rc; i++)
        rc = table_put(t, op_in(c, 1), i, op_in(c, 2), i, c->st);
    pthread_rwlock_unlock(&t->lock);
    return rc;
}

/* The buckets of a dense table: a row each, those with a special key empty. */
static enum mst_code import_buckets(struct op_ctx *c, struct table *t)
{
    const struct tensor *keys = op_in(c, 1), *values = op_in(c, 2);
    char a[SHAPE_TEXT_MAX], b[SHAPE_TEXT_MAX];
    int64_t n = keys->ndim ? keys->dims[0] : 0;
    enum mst_code rc = MST_OK;

    if (!keys->ndim || !values->ndim || values->dims[0] != n ||
        keys->count != n * t->key_width || values->count != n * t->value_width)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Keys of shape %s and values of shape %s are no buckets "
                       "of the table",
                       tensor_shape_text(keys, a),
                       tensor_shape_text(values, b));
    pthread_rwlock_wrlock(&t->lock);
    table_clear(t);
    t->buckets = n;
    for (int64_t i = 0; i < n && !rc; i++)
        if (!same_key(t, keys, i, &t->empty_key) &&
            !same_key(t, keys, i, &t->deleted_key))
            rc = table_put(t, keys, i, values, i, c->st);
    pthread_rwlock_unlock(&t->lock);
    return rc;
}

/* The first and only content of a static table. */
static enum mst_code initialize(struct op_ctx *c, struct table *t)
{
    const struct tensor *keys = op_in(c, 1), *values = op_in(c, 2);
    char text[SHAPE_TEXT_MAX];
    bool same;
    enum mst_code rc;

    if (keys->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Keys must be a vector, but received shape%s",
                       tensor_shape_text(keys, text));
    if (values->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Values must be a vector, but received shape%s",
                       tensor_shape_text(values, text));
    if (keys->count != values->count)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Keys and values must have the same size %lld vs %lld",
                       (long long)keys->count, (long long)values->count);
    rc = table_begin(c, t, keys->count, &same);
    if (rc || same)
        return rc;
    for (int64_t i = 0; i < keys->count && !rc; i++)
        rc = table_put_once(t, keys, i, values, i, c->st);
    table_end(t, rc);
    return rc;
}

enum writing { INITIALIZE, INSERT, IMPORT };

static enum mst_code write_any(struct op_ctx *c, enum writing how)
{
    struct table *t;
    enum mst_code rc = table_get(c, &t);

    if (rc)
        return rc;
    if (how == INITIALIZE && t->form != TABLE_STATIC)
        rc = op_fail(c, MST_INVALID_ARGUMENT,
                     "Table %s %s is not initializable", t->container, t->name);
    if (!rc)
        rc = check_types(c, t, true, false);
    if (!rc && how == INSERT && t->form == TABLE_STATIC)
        rc = op_fail(c, MST_UNIMPLEMENTED,
                     "Insert not supported by InitializableLookupTable "
                     "implementations");
    if (!rc)
        rc = t->form == TABLE_STATIC ? initialize(c, t)
             : t->form == TABLE_DENSE && how == IMPORT
                 ? import_buckets(c, t)
                 : write_rows(c, t, how == IMPORT);
    object_unref(&t->o);
    return rc;
}

static enum mst_code initialize_run(struct op_ctx *c)
{
    return write_any(c, INITIALIZE);
}

static enum mst_code insert_run(struct op_ctx *c)
{
    return write_any(c, INSERT);
}

static enum mst_code import_run(struct op_ctx *c)
{
    return write_any(c, IMPORT);
}

static enum mst_code remove_keys(struct op_ctx *c, struct table *t)
{
    struct shape values;
    int64_t n;
    enum mst_code rc = check_types(c, t, false, false);

    if (!rc && t->form == TABLE_STATIC)
        rc = op_fail(c, MST_UNIMPLEMENTED,
                     "Remove not supported by InitializableLookupTable "
                     "implementations");
    if (!rc)
        rc = check_keys(c, t, &values, &n);
    if (!rc)
        rc = check_allowed(c, t, n);
    if (rc)
        return rc;
    pthread_rwlock_wrlock(&t->lock);
    for (int64_t i = 0; i < n; i++)
        table_remove(t, op_in(c, 1), i);
    pthread_rwlock_unlock(&t->lock);
    return MST_OK;
}

static enum mst_code remove_run(struct op_ctx *c)
{
    struct table *t;
    enum mst_code rc = table_get(c, &t);

    if (rc)
        return rc;
    rc = remove_keys(c, t);
    object_unref(&t->o);
    return rc;
}

/* ---- the whole ---- */

static enum mst_code size_run(struct op_ctx *c)
{
    struct table *t;
    enum mst_code rc = table_get(c, &t);

    if (rc)
        return rc;
    rc = op_out_new(c, 0, 0, NULL);
    pthread_rwlock_rdlock(&t->lock);
    if (!rc)
        *TENSOR_DATA(op_out(c, 0), int64_t) = t->count;
    pthread_rwlock_unlock(&t->lock);
    object_unref(&t->o);
    return rc;
}

/* All rows of the keys or of the values. */
static enum mst_code out_rows(struct op_ctx *c, int i, int64_t count,
                              const struct tensor *rows,
                              const struct shape *shape, int64_t width)
{
    struct shape all;
    enum mst_code rc;

    if (!element_shape_batch(shape, count, &all))
        return op_fail(c, MST_UNIMPLEMENTED, "A tensor of rank %d",
                       shape->ndim + 1);
    rc = op_out_new(c, i, all.ndim, all.dims);
    if (!rc && count)
        tensor_copy_elems(op_out(c, i), 0, rows, 0, count * width);
    return rc;
}

/* The rows of a dense table, and empty buckets behind them. */
static enum mst_code export_buckets(struct op_ctx *c, const struct table *t)
{
    int64_t n = MAX(t->buckets, t->count);
    enum mst_code rc = op_out_new(c, 0, 2, (int64_t[]){ n, t->key_width });

    if (!rc)
        rc = op_out_new(c, 1, 2, (int64_t[]){ n, t->value_width });
    if (rc)
        return rc;
    tensor_zero(op_out(c, 1));
    if (t->count) {
        tensor_copy_elems(op_out(c, 0), 0, &t->keys, 0,
                          t->count * t->key_width);
        tensor_copy_elems(op_out(c, 1), 0, &t->values, 0,
                          t->count * t->value_width);
    }
    for (int64_t i = t->count; i < n; i++)
        tensor_copy_elems(op_out(c, 0), i * t->key_width, &t->empty_key, 0,
                          t->key_width);
    return MST_OK;
}

static enum mst_code export_rows(struct op_ctx *c, const struct table *t)
{
    enum mst_code rc =
        out_rows(c, 0, t->count, &t->keys, &t->key_shape, t->key_width);

    return rc ? rc
              : out_rows(c, 1, t->count, &t->values, &t->value_shape,
                         t->value_width);
}

static enum mst_code export_run(struct op_ctx *c)
{
    struct table *t;
    enum mst_code rc = table_get(c, &t);
    int types[2];

    if (rc)
        return rc;
    types[0] = t->key_type;
    types[1] = t->value_type;
    rc = signature_check(c, 1, (struct signature){ 0 },
                         (struct signature){ types, 2 });
    pthread_rwlock_rdlock(&t->lock);
    if (!rc && t->form == TABLE_STATIC && !t->ready)
        rc = op_fail(c, MST_ABORTED, "HashTable is not initialized.");
    if (!rc)
        rc = t->form == TABLE_DENSE ? export_buckets(c, t) : export_rows(c, t);
    pthread_rwlock_unlock(&t->lock);
    object_unref(&t->o);
    return rc;
}

#define TABLE_OP_DEF(stem, text, handle, in_, out_, attr_, run)                \
    const struct op_def def_##stem = {                                         \
        .name = text,                                                          \
        .in = "table_handle: " handle in_,                                     \
        .out = out_,                                                           \
        .attr = attr_,                                                         \
        .flags = OP_STATEFUL,                                                  \
        .kernel = (const struct op_kernel[]){ { DT_ANY, run }, { 0 } },        \
    };
/* Both handle forms of an op. */
#define TABLE_OP(stem, text, in_, out_, attr_, run)                            \
    TABLE_OP_DEF(stem, text, "Ref(string)", in_, out_, attr_, run)             \
    TABLE_OP_DEF(stem##_v2, text "V2", "resource", in_, out_, attr_, run)

TABLE_OP(initialize_table, "InitializeTable", ", keys: Tkey, values: Tval",
         NULL, "Tkey: type; Tval: type", initialize_run)
TABLE_OP(lookup_table_find, "LookupTableFind",
         ", keys: Tin, default_value: Tout", "values: Tout",
         "Tin: type; Tout: type", find_run)
TABLE_OP(lookup_table_insert, "LookupTableInsert", ", keys: Tin, values: Tout",
         NULL, "Tin: type; Tout: type", insert_run)
TABLE_OP(lookup_table_import, "LookupTableImport", ", keys: Tin, values: Tout",
         NULL, "Tin: type; Tout: type", import_run)
TABLE_OP(lookup_table_size, "LookupTableSize", "", "size: int64", NULL,
         size_run)
TABLE_OP(lookup_table_export, "LookupTableExport", "",
         "keys: Tkeys, values: Tvalues", "Tkeys: type; Tvalues: type",
         export_run)
TABLE_OP_DEF(lookup_table_remove_v2, "LookupTableRemoveV2", "resource",
             ", keys: Tin", NULL, "Tin: type", remove_run)
