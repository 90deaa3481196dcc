/*
 * Activations and their gradients, and the gradients of element-wise functions
 * that are ops of their own (TanhGrad takes the function's result, ReluGrad its
 * argument). The gradients do not broadcast.
 *
 * In half and bfloat16 TensorFlow rounds after each step; R() does.
 */
#include "kernel/pointwise.h"
#include "kernel/vmath.h"

#define ACTIVATION_DEF(stem, NAME, SET, ...)                                   \
    const struct op_def def_##stem = {                                         \
        .name = NAME,                                                          \
        .in = "features: T",                                                   \
        .out = "activations: T",                                               \
        .attr = "T: " SET,                                                     \
        .kernel = KERNELS(__VA_ARGS__),                                        \
    }

#define SELU_SCALE       1.0507009873554804934193349852946
#define SELU_SCALE_ALPHA 1.7580993408473768599402175208123

/* A NaN stays one: the comparison is false for it. */
TYPES_FLOAT(UNARY, relu, 0.3, x < 0 ? 0 : x)
TYPES_INT(UNARY, relu, 0.3, x > 0 ? x : 0)
ACTIVATION_DEF(relu, "Relu",
               "{float, double, int32, uint8, int16, int8, int64, bfloat16, "
               "uint16, half, uint32, uint64, qint8}",
               TYPES_REAL(ROW, relu));

TYPES_FLOAT(UNARY, relu6, 0.3, x<0 ? 0 : x> 6 ? 6 : x)
TYPES_INT(UNARY, relu6, 0.3, x > 6 ? 6 : x > 0 ? x : 0)
ACTIVATION_DEF(relu6, "Relu6", "realnumbertype", TYPES_REAL(ROW, relu6));

/* The function's value is taken for every x, so that the loop has no branch.
 * It is exp(x) - 1 rather than expm1(x), as TensorFlow's is. */
#define ELU(R, x)                                                              \
    ({                                                                         \
        __typeof__(x + 0) e_ = R(exp(x)) - 1;                                  \
        x < 0 ? e_ : x;                                                        \
    })
TYPES_FLOAT(UNARY_R, elu, 1, ELU)
ACTIVATION_DEF(elu, "Elu", SET_FLOAT, TYPES_FLOAT(ROW, elu));

#define SELU(R, x)                                                             \
    ({                                                                         \
        __typeof__(x + 0) e_ = R(R(exp(x)) - 1);                               \
        x < 0 ? R((__typeof__(x))SELU_SCALE_ALPHA) * e_                        \
              : R((__typeof__(x))SELU_SCALE) * x;                              \
    })
TYPES_FLOAT(UNARY_R, selu, 1, SELU)
ACTIVATION_DEF(selu, "Selu", SET_FLOAT, TYPES_FLOAT(ROW, selu));

/* Where exp(x) is below the precision of 1, or x so large that 1 is below its,
 * log(1 + exp(x)) is what remains. The limit is log(epsilon) + 2. */
#define SOFTPLUS(R, x, limit)                                                  \
    ({                                                                         \
        __typeof__(x + 0) e_ = R(exp(x)), l_ = log1p(e_);                      \
        x > -(limit) ? x : x < (limit) ? e_ : l_;                              \
    })
#define SOFTPLUS_F64(R, x)  SOFTPLUS(R, x, -34.04365338911715)
#define SOFTPLUS_F32(R, x)  SOFTPLUS(R, x, -13.942385f)
#define SOFTPLUS_F16(R, x)  SOFTPLUS(R, x, -7.0109133f)
#define SOFTPLUS_BF16(R, x) SOFTPLUS(R, x, -2.8520303f)
TYPES_FLOAT64(UNARY_R, softplus, 3, SOFTPLUS_F64)
TYPES_FLOAT32(UNARY_R, softplus, 2, SOFTPLUS_F32)
TYPES_HALF(UNARY_R, softplus, 4, SOFTPLUS_F16)
TYPES_BFLOAT16(UNARY_R, softplus, 4, SOFTPLUS_BF16)
ACTIVATION_DEF(softplus, "Softplus", SET_FLOAT, TYPES_FLOAT(ROW, softplus));

#define SOFTSIGN(R, x) (x / R(1 + fabs(x)))
TYPES_FLOAT(UNARY_R, softsign, 0.5, SOFTSIGN)
ACTIVATION_DEF(softsign, "Softsign", SET_FLOAT, TYPES_FLOAT(ROW, softsign));

static enum mst_code leaky_init(struct op_node *n, struct status *st)
{
    struct pointwise_state *s = ARENA_NEW(n->arena, struct pointwise_state);

    s->p = op_attr_float(n, "alpha");
    n->state = s;
    return MST_OK;
}

#define LEAKY(R, x) (x > 0 ? x : R((__typeof__(x))p) * x)
TYPES_FLOAT(UNARY_R, leaky_relu, 0.3, LEAKY)

const struct op_def def_leaky_relu = {
    .name = "LeakyRelu",
    .in = "features: T",
    .out = "activations: T",
    .attr = "alpha: float = 0.2; T: {half, bfloat16, float, double} = float",
    .init = leaky_init,
    .kernel = KERNELS(TYPES_FLOAT(ROW, leaky_relu)),
};

/* ---- gradients of activations: x is the gradient, y the argument or, for
 * Elu and Selu, the result ---- */

static enum mst_code grad_pair(struct op_ctx *c, double cost_ns,
                               void (*loop)(void *, const void *, const void *,
                                            int64_t, enum pointwise_span,
                                            float))
{
    char xt[SHAPE_TEXT_MAX], yt[SHAPE_TEXT_MAX];

    if (!tensor_same_shape(op_in(c, 0), op_in(c, 1)))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Inputs to operation %s of type %s must have the same "
                       "size and shape.  Input 0: %s != input 1: %s",
                       c->node->name, c->node->def->name,
                       tensor_shape_text(op_in(c, 0), xt),
                       tensor_shape_text(op_in(c, 1), yt));
    return pointwise_pair(c, cost_ns, loop);
}

#define GRAD(s, T, A, DT, LD, ST, op, cost, F)                                 \
    PAIR_LOOP(s, T, A, LD, ST, op, F)                                          \
    static enum mst_code op##_##s(struct op_ctx *c)                            \
    {                                                                          \
        return grad_pair(c, cost, op##_loop_##s);                              \
    }
#define GRAD_DEF(stem, NAME, IN, SET, ...)                                     \
    const struct op_def def_##stem = {                                         \
        .name = NAME,                                                          \
        .in = "gradients: T, " IN ": T",                                       \
        .out = "backprops: T",                                                 \
        .attr = "T: " SET,                                                     \
        .kernel = KERNELS(__VA_ARGS__),                                        \
    }

/* A product, not a choice: an infinite gradient gives NaN where it is masked.
 */
#define RELU_GRAD(R, x, y) (x * (y > 0))
TYPES_REAL(GRAD, relu_grad, 0.3, RELU_GRAD)
GRAD_DEF(relu_grad, "ReluGrad", "features", "realnumbertype",
         TYPES_REAL(ROW, relu_grad));

#define RELU6_GRAD(R, x, y) (x * ((y > 0) & (y < 6)))
TYPES_REAL(GRAD, relu6_grad, 0.3, RELU6_GRAD)
GRAD_DEF(relu6_grad, "Relu6Grad", "features", "realnumbertype",
         TYPES_REAL(ROW, relu6_grad));

#define ELU_GRAD(R, x, y) (y < 0 ? R(y + 1) * x : x)
TYPES_FLOAT(GRAD, elu_grad, 0.3, ELU_GRAD)
GRAD_DEF(elu_grad, "EluGrad", "outputs", SET_FLOAT, TYPES_FLOAT(ROW, elu_grad));

#define SELU_GRAD(R, x, y)                                                     \
    (y < 0 ? x * R(y + R((__typeof__(x))SELU_SCALE_ALPHA))                     \
           : x * R((__typeof__(x))SELU_SCALE))
TYPES_FLOAT(GRAD, selu_grad, 0.3, SELU_GRAD)
GRAD_DEF(selu_grad, "SeluGrad", "outputs", SET_FLOAT,
         TYPES_FLOAT(ROW, selu_grad));

#define SOFTPLUS_GRAD(R, x, y) (x / R(R(exp(-y)) + 1))
TYPES_FLOAT(GRAD, softplus_grad, 1, SOFTPLUS_GRAD)
GRAD_DEF(softplus_grad, "SoftplusGrad", "features", SET_FLOAT,
         TYPES_FLOAT(ROW, softplus_grad));

#define SOFTSIGN_GRAD(R, x, y)                                                 \
    ({                                                                         \
        __typeof__(x + 0) d_ = R(1 + fabs(y));                                 \
        x / R(d_ *d_);                                                         \
    })
TYPES_FLOAT(GRAD, softsign_grad, 0.5, SOFTSIGN_GRAD)
GRAD_DEF(softsign_grad, "SoftsignGrad", "features", SET_FLOAT,
         TYPES_FLOAT(ROW, softsign_grad));

#define LEAKY_GRAD(R, x, y) (y > 0 ? x : x * R((__typeof__(x))p))
TYPES_FLOAT(GRAD, leaky_relu_grad, 0.3, LEAKY_GRAD)

const struct op_def def_leaky_relu_grad = {
    .name = "LeakyReluGrad",
    .in = "gradients: T, features: T",
    .out = "backprops: T",
    .attr = "alpha: float = 0.2; T: {half, bfloat16, float, double} = float",
    .init = leaky_init,
    .kernel = KERNELS(TYPES_FLOAT(ROW, leaky_relu_grad)),
};

/* ---- gradients of functions: x is the function's result, y the gradient ----
 */

static enum mst_code value_pair(struct op_ctx *c, double cost_ns,
                                void (*loop)(void *, const void *, const void *,
                                             int64_t, enum pointwise_span,
                                             float))
{
    if (op_in(c, 0)->count != op_in(c, 1)->count)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "The two arguments to a cwise op must have same number "
                       "of elements, got %lld and %lld",
                       (long long)op_in(c, 0)->count,
                       (long long)op_in(c, 1)->count);
    return pointwise_pair(c, cost_ns, loop);
}

#define VALUE_GRAD(s, T, A, DT, LD, ST, op, cost, F)                           \
    PAIR_LOOP(s, T, A, LD, ST, op, F)                                          \
    static enum mst_code op##_##s(struct op_ctx *c)                            \
    {                                                                          \
        return value_pair(c, cost, op##_loop_##s);                             \
    }
#define VALUE_GRAD_DEF(stem, NAME)                                             \
    const struct op_def def_##stem = {                                         \
        .name = NAME,                                                          \
        .in = "y: T, dy: T",                                                   \
        .out = "z: T",                                                         \
        .attr = "T: " SET_MATH,                                                \
        .kernel = KERNELS(TYPES_FLOAT(ROW, stem) TYPES_COMPLEX(ROW, stem)),    \
    }
/* FC: for complex numbers, some take the conjugate themselves. */
#define VALUE_GRADS(stem, NAME, F, FC)                                         \
    TYPES_FLOAT(VALUE_GRAD, stem, 0.5, F)                                      \
    TYPES_COMPLEX(VALUE_GRAD, stem, 4, FC)                                     \
    VALUE_GRAD_DEF(stem, NAME)

#define TANH_GRAD(R, x, y)    (y * R(1 - R(x * x)))
#define SIGMOID_GRAD(R, x, y) (y * R(x * R(1 - x)))
/* Of nothing comes nothing, also where the rest is infinite. */
#define UNLESS_0(y, e)       (y == 0 ? (__typeof__(y))0 : (e))
#define SQRT_GRAD(R, x, y)   UNLESS_0(y, R(y *(__typeof__(y))0.5) * R(1 / x))
#define SQRT_GRAD_C(R, x, y) SQRT_GRAD(R, conj(x), y)
#define RSQRT_GRAD(R, x, y)                                                    \
    UNLESS_0(y, R(R(y *x) * (__typeof__(y))-0.5) * R(x * x))
#define RSQRT_GRAD_C(R, x, y) RSQRT_GRAD(R, conj(x), y)
#define INV_GRAD(R, x, y)     UNLESS_0(y, R(x *x) * -y)
#define INV_GRAD_C(R, x, y)   INV_GRAD(R, conj(x), y)
VALUE_GRADS(tanh_grad, "TanhGrad", TANH_GRAD, TANH_GRAD);
VALUE_GRADS(sigmoid_grad, "SigmoidGrad", SIGMOID_GRAD, SIGMOID_GRAD);
VALUE_GRADS(sqrt_grad, "SqrtGrad", SQRT_GRAD, SQRT_GRAD_C);
VALUE_GRADS(rsqrt_grad, "RsqrtGrad", RSQRT_GRAD, RSQRT_GRAD_C);
VALUE_GRADS(inv_grad, "InvGrad", INV_GRAD, INV_GRAD_C);

const struct op_def def_reciprocal_grad = {
    .name = "ReciprocalGrad",
    .in = "y: T, dy: T",
    .out = "z: T",
    .attr = "T: " SET_MATH,
    .kernel = KERNELS(TYPES_FLOAT(ROW, inv_grad) TYPES_COMPLEX(ROW, inv_grad)),
};
