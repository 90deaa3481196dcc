/*
 * Optimizers that scale each step by the sum of all squared gradients so far:
 * Adagrad in its forms, Adadelta, and FTRL.
 */
#include "kernel/apply.h"

/* A table more than a program: its lines are laid out by hand. */
/* clang-format off */

#define ADAGRAD_ARGS(V, N, J, G, F, t...)                                      \
    V(var, t) V(accum, t) N(lr, t) G(grad, t) F(update_slots, true, t)
#define ADAGRAD_BEFORE
#define ADAGRAD_CHOICE update_slots
#define ADAGRAD_STEP                                                           \
    if (update_slots)                                                          \
        accum += grad * grad;                                                  \
    var -= grad * lr / sqrt(accum);
#define ADAGRAD(t...)     APPLY_LOOP(adagrad, ADAGRAD, t)
#define ADAGRAD_ROW(t...) APPLY_ROW(adagrad, t)
APPLY_KERNELS(adagrad, ADAGRAD, TYPES_APPLY)
APPLY_RECORDS(adagrad, ADAGRAD, "Adagrad");
APPLY_RECORDS_SPARSE(adagrad, ADAGRAD, "Adagrad");

#define ADAGRAD_V2_ARGS(V, N, J, G, F, t...)                                   \
    V(var, t) V(accum, t) N(lr, t) N(epsilon, t) G(grad, t)                    \
    F(update_slots, true, t)
#define ADAGRAD_V2_BEFORE
#define ADAGRAD_V2_CHOICE update_slots
#define ADAGRAD_V2_STEP                                                        \
    if (update_slots)                                                          \
        accum += grad * grad;                                                  \
    var -= grad * lr / (sqrt(accum) + epsilon);
#define ADAGRAD_V2(t...)     APPLY_LOOP(adagrad_v2, ADAGRAD_V2, t)
#define ADAGRAD_V2_ROW(t...) APPLY_ROW(adagrad_v2, t)
APPLY_KERNELS(adagrad_v2, ADAGRAD_V2, TYPES_APPLY)
APPLY_RECORDS(adagrad_v2, ADAGRAD_V2, "AdagradV2");
APPLY_RECORDS_SPARSE(adagrad_v2, ADAGRAD_V2, "AdagradV2");

/* Dual averaging: the variable is made anew from the sums each time. */
#define ADAGRAD_DA_ARGS(V, N, J, G, F, t...)                                   \
    V(var, t) V(gradient_accumulator, t) V(gradient_squared_accumulator, t)    \
    G(grad, t) N(lr, t) N(l1, t) N(l2, t) J(global_step, t)
#define ADAGRAD_DA_BEFORE                                                      \
    const num steps = (num)global_step, pull = l1 > 0 ? steps * l1 : 0;
#define ADAGRAD_DA_CHOICE no_choice
#define ADAGRAD_DA_STEP                                                        \
    (void)var;                                                                 \
    gradient_accumulator += grad;                                              \
    gradient_squared_accumulator += grad * grad;                               \
    var = -lr * SHRINK(gradient_accumulator, pull) /                           \
          (l2 * (steps * lr) + sqrt(gradient_squared_accumulator));
#define ADAGRAD_DA(t...)     APPLY_LOOP(adagrad_da, ADAGRAD_DA, t)
#define ADAGRAD_DA_ROW(t...) APPLY_ROW(adagrad_da, t)
APPLY_KERNELS(adagrad_da, ADAGRAD_DA, TYPES_APPLY_REAL)
APPLY_RECORDS(adagrad_da, ADAGRAD_DA, "AdagradDA");
APPLY_RECORDS_SPARSE(adagrad_da, ADAGRAD_DA, "AdagradDA");

#define PROX_ADAGRAD_ARGS(V, N, J, G, F, t...)                                 \
    V(var, t) V(accum, t) N(lr, t) N(l1, t) N(l2, t) G(grad, t)
#define PROX_ADAGRAD_BEFORE
#define PROX_ADAGRAD_CHOICE no_choice
#define PROX_ADAGRAD_STEP                                                      \
    accum += grad * grad;                                                      \
    num rate = lr / sqrt(accum);                                               \
    var -= grad * rate;                                                        \
    var = SHRINK(var, rate * l1) / (1 + l2 * rate);
#define PROX_ADAGRAD(t...)     APPLY_LOOP(proximal_adagrad, PROX_ADAGRAD, t)
#define PROX_ADAGRAD_ROW(t...) APPLY_ROW(proximal_adagrad, t)
APPLY_KERNELS(proximal_adagrad, PROX_ADAGRAD, TYPES_APPLY_REAL)
APPLY_RECORDS(proximal_adagrad, PROX_ADAGRAD, "ProximalAdagrad");
APPLY_RECORDS_SPARSE(proximal_adagrad, PROX_ADAGRAD, "ProximalAdagrad");

#define ADADELTA_ARGS(V, N, J, G, F, t...)                                     \
    V(var, t) V(accum, t) V(accum_update, t) N(lr, t) N(rho, t) N(epsilon, t)  \
    G(grad, t)
#define ADADELTA_BEFORE
#define ADADELTA_CHOICE no_choice
#define ADADELTA_STEP                                                          \
    accum = accum * rho + grad * grad * (1 - rho);                             \
    num update = sqrt(accum_update + epsilon) / sqrt(accum + epsilon) * grad;  \
    var -= update * lr;                                                        \
    accum_update = accum_update * rho + update * update * (1 - rho);
#define ADADELTA(t...)     APPLY_LOOP(adadelta, ADADELTA, t)
#define ADADELTA_ROW(t...) APPLY_ROW(adadelta, t)
APPLY_KERNELS(adadelta, ADADELTA, TYPES_APPLY)
APPLY_RECORDS(adadelta, ADADELTA, "Adadelta");
APPLY_RECORDS_SPARSE(adadelta, ADADELTA, "Adadelta");

/* ---- follow the regularised leader ----
 *
 * With multiply_linear_by_lr the linear term is kept as its product with the
 * learning rate: what one form divides by lr (down), the other multiplies
 * with it elsewhere (up). */

#define FTRL_SCALES                                                            \
    const num up = multiply_linear_by_lr ? lr : 1;                             \
    const num down = multiply_linear_by_lr ? 1 : lr;                           \
    const bool half_power = lr_power == (num)-0.5;
#define FTRL_POWER(x) (half_power ? sqrt(x) : pow(x, -lr_power))
#define FTRL_COMMON(shrunk)                                                    \
    num old_power = FTRL_POWER(accum);                                         \
    accum += grad * grad;                                                      \
    num power = FTRL_POWER(accum);                                             \
    linear += shrunk * up - (power - old_power) / down * var;                  \
    var = fabs(linear) > l1 * up ? (copysign(l1 * up, linear) - linear) /      \
                                       (power / down + 2 * l2 * up)            \
                                 : 0;

#define FTRL_ARGS(V, N, J, G, F, t...)                                         \
    V(var, t) V(accum, t) V(linear, t) G(grad, t) N(lr, t) N(l1, t) N(l2, t)   \
    N(lr_power, t) F(multiply_linear_by_lr, false, t)
#define FTRL_BEFORE    FTRL_SCALES
#define FTRL_CHOICE    half_power
#define FTRL_STEP      FTRL_COMMON(grad)
#define FTRL(t...)     APPLY_LOOP(ftrl, FTRL, t)
#define FTRL_ROW(t...) APPLY_ROW(ftrl, t)
APPLY_KERNELS(ftrl, FTRL, TYPES_APPLY_REAL)
APPLY_RECORDS(ftrl, FTRL, "Ftrl");
APPLY_RECORDS_SPARSE(ftrl, FTRL, "Ftrl");

#define FTRL_V2_ARGS(V, N, J, G, F, t...)                                      \
    V(var, t) V(accum, t) V(linear, t) G(grad, t) N(lr, t) N(l1, t) N(l2, t)   \
    N(l2_shrinkage, t) N(lr_power, t) F(multiply_linear_by_lr, false, t)
#define FTRL_V2_BEFORE    FTRL_SCALES
#define FTRL_V2_CHOICE    half_power
#define FTRL_V2_STEP      FTRL_COMMON((grad + 2 * l2_shrinkage * var))
#define FTRL_V2(t...)     APPLY_LOOP(ftrl_v2, FTRL_V2, t)
#define FTRL_V2_ROW(t...) APPLY_ROW(ftrl_v2, t)
APPLY_KERNELS(ftrl_v2, FTRL_V2, TYPES_APPLY_REAL)
APPLY_RECORDS(ftrl_v2, FTRL_V2, "FtrlV2");
APPLY_RECORDS_SPARSE(ftrl_v2, FTRL_V2, "FtrlV2");
