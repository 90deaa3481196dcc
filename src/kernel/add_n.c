/*
 * Sums of many tensors of one shape: AddN, AccumulateNV2.
 *
 * The inputs are added a stretch at a time, so that the sum stays in the cache
 * while they go by. The order is TensorFlow's, and with it the rounding: a
 * first group of two to nine in their order, then groups of eight, each of
 * which is summed up before it is added.
 */
#include "kernel/types.h"
#include "kernel/variant.h"

#define STRETCH 1024
#define GROUP   8

struct sum_job {
    void (*add)(void *out, const void *x, const void *y, int64_t n);
    const struct op_ctx *c;
    char *out;
    size_t size;
};

/* Inputs [first, last) from byte `at` on, n elements. */
static void sum_group(const struct sum_job *j, char *out, size_t at, int first,
                      int last, int64_t n)
{
    const char *sum = (const char *)op_in(j->c, first)->data + at;

    for (int i = first + 1; i < last; i++, sum = out)
        j->add(out, sum, (const char *)op_in(j->c, i)->data + at, n);
}

static void sum_piece(void *arg, int64_t begin, int64_t end)
{
    const struct sum_job *j = arg;
    _Alignas(64) char part[STRETCH * 16];
    int count = j->c->node->in_count;
    int rest = count % GROUP, first = rest < 2 ? GROUP + rest : rest;

    for (; begin < end; begin += STRETCH) {
        int64_t n = MIN(end - begin, STRETCH);
        size_t at = (size_t)begin * j->size;

        sum_group(j, j->out + at, at, 0, first, n);
        for (int i = first; i < count; i += GROUP) {
            sum_group(j, part, at, i, i + GROUP, n);
            j->add(j->out + at, j->out + at, part, n);
        }
    }
}

static enum mst_code check_shapes(struct op_ctx *c)
{
    char first[SHAPE_TEXT_MAX], other[SHAPE_TEXT_MAX];

    for (int i = 1; i < c->node->in_count; i++)
        if (!tensor_same_shape(op_in(c, 0), op_in(c, i)))
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Inputs to operation %s of type %s must have the "
                           "same size and shape.  Input 0: %s != input %d: %s",
                           c->node->name, c->node->def->name,
                           tensor_shape_text(op_in(c, 0), first), i,
                           tensor_shape_text(op_in(c, i), other));
    return MST_OK;
}

static enum mst_code sum_run(struct op_ctx *c,
                             void (*add)(void *, const void *, const void *,
                                         int64_t))
{
    struct sum_job j = { .add = add, .c = c };
    enum mst_code rc = check_shapes(c);

    if (rc)
        return rc;
    if (c->node->in_count == 1) {
        op_out_same(c, 0, 0);
        return MST_OK;
    }
    /* Over one of the two that are read before anything is written. */
    rc = op_out_forward(c, 0, !tensor_unique(op_in(c, 0)));
    if (rc)
        return rc;
    j.out = op_out(c, 0)->data;
    j.size = dtype_size((enum dtype)op_out(c, 0)->dtype);
    op_for(c, op_out(c, 0)->count, 0.2 * c->node->in_count, sum_piece, &j);
    return MST_OK;
}

#define SUM(s, T, A, DT, LD, ST)                                               \
    CLONES_##s static void add_##s(void *out_, const void *x_, const void *y_, \
                                   int64_t n)                                  \
    {                                                                          \
        const T *x = x_, *y = y_;                                              \
        T *out = out_;                                                         \
                                                                               \
        LOOP_IN_PLACE                                                          \
        for (int64_t i = 0; i < n; i++)                                        \
            out[i] = (T)ST((A)(LD(x[i]) + LD(y[i])));                          \
    }                                                                          \
    static enum mst_code add_n_##s(struct op_ctx *c)                           \
    {                                                                          \
        return sum_run(c, add_##s);                                            \
    }
TYPES_FLOAT(SUM)
TYPES_UNSIGNED(SUM)
TYPES_COMPLEX(SUM)

#define SUM_KERNELS                                                            \
    KERNELS(TYPES_FLOAT(ROW, add_n) TYPES_UNSIGNED(ROW, add_n)                 \
                TYPES_SIGNED_WRAP(ROW, add_n)                                  \
                    TYPES_COMPLEX(ROW, add_n){ DT_VARIANT, variant_add_n }, )

const struct op_def def_add_n = {
    .name = "AddN",
    .in = "inputs: N * T",
    .out = "sum: T",
    .attr = "N: int >= 1; T: {float, double, int32, uint8, int16, int8, "
            "complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
            "quint16, uint16, complex128, half, uint32, uint64, variant}",
    .kernel = SUM_KERNELS,
};

const struct op_def def_accumulate_nv2 = {
    .name = "AccumulateNV2",
    .in = "inputs: N * T",
    .out = "sum: T",
    .attr = "N: int >= 1; T: numbertype; shape: shape",
    .kernel = SUM_KERNELS,
};
