/*
 * ParseExample, ParseExampleV2, ParseSingleExample: columns of tensors out of
 * serialized Examples, dense, sparse or ragged.
 *
 * First every example is scanned for the wanted features (on several threads
 * when there are many), which only notes where they lie; then each column is
 * sized and filled. A dense column whose first dimension is unknown is padded
 * to its longest row.
 */
#include <stdio.h>

#include "base/mem.h"
#include "kernel/example.h"
#include "kernel/types.h"

/* Columns are numbered in this order: dense, sparse, ragged. */
struct config {
    int dense, sparse, ragged;
    bool single;  /* ParseSingleExample: keys are attributes */
    bool tensors; /* V2: keys are vectors */
    const struct shape *shapes;
    int64_t *strides; /* elements of a row, or of a step of variable ones */
    bool *variable;
    struct str *keys; /* of a single one */
};

struct parse {
    struct op_ctx *c;
    const struct config *g;
    const struct tensor *serialized, *names;
    bool batch; /* a vector of examples, not just one */
    int64_t rows;
    int columns;
    struct str *key;
    struct example_keys keys;
    struct example_bytes *found; /* [row][column] */
    struct buffer *memory;       /* where `found` lies */
    int64_t bad_row;             /* the first that is no Example; -1 */
    pthread_mutex_t lock;        /* of bad_row */
};

/* ---- attributes ---- */

static enum mst_code read_shapes(struct op_node *n, struct config *g,
                                 struct status *st)
{
    const struct attr *shapes = op_attr(n, "dense_shapes");
    struct shape *to = ARENA_ARRAY(n->arena, struct shape, g->dense + 1);
    char text[SHAPE_TEXT_MAX];

    if (shapes->count != g->dense)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "len(dense_keys) != len(dense_shapes)");
    g->strides = ARENA_ARRAY(n->arena, int64_t, g->dense + 1);
    g->variable = ARENA_ARRAY(n->arena, bool, g->dense + 1);
    for (int i = 0; i < g->dense; i++) {
        int first;

        to[i] = *shapes->value[i].shape;
        g->variable[i] = to[i].ndim > 0 && to[i].dims[0] < 0;
        first = g->variable[i];
        if (to[i].ndim < 0 || to[i].ndim >= TENSOR_RANK_MAX ||
            !shape_count(to[i].ndim - first, to[i].dims + first, 1,
                         &g->strides[i]))
            return status_set(st, MST_INVALID_ARGUMENT,
                              "dense_shapes[%d] has unknown rank or unknown "
                              "inner dimensions: %s",
                              i, shape_text(to[i].ndim, to[i].dims, text));
    }
    g->shapes = to;
    return MST_OK;
}

static void read_keys(struct op_node *n, struct config *g)
{
    static const char *const names[] = { "dense_keys", "sparse_keys" };
    int at = 0;

    g->keys = ARENA_ARRAY(n->arena, struct str, g->dense + g->sparse + 1);
    for (size_t k = 0; k < COUNT(names); k++) {
        const struct attr *a = op_attr(n, names[k]);

        for (int i = 0; i < a->count; i++)
            g->keys[at++] =
                (struct str){ (char *)a->value[i].s.data, a->value[i].s.len };
    }
}

static enum mst_code parse_init(struct op_node *n, struct status *st)
{
    struct config *g = ARENA_NEW(n->arena, struct config);

    g->single = !strcmp(n->def->name, "ParseSingleExample");
    g->tensors = !strcmp(n->def->name, "ParseExampleV2");
    g->dense = op_attr(n, "Tdense")->count;
    g->sparse = op_attr(n, "sparse_types")->count;
    g->ragged = g->tensors ? op_attr(n, "ragged_value_types")->count : 0;
    n->state = g;
    if (op_attr_int(n, g->single || g->tensors ? "num_sparse" : "Nsparse") !=
        g->sparse)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "len(sparse_keys) != len(sparse_types)");
    if (g->tensors && op_attr(n, "ragged_split_types")->count != g->ragged)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "len(ragged_value_types) != "
                          "len(ragged_split_types)");
    if (!g->single && !g->tensors && op_attr_int(n, "Ndense") != g->dense)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "len(dense_keys) != len(dense_types)");
    if (g->single) {
        if (op_attr(n, "sparse_keys")->count != g->sparse)
            return status_set(st, MST_INVALID_ARGUMENT,
                              "len(sparse_keys) != len(sparse_types)");
        if (op_attr(n, "dense_keys")->count != g->dense)
            return status_set(st, MST_INVALID_ARGUMENT,
                              "len(dense_keys) != len(dense_types)");
        read_keys(n, g);
    }
    return read_shapes(n, g, st);
}

/* ---- inputs ---- */

/* Keys from inputs: one vector, or `count` scalars from input `in` on. */
static enum mst_code take_keys(struct parse *p, int in, int count, int at,
                               const char *text)
{
    const struct tensor *t = op_in(p->c, in);

    if (p->g->tensors && t->count != count)
        return op_fail(p->c, MST_INVALID_ARGUMENT,
                       "Expected %s but got: %lld vs. %d", text,
                       (long long)t->count, count);
    for (int i = 0; i < count; i++) {
        if (!p->g->tensors && op_in(p->c, in + i)->count != 1)
            return op_fail(p->c, MST_INVALID_ARGUMENT,
                           "A key of ParseExample is no scalar");
        p->key[at + i] = p->g->tensors ? *tensor_str(t, i)
                                       : *tensor_str(op_in(p->c, in + i), 0);
    }
    return MST_OK;
}

static enum mst_code check_default(struct parse *p, int d,
                                   const struct tensor *t)
{
    const struct shape *s = &p->g->shapes[d];
    char a[SHAPE_TEXT_MAX], b[SHAPE_TEXT_MAX];

    if (p->g->variable[d] && t->count != 1)
        return op_fail(p->c, MST_INVALID_ARGUMENT,
                       "dense_shape[%d] is a variable length shape: %s, "
                       "therefore def_value[%d] must contain a single element "
                       "(the padding element).  But its shape is: %s",
                       d, shape_text(s->ndim, s->dims, a), d,
                       tensor_shape_text(t, b));
    if (!p->g->variable[d] && t->count && !shape_compatible(s, t))
        return op_fail(p->c, MST_INVALID_ARGUMENT,
                       "def_value[%d].shape() == %s is not compatible with "
                       "dense_shapes_[%d] == %s",
                       d, tensor_shape_text(t, b), d,
                       shape_text(s->ndim, s->dims, a));
    return MST_OK;
}

static const struct tensor *default_of(const struct parse *p, int d)
{
    return op_in(p->c, p->c->node->in_count - p->g->dense + d);
}

static enum mst_code check_shapes(struct parse *p)
{
    const struct tensor *s = p->serialized;
    char a[SHAPE_TEXT_MAX], b[SHAPE_TEXT_MAX];
    enum mst_code rc = MST_OK;

    if (p->g->single ? s->ndim : p->g->tensors ? s->ndim > 1 : s->ndim != 1)
        return op_fail(p->c, MST_INVALID_ARGUMENT,
                       "Expected serialized to be a %s, got shape: %s",
                       p->g->single    ? "scalar"
                       : p->g->tensors ? "scalar or vector"
                                       : "vector",
                       tensor_shape_text(s, a));
    if (p->names && p->names->count && !tensor_same_shape(p->names, s))
        return op_fail(p->c, MST_INVALID_ARGUMENT,
                       "Expected names have the same shape as serialized: "
                       "name.shape=%s, serialized.shape=%s",
                       tensor_shape_text(p->names, a), tensor_shape_text(s, b));
    for (int d = 0; d < p->g->dense && !rc; d++)
        rc = check_default(p, d, default_of(p, d));
    return rc;
}

static enum mst_code read_inputs(struct parse *p)
{
    const struct config *g = p->g;
    enum mst_code rc = MST_OK;

    p->serialized = op_in(p->c, 0);
    p->names = g->single ? NULL : op_in(p->c, 1);
    p->batch = p->serialized->ndim == 1;
    p->rows = p->serialized->count;
    p->columns = g->dense + g->sparse + g->ragged;
    p->key = mem_array((size_t)p->columns + 1, sizeof(*p->key));
    if (g->single) {
        memcpy(p->key, g->keys, (size_t)p->columns * sizeof(*p->key));
    } else if (g->tensors) {
        rc =
            take_keys(p, 3, g->dense, 0, "len(dense_keys) == len(dense_types)");
        if (!rc)
            rc = take_keys(p, 2, g->sparse, g->dense,
                           "len(sparse_keys) == num_sparse");
        if (!rc)
            rc = take_keys(p, 4, g->ragged, g->dense + g->sparse,
                           "len(ragged_keys) == len(ragged_value_types)");
    } else {
        rc = take_keys(p, 2 + g->sparse, g->dense, 0, "");
        if (!rc)
            rc = take_keys(p, 2, g->sparse, g->dense, "");
    }
    if (!rc)
        rc = check_shapes(p);
    for (int i = 0; i < p->columns && !rc; i++)
        if (!example_keys_add(&p->keys, &p->key[i], (size_t)i))
            rc = op_fail(p->c, MST_INTERNAL,
                         "Could not avoid collision. This should not happen.");
    return rc;
}

/* ---- scanning ---- */

static bool scan_row(struct parse *p, int64_t row)
{
    const struct str *s = tensor_str(p->serialized, row);
    struct pb_in in = pb_in(s->data, s->len);
    struct pb_field f;

    while (pb_next(&in, &f)) {
        if (f.number != 1)
            continue;
        if (f.wire != PB_LEN || !example_find(pb_in(f.data, f.len), &p->keys,
                                              p->found + row * p->columns))
            return false;
    }
    return !in.bad;
}

static void scan_rows(void *arg, int64_t begin, int64_t end)
{
    struct parse *p = arg;

    for (int64_t row = begin; row < end; row++) {
        if (scan_row(p, row))
            continue;
        pthread_mutex_lock(&p->lock);
        if (p->bad_row < 0 || row < p->bad_row)
            p->bad_row = row;
        pthread_mutex_unlock(&p->lock);
        return;
    }
}

static enum mst_code scan(struct parse *p)
{
    size_t size;

    if (__builtin_mul_overflow((size_t)p->rows * sizeof(*p->found),
                               (size_t)p->columns, &size) ||
        !(p->memory = buffer_new(size + 1)))
        return op_fail(p->c, MST_RESOURCE_EXHAUSTED,
                       "No memory for %lld examples of %d features",
                       (long long)p->rows, p->columns);
    p->found = (struct example_bytes *)p->memory->data;
    memset(p->found, 0, size);
    p->bad_row = -1;
    op_for(p->c, p->rows, 500 + 50.0 * p->columns, scan_rows, p);
    if (p->bad_row >= 0) {
        const struct str *s = tensor_str(p->serialized, p->bad_row);

        return op_fail(p->c, MST_INVALID_ARGUMENT,
                       "Could not parse example input, value: '%.*s'",
                       (int)MIN(s->len, 1000), s->data);
    }
    return MST_OK;
}

/* ---- columns ---- */

static enum mst_code feature_error(struct parse *p, int64_t row, int column,
                                   const char *text)
{
    const struct str *key = &p->key[column];
    const struct str *name = p->names && p->names->count && p->batch
                                 ? tensor_str(p->names, row)
                                 : NULL;
    int len = (int)MIN(key->len, 500);

    if (!p->batch)
        return op_fail(p->c, MST_INVALID_ARGUMENT, "Key: %.*s.  %s", len,
                       key->data, text);
    return op_fail(p->c, MST_INVALID_ARGUMENT,
                   "Name: %.*s, Key: %.*s, Index: %lld.  %s",
                   name ? (int)MIN(name->len, 500) : 9,
                   name ? name->data ? name->data : "" : "<unknown>", len,
                   key->data, (long long)row, text);
}

/* The feature in its place, with its number of values; absent ones and those
 * without a list have DT_INVALID and none. */
static enum mst_code open_feature(struct parse *p, int64_t row, int column,
                                  enum dtype want, struct example_feature *f,
                                  int64_t *ret_count)
{
    const struct example_bytes *b = &p->found[row * p->columns + column];
    char text[128];

    *f = (struct example_feature){ DT_INVALID, NULL, 0 };
    *ret_count = 0;
    if (!b->present)
        return MST_OK;
    if (!example_open(*b, f))
        return op_fail(p->c, MST_INVALID_ARGUMENT, "Unsupported datatype.");
    if (f->dtype == DT_INVALID)
        return MST_OK;
    if (f->dtype != want) {
        snprintf(text, sizeof(text),
                 column < p->g->dense
                     ? "Data types don't match. Data type: %s but expected "
                       "type: %s"
                     : "Data types don't match. Expected type: %2$s, Actual "
                       "type: %1$s",
                 dtype_name(f->dtype), dtype_name(want));
        return feature_error(p, row, column, text);
    }
    *ret_count = example_count(f);
    if (*ret_count < 0)
        return feature_error(p, row, column, "Can't parse serialized Example.");
    return MST_OK;
}

static const char *values_name(enum dtype dt)
{
    return dt == DT_STRING ? "bytes" : dtype_name(dt);
}

static enum mst_code wrong_count(struct parse *p, int64_t row, int d,
                                 enum dtype dt, int64_t count)
{
    const struct shape *s = &p->g->shapes[d];
    char shape[SHAPE_TEXT_MAX], text[SHAPE_TEXT_MAX + 160];

    shape_text(s->ndim, s->dims, shape);
    if (!p->batch && p->g->variable[d])
        return op_fail(p->c, MST_INVALID_ARGUMENT,
                       "Error while parsing feature with key %.*s: number of "
                       "elements should be divisible by %lld, found %lld "
                       "instead",
                       (int)MIN(p->key[d].len, 500), p->key[d].data,
                       (long long)p->g->strides[d], (long long)count);
    if (!p->batch)
        snprintf(text, sizeof(text),
                 "Can't parse serialized Example: Some %s_list slice was not "
                 "parsed.",
                 values_name(dt));
    else if (p->g->variable[d])
        snprintf(text, sizeof(text),
                 "Number of %s values is not a multiple of stride length. Saw "
                 "%lld values but output shape is: %s",
                 values_name(dt), (long long)count, shape);
    else
        snprintf(text, sizeof(text),
                 "Number of %s values != expected.  Values size: %lld but "
                 "output shape: %s",
                 values_name(dt), (long long)count, shape);
    return feature_error(p, row, d, text);
}

static enum mst_code missing(struct parse *p, int64_t row, int d, enum dtype dt)
{
    const struct str *key = &p->key[d];
    char name[520] = "";

    if (p->batch && p->names && p->names->count) {
        const struct str *s = tensor_str(p->names, row);

        snprintf(name, sizeof(name), "Name: %.*s, ", (int)MIN(s->len, 500),
                 s->data ? s->data : "");
    } else if (p->batch) {
        snprintf(name, sizeof(name), "Name: <unknown>, ");
    }
    return op_fail(p->c, MST_INVALID_ARGUMENT,
                   "%sFeature: %.*s (data type: %s) is required but could not "
                   "be found.",
                   name, (int)MIN(key->len, 500), key->data, dtype_name(dt));
}

/* How many steps the longest row of a variable column has; checks them all. */
static enum mst_code longest(struct parse *p, int d, enum dtype dt,
                             int64_t *ret)
{
    *ret = 0;
    for (int64_t row = 0; row < p->rows; row++) {
        struct example_feature f;
        int64_t count;
        enum mst_code rc = open_feature(p, row, d, dt, &f, &count);

        if (rc)
            return rc;
        if (count && (!p->g->strides[d] || count % p->g->strides[d]))
            return wrong_count(p, row, d, dt, count);
        if (count)
            *ret = MAX(*ret, count / p->g->strides[d]);
    }
    return MST_OK;
}

static enum mst_code fill_dense_row(struct parse *p, int d, int64_t row,
                                    struct tensor *out, int64_t size)
{
    const struct tensor *value = default_of(p, d);
    enum dtype dt = (enum dtype)out->dtype;
    struct example_feature f;
    int64_t count;
    enum mst_code rc = open_feature(p, row, d, dt, &f, &count);

    if (rc)
        return rc;
    if (f.dtype != DT_INVALID && !p->g->variable[d] && count != size)
        return wrong_count(p, row, d, dt, count);
    if (f.dtype != DT_INVALID)
        example_read(&f, out, row * size);
    if (f.dtype == DT_INVALID && !p->g->variable[d]) {
        if (!value->count)
            return missing(p, row, d, dt);
        tensor_copy_elems(out, row * size, value, 0, size);
    }
    for (int64_t i = count; i < size && p->g->variable[d]; i++)
        tensor_copy_elems(out, row * size + i, value, 0, 1);
    return MST_OK;
}

static enum mst_code fill_dense(struct parse *p, int d)
{
    int at = 3 * p->g->sparse + d, ndim = 0;
    const struct shape *s = &p->g->shapes[d];
    enum dtype dt = (enum dtype)p->c->node->out_types[at];
    int64_t dims[TENSOR_RANK_MAX + 1], steps = 1;
    enum mst_code rc = MST_OK;

    if (p->batch)
        dims[ndim++] = p->rows;
    memcpy(dims + ndim, s->dims, (size_t)s->ndim * sizeof(dims[0]));
    if (p->g->variable[d]) {
        rc = longest(p, d, dt, &steps);
        dims[ndim] = steps;
    }
    if (!rc)
        rc = op_out_new(p->c, at, ndim + s->ndim, dims);
    for (int64_t row = 0; row < p->rows && !rc; row++)
        rc = fill_dense_row(p, d, row, op_out(p->c, at),
                            steps * p->g->strides[d]);
    return rc;
}

/* All values of a sparse or ragged column in one vector. */
static enum mst_code sum_column(struct parse *p, int column, enum dtype dt,
                                int64_t *ret_total, int64_t *ret_most)
{
    *ret_total = *ret_most = 0;
    for (int64_t row = 0; row < p->rows; row++) {
        struct example_feature f;
        int64_t count;
        enum mst_code rc = open_feature(p, row, column, dt, &f, &count);

        if (rc)
            return rc;
        *ret_total += count;
        *ret_most = MAX(*ret_most, count);
    }
    return MST_OK;
}

static enum mst_code fill_sparse(struct parse *p, int i)
{
    int n = p->g->sparse, column = p->g->dense + i, rank = 1 + p->batch;
    enum dtype dt = (enum dtype)p->c->node->out_types[n + i];
    int64_t total, most, at = 0, *index, *shape;
    enum mst_code rc = sum_column(p, column, dt, &total, &most);

    if (!rc)
        rc = op_out_new(p->c, i, 2, (int64_t[]){ total, rank });
    if (!rc)
        rc = op_out_new(p->c, n + i, 1, &total);
    if (!rc)
        rc = op_out_new(p->c, 2 * n + i, 1, (int64_t[]){ rank });
    if (rc)
        return rc;
    index = op_out(p->c, i)->data;
    shape = op_out(p->c, 2 * n + i)->data;
    for (int64_t row = 0; row < p->rows && !rc; row++) {
        struct example_feature f;
        int64_t count;

        rc = open_feature(p, row, column, dt, &f, &count);
        if (!rc && count)
            example_read(&f, op_out(p->c, n + i), at);
        for (int64_t k = 0; k < count && !rc; k++) {
            if (p->batch)
                *index++ = row;
            *index++ = k;
        }
        at += count;
    }
    if (p->batch)
        *shape++ = p->rows;
    *shape = most;
    return rc;
}

static enum mst_code fill_ragged(struct parse *p, int i)
{
    int at = 3 * p->g->sparse + p->g->dense + i, splits = at + p->g->ragged;
    int column = p->g->dense + p->g->sparse + i;
    enum dtype dt = (enum dtype)p->c->node->out_types[at];
    int64_t total, most, sum = 0;
    enum mst_code rc = sum_column(p, column, dt, &total, &most);

    if (!rc)
        rc = op_out_new(p->c, at, 1, &total);
    if (!rc)
        rc = op_out_new(p->c, splits, 1,
                        (int64_t[]){ p->batch ? p->rows + 1 : 0 });
    if (!rc && p->batch)
        example_set_split(op_out(p->c, splits), 0, 0);
    for (int64_t row = 0; row < p->rows && !rc; row++) {
        struct example_feature f;
        int64_t count;

        rc = open_feature(p, row, column, dt, &f, &count);
        if (!rc && count)
            example_read(&f, op_out(p->c, at), sum);
        sum += count;
        if (p->batch)
            example_set_split(op_out(p->c, splits), row + 1, sum);
    }
    return rc;
}

static enum mst_code parse_example(struct op_ctx *c)
{
    struct parse p = { .c = c, .g = c->node->state };
    enum mst_code rc;

    pthread_mutex_init(&p.lock, NULL);
    example_keys_init(&p.keys);
    rc = read_inputs(&p);
    if (!rc)
        rc = scan(&p);
    for (int i = 0; i < p.g->dense && !rc; i++)
        rc = fill_dense(&p, i);
    for (int i = 0; i < p.g->sparse && !rc; i++)
        rc = fill_sparse(&p, i);
    for (int i = 0; i < p.g->ragged && !rc; i++)
        rc = fill_ragged(&p, i);
    example_keys_done(&p.keys);
    mem_free(p.key);
    buffer_unref(p.memory);
    pthread_mutex_destroy(&p.lock);
    return rc;
}

#define EXAMPLE_TYPES "list({float, int64, string}) >= 0"

const struct op_def def_parse_example = {
    .name = "ParseExample",
    .in = "serialized: string, names: string, sparse_keys: Nsparse * string, "
          "dense_keys: Ndense * string, dense_defaults: Tdense",
    .out = "sparse_indices: Nsparse * int64, sparse_values: sparse_types, "
           "sparse_shapes: Nsparse * int64, dense_values: Tdense",
    .attr = "Nsparse: int >= 0; Ndense: int >= 0; "
            "sparse_types: " EXAMPLE_TYPES "; Tdense: " EXAMPLE_TYPES "; "
            "dense_shapes: list(shape) >= 0",
    .flags = OP_EXPENSIVE,
    .init = parse_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, parse_example }, { 0 } },
};

const struct op_def def_parse_example_v2 = {
    .name = "ParseExampleV2",
    .in = "serialized: string, names: string, sparse_keys: string, "
          "dense_keys: string, ragged_keys: string, dense_defaults: Tdense",
    .out = "sparse_indices: num_sparse * int64, sparse_values: sparse_types, "
           "sparse_shapes: num_sparse * int64, dense_values: Tdense, "
           "ragged_values: ragged_value_types, "
           "ragged_row_splits: ragged_split_types",
    .attr = "Tdense: " EXAMPLE_TYPES "; num_sparse: int >= 0; "
            "sparse_types: " EXAMPLE_TYPES "; "
            "ragged_value_types: " EXAMPLE_TYPES "; "
            "ragged_split_types: list({int32, int64}) >= 0; "
            "dense_shapes: list(shape) >= 0",
    .flags = OP_EXPENSIVE,
    .init = parse_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, parse_example }, { 0 } },
};

const struct op_def def_parse_single_example = {
    .name = "ParseSingleExample",
    .in = "serialized: string, dense_defaults: Tdense",
    .out = "sparse_indices: num_sparse * int64, sparse_values: sparse_types, "
           "sparse_shapes: num_sparse * int64, dense_values: Tdense",
    .attr = "num_sparse: int >= 0; sparse_keys: list(string) >= 0; "
            "dense_keys: list(string) >= 0; sparse_types: " EXAMPLE_TYPES "; "
            "Tdense: " EXAMPLE_TYPES "; dense_shapes: list(shape) >= 0",
    .flags = OP_EXPENSIVE,
    .init = parse_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, parse_example }, { 0 } },
};
