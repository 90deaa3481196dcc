#include "store/v1_writer.h"

#include <stdlib.h>

#include "base/mem.h"
#include "store/table_writer.h"

/* What one protobuf message may come to. */
#define SLICE_BYTES_MAX ((uint64_t)1 << 31)

void v1_writer_init(struct v1_writer *w)
{
    *w = (struct v1_writer){ 0 };
}

void v1_writer_done(struct v1_writer *w)
{
    for (int i = 0; i < w->count; i++)
        bytes_done(&w->slices[i].key);
    mem_free(w->slices);
    v1_writer_init(w);
}

/* ---- TensorProto's typed values ---- */

/* The field of TensorProto that has values of a type, packed; 0: none. */
static int field_of(int dtype)
{
    switch (dtype) {
    case DT_FLOAT:
        return 5;
    case DT_DOUBLE:
        return 6;
    case DT_INT32:
    case DT_INT16:
    case DT_INT8:
    case DT_UINT16:
    case DT_UINT8:
    case DT_QINT8:
    case DT_QUINT8:
    case DT_QINT32:
        return 7;
    case DT_STRING:
        return 8;
    case DT_COMPLEX64:
        return 9;
    case DT_INT64:
        return 10;
    case DT_BOOL:
        return 11;
    case DT_COMPLEX128:
        return 12;
    case DT_HALF:
        return 13;
    default:
        return 0;
    }
}

/* An element of a type that is written as a varint. */
static uint64_t number_at(const struct tensor *t, int64_t i)
{
    switch (t->dtype) {
    case DT_BOOL:
    case DT_UINT8:
    case DT_QUINT8:
        return TENSOR_DATA(t, uint8_t)[i];
    case DT_HALF:
    case DT_UINT16:
        return TENSOR_DATA(t, uint16_t)[i];
    case DT_INT8:
    case DT_QINT8:
        return (uint64_t)(int64_t)TENSOR_DATA(t, int8_t)[i];
    case DT_INT16:
        return (uint64_t)(int64_t)TENSOR_DATA(t, int16_t)[i];
    case DT_INT64:
        return (uint64_t)TENSOR_DATA(t, int64_t)[i];
    default:
        return (uint64_t)(int64_t)TENSOR_DATA(t, int32_t)[i];
    }
}

static void put_values(struct pb_out *o, const struct tensor *t)
{
    uint32_t field = (uint32_t)field_of(t->dtype);
    uint64_t size = 0;

    if (t->dtype == DT_STRING) {
        for (int64_t i = 0; i < t->count; i++)
            pb_put_bytes(o, field, tensor_str(t, i)->data,
                         tensor_str(t, i)->len);
        return;
    }
    if (!t->count)
        return;
    if (dtype_is_complex((enum dtype)t->dtype) || t->dtype == DT_FLOAT ||
        t->dtype == DT_DOUBLE) {
        pb_put_bytes(o, field, t->data, tensor_bytes(t));
        return;
    }
    for (int64_t i = 0; i < t->count; i++)
        size += pb_varint_size(number_at(t, i));
    pb_put_tag(o, field, PB_LEN);
    pb_put_varint(o, size);
    for (int64_t i = 0; i < t->count; i++)
        pb_put_varint(o, number_at(t, i));
}

/* ---- adding ---- */

static enum mst_code check_size(const struct tensor *t, struct status *st)
{
    uint64_t size = 1024;

    for (int64_t i = 0; t->dtype == DT_STRING && i < t->count; i++)
        size += tensor_str(t, i)->len + 10;
    if (t->dtype != DT_STRING)
        size += (uint64_t)t->count *
                MAX(dtype_size((enum dtype)t->dtype), (size_t)10);
    if (size > SLICE_BYTES_MAX)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Tensor slice is too large to serialize "
                          "(conservative estimate: %llu bytes)",
                          (unsigned long long)size);
    return MST_OK;
}

/* Of the same tensor as the one before: then they agree about it. */
static enum mst_code check_alike(const struct v1_slice *a,
                                 const struct v1_slice *b, struct status *st)
{
    char x[SHAPE_TEXT_MAX], y[SHAPE_TEXT_MAX];

    if (a->whole.ndim != b->whole.ndim ||
        memcmp(a->whole.dims, b->whole.dims,
               (size_t)a->whole.ndim * sizeof(a->whole.dims[0])))
        return status_set(st, MST_INTERNAL,
                          "Mismatching shapes: existing tensor = %s, trying to "
                          "add name %.*s, shape = %s",
                          shape_text(a->whole.ndim, a->whole.dims, x),
                          (int)MIN(b->name_len, 1000u), b->name,
                          shape_text(b->whole.ndim, b->whole.dims, y));
    if (a->t->dtype != b->t->dtype)
        return status_set(st, MST_INTERNAL,
                          "Mismatching types: existing type = %s, trying to "
                          "add name %.*s, type = %s",
                          dtype_name(a->t->dtype), (int)MIN(b->name_len, 1000u),
                          b->name, dtype_name(b->t->dtype));
    return MST_OK;
}

static bool same_name(const struct v1_slice *a, const struct v1_slice *b)
{
    return !table_compare(a->name, a->name_len, b->name, b->name_len);
}

enum mst_code v1_writer_add(struct v1_writer *w, const char *name,
                            size_t name_len, const struct shape *whole,
                            const struct slice *slice, const struct tensor *t,
                            struct status *st)
{
    struct v1_slice s = { .name = name_len ? name : "",
                          .name_len = name_len,
                          .whole = *whole,
                          .slice = *slice,
                          .t = t };
    const struct v1_slice *before = w->count ? &w->slices[w->count - 1] : NULL;
    enum mst_code rc;

    if (!field_of(t->dtype))
        return status_set(st, MST_UNIMPLEMENTED,
                          "Saving data type %s not yet supported",
                          dtype_name(t->dtype));
    rc = check_size(t, st);
    if (!rc && before && same_name(before, &s))
        rc = check_alike(before, &s, st);
    if (rc)
        return rc;
    slice_put_key(&s.key, s.name, s.name_len, slice);
    *MEM_PUSH(w->slices, w->count, w->room) = s;
    return MST_OK;
}

/* ---- writing ---- */

static void put_shape(struct pb_out *o, uint32_t field, const struct shape *s)
{
    struct pb_out shape;

    pb_out_init(&shape);
    for (int i = 0; i < s->ndim; i++) {
        struct pb_out dim;

        pb_out_init(&dim);
        if (s->dims[i])
            pb_put_uint(&dim, 1, (uint64_t)s->dims[i]);
        pb_put_bytes(&shape, 2, dim.data, dim.len);
        pb_out_done(&dim);
    }
    pb_put_bytes(o, field, shape.data, shape.len);
    pb_out_done(&shape);
}

static void put_slice(struct pb_out *o, uint32_t field, const struct slice *s)
{
    struct pb_out slice;

    pb_out_init(&slice);
    slice_put_proto(&slice, s);
    pb_put_bytes(o, field, slice.data, slice.len);
    pb_out_done(&slice);
}

/* The tensor of which slices[*at] is the first slice; moves on to the next. */
static void put_tensor(struct pb_out *meta, const struct v1_writer *w, int *at)
{
    const struct v1_slice *first = &w->slices[*at];
    struct pb_out tensor;

    pb_out_init(&tensor);
    pb_put_bytes(&tensor, V1_TENSOR_NAME, first->name, first->name_len);
    put_shape(&tensor, V1_TENSOR_SHAPE, &first->whole);
    pb_put_uint(&tensor, V1_TENSOR_TYPE, first->t->dtype);
    for (; *at < w->count && same_name(first, &w->slices[*at]); (*at)++)
        put_slice(&tensor, V1_TENSOR_SLICE, &w->slices[*at].slice);
    pb_put_bytes(meta, V1_META_TENSOR, tensor.data, tensor.len);
    pb_out_done(&tensor);
}

static enum mst_code write_meta(const struct v1_writer *w,
                                struct table_writer *table, struct status *st)
{
    static const uint8_t producer_1[] = { 0x08, 0x01 };
    struct pb_out meta, all;
    enum mst_code rc;

    pb_out_init(&meta);
    pb_out_init(&all);
    for (int at = 0; at < w->count;)
        put_tensor(&meta, w, &at);
    pb_put_bytes(&meta, V1_META_VERSIONS, producer_1, sizeof(producer_1));
    pb_put_bytes(&all, V1_META, meta.data, meta.len);
    rc = table_writer_add(table, "", 0, all.data, all.len, st);
    pb_out_done(&meta);
    pb_out_done(&all);
    return rc;
}

static enum mst_code write_slice(const struct v1_slice *s,
                                 struct table_writer *table, struct status *st)
{
    struct pb_out values, data, all;
    enum mst_code rc;

    pb_out_init(&values);
    pb_out_init(&data);
    pb_out_init(&all);
    put_values(&values, s->t);
    pb_put_bytes(&data, V1_SLICE_NAME, s->name, s->name_len);
    put_slice(&data, V1_SLICE_SLICE, &s->slice);
    pb_put_bytes(&data, V1_SLICE_DATA, values.data, values.len);
    pb_out_done(&values);
    pb_put_bytes(&all, V1_DATA, data.data, data.len);
    pb_out_done(&data);
    rc =
        table_writer_add(table, s->key.data, s->key.len, all.data, all.len, st);
    pb_out_done(&all);
    return rc;
}

static int by_key(const void *a, const void *b)
{
    const struct v1_slice *const *x = a, *const *y = b;

    return table_compare((*x)->key.data, (*x)->key.len, (*y)->key.data,
                         (*y)->key.len);
}

static enum mst_code write_all(const struct v1_writer *w, struct file_out *out,
                               struct status *st)
{
    const struct v1_slice **order = mem_array((size_t)w->count, sizeof(*order));
    struct table_writer table;
    enum mst_code rc;

    for (int i = 0; i < w->count; i++)
        order[i] = &w->slices[i];
    qsort(order, (size_t)w->count, sizeof(*order), by_key);
    table_writer_init(&table, out);
    rc = write_meta(w, &table, st);
    for (int i = 0; i < w->count && !rc; i++) {
        if (i && !by_key(&order[i - 1], &order[i]))
            rc = status_set(
                st, MST_INVALID_ARGUMENT, "Adding duplicate key: %.*s",
                (int)MIN(order[i]->name_len, 1000u), order[i]->name);
        else
            rc = write_slice(order[i], &table, st);
    }
    if (!rc)
        rc = table_writer_finish(&table, st);
    table_writer_done(&table);
    mem_free(order);
    return rc;
}

enum mst_code v1_writer_write(struct v1_writer *w, const char *path,
                              struct status *st)
{
    struct file_out out = FILE_OUT_INIT;
    enum mst_code rc;

    rc = file_make_dirs(path, st);
    if (!rc)
        rc = file_out_open(&out, path, st);
    if (!rc)
        rc = write_all(w, &out, st);
    if (!rc)
        rc = file_out_commit(&out, st);
    if (!rc)
        file_sync_dir(path);
    file_out_abort(&out);
    return rc;
}
