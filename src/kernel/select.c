/*
 * One of two values for each element: Select, SelectV2, OneHot; and where a
 * condition holds: Where.
 */
#include "kernel/args.h"
#include "kernel/strided.h"
#include "kernel/types.h"

/* ---- two values, by a condition ---- */

/* Loops over the output, with the steps of condition, then and else. */
struct choice {
    const struct tensor *in[3];
    struct tensor *out;
    int ndim;
    int64_t dims[TENSOR_RANK_MAX];
    int64_t step[3][TENSOR_RANK_MAX];
};

struct wide {
    uint64_t half[2];
};

#define CHOOSE(bits, T)                                                        \
    VECTOR_CLONES static void choose_##bits(                                   \
        T *restrict out, const bool *restrict cond, const T *restrict a,       \
        const T *restrict b, int64_t n, const int64_t *step)                   \
    {                                                                          \
        int64_t sc = step[0], sa = step[1], sb = step[2];                      \
                                                                               \
        if (sc == 1 && sa == 1 && sb == 1) {                                   \
            for (int64_t i = 0; i < n; i++)                                    \
                out[i] = cond[i] ? a[i] : b[i];                                \
        } else {                                                               \
            for (int64_t i = 0; i < n; i++)                                    \
                out[i] = cond[i * sc] ? a[i * sa] : b[i * sb];                 \
        }                                                                      \
    }
CHOOSE(8, uint8_t)
CHOOSE(16, uint16_t)
CHOOSE(32, uint32_t)
CHOOSE(64, uint64_t)
CHOOSE(128, struct wide)

static void choose_objects(struct choice *k, int64_t to, const int64_t *at,
                           int64_t n, const int64_t *step)
{
    const bool *cond = TENSOR_DATA(k->in[0], bool) + at[0];

    for (int64_t i = 0; i < n; i++) {
        int which = cond[i * step[0]] ? 1 : 2;

        tensor_copy_elems(k->out, to + i, k->in[which],
                          at[which] + i * step[which], 1);
    }
}

static void choose_row(struct choice *k, int64_t to, const int64_t *at,
                       int64_t n, const int64_t *step)
{
    const bool *cond = TENSOR_DATA(k->in[0], bool) + at[0];

    if (!dtype_is_plain((enum dtype)k->out->dtype)) {
        choose_objects(k, to, at, n, step);
        return;
    }
#define ARGS(T)                                                                \
    TENSOR_DATA(k->out, T) + to, cond, TENSOR_DATA(k->in[1], T) + at[1],       \
        TENSOR_DATA(k->in[2], T) + at[2], n, step
    switch (dtype_size((enum dtype)k->out->dtype)) {
    case 1:
        choose_8(ARGS(uint8_t));
        break;
    case 2:
        choose_16(ARGS(uint16_t));
        break;
    case 4:
        choose_32(ARGS(uint32_t));
        break;
    case 8:
        choose_64(ARGS(uint64_t));
        break;
    default:
        choose_128(ARGS(struct wide));
    }
#undef ARGS
}

/* Rows [begin, end) of the output, a row being its last dimension. */
static void choose_rows(void *arg, int64_t begin, int64_t end)
{
    struct choice *k = arg;
    int last = k->ndim - 1;
    int64_t step[3];

    for (int i = 0; i < 3; i++)
        step[i] = k->step[i][last];
    for (int64_t row = begin; row < end; row++) {
        int64_t at[3] = { 0 }, rest = row;

        for (int d = last - 1; d >= 0; d--) {
            for (int i = 0; i < 3; i++)
                at[i] += rest % k->dims[d] * k->step[i][d];
            rest /= k->dims[d];
        }
        choose_row(k, row * k->dims[last], at, k->dims[last], step);
    }
}

/* A piece of the only row. */
static void choose_piece(void *arg, int64_t begin, int64_t end)
{
    struct choice *k = arg;
    int64_t step[3], at[3];

    for (int i = 0; i < 3; i++) {
        step[i] = k->step[i][0];
        at[i] = begin * step[i];
    }
    choose_row(k, begin, at, end - begin, step);
}

static void choose_all(struct op_ctx *c, struct choice *k)
{
    int64_t row;

    if (!k->out->count)
        return;
    if (k->ndim == 1) {
        op_for(c, k->dims[0], 1, choose_piece, k);
        return;
    }
    row = k->dims[k->ndim - 1];
    op_for(c, k->out->count / row, (double)row + 5, choose_rows, k);
}

static enum mst_code select_rows(struct op_ctx *c)
{
    const struct tensor *cond = op_in(c, 0), *a = op_in(c, 1), *b = op_in(c, 2);
    struct choice k = { .in = { cond, a, b }, .out = op_out(c, 0), .ndim = 2 };
    char ta[SHAPE_TEXT_MAX], tb[SHAPE_TEXT_MAX];
    enum mst_code rc;

    if (!a->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "'then' must be at least a vector, but saw shape: []");
    if (a->dims[0] != cond->count)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Number of batches of 'then' must match size of 'cond', "
                       "but saw: %lld vs. %lld",
                       (long long)a->dims[0], (long long)cond->count);
    if (!tensor_same_shape(a, b))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "'then' and 'else' must have the same size.  but "
                       "received: %s vs. %s",
                       tensor_shape_text(a, ta), tensor_shape_text(b, tb));
    rc = op_out_like(c, 0, a);
    if (rc || !a->count)
        return rc;
    k.dims[0] = cond->count;
    k.dims[1] = a->count / cond->count;
    k.step[0][0] = 1;
    for (int i = 1; i < 3; i++) {
        k.step[i][0] = k.dims[1];
        k.step[i][1] = 1;
    }
    choose_all(c, &k);
    return MST_OK;
}

static enum mst_code select_same(struct op_ctx *c)
{
    const struct tensor *cond = op_in(c, 0);
    struct choice k = { .in = { cond, op_in(c, 1), op_in(c, 2) },
                        .out = op_out(c, 0),
                        .ndim = 1,
                        .dims = { cond->count },
                        .step = { { 1 }, { 1 }, { 1 } } };
    char ta[SHAPE_TEXT_MAX], tb[SHAPE_TEXT_MAX];
    enum mst_code rc;

    for (int i = 1; i < 3; i++)
        if (!tensor_same_shape(cond, op_in(c, i)))
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Inputs to operation %s of type Select must have "
                           "the same size and shape.  Input 0: %s != input "
                           "%d: %s",
                           c->node->name, tensor_shape_text(cond, ta), i,
                           tensor_shape_text(op_in(c, i), tb));
    rc = op_out_like(c, 0, cond);
    if (!rc)
        choose_all(c, &k);
    return rc;
}

static enum mst_code select_v1(struct op_ctx *c)
{
    const struct tensor *cond = op_in(c, 0), *a = op_in(c, 1), *b = op_in(c, 2);
    char ta[SHAPE_TEXT_MAX], tb[SHAPE_TEXT_MAX];

    if (cond->ndim == 1 && a->ndim != 1)
        return select_rows(c);
    if (cond->ndim)
        return select_same(c);
    if (!tensor_same_shape(a, b))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "'then' and 'else' must have the same size.  but "
                       "received: %s vs. %s",
                       tensor_shape_text(a, ta), tensor_shape_text(b, tb));
    op_out_same(c, 0, *TENSOR_DATA(cond, bool) ? 1 : 2);
    return MST_OK;
}

const struct op_def def_select = {
    .name = "Select",
    .in = "condition: bool, t: T, e: T",
    .out = "output: T",
    .attr = "T: type",
    .kernel = (const struct op_kernel[]){ { DT_ANY, select_v1 }, { 0 } },
};

/* The shape of all three together; false when they do not go together. */
static bool choice_shape(struct op_ctx *c, struct choice *k)
{
    for (int i = 0; i < 3; i++)
        k->ndim = MAX(k->ndim, op_in(c, i)->ndim);
    for (int d = 0; d < k->ndim; d++) {
        k->dims[d] = 1;
        for (int i = 0; i < 3; i++) {
            const struct tensor *t = op_in(c, i);
            int at = d - (k->ndim - t->ndim);
            int64_t n = at < 0 ? 1 : t->dims[at];

            if (n != 1 && k->dims[d] != 1 && n != k->dims[d])
                return false;
            if (n != 1)
                k->dims[d] = n;
        }
    }
    return true;
}

static void choice_steps(struct op_ctx *c, struct choice *k)
{
    bool flat = true;

    for (int i = 0; i < 3; i++) {
        const struct tensor *t = op_in(c, i);
        int64_t step[TENSOR_RANK_MAX];

        k->in[i] = t;
        flat &= t->count == 1 || t->count == k->out->count;
        strided_of(t->ndim, t->dims, step);
        for (int d = 0; d < k->ndim; d++) {
            int at = d - (k->ndim - t->ndim);

            k->step[i][d] = at < 0 || t->dims[at] == 1 ? 0 : step[at];
        }
    }
    if (!flat && k->ndim > 0)
        return;
    k->ndim = 1;
    k->dims[0] = k->out->count;
    for (int i = 0; i < 3; i++)
        k->step[i][0] = k->in[i]->count != 1;
}

static enum mst_code select_v2(struct op_ctx *c)
{
    struct choice k = { .out = op_out(c, 0) };
    char text[3][SHAPE_TEXT_MAX];
    enum mst_code rc;

    if (!choice_shape(c, &k))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "condition %s, then %s, and else %s must be "
                       "broadcastable",
                       tensor_shape_text(op_in(c, 0), text[0]),
                       tensor_shape_text(op_in(c, 1), text[1]),
                       tensor_shape_text(op_in(c, 2), text[2]));
    rc = op_out_new(c, 0, k.ndim, k.dims);
    if (rc)
        return rc;
    choice_steps(c, &k);
    choose_all(c, &k);
    return MST_OK;
}

const struct op_def def_select_v2 = {
    .name = "SelectV2",
    .in = "condition: bool, t: T, e: T",
    .out = "output: T",
    .attr = "T: type",
    .kernel = (const struct op_kernel[]){ { DT_ANY, select_v2 }, { 0 } },
};
