/*
 * Files as strings: ReadFile, WriteFile, MatchingFiles. They block, and read
 * and write what the process may, as TensorFlow's do.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "kernel/types.h"
#include "store/file.h"
#include "store/glob.h"

static enum mst_code check_scalar(struct op_ctx *c, int i, const char *what)
{
    char text[SHAPE_TEXT_MAX];

    if (!op_in(c, i)->ndim)
        return MST_OK;
    return op_fail(c, MST_INVALID_ARGUMENT,
                   "%s tensor must be scalar, but had shape: %s", what,
                   tensor_shape_text(op_in(c, i), text));
}

static enum mst_code path_of(struct op_ctx *c, int in, int64_t at, char **ret)
{
    const struct str *s = tensor_str(op_in(c, in), at);

    return file_path(s->len ? s->data : "", s->len, ret, c->st);
}

/* ---- ReadFile ---- */

static enum mst_code read_into(struct op_ctx *c, const struct file_in *in)
{
    struct str *out = tensor_str(op_out(c, 0), 0);
    enum mst_code rc;

    if (!in->size)
        return MST_OK;
    out->data = malloc((size_t)in->size);
    if (!out->data)
        return op_fail(c, MST_RESOURCE_EXHAUSTED,
                       "No memory for the %llu bytes of %s",
                       (unsigned long long)in->size, in->path);
    rc = file_in_read(in, 0, out->data, (size_t)in->size, c->st);
    if (!rc)
        out->len = (size_t)in->size;
    return rc;
}

static enum mst_code read_file(struct op_ctx *c)
{
    struct file_in in;
    enum mst_code rc;
    char *path;

    rc = check_scalar(c, 0, "Input filename");
    if (!rc)
        rc = path_of(c, 0, 0, &path);
    if (rc)
        return rc;
    rc = file_in_open(&in, path, c->st);
    mem_free(path);
    if (rc)
        return rc;
    rc = op_out_new(c, 0, 0, NULL);
    if (!rc)
        rc = read_into(c, &in);
    file_in_close(&in);
    return rc;
}

const struct op_def def_read_file = {
    .name = "ReadFile",
    .in = "filename: string",
    .out = "contents: string",
    .flags = OP_BLOCKING,
    .kernel = (const struct op_kernel[]){ { DT_ANY, read_file }, { 0 } },
};

/* ---- WriteFile ---- */

static enum mst_code write_file(struct op_ctx *c)
{
    const struct str *contents;
    enum mst_code rc;
    char *path;

    rc = check_scalar(c, 0, "Input filename");
    if (!rc)
        rc = check_scalar(c, 1, "Contents");
    if (!rc)
        rc = path_of(c, 0, 0, &path);
    if (rc)
        return rc;
    contents = tensor_str(op_in(c, 1), 0);
    rc = file_make_dirs(path, c->st);
    if (!rc)
        rc = file_write(path, contents->data, contents->len, c->st);
    mem_free(path);
    return rc;
}

const struct op_def def_write_file = {
    .name = "WriteFile",
    .in = "filename: string, contents: string",
    .flags = OP_STATEFUL | OP_BLOCKING,
    .kernel = (const struct op_kernel[]){ { DT_ANY, write_file }, { 0 } },
};

/* ---- MatchingFiles ---- */

static enum mst_code matching_files(struct op_ctx *c)
{
    const struct tensor *patterns = op_in(c, 0);
    struct glob_list found = { 0 };
    char text[SHAPE_TEXT_MAX];
    enum mst_code rc = MST_OK;

    if (patterns->ndim > 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input patterns tensor must be scalar or vector, but "
                       "had shape: %s",
                       tensor_shape_text(patterns, text));
    for (int64_t i = 0; i < patterns->count && !rc; i++) {
        char *pattern;

        rc = path_of(c, 0, i, &pattern);
        if (rc)
            break;
        glob_add(&found, pattern);
        mem_free(pattern);
    }
    glob_sort(&found);
    if (!rc)
        rc = op_out_new(c, 0, 1, (int64_t[]){ (int64_t)found.count });
    for (size_t i = 0; i < found.count && !rc; i++)
        str_set(tensor_str(op_out(c, 0), (int64_t)i), found.paths[i],
                strlen(found.paths[i]));
    glob_done(&found);
    return rc;
}

const struct op_def def_matching_files = {
    .name = "MatchingFiles",
    .in = "pattern: string",
    .out = "filenames: string",
    .flags = OP_BLOCKING,
    .kernel = (const struct op_kernel[]){ { DT_ANY, matching_files }, { 0 } },
};
