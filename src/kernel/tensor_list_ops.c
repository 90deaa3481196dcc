/*
 * The ops of tensor lists on single elements and on lists as a whole.
 */
#include "base/mem.h"
#include "kernel/element.h"
#include "kernel/tensor_list.h"
#include "kernel/types.h"

/* ---- making ---- */

static enum mst_code dtype_init(struct op_node *n, struct status *st)
{
    (void)st;
    n->state = (void *)(intptr_t)op_attr_type(n, "element_dtype");
    return MST_OK;
}

static int element_dtype(const struct op_ctx *c)
{
    return (int)(intptr_t)c->node->state;
}

static enum mst_code empty_run(struct op_ctx *c)
{
    struct shape shape;
    int64_t max;
    enum mst_code rc = tensor_list_number(c, 1, "max_num_elements", &max);

    if (!rc)
        rc = tensor_list_shape_in(c, 0, &shape);
    if (rc)
        return rc;
    return tensor_list_out(c, tensor_list_new(element_dtype(c), &shape, max));
}

const struct op_def def_empty_tensor_list = {
    .name = "EmptyTensorList",
    .in = "element_shape: shape_type, max_num_elements: int32",
    .out = "handle: variant",
    .attr = "element_dtype: type; shape_type: {int32, int64}",
    .key = "element_dtype",
    .init = dtype_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, empty_run }, { 0 } },
};

static enum mst_code reserve_run(struct op_ctx *c)
{
    struct tensor_list *l;
    struct shape shape;
    int64_t n = 0;
    enum mst_code rc = tensor_list_shape_in(c, 0, &shape);

    if (!rc)
        rc = tensor_list_number(c, 1, "The num_elements to reserve", &n);
    if (!rc && n < 0)
        rc = op_fail(c, MST_INVALID_ARGUMENT,
                     "The num_elements to reserve must be a non negative "
                     "number, but got %lld",
                     (long long)n);
    if (!rc)
        rc = tensor_list_check_count(c, n);
    if (rc)
        return rc;
    l = tensor_list_new(element_dtype(c), &shape, -1);
    tensor_list_resize(l, n);
    return tensor_list_out(c, l);
}

const struct op_def def_tensor_list_reserve = {
    .name = "TensorListReserve",
    .in = "element_shape: shape_type, num_elements: int32",
    .out = "handle: variant",
    .attr = "element_dtype: type; shape_type: {int32, int64}",
    .key = "element_dtype",
    .init = dtype_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, reserve_run }, { 0 } },
};

/* ---- at the end ---- */

static enum mst_code push_run(struct op_ctx *c)
{
    const struct tensor *item = op_in(c, 1);
    const struct tensor_list *l;
    struct tensor_list *to;
    char got[SHAPE_TEXT_MAX], want[SHAPE_TEXT_MAX];
    enum mst_code rc = tensor_list_in(c, 0, &l);

    if (rc)
        return rc;
    if (!shape_compatible(&l->shape, item))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Tried to append a tensor with incompatible shape to a "
                       "list. Op element shape: %s list shape: %s",
                       tensor_shape_text(item, got),
                       shape_text(l->shape.ndim, l->shape.dims, want));
    rc = tensor_list_in_typed(c, 0, item->dtype, &l);
    if (rc)
        return rc;
    if (l->count_max != -1 && l->count >= l->count_max)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Tried to push item into a full list list size: %lld "
                       "max_num_elements: %lld",
                       (long long)l->count, (long long)l->count_max);
    rc = tensor_list_check_count(c, l->count + 1);
    if (!rc)
        rc = tensor_list_change(c, &to);
    if (!rc)
        tensor_list_push(to, tensor_ref(item));
    return rc;
}

const struct op_def def_tensor_list_push_back = {
    .name = "TensorListPushBack",
    .in = "input_handle: variant, tensor: element_dtype",
    .out = "output_handle: variant",
    .attr = "element_dtype: type",
    .key = "element_dtype",
    .kernel = (const struct op_kernel[]){ { DT_ANY, push_run }, { 0 } },
};

/* Output `out` is element i of the list: itself, or zeros of that shape. */
static enum mst_code out_item(struct op_ctx *c, int out,
                              const struct tensor_list *l, int64_t i,
                              const struct shape *shape, const char *text)
{
    char s[SHAPE_TEXT_MAX];
    enum mst_code rc;

    if (tensor_set(&l->items[i])) {
        *op_out(c, out) = tensor_ref(&l->items[i]);
        return MST_OK;
    }
    if (!element_shape_known(shape)) {
        op_fail(c, MST_INVALID_ARGUMENT,
                "Trying to read an uninitialized tensor but element_shape is "
                "not fully defined%s%s",
                *text ? ": " : ".", shape_text(shape->ndim, shape->dims, s));
        status_append(c->st, "%s", text);
        return MST_INVALID_ARGUMENT;
    }
    rc = op_out_new(c, out, shape->ndim, shape->dims);
    if (!rc)
        tensor_zero(op_out(c, out));
    return rc;
}

static enum mst_code pop_run(struct op_ctx *c)
{
    const struct tensor_list *l;
    struct tensor_list *to;
    struct shape shape = { 0 };
    enum mst_code rc = tensor_list_in_typed(c, 0, c->node->out_types[1], &l);

    if (rc)
        return rc;
    if (!l->count)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Trying to pop from an empty list.");
    if (!tensor_set(&l->items[l->count - 1]))
        rc = tensor_list_shape_of(c, 1, l, &shape);
    if (!rc)
        rc = out_item(c, 1, l, l->count - 1, &shape, "");
    if (!rc)
        rc = tensor_list_change(c, &to);
    if (!rc)
        tensor_list_resize(to, to->count - 1);
    return rc;
}

const struct op_def def_tensor_list_pop_back = {
    .name = "TensorListPopBack",
    .in = "input_handle: variant, element_shape: int32",
    .out = "output_handle: variant, tensor: element_dtype",
    .attr = "element_dtype: type",
    .key = "element_dtype",
    .kernel = (const struct op_kernel[]){ { DT_ANY, pop_run }, { 0 } },
};

/* ---- by number ---- */

/* All that is known of the shape, from elements that are set too. */
static enum mst_code infer_shape(struct op_ctx *c, const struct tensor_list *l,
                                 struct shape *shape)
{
    enum mst_code rc = tensor_list_shape_of(c, 2, l, shape);

    for (int64_t i = 0; i < l->count && !rc; i++) {
        struct shape s = element_shape_of(&l->items[i]);

        if (element_shape_known(shape))
            break;
        if (tensor_set(&l->items[i]))
            rc = element_shape_join(c, shape, &s);
    }
    return rc;
}

static enum mst_code get_run(struct op_ctx *c)
{
    const struct tensor_list *l;
    struct shape shape = { 0 };
    int64_t i;
    enum mst_code rc = tensor_list_in_typed(c, 0, c->node->out_types[0], &l);

    if (!rc)
        rc = tensor_list_number(c, 1, "index", &i);
    if (rc)
        return rc;
    if (i < 0 || i >= l->count)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Trying to access element %lld in a list with %lld "
                       "elements.",
                       (long long)i, (long long)l->count);
    if (!tensor_set(&l->items[i]))
        rc = infer_shape(c, l, &shape);
    return rc ? rc
              : out_item(c, 0, l, i, &shape, " and no list element is set.");
}

const struct op_def def_tensor_list_get_item = {
    .name = "TensorListGetItem",
    .in = "input_handle: variant, index: int32, element_shape: Tshape",
    .out = "item: element_dtype",
    .attr = "element_dtype: type; Tshape: {int32, int64} = int32",
    .key = "element_dtype",
    .kernel = (const struct op_kernel[]){ { DT_ANY, get_run }, { 0 } },
};

static enum mst_code set_init(struct op_node *n, struct status *st)
{
    bool *resize = ARENA_NEW(n->arena, bool);

    (void)st;
    *resize = op_attr_bool(n, "resize_if_index_out_of_bounds");
    n->state = resize;
    return MST_OK;
}

static enum mst_code check_set(struct op_ctx *c, const struct tensor_list *l,
                               int64_t i)
{
    const bool *resize = c->node->state;
    char got[SHAPE_TEXT_MAX], want[SHAPE_TEXT_MAX];

    if (i < 0 || (i >= l->count && !*resize))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Trying to modify element %lld in a list with %lld "
                       "elements.",
                       (long long)i, (long long)l->count);
    if (!shape_compatible(&l->shape, op_in(c, 2)))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Tried to set a tensor with incompatible shape at a "
                       "list index. Item element shape: %s list shape: %s",
                       tensor_shape_text(op_in(c, 2), got),
                       shape_text(l->shape.ndim, l->shape.dims, want));
    return tensor_list_check_count(c, i + 1);
}

static enum mst_code set_run(struct op_ctx *c)
{
    const struct tensor_list *l;
    struct tensor_list *to;
    int64_t i;
    enum mst_code rc = tensor_list_in_typed(c, 0, c->node->in_types[2], &l);

    if (!rc)
        rc = tensor_list_number(c, 1, "index", &i);
    if (!rc)
        rc = check_set(c, l, i);
    if (!rc)
        rc = tensor_list_change(c, &to);
    if (rc)
        return rc;
    if (i >= to->count)
        tensor_list_resize(to, i + 1);
    tensor_unref(&to->items[i]);
    to->items[i] = tensor_ref(op_in(c, 2));
    return MST_OK;
}

const struct op_def def_tensor_list_set_item = {
    .name = "TensorListSetItem",
    .in = "input_handle: variant, index: int32, item: element_dtype",
    .out = "output_handle: variant",
    .attr = "element_dtype: type; "
            "resize_if_index_out_of_bounds: bool = false",
    .key = "element_dtype",
    .init = set_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, set_run }, { 0 } },
};

/* ---- the list as a whole ---- */

static enum mst_code length_run(struct op_ctx *c)
{
    const struct tensor_list *l;
    enum mst_code rc = tensor_list_in(c, 0, &l);

    if (!rc)
        rc = op_out_new(c, 0, 0, NULL);
    if (!rc)
        *TENSOR_DATA(op_out(c, 0), int32_t) = (int32_t)l->count;
    return rc;
}

const struct op_def def_tensor_list_length = {
    .name = "TensorListLength",
    .in = "input_handle: variant",
    .out = "length: int32",
    .kernel = (const struct op_kernel[]){ { DT_ANY, length_run }, { 0 } },
};

static void set_int(struct tensor *t, int64_t i, int64_t value)
{
    if (t->dtype == DT_INT32)
        TENSOR_DATA(t, int32_t)[i] = (int32_t)value;
    else
        TENSOR_DATA(t, int64_t)[i] = value;
}

static enum mst_code element_shape_run(struct op_ctx *c)
{
    const struct tensor_list *l;
    enum mst_code rc = tensor_list_in(c, 0, &l);
    int64_t n;

    if (rc)
        return rc;
    n = l->shape.ndim;
    rc = n < 0 ? op_out_new(c, 0, 0, NULL) : op_out_new(c, 0, 1, &n);
    if (!rc && n < 0)
        set_int(op_out(c, 0), 0, -1);
    for (int i = 0; i < n && !rc; i++)
        set_int(op_out(c, 0), i, l->shape.dims[i]);
    return rc;
}

const struct op_def def_tensor_list_element_shape = {
    .name = "TensorListElementShape",
    .in = "input_handle: variant",
    .out = "element_shape: shape_type",
    .attr = "shape_type: {int32, int64}",
    .key = "shape_type",
    .kernel =
        (const struct op_kernel[]){ { DT_ANY, element_shape_run }, { 0 } },
};

static enum mst_code resize_run(struct op_ctx *c)
{
    const struct tensor_list *l;
    struct tensor_list *to;
    int64_t n;
    enum mst_code rc = tensor_list_in(c, 0, &l);

    if (!rc)
        rc = tensor_list_number(c, 1, "size", &n);
    if (!rc && n < 0)
        rc = op_fail(c, MST_INVALID_ARGUMENT,
                     "TensorListSlice expects size to be non-negative. Got: "
                     "%lld",
                     (long long)n);
    if (!rc)
        rc = tensor_list_check_count(c, n);
    if (!rc)
        rc = tensor_list_change(c, &to);
    if (!rc)
        tensor_list_resize(to, n);
    return rc;
}

const struct op_def def_tensor_list_resize = {
    .name = "TensorListResize",
    .in = "input_handle: variant, size: int32",
    .out = "output_handle: variant",
    .kernel = (const struct op_kernel[]){ { DT_ANY, resize_run }, { 0 } },
};

/* ---- many lists ---- */

/* List b of a tensor of lists. */
static enum mst_code list_at(struct op_ctx *c, int in, int64_t b,
                             const struct tensor_list **ret)
{
    struct object *o = *tensor_object(op_in(c, in), b);

    if (!o || o->kind != &tensor_list_kind)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input handle at index %lld is not a list. Saw: '%s'",
                       (long long)b, o ? o->kind->name : "Invalid variant");
    *ret = CONTAINER(o, struct tensor_list, o);
    return MST_OK;
}

static enum mst_code check_batch(struct op_ctx *c)
{
    const struct tensor *lists = op_in(c, 0), *t = op_in(c, 1);
    char text[SHAPE_TEXT_MAX];

    if (!t->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Expected tensor to be at least a vector, but saw "
                       "shape: []");
    if (lists->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Expected input_handles to be a vector, but saw shape: "
                       "%s",
                       tensor_shape_text(lists, text));
    if (t->dims[0] != lists->count)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Expected tensor.shape[0] == input_handles.size, but "
                       "saw %lld vs. %lld",
                       (long long)t->dims[0], (long long)lists->count);
    return MST_OK;
}

static enum mst_code push_one(struct op_ctx *c, int64_t b)
{
    const struct tensor_list *l;
    struct tensor_list *copy;
    struct tensor row = { 0 };
    char got[SHAPE_TEXT_MAX], want[SHAPE_TEXT_MAX];
    enum mst_code rc = list_at(c, 0, b, &l);

    if (!rc)
        rc = element_row(op_in(c, 1), b, &row, c->st);
    if (!rc && !shape_compatible(&l->shape, &row))
        rc = op_fail(c, MST_INVALID_ARGUMENT,
                     "Tried to append a tensor with incompatible shape to a "
                     "list at index %lld. Op element shape: %s list shape: %s",
                     (long long)b, tensor_shape_text(&row, got),
                     shape_text(l->shape.ndim, l->shape.dims, want));
    if (!rc && l->dtype != row.dtype)
        rc = op_fail(c, MST_INVALID_ARGUMENT,
                     "Invalid data type at index %lld; op elements %s but "
                     "list elements %s",
                     (long long)b, dtype_name(row.dtype), dtype_name(l->dtype));
    if (!rc)
        rc = tensor_list_check_count(c, l->count + 1);
    if (rc) {
        tensor_unref(&row);
        return rc;
    }
    copy = tensor_list_copy(l);
    tensor_list_push(copy, row);
    *tensor_object(op_out(c, 0), b) = &copy->o;
    return MST_OK;
}

static enum mst_code push_batch_run(struct op_ctx *c)
{
    enum mst_code rc = check_batch(c);

    if (!rc)
        rc = op_out_like(c, 0, op_in(c, 0));
    for (int64_t b = 0; !rc && b < op_in(c, 0)->count; b++)
        rc = push_one(c, b);
    return rc;
}

const struct op_def def_tensor_list_push_back_batch = {
    .name = "TensorListPushBackBatch",
    .in = "input_handles: variant, tensor: element_dtype",
    .out = "output_handles: variant",
    .attr = "element_dtype: type",
    .key = "element_dtype",
    .kernel = (const struct op_kernel[]){ { DT_ANY, push_batch_run }, { 0 } },
};

static enum mst_code concat_one(struct op_ctx *c, int64_t b, int dt)
{
    const struct tensor_list *x, *y;
    struct tensor_list *both;
    char a[SHAPE_TEXT_MAX], d[SHAPE_TEXT_MAX];
    enum mst_code rc = list_at(c, 0, b, &x);

    if (!rc)
        rc = list_at(c, 1, b, &y);
    if (rc)
        return rc;
    if (x->dtype != dt || y->dtype != dt)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "input_%s[%lld].dtype != element_dtype.  Saw: %s vs. %s",
                       x->dtype != dt ? "a" : "b", (long long)b,
                       dtype_name(x->dtype != dt ? x->dtype : y->dtype),
                       dtype_name(dt));
    if (x->shape.ndim != y->shape.ndim ||
        memcmp(x->shape.dims, y->shape.dims,
               (size_t)MAX(x->shape.ndim, 0) * sizeof(x->shape.dims[0])))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "input_a and input_b TensorList element shapes are not "
                       "identical at index %lld.  Saw %s vs. %s",
                       (long long)b,
                       shape_text(x->shape.ndim, x->shape.dims, a),
                       shape_text(y->shape.ndim, y->shape.dims, d));
    rc = tensor_list_check_count(c, x->count + y->count);
    if (rc)
        return rc;
    both = tensor_list_copy(x);
    for (int64_t i = 0; i < y->count; i++)
        tensor_list_push(both, tensor_ref(&y->items[i]));
    *tensor_object(op_out(c, 0), b) = &both->o;
    return MST_OK;
}

static enum mst_code concat_lists_run(struct op_ctx *c)
{
    const struct tensor *a = op_in(c, 0), *b = op_in(c, 1);
    int dt = element_dtype(c);
    char x[SHAPE_TEXT_MAX], y[SHAPE_TEXT_MAX];
    enum mst_code rc;

    if (!tensor_same_shape(a, b))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "input_a and input_b must have the same shape: %s vs. "
                       "%s",
                       tensor_shape_text(a, x), tensor_shape_text(b, y));
    rc = op_out_like(c, 0, a);
    for (int64_t i = 0; i < a->count && !rc; i++)
        rc = concat_one(c, i, dt);
    return rc;
}

const struct op_def def_tensor_list_concat_lists = {
    .name = "TensorListConcatLists",
    .in = "input_a: variant, input_b: variant",
    .out = "output: variant",
    .attr = "element_dtype: type",
    .key = "element_dtype",
    .init = dtype_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, concat_lists_run }, { 0 } },
};
