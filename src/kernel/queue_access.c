/*
 * Ops on a queue that is there: enqueue, dequeue, close, size.
 *
 * What comes from the graph is checked here, before the queue's lock is
 * taken: the types of the edges against the queue's, the shapes of the rows.
 */
#include "kernel/queue.h"
#include "kernel/signature.h"
#include "kernel/types.h"

static enum mst_code timeout_init(struct op_node *n, struct status *st)
{
    if (op_attr_int(n, "timeout_ms") != -1)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Timeout not supported yet.");
    return MST_OK;
}

static enum mst_code get_queue(struct op_ctx *c, struct queue **ret)
{
    struct object *o;
    enum mst_code rc = op_resource(c, 0, &queue_kind, &o);

    if (!rc)
        *ret = CONTAINER(o, struct queue, o);
    return rc;
}

enum mst_code queue_check_signature(struct op_ctx *c, const struct queue *q,
                                    int fixed, bool out)
{
    struct signature rows = { q->config.types, q->config.columns },
                     none = { 0 };

    return signature_check(c, fixed, out ? none : rows, out ? rows : none);
}

/* ---- putting ---- */

/* Input 1 + i against the queue's shape, with `batch` rows of it if not < 0. */
static enum mst_code check_shape(struct op_ctx *c, const struct queue *q, int i,
                                 int64_t batch)
{
    const struct tensor *t = op_in(c, 1 + i);
    struct shape want = q->config.shapes[i];
    char a[SHAPE_TEXT_MAX], b[SHAPE_TEXT_MAX];

    if (batch >= 0) {
        if (want.ndim == TENSOR_RANK_MAX)
            return op_fail(c, MST_UNIMPLEMENTED, "A batch of rank %d",
                           want.ndim + 1);
        memmove(want.dims + 1, want.dims, sizeof(want.dims) - sizeof(int64_t));
        want.dims[0] = batch;
        want.ndim++;
    }
    if (shape_compatible(&want, t))
        return MST_OK;
    return op_fail(c, MST_INVALID_ARGUMENT,
                   "Shape mismatch in tuple component %d. Expected %s, got %s",
                   i, shape_text(want.ndim, want.dims, a),
                   tensor_shape_text(t, b));
}

static enum mst_code check_priority(struct op_ctx *c, const struct queue *q,
                                    int rank)
{
    const struct tensor *t = op_in(c, 1);
    char text[SHAPE_TEXT_MAX];

    if (q->config.order != &queue_priority || t->ndim == rank)
        return MST_OK;
    return op_fail(c, MST_INVALID_ARGUMENT,
                   "Expected the priority element to be a scalar, but received "
                   "shape: %s",
                   shape_text(t->ndim - rank, t->dims + rank, text));
}

static enum mst_code check_row(struct op_ctx *c, const struct queue *q)
{
    enum mst_code rc = queue_check_signature(c, q, 1, false);

    for (int i = 0; i < q->config.shape_count && !rc; i++)
        rc = check_shape(c, q, i, -1);
    return rc ? rc : check_priority(c, q, 0);
}

static enum mst_code check_batch(struct op_ctx *c, const struct queue *q,
                                 int64_t *ret_rows)
{
    enum mst_code rc = queue_check_signature(c, q, 1, false);
    int64_t rows;

    if (rc)
        return rc;
    for (int i = 0; i < q->config.columns; i++)
        if (!op_in(c, 1 + i)->ndim)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Component %d of a batch is a scalar", i);
    rows = op_in(c, 1)->dims[0];
    for (int i = 0; i < q->config.columns && !rc; i++) {
        int64_t n = op_in(c, 1 + i)->dims[0];

        if (q->config.shape_count)
            rc = check_shape(c, q, i, rows);
        else if (n != rows)
            rc = op_fail(c, MST_INVALID_ARGUMENT,
                         "All input tensors must have the same size in the 0th "
                         "dimension. Component %d has %lld, and should have "
                         "%lld",
                         i, (long long)n, (long long)rows);
    }
    *ret_rows = rows;
    return rc ? rc : check_priority(c, q, 1);
}

static enum mst_code enqueue_run(struct op_ctx *c)
{
    struct queue *q;
    enum mst_code rc = get_queue(c, &q);

    if (rc)
        return rc;
    rc = check_row(c, q);
    if (!rc)
        return queue_run(q, c, QUEUE_PUT, 1);
    object_unref(&q->o);
    return rc;
}

static enum mst_code enqueue_many_run(struct op_ctx *c)
{
    struct queue *q;
    int64_t rows;
    enum mst_code rc = get_queue(c, &q);

    if (rc)
        return rc;
    rc = check_batch(c, q, &rows);
    if (!rc && rows)
        return queue_run(q, c, QUEUE_PUTS, rows);
    object_unref(&q->o);
    return rc;
}

/* ---- taking ---- */

static enum mst_code dequeue_run(struct op_ctx *c)
{
    struct queue *q;
    enum mst_code rc = get_queue(c, &q);

    if (rc)
        return rc;
    rc = queue_check_signature(c, q, 1, true);
    if (!rc)
        return queue_run(q, c, QUEUE_TAKE, 1);
    object_unref(&q->o);
    return rc;
}

/* A batch of no rows; dimensions that are not known become 0. */
enum mst_code queue_take_nothing(struct op_ctx *c, const struct queue *q)
{
    enum mst_code rc = MST_OK;

    for (int i = 0; i < q->config.columns && !rc; i++) {
        const struct shape *s = &q->config.shapes[i];
        int64_t dims[TENSOR_RANK_MAX + 1] = { 0 };

        for (int d = 0; d < s->ndim; d++)
            dims[d + 1] = MAX(s->dims[d], 0);
        rc = op_out_new(c, i, s->ndim + 1, dims);
    }
    return rc;
}

static enum mst_code check_many(struct op_ctx *c, const struct queue *q,
                                const char *op, int64_t *ret_n)
{
    const struct tensor *n = op_in(c, 1);
    enum mst_code rc;

    if (!n->count)
        return op_fail(c, MST_INVALID_ARGUMENT, "%s needs a number of elements",
                       op);
    *ret_n = tensor_int(n, 0);
    if (*ret_n < 0)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "%s requested %lld < 0 elements", op, (long long)*ret_n);
    rc = queue_check_signature(c, q, 2, true);
    if (!rc && !q->config.shape_count)
        rc = op_fail(c, MST_INVALID_ARGUMENT,
                     q->config.order == &queue_priority
                         ? "%s's DequeueMany requires the components to have "
                           "specified shapes."
                         : "%s's DequeueMany and DequeueUpTo require the "
                           "components to have specified shapes.",
                     q->config.order->name);
    return rc;
}

static enum mst_code take_many(struct op_ctx *c, const char *op,
                               enum queue_wish wish)
{
    struct queue *q;
    int64_t n;
    enum mst_code rc = get_queue(c, &q);

    if (rc)
        return rc;
    rc = check_many(c, q, op, &n);
    if (!rc && n)
        return queue_run(q, c, wish, n);
    if (!rc)
        rc = queue_take_nothing(c, q);
    object_unref(&q->o);
    return rc;
}

static enum mst_code dequeue_many_run(struct op_ctx *c)
{
    return take_many(c, "DequeueManyOp", QUEUE_TAKES);
}

static enum mst_code dequeue_up_to_run(struct op_ctx *c)
{
    return take_many(c, "DequeueUpToOp", QUEUE_TAKES_UP_TO);
}

/* ---- the rest ---- */

static enum mst_code close_init(struct op_node *n, struct status *st)
{
    bool *cancel = ARENA_NEW(n->arena, bool);

    (void)st;
    *cancel = op_attr_bool(n, "cancel_pending_enqueues");
    n->state = cancel;
    return MST_OK;
}

static enum mst_code close_run(struct op_ctx *c)
{
    const bool *cancel_pending = c->node->state;
    struct queue *q;
    enum mst_code rc = get_queue(c, &q);

    if (rc)
        return rc;
    if (!*cancel_pending)
        return queue_run(q, c, QUEUE_CLOSE, 0);
    queue_close_now(q);
    object_unref(&q->o);
    return MST_OK;
}

static enum mst_code size_run(struct op_ctx *c)
{
    struct queue *q;
    enum mst_code rc = get_queue(c, &q);

    if (rc)
        return rc;
    rc = op_out_new(c, 0, 0, NULL);
    if (!rc)
        *TENSOR_DATA(op_out(c, 0), int32_t) = (int32_t)queue_size(q);
    object_unref(&q->o);
    return rc;
}

static enum mst_code is_closed_run(struct op_ctx *c)
{
    struct queue *q;
    enum mst_code rc = get_queue(c, &q);

    if (rc)
        return rc;
    rc = op_out_new(c, 0, 0, NULL);
    if (!rc)
        *TENSOR_DATA(op_out(c, 0), bool) = queue_is_closed(q);
    object_unref(&q->o);
    return rc;
}

/* Both forms of an op: the same but for the handle's type. */
#define QUEUE_ACCESS(stem, text, more_in, out_, attr_, flags_, init_)          \
    const struct op_def def_queue_##stem = {                                   \
        .name = text,                                                          \
        .in = "handle: Ref(string)" more_in,                                   \
        .out = out_,                                                           \
        .attr = attr_,                                                         \
        .flags = OP_STATEFUL | flags_,                                         \
        .init = init_,                                                         \
        .kernel = (const struct op_kernel[]){ { DT_ANY, stem##_run }, { 0 } }, \
    };                                                                         \
    const struct op_def def_queue_##stem##_v2 = {                              \
        .name = text "V2",                                                     \
        .in = "handle: resource" more_in,                                      \
        .out = out_,                                                           \
        .attr = attr_,                                                         \
        .flags = OP_STATEFUL | flags_,                                         \
        .init = init_,                                                         \
        .kernel = (const struct op_kernel[]){ { DT_ANY, stem##_run }, { 0 } }, \
    };

#define PUT_ATTRS  "Tcomponents: list(type) >= 1; timeout_ms: int = -1"
#define TAKE_ATTRS "component_types: list(type) >= 1; timeout_ms: int = -1"

QUEUE_ACCESS(enqueue, "QueueEnqueue", ", components: Tcomponents", NULL,
             PUT_ATTRS, OP_ASYNC, timeout_init)
QUEUE_ACCESS(enqueue_many, "QueueEnqueueMany", ", components: Tcomponents",
             NULL, PUT_ATTRS, OP_ASYNC, timeout_init)
QUEUE_ACCESS(dequeue, "QueueDequeue", "", "components: component_types",
             TAKE_ATTRS, OP_ASYNC, timeout_init)
QUEUE_ACCESS(dequeue_many, "QueueDequeueMany", ", n: int32",
             "components: component_types", TAKE_ATTRS, OP_ASYNC, timeout_init)
QUEUE_ACCESS(dequeue_up_to, "QueueDequeueUpTo", ", n: int32",
             "components: component_types", TAKE_ATTRS, OP_ASYNC, timeout_init)
QUEUE_ACCESS(close, "QueueClose", "", NULL,
             "cancel_pending_enqueues: bool = false", OP_ASYNC, close_init)
QUEUE_ACCESS(size, "QueueSize", "", "size: int32", NULL, 0, NULL)
QUEUE_ACCESS(is_closed, "QueueIsClosed", "", "is_closed: bool", NULL, 0, NULL)

/* A queue in the new form for ops of the old one. */
static enum mst_code fake_queue_run(struct op_ctx *c)
{
    op_out_same(c, 0, 0);
    return MST_OK;
}

const struct op_def def_fake_queue = {
    .name = "FakeQueue",
    .in = "resource: resource",
    .out = "handle: Ref(string)",
    .flags = OP_STATEFUL,
    .kernel = (const struct op_kernel[]){ { DT_ANY, fake_queue_run }, { 0 } },
};
