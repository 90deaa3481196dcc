/*
 * How element-wise loops are run over tensors: see pointwise.h.
 *
 * Broadcasting: dimensions are merged as far as both inputs allow, so that any
 * pair of shapes becomes a short list of them, the last of which is a loop over
 * contiguous elements (or one element) of each. Equal shapes, a scalar, a row
 * and a column are one, one, two and two dimensions; no case is special. A
 * piece of work is a range of output elements, wherever it begins.
 *
 * In place: the output may take the bytes of an input of its own shape that
 * nobody else has. Loops write element i after they have read it.
 */
#include "kernel/pointwise.h"

/*
 * Elements that the vectors of a loop do not reach at its end are computed one
 * by one, by functions that may differ in the last bit. So that a result does
 * not depend on who shares the work, all pieces but the last are whole units.
 */
#define UNIT 64

/* Set while pointwise_find() looks: the loop is noted and not run. */
static _Thread_local struct pointwise_op *finding;

struct unary_job {
    void (*loop)(void *out, const void *in, int64_t n, float p);
    const char *in;
    char *out;
    float p;
    size_t in_size, out_size;
    int64_t count;
};

static float param(const struct op_ctx *c)
{
    const struct pointwise_state *s = c->node->state;

    return s ? s->p : 0;
}

static int64_t units(int64_t count)
{
    return (count + UNIT - 1) / UNIT;
}

static void unary_piece(void *arg, int64_t begin, int64_t end)
{
    const struct unary_job *j = arg;

    begin *= UNIT;
    end = MIN(end * UNIT, j->count);
    j->loop(j->out + (size_t)begin * j->out_size,
            j->in + (size_t)begin * j->in_size, end - begin, j->p);
}

enum mst_code pointwise_unary(struct op_ctx *c, double cost_ns,
                              void (*loop)(void *out, const void *in, int64_t n,
                                           float p))
{
    struct unary_job j = { .loop = loop, .p = param(c) };
    enum mst_code rc;

    if (finding) {
        *finding = (struct pointwise_op){ .unary = loop,
                                          .p = j.p,
                                          .cost_ns = cost_ns };
        return MST_OK;
    }
    rc = op_out_forward(c, 0, 0);
    if (rc)
        return rc;
    j.in = op_in(c, 0)->data;
    j.out = op_out(c, 0)->data;
    j.in_size = dtype_size((enum dtype)op_in(c, 0)->dtype);
    j.out_size = dtype_size((enum dtype)op_out(c, 0)->dtype);
    j.count = op_out(c, 0)->count;
    op_for(c, units(j.count), cost_ns * UNIT, unary_piece, &j);
    return MST_OK;
}

/* ---- two inputs ---- */

struct binary_job {
    void (*loop)(void *out, const void *x, const void *y, int64_t n,
                 enum pointwise_span span, float p);
    const char *x, *y;
    char *out;
    float p;
    size_t in_size, out_size;
    int64_t count;
    enum pointwise_span span; /* of the last dimension */
    int ndim;                 /* at least 1 */
    int64_t dims[TENSOR_RANK_MAX];
    int64_t x_step[TENSOR_RANK_MAX], y_step[TENSOR_RANK_MAX];
};

static void binary_span(const struct binary_job *j, int64_t at, int64_t x,
                        int64_t y, int64_t n)
{
    j->loop(j->out + (size_t)at * j->out_size, j->x + (size_t)x * j->in_size,
            j->y + (size_t)y * j->in_size, n, j->span, j->p);
}

/* Units [begin, end) of output elements: an odometer over all but the last
 * dimension. */
static void binary_piece(void *arg, int64_t begin, int64_t end)
{
    const struct binary_job *j = arg;
    int last = j->ndim - 1;
    int64_t pos[TENSOR_RANK_MAX], rest = begin * UNIT, x = 0, y = 0;

    begin *= UNIT;
    end = MIN(end * UNIT, j->count);
    for (int d = last; d >= 0; d--) {
        pos[d] = rest % j->dims[d];
        rest /= j->dims[d];
        x += pos[d] * j->x_step[d];
        y += pos[d] * j->y_step[d];
    }
    while (begin < end) {
        int64_t n = MIN(j->dims[last] - pos[last], end - begin);

        binary_span(j, begin, x, y, n);
        begin += n;
        x -= pos[last] * j->x_step[last];
        y -= pos[last] * j->y_step[last];
        pos[last] = 0;
        for (int d = last - 1; d >= 0; d--) {
            x += j->x_step[d];
            y += j->y_step[d];
            if (++pos[d] < j->dims[d])
                break;
            x -= pos[d] * j->x_step[d];
            y -= pos[d] * j->y_step[d];
            pos[d] = 0;
        }
    }
}

static int64_t dim_of(const struct tensor *t, int i, int ndim)
{
    i -= ndim - t->ndim;
    return i < 0 ? 1 : t->dims[i];
}

/* Fills the job's dimensions, the last of which varies fastest. */
static void binary_merge(struct binary_job *j, const struct shape *out,
                         const struct tensor *x, const struct tensor *y)
{
    enum pointwise_span spans[TENSOR_RANK_MAX];
    int64_t x_count = 1, y_count = 1;
    int at = TENSOR_RANK_MAX; /* filled from the end, then moved */

    for (int i = out->ndim - 1; i >= 0; i--) {
        enum pointwise_span span = dim_of(x, i, out->ndim) == 1   ? SPAN_X_ONE
                                   : dim_of(y, i, out->ndim) == 1 ? SPAN_Y_ONE
                                                                  : SPAN_BOTH;

        if (out->dims[i] == 1)
            continue;
        if (at == TENSOR_RANK_MAX || spans[at] != span) {
            at--;
            spans[at] = span;
            j->dims[at] = 1;
            j->x_step[at] = span == SPAN_X_ONE ? 0 : x_count;
            j->y_step[at] = span == SPAN_Y_ONE ? 0 : y_count;
        }
        j->dims[at] *= out->dims[i];
        x_count *= dim_of(x, i, out->ndim);
        y_count *= dim_of(y, i, out->ndim);
    }
    j->ndim = TENSOR_RANK_MAX - at;
    for (int i = 0; i < j->ndim; i++) {
        j->dims[i] = j->dims[at + i];
        j->x_step[i] = j->x_step[at + i];
        j->y_step[i] = j->y_step[at + i];
    }
    if (!j->ndim) { /* one element each */
        j->ndim = 1;
        j->dims[0] = 1;
        j->x_step[0] = j->y_step[0] = 1;
        j->span = SPAN_BOTH;
    } else {
        j->span = spans[TENSOR_RANK_MAX - 1];
    }
}

static bool has_shape(const struct tensor *t, const struct shape *s)
{
    return t->ndim == s->ndim &&
           !memcmp(t->dims, s->dims, (size_t)s->ndim * sizeof(s->dims[0]));
}

static enum mst_code binary_out(struct op_ctx *c, const struct shape *s)
{
    for (int i = 0; i < 2; i++)
        if (has_shape(op_in(c, i), s) && tensor_unique(op_in(c, i)) &&
            dtype_size((enum dtype)op_in(c, i)->dtype) ==
                dtype_size(dtype_base(c->node->out_types[0])))
            return op_out_forward(c, 0, i);
    return op_out_new(c, 0, s->ndim, s->dims);
}

static enum mst_code binary_go(struct op_ctx *c, double cost_ns,
                               struct binary_job *j, const struct shape *s)
{
    enum mst_code rc = binary_out(c, s);

    if (rc || !op_out(c, 0)->count)
        return rc;
    j->p = param(c);
    j->x = op_in(c, 0)->data;
    j->y = op_in(c, 1)->data;
    j->out = op_out(c, 0)->data;
    j->in_size = dtype_size((enum dtype)op_in(c, 0)->dtype);
    j->out_size = dtype_size((enum dtype)op_out(c, 0)->dtype);
    j->count = op_out(c, 0)->count;
    op_for(c, units(j->count), cost_ns * UNIT, binary_piece, j);
    return MST_OK;
}

enum mst_code pointwise_binary(struct op_ctx *c, double cost_ns,
                               void (*loop)(void *out, const void *x,
                                            const void *y, int64_t n,
                                            enum pointwise_span span, float p))
{
    const struct tensor *x = op_in(c, 0), *y = op_in(c, 1);
    char xt[SHAPE_TEXT_MAX], yt[SHAPE_TEXT_MAX];
    struct binary_job j;
    struct shape s;

    if (finding) {
        *finding = (struct pointwise_op){ .binary = loop,
                                          .p = param(c),
                                          .cost_ns = cost_ns };
        return MST_OK;
    }
    if (!shape_broadcast(x, y, &s))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Incompatible shapes: %s vs. %s",
                       tensor_shape_text(x, xt), tensor_shape_text(y, yt));
    j.loop = loop;
    binary_merge(&j, &s, x, y);
    return binary_go(c, cost_ns, &j, &s);
}

enum mst_code pointwise_pair(struct op_ctx *c, double cost_ns,
                             void (*loop)(void *out, const void *x,
                                          const void *y, int64_t n,
                                          enum pointwise_span span, float p))
{
    const struct tensor *x = op_in(c, 0);
    struct binary_job j = { .loop = loop, .span = SPAN_BOTH, .ndim = 1 };
    struct shape s;

    if (finding) {
        *finding = (struct pointwise_op){
            .binary = loop, .pair = true, .p = param(c), .cost_ns = cost_ns
        };
        return MST_OK;
    }
    CHECK(x->count == op_in(c, 1)->count);
    s.ndim = x->ndim;
    memcpy(s.dims, x->dims, sizeof(s.dims));
    j.dims[0] = x->count;
    j.x_step[0] = j.y_step[0] = 1;
    return binary_go(c, cost_ns, &j, &s);
}

/* ---- looking ---- */

bool pointwise_find(const struct op_node *n, struct pointwise_op *ret)
{
    static float one[2] = { 1, 1 };
    struct op_value in[2], out = { 0 };
    struct status st = STATUS_INIT;
    struct op_ctx c = { .node = n, .in = in, .out = &out, .st = &st };
    enum mst_code rc;

    CHECK(n->in_count <= (int)COUNT(in) && n->out_count == 1);
    for (size_t i = 0; i < COUNT(in); i++)
        in[i] = (struct op_value){
            .t = { .data = &one[i], .count = 1, .dtype = DT_FLOAT }
        };
    *ret = (struct pointwise_op){ 0 };
    finding = ret;
    rc = n->run(&c);
    finding = NULL;
    tensor_unref(&out.t); /* of an op that ran after all */
    return !rc && (ret->unary || ret->binary);
}
