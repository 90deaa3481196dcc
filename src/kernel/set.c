/*
 * Sets: the values along the last dimension of a tensor, dense or sparse, each
 * counted once. What stands before the last dimension numbers the sets, the
 * groups. An operation takes two tensors with the same groups and gives a
 * sparse tensor of sets in the order of their values.
 *
 * Both operands are walked together, group by group, in rising order; a dense
 * operand whose sets are empty has no groups at all, so that a shape with a
 * great many of them costs nothing. A set is a sorted array of the numbers of
 * elements; values are copied once, at the end.
 */
#include <ctype.h>
#include <stdlib.h>

#include "base/mem.h"
#include "kernel/sparse.h"
#include "kernel/types.h"

#define GROUP_END INT64_MAX

typedef int compare_fn(const struct tensor *a, int64_t i,
                       const struct tensor *b, int64_t k);

#define COMPARE(s, T, A, DT, LD, ST)                                           \
    static int compare_##s(const struct tensor *a, int64_t i,                  \
                           const struct tensor *b, int64_t k)                  \
    {                                                                          \
        T x = TENSOR_DATA(a, T)[i], y = TENSOR_DATA(b, T)[k];                  \
                                                                               \
        return x < y ? -1 : x > y;                                             \
    }
#define COMPARE_CASE(s, T, A, DT, LD, ST)                                      \
    case DT:                                                                   \
        return compare_##s;

TYPES_INT(COMPARE)

static int compare_str(const struct tensor *a, int64_t i,
                       const struct tensor *b, int64_t k)
{
    const struct str *x = tensor_str(a, i), *y = tensor_str(b, k);
    int way = memcmp(x->len ? x->data : "", y->len ? y->data : "",
                     MIN(x->len, y->len));

    return way ? way : x->len < y->len ? -1 : x->len > y->len;
}

static compare_fn *compare_of(const struct tensor *t)
{
    switch (t->dtype) {
        TYPES_INT(COMPARE_CASE)
    default:
        return compare_str;
    }
}

/* What the node's attributes say. */
struct operation {
    unsigned keep; /* enum keep; SetSize has none */
    bool check;    /* the order of indices too */
};

/* ---- operands ---- */

/* One operand, and the set that the walk has come to. */
struct side {
    const struct tensor *values;
    struct shape shape;
    int64_t length;    /* of the sets, when dense */
    struct sparse s;   /* when not: s.indices is set */
    struct tensor own; /* the indices that were checked */
    compare_fn *compare;
    int64_t at, group; /* the next element, and its group */
    int64_t *set, count, room;
};

static void side_done(struct side *e)
{
    mem_free(e->set);
    tensor_unref(&e->own);
}

/* The number of the group that element i is in. */
static int64_t group_of(const struct side *e, int64_t i)
{
    const int64_t *index;
    int64_t group = 0;

    if (!e->s.indices)
        return e->length && i < e->values->count ? i / e->length : GROUP_END;
    if (i >= e->s.n)
        return GROUP_END;
    index = sparse_row(&e->s, i);
    for (int d = 0; d < e->shape.ndim - 1; d++)
        group = group * e->shape.dims[d] + index[d];
    return group;
}

static void side_start(struct side *e)
{
    e->compare = compare_of(e->values);
    e->at = 0;
    e->group = group_of(e, 0);
}

static int compare_at(const void *a, const void *b, void *arg)
{
    const struct side *e = arg;

    return e->compare(e->values, *(const int64_t *)a, e->values,
                      *(const int64_t *)b);
}

/* The set of the group that the walk is at, sorted; and on to the next. The
 * set is empty when this operand has no such group. */
static void side_take(struct side *e, int64_t group)
{
    int64_t n = 0;

    e->count = 0;
    if (e->group != group)
        return;
    for (; group_of(e, e->at) == group; e->at++)
        *MEM_PUSH(e->set, e->count, e->room) = e->at;
    qsort_r(e->set, (size_t)e->count, sizeof(*e->set), compare_at, e);
    for (int64_t i = 0; i < e->count; i++)
        if (!n || compare_at(&e->set[n - 1], &e->set[i], e))
            e->set[n++] = e->set[i];
    e->count = n;
    e->group = group_of(e, e->at);
}

static enum mst_code read_dense(struct op_ctx *c, int i, struct side *e)
{
    const struct tensor *t = op_in(c, i);

    *e = (struct side){ .values = t, .shape.ndim = t->ndim };
    memcpy(e->shape.dims, t->dims, sizeof(t->dims));
    e->length = t->ndim ? t->dims[t->ndim - 1] : 0;
    return MST_OK;
}

/* With indices that were checked: outside of the shape nothing may lie. */
static enum mst_code read_sparse(struct op_ctx *c, int i, struct side *e)
{
    const struct tensor *shape = op_in(c, i + 2);
    int64_t size;
    enum mst_code rc;

    *e = (struct side){ 0 };
    if (shape->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT, "Shape must be a 1D tensor.");
    if (shape->count < 2)
        return op_fail(c, MST_INVALID_ARGUMENT, "Invalid rank %lld.",
                       (long long)shape->count);
    rc = sparse_create(c, i, &e->s);
    if (!rc)
        rc = sparse_size(c, shape, &size);
    if (!rc)
        rc = sparse_own(c, &e->s, &e->own);
    if (rc)
        return rc;
    e->values = e->s.values;
    e->shape.ndim = e->s.ndim;
    for (int d = 0; d < e->s.ndim; d++)
        e->shape.dims[d] = tensor_int(shape, d);
    return sparse_check(c, &e->s,
                        ((const struct operation *)c->node->state)->check);
}

/* ---- how many ---- */

static enum mst_code sizes_put(struct op_ctx *c, struct side *e)
{
    enum mst_code rc = op_out_new(c, 0, e->shape.ndim - 1, e->shape.dims);

    if (rc)
        return rc;
    tensor_zero(op_out(c, 0));
    side_start(e);
    while (e->group != GROUP_END) {
        int64_t group = e->group;

        side_take(e, group);
        TENSOR_DATA(op_out(c, 0), int32_t)[group] = (int32_t)e->count;
    }
    return MST_OK;
}

static enum mst_code set_size(struct op_ctx *c)
{
    struct side e;
    enum mst_code rc = read_sparse(c, 0, &e);

    if (!rc)
        rc = sizes_put(c, &e);
    side_done(&e);
    return rc;
}

/* ---- two of them ---- */

enum keep { ONLY_A = 1, ONLY_B = 2, BOTH = 4 };

static const struct {
    const char *name;
    unsigned keep;
} OPERATIONS[] = { { "a-b", ONLY_A },
                   { "b-a", ONLY_B },
                   { "intersection", BOTH },
                   { "union", ONLY_A | ONLY_B | BOTH } };

static enum mst_code operation_init(struct op_node *n, struct status *st)
{
    struct attr_text name = op_attr_str(n, "set_operation");
    struct operation *o = ARENA_NEW(n->arena, struct operation);
    char *lower = arena_strn(n->arena, name.data, name.len);

    for (char *p = lower; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    for (size_t i = 0; i < sizeof(OPERATIONS) / sizeof(*OPERATIONS); i++)
        if (!strcmp(lower, OPERATIONS[i].name))
            o->keep = OPERATIONS[i].keep;
    if (!o->keep)
        return status_set(st, MST_INVALID_ARGUMENT, "Invalid set_operation %s.",
                          lower);
    o->check = op_attr_bool(n, "validate_indices");
    n->state = o;
    return MST_OK;
}

struct kept {
    const struct tensor *values;
    int64_t from, group, place;
};

struct result {
    struct kept *kept;
    int64_t count, room, longest;
};

static void keep(struct result *r, const struct side *e, int64_t from,
                 int64_t group, int64_t place)
{
    struct kept *k = MEM_PUSH(r->kept, r->count, r->room);

    *k = (struct kept){ e->values, from, group, place };
    r->longest = MAX(r->longest, place + 1);
}

/* Both sets are sorted: merges them. */
static void merge(struct result *r, const struct side *a, const struct side *b,
                  int64_t group, unsigned which)
{
    int64_t i = 0, k = 0, place = 0;

    while (i < a->count || k < b->count) {
        int way = i == a->count ? 1
                  : k == b->count
                      ? -1
                      : a->compare(a->values, a->set[i], b->values, b->set[k]);
        unsigned case_ = way < 0 ? ONLY_A : way > 0 ? ONLY_B : BOTH;

        if (which & case_)
            keep(r, way > 0 ? b : a, way > 0 ? b->set[k] : a->set[i], group,
                 place++);
        i += way <= 0;
        k += way >= 0;
    }
}

static enum mst_code result_put(struct op_ctx *c, const struct result *r,
                                const struct shape *shape)
{
    int64_t ndim = shape->ndim, *index, *dims;
    enum mst_code rc = op_out_new(c, 0, 2, (int64_t[]){ r->count, ndim });

    if (!rc)
        rc = op_out_new(c, 1, 1, &r->count);
    if (!rc)
        rc = op_out_new(c, 2, 1, &ndim);
    if (rc)
        return rc;
    index = op_out(c, 0)->data;
    for (int64_t i = 0; i < r->count; i++, index += ndim) {
        int64_t group = r->kept[i].group;

        index[ndim - 1] = r->kept[i].place;
        for (int64_t d = ndim - 2; d >= 0; d--) {
            index[d] = group % shape->dims[d];
            group /= shape->dims[d];
        }
        tensor_copy_elems(op_out(c, 1), i, r->kept[i].values, r->kept[i].from,
                          1);
    }
    dims = op_out(c, 2)->data;
    memcpy(dims, shape->dims, (size_t)ndim * sizeof(*dims));
    dims[ndim - 1] = r->longest;
    return MST_OK;
}

static enum mst_code check_groups(struct op_ctx *c, const struct side *a,
                                  const struct side *b)
{
    char x[SHAPE_TEXT_MAX], y[SHAPE_TEXT_MAX];
    const struct shape *s[] = { &a->shape, &b->shape };

    for (int i = 0; i < 2; i++)
        if (s[i]->ndim < 2)
            return op_fail(c, MST_INVALID_ARGUMENT, "Shape %s has rank %d < 2",
                           shape_text(s[i]->ndim, s[i]->dims, x), s[i]->ndim);
    if (s[0]->ndim != s[1]->ndim ||
        memcmp(s[0]->dims, s[1]->dims,
               (size_t)(s[0]->ndim - 1) * sizeof(s[0]->dims[0])))
        return op_fail(c, MST_INVALID_ARGUMENT, "Mismatched shapes %s vs %s",
                       shape_text(s[0]->ndim - 1, s[0]->dims, x),
                       shape_text(s[1]->ndim - 1, s[1]->dims, y));
    return MST_OK;
}

static enum mst_code operate(struct op_ctx *c, struct side *a, struct side *b)
{
    const struct operation *o = c->node->state;
    struct result r = { 0 };
    enum mst_code rc = check_groups(c, a, b);

    if (rc)
        return rc;
    side_start(a);
    side_start(b);
    for (;;) {
        int64_t group = MIN(a->group, b->group);

        if (group == GROUP_END)
            break;
        side_take(a, group);
        side_take(b, group);
        merge(&r, a, b, group, o->keep);
    }
    rc = result_put(c, &r, &a->shape);
    mem_free(r.kept);
    return rc;
}

static enum mst_code set_operation(struct op_ctx *c, bool dense_a, bool dense_b)
{
    struct side a = { 0 }, b = { 0 };
    enum mst_code rc = dense_a ? read_dense(c, 0, &a) : read_sparse(c, 0, &a);

    if (!rc)
        rc = dense_b ? read_dense(c, 1, &b)
                     : read_sparse(c, dense_a ? 1 : 3, &b);
    if (!rc)
        rc = operate(c, &a, &b);
    side_done(&a);
    side_done(&b);
    return rc;
}

static enum mst_code dense_dense(struct op_ctx *c)
{
    return set_operation(c, true, true);
}

static enum mst_code dense_sparse(struct op_ctx *c)
{
    return set_operation(c, true, false);
}

static enum mst_code sparse_sparse(struct op_ctx *c)
{
    return set_operation(c, false, false);
}

/* ---- records ---- */

#define SPARSE_IN(n) #n "_indices: int64, " #n "_values: T, " #n "_shape: int64"
#define SET_ATTRS                                                              \
    "set_operation: string; validate_indices: bool = true; "                   \
    "T: {int8, int16, int32, int64, uint8, uint16, string}"

#define SET_DEF(stem, text, in_, fn)                                           \
    const struct op_def def_##stem = {                                         \
        .name = text,                                                          \
        .in = in_,                                                             \
        .out = SPARSE_IN(result),                                              \
        .attr = SET_ATTRS,                                                     \
        .init = operation_init,                                                \
        .kernel = (const struct op_kernel[]){ { DT_ANY, fn }, { 0 } },         \
    };

SET_DEF(dense_to_dense_set_operation, "DenseToDenseSetOperation",
        "set1: T, set2: T", dense_dense)
SET_DEF(dense_to_sparse_set_operation, "DenseToSparseSetOperation",
        "set1: T, " SPARSE_IN(set2), dense_sparse)
SET_DEF(sparse_to_sparse_set_operation, "SparseToSparseSetOperation",
        SPARSE_IN(set1) ", " SPARSE_IN(set2), sparse_sparse)

static enum mst_code size_init(struct op_node *n, struct status *st)
{
    struct operation *o = ARENA_NEW(n->arena, struct operation);

    (void)st;
    o->check = op_attr_bool(n, "validate_indices");
    n->state = o;
    return MST_OK;
}

const struct op_def def_set_size = {
    .name = "SetSize",
    .in = SPARSE_IN(set),
    .out = "size: int32",
    .attr = "validate_indices: bool = true; "
            "T: {int8, int16, int32, int64, uint8, uint16, string}",
    .init = size_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, set_size }, { 0 } },
};
