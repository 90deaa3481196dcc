/*
 * Comparisons, element-wise, with a bool as the result. A NaN compares as C
 * has it. Strings compare by their bytes.
 */
#include "kernel/pointwise.h"
#include "kernel/vmath.h"

/* ---- Equal, NotEqual ---- */

static enum mst_code equal_init(struct op_node *n, struct status *st)
{
    struct pointwise_state *s = ARENA_NEW(n->arena, struct pointwise_state);

    s->flag = op_attr_bool(n, "incompatible_shape_error");
    n->state = s;
    return MST_OK;
}

/* Shapes that do not go together make one answer for all, if the node says
 * that this is no error. */
static enum mst_code equal_run(struct op_ctx *c, bool if_not, double cost_ns,
                               void (*loop)(void *, const void *, const void *,
                                            int64_t, enum pointwise_span,
                                            float))
{
    const struct pointwise_state *s = c->node->state;
    struct shape shape;
    enum mst_code rc;

    if (s->flag || shape_broadcast(op_in(c, 0), op_in(c, 1), &shape))
        return pointwise_binary(c, cost_ns, loop);
    rc = op_out_new(c, 0, 0, NULL);
    if (!rc)
        *TENSOR_DATA(op_out(c, 0), bool) = if_not;
    return rc;
}

#define EQUAL_RUN(s, T, A, DT, LD, ST, op, if_not)                             \
    static enum mst_code op##_##s(struct op_ctx *c)                            \
    {                                                                          \
        return equal_run(c, if_not, 0.4, op##_loop_##s);                       \
    }
#define EQUALITY(s, T, A, DT, LD, ST, op, if_not, EXPR)                        \
    BINARY_LOOP(s, T, A, LD, op, bool, SAME, EXPR)                             \
    EQUAL_RUN(s, T, A, DT, LD, ST, op, if_not)

static bool same_str(const struct str *x, const struct str *y)
{
    return x->len == y->len && (!x->len || !memcmp(x->data, y->data, x->len));
}

#define STRINGS(op, NOT)                                                       \
    static void op##_loop_str(void *out_, const void *x_, const void *y_,      \
                              int64_t n, enum pointwise_span span, float p)    \
    {                                                                          \
        const struct str *xs = x_, *ys = y_;                                   \
        bool *out = out_;                                                      \
                                                                               \
        for (int64_t i = 0; i < n; i++)                                        \
            out[i] = NOT same_str(&xs[span == SPAN_X_ONE ? 0 : i],             \
                                  &ys[span == SPAN_Y_ONE ? 0 : i]);            \
    }

#define EQUAL_ROWS(op)                                                         \
    TYPES_FLOAT(ROW, op)                                                       \
    TYPES_UNSIGNED(ROW, op)                                                    \
    TYPES_SIGNED_WRAP(ROW, op)                                                 \
    TYPES_COMPLEX(ROW, op)                                                     \
    TYPES_BOOL(ROW, op){ DT_STRING, op##_str }, { DT_QINT8, op##_u8 },         \
        { DT_QUINT8, op##_u8 }, { DT_QINT16, op##_u16 },                       \
        { DT_QUINT16, op##_u16 }, { DT_QINT32, op##_u32 },
#define EQUAL_DEF(stem, NAME)                                                  \
    const struct op_def def_##stem = {                                         \
        .name = NAME,                                                          \
        .in = "x: T, y: T",                                                    \
        .out = "z: bool",                                                      \
        .attr = "T: type; incompatible_shape_error: bool = true",              \
        .init = equal_init,                                                    \
        .kernel = KERNELS(EQUAL_ROWS(stem)),                                   \
    }

TYPES_FLOAT(EQUALITY, equal, false, x == y)
TYPES_UNSIGNED(EQUALITY, equal, false, x == y)
TYPES_COMPLEX(EQUALITY, equal, false, x == y)
TYPES_BOOL(EQUALITY, equal, false, x == y)
STRINGS(equal, )
EQUAL_RUN(str, , , , , , equal, false)
EQUAL_DEF(equal, "Equal");

TYPES_FLOAT(EQUALITY, not_equal, true, x != y)
TYPES_UNSIGNED(EQUALITY, not_equal, true, x != y)
TYPES_COMPLEX(EQUALITY, not_equal, true, x != y)
TYPES_BOOL(EQUALITY, not_equal, true, x != y)
STRINGS(not_equal, !)
EQUAL_RUN(str, , , , , , not_equal, true)
EQUAL_DEF(not_equal, "NotEqual");

/* ---- order ---- */

#define ORDER(stem, NAME, EXPR)                                                \
    TYPES_REAL(BINARY_TO, stem, 0.4, bool, EXPR)                               \
    const struct op_def def_##stem = {                                         \
        .name = NAME,                                                          \
        .in = "x: T, y: T",                                                    \
        .out = "z: bool",                                                      \
        .attr = "T: realnumbertype",                                           \
        .kernel = KERNELS(TYPES_REAL(ROW, stem)),                              \
    }

ORDER(less, "Less", x < y);
ORDER(less_equal, "LessEqual", x <= y);
ORDER(greater, "Greater", x > y);
ORDER(greater_equal, "GreaterEqual", x >= y);

/* ---- ApproximateEqual: no broadcasting ---- */

static enum mst_code approximate_init(struct op_node *n, struct status *st)
{
    struct pointwise_state *s = ARENA_NEW(n->arena, struct pointwise_state);

    s->p = op_attr_float(n, "tolerance");
    n->state = s;
    return MST_OK;
}

#define APPROXIMATE(s, T, A, DT, LD, ST)                                       \
    BINARY_LOOP(s, T, A, LD, approximate_equal, bool, SAME,                    \
                fabs(x - y) <= (A)p)                                           \
    static enum mst_code approximate_equal_##s(struct op_ctx *c)               \
    {                                                                          \
        char xt[SHAPE_TEXT_MAX], yt[SHAPE_TEXT_MAX];                           \
                                                                               \
        if (!tensor_same_shape(op_in(c, 0), op_in(c, 1)))                      \
            return op_fail(c, MST_INVALID_ARGUMENT,                            \
                           "x and y must be of the same shape. x shape: %s. "  \
                           "y shape: %s",                                      \
                           tensor_shape_text(op_in(c, 0), xt),                 \
                           tensor_shape_text(op_in(c, 1), yt));                \
        return pointwise_pair(c, 0.4, approximate_equal_loop_##s);             \
    }
TYPES_FLOAT_WIDE(APPROXIMATE)

const struct op_def def_approximate_equal = {
    .name = "ApproximateEqual",
    .in = "x: T, y: T",
    .out = "z: bool",
    .attr = "T: numbertype; tolerance: float = 1e-05",
    .init = approximate_init,
    .kernel = KERNELS(TYPES_FLOAT_WIDE(ROW, approximate_equal)),
};
