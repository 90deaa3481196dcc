/*
 * Optimizers that scale each step by running means of the gradient and of its
 * square: Adam and its kin, RMSProp, and the two that only ask for signs.
 */
#include "kernel/apply.h"

/* A table more than a program: its lines are laid out by hand. */
/* clang-format off */

#define ADAM_ARGS(V, N, J, G, F, t...)                                         \
    V(var, t) V(m, t) V(v, t) N(beta1_power, t) N(beta2_power, t) N(lr, t)     \
    N(beta1, t) N(beta2, t) N(epsilon, t) G(grad, t)                           \
    F(use_nesterov, false, t)
#define ADAM_BEFORE                                                            \
    const num alpha = lr * sqrt(1 - beta2_power) / (1 - beta1_power);
#define ADAM_CHOICE use_nesterov
#define ADAM_STEP                                                              \
    m += (grad - m) * (1 - beta1);                                             \
    v += (grad * grad - v) * (1 - beta2);                                      \
    var -= (use_nesterov ? grad * (1 - beta1) + beta1 * m : m) * alpha /       \
           (sqrt(v) + epsilon);
#define ADAM(t...)     APPLY_LOOP(adam, ADAM, t)
#define ADAM_ROW(t...) APPLY_ROW(adam, t)
APPLY_KERNELS(adam, ADAM, TYPES_APPLY)
APPLY_RECORDS(adam, ADAM, "Adam");

#define AMSGRAD_ARGS(V, N, J, G, F, t...)                                      \
    V(var, t) V(m, t) V(v, t) V(vhat, t) N(beta1_power, t) N(beta2_power, t)   \
    N(lr, t) N(beta1, t) N(beta2, t) N(epsilon, t) G(grad, t)
#define AMSGRAD_BEFORE ADAM_BEFORE
#define AMSGRAD_CHOICE no_choice
#define AMSGRAD_STEP                                                           \
    m += (grad - m) * (1 - beta1);                                             \
    v += (grad * grad - v) * (1 - beta2);                                      \
    vhat = vhat < v ? v : vhat;                                                \
    var -= m * alpha / (sqrt(vhat) + epsilon);
#define AMSGRAD(t...)     APPLY_LOOP(amsgrad, AMSGRAD, t)
#define AMSGRAD_ROW(t...) APPLY_ROW(amsgrad, t)
APPLY_KERNELS(amsgrad, AMSGRAD, TYPES_APPLY_REAL)
APPLY_RECORD(resource_apply_adam_with_amsgrad, amsgrad, AMSGRAD,
             "ResourceApplyAdamWithAmsgrad", RES);

#define ADA_MAX_ARGS(V, N, J, G, F, t...)                                      \
    V(var, t) V(m, t) V(v, t) N(beta1_power, t) N(lr, t) N(beta1, t)           \
    N(beta2, t) N(epsilon, t) G(grad, t)
#define ADA_MAX_BEFORE const num rate = lr / (1 - beta1_power);
#define ADA_MAX_CHOICE no_choice
#define ADA_MAX_STEP                                                           \
    m += (grad - m) * (1 - beta1);                                             \
    v = beta2 * v < fabs(grad) ? fabs(grad) : beta2 * v;                       \
    var -= rate * (m / (v + epsilon));
#define ADA_MAX(t...)     APPLY_LOOP(ada_max, ADA_MAX, t)
#define ADA_MAX_ROW(t...) APPLY_ROW(ada_max, t)
APPLY_KERNELS(ada_max, ADA_MAX, TYPES_APPLY_REAL)
APPLY_RECORDS(ada_max, ADA_MAX, "AdaMax");

#define RMS_PROP_ARGS(V, N, J, G, F, t...)                                     \
    V(var, t) V(ms, t) V(mom, t) N(lr, t) N(rho, t) N(momentum, t)             \
    N(epsilon, t) G(grad, t)
#define RMS_PROP_BEFORE
#define RMS_PROP_CHOICE no_choice
#define RMS_PROP_STEP                                                          \
    ms += (grad * grad - ms) * (1 - rho);                                      \
    mom = mom * momentum + grad * lr / sqrt(ms + epsilon);                     \
    var -= mom;
#define RMS_PROP(t...)     APPLY_LOOP(rms_prop, RMS_PROP, t)
#define RMS_PROP_ROW(t...) APPLY_ROW(rms_prop, t)
APPLY_KERNELS(rms_prop, RMS_PROP, TYPES_APPLY)
APPLY_RECORDS(rms_prop, RMS_PROP, "RMSProp");
APPLY_RECORDS_SPARSE(rms_prop, RMS_PROP, "RMSProp");

#define CENTERED_ARGS(V, N, J, G, F, t...)                                     \
    V(var, t) V(mg, t) V(ms, t) V(mom, t) N(lr, t) N(rho, t) N(momentum, t)    \
    N(epsilon, t) G(grad, t)
#define CENTERED_BEFORE
#define CENTERED_CHOICE no_choice
#define CENTERED_STEP                                                          \
    ms += (grad * grad - ms) * (1 - rho);                                      \
    mg += (grad - mg) * (1 - rho);                                             \
    mom = mom * momentum + grad * lr / sqrt(ms - mg * mg + epsilon);           \
    var -= mom;
#define CENTERED(t...)     APPLY_LOOP(centered_rms_prop, CENTERED, t)
#define CENTERED_ROW(t...) APPLY_ROW(centered_rms_prop, t)
APPLY_KERNELS(centered_rms_prop, CENTERED, TYPES_APPLY)
APPLY_RECORDS(centered_rms_prop, CENTERED, "CenteredRMSProp");
APPLY_RECORDS_SPARSE(centered_rms_prop, CENTERED, "CenteredRMSProp");

/* ---- by the agreement of signs ---- */

#define SIGN(x) ((num)((x) > 0) - (num)((x) < 0))

#define ADD_SIGN_ARGS(V, N, J, G, F, t...)                                     \
    V(var, t) V(m, t) N(lr, t) N(alpha, t) N(sign_decay, t) N(beta, t)         \
    G(grad, t)
#define ADD_SIGN_BEFORE
#define ADD_SIGN_CHOICE no_choice
#define ADD_SIGN_STEP                                                          \
    m = m * beta + grad * (1 - beta);                                          \
    var -= lr * (alpha + sign_decay * (SIGN(grad) * SIGN(m))) * grad;
#define ADD_SIGN(t...)     APPLY_LOOP(add_sign, ADD_SIGN, t)
#define ADD_SIGN_ROW(t...) APPLY_ROW(add_sign, t)
APPLY_KERNELS(add_sign, ADD_SIGN, TYPES_APPLY_REAL)
APPLY_RECORDS(add_sign, ADD_SIGN, "AddSign");

/* exp(logbase * sign_decay * sign), of which there are three. */
#define POWER_SIGN_ARGS(V, N, J, G, F, t...)                                   \
    V(var, t) V(m, t) N(lr, t) N(logbase, t) N(sign_decay, t) N(beta, t)       \
    G(grad, t)
#define POWER_SIGN_BEFORE                                                      \
    const num agree = exp(logbase * sign_decay);                               \
    const num differ = exp(-(logbase * sign_decay));
#define POWER_SIGN_CHOICE no_choice
#define POWER_SIGN_STEP                                                        \
    m = m * beta + grad * (1 - beta);                                          \
    num sign = SIGN(grad) * SIGN(m);                                           \
    var -= lr * (sign > 0 ? agree : sign < 0 ? differ : 1) * grad;
#define POWER_SIGN(t...)     APPLY_LOOP(power_sign, POWER_SIGN, t)
#define POWER_SIGN_ROW(t...) APPLY_ROW(power_sign, t)
APPLY_KERNELS(power_sign, POWER_SIGN, TYPES_APPLY_REAL)
APPLY_RECORDS(power_sign, POWER_SIGN, "PowerSign");
