/*
 * Crosses of features: every combination of one value from each column, as one
 * string or one hash. A column is a sparse matrix, or a dense one, with a row
 * for each member of the batch; rows without a value in some column give
 * nothing.
 *
 * The combinations of a row are counted like the digits of a number, the last
 * column fastest.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/mem.h"
#include "kernel/fingerprint.h"
#include "kernel/sparse.h"
#include "kernel/text.h"
#include "kernel/types.h"

struct column {
    const struct tensor *values;
    const struct tensor *indices; /* NULL: dense */
    int64_t at, count;            /* of the row that the walk is at */
    int64_t digit;
};

struct cross {
    struct column *columns;
    int count, sparse_count;
    int64_t rows;
    bool hashed;
    uint64_t buckets; /* 0: as many as there are numbers */
    bool salted;      /* begins with the first hash and not with the key */
    bool strong;
    uint64_t key[2];
    const struct str *separator;
};

struct cross_attrs {
    int sparse_count;
    bool hashed;
    uint64_t buckets, key;
};

/* ---- checks ---- */

static enum mst_code check_sparse(struct op_ctx *c, int n, int i)
{
    const struct tensor *index = op_in(c, i), *values = op_in(c, n + i);
    const struct tensor *shape = op_in(c, 2 * n + i);
    char text[SHAPE_TEXT_MAX];

    if (index->ndim != 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input indices should be a matrix but received shape %s "
                       "at position %d",
                       tensor_shape_text(index, text), i);
    if (index->dims[1] != 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Expected D2 of index to be 2 got %lld at position %d",
                       (long long)index->dims[1], i);
    if (values->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input values should be a vector but received shape %s "
                       "at position %d",
                       tensor_shape_text(values, text), i);
    if (index->dims[0] != values->count)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Expected size of values to be %lld got %lld at "
                       "position %d",
                       (long long)index->dims[0], (long long)values->count, i);
    if (shape->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input shapes should be a vector but received shape %s "
                       "at position %d",
                       tensor_shape_text(shape, text), i);
    if (shape->count != 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "shape should imply a 2D tensor, but got %s at position "
                       "%d",
                       tensor_shape_text(shape, text), i);
    return MST_OK;
}

static enum mst_code check_rows(struct op_ctx *c, struct cross *x)
{
    int n = x->sparse_count;

    if (n)
        x->rows = tensor_int(op_in(c, 2 * n), 0);
    else if (x->count)
        x->rows = x->columns[0].values->dims[0];
    for (int i = 0; i < n; i++)
        if (tensor_int(op_in(c, 2 * n + i), 0) != x->rows)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Expected batch size %lld got %lld at position %d",
                           (long long)x->rows,
                           (long long)tensor_int(op_in(c, 2 * n + i), 0), i);
    for (int i = n; i < x->count; i++)
        if (x->columns[i].values->dims[0] != x->rows)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Expected batch size %lld got %lld at dense tensor "
                           "%d",
                           (long long)x->rows,
                           (long long)x->columns[i].values->dims[0], i - n);
    if (x->rows < 0)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Expected a batch size of 0 or more, got %lld",
                       (long long)x->rows);
    return MST_OK;
}

/* The first n * 3 inputs are sparse columns, then `dense` dense ones. */
static enum mst_code read_columns(struct op_ctx *c, struct cross *x, int dense)
{
    int n = x->sparse_count;
    char text[SHAPE_TEXT_MAX];
    enum mst_code rc = MST_OK;

    x->count = n + dense;
    x->columns = mem_array((size_t)x->count, sizeof(*x->columns));
    for (int i = 0; i < n && !rc; i++) {
        rc = check_sparse(c, n, i);
        x->columns[i].indices = op_in(c, i);
        x->columns[i].values = op_in(c, n + i);
    }
    for (int i = 0; i < dense && !rc; i++) {
        const struct tensor *t = op_in(c, 3 * n + i);

        x->columns[n + i].values = t;
        if (t->ndim != 2)
            rc = op_fail(c, MST_INVALID_ARGUMENT,
                         "Dense inputs should be a matrix but received shape "
                         "%s at position %d",
                         tensor_shape_text(t, text), i);
    }
    return rc ? rc : check_rows(c, x);
}

/* ---- rows ---- */

static void columns_start(struct cross *x)
{
    for (int i = 0; i < x->count; i++)
        x->columns[i].at = x->columns[i].count = 0;
}

/* Moves all columns to a row; how many crosses it has, -1 when too many. */
static int64_t columns_row(struct cross *x, int64_t row)
{
    int64_t crosses = x->count > 0;

    for (int i = 0; i < x->count; i++) {
        struct column *col = &x->columns[i];

        col->digit = 0;
        col->at += col->count;
        if (!col->indices) {
            col->count = col->values->dims[1];
        } else {
            const int64_t *index = col->indices->data;
            int64_t end = col->at;

            while (end < col->values->count && index[2 * end] == row)
                end++;
            col->count = end - col->at;
        }
        if (crosses >= 0 &&
            __builtin_mul_overflow(crosses, col->count, &crosses))
            crosses = -1;
    }
    return crosses;
}

static void count_up(struct cross *x)
{
    for (int i = x->count - 1; i >= 0; i--) {
        if (++x->columns[i].digit < x->columns[i].count)
            return;
        x->columns[i].digit = 0;
    }
}

/* ---- values ---- */

static uint64_t hash_of(const struct cross *x, const struct column *col)
{
    int64_t at = col->at + col->digit, number;
    struct str bytes;

    if (col->values->dtype == DT_STRING) {
        bytes = *tensor_str(col->values, at);
    } else {
        number = tensor_int(col->values, at);
        if (!x->salted || !col->indices)
            return (uint64_t)number;
        /* TensorFlow hashes that many bytes, and models rely on it. */
        bytes = (struct str){ (char *)&number, 4 };
    }
    return x->strong ? fingerprint_keyed(x->key, bytes.data, bytes.len)
                     : fingerprint64(bytes.data, bytes.len);
}

static int64_t cross_hash(const struct cross *x)
{
    uint64_t h = x->salted ? hash_of(x, &x->columns[0]) : x->key[0];

    for (int i = x->salted; i < x->count; i++)
        h = fingerprint_cat(h, hash_of(x, &x->columns[i]));
    return (int64_t)(h % (x->buckets ? x->buckets : (uint64_t)INT64_MAX));
}

static void cross_text(const struct cross *x, struct str *ret)
{
    struct text t = { 0 };

    for (int i = 0; i < x->count; i++) {
        const struct column *col = &x->columns[i];
        int64_t at = col->at + col->digit;

        if (i)
            text_add_str(&t, x->separator);
        if (col->values->dtype == DT_STRING)
            text_add_str(&t, tensor_str(col->values, at));
        else
            text_addf(&t, "%" PRId64, tensor_int(col->values, at));
    }
    text_give(&t, ret);
}

/* ---- outputs ---- */

static enum mst_code cross_outputs(struct op_ctx *c, struct cross *x)
{
    int64_t total = 0, longest = 0;
    enum mst_code rc;

    columns_start(x);
    for (int64_t row = 0; row < x->rows; row++) {
        int64_t n = columns_row(x, row);

        if (n < 0 || __builtin_add_overflow(total, n, &total))
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "There are more crosses than can be counted");
        longest = MAX(longest, n);
    }
    rc = op_out_new(c, 0, 2, (int64_t[]){ total, 2 });
    if (!rc)
        rc = op_out_new(c, 1, 1, &total);
    if (!rc)
        rc = op_out_new(c, 2, 1, (int64_t[]){ 2 });
    if (rc)
        return rc;
    TENSOR_DATA(op_out(c, 2), int64_t)[0] = x->rows;
    TENSOR_DATA(op_out(c, 2), int64_t)[1] = longest;
    return MST_OK;
}

static enum mst_code cross_run(struct op_ctx *c, struct cross *x)
{
    int64_t *index, at = 0;
    enum mst_code rc = cross_outputs(c, x);

    if (rc)
        return rc;
    index = op_out(c, 0)->data;
    columns_start(x);
    for (int64_t row = 0; row < x->rows; row++) {
        int64_t n = columns_row(x, row);

        for (int64_t i = 0; i < n; i++, at++) {
            *index++ = row;
            *index++ = i;
            if (x->hashed)
                TENSOR_DATA(op_out(c, 1), int64_t)[at] = cross_hash(x);
            else
                cross_text(x, tensor_str(op_out(c, 1), at));
            count_up(x);
        }
    }
    return MST_OK;
}

/* `more` inputs at the end are no columns. */
static enum mst_code cross(struct op_ctx *c, struct cross *x, int more)
{
    const struct cross_attrs *a = c->node->state;
    enum mst_code rc;

    x->sparse_count = a->sparse_count;
    rc = read_columns(c, x, c->node->in_count - 3 * a->sparse_count - more);
    if (!rc)
        rc = cross_run(c, x);
    mem_free(x->columns);
    return rc;
}

/* ---- SparseCross ---- */

static enum mst_code cross_init(struct op_node *n, struct status *st)
{
    struct cross_attrs *a = ARENA_NEW(n->arena, struct cross_attrs);

    (void)st;
    a->sparse_count = (int)op_attr_int(n, "N");
    n->state = a;
    return MST_OK;
}

static enum mst_code cross_init_old(struct op_node *n, struct status *st)
{
    enum mst_code rc = cross_init(n, st);
    struct cross_attrs *a = n->state;

    a->hashed = op_attr_type(n, "out_type") == DT_INT64;
    a->buckets = (uint64_t)op_attr_int(n, "num_buckets");
    a->key = (uint64_t)op_attr_int(n, "hash_key");
    return rc;
}

static enum mst_code sparse_cross(struct op_ctx *c)
{
    const struct cross_attrs *a = c->node->state;
    struct str separator = { (char *)"_X_", 3 };
    struct cross x = { .hashed = a->hashed,
                       .buckets = a->buckets,
                       .key = { a->key },
                       .separator = &separator };

    return cross(c, &x, 0);
}

#define CROSS_IN                                                               \
    "indices: N * int64, values: sparse_types, shapes: N * int64, "            \
    "dense_inputs: dense_types"
#define CROSS_OUT(type)                                                        \
    "output_indices: int64, output_values: " type ", output_shape: int64"
#define CROSS_TYPES                                                            \
    "sparse_types: list({int64, string}) >= 0; "                               \
    "dense_types: list({int64, string}) >= 0"

const struct op_def def_sparse_cross = {
    .name = "SparseCross",
    .in = CROSS_IN,
    .out = CROSS_OUT("out_type"),
    .attr = "N: int >= 0; hashed_output: bool; num_buckets: int >= 0; "
            "hash_key: int; " CROSS_TYPES "; out_type: {int64, string}; "
            "internal_type: {int64, string}",
    .init = cross_init_old,
    .kernel = (const struct op_kernel[]){ { DT_ANY, sparse_cross }, { 0 } },
};

/* ---- SparseCrossV2 and SparseCrossHashed ---- */

static enum mst_code sparse_cross_v2(struct op_ctx *c)
{
    const struct tensor *separator = op_in(c, c->node->in_count - 1);
    struct cross x = { 0 };

    if (separator->count != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input separator should only be one element, but has "
                       "%lld",
                       (long long)separator->count);
    x.separator = tensor_str(separator, 0);
    return cross(c, &x, 1);
}

const struct op_def def_sparse_cross_v2 = {
    .name = "SparseCrossV2",
    .in = CROSS_IN ", sep: string",
    .out = CROSS_OUT("string"),
    .attr = "N: int >= 0; " CROSS_TYPES,
    .init = cross_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, sparse_cross_v2 }, { 0 } },
};

static enum mst_code sparse_cross_hashed(struct op_ctx *c)
{
    int at = c->node->in_count - 3;
    const struct tensor *buckets = op_in(c, at), *strong = op_in(c, at + 1);
    const struct tensor *salt = op_in(c, at + 2);
    struct cross x = { .hashed = true, .salted = true };

    if (buckets->count != 1 || strong->count != 1)
        return op_fail(
            c, MST_INVALID_ARGUMENT,
            "Input %s should only be one element, but has %lld",
            buckets->count != 1 ? "num_buckets" : "strong_hash",
            (long long)(buckets->count != 1 ? buckets->count : strong->count));
    if (salt->count != 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input \"salt\" must have length 2 but has length %lld",
                       (long long)salt->count);
    if (tensor_int(buckets, 0) < 0)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "num_buckets must not be negative");
    x.buckets = (uint64_t)tensor_int(buckets, 0);
    x.strong = *TENSOR_DATA(strong, bool);
    x.key[0] = (uint64_t)tensor_int(salt, 0);
    x.key[1] = (uint64_t)tensor_int(salt, 1);
    return cross(c, &x, 3);
}

const struct op_def def_sparse_cross_hashed = {
    .name = "SparseCrossHashed",
    .in = CROSS_IN ", num_buckets: int64, strong_hash: bool, salt: int64",
    .out = CROSS_OUT("int64"),
    .attr = "N: int >= 0; " CROSS_TYPES,
    .init = cross_init,
    .kernel =
        (const struct op_kernel[]){ { DT_ANY, sparse_cross_hashed }, { 0 } },
};
