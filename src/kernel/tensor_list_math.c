/*
 * Sums and zeros of tensor lists: what AddN and ZerosLike do with the
 * gradients of loops. One level deep; lists of lists are refused.
 */
#include "kernel/combine.h"
#include "kernel/element.h"
#include "kernel/tensor_list.h"

static enum mst_code add_items(const struct tensor *a, const struct tensor *b,
                               struct tensor *ret, struct status *st)
{
    char x[SHAPE_TEXT_MAX], y[SHAPE_TEXT_MAX];
    struct combiner add;
    enum mst_code rc;

    /* One that is not set is zeros. */
    if (!tensor_set(a) || !tensor_set(b)) {
        *ret = tensor_ref(tensor_set(a) ? a : b);
        return MST_OK;
    }
    if (!tensor_same_shape(a, b))
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Trying to add two tensors with incompatible element "
                          "shapes. One is %s and the other is %s",
                          tensor_shape_text(a, x), tensor_shape_text(b, y));
    if (!dtype_is_plain((enum dtype)a->dtype) ||
        !combiner_init(&add, COMBINE_ADD, (enum dtype)a->dtype))
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Trying to add unsupported dtype %d", a->dtype);
    rc = tensor_new_like(ret, (enum dtype)a->dtype, a, st);
    if (!rc)
        combine(&add, ret->data, a->data, b->data, a->count);
    return rc;
}

static enum mst_code check_add(const struct tensor_list *a,
                               const struct tensor_list *b, struct shape *shape,
                               struct status *st)
{
    char x[SHAPE_TEXT_MAX], y[SHAPE_TEXT_MAX];

    if (a->dtype != b->dtype)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Trying to add two lists of tensors of different "
                          "dtypes. One is %s and the other is %s",
                          dtype_name(a->dtype), dtype_name(b->dtype));
    if (!element_shape_merge(&a->shape, &b->shape, shape))
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Trying to add two lists of tensors with "
                          "incompatible element shapes. One is %s and the "
                          "other is %s",
                          shape_text(a->shape.ndim, a->shape.dims, x),
                          shape_text(b->shape.ndim, b->shape.dims, y));
    if (a->count != b->count)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Trying to add two lists of tensors with different "
                          "lengths. One is %lld and the other is %lld",
                          (long long)a->count, (long long)b->count);
    return MST_OK;
}

static enum mst_code add_lists(const struct tensor_list *a,
                               const struct tensor_list *b,
                               struct tensor_list **ret, struct status *st)
{
    struct tensor_list *sum;
    struct shape shape;
    enum mst_code rc = check_add(a, b, &shape, st);

    if (rc)
        return rc;
    sum = tensor_list_new(a->dtype, &shape, -1);
    tensor_list_resize(sum, a->count);
    for (int64_t i = 0; i < a->count && !rc; i++)
        rc = add_items(&a->items[i], &b->items[i], &sum->items[i], st);
    if (rc)
        object_unref(&sum->o);
    else
        *ret = sum;
    return rc;
}

static enum mst_code zeros_like(const struct tensor_list *x,
                                struct tensor_list **ret, struct status *st)
{
    struct tensor_list *y = tensor_list_new(x->dtype, &x->shape, -1);
    enum mst_code rc = MST_OK;

    tensor_list_resize(y, x->count);
    for (int64_t i = 0; i < x->count && !rc; i++) {
        if (!tensor_set(&x->items[i]))
            continue;
        rc = tensor_new_like(&y->items[i], (enum dtype)x->dtype, &x->items[i],
                             st);
        if (!rc)
            tensor_zero(&y->items[i]);
    }
    if (rc)
        object_unref(&y->o);
    else
        *ret = y;
    return rc;
}

/* ---- kernels for DT_VARIANT ---- */

enum mst_code tensor_list_add_n(struct op_ctx *c)
{
    const struct tensor_list *sum, *next;
    struct tensor_list *made = NULL;
    enum mst_code rc = tensor_list_in(c, 0, &sum);

    for (int i = 1; i < c->node->in_count && !rc; i++) {
        struct tensor_list *more;

        rc = tensor_list_in(c, i, &next);
        if (!rc)
            rc = add_lists(sum, next, &more, c->st);
        if (rc)
            break;
        if (made)
            object_unref(&made->o);
        sum = made = more;
    }
    if (!rc && made)
        return tensor_list_out(c, made);
    if (made)
        object_unref(&made->o);
    if (!rc)
        op_out_same(c, 0, 0);
    return rc;
}

enum mst_code tensor_list_zeros_like(struct op_ctx *c)
{
    const struct tensor_list *x;
    struct tensor_list *y;
    enum mst_code rc = tensor_list_in(c, 0, &x);

    if (!rc)
        rc = zeros_like(x, &y, c->st);
    return rc ? rc : tensor_list_out(c, y);
}
