/*
 * Checkpoints of TensorFlow's first format: Save, SaveSlices, Restore and
 * RestoreSlice. A Saver uses them only when it is told to (write_version=V1);
 * they are here for programs and files of that time.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "kernel/types.h"
#include "store/table_writer.h"
#include "store/v1_reader.h"
#include "store/v1_writer.h"

static enum mst_code path_of(struct op_ctx *c, const char *what, char **ret)
{
    const struct tensor *t = op_in(c, 0);

    if (t->count != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input 0 (%s) must be a string scalar; got a tensor of "
                       "%lldelements",
                       what, (long long)t->count);
    return file_path(tensor_str(t, 0)->len ? tensor_str(t, 0)->data : "",
                     tensor_str(t, 0)->len, ret, c->st);
}

/* ---- Save, SaveSlices ---- */

/* fixed: how many inputs come before the tensors. */
static enum mst_code check_save(struct op_ctx *c, int fixed)
{
    int64_t count = op_in(c, 1)->count;

    if (fixed > 2 && op_in(c, 2)->count != count)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Expected %lld elements for the tensor shapes and "
                       "slices but got %lld",
                       (long long)count, (long long)op_in(c, 2)->count);
    if (count + fixed != c->node->in_count)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Expected totally %lld inputs as input #1 (which is a "
                       "string tensor of saved names) contains %lld names, but "
                       "received %d inputs",
                       (long long)count + fixed, (long long)count,
                       c->node->in_count);
    return MST_OK;
}

static enum mst_code save_one(struct op_ctx *c, struct v1_writer *w, int fixed,
                              int i)
{
    const struct str *name = tensor_str(op_in(c, 1), i);
    const struct tensor *t = op_in(c, fixed + i);
    const struct str *spec = fixed > 2 ? tensor_str(op_in(c, 2), i) : NULL;
    struct shape whole = { .ndim = t->ndim }, shape;
    struct slice slice = slice_all(t->ndim);
    char text[SHAPE_TEXT_MAX];
    enum mst_code rc;

    memcpy(whole.dims, t->dims, sizeof(whole.dims));
    if (spec && spec->len) {
        rc = slice_parse_spec(spec->data, spec->len, &whole, &slice, &shape,
                              c->st);
        if (rc)
            return rc;
        if (shape.ndim != t->ndim ||
            memcmp(shape.dims, t->dims, (size_t)t->ndim * sizeof(t->dims[0])))
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Slice in shape_and_slice specification does not "
                           "match the shape of the tensor to  save: %.*s, "
                           "tensor: %s",
                           (int)spec->len, spec->data,
                           tensor_shape_text(t, text));
    }
    return v1_writer_add(w, name->data, name->len, &whole, &slice, t, c->st);
}

static int by_name(const void *a, const void *b, void *arg)
{
    int x = *(const int *)a, y = *(const int *)b;
    const struct str *s = tensor_str(arg, x), *t = tensor_str(arg, y);
    int r = table_compare(s->data, s->len, t->data, t->len);

    return r ? r : x - y;
}

static enum mst_code save_all(struct op_ctx *c, struct v1_writer *w, int fixed)
{
    int count = (int)op_in(c, 1)->count;
    int *order = mem_array((size_t)count, sizeof(*order));
    enum mst_code rc = MST_OK;

    for (int i = 0; i < count; i++)
        order[i] = i;
    qsort_r(order, (size_t)count, sizeof(*order), by_name, (void *)op_in(c, 1));
    for (int i = 0; i < count && !rc; i++)
        rc = save_one(c, w, fixed, order[i]);
    mem_free(order);
    return rc;
}

static enum mst_code save_with(struct op_ctx *c, int fixed)
{
    struct v1_writer w;
    enum mst_code rc;
    char *path;

    rc = path_of(c, "filename", &path);
    if (rc)
        return rc;
    v1_writer_init(&w);
    rc = check_save(c, fixed);
    if (!rc)
        rc = save_all(c, &w, fixed);
    if (!rc)
        rc = v1_writer_write(&w, path, c->st);
    v1_writer_done(&w);
    mem_free(path);
    return rc;
}

static enum mst_code save(struct op_ctx *c)
{
    return save_with(c, 2);
}

static enum mst_code save_slices(struct op_ctx *c)
{
    return save_with(c, 3);
}

const struct op_def def_save = {
    .name = "Save",
    .in = "filename: string, tensor_names: string, data: T",
    .attr = "T: list(type) >= 1",
    .flags = OP_STATEFUL | OP_BLOCKING,
    .kernel = (const struct op_kernel[]){ { DT_ANY, save }, { 0 } },
};

const struct op_def def_save_slices = {
    .name = "SaveSlices",
    .in = "filename: string, tensor_names: string, shapes_and_slices: string, "
          "data: T",
    .attr = "T: list(type) >= 1",
    .flags = OP_STATEFUL | OP_BLOCKING,
    .kernel = (const struct op_kernel[]){ { DT_ANY, save_slices }, { 0 } },
};

/* ---- Restore, RestoreSlice ---- */

static enum mst_code restore(struct op_ctx *c)
{
    const struct tensor *names = op_in(c, 1);
    const struct tensor *specs = c->node->in_count > 2 ? op_in(c, 2) : NULL;
    const struct str none = { 0 }, *spec, *name;
    struct v1_reader r;
    enum mst_code rc;
    char *pattern;

    if (names->count != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input 1 (tensor_name) must be a have at least 1 "
                       "elements");
    if (specs && specs->count != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Expected 1 element for the tensor shape and slice but "
                       "got %lld",
                       (long long)specs->count);
    rc = path_of(c, "file_pattern", &pattern);
    if (rc)
        return rc;
    name = tensor_str(names, 0);
    spec = specs ? tensor_str(specs, 0) : &none;
    rc = v1_reader_open(&r, pattern, c->st);
    if (!rc) {
        rc = v1_reader_read(&r, name->data, name->len, spec->data, spec->len,
                            dtype_base(c->node->out_types[0]), op_out(c, 0),
                            c->st);
        v1_reader_close(&r);
    }
    mem_free(pattern);
    return rc;
}

static const struct op_kernel restore_kernel[] = { { DT_ANY, restore }, { 0 } };

const struct op_def def_restore = {
    .name = "Restore",
    .in = "file_pattern: string, tensor_name: string",
    .out = "tensor: dt",
    .attr = "dt: type; preferred_shard: int = -1",
    .key = "dt",
    .flags = OP_STATEFUL | OP_BLOCKING,
    .kernel = restore_kernel,
};

const struct op_def def_restore_slice = {
    .name = "RestoreSlice",
    .in = "file_pattern: string, tensor_name: string, shape_and_slice: string",
    .out = "tensor: dt",
    .attr = "dt: type; preferred_shard: int = -1",
    .key = "dt",
    .flags = OP_STATEFUL | OP_BLOCKING,
    .kernel = restore_kernel,
};
