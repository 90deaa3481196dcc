/*
 * ParseSequenceExample and its second version: as ParseExample, with a context
 * that is an Example of its own, and lists of features whose rows are steps of
 * time.
 *
 * There are six groups of columns: dense, sparse and ragged ones of the
 * context and of the lists. A group is a range of numbers under which a
 * column's key, type and place in every example are found.
 */
#include <stdio.h>

#include "base/mem.h"
#include "kernel/example.h"
#include "kernel/types.h"

enum group { C_SPARSE, C_DENSE, C_RAGGED, L_SPARSE, L_DENSE, L_RAGGED, GROUPS };

/* The keys: an attribute of the first version, an input of the second. */
static const struct {
    const char *name, *mismatch;
} groups[GROUPS] = {
    { "context_sparse_keys",
      "Expected len(context_sparse_keys) to match Ncontext_sparse" },
    { "context_dense_keys",
      "Expected len(context_dense_keys) to match len(Tcontext_dense)" },
    { "context_ragged_keys", "Expected len(context_ragged_keys) to match "
                             "len(context_ragged_value_types)" },
    { "feature_list_sparse_keys",
      "Expected len(feature_list_sparse_keys) to match Nfeature_list_sparse" },
    { "feature_list_dense_keys",
      "Expected len(feature_list_dense_keys) to match Nfeature_list_dense" },
    { "feature_list_ragged_keys",
      "Expected len(feature_list_ragged_keys) to "
      "match len(feature_list_ragged_value_types)" },
};

struct config {
    bool v2;
    int count[GROUPS], first[GROUPS], columns;
    const struct shape **context_shapes, **list_shapes;
    struct str *keys; /* of the first version */
    bool *may_miss;   /* of the first version: a dense list */
};

struct parse {
    struct op_ctx *c;
    const struct config *g;
    const struct tensor *serialized, *names;
    bool batch;
    int64_t rows;
    struct str *key;
    struct example_keys context, lists;
    struct example_bytes *found; /* [row][column] */
    struct buffer *memory;
    int out; /* the next output */
};

/* What a column comes to. */
struct extent {
    int64_t values, most_values; /* of all, of one feature */
    int64_t steps, most_steps;   /* of lists */
    int64_t row_most;            /* values of the longest example */
};

/* ---- attributes ---- */

static enum mst_code shapes_of(struct op_node *n, const char *attr, int count,
                               const struct shape ***ret, struct status *st)
{
    const struct attr *a = op_attr(n, attr);
    int64_t size;

    if (a->count != count)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "len(%s) is %d instead of %d", attr, a->count, count);
    *ret = ARENA_ARRAY(n->arena, const struct shape *, count + 1);
    for (int i = 0; i < count; i++) {
        (*ret)[i] = a->value[i].shape;
        if ((*ret)[i]->ndim < 0 || (*ret)[i]->ndim > TENSOR_RANK_MAX - 2 ||
            !shape_count((*ret)[i]->ndim, (*ret)[i]->dims, 1, &size))
            return status_set(st, MST_INVALID_ARGUMENT,
                              "%s[%d] is not fully defined", attr, i);
    }
    return MST_OK;
}

static void read_may_miss(struct op_node *n, struct config *g)
{
    const struct attr *a =
        op_attr(n, "feature_list_dense_missing_assumed_empty");

    g->may_miss = ARENA_ARRAY(n->arena, bool, g->count[L_DENSE] + 1);
    for (int i = 0; i < g->count[L_DENSE]; i++)
        for (int k = 0; k < a->count; k++) {
            const struct str *key = &g->keys[g->first[L_DENSE] + i];

            g->may_miss[i] |= a->value[k].s.len == key->len &&
                              !memcmp(a->value[k].s.data, key->data, key->len);
        }
}

static enum mst_code read_keys(struct op_node *n, struct config *g,
                               struct status *st)
{
    g->keys = ARENA_ARRAY(n->arena, struct str, g->columns + 1);
    for (int k = 0; k < GROUPS; k++) {
        const struct attr *a =
            k == C_RAGGED || k == L_RAGGED ? NULL : op_attr(n, groups[k].name);

        if (a && a->count != g->count[k])
            return status_set(st, MST_INVALID_ARGUMENT,
                              "len(%s) does not match its types",
                              groups[k].name);
        for (int i = 0; a && i < a->count; i++)
            g->keys[g->first[k] + i] =
                (struct str){ (char *)a->value[i].s.data, a->value[i].s.len };
    }
    read_may_miss(n, g);
    return MST_OK;
}

static enum mst_code sequence_init(struct op_node *n, struct status *st)
{
    struct config *g = ARENA_NEW(n->arena, struct config);
    enum mst_code rc;

    n->state = g;
    g->v2 = !strcmp(n->def->name, "ParseSequenceExampleV2");
    g->count[C_SPARSE] = op_attr(n, "context_sparse_types")->count;
    g->count[C_DENSE] = op_attr(n, "Tcontext_dense")->count;
    g->count[L_SPARSE] = op_attr(n, "feature_list_sparse_types")->count;
    g->count[L_DENSE] = op_attr(n, "feature_list_dense_types")->count;
    if (g->v2) {
        g->count[C_RAGGED] = op_attr(n, "context_ragged_value_types")->count;
        g->count[L_RAGGED] =
            op_attr(n, "feature_list_ragged_value_types")->count;
        if (op_attr(n, "context_ragged_split_types")->count !=
                g->count[C_RAGGED] ||
            op_attr(n, "feature_list_ragged_split_types")->count !=
                g->count[L_RAGGED])
            return status_set(st, MST_INVALID_ARGUMENT,
                              "Ragged features need as many types of splits");
    }
    if (op_attr_int(n, "Ncontext_sparse") != g->count[C_SPARSE] ||
        op_attr_int(n, "Nfeature_list_sparse") != g->count[L_SPARSE] ||
        op_attr_int(n, "Nfeature_list_dense") != g->count[L_DENSE])
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Numbers of features and of their types differ");
    for (int k = 0; k < GROUPS; k++) {
        g->first[k] = g->columns;
        g->columns += g->count[k];
    }
    rc = shapes_of(n, "context_dense_shapes", g->count[C_DENSE],
                   &g->context_shapes, st);
    if (!rc)
        rc = shapes_of(n, "feature_list_dense_shapes", g->count[L_DENSE],
                       &g->list_shapes, st);
    return rc || g->v2 ? rc : read_keys(n, g, st);
}

/* ---- inputs ---- */

/* Inputs of the second version: the keys in the order of the groups from 2
 * on, then what may be missing, then the defaults. */
enum { KEYS = 2, MAY_MISS = KEYS + GROUPS };

static const struct tensor *default_of(const struct parse *p, int d)
{
    return op_in(p->c, p->c->node->in_count - p->g->count[C_DENSE] + d);
}

static enum mst_code check_defaults(struct parse *p)
{
    char a[SHAPE_TEXT_MAX], b[SHAPE_TEXT_MAX];

    for (int d = 0; d < p->g->count[C_DENSE]; d++) {
        const struct tensor *t = default_of(p, d);
        const struct shape *s = p->g->context_shapes[d];

        if (t->count && !shape_compatible(s, t))
            return op_fail(p->c, MST_INVALID_ARGUMENT,
                           "default_value[%d].shape() == %s != "
                           "context_dense_shapes[%d] == %s",
                           d, tensor_shape_text(t, a), d,
                           shape_text(s->ndim, s->dims, b));
    }
    return MST_OK;
}

static enum mst_code take_keys(struct parse *p)
{
    const struct config *g = p->g;

    for (int k = 0; k < GROUPS && g->v2; k++) {
        const struct tensor *t = op_in(p->c, KEYS + k);

        if (t->count != g->count[k])
            return op_fail(p->c, MST_INVALID_ARGUMENT, "%s",
                           groups[k].mismatch);
        for (int i = 0; i < g->count[k]; i++)
            p->key[g->first[k] + i] = *tensor_str(t, i);
    }
    if (g->v2 && op_in(p->c, MAY_MISS)->count != g->count[L_DENSE])
        return op_fail(p->c, MST_INVALID_ARGUMENT,
                       "Expected len(feature_list_dense_missing_assumed_empty "
                       "to match Nfeature_list_dense");
    if (!g->v2)
        memcpy(p->key, g->keys, (size_t)g->columns * sizeof(*p->key));
    for (int i = 0; i < g->columns; i++)
        if (!example_keys_add(i < g->first[L_SPARSE] ? &p->context : &p->lists,
                              &p->key[i], (size_t)i))
            return op_fail(p->c, MST_INVALID_ARGUMENT,
                           "%s feature %.*s cannot be both dense and sparse",
                           i < g->first[L_SPARSE] ? "Context" : "Sequence",
                           (int)MIN(p->key[i].len, 500), p->key[i].data);
    return MST_OK;
}

static enum mst_code read_inputs(struct parse *p)
{
    char text[SHAPE_TEXT_MAX];
    enum mst_code rc;

    p->serialized = op_in(p->c, 0);
    p->names = op_in(p->c, 1);
    p->batch = p->serialized->ndim == 1;
    p->rows = p->serialized->count;
    p->key = mem_array((size_t)p->g->columns + 1, sizeof(*p->key));
    if (p->serialized->ndim > 1)
        return op_fail(p->c, MST_INVALID_ARGUMENT,
                       "Expected serialized to be a scalar or vector, got "
                       "shape: %s",
                       tensor_shape_text(p->serialized, text));
    rc = take_keys(p);
    if (!rc)
        rc = check_defaults(p);
    if (!rc && p->names->count && p->names->count != p->rows)
        rc = op_fail(p->c, MST_INVALID_ARGUMENT,
                     "example_names must be empty or have the correct number "
                     "of elements");
    return rc;
}

/* ---- scanning ---- */

static const char *name_of(const struct parse *p, int64_t row, char text[256])
{
    const struct str *s = p->names->count ? tensor_str(p->names, row) : NULL;

    snprintf(text, 256, "%.*s", s ? (int)MIN(s->len, 255) : 9,
             s ? s->data ? s->data : "" : "<unknown>");
    return text;
}

static bool scan_row(struct parse *p, int64_t row)
{
    const struct str *s = tensor_str(p->serialized, row);
    struct example_bytes *to = p->found + row * p->g->columns;
    struct pb_in in = pb_in(s->data, s->len);
    struct pb_field f;

    while (pb_next(&in, &f)) {
        if (f.number != 1 && f.number != 2)
            continue;
        if (f.wire != PB_LEN ||
            !example_find(pb_in(f.data, f.len),
                          f.number == 1 ? &p->context : &p->lists, to))
            return false;
    }
    return !in.bad;
}

static enum mst_code scan(struct parse *p)
{
    char name[256];
    size_t size;

    if (__builtin_mul_overflow((size_t)p->rows * sizeof(*p->found),
                               (size_t)p->g->columns, &size) ||
        !(p->memory = buffer_new(size + 1)))
        return op_fail(p->c, MST_RESOURCE_EXHAUSTED,
                       "No memory for %lld examples of %d features",
                       (long long)p->rows, p->g->columns);
    p->found = (struct example_bytes *)p->memory->data;
    memset(p->found, 0, size);
    for (int64_t row = 0; row < p->rows; row++)
        if (!scan_row(p, row))
            return op_fail(p->c, MST_INVALID_ARGUMENT,
                           "Invalid protocol message input, example id: %s",
                           name_of(p, row, name));
    return MST_OK;
}

/* ---- sizes ---- */

static const struct example_bytes *found(const struct parse *p, int64_t row,
                                         int column)
{
    return &p->found[row * p->g->columns + column];
}

/* How many values a feature has; negative when it is of another type. */
static int64_t count_values(struct example_bytes b, enum dtype dt,
                            struct example_feature *f)
{
    if (!example_open(b, f))
        return -1;
    if (f->dtype == DT_INVALID)
        return 0;
    return f->dtype == dt ? example_count(f) : -1;
}

static enum mst_code measure_context(struct parse *p, int column, enum dtype dt,
                                     struct extent *e)
{
    char name[256];

    *e = (struct extent){ 0 };
    for (int64_t row = 0; row < p->rows; row++) {
        struct example_feature f;
        int64_t n = count_values(*found(p, row, column), dt, &f);

        if (n < 0)
            return op_fail(p->c, MST_INVALID_ARGUMENT,
                           "Name: %s, Context feature: %.*s.  Data types don't "
                           "match. Expected type: %s",
                           name_of(p, row, name),
                           (int)MIN(p->key[column].len, 500),
                           p->key[column].data, dtype_name(dt));
        e->values += n;
        e->most_values = MAX(e->most_values, n);
    }
    return MST_OK;
}

static enum mst_code list_error(struct parse *p, int64_t row, int column)
{
    char name[256];

    return op_fail(p->c, MST_INVALID_ARGUMENT,
                   "Error in sequence feature %.*s in example %s",
                   (int)MIN(p->key[column].len, 500), p->key[column].data,
                   name_of(p, row, name));
}

static enum mst_code measure_list(struct parse *p, int column, enum dtype dt,
                                  struct extent *e)
{
    char name[256];

    *e = (struct extent){ 0 };
    for (int64_t row = 0; row < p->rows; row++) {
        const struct example_bytes *list = found(p, row, column);
        struct pb_in in = pb_in(list->data, list->len);
        struct example_bytes b;
        struct example_feature f;
        int64_t steps = 0, values = 0;

        for (; example_next(&in, &b); steps++) {
            int64_t n = count_values(b, dt, &f);

            if (n < 0)
                return op_fail(
                    p->c, MST_INVALID_ARGUMENT,
                    "Name: %s, Feature list: %.*s, Index: %lld.  "
                    "Data types don't match. Expected type: %s",
                    name_of(p, row, name), (int)MIN(p->key[column].len, 500),
                    p->key[column].data, (long long)steps, dtype_name(dt));
            values += n;
            e->most_values = MAX(e->most_values, n);
        }
        if (in.bad)
            return list_error(p, row, column);
        e->steps += steps;
        e->most_steps = MAX(e->most_steps, steps);
        e->values += values;
        e->row_most = MAX(e->row_most, values);
    }
    return MST_OK;
}

/* ---- context columns ---- */

static enum dtype type_of(const struct parse *p, int out)
{
    return (enum dtype)p->c->node->out_types[out];
}

static enum mst_code context_dense_row(struct parse *p, int d, int64_t row,
                                       struct tensor *out, int64_t size)
{
    const struct str *key = &p->key[p->g->first[C_DENSE] + d];
    const struct example_bytes *b = found(p, row, p->g->first[C_DENSE] + d);
    const struct tensor *value = default_of(p, d);
    enum dtype dt = (enum dtype)out->dtype;
    struct example_feature f;
    char name[256];

    if (!b->present && !value->count)
        return op_fail(p->c, MST_INVALID_ARGUMENT,
                       "Feature: %.*s (data type: %s) is required but could "
                       "not be found.",
                       (int)MIN(key->len, 500), key->data, dtype_name(dt));
    if (!b->present) {
        tensor_copy_elems(out, row * size, value, 0, size);
        return MST_OK;
    }
    if (count_values(*b, dt, &f) != size)
        return op_fail(p->c, MST_INVALID_ARGUMENT,
                       "Unexpected number of elements in example %s",
                       name_of(p, row, name));
    example_read(&f, out, row * size);
    return MST_OK;
}

static enum mst_code context_dense(struct parse *p, int d, int out)
{
    int column = p->g->first[C_DENSE] + d, ndim = 0;
    const struct shape *s = p->g->context_shapes[d];
    int64_t dims[TENSOR_RANK_MAX], size, most;
    struct extent e;
    enum mst_code rc = measure_context(p, column, type_of(p, out), &e);

    if (rc)
        return rc;
    most = MAX(e.most_values, default_of(p, d)->count);
    (void)shape_count(s->ndim, s->dims, 1, &size);
    if (most != size)
        return op_fail(p->c, MST_INVALID_ARGUMENT,
                       "Inconsistent max number of elements for feature %.*s: "
                       "expected %lld, but found %lld",
                       (int)MIN(p->key[column].len, 500), p->key[column].data,
                       (long long)size, (long long)most);
    if (p->batch)
        dims[ndim++] = p->rows;
    memcpy(dims + ndim, s->dims, (size_t)s->ndim * sizeof(dims[0]));
    rc = op_out_new(p->c, out, ndim + s->ndim, dims);
    for (int64_t row = 0; row < p->rows && !rc; row++)
        rc = context_dense_row(p, d, row, op_out(p->c, out), size);
    return rc;
}

/* The three outputs of a sparse column. */
static enum mst_code new_sparse(struct parse *p, int out, int stride,
                                int64_t values, int rank)
{
    enum mst_code rc = op_out_new(p->c, out, 2, (int64_t[]){ values, rank });

    if (!rc)
        rc = op_out_new(p->c, out + stride, 1, &values);
    if (!rc)
        rc = op_out_new(p->c, out + 2 * stride, 1, (int64_t[]){ rank });
    return rc;
}

static enum mst_code context_sparse(struct parse *p, int i, int out)
{
    int n = p->g->count[C_SPARSE], column = p->g->first[C_SPARSE] + i;
    enum dtype dt = type_of(p, out + n);
    int64_t at = 0, *index, *shape;
    struct extent e;
    enum mst_code rc = measure_context(p, column, dt, &e);

    if (!rc)
        rc = new_sparse(p, out, n, e.values, 1 + p->batch);
    if (rc)
        return rc;
    index = op_out(p->c, out)->data;
    shape = op_out(p->c, out + 2 * n)->data;
    for (int64_t row = 0; row < p->rows; row++) {
        struct example_feature f;
        int64_t count = count_values(*found(p, row, column), dt, &f);

        if (count)
            example_read(&f, op_out(p->c, out + n), at);
        for (int64_t k = 0; k < count; k++) {
            if (p->batch)
                *index++ = row;
            *index++ = k;
        }
        at += count;
    }
    if (p->batch)
        *shape++ = p->rows;
    *shape = e.most_values;
    return MST_OK;
}

static enum mst_code context_ragged(struct parse *p, int i, int out)
{
    int n = p->g->count[C_RAGGED], column = p->g->first[C_RAGGED] + i;
    enum dtype dt = type_of(p, out);
    int64_t at = 0;
    struct extent e;
    enum mst_code rc = measure_context(p, column, dt, &e);

    if (!rc)
        rc = op_out_new(p->c, out, 1, &e.values);
    if (!rc) /* a scalar without meaning for a single example */
        rc = op_out_new(p->c, out + n, p->batch, (int64_t[]){ p->rows + 1 });
    if (!rc)
        tensor_zero(op_out(p->c, out + n));
    for (int64_t row = 0; row < p->rows && !rc; row++) {
        struct example_feature f;
        int64_t count = count_values(*found(p, row, column), dt, &f);

        if (count)
            example_read(&f, op_out(p->c, out), at);
        at += count;
        if (p->batch)
            example_set_split(op_out(p->c, out + n), row + 1, at);
    }
    return rc;
}

/* ---- columns of lists ---- */

static bool may_miss(const struct parse *p, int d)
{
    return p->g->v2 ? TENSOR_DATA(op_in(p->c, MAY_MISS), bool)[d]
                    : p->g->may_miss[d];
}

static enum mst_code list_dense_row(struct parse *p, int d, int64_t row,
                                    struct tensor *out, int64_t size,
                                    int64_t at, int64_t *ret_steps)
{
    int column = p->g->first[L_DENSE] + d;
    const struct example_bytes *list = found(p, row, column);
    struct pb_in in = pb_in(list->data, list->len);
    const struct shape *s = p->g->list_shapes[d];
    char name[256], text[SHAPE_TEXT_MAX];
    struct example_bytes b;
    struct example_feature f;

    *ret_steps = 0;
    if (!list->present && !may_miss(p, d))
        return op_fail(p->c, MST_INVALID_ARGUMENT,
                       "Name: %s, Feature list '%.*s' is required but could "
                       "not be found.  Did you mean to include it in "
                       "feature_list_dense_missing_assumed_empty or "
                       "feature_list_dense_defaults?",
                       name_of(p, row, name), (int)MIN(p->key[column].len, 500),
                       p->key[column].data);
    for (; example_next(&in, &b); ++*ret_steps, at += size) {
        int64_t n = count_values(b, (enum dtype)out->dtype, &f);

        if (n != size)
            return op_fail(p->c, MST_INVALID_ARGUMENT,
                           "Name: %s, Key: %.*s, Index: %lld.  Number of "
                           "values != expected.  values size: %lld but output "
                           "shape: %s",
                           name_of(p, row, name),
                           (int)MIN(p->key[column].len, 500),
                           p->key[column].data, (long long)*ret_steps,
                           (long long)n, shape_text(s->ndim, s->dims, text));
        example_read(&f, out, at);
    }
    return MST_OK;
}

static enum mst_code list_dense(struct parse *p, int d, int out)
{
    int n = p->g->count[L_DENSE], column = p->g->first[L_DENSE] + d, ndim = 0;
    const struct shape *s = p->g->list_shapes[d];
    int64_t dims[TENSOR_RANK_MAX], size;
    char text[SHAPE_TEXT_MAX];
    struct extent e;
    enum mst_code rc = measure_list(p, column, type_of(p, out), &e);

    if (rc)
        return rc;
    (void)shape_count(s->ndim, s->dims, 1, &size);
    if (size ? e.row_most % size : e.row_most) {
        dims[0] = -1;
        memcpy(dims + 1, s->dims, (size_t)s->ndim * sizeof(dims[0]));
        return op_fail(p->c, MST_INVALID_ARGUMENT,
                       "Feature list '%.*s' has an unexpected number of "
                       "values.  Total values size: %lld is not consistent "
                       "with output shape: %s",
                       (int)MIN(p->key[column].len, 500), p->key[column].data,
                       (long long)e.row_most,
                       shape_text(s->ndim + 1, dims, text));
    }
    if (p->batch)
        dims[ndim++] = p->rows;
    dims[ndim++] = size ? e.row_most / size : e.most_steps;
    memcpy(dims + ndim, s->dims, (size_t)s->ndim * sizeof(dims[0]));
    rc = op_out_new(p->c, out, ndim + s->ndim, dims);
    if (!rc)
        rc = op_out_new(p->c, out + n, p->batch, &p->rows);
    if (rc)
        return rc;
    tensor_zero(op_out(p->c, out));
    for (int64_t row = 0; row < p->rows && !rc; row++)
        rc =
            list_dense_row(p, d, row, op_out(p->c, out), size, row * e.row_most,
                           TENSOR_DATA(op_out(p->c, out + n), int64_t) + row);
    return rc;
}

static enum mst_code list_sparse(struct parse *p, int i, int out)
{
    int n = p->g->count[L_SPARSE], column = p->g->first[L_SPARSE] + i;
    enum dtype dt = type_of(p, out + n);
    int64_t at = 0, *index, *shape;
    struct extent e;
    enum mst_code rc = measure_list(p, column, dt, &e);

    if (!rc)
        rc = new_sparse(p, out, n, e.values, 2 + p->batch);
    if (rc)
        return rc;
    index = op_out(p->c, out)->data;
    shape = op_out(p->c, out + 2 * n)->data;
    for (int64_t row = 0; row < p->rows; row++) {
        const struct example_bytes *list = found(p, row, column);
        struct pb_in in = pb_in(list->data, list->len);
        struct example_bytes b;
        struct example_feature f;

        for (int64_t step = 0; example_next(&in, &b); step++) {
            int64_t count = count_values(b, dt, &f);

            if (count)
                example_read(&f, op_out(p->c, out + n), at);
            for (int64_t k = 0; k < count; k++) {
                if (p->batch)
                    *index++ = row;
                *index++ = step;
                *index++ = k;
            }
            at += count;
        }
    }
    if (p->batch)
        *shape++ = p->rows;
    *shape++ = e.most_steps;
    *shape = e.most_values;
    return MST_OK;
}

static enum mst_code list_ragged(struct parse *p, int i, int out)
{
    int n = p->g->count[L_RAGGED], column = p->g->first[L_RAGGED] + i;
    enum dtype dt = type_of(p, out);
    struct tensor *outer, *inner;
    int64_t at = 0, steps = 0;
    struct extent e;
    enum mst_code rc = measure_list(p, column, dt, &e);

    if (!rc)
        rc = op_out_new(p->c, out, 1, &e.values);
    if (!rc)
        rc = op_out_new(p->c, out + n, p->batch, (int64_t[]){ p->rows + 1 });
    if (!rc)
        rc = op_out_new(p->c, out + 2 * n, 1, (int64_t[]){ e.steps + 1 });
    if (rc)
        return rc;
    outer = op_out(p->c, out + n);
    inner = op_out(p->c, out + 2 * n);
    tensor_zero(outer);
    example_set_split(inner, 0, 0);
    for (int64_t row = 0; row < p->rows; row++) {
        const struct example_bytes *list = found(p, row, column);
        struct pb_in in = pb_in(list->data, list->len);
        struct example_bytes b;
        struct example_feature f;

        while (example_next(&in, &b)) {
            int64_t count = count_values(b, dt, &f);

            if (count)
                example_read(&f, op_out(p->c, out), at);
            at += count;
            example_set_split(inner, ++steps, at);
        }
        if (p->batch)
            example_set_split(outer, row + 1, steps);
    }
    return MST_OK;
}

/* ---- all ---- */

/* The columns of a group, whose outputs are `outputs` lists. */
static enum mst_code fill_group(struct parse *p, enum group k, int outputs,
                                enum mst_code (*fill)(struct parse *p, int i,
                                                      int out))
{
    enum mst_code rc = MST_OK;

    for (int i = 0; i < p->g->count[k] && !rc; i++)
        rc = fill(p, i, p->out + i);
    p->out += outputs * p->g->count[k];
    return rc;
}

static enum mst_code fill(struct parse *p)
{
    enum mst_code rc = fill_group(p, C_SPARSE, 3, context_sparse);

    if (!rc)
        rc = fill_group(p, C_DENSE, 1, context_dense);
    if (!rc)
        rc = fill_group(p, C_RAGGED, 2, context_ragged);
    if (!rc)
        rc = fill_group(p, L_SPARSE, 3, list_sparse);
    if (!rc)
        rc = fill_group(p, L_DENSE, 2, list_dense);
    return rc ? rc : fill_group(p, L_RAGGED, 3, list_ragged);
}

static enum mst_code parse_sequence(struct op_ctx *c)
{
    struct parse p = { .c = c, .g = c->node->state };
    enum mst_code rc;

    example_keys_init(&p.context);
    example_keys_init(&p.lists);
    rc = read_inputs(&p);
    if (!rc)
        rc = scan(&p);
    if (!rc)
        rc = fill(&p);
    example_keys_done(&p.context);
    example_keys_done(&p.lists);
    mem_free(p.key);
    buffer_unref(p.memory);
    return rc;
}

#define SEQUENCE_TYPES "list({float, int64, string}) >= 0 = []; "
#define SPLIT_TYPES    "list({int32, int64}) >= 0 = []; "
#define SHAPES         "list(shape) >= 0 = []"

const struct op_def def_parse_sequence_example = {
    .name = "ParseSequenceExample",
    .in = "serialized: string, debug_name: string, "
          "context_dense_defaults: Tcontext_dense",
    .out = "context_sparse_indices: Ncontext_sparse * int64, "
           "context_sparse_values: context_sparse_types, "
           "context_sparse_shapes: Ncontext_sparse * int64, "
           "context_dense_values: Tcontext_dense, "
           "feature_list_sparse_indices: Nfeature_list_sparse * int64, "
           "feature_list_sparse_values: feature_list_sparse_types, "
           "feature_list_sparse_shapes: Nfeature_list_sparse * int64, "
           "feature_list_dense_values: feature_list_dense_types, "
           "feature_list_dense_lengths: Nfeature_list_dense * int64",
    .attr = "feature_list_dense_missing_assumed_empty: list(string) >= 0; "
            "context_sparse_keys: list(string) >= 0; "
            "context_dense_keys: list(string) >= 0; "
            "feature_list_sparse_keys: list(string) >= 0; "
            "feature_list_dense_keys: list(string) >= 0; "
            "Ncontext_sparse: int >= 0 = 0; Ncontext_dense: int >= 0 = 0; "
            "Nfeature_list_sparse: int >= 0 = 0; "
            "Nfeature_list_dense: int >= 0 = 0; "
            "context_sparse_types: " SEQUENCE_TYPES
            "Tcontext_dense: " SEQUENCE_TYPES
            "feature_list_dense_types: " SEQUENCE_TYPES
            "context_dense_shapes: " SHAPES "; "
            "feature_list_sparse_types: " SEQUENCE_TYPES
            "feature_list_dense_shapes: " SHAPES,
    .flags = OP_EXPENSIVE,
    .init = sequence_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, parse_sequence }, { 0 } },
};

const struct op_def def_parse_sequence_example_v2 = {
    .name = "ParseSequenceExampleV2",
    .in = "serialized: string, debug_name: string, "
          "context_sparse_keys: string, context_dense_keys: string, "
          "context_ragged_keys: string, feature_list_sparse_keys: string, "
          "feature_list_dense_keys: string, feature_list_ragged_keys: string, "
          "feature_list_dense_missing_assumed_empty: bool, "
          "context_dense_defaults: Tcontext_dense",
    .out = "context_sparse_indices: Ncontext_sparse * int64, "
           "context_sparse_values: context_sparse_types, "
           "context_sparse_shapes: Ncontext_sparse * int64, "
           "context_dense_values: Tcontext_dense, "
           "context_ragged_values: context_ragged_value_types, "
           "context_ragged_row_splits: context_ragged_split_types, "
           "feature_list_sparse_indices: Nfeature_list_sparse * int64, "
           "feature_list_sparse_values: feature_list_sparse_types, "
           "feature_list_sparse_shapes: Nfeature_list_sparse * int64, "
           "feature_list_dense_values: feature_list_dense_types, "
           "feature_list_dense_lengths: Nfeature_list_dense * int64, "
           "feature_list_ragged_values: feature_list_ragged_value_types, "
           "feature_list_ragged_outer_splits: "
           "feature_list_ragged_split_types, "
           "feature_list_ragged_inner_splits: feature_list_ragged_split_types",
    .attr = "Ncontext_sparse: int >= 0 = 0; Tcontext_dense: " SEQUENCE_TYPES
            "context_sparse_types: " SEQUENCE_TYPES
            "context_ragged_value_types: " SEQUENCE_TYPES
            "context_ragged_split_types: " SPLIT_TYPES
            "context_dense_shapes: " SHAPES "; "
            "Nfeature_list_sparse: int >= 0 = 0; "
            "Nfeature_list_dense: int >= 0 = 0; "
            "feature_list_dense_types: " SEQUENCE_TYPES
            "feature_list_sparse_types: " SEQUENCE_TYPES
            "feature_list_ragged_value_types: " SEQUENCE_TYPES
            "feature_list_ragged_split_types: " SPLIT_TYPES
            "feature_list_dense_shapes: " SHAPES,
    .flags = OP_EXPENSIVE,
    .init = sequence_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, parse_sequence }, { 0 } },
};
