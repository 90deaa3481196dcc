/*
 * Optimizers that follow the gradient itself: gradient descent, plain and
 * proximal, and momentum in TensorFlow's and in Keras's form.
 */
#include "kernel/apply.h"

/* A table more than a program: its lines are laid out by hand. */
/* clang-format off */

#define SGD_ARGS(V, N, J, G, F, t...) V(var, t) N(alpha, t) G(delta, t)
#define SGD_BEFORE
#define SGD_CHOICE    no_choice
#define SGD_STEP      var -= delta * alpha;
#define SGD(t...)     APPLY_LOOP(gradient_descent, SGD, t)
#define SGD_ROW(t...) APPLY_ROW(gradient_descent, t)
APPLY_KERNELS(gradient_descent, SGD, TYPES_APPLY)
APPLY_RECORDS(gradient_descent, SGD, "GradientDescent");

/* A step, then the nearest point that pays for its size: l1 pulls towards
 * zero by a constant, l2 in proportion. */
#define PROX_SGD_ARGS(V, N, J, G, F, t...)                                     \
    V(var, t) N(alpha, t) N(l1, t) N(l2, t) G(delta, t)
#define PROX_SGD_BEFORE const num pull = l1 > 0 ? alpha * l1 : 0;
#define PROX_SGD_CHOICE no_choice
#define PROX_SGD_STEP                                                          \
    var -= delta * alpha;                                                      \
    var = SHRINK(var, pull) / (1 + l2 * alpha);
#define PROX_SGD(t...)     APPLY_LOOP(proximal_gradient_descent, PROX_SGD, t)
#define PROX_SGD_ROW(t...) APPLY_ROW(proximal_gradient_descent, t)
APPLY_KERNELS(proximal_gradient_descent, PROX_SGD, TYPES_APPLY_REAL)
APPLY_RECORDS(proximal_gradient_descent, PROX_SGD, "ProximalGradientDescent");
APPLY_RECORDS_SPARSE(proximal_gradient_descent, PROX_SGD,
                     "ProximalGradientDescent");

#define MOMENTUM_ARGS(V, N, J, G, F, t...)                                     \
    V(var, t) V(accum, t) N(lr, t) G(grad, t) N(momentum, t)                   \
    F(use_nesterov, false, t)
#define MOMENTUM_BEFORE
#define MOMENTUM_CHOICE use_nesterov
#define MOMENTUM_STEP                                                          \
    accum = accum * momentum + grad;                                           \
    var -= use_nesterov ? grad * lr + accum * momentum * lr : accum * lr;
#define MOMENTUM(t...)     APPLY_LOOP(momentum, MOMENTUM, t)
#define MOMENTUM_ROW(t...) APPLY_ROW(momentum, t)
APPLY_KERNELS(momentum, MOMENTUM, TYPES_APPLY)
APPLY_RECORDS(momentum, MOMENTUM, "Momentum");
APPLY_RECORDS_SPARSE(momentum, MOMENTUM, "Momentum");

#define KERAS_ARGS MOMENTUM_ARGS
#define KERAS_BEFORE
#define KERAS_CHOICE use_nesterov
#define KERAS_STEP                                                             \
    accum = accum * momentum - grad * lr;                                      \
    var += use_nesterov ? accum * momentum - grad * lr : accum;
#define KERAS(t...)     APPLY_LOOP(keras_momentum, KERAS, t)
#define KERAS_ROW(t...) APPLY_ROW(keras_momentum, t)
APPLY_KERNELS(keras_momentum, KERAS, TYPES_APPLY)
APPLY_RECORD(resource_apply_keras_momentum, keras_momentum, KERAS,
             "ResourceApplyKerasMomentum", RES);
APPLY_RECORD_SPARSE(resource_sparse_apply_keras_momentum, keras_momentum, KERAS,
                    "ResourceSparseApplyKerasMomentum", RES);
