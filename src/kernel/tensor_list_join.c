/*
 * The ops that put the elements of a tensor list together: stack, gather and
 * concat. An element that is not set counts as zeros of the elements' shape,
 * which the op, the list or other elements must tell.
 */
#include "base/mem.h"
#include "kernel/element.h"
#include "kernel/tensor_list.h"
#include "kernel/types.h"

static enum mst_code not_known(struct op_ctx *c, const char *text,
                               const struct shape *s)
{
    char shape[SHAPE_TEXT_MAX];

    return op_fail(c, MST_INVALID_ARGUMENT, "%s%s", text,
                   shape_text(s->ndim, s->dims, shape));
}

/* The element's shape, if it is set, goes together with what is known. */
static enum mst_code join_item(struct op_ctx *c, const struct tensor *item,
                               struct shape *shape)
{
    struct shape s = element_shape_of(item);

    return tensor_set(item) ? element_shape_join(c, shape, &s) : MST_OK;
}

/* Copies an element behind those before it, or zeros of `count`. */
static void put_item(struct op_ctx *c, const struct tensor *item, int64_t at,
                     int64_t count)
{
    struct tensor *out = op_out(c, 0);

    if (tensor_set(item))
        tensor_copy_elems(out, at, item, 0, count);
    else if (dtype_is_plain((enum dtype)out->dtype) && count)
        memset((uint8_t *)out->data +
                   (size_t)at * dtype_size((enum dtype)out->dtype),
               0, (size_t)count * dtype_size((enum dtype)out->dtype));
    /* Strings and objects begin empty. */
}

static enum mst_code out_batch(struct op_ctx *c, const struct shape *shape,
                               int64_t n)
{
    struct shape batch;

    if (!element_shape_batch(shape, n, &batch))
        return op_fail(c, MST_UNIMPLEMENTED, "A tensor of rank %d",
                       shape->ndim + 1);
    return op_out_new(c, 0, batch.ndim, batch.dims);
}

static enum mst_code stack_init(struct op_node *n, struct status *st)
{
    (void)st;
    n->state = (void *)(intptr_t)op_attr_int(n, "num_elements");
    return MST_OK;
}

static enum mst_code stack_run(struct op_ctx *c)
{
    int64_t expected = (intptr_t)c->node->state;
    const struct tensor_list *l;
    struct shape shape;
    int64_t each;
    enum mst_code rc = tensor_list_in_typed(c, 0, c->node->out_types[0], &l);

    if (rc)
        return rc;
    if (expected != -1 && l->count != expected)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Operation expected a list with %lld elements but got a "
                       "list with %lld elements.",
                       (long long)expected, (long long)l->count);
    rc = tensor_list_shape_of(c, 1, l, &shape);
    if (!rc && !l->count && !element_shape_known(&shape))
        rc = not_known(c,
                       "Tried to stack elements of an empty list with "
                       "non-fully-defined element_shape: ",
                       &shape);
    for (int64_t i = 0; i < l->count && !rc; i++)
        rc = join_item(c, &l->items[i], &shape);
    if (!rc && !element_shape_known(&shape))
        rc = not_known(c,
                       "Tried to stack list which only contains uninitialized "
                       "tensors and has a non-fully-defined element_shape: ",
                       &shape);
    if (!rc)
        rc = out_batch(c, &shape, l->count);
    if (rc || !l->count)
        return rc;
    each = op_out(c, 0)->count / l->count;
    for (int64_t i = 0; i < l->count; i++)
        put_item(c, &l->items[i], i * each, each);
    return MST_OK;
}

const struct op_def def_tensor_list_stack = {
    .name = "TensorListStack",
    .in = "input_handle: variant, element_shape: int32",
    .out = "tensor: element_dtype",
    .attr = "element_dtype: type; num_elements: int = -1",
    .key = "element_dtype",
    .init = stack_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, stack_run }, { 0 } },
};

static enum mst_code gather_shape(struct op_ctx *c, const struct tensor_list *l,
                                  struct shape *shape)
{
    const struct tensor *index = op_in(c, 1);
    enum mst_code rc = tensor_list_shape_of(c, 2, l, shape);

    if (!rc && !index->count && !element_shape_known(shape))
        rc = not_known(c,
                       "Tried to gather 0-elements from a list with "
                       "non-fully-defined shape: ",
                       shape);
    for (int64_t k = 0; k < index->count && !rc; k++) {
        int64_t i = tensor_int(index, k);

        if (i < 0 || i >= l->count)
            rc = op_fail(c, MST_INVALID_ARGUMENT,
                         "Index %lld out o range; list only has %lld "
                         "elements.",
                         (long long)i, (long long)l->count);
        else
            rc = join_item(c, &l->items[i], shape);
    }
    if (!rc && !element_shape_known(shape))
        rc = not_known(c,
                       "Tried to gather uninitialized tensors from a list with "
                       "non-fully-defined element_shape: ",
                       shape);
    return rc;
}

static enum mst_code gather_run(struct op_ctx *c)
{
    const struct tensor *index = op_in(c, 1);
    const struct tensor_list *l;
    struct shape shape;
    int64_t each;
    enum mst_code rc = tensor_list_in_typed(c, 0, c->node->out_types[0], &l);

    if (!rc)
        rc = gather_shape(c, l, &shape);
    if (!rc)
        rc = out_batch(c, &shape, index->count);
    if (rc || !index->count)
        return rc;
    each = op_out(c, 0)->count / index->count;
    for (int64_t k = 0; k < index->count; k++)
        put_item(c, &l->items[tensor_int(index, k)], k * each, each);
    return MST_OK;
}

const struct op_def def_tensor_list_gather = {
    .name = "TensorListGather",
    .in = "input_handle: variant, indices: int32, element_shape: int32",
    .out = "values: element_dtype",
    .attr = "element_dtype: type",
    .key = "element_dtype",
    .kernel = (const struct op_kernel[]){ { DT_ANY, gather_run }, { 0 } },
};

/* ---- concat ---- */

/* What is known of the elements: their first dimension (-1: it differs, or is
 * not known) and the rest. */
struct concat {
    const struct tensor_list *l;
    int64_t first;
    struct shape rest;
};

/* The shape given by the op. */
static enum mst_code concat_given(struct op_ctx *c, struct concat *k)
{
    const struct shape *attr = c->node->state;
    struct shape shape;
    enum mst_code rc;

    k->first = -1;
    k->rest.ndim = -1;
    if (c->node->in_count == 1) {
        if (attr->ndim > 0)
            k->rest = element_shape_tail(attr);
        return MST_OK;
    }
    rc = tensor_list_shape_of(c, 1, k->l, &shape);
    if (rc)
        return rc;
    if (!shape.ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Concat requires elements to be at least vectors, found "
                       "scalars instead.");
    if (shape.ndim > 0)
        k->first = shape.dims[0];
    k->rest = element_shape_tail(&shape);
    return MST_OK;
}

/* … and by the elements that are set. */
static enum mst_code concat_items(struct op_ctx *c, struct concat *k)
{
    int64_t given = k->first, same = given;
    bool differ = false;
    enum mst_code rc = MST_OK;

    for (int64_t i = 0; i < k->l->count && !rc; i++) {
        const struct tensor *t = &k->l->items[i];
        struct shape s = element_shape_of(t);

        if (!tensor_set(t))
            continue;
        if (!t->ndim)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Concat saw a scalar shape at index %lld but "
                           "requires at least vectors.",
                           (long long)i);
        s = element_shape_tail(&s);
        rc = element_shape_join(c, &k->rest, &s);
        if (!rc && given != -1 && given != t->dims[0])
            rc = op_fail(c, MST_INVALID_ARGUMENT,
                         "First entry of element_shape input does not match "
                         "the first dim of list element at index: %lld "
                         "Expected: %lld Actual: %lld",
                         (long long)i, (long long)given, (long long)t->dims[0]);
        differ |= same != -1 && same != t->dims[0];
        same = t->dims[0];
    }
    k->first = differ ? -1 : same;
    return rc;
}

static enum mst_code concat_check(struct op_ctx *c, struct concat *k)
{
    enum mst_code rc = concat_given(c, k);

    if (!rc && !k->l->count && !element_shape_known(&k->rest))
        rc = not_known(c,
                       "All except the first dimension must be fully defined "
                       "when concating an empty tensor list. element_shape: ",
                       &k->rest);
    if (!rc)
        rc = concat_items(c, k);
    if (!rc && !element_shape_known(&k->rest))
        rc = not_known(c,
                       "Trying to concat list with only uninitialized tensors "
                       "but element_shape_except_first_dim is not fully "
                       "defined: ",
                       &k->rest);
    return rc;
}

/* The rows of element i, which may not be set. */
static enum mst_code concat_rows(struct op_ctx *c, const struct concat *k,
                                 int64_t i, int64_t *ret)
{
    int64_t given = c->node->in_count > 2 ? op_in(c, 2)->count : 0;

    if (tensor_set(&k->l->items[i])) {
        *ret = k->l->items[i].dims[0];
        return MST_OK;
    }
    if (i < given)
        *ret = tensor_int(op_in(c, 2), i);
    else if (k->first != -1)
        *ret = k->first;
    else if (c->node->in_count <= 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Concating lists with uninitialized tensors is not "
                       "supported in this version of TensorListConcat. "
                       "Consider updating your GraphDef to run the newer "
                       "version.");
    else
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "List contains uninitialized tensor at index %lld but "
                       "leading_dims has only %lld elements.",
                       (long long)i, (long long)given);
    if (*ret < 0)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "leading_dims[%lld] is %lld, which is negative",
                       (long long)i, (long long)*ret);
    return MST_OK;
}

static enum mst_code concat_run(struct op_ctx *c)
{
    struct concat k;
    int64_t total = 0, at = 0, each, *lengths;
    enum mst_code rc = tensor_list_in_typed(c, 0, c->node->out_types[0], &k.l);

    if (!rc)
        rc = concat_check(c, &k);
    if (!rc)
        rc = op_out_new(c, 1, 1, &k.l->count);
    if (rc)
        return rc;
    lengths = op_out(c, 1)->data;
    for (int64_t i = 0; i < k.l->count && !rc; i++) {
        rc = concat_rows(c, &k, i, &lengths[i]);
        if (!rc && __builtin_add_overflow(total, lengths[i], &total))
            rc = op_fail(c, MST_INVALID_ARGUMENT,
                         "The elements together are too large");
    }
    if (!rc)
        rc = out_batch(c, &k.rest, total);
    if (rc || !total)
        return rc;
    each = op_out(c, 0)->count / total;
    for (int64_t i = 0; i < k.l->count; i++) {
        put_item(c, &k.l->items[i], at, lengths[i] * each);
        at += lengths[i] * each;
    }
    return MST_OK;
}

static enum mst_code concat_init(struct op_node *n, struct status *st)
{
    const struct attr *shape = op_attr(n, "element_shape");

    (void)st;
    n->state = shape ? (void *)shape->value->shape : NULL;
    return MST_OK;
}

const struct op_def def_tensor_list_concat = {
    .name = "TensorListConcat",
    .in = "input_handle: variant",
    .out = "tensor: element_dtype, lengths: int64",
    .attr = "element_dtype: type; element_shape: shape = unknown",
    .key = "element_dtype",
    .init = concat_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, concat_run }, { 0 } },
};

const struct op_def def_tensor_list_concat_v2 = {
    .name = "TensorListConcatV2",
    .in = "input_handle: variant, element_shape: shape_type, "
          "leading_dims: int64",
    .out = "tensor: element_dtype, lengths: int64",
    .attr = "element_dtype: type; shape_type: {int32, int64}",
    .key = "element_dtype",
    .init = concat_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, concat_run }, { 0 } },
};
