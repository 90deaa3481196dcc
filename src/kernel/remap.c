/*
 * LoadAndRemapMatrix and GenerateVocabRemapping: a matrix of a checkpoint whose
 * rows and columns stand for words, for a model with another vocabulary.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"
#include "kernel/types.h"
#include "store/bundle_load.h"

/* ---- LoadAndRemapMatrix ---- */

enum { PATH, NAME, ROWS, COLUMNS, VALUES };

struct sizes {
    int64_t rows, columns;
};

static enum mst_code matrix_init(struct op_node *n, struct status *st)
{
    struct sizes *s = ARENA_NEW(n->arena, struct sizes);

    (void)st;
    s->rows = op_attr_int(n, "num_rows");
    s->columns = op_attr_int(n, "num_cols");
    n->state = s;
    return MST_OK;
}

/* Every old number has one new one at the most. */
static enum mst_code check_unique(struct op_ctx *c, const struct tensor *t)
{
    struct map seen;
    enum mst_code rc = MST_OK;

    map_init(&seen);
    for (int64_t i = 0; i < t->count && !rc; i++) {
        int64_t old = TENSOR_DATA(t, int64_t)[i];
        void *had;

        if (old < 0)
            continue;
        had = map_put_num(&seen, (uint64_t)old, (void *)(uintptr_t)(i + 1));
        if (had)
            rc = op_fail(c, MST_UNIMPLEMENTED,
                         "Old ID %lld is mapped to both new ID %lld and %lld, "
                         "which is not supported.",
                         (long long)old, (long long)(uintptr_t)had - 1,
                         (long long)i);
    }
    map_done(&seen);
    return rc;
}

static enum mst_code check_inputs(struct op_ctx *c)
{
    const struct sizes *s = c->node->state;
    const struct tensor *rows = op_in(c, ROWS), *columns = op_in(c, COLUMNS);
    char text[SHAPE_TEXT_MAX];
    enum mst_code rc;

    if (rows->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "The `row_remapping` tensor must be 1-D, got a tensor "
                       "of shape %s",
                       tensor_shape_text(rows, text));
    if (rows->count != s->rows)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Size of row_remapping is %lld instead of being equal "
                       "to num_rows=%lld",
                       (long long)rows->count, (long long)s->rows);
    rc = check_unique(c, rows);
    if (rc)
        return rc;
    if (columns->count && columns->count != s->columns)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Provided col_remapping, but its size is %lld instead "
                       "of being equal to num_cols=%lld",
                       (long long)columns->count, (long long)s->columns);
    rc = check_unique(c, columns);
    if (rc)
        return rc;
    if (op_in(c, PATH)->count != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "The `ckpt_path` tensor must have exactly one element, "
                       "got tensor of shape %s",
                       tensor_shape_text(op_in(c, PATH), text));
    if (op_in(c, NAME)->count != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "The `old_tensor_name` tensor must have exactly one "
                       "element, got tensor of shape %s",
                       tensor_shape_text(op_in(c, NAME), text));
    return MST_OK;
}

static enum mst_code check_entry(struct op_ctx *c, const struct bundle_entry *e)
{
    const struct sizes *s = c->node->state;
    const struct str *name = tensor_str(op_in(c, NAME), 0);
    int len = (int)MIN(name->len, 500);
    char text[SHAPE_TEXT_MAX];

    if (e->dtype != DT_FLOAT)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Tensor %.*s has invalid type %s instead of expected "
                       "type float",
                       len, name->data, dtype_name(e->dtype));
    shape_text(MIN(e->ndim, TENSOR_RANK_MAX), e->dims, text);
    if (e->ndim != 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Tensor %.*s has shape %s of invalid rank %d instead of "
                       "expected shape of rank 2.",
                       len, name->data, text, e->ndim);
    if (!op_in(c, COLUMNS)->count && e->dims[1] != s->columns)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Tensor %.*s has shape %s, where the size of its 2nd "
                       "dimension is %lld instead of being equal to "
                       "num_cols=%lld",
                       len, name->data, text, (long long)e->dims[1],
                       (long long)s->columns);
    return MST_OK;
}

/* Rows [*ret_first, …) of the old matrix, as many as are needed; none of them
 * leaves ret unset. */
static enum mst_code load(struct op_ctx *c, struct tensor *ret,
                          int64_t *ret_first)
{
    const struct str *name = tensor_str(op_in(c, NAME), 0);
    const struct tensor *rows = op_in(c, ROWS);
    const struct str *path = tensor_str(op_in(c, PATH), 0);
    struct bundle_entry e = { 0 };
    struct bundle_read read = { .name = name->data,
                                .name_len = name->len,
                                .dtype = DT_FLOAT };
    int64_t first = -1, last = -1;
    struct bundle_reader r;
    char *prefix, spec[128];
    enum mst_code rc;

    for (int64_t i = 0; i < rows->count; i++) {
        int64_t old = TENSOR_DATA(rows, int64_t)[i];

        if (old >= 0 && (first < 0 || old < first))
            first = old;
        last = MAX(last, old);
    }
    rc = file_path(path->len ? path->data : "", path->len, &prefix, c->st);
    if (rc)
        return rc;
    rc = bundle_reader_open(&r, prefix, c->st);
    mem_free(prefix);
    if (rc)
        return rc;
    rc = bundle_reader_find(&r, name->data, name->len, &e, c->st);
    if (!rc)
        rc = check_entry(c, &e);
    if (!rc && first >= 0) {
        read.spec = spec;
        read.spec_len = (size_t)snprintf(
            spec, sizeof(spec), "%lld %lld %lld,%llu:-", (long long)e.dims[0],
            (long long)e.dims[1], (long long)first,
            (unsigned long long)(last - first) + 1);
        rc = bundle_load(&r, &read, 1, c->node->env->pool, c->st);
        *ret = read.out;
    }
    *ret_first = first;
    bundle_entry_done(&e);
    bundle_reader_close(&r);
    return rc;
}

/* A cell that has no old one takes the next of the given values. */
static enum mst_code fill_cells(struct op_ctx *c, const struct tensor *old,
                                int64_t first)
{
    const struct sizes *s = c->node->state;
    const int64_t *rows = op_in(c, ROWS)->data, *columns = NULL;
    const struct tensor *values = op_in(c, VALUES);
    int64_t used = 0, width = tensor_set(old) ? old->dims[1] : 0;
    float *to = op_out(c, 0)->data;

    if (op_in(c, COLUMNS)->count)
        columns = op_in(c, COLUMNS)->data;
    for (int64_t i = 0; i < s->rows; i++)
        for (int64_t k = 0; k < s->columns; k++) {
            int64_t column = columns ? columns[k] : k;

            if (rows[i] >= 0 && column >= 0) {
                /* A column beyond the old ones stays what it was: nothing. */
                *to++ =
                    column < width
                        ? TENSOR_DATA(old,
                                      float)[(rows[i] - first) * width + column]
                        : 0;
                continue;
            }
            if (used == values->count)
                return op_fail(c, MST_INVALID_ARGUMENT,
                               "initializing_values contained %lld elements, "
                               "but more missing values remain.",
                               (long long)values->count);
            *to++ = TENSOR_DATA(values, float)[used++];
        }
    if (used != values->count)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "initializing_values contained %lld elements, but only "
                       "%lld elements were used to fill in missing values.",
                       (long long)values->count, (long long)used);
    return MST_OK;
}

static enum mst_code load_and_remap_matrix(struct op_ctx *c)
{
    const struct sizes *s = c->node->state;
    struct tensor old = { 0 };
    int64_t first;
    enum mst_code rc = check_inputs(c);

    if (!rc)
        rc = load(c, &old, &first);
    if (!rc)
        rc = op_out_new(c, 0, 2, (int64_t[]){ s->rows, s->columns });
    if (!rc)
        rc = fill_cells(c, &old, first);
    tensor_unref(&old);
    return rc;
}

const struct op_def def_load_and_remap_matrix = {
    .name = "LoadAndRemapMatrix",
    .in = "ckpt_path: string, old_tensor_name: string, row_remapping: int64, "
          "col_remapping: int64, initializing_values: float",
    .out = "output_matrix: float",
    .attr = "num_rows: int >= 0; num_cols: int >= 1; "
            "max_rows_in_memory: int = -1",
    .flags = OP_STATEFUL | OP_BLOCKING,
    .init = matrix_init,
    .kernel =
        (const struct op_kernel[]){ { DT_ANY, load_and_remap_matrix }, { 0 } },
};

/* ---- GenerateVocabRemapping ---- */

struct vocab {
    int64_t offset, count, old_size;
};

/* The words of a file, one a line. */
struct words {
    struct str *word;
    int64_t count, room;
};

static enum mst_code vocab_init(struct op_node *n, struct status *st)
{
    struct vocab *v = ARENA_NEW(n->arena, struct vocab);

    (void)st;
    v->offset = op_attr_int(n, "new_vocab_offset");
    v->count = op_attr_int(n, "num_new_vocab");
    v->old_size = op_attr_int(n, "old_vocab_size");
    n->state = v;
    return MST_OK;
}

static void words_done(struct words *w)
{
    for (int64_t i = 0; i < w->count; i++)
        mem_free(w->word[i].data);
    mem_free(w->word);
}

static enum mst_code read_words(struct op_ctx *c, const char *path, FILE *file,
                                int64_t most, struct words *w)
{
    char *line = NULL;
    size_t room = 0;
    long long position = 0;
    ssize_t n;
    enum mst_code rc = MST_OK;

    while (!rc && (most < 0 || w->count < most) &&
           (n = getline(&line, &room, file)) >= 0) {
        size_t len = 0;

        position += n;
        for (ssize_t i = 0; i < n; i++)
            if (line[i] != '\r' && !(i == n - 1 && line[i] == '\n'))
                line[len++] = line[i];
        if (!len)
            rc = op_fail(c, MST_INVALID_ARGUMENT,
                         "Invalid content in %s: empty line found at position "
                         "%lld.",
                         path, position);
        else
            *MEM_PUSH(w->word, w->count, w->room) =
                (struct str){ mem_strn(line, len), len };
    }
    free(line);
    if (!rc && most > w->count)
        rc = op_fail(c, MST_INVALID_ARGUMENT,
                     "Invalid vocab_size in %s: expected %lld but got %lld",
                     path, (long long)most, (long long)w->count);
    return rc;
}

static enum mst_code load_words(struct op_ctx *c, int in, const char *name,
                                int64_t most, struct words *w)
{
    const struct tensor *t = op_in(c, in);
    char text[SHAPE_TEXT_MAX], *path;
    FILE *file;
    enum mst_code rc;

    if (t->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "%s should be a single string, but got %s", name,
                       tensor_shape_text(t, text));
    if (!tensor_str(t, 0)->len)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "new vocab filename cannot be empty.");
    rc = file_path(tensor_str(t, 0)->data, tensor_str(t, 0)->len, &path, c->st);
    if (rc)
        return rc;
    file = fopen(path, "r");
    if (file)
        rc = read_words(c, path, file, most, w);
    else
        rc = file_fail(c->st, path, errno);
    if (file)
        fclose(file);
    mem_free(path);
    return rc;
}

/* Word to number; a word that stands twice is an error. */
static enum mst_code index_words(struct op_ctx *c, const struct words *w,
                                 struct map *index)
{
    for (int64_t i = 0; i < w->count; i++) {
        void *had = map_put(index, w->word[i].data, w->word[i].len,
                            (void *)(uintptr_t)(i + 1));

        if (had)
            return op_fail(c, MST_FAILED_PRECONDITION,
                           "HashTable has different value for same key. Key "
                           "%.*s has %lld and trying to add value %lld",
                           (int)MIN(w->word[i].len, 500), w->word[i].data,
                           (long long)(uintptr_t)had - 1, (long long)i);
    }
    return MST_OK;
}

static enum mst_code remap_words(struct op_ctx *c, const struct words *fresh,
                                 const struct map *index)
{
    const struct vocab *v = c->node->state;
    int32_t present = 0;
    enum mst_code rc = op_out_new(c, 0, 1, &v->count);

    if (!rc)
        rc = op_out_new(c, 1, 0, NULL);
    for (int64_t i = 0; i < v->count && !rc; i++) {
        const struct str *s = &fresh->word[v->offset + i];
        const void *at = map_get(index, s->data, s->len);

        present += at != NULL;
        TENSOR_DATA(op_out(c, 0), int64_t)[i] = (int64_t)(uintptr_t)at - 1;
    }
    if (!rc)
        *TENSOR_DATA(op_out(c, 1), int32_t) = present;
    return rc;
}

static enum mst_code generate_vocab_remapping(struct op_ctx *c)
{
    const struct vocab *v = c->node->state;
    struct words fresh = { 0 }, old = { 0 };
    struct map index;
    enum mst_code rc;

    map_init(&index);
    rc = load_words(c, 0, "new_vocab_file", -1, &fresh);
    if (!rc && (v->offset > fresh.count || v->count > fresh.count - v->offset))
        rc = op_fail(c, MST_INVALID_ARGUMENT,
                     "lookup table size must be larger than last new vocab "
                     "entry's line");
    if (!rc)
        rc = load_words(c, 1, "old_vocab_file", v->old_size, &old);
    if (!rc)
        rc = index_words(c, &old, &index);
    if (!rc)
        rc = remap_words(c, &fresh, &index);
    map_done(&index);
    words_done(&fresh);
    words_done(&old);
    return rc;
}

const struct op_def def_generate_vocab_remapping = {
    .name = "GenerateVocabRemapping",
    .in = "new_vocab_file: string, old_vocab_file: string",
    .out = "remapping: int64, num_present: int32",
    .attr = "new_vocab_offset: int >= 0; num_new_vocab: int >= 0; "
            "old_vocab_size: int >= -1 = -1",
    .flags = OP_BLOCKING,
    .init = vocab_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, generate_vocab_remapping },
                                          { 0 } },
};
