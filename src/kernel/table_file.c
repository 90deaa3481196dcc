/*
 * Static tables filled from a text file: a line is an entry; key and value are
 * the line's number, the whole line, or one of its columns.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "kernel/table.h"
#include "kernel/types.h"

enum { WHOLE_LINE = -2, LINE_NUMBER = -1 };

struct file_state {
    int64_t column[2]; /* of the key, of the value */
    int64_t vocab_size, offset;
    char delimiter;
};

static enum mst_code file_init(struct op_node *n, struct status *st)
{
    struct file_state *s = ARENA_NEW(n->arena, struct file_state);
    struct attr_text delimiter = op_attr_str(n, "delimiter");

    if (delimiter.len != 1)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "delimiter should be only 1 char");
    s->column[0] = op_attr_int(n, "key_index");
    s->column[1] = op_attr_int(n, "value_index");
    s->vocab_size = op_attr_int(n, "vocab_size");
    s->offset = op_attr_int(n, "offset");
    s->delimiter = delimiter.data[0];
    n->state = s;
    return MST_OK;
}

/* The file being read. */
struct reader {
    struct op_ctx *c;
    const struct file_state *s;
    const char *path;
    FILE *file;
    char *line;
    size_t len, room;
    int64_t number, position; /* of the line; bytes read so far */
    struct tensor cell[2];    /* one key, one value */
};

/* The next line without its end and without carriage returns; false when
 * there is none. */
static bool next_line(struct reader *r)
{
    ssize_t n = getline(&r->line, &r->room, r->file);
    size_t to = 0;

    if (n < 0)
        return false;
    r->position += n;
    for (ssize_t i = 0; i < n; i++)
        if (r->line[i] != '\r' && !(i == n - 1 && r->line[i] == '\n'))
            r->line[to++] = r->line[i];
    r->line[to] = '\0';
    r->len = to;
    return true;
}

static enum mst_code check_type(struct op_ctx *c, int64_t column, int dtype,
                                bool key)
{
    const char *what = key ? "Key" : "Value", *low = key ? "key" : "value";

    if (column == LINE_NUMBER && dtype != DT_INT64)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "%s index for line number requires table %s dtype of "
                       "int64, got %s",
                       what, low, dtype_name(dtype));
    if (column != WHOLE_LINE || dtype == DT_STRING)
        return MST_OK;
    if (key && dtype_is_int((enum dtype)dtype))
        return MST_OK;
    return op_fail(c, MST_INVALID_ARGUMENT,
                   key ? "%s index for whole line requires string or integer "
                         "table %s, got %s"
                       : "%s index for whole line requires table %s dtype of "
                         "string, got %s",
                   what, low, dtype_name(dtype));
}

static bool parse(struct tensor *t, const char *text)
{
    char *end;
    long long n = 0;
    double x = 0;

    errno = 0;
    if (dtype_is_int((enum dtype)t->dtype))
        n = strtoll(text, &end, 10);
    else
        x = strtod(text, &end);
    if (end == text || *end || errno == ERANGE)
        return false;
    switch (t->dtype) {
    case DT_INT32:
        *TENSOR_DATA(t, int32_t) = (int32_t)n;
        return n >= INT32_MIN && n <= INT32_MAX;
    case DT_INT64:
        *TENSOR_DATA(t, int64_t) = n;
        return true;
    case DT_FLOAT:
        *TENSOR_DATA(t, float) = (float)x;
        return true;
    case DT_DOUBLE:
        *TENSOR_DATA(t, double) = x;
        return true;
    default:
        return false;
    }
}

/* The text up to `end`, a place in the line that can be written. */
static enum mst_code read_text(struct reader *r, char *from, char *end,
                               struct tensor *t)
{
    enum mst_code rc = MST_OK;
    char cut = *end;

    if (t->dtype == DT_STRING) {
        str_set(tensor_str(t, 0), from, (size_t)(end - from));
        return MST_OK;
    }
    *end = '\0';
    if (!parse(t, from))
        rc = op_fail(r->c, MST_INVALID_ARGUMENT,
                     "Field %s in line %lld is not a valid %s.", from,
                     (long long)r->number, dtype_name(t->dtype));
    *end = cut;
    return rc;
}

/* A field of the line. */
static enum mst_code read_column(struct reader *r, int64_t column,
                                 struct tensor *t)
{
    char *from = r->line, *end = r->line + r->len, *to;
    int64_t have = 1;

    for (;; have++, from = to + 1) {
        to = memchr(from, r->s->delimiter, (size_t)(end - from));
        if (!to || have > column)
            break;
    }
    if (have <= column) {
        int64_t want = MAX(r->s->column[0], r->s->column[1]) + 1;

        return op_fail(r->c, MST_INVALID_ARGUMENT,
                       "Invalid number of columns in %s line %lld (%s) : "
                       "expected at least %lld got %lld",
                       r->path, (long long)r->number, r->line, (long long)want,
                       (long long)have);
    }
    return read_text(r, from, to ? to : end, t);
}

static enum mst_code read_cell(struct reader *r, int i)
{
    int64_t column = r->s->column[i];
    struct tensor *t = &r->cell[i];

    if (column >= 0)
        return read_column(r, column, t);
    if (column == WHOLE_LINE)
        return read_text(r, r->line, r->line + r->len, t);
    *TENSOR_DATA(t, int64_t) =
        (int64_t)((uint64_t)r->number + (uint64_t)r->s->offset);
    return MST_OK;
}

/* How many entries the file has, from its start to its start. */
static enum mst_code count_lines(struct reader *r, int64_t *ret)
{
    int64_t n = 0;

    while (next_line(r))
        n++;
    rewind(r->file);
    r->position = 0;
    if (!n)
        return op_fail(r->c, MST_OUT_OF_RANGE,
                       "Read less bytes than requested");
    if (r->s->vocab_size == 0)
        return op_fail(r->c, MST_OUT_OF_RANGE,
                       "Finished reading 0 of lines from %s", r->path);
    if (r->s->vocab_size > n)
        return op_fail(r->c, MST_INVALID_ARGUMENT,
                       "Invalid vocab_size in %s: expected %lld but got %lld",
                       r->path, (long long)r->s->vocab_size, (long long)n);
    *ret = r->s->vocab_size > 0 ? r->s->vocab_size : n;
    return MST_OK;
}

static enum mst_code read_entries(struct reader *r, struct table *t, int64_t n)
{
    enum mst_code rc = MST_OK;

    for (; r->number < n && !rc && next_line(r); r->number++) {
        if (!r->len)
            return op_fail(r->c, MST_INVALID_ARGUMENT,
                           "Invalid content in %s: empty line found at "
                           "position %lld.",
                           r->path, (long long)r->position);
        rc = read_cell(r, 0);
        if (!rc)
            rc = read_cell(r, 1);
        if (!rc)
            rc = table_put_once(t, &r->cell[0], 0, &r->cell[1], 0, r->c->st);
    }
    return rc;
}

static enum mst_code fill(struct reader *r, struct table *t)
{
    int64_t n;
    bool same;
    enum mst_code rc = check_type(r->c, r->s->column[0], t->key_type, true);

    if (!rc)
        rc = check_type(r->c, r->s->column[1], t->value_type, false);
    if (rc)
        return rc;
    r->file = fopen(r->path, "r");
    if (!r->file)
        return op_fail(
            r->c, errno == ENOENT ? MST_NOT_FOUND : MST_FAILED_PRECONDITION,
            "%s; %s", r->path, strerror(errno));
    rc = count_lines(r, &n);
    if (!rc)
        rc = tensor_new_scalar(&r->cell[0], (enum dtype)t->key_type, r->c->st);
    if (!rc)
        rc =
            tensor_new_scalar(&r->cell[1], (enum dtype)t->value_type, r->c->st);
    if (!rc)
        rc = table_begin(r->c, t, n, &same);
    if (rc || same)
        return rc;
    rc = read_entries(r, t, n);
    table_end(t, rc);
    return rc;
}

static enum mst_code open_and_fill(struct op_ctx *c, struct table *t)
{
    const struct tensor *name = op_in(c, 1);
    struct reader r = { .c = c, .s = c->node->state };
    char text[SHAPE_TEXT_MAX], *path;
    enum mst_code rc;

    if (name->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "filename should be a single string, but got %s",
                       tensor_shape_text(name, text));
    if (!tensor_str(name, 0)->len)
        return op_fail(c, MST_INVALID_ARGUMENT, "filename cannot be empty.");
    path = mem_strn(tensor_str(name, 0)->data, tensor_str(name, 0)->len);
    r.path = path;
    rc = fill(&r, t);
    if (r.file)
        fclose(r.file);
    free(r.line);
    tensor_unref(&r.cell[0]);
    tensor_unref(&r.cell[1]);
    mem_free(path);
    return rc;
}

static enum mst_code file_run(struct op_ctx *c)
{
    struct table *t;
    enum mst_code rc = table_get(c, &t);

    if (rc)
        return rc;
    if (t->form != TABLE_STATIC)
        rc = op_fail(c, MST_INVALID_ARGUMENT,
                     "Table %s %s is not initializable", t->container, t->name);
    if (!rc)
        rc = open_and_fill(c, t);
    object_unref(&t->o);
    return rc;
}

#define FILE_OP(stem, text, handle)                                            \
    const struct op_def def_##stem = {                                         \
        .name = text,                                                          \
        .in = "table_handle: " handle ", filename: string",                    \
        .attr = "key_index: int >= -2; value_index: int >= -2; "               \
                "vocab_size: int >= -1 = -1; delimiter: string = '\t'; "       \
                "offset: int = 0",                                             \
        .flags = OP_STATEFUL | OP_BLOCKING,                                    \
        .init = file_init,                                                     \
        .kernel = (const struct op_kernel[]){ { DT_ANY, file_run }, { 0 } },   \
    };

FILE_OP(initialize_table_from_text_file, "InitializeTableFromTextFile",
        "Ref(string)")
FILE_OP(initialize_table_from_text_file_v2, "InitializeTableFromTextFileV2",
        "resource")
