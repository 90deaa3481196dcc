/*
 * Lists and optionals hold tensors, which may hold lists and optionals. They
 * are walked to a depth that no gradient has. Numbers and ragged values can be
 * added, too.
 */
#include "kernel/variant.h"

#include "kernel/combine.h"
#include "kernel/element.h"
#include "tensor/list.h"
#include "tensor/number.h"
#include "tensor/optional.h"
#include "tensor/ragged.h"

#define DEPTH_MAX 16

struct walk {
    struct status *st;
    int depth;
};

static enum mst_code add_objects(struct walk w, const struct object *a,
                                 const struct object *b, struct object **ret);
static enum mst_code zero_object(struct walk w, const struct object *x,
                                 struct object **ret);

static enum mst_code unsupported(struct walk w, const char *what,
                                 const char *kind)
{
    return status_set(w.st, MST_INTERNAL,
                      "No unary or binary variant op %s was registered for "
                      "type %s",
                      what, kind);
}

/* ---- tensors ---- */

static enum mst_code add_plain(struct walk w, const struct tensor *a,
                               const struct tensor *b, struct tensor *ret)
{
    struct combiner add;
    enum mst_code rc;

    if (!dtype_is_plain((enum dtype)a->dtype) || a->dtype == DT_BOOL ||
        !combiner_init(&add, COMBINE_ADD, (enum dtype)a->dtype))
        return status_set(w.st, MST_INVALID_ARGUMENT,
                          "Trying to add unsupported dtype %d", a->dtype);
    rc = tensor_new_like(ret, (enum dtype)a->dtype, a, w.st);
    if (!rc)
        combine(&add, ret->data, a->data, b->data, a->count);
    return rc;
}

static enum mst_code add_tensors(struct walk w, const struct tensor *a,
                                 const struct tensor *b, struct tensor *ret)
{
    char x[SHAPE_TEXT_MAX], y[SHAPE_TEXT_MAX];
    struct tensor sum;
    enum mst_code rc;

    /* One that is not set is zeros. */
    if (!tensor_set(a) || !tensor_set(b)) {
        *ret = tensor_ref(tensor_set(a) ? a : b);
        return MST_OK;
    }
    if (a->dtype != b->dtype || !tensor_same_shape(a, b))
        return status_set(w.st, MST_INVALID_ARGUMENT,
                          "Trying to add two tensors with incompatible element "
                          "shapes. One is %s and the other is %s",
                          tensor_shape_text(a, x), tensor_shape_text(b, y));
    if (a->dtype != DT_VARIANT)
        return add_plain(w, a, b, ret);
    rc = tensor_new_like(&sum, DT_VARIANT, a, w.st);
    if (rc)
        return rc;
    for (int64_t i = 0; i < a->count && !rc; i++)
        rc = add_objects(w, *tensor_object(a, i), *tensor_object(b, i),
                         tensor_object(&sum, i));
    if (rc)
        tensor_unref(&sum);
    else
        *ret = sum;
    return rc;
}

static enum mst_code zero_tensor(struct walk w, const struct tensor *x,
                                 struct tensor *ret)
{
    struct tensor y;
    enum mst_code rc;

    if (!tensor_set(x))
        return MST_OK;
    rc = tensor_new_like(&y, (enum dtype)x->dtype, x, w.st);
    if (rc)
        return rc;
    tensor_zero(&y);
    for (int64_t i = 0; x->dtype == DT_VARIANT && i < x->count && !rc; i++)
        rc = zero_object(w, *tensor_object(x, i), tensor_object(&y, i));
    if (rc)
        tensor_unref(&y);
    else
        *ret = y;
    return rc;
}

/* ---- lists ---- */

static enum mst_code check_lists(struct walk w, const struct tensor_list *a,
                                 const struct tensor_list *b,
                                 struct shape *shape)
{
    char x[SHAPE_TEXT_MAX], y[SHAPE_TEXT_MAX];

    if (a->dtype != b->dtype)
        return status_set(w.st, MST_INVALID_ARGUMENT,
                          "Trying to add two lists of tensors of different "
                          "dtypes. One is %s and the other is %s",
                          dtype_name(a->dtype), dtype_name(b->dtype));
    if (!element_shape_merge(&a->shape, &b->shape, shape))
        return status_set(w.st, MST_INVALID_ARGUMENT,
                          "Trying to add two lists of tensors with "
                          "incompatible element shapes. One is %s and the "
                          "other is %s",
                          shape_text(a->shape.ndim, a->shape.dims, x),
                          shape_text(b->shape.ndim, b->shape.dims, y));
    if (a->count != b->count)
        return status_set(w.st, MST_INVALID_ARGUMENT,
                          "Trying to add two lists of tensors with different "
                          "lengths. One is %lld and the other is %lld",
                          (long long)a->count, (long long)b->count);
    return MST_OK;
}

static enum mst_code add_lists(struct walk w, const struct tensor_list *a,
                               const struct tensor_list *b, struct object **ret)
{
    struct tensor_list *sum;
    struct shape shape;
    enum mst_code rc = check_lists(w, a, b, &shape);

    if (rc)
        return rc;
    sum = tensor_list_new(a->dtype, &shape, -1);
    tensor_list_resize(sum, a->count);
    for (int64_t i = 0; i < a->count && !rc; i++)
        rc = add_tensors(w, &a->items[i], &b->items[i], &sum->items[i]);
    if (rc)
        object_unref(&sum->o);
    else
        *ret = &sum->o;
    return rc;
}

static enum mst_code zero_list(struct walk w, const struct tensor_list *x,
                               struct object **ret)
{
    struct tensor_list *y = tensor_list_new(x->dtype, &x->shape, -1);
    enum mst_code rc = MST_OK;

    tensor_list_resize(y, x->count);
    for (int64_t i = 0; i < x->count && !rc; i++)
        rc = zero_tensor(w, &x->items[i], &y->items[i]);
    if (rc)
        object_unref(&y->o);
    else
        *ret = &y->o;
    return rc;
}

/* ---- optionals ---- */

static enum mst_code add_optionals(struct walk w, const struct optional *a,
                                   const struct optional *b,
                                   struct object **ret)
{
    struct optional *sum;
    enum mst_code rc = MST_OK;

    if ((a->count < 0) != (b->count < 0))
        return status_set(w.st, MST_INVALID_ARGUMENT,
                          "Cannot add optionals because one has a value and "
                          "the other doesn't.");
    if (a->count != b->count)
        return status_set(w.st, MST_INVALID_ARGUMENT,
                          "Cannot add optionals because they have different "
                          "numbers of components (%d vs. %d).",
                          a->count, b->count);
    sum = optional_new(a->count);
    for (int i = 0; i < a->count && !rc; i++)
        rc = add_tensors(w, &a->values[i], &b->values[i], &sum->values[i]);
    if (rc)
        object_unref(&sum->o);
    else
        *ret = &sum->o;
    return rc;
}

static enum mst_code zero_optional(struct walk w, const struct optional *x,
                                   struct object **ret)
{
    struct optional *y = optional_new(x->count);
    enum mst_code rc = MST_OK;

    for (int i = 0; i < x->count && !rc; i++)
        rc = zero_tensor(w, &x->values[i], &y->values[i]);
    if (rc)
        object_unref(&y->o);
    else
        *ret = &y->o;
    return rc;
}

/* ---- numbers ---- */

static enum mst_code box(enum mst_code rc, struct tensor value,
                         struct object **ret)
{
    if (!rc)
        *ret = &number_new(value)->o;
    return rc;
}

static enum mst_code add_numbers(struct walk w, const struct number *a,
                                 const struct number *b, struct object **ret)
{
    struct tensor sum = { 0 };
    enum mst_code rc = add_tensors(w, &a->value, &b->value, &sum);

    return box(rc, sum, ret);
}

static enum mst_code zero_number(struct walk w, const struct number *x,
                                 struct object **ret)
{
    struct tensor zero = { 0 };
    enum mst_code rc = zero_tensor(w, &x->value, &zero);

    return box(rc, zero, ret);
}

/* ---- ragged values: of one shape ---- */

static enum mst_code with_values(enum mst_code rc, const struct ragged_value *x,
                                 struct tensor values, struct object **ret)
{
    struct ragged_value *y;

    if (rc)
        return rc;
    y = ragged_value_new(x->rank);
    for (int i = 0; i < x->rank; i++)
        y->splits[i] = tensor_ref(&x->splits[i]);
    y->values = values;
    *ret = &y->o;
    return MST_OK;
}

static enum mst_code add_ragged(struct walk w, const struct ragged_value *a,
                                const struct ragged_value *b,
                                struct object **ret)
{
    struct tensor sum = { 0 };
    enum mst_code rc;

    if (a->rank != b->rank)
        return status_set(w.st, MST_INVALID_ARGUMENT,
                          "Can only add RaggedTensorVariants of the same "
                          "ragged_rank");
    rc = add_tensors(w, &a->values, &b->values, &sum);
    return with_values(rc, a, sum, ret);
}

static enum mst_code zero_ragged(struct walk w, const struct ragged_value *x,
                                 struct object **ret)
{
    struct tensor zero = { 0 };
    enum mst_code rc = zero_tensor(w, &x->values, &zero);

    return with_values(rc, x, zero, ret);
}

/* ---- any ---- */

static enum mst_code add_objects(struct walk w, const struct object *a,
                                 const struct object *b, struct object **ret)
{
    if (!a || !b || a->kind != b->kind || w.depth >= DEPTH_MAX)
        return unsupported(w, "AddN", a ? a->kind->name : "nothing");
    w.depth++;
    if (a->kind == &tensor_list_kind)
        return add_lists(w, CONTAINER(a, struct tensor_list, o),
                         CONTAINER(b, struct tensor_list, o), ret);
    if (a->kind == &optional_kind)
        return add_optionals(w, CONTAINER(a, struct optional, o),
                             CONTAINER(b, struct optional, o), ret);
    if (number_of(a))
        return add_numbers(w, number_of(a), number_of(b), ret);
    if (a->kind == &ragged_kind)
        return add_ragged(w, CONTAINER(a, struct ragged_value, o),
                          CONTAINER(b, struct ragged_value, o), ret);
    return unsupported(w, "AddN", a->kind->name);
}

static enum mst_code zero_object(struct walk w, const struct object *x,
                                 struct object **ret)
{
    if (!x || w.depth >= DEPTH_MAX)
        return unsupported(w, "ZerosLike", x ? x->kind->name : "nothing");
    w.depth++;
    if (x->kind == &tensor_list_kind)
        return zero_list(w, CONTAINER(x, struct tensor_list, o), ret);
    if (x->kind == &optional_kind)
        return zero_optional(w, CONTAINER(x, struct optional, o), ret);
    if (number_of(x))
        return zero_number(w, number_of(x), ret);
    if (x->kind == &ragged_kind)
        return zero_ragged(w, CONTAINER(x, struct ragged_value, o), ret);
    return unsupported(w, "ZerosLike", x->kind->name);
}

enum mst_code variant_add_n(struct op_ctx *c)
{
    struct walk w = { .st = c->st };
    struct tensor sum = tensor_ref(op_in(c, 0));
    enum mst_code rc = MST_OK;

    for (int i = 1; i < c->node->in_count && !rc; i++) {
        struct tensor more = { 0 };

        rc = add_tensors(w, &sum, op_in(c, i), &more);
        tensor_unref(&sum);
        sum = more;
    }
    if (rc)
        tensor_unref(&sum);
    else
        tensor_move(op_out(c, 0), &sum);
    return rc;
}

enum mst_code variant_zeros_like(struct op_ctx *c)
{
    return zero_tensor((struct walk){ .st = c->st }, op_in(c, 0), op_out(c, 0));
}
