/*
 * The ops of tensor arrays that make them, and those on one element. What is
 * written comes with a flow value, which says only that it happened: it is
 * handed on so that reads come later.
 */
#include "base/mem.h"
#include "kernel/tensor_array.h"
#include "kernel/types.h"

/* ---- making ---- */

struct make_state {
    const char *name;
    int dtype;
    struct shape shape;
    bool dynamic, clear_after_read, same_shapes;
};

static enum mst_code make_init(struct op_node *n, struct status *st)
{
    struct make_state *s = ARENA_NEW(n->arena, struct make_state);
    struct attr_text name = op_attr_str(n, "tensor_array_name");

    (void)st;
    s->name = name.len ? name.data : n->name;
    s->dtype = op_attr_type(n, "dtype");
    s->shape = *op_attr_shape(n, "element_shape");
    s->dynamic = op_attr_bool(n, "dynamic_size");
    s->clear_after_read = op_attr_bool(n, "clear_after_read");
    s->same_shapes = op_attr(n, "identical_element_shapes") &&
                     op_attr_bool(n, "identical_element_shapes");
    n->state = s;
    return MST_OK;
}

/* The handle of an array, whose one reference is taken over, and a flow. */
static enum mst_code out_array(struct op_ctx *c, struct tensor_array *a)
{
    struct handle *h = handle_anonymous(&tensor_array_kind, &a->o, "");
    enum mst_code rc = op_out_handle(c, 0, h);

    handle_unref(h);
    if (!rc && c->node->out_count > 1) {
        rc = op_out_new(c, 1, 0, NULL);
        if (!rc)
            *TENSOR_DATA(op_out(c, 1), float) = 0;
    }
    return rc;
}

static enum mst_code make_run(struct op_ctx *c)
{
    static atomic_llong serial;
    const struct make_state *s = c->node->state;
    const struct tensor *size = op_in(c, 0);
    struct tensor_array *a;
    char text[SHAPE_TEXT_MAX];

    if (size->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "TensorArray size must be scalar, but had shape: %s",
                       tensor_shape_text(size, text));
    if (tensor_int(size, 0) < 0)
        return op_fail(c, MST_INVALID_ARGUMENT, "Size should be >= 0.");
    if (tensor_int(size, 0) > TENSOR_ARRAY_MAX)
        return op_fail(c, MST_RESOURCE_EXHAUSTED,
                       "TensorArray of more than %d elements",
                       TENSOR_ARRAY_MAX);
    a = tensor_array_new(
        mem_printf("%s_%lld", s->name, (long long)atomic_fetch_add(&serial, 1)),
        s->dtype, tensor_int(size, 0), &s->shape);
    a->dynamic = s->dynamic;
    a->clear_after_read = s->clear_after_read;
    a->same_shapes = s->same_shapes;
    return out_array(c, a);
}

const struct op_def def_tensor_array_v3 = {
    .name = "TensorArrayV3",
    .in = "size: int32",
    .out = "handle: resource, flow: float",
    .attr = "dtype: type; element_shape: shape = unknown; "
            "dynamic_size: bool = false; clear_after_read: bool = true; "
            "identical_element_shapes: bool = false; "
            "tensor_array_name: string = ''",
    .flags = OP_STATEFUL,
    .key = "dtype",
    .init = make_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, make_run }, { 0 } },
};

const struct op_def def_tensor_array_v2 = {
    .name = "TensorArrayV2",
    .in = "size: int32",
    .out = "handle: string",
    .attr = "dtype: type; element_shape: shape = unknown; "
            "dynamic_size: bool = false; clear_after_read: bool = true; "
            "tensor_array_name: string = ''",
    .flags = OP_STATEFUL,
    .key = "dtype",
    .init = make_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, make_run }, { 0 } },
};

static enum mst_code grad_init(struct op_node *n, struct status *st)
{
    (void)st;
    n->state = (void *)op_attr_str(n, "source").data;
    return MST_OK;
}

static enum mst_code grad(struct op_ctx *c, const struct shape *front)
{
    struct tensor_array *a, *g;
    enum mst_code rc = tensor_array_get(c, &a);

    if (rc)
        return rc;
    rc = tensor_array_grad(a, c, c->node->state, front, &g);
    object_unref(&a->o);
    return rc ? rc : out_array(c, g);
}

static enum mst_code grad_run(struct op_ctx *c)
{
    return grad(c, &(struct shape){ .ndim = 0 });
}

static enum mst_code grad_with_shape_run(struct op_ctx *c)
{
    const struct tensor *t = op_in(c, 2);
    struct shape front = { .ndim = (int)t->count };

    if (t->ndim != 1 || t->count > TENSOR_RANK_MAX)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "shape_to_prepend must be a vector of at most %d "
                       "dimensions",
                       TENSOR_RANK_MAX);
    for (int i = 0; i < front.ndim; i++) {
        front.dims[i] = tensor_int(t, i);
        if (front.dims[i] < 0)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Dimension %lld must be >= 0",
                           (long long)front.dims[i]);
    }
    return grad(c, &front);
}

#define GRAD(stem, text, in_, out_, run)                                       \
    const struct op_def def_tensor_array_##stem = {                            \
        .name = text,                                                          \
        .in = in_,                                                             \
        .out = out_,                                                           \
        .attr = "source: string",                                              \
        .flags = OP_STATEFUL,                                                  \
        .init = grad_init,                                                     \
        .kernel = (const struct op_kernel[]){ { DT_ANY, run }, { 0 } },        \
    };

GRAD(grad_v2, "TensorArrayGradV2", "handle: string, flow_in: float",
     "grad_handle: string", grad_run)
GRAD(grad_v3, "TensorArrayGradV3", "handle: resource, flow_in: float",
     "grad_handle: resource, flow_out: float", grad_run)
GRAD(grad_with_shape, "TensorArrayGradWithShape",
     "handle: resource, flow_in: float, shape_to_prepend: int32",
     "grad_handle: resource, flow_out: float", grad_with_shape_run)

/* ---- one element ---- */

static enum mst_code check_index(struct op_ctx *c)
{
    char text[SHAPE_TEXT_MAX];

    if (!op_in(c, 1)->ndim)
        return MST_OK;
    return op_fail(c, MST_INVALID_ARGUMENT,
                   "TensorArray index must be scalar, but had shape: %s",
                   tensor_shape_text(op_in(c, 1), text));
}

static enum mst_code write_run(struct op_ctx *c)
{
    struct tensor_array *a;
    enum mst_code rc = tensor_array_get(c, &a);

    if (rc)
        return rc;
    rc = check_index(c);
    if (!rc)
        rc = tensor_array_check_write(c, a, op_in(c, 2));
    pthread_mutex_lock(&a->lock);
    if (!rc)
        rc = tensor_array_write(a, c, tensor_int(op_in(c, 1), 0), op_in(c, 2));
    pthread_mutex_unlock(&a->lock);
    object_unref(&a->o);
    if (!rc)
        op_out_same(c, 0, 3);
    return rc;
}

static enum mst_code read_run(struct op_ctx *c)
{
    struct tensor_array *a;
    enum mst_code rc = tensor_array_get(c, &a);

    if (rc)
        return rc;
    rc = check_index(c);
    if (!rc)
        rc = tensor_array_check_read(c, a);
    pthread_mutex_lock(&a->lock);
    if (!rc)
        rc = tensor_array_read(a, c, tensor_int(op_in(c, 1), 0), op_out(c, 0));
    pthread_mutex_unlock(&a->lock);
    object_unref(&a->o);
    return rc;
}

static enum mst_code size_run(struct op_ctx *c)
{
    struct tensor_array *a;
    enum mst_code rc = tensor_array_get(c, &a);
    int64_t size;

    if (rc)
        return rc;
    pthread_mutex_lock(&a->lock);
    rc = tensor_array_check_open(a, c);
    size = a->size;
    pthread_mutex_unlock(&a->lock);
    object_unref(&a->o);
    if (!rc)
        rc = op_out_new(c, 0, 0, NULL);
    if (!rc)
        *TENSOR_DATA(op_out(c, 0), int32_t) = (int32_t)size;
    return rc;
}

static enum mst_code close_run(struct op_ctx *c)
{
    struct tensor_array *a;
    enum mst_code rc = tensor_array_get(c, &a);

    if (rc)
        return rc;
    tensor_array_close(a);
    object_unref(&a->o);
    return MST_OK;
}

TENSOR_ARRAY_OP(write, "TensorArrayWrite",
                ", index: int32, value: T, flow_in: float", "flow_out: float",
                "T: type", NULL, NULL)
TENSOR_ARRAY_OP(read, "TensorArrayRead", ", index: int32, flow_in: float",
                "value: dtype", "dtype: type", "dtype", NULL)
TENSOR_ARRAY_OP(size, "TensorArraySize", ", flow_in: float", "size: int32",
                NULL, NULL, NULL)
TENSOR_ARRAY_OP(close, "TensorArrayClose", "", NULL, NULL, NULL, NULL)
