#include "kernel/table.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

static void table_free(struct object *o)
{
    struct table *t = CONTAINER(o, struct table, o);

    map_done(&t->index);
    tensor_unref(&t->keys);
    tensor_unref(&t->values);
    tensor_unref(&t->empty_key);
    tensor_unref(&t->deleted_key);
    pthread_rwlock_destroy(&t->lock);
    mem_free(t->container);
    mem_free(t->name);
    mem_free(t);
}

const struct object_kind table_kind = { "table", table_free };

static int64_t width(const struct shape *s)
{
    int64_t n = 1;

    for (int i = 0; i < s->ndim; i++)
        n *= s->dims[i];
    return n;
}

struct table *table_new(const struct handle *h, enum table_form form,
                        int key_type, int value_type,
                        const struct shape *key_shape,
                        const struct shape *value_shape)
{
    struct table *t = MEM_NEW(struct table);

    object_init(&t->o, &table_kind);
    pthread_rwlock_init(&t->lock, NULL);
    map_init(&t->index);
    t->container = mem_str(h ? h->container : "");
    t->name = mem_str(h ? h->name : "");
    t->form = form;
    t->key_type = key_type;
    t->value_type = value_type;
    t->key_shape = *key_shape;
    t->value_shape = *value_shape;
    t->key_width = width(key_shape);
    t->value_width = width(value_shape);
    return t;
}

/* ---- the index ---- */

/* A key as the index takes it: a number, or bytes. */
struct key {
    bool is_number;
    uint64_t number;
    const char *data;
    size_t len;
};

static struct key key_at(const struct table *t, const struct tensor *keys,
                         int64_t at)
{
    size_t size = dtype_size((enum dtype)keys->dtype);
    struct key k = { 0 };

    if (keys->dtype == DT_STRING) {
        const struct str *s = tensor_str(keys, at);

        k.data = s->data ? s->data : "";
        k.len = s->len;
    } else if (t->key_width == 1 && dtype_is_int((enum dtype)keys->dtype)) {
        k.is_number = true;
        k.number = (uint64_t)tensor_int(keys, at);
    } else {
        k.len = (size_t)t->key_width * size;
        k.data = k.len ? (const char *)keys->data + (size_t)at * k.len : "";
    }
    return k;
}

static int64_t index_get(const struct table *t, struct key k)
{
    void *row = k.is_number ? map_get_num(&t->index, k.number)
                            : map_get(&t->index, k.data, k.len);

    return (int64_t)(intptr_t)row - 1;
}

static void index_put(struct table *t, struct key k, int64_t row)
{
    void *value = (void *)(intptr_t)(row + 1);

    if (k.is_number)
        map_put_num(&t->index, k.number, value);
    else
        map_put(&t->index, k.data, k.len, value);
}

static void index_take(struct table *t, struct key k)
{
    if (k.is_number)
        map_take_num(&t->index, k.number);
    else
        map_take(&t->index, k.data, k.len);
}

/* ---- rows ---- */

int64_t table_row(const struct table *t, const struct tensor *keys, int64_t at)
{
    return index_get(t, key_at(t, keys, at));
}

/* More room for rows of that width: the elements move, whatever they are. */
static enum mst_code widen(struct tensor *rows, int dtype, int64_t room,
                           int64_t each, struct status *st)
{
    int64_t dims[2] = { room, each };
    struct tensor more;
    enum mst_code rc = tensor_new(&more, (enum dtype)dtype, 2, dims, st);

    if (rc)
        return rc;
    if (tensor_set(rows) && rows->count) {
        memcpy(more.data, rows->data, tensor_bytes(rows));
        if (!dtype_is_plain((enum dtype)dtype))
            memset(rows->data, 0, tensor_bytes(rows));
    }
    tensor_unref(rows);
    *rows = more;
    return MST_OK;
}

static enum mst_code grow(struct table *t, struct status *st)
{
    int64_t room = t->room ? t->room * 2 : 16;
    enum mst_code rc = MST_OK;

    if (t->count < t->room)
        return MST_OK;
    /* Either alone may succeed; the room is that of both. */
    if (!t->keys.buf || t->keys.dims[0] < room)
        rc = widen(&t->keys, t->key_type, room, t->key_width, st);
    if (!rc)
        rc = widen(&t->values, t->value_type, room, t->value_width, st);
    if (!rc)
        t->room = room;
    return rc;
}

enum mst_code table_put(struct table *t, const struct tensor *keys, int64_t at,
                        const struct tensor *values, int64_t from,
                        struct status *st)
{
    int64_t row = table_row(t, keys, at);
    enum mst_code rc;

    if (row < 0) {
        rc = grow(t, st);
        if (rc)
            return rc;
        row = t->count++;
        tensor_copy_elems(&t->keys, row * t->key_width, keys, at * t->key_width,
                          t->key_width);
        index_put(t, key_at(t, keys, at), row);
    }
    tensor_copy_elems(&t->values, row * t->value_width, values,
                      from * t->value_width, t->value_width);
    return MST_OK;
}

void table_remove(struct table *t, const struct tensor *keys, int64_t at)
{
    struct key k = key_at(t, keys, at);
    int64_t row = index_get(t, k), last = t->count - 1;

    if (row < 0)
        return;
    index_take(t, k);
    if (row != last) {
        tensor_copy_elems(&t->keys, row * t->key_width, &t->keys,
                          last * t->key_width, t->key_width);
        tensor_copy_elems(&t->values, row * t->value_width, &t->values,
                          last * t->value_width, t->value_width);
        index_put(t, key_at(t, &t->keys, row), row);
    }
    t->count--;
}

void table_clear(struct table *t)
{
    map_done(&t->index);
    tensor_unref(&t->keys);
    tensor_unref(&t->values);
    t->count = t->room = 0;
}

/* ---- static tables ---- */

static void element_text(const struct tensor *t, int64_t at, char *text,
                         size_t size)
{
    const struct str *s;

    switch (t->dtype) {
    case DT_STRING:
        s = tensor_str(t, at);
        snprintf(text, size, "%.*s", (int)MIN(s->len, size),
                 s->data ? s->data : "");
        break;
    case DT_FLOAT:
        snprintf(text, size, "%g", (double)TENSOR_DATA(t, float)[at]);
        break;
    case DT_DOUBLE:
        snprintf(text, size, "%g", TENSOR_DATA(t, double)[at]);
        break;
    case DT_BOOL:
        snprintf(text, size, "%d", TENSOR_DATA(t, bool)[at]);
        break;
    default:
        snprintf(text, size, "%lld",
                 dtype_is_int((enum dtype)t->dtype)
                     ? (long long)tensor_int(t, at)
                     : 0LL);
    }
}

static bool same_element(const struct tensor *a, int64_t i,
                         const struct tensor *b, int64_t j)
{
    size_t size = dtype_size((enum dtype)a->dtype);

    if (a->dtype == DT_STRING) {
        const struct str *x = tensor_str(a, i), *y = tensor_str(b, j);

        return x->len == y->len &&
               (!x->len || !memcmp(x->data, y->data, x->len));
    }
    return !memcmp((uint8_t *)a->data + (size_t)i * size,
                   (uint8_t *)b->data + (size_t)j * size, size);
}

enum mst_code table_put_once(struct table *t, const struct tensor *keys,
                             int64_t at, const struct tensor *values,
                             int64_t from, struct status *st)
{
    int64_t row = table_row(t, keys, at);
    char key[256], have[256], got[256];

    if (row < 0)
        return table_put(t, keys, at, values, from, st);
    if (same_element(&t->values, row, values, from))
        return MST_OK;
    element_text(keys, at, key, sizeof(key));
    element_text(&t->values, row, have, sizeof(have));
    element_text(values, from, got, sizeof(got));
    return status_set(st, MST_FAILED_PRECONDITION,
                      "HashTable has different value for same key. Key %s has "
                      "%s and trying to add value %s",
                      key, have, got);
}

/* ---- for kernels ---- */

enum mst_code table_get(struct op_ctx *c, struct table **ret)
{
    struct object *o;
    enum mst_code rc = op_resource(c, 0, &table_kind, &o);

    if (!rc)
        *ret = CONTAINER(o, struct table, o);
    return rc;
}

enum mst_code table_begin(struct op_ctx *c, struct table *t, int64_t rows,
                          bool *ret_same)
{
    enum mst_code rc;

    *ret_same = false;
    if (t->form != TABLE_STATIC)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Table %s %s is not initializable", t->container,
                       t->name);
    pthread_rwlock_wrlock(&t->lock);
    if (!t->ready)
        return MST_OK;
    /* TensorFlow compares no more than how many there are. */
    *ret_same = rows == t->count;
    pthread_rwlock_unlock(&t->lock);
    rc = *ret_same ? MST_OK
                   : op_fail(c, MST_FAILED_PRECONDITION,
                             "Table was already initialized with different "
                             "data.");
    return rc;
}

void table_end(struct table *t, enum mst_code rc)
{
    t->ready = !rc;
    if (rc)
        table_clear(t);
    pthread_rwlock_unlock(&t->lock);
}
