/*
 * ClipByValue, and CheckNumerics: what keeps values within bounds.
 */
#include "kernel/types.h"

struct clip_job {
    void (*loop)(void *out, const void *in, const void *low, int low_step,
                 const void *high, int high_step, int64_t n);
    const char *in, *low, *high;
    char *out;
    size_t size;
    int low_step, high_step; /* 0: one for all */
};

static void clip_piece(void *arg, int64_t begin, int64_t end)
{
    const struct clip_job *j = arg;
    size_t at = (size_t)begin * j->size;

    j->loop(j->out + at, j->in + at, j->low + at * (size_t)j->low_step,
            j->low_step, j->high + at * (size_t)j->high_step, j->high_step,
            end - begin);
}

static enum mst_code clip_run(struct op_ctx *c, struct clip_job *j)
{
    const struct tensor *in = op_in(c, 0);
    char it[SHAPE_TEXT_MAX], lt[SHAPE_TEXT_MAX], ht[SHAPE_TEXT_MAX];
    enum mst_code rc;

    for (int i = 1; i < 3; i++)
        if (op_in(c, i)->ndim && !tensor_same_shape(in, op_in(c, i)))
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "clip_value_min and clip_value_max must be either "
                           "of the same shape as input, or a scalar. input "
                           "shape: %sclip_value_min shape: %sclip_value_max "
                           "shape: %s",
                           tensor_shape_text(in, it),
                           tensor_shape_text(op_in(c, 1), lt),
                           tensor_shape_text(op_in(c, 2), ht));
    rc = op_out_forward(c, 0, 0);
    if (rc)
        return rc;
    j->in = in->data;
    j->low = op_in(c, 1)->data;
    j->high = op_in(c, 2)->data;
    j->low_step = op_in(c, 1)->ndim > 0;
    j->high_step = op_in(c, 2)->ndim > 0;
    j->out = op_out(c, 0)->data;
    j->size = dtype_size((enum dtype)in->dtype);
    op_for(c, in->count, 0.4, clip_piece, j);
    return MST_OK;
}

/* A NaN stays one; where the bounds cross, the lower one wins. */
#define CLIPPED(x, l, h)                                                       \
    ({                                                                         \
        __typeof__(x) x_ = (x) > (h) ? (h) : (x);                              \
        x_ < (l) ? (l) : x_;                                                   \
    })
/* Each part for itself. */
#define CLIPPED_C(x, l, h)                                                     \
    __builtin_complex(CLIPPED(__real__ x, __real__ l, __real__ h),             \
                      CLIPPED(__imag__ x, __imag__ l, __imag__ h))

#define CLIP(s, T, A, DT, LD, ST, EXPR)                                        \
    CLONES_##s static void clip_loop_##s(                                      \
        void *out_, const void *in_, const void *low_, int low_step,           \
        const void *high_, int high_step, int64_t n)                           \
    {                                                                          \
        const T *in = in_, *low = low_, *high = high_;                         \
        T *out = out_;                                                         \
                                                                               \
        LOOP_IN_PLACE                                                          \
        for (int64_t i = 0; i < n; i++) {                                      \
            A x = LD(in[i]), l = LD(low[i * low_step]);                        \
            A h = LD(high[i * high_step]);                                     \
                                                                               \
            out[i] = (T)ST(EXPR(x, l, h));                                     \
        }                                                                      \
    }                                                                          \
    static enum mst_code clip_##s(struct op_ctx *c)                            \
    {                                                                          \
        struct clip_job j = { .loop = clip_loop_##s };                         \
                                                                               \
        return clip_run(c, &j);                                                \
    }
TYPES_REAL(CLIP, CLIPPED)
TYPES_COMPLEX(CLIP, CLIPPED_C)

const struct op_def def_clip_by_value = {
    .name = "ClipByValue",
    .in = "t: T, clip_value_min: T, clip_value_max: T",
    .out = "output: T",
    .attr = "T: numbertype",
    .kernel = KERNELS(TYPES_NUMBER(ROW, clip)),
};

/* ---- CheckNumerics ---- */

enum { HAS_NAN = 1, HAS_PLUS = 2, HAS_MINUS = 4 };

static enum mst_code check_init(struct op_node *n, struct status *st)
{
    n->state = (void *)op_attr_str(n, "message").data;
    return MST_OK;
}

static enum mst_code check_fail(struct op_ctx *c, int found)
{
    static const char *const texts[8] = {
        [HAS_NAN] = "NaN",
        [HAS_PLUS] = "+Inf",
        [HAS_MINUS] = "-Inf",
        [HAS_NAN | HAS_PLUS] = "+Inf and NaN",
        [HAS_NAN | HAS_MINUS] = "-Inf and NaN",
        [HAS_PLUS | HAS_MINUS] = "-Inf and +Inf",
        [HAS_NAN | HAS_PLUS | HAS_MINUS] = "-Inf, +Inf, and NaN",
    };
    const char *text = texts[found];

    /* The first version does not tell the infinities apart. */
    if (!strcmp(c->node->def->name, "CheckNumerics"))
        text = found == HAS_NAN    ? "NaN"
               : (found & HAS_NAN) ? "Inf and NaN"
                                   : "Inf";
    return op_fail(c, MST_INVALID_ARGUMENT, "%s : Tensor had %s values",
                   (const char *)c->node->state, text);
}

#define NUMERICS(s, T, A, DT, LD, ST)                                          \
    CLONES_##s static int numerics_in_##s(const struct tensor *t)              \
    {                                                                          \
        const T *in = t->data;                                                 \
        int found = 0;                                                         \
                                                                               \
        for (int64_t i = 0; i < t->count; i++) {                               \
            A x = LD(in[i]);                                                   \
                                                                               \
            found |= (x != x ? HAS_NAN : 0) | (x == INFINITY ? HAS_PLUS : 0) | \
                     (x == -INFINITY ? HAS_MINUS : 0);                         \
        }                                                                      \
        return found;                                                          \
    }                                                                          \
    static enum mst_code check_numerics_##s(struct op_ctx *c)                  \
    {                                                                          \
        int found = numerics_in_##s(op_in(c, 0));                              \
                                                                               \
        if (found)                                                             \
            return check_fail(c, found);                                       \
        op_out_same(c, 0, 0);                                                  \
        return MST_OK;                                                         \
    }
TYPES_FLOAT(NUMERICS)

#define CHECK_DEF(stem, NAME)                                                  \
    const struct op_def def_##stem = {                                         \
        .name = NAME,                                                          \
        .in = "tensor: T",                                                     \
        .out = "output: T",                                                    \
        .attr = "T: {bfloat16, half, float, double}; message: string",         \
        .flags = OP_STATEFUL,                                                  \
        .init = check_init,                                                    \
        .kernel = KERNELS(TYPES_FLOAT(ROW, check_numerics)),                   \
    }
CHECK_DEF(check_numerics, "CheckNumerics");
CHECK_DEF(check_numerics_v2, "CheckNumericsV2");
