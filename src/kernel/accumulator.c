/*
 * The body of accumulators, and the dense form. See the header.
 */
#include "kernel/accumulator.h"

#include "base/mem.h"
#include "kernel/types.h"

/* ---- arithmetic ---- */

#define MATH(s, T, A, DT, LD, ST)                                              \
    VECTOR_CLONES static void add_##s(void *p, int64_t begin, int64_t end)     \
    {                                                                          \
        const struct accumulator_add *v = p;                                   \
        const T *a = v->a, *b = v->b;                                          \
        T *out = v->out;                                                       \
                                                                               \
        for (int64_t i = begin; i < end; i++)                                  \
            out[i] = (T)ST((A)(LD(a[i]) + LD(b[i])));                          \
    }                                                                          \
    VECTOR_CLONES static void divide_##s(void *p, int64_t begin, int64_t end)  \
    {                                                                          \
        const struct accumulator_divide *v = p;                                \
        A by = LD((T)ST((A)v->count));                                         \
        T *x = v->x;                                                           \
                                                                               \
        for (int64_t i = begin; i < end; i++)                                  \
            x[i] = (T)ST((A)(LD(x[i]) / by));                                  \
    }                                                                          \
    static const struct accumulator_math math_##s = { add_##s, divide_##s };

TYPES_FLOAT32(MATH)
TYPES_FLOAT64(MATH)
TYPES_HALF(MATH)

const struct accumulator_math *accumulator_math(int dtype)
{
    return dtype == DT_FLOAT    ? &math_f32
           : dtype == DT_DOUBLE ? &math_f64
           : dtype == DT_HALF   ? &math_f16
                                : NULL;
}

/* ---- the object ---- */

static void sum_done(struct accumulator_sum *s)
{
    tensor_unref(&s->values);
    mem_free(s->rows);
    mem_free(s->hits);
    *s = (struct accumulator_sum){ 0 };
}

static void accumulator_free(struct object *o)
{
    struct accumulator *a = CONTAINER(o, struct accumulator, o);

    CHECK(!a->takes.first);
    sum_done(&a->sum);
    pthread_mutex_destroy(&a->lock);
    mem_free(a);
}

const struct object_kind accumulator_kind = { "accumulator", accumulator_free };

struct accumulator *accumulator_new(const struct accumulator_config *config)
{
    struct accumulator *a = MEM_NEW(struct accumulator);

    object_init(&a->o, &accumulator_kind);
    pthread_mutex_init(&a->lock, NULL);
    a->config = *config;
    a->math = accumulator_math(config->dtype);
    return a;
}

/* ---- applying ---- */

static enum mst_code check_dense(struct accumulator *a, struct op_ctx *c)
{
    const struct tensor *t = op_in(c, 2);
    const struct tensor *have = &a->sum.values;
    char want[SHAPE_TEXT_MAX], got[SHAPE_TEXT_MAX];

    if (a->count && !tensor_same_shape(have, t))
        tensor_shape_text(have, want);
    else if (!shape_compatible(&a->config.shape, t))
        shape_text(a->config.shape.ndim, a->config.shape.dims, want);
    else
        return MST_OK;
    return op_fail(c, MST_INVALID_ARGUMENT,
                   "Shape mismatch: expected %s, got %s", want,
                   tensor_shape_text(t, got));
}

static enum mst_code add_dense(struct accumulator *a, struct op_ctx *c)
{
    struct tensor *in = &c->in[2].t, *sum = &a->sum.values, out;
    struct accumulator_add v = { .a = sum->data, .b = in->data };
    enum mst_code rc = MST_OK;

    if (!a->count) {
        /* The first is the sum; a copy if anyone might still change it. */
        if (!tensor_unique(in))
            return tensor_copy(sum, in, c->st);
        tensor_move(sum, in);
        return MST_OK;
    }
    if (tensor_unique(sum))
        out = tensor_ref(sum);
    else
        rc = tensor_new_like(&out, (enum dtype)sum->dtype, sum, c->st);
    if (rc)
        return rc;
    v.out = out.data;
    op_for(c, out.count, 0.5, a->math->add, &v);
    tensor_unref(sum);
    *sum = out;
    return MST_OK;
}

static void flush(struct accumulator *a, struct wait_line *ended);

enum mst_code accumulator_apply(struct accumulator *a, struct op_ctx *c,
                                int64_t step, bool known_shape)
{
    struct wait_line ended = { 0 };
    enum mst_code rc = MST_OK;

    pthread_mutex_lock(&a->lock);
    if (step >= a->step) {
        rc = a->config.sparse ? accumulator_sparse_check(a, c, known_shape)
                              : check_dense(a, c);
        if (!rc)
            rc = a->config.sparse ? accumulator_sparse_add(a, c)
                                  : add_dense(a, c);
        if (!rc) {
            a->count++;
            flush(a, &ended);
        }
    }
    pthread_mutex_unlock(&a->lock);
    wait_end(&ended);
    return rc;
}

/* ---- taking ---- */

struct taking {
    struct wait wait;
    int64_t required;
    struct accumulator_sum sum; /* its share, once it has it */
    int64_t count;
};

_Static_assert(sizeof(struct taking) <= OP_SCRATCH, "scratch is too small");

static bool attempt(struct accumulator *a, struct taking *t)
{
    if (a->count < t->required)
        return false;
    t->sum = a->sum;
    t->count = a->count;
    a->sum = (struct accumulator_sum){ 0 };
    a->count = 0;
    a->step++;
    return true;
}

static void flush(struct accumulator *a, struct wait_line *ended)
{
    while (a->takes.first) {
        struct taking *t = CONTAINER(a->takes.first, struct taking, wait);

        if (!attempt(a, t))
            break;
        wait_leave(&t->wait, MST_OK, ended);
    }
}

static enum mst_code give_dense(const struct accumulator *a, struct op_ctx *c,
                                struct taking *t)
{
    struct accumulator_divide v = { t->sum.values.data, t->count };

    /* The sum is the accumulator's own, see add_dense(). */
    if (a->config.mean)
        op_for(c, t->sum.values.count, 0.5, a->math->divide, &v);
    tensor_move(op_out(c, 0), &t->sum.values);
    return MST_OK;
}

static enum mst_code give(struct wait *w)
{
    struct taking *t = CONTAINER(w, struct taking, wait);
    struct accumulator *a = CONTAINER(w->at, struct accumulator, o);
    enum mst_code rc = w->code;

    if (!rc)
        rc = a->config.sparse ? accumulator_sparse_give(a, w->c, &t->sum)
                              : give_dense(a, w->c, t);
    sum_done(&t->sum);
    return rc;
}

static enum mst_code cancelled(struct op_ctx *c)
{
    return op_fail(c, MST_CANCELLED, "TakeGrad operation was cancelled");
}

static void on_cancel(struct cancel_item *item)
{
    struct taking *t = CONTAINER(item, struct taking, wait.item);
    struct accumulator *a = CONTAINER(t->wait.at, struct accumulator, o);
    struct wait_line ended = { 0 };

    pthread_mutex_lock(&a->lock);
    if (t->wait.line) {
        wait_leave(&t->wait, cancelled(t->wait.c), &ended);
        /* The next in line may ask for less. */
        flush(a, &ended);
    }
    pthread_mutex_unlock(&a->lock);
    wait_end(&ended);
}

enum mst_code accumulator_take(struct accumulator *a, struct op_ctx *c,
                               int64_t required)
{
    struct taking *t = c->scratch;
    enum mst_code rc = OP_LATER;
    bool done;

    *t = (struct taking){ .wait = { .c = c, .at = &a->o, .complete = give },
                          .required = required };
    pthread_mutex_lock(&a->lock);
    done = !a->takes.first && attempt(a, t);
    if (!done && !wait_join(&a->takes, &t->wait, on_cancel))
        rc = cancelled(c);
    pthread_mutex_unlock(&a->lock);
    if (done)
        rc = give(&t->wait);
    if (rc != OP_LATER)
        object_unref(&a->o);
    return rc;
}

void accumulator_set_step(struct accumulator *a, int64_t step)
{
    pthread_mutex_lock(&a->lock);
    a->step = step;
    pthread_mutex_unlock(&a->lock);
}

int64_t accumulator_count(struct accumulator *a)
{
    int64_t count;

    pthread_mutex_lock(&a->lock);
    count = a->count;
    pthread_mutex_unlock(&a->lock);
    return count;
}
