#include "store/v1_reader.h"

#include "base/mem.h"
#include "store/glob.h"
#include "store/table_writer.h"
#include "store/v1_writer.h"
#include "tensor/proto.h"

static int shown(size_t len)
{
    return (int)MIN(len, 1000u);
}

/* ---- the list of tensors ---- */

static enum mst_code damaged(const struct table_reader *t, const char *what,
                             struct status *st)
{
    return status_set(st, MST_DATA_LOSS, "%s: %s", what, t->file.path);
}

static struct v1_tensor *tensor_under(struct v1_reader *r,
                                      const struct pb_field *name)
{
    struct v1_tensor *t = map_get(&r->tensors, name->data, name->len);

    if (!t) {
        t = MEM_NEW(struct v1_tensor);
        t->shape.ndim = -1; /* as yet */
        map_put(&r->tensors, name->data, name->len, t);
    }
    return t;
}

static enum mst_code register_tensor(struct v1_reader *r,
                                     const struct pb_field *name,
                                     const struct shape *shape, int dtype,
                                     struct v1_tensor **ret, struct status *st)
{
    struct v1_tensor *t = tensor_under(r, name);
    char a[SHAPE_TEXT_MAX], b[SHAPE_TEXT_MAX];

    if (t->shape.ndim < 0) {
        t->shape = *shape;
        t->dtype = dtype;
    } else if (t->shape.ndim != shape->ndim ||
               memcmp(t->shape.dims, shape->dims,
                      (size_t)shape->ndim * sizeof(shape->dims[0]))) {
        return status_set(st, MST_INTERNAL,
                          "Incompatible tensor shapes detected for tensor "
                          "%.*s: existing = %s, new = %s",
                          shown(name->len), (const char *)name->data,
                          shape_text(t->shape.ndim, t->shape.dims, a),
                          shape_text(shape->ndim, shape->dims, b));
    } else if (t->dtype != dtype) {
        return status_set(st, MST_INTERNAL,
                          "Incompatible tensor types detected for tensor %.*s: "
                          "existing = %s, new = %s",
                          shown(name->len), (const char *)name->data,
                          dtype_name(t->dtype), dtype_name(dtype));
    }
    *ret = t;
    return MST_OK;
}

/* SavedSliceMeta: a tensor and its slices in file i. */
static enum mst_code read_tensor(struct v1_reader *r, int i, struct pb_in in,
                                 struct status *st)
{
    struct pb_field f, name = { .data = (const uint8_t *)"" };
    struct pb_in again = in;
    struct shape shape = { 0 };
    struct v1_tensor *t;
    enum mst_code rc;
    int64_t count;
    int dtype = 0;

    while (pb_next(&in, &f)) {
        if (f.number == V1_TENSOR_NAME && f.wire == PB_LEN)
            name = f;
        else if (f.number == V1_TENSOR_TYPE)
            dtype = (int32_t)field_number(&f);
        else if (f.number == V1_TENSOR_SHAPE && f.wire == PB_LEN) {
            rc = shape_from_proto(&shape, f.data, f.len, st);
            if (rc)
                return rc;
        }
    }
    if (in.bad || shape.ndim < 0 ||
        !shape_count(shape.ndim, shape.dims, 1, &count))
        return damaged(&r->files[i], "bad description of a tensor", st);
    rc = register_tensor(r, &name, &shape, dtype, &t, st);
    while (!rc && pb_next(&again, &f)) {
        struct v1_part part = { .file = i };

        if (f.number != V1_TENSOR_SLICE)
            continue;
        if (!slice_get_proto(field_message(&f), &part.slice) ||
            part.slice.ndim != shape.ndim)
            rc = damaged(&r->files[i], "bad description of a slice", st);
        else
            *MEM_PUSH(t->parts, t->count, t->room) = part;
    }
    return rc;
}

/* SavedTensorSlices with only its meta. */
static enum mst_code read_meta(struct v1_reader *r, int i, struct pb_in in,
                               struct status *st)
{
    enum mst_code rc = MST_OK;
    struct pb_field f, g;

    while (!rc && pb_next(&in, &f)) {
        struct pb_in meta = field_message(&f);

        while (f.number == V1_META && !rc && pb_next(&meta, &g))
            if (g.number == V1_META_TENSOR)
                rc = read_tensor(r, i, field_message(&g), st);
        if (!rc && meta.bad)
            rc = damaged(&r->files[i], "bad list of tensors", st);
    }
    if (!rc && in.bad)
        rc = damaged(&r->files[i], "bad list of tensors", st);
    return rc;
}

/* ---- opening ---- */

/* The next file; r->files has room for it. Takes it over. */
static enum mst_code add_file(struct v1_reader *r, struct file_in *in,
                              bool unchecked, struct status *st)
{
    struct table_reader *t = &r->files[r->file_count];
    char *path = mem_str(in->path);
    struct status cause = STATUS_INIT;
    struct table_iter it;
    enum mst_code rc;

    rc = table_reader_open(t, in, unchecked, &cause);
    if (rc)
        rc = status_set(st, rc,
                        "Unable to open table file %s: %s: %s: perhaps your "
                        "file is in a different file format and you need to "
                        "use a different restore operator?",
                        path, status_name(rc), cause.msg);
    mem_free(path);
    if (rc)
        return rc;
    r->file_count++;
    table_iter_init(&it, t);
    rc = table_iter_seek(&it, "", 0, st);
    if (!rc && (!table_iter_valid(&it) || it.in_block.key.len))
        rc = damaged(t, "failed to find the saved tensor slices", st);
    if (!rc)
        rc = read_meta(r, r->file_count - 1, table_iter_value(&it), st);
    table_iter_done(&it);
    return rc;
}

enum mst_code v1_reader_open(struct v1_reader *r, const char *pattern,
                             struct status *st)
{
    struct glob_list found = { 0 };
    enum mst_code rc = MST_OK;
    struct file_in in;

    *r = (struct v1_reader){ .pattern = mem_str(pattern) };
    map_init(&r->tensors);
    glob_add(&found, pattern);
    glob_sort(&found);
    if (!found.count)
        rc = status_set(st, MST_NOT_FOUND,
                        "Unsuccessful TensorSliceReader constructor: Failed to "
                        "find any matching files for %s",
                        pattern);
    r->files = mem_array(found.count, sizeof(*r->files));
    for (size_t i = 0; i < found.count && !rc; i++) {
        rc = file_in_open(&in, found.paths[i], st);
        if (!rc)
            rc = add_file(r, &in, false, st);
    }
    glob_done(&found);
    if (rc)
        v1_reader_close(r);
    return rc;
}

enum mst_code v1_reader_open_memory(struct v1_reader *r, const void *data,
                                    size_t len, bool unchecked,
                                    struct status *st)
{
    struct file_in in;
    enum mst_code rc;

    *r = (struct v1_reader){ .pattern = mem_str("memory") };
    map_init(&r->tensors);
    r->files = mem_array(1, sizeof(*r->files));
    file_in_memory(&in, "memory", data, len);
    rc = add_file(r, &in, unchecked, st);
    if (rc)
        v1_reader_close(r);
    return rc;
}

void v1_reader_close(struct v1_reader *r)
{
    struct map_slot *slot;

    for (size_t at = 0; (slot = map_next(&r->tensors, &at));) {
        struct v1_tensor *t = slot->value;

        mem_free(t->parts);
        mem_free(t);
    }
    map_done(&r->tensors);
    for (int i = 0; i < r->file_count; i++)
        table_reader_close(&r->files[i]);
    mem_free(r->files);
    mem_free(r->pattern);
    *r = (struct v1_reader){ 0 };
}

/* ---- reading ---- */

/* What is asked for. */
struct want {
    const struct v1_tensor *t;
    const char *name;
    size_t name_len;
    struct slice slice; /* resolved */
    struct tensor *out;
};

/* The TensorProto in SavedTensorSlices { data { data } }. */
static bool find_values(struct pb_in in, struct pb_in *ret)
{
    struct pb_field f, g;
    bool found = false;

    while (pb_next(&in, &f)) {
        struct pb_in data = field_message(&f);

        while (f.number == V1_DATA && pb_next(&data, &g))
            if (g.number == V1_SLICE_DATA && g.wire == PB_LEN) {
                *ret = pb_in(g.data, g.len);
                found = true;
            }
        if (data.bad)
            return false;
    }
    return found && !in.bad;
}

/* TensorProto's type and shape. */
static void put_head(struct pb_out *o, int dtype, const struct slice *from)
{
    struct pb_out shape, dim;

    pb_out_init(&shape);
    for (int i = 0; i < from->ndim; i++) {
        pb_out_init(&dim);
        pb_put_uint(&dim, 1, (uint64_t)from->length[i]);
        pb_put_bytes(&shape, 2, dim.data, dim.len);
        pb_out_done(&dim);
    }
    pb_put_uint(o, 1, (uint64_t)dtype);
    pb_put_bytes(o, 2, shape.data, shape.len);
    pb_out_done(&shape);
}

/*
 * The values stand in a TensorProto without type and shape; with these it is
 * whole. Every element has a byte at least, and so the file bounds what is
 * allocated.
 */
static enum mst_code parse_values(int dtype, const struct slice *from,
                                  const struct table_reader *file,
                                  struct pb_in values, struct tensor *ret,
                                  struct status *st)
{
    size_t len = cursor_left(&values);
    struct buffer *message;
    struct pb_out head;
    enum mst_code rc;

    if (slice_count(from) > (int64_t)len)
        return damaged(file, "a slice has fewer values than elements", st);
    pb_out_init(&head);
    put_head(&head, dtype, from);
    message = buffer_new(head.len + len);
    if (!message) {
        pb_out_done(&head);
        return status_set(st, MST_RESOURCE_EXHAUSTED,
                          "No memory for %zu bytes of values: %s", len,
                          file->file.path);
    }
    /* After the values: should they name a type, too, ours counts. */
    if (len)
        memcpy(message->data, values.at, len);
    memcpy(message->data + len, head.data, head.len);
    rc = tensor_from_proto(ret, message->data, head.len + len, message, st);
    if (!rc && (ret->dtype != dtype || ret->count != slice_count(from))) {
        tensor_unref(ret);
        rc = damaged(file, "a slice is not what it is said to be", st);
    }
    buffer_unref(message);
    pb_out_done(&head);
    return rc;
}

/* What part i, which is `from`, has of it. */
static enum mst_code read_part(struct v1_reader *r, const struct want *want,
                               int i, const struct slice *from,
                               struct status *st)
{
    const struct v1_part *part = &want->t->parts[i];
    const struct table_reader *file = &r->files[part->file];
    struct tensor stored = { 0 };
    struct bytes key = { 0 };
    struct slice_walk walk;
    struct table_iter it;
    struct pb_in values;
    enum mst_code rc;

    slice_put_key(&key, want->name, want->name_len, &part->slice);
    table_iter_init(&it, file);
    rc = table_iter_seek(&it, key.data, key.len, st);
    if (!rc && (!table_iter_valid(&it) ||
                table_compare(it.in_block.key.data, it.in_block.key.len,
                              key.data, key.len) ||
                !find_values(table_iter_value(&it), &values)))
        rc = damaged(file, "a slice that is listed is missing", st);
    if (!rc)
        rc = parse_values(want->t->dtype, from, file, values, &stored, st);
    slice_walk_init(&walk, from, &want->slice);
    while (!rc && slice_walk_next(&walk))
        tensor_copy_elems(want->out, walk.to, &stored, walk.from, walk.run);
    tensor_unref(&stored);
    table_iter_done(&it);
    bytes_done(&key);
    return rc;
}

/* The parts that have something of it, and all of it together. */
static enum mst_code read_parts(struct v1_reader *r, const struct want *want,
                                struct status *st)
{
    const struct v1_tensor *t = want->t;
    int64_t missing = slice_count(&want->slice);
    struct slice from, both;
    char text[SLICE_TEXT_MAX];

    for (int i = 0; i < t->count && missing > 0; i++) {
        enum mst_code rc = slice_resolve(&t->parts[i].slice, t->shape.ndim,
                                         t->shape.dims, &from, st);

        if (!rc && !slice_intersect(&from, &want->slice, &both))
            continue;
        if (!rc)
            rc = read_part(r, want, i, &from, st);
        if (rc)
            return rc;
        missing -= slice_count(&both);
    }
    if (missing)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Does not have sufficient slices for partitioned "
                          "tensor %.*s to restore in slice_spec: %s",
                          shown(want->name_len), want->name,
                          slice_text(&want->slice, text));
    return MST_OK;
}

/* Refuses more elements than the files could have. */
static enum mst_code make(struct v1_reader *r, const struct want *want,
                          struct status *st)
{
    uint64_t most = 0;

    for (int i = 0; i < r->file_count; i++)
        most += r->files[i].file.size * 22; /* if it is all compressed */
    if ((uint64_t)slice_count(&want->slice) > most)
        return status_set(st, MST_DATA_LOSS,
                          "The files %s are too short for a tensor of theirs",
                          r->pattern);
    return tensor_new(want->out, (enum dtype)want->t->dtype, want->slice.ndim,
                      want->slice.length, st);
}

static enum mst_code parse_spec(struct want *want, const char *spec,
                                size_t spec_len, struct status *st)
{
    const struct shape *have = &want->t->shape;
    struct slice asked = slice_all(have->ndim);
    char a[SHAPE_TEXT_MAX], b[SHAPE_TEXT_MAX];
    struct shape whole, shape;
    enum mst_code rc;

    if (spec_len) {
        rc = slice_parse_spec(spec, spec_len, &whole, &asked, &shape, st);
        if (rc)
            return rc;
        if (whole.ndim != have->ndim ||
            memcmp(whole.dims, have->dims,
                   (size_t)whole.ndim * sizeof(whole.dims[0])))
            return status_set(st, MST_INVALID_ARGUMENT,
                              "Shape in shape_and_slice spec does not match "
                              "the shape in the save file: %s, save file "
                              "shape: %s",
                              shape_text(whole.ndim, whole.dims, a),
                              shape_text(have->ndim, have->dims, b));
    }
    return slice_resolve(&asked, have->ndim, have->dims, &want->slice, st);
}

enum mst_code v1_reader_read(struct v1_reader *r, const char *name,
                             size_t name_len, const char *spec, size_t spec_len,
                             enum dtype dtype, struct tensor *ret,
                             struct status *st)
{
    struct tensor out = { 0 };
    struct want want = { .name = name_len ? name : "",
                         .name_len = name_len,
                         .out = &out };
    enum mst_code rc;

    want.t = map_get(&r->tensors, want.name, name_len);
    if (!want.t)
        return status_set(st, MST_NOT_FOUND,
                          "Tensor name \"%.*s\" not found in checkpoint files "
                          "%s",
                          shown(name_len), want.name, r->pattern);
    if (want.t->dtype != (int)dtype)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Expected to restore a tensor of type %s, got a "
                          "tensor of type %s instead: tensor_name = %.*s",
                          dtype_name((int)dtype), dtype_name(want.t->dtype),
                          shown(name_len), want.name);
    if (dtype != DT_STRING && !dtype_is_plain(dtype))
        return status_set(st, MST_UNIMPLEMENTED,
                          "Restoring data type %s not yet supported",
                          dtype_name((int)dtype));
    rc = parse_spec(&want, spec, spec_len, st);
    if (!rc)
        rc = make(r, &want, st);
    if (!rc)
        rc = read_parts(r, &want, st);
    if (rc)
        tensor_unref(&out);
    else
        *ret = out;
    return rc;
}
