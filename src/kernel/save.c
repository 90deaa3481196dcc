/*
 * Checkpoints: SaveV2, RestoreV2 and MergeV2Checkpoints, and the names of their
 * shards. The files are store/'s matter; here are the checks of the inputs,
 * with TensorFlow's words.
 *
 * These ops do file I/O and carry OP_BLOCKING. A save reads its tensors while
 * other steps may be updating the variables that they are: as in TensorFlow it
 * gets each value as it is at some moment.
 *
 * The ops of the older format (Save, Restore …) are in kernel/save_v1.c; as in
 * TensorFlow, RestoreV2 reads files of that format too.
 */
#include <stdio.h>

#include "base/mem.h"
#include "kernel/types.h"
#include "store/bundle_load.h"
#include "store/bundle_merge.h"
#include "store/bundle_writer.h"
#include "store/v1_reader.h"

enum { PREFIX, NAMES, SPECS, TENSORS };

static enum mst_code path_of(struct op_ctx *c, const struct str *s, char **ret)
{
    return file_path(s->len ? s->data : "", s->len, ret, c->st);
}

/* What SaveV2 and RestoreV2 check alike. */
static enum mst_code check_inputs(struct op_ctx *c)
{
    const struct tensor *names = op_in(c, NAMES), *specs = op_in(c, SPECS);
    char a[SHAPE_TEXT_MAX], b[SHAPE_TEXT_MAX];

    if (op_in(c, PREFIX)->count != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input prefix should have a single element, got %lld "
                       "instead.",
                       (long long)op_in(c, PREFIX)->count);
    if (names->ndim != 1 || specs->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input tensor_names and shape_and_slices should be an "
                       "1-D tensors, got %s and %s instead.",
                       tensor_shape_text(names, a),
                       tensor_shape_text(specs, b));
    if (names->count != specs->count)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "tensor_names and shape_and_slices have different "
                       "number of elements: %lld vs. %lld",
                       (long long)names->count, (long long)specs->count);
    return MST_OK;
}

static enum mst_code check_cancelled(struct op_ctx *c)
{
    if (cancel_is_set(c->step->cancel))
        return op_fail(c, MST_CANCELLED, "The step was cancelled");
    return MST_OK;
}

/* ---- SaveV2 ---- */

static enum mst_code save_one(struct op_ctx *c, struct bundle_writer *w, int i)
{
    const struct str *name = tensor_str(op_in(c, NAMES), i);
    const struct str *spec = tensor_str(op_in(c, SPECS), i);
    const struct tensor *t = op_in(c, TENSORS + i);
    char text[SHAPE_TEXT_MAX];
    struct shape whole, shape;
    struct slice slice;
    enum mst_code rc;

    if (!spec->len)
        return bundle_writer_add(w, name->data, name->len, t, c->st);
    rc = slice_parse_spec(spec->data, spec->len, &whole, &slice, &shape, c->st);
    if (rc)
        return rc;
    if (shape.ndim != t->ndim ||
        memcmp(shape.dims, t->dims, (size_t)t->ndim * sizeof(t->dims[0])))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Slice in shape_and_slice specification does not match "
                       "the shape of the tensor to  save: %.*s, tensor: %s",
                       (int)spec->len, spec->data, tensor_shape_text(t, text));
    return bundle_writer_add_slice(w, name->data, name->len, &whole, &slice, t,
                                   c->st);
}

static enum mst_code save_v2(struct op_ctx *c)
{
    int count = c->node->in_count - TENSORS;
    struct bundle_writer w;
    enum mst_code rc;
    char *prefix;

    rc = check_inputs(c);
    if (rc)
        return rc;
    if (op_in(c, NAMES)->count != count)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Got %lld tensor names but %d tensors.",
                       (long long)op_in(c, NAMES)->count, count);
    rc = path_of(c, tensor_str(op_in(c, PREFIX), 0), &prefix);
    if (rc)
        return rc;
    rc = bundle_writer_open(&w, prefix, c->st);
    mem_free(prefix);
    if (rc)
        return rc;
    for (int i = 0; i < count && !rc; i++) {
        rc = check_cancelled(c);
        if (!rc)
            rc = save_one(c, &w, i);
    }
    if (!rc)
        rc = bundle_writer_finish(&w, c->st);
    bundle_writer_done(&w);
    return rc;
}

const struct op_def def_save_v2 = {
    .name = "SaveV2",
    .in = "prefix: string, tensor_names: string, shape_and_slices: string, "
          "tensors: dtypes",
    .attr = "dtypes: list(type) >= 1",
    .flags = OP_STATEFUL | OP_BLOCKING,
    .kernel = (const struct op_kernel[]){ { DT_ANY, save_v2 }, { 0 } },
};

/* ---- RestoreV2 ---- */

static enum mst_code restore(struct op_ctx *c, struct bundle_reader *r)
{
    int count = c->node->out_count;
    struct bundle_read *reads = mem_array((size_t)count, sizeof(*reads));
    enum mst_code rc;

    for (int i = 0; i < count; i++) {
        const struct str *name = tensor_str(op_in(c, NAMES), i);
        const struct str *spec = tensor_str(op_in(c, SPECS), i);

        reads[i] =
            (struct bundle_read){ .name = name->data,
                                  .name_len = name->len,
                                  .spec = spec->data,
                                  .spec_len = spec->len,
                                  .dtype = dtype_base(c->node->out_types[i]) };
    }
    rc = bundle_load(r, reads, count, c->node->env->pool, c->st);
    for (int i = 0; i < count && !rc; i++)
        tensor_move(op_out(c, i), &reads[i].out);
    mem_free(reads);
    return rc;
}

/* What is no V2 checkpoint is taken for one of the older format. */
static enum mst_code restore_v1(struct op_ctx *c, const char *pattern)
{
    struct v1_reader r;
    enum mst_code rc;

    rc = v1_reader_open(&r, pattern, c->st);
    if (rc)
        return rc;
    for (int i = 0; i < c->node->out_count && !rc; i++) {
        const struct str *name = tensor_str(op_in(c, NAMES), i);
        const struct str *spec = tensor_str(op_in(c, SPECS), i);

        rc = v1_reader_read(&r, name->data, name->len, spec->data, spec->len,
                            dtype_base(c->node->out_types[i]), op_out(c, i),
                            c->st);
    }
    v1_reader_close(&r);
    return rc;
}

static enum mst_code restore_v2(struct op_ctx *c)
{
    struct bundle_reader r;
    char *prefix, *index;
    enum mst_code rc;

    if (op_in(c, NAMES)->count != c->node->out_count)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Got %lld tensor names, but %d expected dtypes.",
                       (long long)op_in(c, NAMES)->count, c->node->out_count);
    rc = check_inputs(c);
    if (!rc)
        rc = path_of(c, tensor_str(op_in(c, PREFIX), 0), &prefix);
    if (rc)
        return rc;
    index = bundle_index_name(prefix);
    if (!file_exists(index)) {
        rc = restore_v1(c, prefix);
    } else {
        rc = bundle_reader_open(&r, prefix, c->st);
        if (!rc) {
            rc = restore(c, &r);
            bundle_reader_close(&r);
        }
    }
    mem_free(index);
    mem_free(prefix);
    return rc;
}

const struct op_def def_restore_v2 = {
    .name = "RestoreV2",
    .in = "prefix: string, tensor_names: string, shape_and_slices: string",
    .out = "tensors: dtypes",
    .attr = "dtypes: list(type) >= 1",
    .flags = OP_STATEFUL | OP_BLOCKING,
    .kernel = (const struct op_kernel[]){ { DT_ANY, restore_v2 }, { 0 } },
};

/* ---- MergeV2Checkpoints ---- */

static enum mst_code merge_init(struct op_node *n, struct status *st)
{
    struct bundle_merge_options *o =
        ARENA_NEW(n->arena, struct bundle_merge_options);

    (void)st;
    o->delete_dirs = op_attr_bool(n, "delete_old_dirs");
    o->allow_missing = op_attr_bool(n, "allow_missing_files");
    n->state = o;
    return MST_OK;
}

static enum mst_code merge_v2(struct op_ctx *c)
{
    const struct bundle_merge_options *options = c->node->state;
    const struct tensor *from = op_in(c, 0), *to = op_in(c, 1);
    char text[SHAPE_TEXT_MAX], **prefixes, *merged = NULL;
    enum mst_code rc = MST_OK;
    int count = (int)from->count;

    if (from->ndim != 1 || from->count > INT32_MAX)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input checkpoint_prefixes should be an 1-D tensor, got "
                       "%s instead.",
                       tensor_shape_text(from, text));
    if (to->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input destination_prefix should be a scalar tensor, "
                       "got %s instead.",
                       tensor_shape_text(to, text));
    prefixes = mem_array((size_t)count, sizeof(*prefixes));
    for (int i = 0; i < count && !rc; i++)
        rc = path_of(c, tensor_str(from, i), &prefixes[i]);
    if (!rc)
        rc = path_of(c, tensor_str(to, 0), &merged);
    if (!rc)
        rc = bundle_merge(prefixes, count, merged, *options, c->st);
    for (int i = 0; i < count; i++)
        mem_free(prefixes[i]);
    mem_free(prefixes);
    mem_free(merged);
    return rc;
}

const struct op_def def_merge_v2_checkpoints = {
    .name = "MergeV2Checkpoints",
    .in = "checkpoint_prefixes: string, destination_prefix: string",
    .attr = "delete_old_dirs: bool = true; allow_missing_files: bool = false",
    .flags = OP_STATEFUL | OP_BLOCKING,
    .init = merge_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, merge_v2 }, { 0 } },
};

/* ---- names of shards ---- */

static enum mst_code check_scalars(struct op_ctx *c, const char *const *names)
{
    char text[SHAPE_TEXT_MAX];

    for (int i = 0; i < c->node->in_count; i++)
        if (op_in(c, i)->ndim)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "%s must be a scalar, got shape %s", names[i],
                           tensor_shape_text(op_in(c, i), text));
    return op_out_new(c, 0, 0, NULL);
}

/* The base name with what snprintf() made of the numbers after it. */
static void set_name(struct op_ctx *c, const char *suffix)
{
    const struct str *base = tensor_str(op_in(c, 0), 0);
    struct str *out = tensor_str(op_out(c, 0), 0);
    size_t len = strlen(suffix);

    out->data = mem_grow(NULL, base->len + len, 1);
    out->len = base->len + len;
    if (base->len)
        memcpy(out->data, base->data, base->len);
    memcpy(out->data + base->len, suffix, len);
}

static enum mst_code sharded_filename(struct op_ctx *c)
{
    static const char *const names[] = { "basename", "shard", "num_shards" };
    enum mst_code rc = check_scalars(c, names);
    char suffix[48];

    if (rc)
        return rc;
    snprintf(suffix, sizeof(suffix), "-%05d-of-%05d",
             (int)tensor_int(op_in(c, 1), 0), (int)tensor_int(op_in(c, 2), 0));
    set_name(c, suffix);
    return MST_OK;
}

const struct op_def def_sharded_filename = {
    .name = "ShardedFilename",
    .in = "basename: string, shard: int32, num_shards: int32",
    .out = "filename: string",
    .kernel = (const struct op_kernel[]){ { DT_ANY, sharded_filename }, { 0 } },
};

static enum mst_code sharded_filespec(struct op_ctx *c)
{
    static const char *const names[] = { "basename", "num_shards" };
    enum mst_code rc = check_scalars(c, names);
    char suffix[48];

    if (rc)
        return rc;
    snprintf(suffix, sizeof(suffix), "-\?\?\?\?\?-of-%05d",
             (int)tensor_int(op_in(c, 1), 0));
    set_name(c, suffix);
    return MST_OK;
}

const struct op_def def_sharded_filespec = {
    .name = "ShardedFilespec",
    .in = "basename: string, num_shards: int32",
    .out = "filename: string",
    .kernel = (const struct op_kernel[]){ { DT_ANY, sharded_filespec }, { 0 } },
};
