/*
 * The tensor array itself; tensor_array_ops.c has its ops. Texts are
 * TensorFlow's.
 */
#include "kernel/tensor_array.h"

#include <string.h>

#include "base/mem.h"
#include "kernel/combine.h"
#include "kernel/element.h"

static void clear(struct tensor_array *a)
{
    for (int64_t i = 0; i < a->room; i++)
        tensor_unref(&a->places[i].t);
    mem_free(a->places);
    a->places = NULL;
    a->room = a->size = 0;
}

static void tensor_array_free(struct object *o)
{
    struct tensor_array *a = CONTAINER(o, struct tensor_array, o);

    clear(a);
    for (int i = 0; i < a->grad_count; i++) {
        mem_free(a->grads[i].source);
        object_unref(&a->grads[i].array->o);
    }
    mem_free(a->grads);
    pthread_mutex_destroy(&a->lock);
    mem_free(a->name);
    mem_free(a);
}

const struct object_kind tensor_array_kind = { "tensor array",
                                               tensor_array_free };

struct tensor_array *tensor_array_new(char *name, int dtype, int64_t size,
                                      const struct shape *shape)
{
    struct tensor_array *a = MEM_NEW(struct tensor_array);

    object_init(&a->o, &tensor_array_kind);
    pthread_mutex_init(&a->lock, NULL);
    a->name = name;
    a->dtype = dtype;
    a->size = size;
    a->shape = *shape;
    a->marked_size = -1;
    return a;
}

void tensor_array_close(struct tensor_array *a)
{
    pthread_mutex_lock(&a->lock);
    clear(a);
    a->closed = true;
    pthread_mutex_unlock(&a->lock);
}

enum mst_code tensor_array_check_open(struct tensor_array *a, struct op_ctx *c)
{
    if (!a->closed)
        return MST_OK;
    return op_fail(c, MST_INVALID_ARGUMENT,
                   "TensorArray %s has already been closed.", a->name);
}

/* Memory for the place, which is within size. */
static struct array_place *place(struct tensor_array *a, int64_t index)
{
    if (index >= a->room) {
        int64_t room = MIN(MAX(a->room * 2, index + 1), a->size);

        a->places = mem_grow(a->places, (size_t)room, sizeof(*a->places));
        memset(a->places + a->room, 0,
               (size_t)(room - a->room) * sizeof(*a->places));
        a->room = room;
    }
    return &a->places[index];
}

/* ---- writing ---- */

static enum mst_code check_index(struct tensor_array *a, struct op_ctx *c,
                                 int64_t index)
{
    if (index < 0 || (!a->dynamic && index >= a->size))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "TensorArray %s: Tried to write to index %lld but array "
                       "is not resizeable and size is: %lld",
                       a->name, (long long)index, (long long)a->size);
    if (index >= TENSOR_ARRAY_MAX)
        return op_fail(c, MST_RESOURCE_EXHAUSTED,
                       "TensorArray %s: index %lld is more than %d", a->name,
                       (long long)index, TENSOR_ARRAY_MAX);
    a->size = MAX(a->size, index + 1);
    return MST_OK;
}

static enum mst_code check_value(struct tensor_array *a, struct op_ctx *c,
                                 int64_t index, const struct tensor *value)
{
    char got[SHAPE_TEXT_MAX], want[SHAPE_TEXT_MAX];

    if (value->dtype != a->dtype)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "TensorArray %s: Could not write to TensorArray index "
                       "%lld because the value dtype is %s but TensorArray "
                       "dtype is %s.",
                       a->name, (long long)index, dtype_name(value->dtype),
                       dtype_name(a->dtype));
    if (!shape_compatible(&a->shape, value))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "TensorArray %s: Could not write to TensorArray index "
                       "%lld because the value shape is %s which is "
                       "incompatible with the TensorArray's inferred element "
                       "shape: %s (consider setting infer_shape=False).",
                       a->name, (long long)index, tensor_shape_text(value, got),
                       shape_text(a->shape.ndim, a->shape.dims, want));
    return MST_OK;
}

static enum mst_code add_to_place(struct tensor_array *a, struct op_ctx *c,
                                  int64_t index, struct array_place *p,
                                  const struct tensor *value)
{
    char have[SHAPE_TEXT_MAX], got[SHAPE_TEXT_MAX];
    enum dtype dt = (enum dtype)a->dtype;
    struct combiner add;
    struct tensor sum;
    enum mst_code rc = MST_OK;

    if (!tensor_same_shape(&p->t, value))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "TensorArray %s: Could not aggregate to TensorArray "
                       "index %lld because the existing shape is %s but the "
                       "new input shape is %s.",
                       a->name, (long long)index,
                       tensor_shape_text(&p->t, have),
                       tensor_shape_text(value, got));
    if (!tensor_set(&p->t)) { /* zeros so far */
        p->t = tensor_ref(value);
        return MST_OK;
    }
    if (dt == DT_BOOL || !dtype_is_plain(dt) ||
        !combiner_init(&add, COMBINE_ADD, dt))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "tensor_array::AddToTensor type not supported: %s",
                       dtype_name(dt));
    if (tensor_unique(&p->t))
        sum = tensor_ref(&p->t);
    else
        rc = tensor_new_like(&sum, dt, &p->t, c->st);
    if (rc)
        return rc;
    combine(&add, sum.data, p->t.data, value->data, sum.count);
    tensor_unref(&p->t);
    p->t = sum;
    a->summed = true;
    return MST_OK;
}

enum mst_code tensor_array_write(struct tensor_array *a, struct op_ctx *c,
                                 int64_t index, const struct tensor *value)
{
    struct array_place *p;
    enum mst_code rc = tensor_array_check_open(a, c);

    if (!rc)
        rc = check_index(a, c, index);
    if (!rc)
        rc = check_value(a, c, index, value);
    if (rc)
        return rc;
    p = place(a, index);
    if (p->read || (p->written && !a->is_grad))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "TensorArray %s: Could not write to TensorArray index "
                       "%lld because it has already been %s.",
                       a->name, (long long)index,
                       p->read ? "read" : "written to");
    if (a->same_shapes && !element_shape_known(&a->shape))
        a->shape = element_shape_of(value);
    if (p->written)
        return add_to_place(a, c, index, p, value);
    p->t = tensor_ref(value);
    p->written = true;
    return MST_OK;
}

/* ---- reading ---- */

static enum mst_code make_zeros(struct tensor_array *a, struct op_ctx *c,
                                int64_t index, struct array_place *p)
{
    enum dtype dt = (enum dtype)a->dtype;
    struct shape s = p->written ? element_shape_of(&p->t) : a->shape;
    char text[SHAPE_TEXT_MAX];
    enum mst_code rc;

    if (!element_shape_known(&s))
        return op_fail(
            c, MST_INVALID_ARGUMENT,
            "TensorArray %s: Could not read from TensorArray index %lld.  "
            "Furthermore, the element shape is not fully defined: %s.  It is "
            "possible you are working with a resizeable TensorArray and "
            "stop_gradients is not allowing the gradients to be written.  If "
            "you set the full element_shape property on the forward "
            "TensorArray, the proper all-zeros tensor will be returned "
            "instead of incurring this error.",
            a->name, (long long)index, shape_text(s.ndim, s.dims, text));
    if (!dtype_is_plain(dt))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "tensor_array::TensorSetZero type not supported: %s",
                       dtype_name(dt));
    rc = tensor_new(&p->t, dt, s.ndim, s.dims, c->st);
    if (rc)
        return rc;
    tensor_zero(&p->t);
    p->written = true;
    return MST_OK;
}

enum mst_code tensor_array_read(struct tensor_array *a, struct op_ctx *c,
                                int64_t index, struct tensor *ret)
{
    struct array_place *p;
    enum mst_code rc = tensor_array_check_open(a, c);

    if (rc)
        return rc;
    if (index < 0 || index >= a->size)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Tried to read from index %lld but array size is: %lld",
                       (long long)index, (long long)a->size);
    p = place(a, index);
    if (p->cleared)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "TensorArray %s: Could not read index %lld twice "
                       "because it was cleared after a previous read (perhaps "
                       "try setting clear_after_read = false?).",
                       a->name, (long long)index);
    if (!tensor_set(&p->t)) {
        rc = make_zeros(a, c, index, p);
        if (rc)
            return rc;
    }
    p->read = true;
    *ret = tensor_ref(&p->t);
    if (a->clear_after_read) {
        tensor_unref(&p->t);
        p->cleared = true;
    }
    return MST_OK;
}

/* ---- gradients ---- */

/* The shape with `front` before it, as far as both are known. */
static struct shape prepend(const struct shape *front, const struct shape *s)
{
    struct shape all = { .ndim = -1 };

    if (front->ndim < 0 || s->ndim < 0 ||
        front->ndim + s->ndim > TENSOR_RANK_MAX)
        return all;
    all = *front;
    all.ndim += s->ndim;
    memcpy(all.dims + front->ndim, s->dims,
           (size_t)s->ndim * sizeof(s->dims[0]));
    return all;
}

/* The places that have been written, as shapes. */
static void copy_shapes(struct tensor_array *to,
                        const struct tensor_array *from,
                        const struct shape *front)
{
    for (int64_t i = 0; i < from->room; i++) {
        struct shape s = element_shape_of(&from->places[i].t);
        struct array_place *p;

        s = prepend(front, &s);
        if (!from->places[i].written || s.ndim < 0)
            continue;
        p = place(to, i);
        p->written = true;
        p->t.ndim = (uint8_t)s.ndim;
        memcpy(p->t.dims, s.dims, sizeof(s.dims));
    }
}

static struct tensor_array *
make_grad(struct tensor_array *a, const char *source, const struct shape *front)
{
    struct shape s = prepend(front, &a->shape);
    struct tensor_array *g = tensor_array_new(
        mem_printf("%s@%s", a->name, source), a->dtype, a->size, &s);

    g->is_grad = true;
    g->clear_after_read = true;
    g->same_shapes = a->same_shapes;
    g->marked_size = a->marked_size;
    copy_shapes(g, a, front);
    return g;
}

static enum mst_code find_grad(struct tensor_array *a, struct op_ctx *c,
                               const char *source, const struct shape *front,
                               struct tensor_array **ret)
{
    struct array_grad *slot;

    if (a->summed)
        return op_fail(
            c, MST_INVALID_ARGUMENT,
            "Unable to create a gradients TensorArray for %s.  Perhaps you "
            "used the multiple_writes_aggregate flag on a previous write?  "
            "Gradient calculation is impossible when multiple writes are "
            "performed to the same index.",
            a->name);
    for (int i = 0; i < a->grad_count; i++)
        if (!strcmp(a->grads[i].source, source)) {
            *ret = a->grads[i].array;
            return MST_OK;
        }
    slot = MEM_PUSH(a->grads, a->grad_count, a->grad_room);
    slot->source = mem_str(source);
    slot->array = make_grad(a, source, front);
    *ret = slot->array;
    return MST_OK;
}

enum mst_code tensor_array_grad(struct tensor_array *a, struct op_ctx *c,
                                const char *source, const struct shape *front,
                                struct tensor_array **ret)
{
    enum mst_code rc;

    if (a->is_grad)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Wrong input container. _tensor_array_grads%s", a->name);
    pthread_mutex_lock(&a->lock);
    a->dynamic = false;
    rc = tensor_array_check_open(a, c);
    if (!rc)
        rc = find_grad(a, c, source, front, ret);
    if (!rc)
        object_ref(&(*ret)->o);
    pthread_mutex_unlock(&a->lock);
    return rc;
}

/* ---- for kernels ---- */

enum mst_code tensor_array_get(struct op_ctx *c, struct tensor_array **ret)
{
    struct object *o;
    enum mst_code rc = op_resource(c, 0, &tensor_array_kind, &o);

    if (!rc)
        *ret = CONTAINER(o, struct tensor_array, o);
    return rc;
}

enum mst_code tensor_array_check_write(struct op_ctx *c,
                                       const struct tensor_array *a,
                                       const struct tensor *value)
{
    if (value->dtype == a->dtype)
        return MST_OK;
    return op_fail(c, MST_INVALID_ARGUMENT,
                   "TensorArray dtype is %s but Op is trying to write dtype "
                   "%s.",
                   dtype_name(a->dtype), dtype_name(value->dtype));
}

enum mst_code tensor_array_check_read(struct op_ctx *c,
                                      const struct tensor_array *a)
{
    if (c->node->out_types[0] == a->dtype)
        return MST_OK;
    return op_fail(c, MST_INVALID_ARGUMENT,
                   "TensorArray dtype is %s but Op requested dtype %s.",
                   dtype_name(a->dtype), dtype_name(c->node->out_types[0]));
}
