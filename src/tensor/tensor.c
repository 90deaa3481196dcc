#include "tensor/tensor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tensor/limit.h"

static _Thread_local size_t limit = SIZE_MAX;

void tensor_limit(size_t bytes)
{
    limit = bytes;
}

void object_init(struct object *o, const struct object_kind *kind)
{
    atomic_init(&o->refs, 1);
    o->kind = kind;
}

struct object *object_ref(struct object *o)
{
    if (o)
        atomic_fetch_add_explicit(&o->refs, 1, memory_order_relaxed);
    return o;
}

/*
 * The end of an object may be the end of others: lists lie in lists, stacks
 * hold handles of stacks, as deep as a graph's loop likes to go. So the stack
 * must not grow with them: what ends within an end waits until that is over.
 */
void object_unref(struct object *o)
{
    static _Thread_local struct object *waiting;
    static _Thread_local bool ending;

    if (!o || atomic_fetch_sub_explicit(&o->refs, 1, memory_order_acq_rel) != 1)
        return;
    o->next = waiting;
    waiting = o;
    if (ending)
        return;
    ending = true;
    while (waiting) {
        o = waiting;
        waiting = o->next;
        o->kind->free(o);
    }
    ending = false;
}

/* ---- buffers of strings and objects ---- */

/*
 * Such a buffer begins with a head that says how many elements have to be
 * released at the end, and what the buffer's own end is.
 */
struct elements {
    enum dtype dtype;
    int64_t count;
    void (*release)(struct buffer *);
    _Alignas(16) uint8_t data[];
};

static void elements_release(struct buffer *b)
{
    struct elements *e = (struct elements *)b->data;

    if (e->dtype == DT_STRING) {
        struct str *s = (struct str *)e->data;

        for (int64_t i = 0; i < e->count; i++)
            free(s[i].data);
    } else {
        struct object **o = (struct object **)e->data;

        for (int64_t i = 0; i < e->count; i++)
            object_unref(o[i]);
    }
    b->release = e->release;
    b->release(b);
}

static struct buffer *elements_new(enum dtype dt, int64_t count)
{
    size_t bytes = sizeof(struct elements) + (size_t)count * dtype_size(dt);
    struct buffer *b = buffer_new(bytes);
    struct elements *e;

    if (!b)
        return NULL;
    e = memset(b->data, 0, bytes);
    e->dtype = dt;
    e->count = count;
    e->release = b->release;
    b->release = elements_release;
    return b;
}

/* ---- making and ending ---- */

static enum mst_code no_memory(struct status *st, enum dtype dt, int ndim,
                               const int64_t *dims)
{
    char text[SHAPE_TEXT_MAX];

    return status_set(st, MST_RESOURCE_EXHAUSTED,
                      "OOM when allocating tensor with shape%s and type %s",
                      shape_text(ndim, dims, text), dtype_name(dt));
}

enum mst_code tensor_new(struct tensor *t, enum dtype dt, int ndim,
                         const int64_t *dims, struct status *st)
{
    char text[SHAPE_TEXT_MAX];
    struct buffer *buf;
    int64_t count;
    void *data;

    if (!dtype_valid(dt))
        return status_set(st, MST_INVALID_ARGUMENT, "Invalid data type %d",
                          (int)dt);
    if (ndim > TENSOR_RANK_MAX)
        return status_set(st, MST_UNIMPLEMENTED,
                          "Tensors of rank %d are not supported, only up to %d",
                          ndim, TENSOR_RANK_MAX);
    if (!shape_count(ndim, dims, 0, &count))
        return status_set(
            st, MST_INVALID_ARGUMENT,
            "Shape %s is not valid: negative or too many elements",
            shape_text(ndim, dims, text));
    if (count > TENSOR_BYTES_MAX / (int64_t)dtype_size(dt) ||
        (size_t)count * dtype_size(dt) > limit)
        return no_memory(st, dt, ndim, dims);
    if (dtype_is_plain(dt))
        buf = buffer_new((size_t)count * dtype_size(dt));
    else
        buf = elements_new(dt, count);
    if (!buf)
        return no_memory(st, dt, ndim, dims);
    data =
        dtype_is_plain(dt) ? buf->data : ((struct elements *)buf->data)->data;
    tensor_wrap(t, dt, ndim, dims, buf, data);
    return MST_OK;
}

enum mst_code tensor_new_like(struct tensor *t, enum dtype dt,
                              const struct tensor *like, struct status *st)
{
    return tensor_new(t, dt, like->ndim, like->dims, st);
}

enum mst_code tensor_new_scalar(struct tensor *t, enum dtype dt,
                                struct status *st)
{
    return tensor_new(t, dt, 0, NULL, st);
}

void tensor_wrap(struct tensor *t, enum dtype dt, int ndim, const int64_t *dims,
                 struct buffer *buf, void *data)
{
    t->buf = buf;
    t->data = data;
    t->dtype = (uint8_t)dt;
    t->ndim = (uint8_t)ndim;
    CHECK(shape_count(ndim, dims, dtype_size(dt), &t->count));
    for (int i = 0; i < ndim; i++)
        t->dims[i] = dims[i];
}

enum mst_code tensor_copy(struct tensor *dst, const struct tensor *src,
                          struct status *st)
{
    struct tensor t;
    enum mst_code rc;

    rc = tensor_new(&t, (enum dtype)src->dtype, src->ndim, src->dims, st);
    if (rc)
        return rc;
    tensor_copy_elems(&t, 0, src, 0, src->count);
    *dst = t;
    return MST_OK;
}

enum mst_code tensor_slice(struct tensor *dst, const struct tensor *src,
                           int64_t begin, int64_t rows, struct status *st)
{
    int64_t dims[TENSOR_RANK_MAX], row;
    struct tensor t;
    enum mst_code rc;

    CHECK(src->ndim > 0 && begin >= 0 && rows >= 0 &&
          begin + rows <= src->dims[0]);
    memcpy(dims, src->dims, sizeof(dims));
    dims[0] = rows;
    row = src->dims[0] ? src->count / src->dims[0] : 0;
    if (dtype_is_plain((enum dtype)src->dtype)) {
        size_t skip = (size_t)(begin * row) * dtype_size(src->dtype);

        tensor_wrap(&t, (enum dtype)src->dtype, src->ndim, dims,
                    buffer_ref(src->buf), (uint8_t *)src->data + skip);
    } else {
        rc = tensor_new(&t, (enum dtype)src->dtype, src->ndim, dims, st);
        if (rc)
            return rc;
        tensor_copy_elems(&t, 0, src, begin * row, t.count);
    }
    *dst = t;
    return MST_OK;
}

void tensor_reshape(struct tensor *dst, const struct tensor *src, int ndim,
                    const int64_t *dims)
{
    int64_t count = src->count;
    struct tensor t;

    tensor_wrap(&t, (enum dtype)src->dtype, ndim, dims, buffer_ref(src->buf),
                src->data);
    CHECK(t.count == count);
    *dst = t;
}

void str_set(struct str *s, const void *data, size_t len)
{
    char *copy = len ? mem_copy(data, len) : NULL;

    free(s->data);
    s->data = copy;
    s->len = len;
}

void tensor_copy_elems(struct tensor *dst, int64_t dst_at,
                       const struct tensor *src, int64_t src_at, int64_t n)
{
    size_t size = dtype_size((enum dtype)src->dtype);

    CHECK(dst->dtype == src->dtype);
    if (!n)
        return;
    if (dtype_is_plain((enum dtype)src->dtype)) {
        memcpy((uint8_t *)dst->data + (size_t)dst_at * size,
               (const uint8_t *)src->data + (size_t)src_at * size,
               (size_t)n * size);
    } else if (src->dtype == DT_STRING) {
        for (int64_t i = 0; i < n; i++) {
            struct str *s = tensor_str(src, src_at + i);

            str_set(tensor_str(dst, dst_at + i), s->data, s->len);
        }
    } else {
        for (int64_t i = 0; i < n; i++) {
            struct object **to = tensor_object(dst, dst_at + i);
            struct object *old = *to;

            *to = object_ref(*tensor_object(src, src_at + i));
            object_unref(old);
        }
    }
}

void tensor_zero(struct tensor *t)
{
    if (dtype_is_plain((enum dtype)t->dtype)) {
        if (t->count)
            memset(t->data, 0, tensor_bytes(t));
    } else if (t->dtype == DT_STRING) {
        for (int64_t i = 0; i < t->count; i++)
            str_set(tensor_str(t, i), NULL, 0);
    } else {
        for (int64_t i = 0; i < t->count; i++) {
            object_unref(*tensor_object(t, i));
            *tensor_object(t, i) = NULL;
        }
    }
}

/* ---- looking ---- */

bool tensor_same_shape(const struct tensor *a, const struct tensor *b)
{
    return a->ndim == b->ndim &&
           !memcmp(a->dims, b->dims, a->ndim * sizeof(a->dims[0]));
}

int64_t tensor_int(const struct tensor *t, int64_t at)
{
    switch (t->dtype) {
    case DT_INT32:
        return TENSOR_DATA(t, int32_t)[at];
    case DT_INT64:
        return TENSOR_DATA(t, int64_t)[at];
    case DT_INT16:
        return TENSOR_DATA(t, int16_t)[at];
    case DT_UINT8:
        return TENSOR_DATA(t, uint8_t)[at];
    case DT_INT8:
        return TENSOR_DATA(t, int8_t)[at];
    case DT_UINT16:
        return TENSOR_DATA(t, uint16_t)[at];
    case DT_UINT32:
        return TENSOR_DATA(t, uint32_t)[at];
    case DT_UINT64:
        return (int64_t)TENSOR_DATA(t, uint64_t)[at];
    default:
        base_panic(__FILE__, __LINE__, "a tensor of whole numbers");
    }
}

struct str *tensor_str(const struct tensor *t, int64_t at)
{
    return TENSOR_DATA(t, struct str) + at;
}

struct object **tensor_object(const struct tensor *t, int64_t at)
{
    return TENSOR_DATA(t, struct object *) + at;
}

/* ---- shapes ---- */

bool shape_count(int ndim, const int64_t *dims, size_t elem_size,
                 int64_t *ret_count)
{
    int64_t limit =
        elem_size ? TENSOR_BYTES_MAX / (int64_t)elem_size : INT64_MAX;
    int64_t count = 1;
    bool zero = false;

    for (int i = 0; i < ndim; i++) {
        if (dims[i] < 0)
            return false;
        zero |= dims[i] == 0;
    }
    /* Beside a zero the other dimensions may be as large as they like. */
    for (int i = 0; i < ndim && !zero; i++)
        if (__builtin_mul_overflow(count, dims[i], &count) || count > limit)
            return false;
    *ret_count = zero ? 0 : count;
    return true;
}

const char *shape_text(int ndim, const int64_t *dims, char *text)
{
    size_t n = 0;

    if (ndim < 0)
        return strcpy(text, "<unknown>");
    text[n++] = '[';
    for (int i = 0; i < ndim && n < SHAPE_TEXT_MAX - 24; i++) {
        if (i)
            text[n++] = ',';
        if (dims[i] < 0)
            text[n++] = '?';
        else
            n += (size_t)snprintf(text + n, 22, "%lld", (long long)dims[i]);
    }
    text[n++] = ']';
    text[n] = '\0';
    return text;
}

const char *tensor_shape_text(const struct tensor *t, char *text)
{
    return shape_text(t->ndim, t->dims, text);
}

bool shape_compatible(const struct shape *s, const struct tensor *t)
{
    if (s->ndim < 0)
        return true;
    if (s->ndim != t->ndim)
        return false;
    for (int i = 0; i < s->ndim; i++)
        if (s->dims[i] >= 0 && s->dims[i] != t->dims[i])
            return false;
    return true;
}

bool shape_broadcast(const struct tensor *a, const struct tensor *b,
                     struct shape *ret)
{
    int n = MAX(a->ndim, b->ndim);

    ret->ndim = n;
    for (int i = 0; i < n; i++) {
        int ia = i - (n - a->ndim), ib = i - (n - b->ndim);
        int64_t da = ia < 0 ? 1 : a->dims[ia];
        int64_t db = ib < 0 ? 1 : b->dims[ib];

        if (da != db && da != 1 && db != 1)
            return false;
        ret->dims[i] = da == 1 ? db : da;
    }
    return true;
}
