/*
 * Optimizers: the one pattern of ops that update variables by a gradient.
 *
 * An optimizer is two macros. OP_ARGS lists the op's arguments in their order:
 *   V  a variable that it reads and writes
 *   N  a number (a scalar of type T)    J  a whole one (int64)
 *   G  the gradient                     F  an attribute that is true or false
 * OP_STEP is what it does to one element, in which each argument goes by its
 * name and has the type `num`; what does not change from one element to the
 * next stands in OP_BEFORE. Both follow the order of TensorFlow's arithmetic.
 * OP_CHOICE names a bool between two ways of doing the step; there is a loop
 * for each, in which it is constant (compilers can do that by themselves, but
 * gcc 12 then forgets that the loop may be vectorised).
 *
 *   #define SGD_ARGS(V, N, J, G, F, t...)  V(var, t) N(alpha, t) G(delta, t)
 *   #define SGD_BEFORE
 *   #define SGD_CHOICE no_choice
 *   #define SGD_STEP  var -= delta * alpha;
 *   #define SGD(t...)     APPLY_LOOP(sgd, SGD, t)
 *   #define SGD_ROW(t...) APPLY_ROW(sgd, t)
 *   APPLY_KERNELS(sgd, SGD, TYPES_FLOAT)
 *   APPLY_RECORD(apply_sgd, sgd, SGD, "ApplySgd", REF);
 *
 * From these come one loop and one kernel a type, and the records of all the
 * forms: by reference or by resource handle, for whole variables or (SPARSE)
 * for the rows that a second argument names behind the gradient. The sparse
 * form of an op does to each row what the dense one does to all.
 *
 * The loop reads the old value and writes the new one, which may lie in the
 * same memory (see op/variable.h), element by element: hence IN_PLACE.
 */
#ifndef KERNEL_APPLY_H
#define KERNEL_APPLY_H

#include <tgmath.h>

#include "kernel/rows.h"
#include "kernel/types.h"

#undef I

#define APPLY_ARGS_MAX 12

/* What a loop works on; arguments by their place, indices left out. */
struct apply_args {
    const void *in[APPLY_ARGS_MAX];
    void *out[APPLY_ARGS_MAX]; /* of variables only */
    bool flag;
};

/* Does the step for the n elements of each span: from `at` on in the variables,
 * from `from` on in the gradient. Spans in their order, since rows may be named
 * twice; many at a time, since a row may be one element. */
typedef void apply_fn(const struct apply_args *a, const struct rows_span *spans,
                      int64_t count, int64_t n);

/* x nearer to zero by `by`, and not past it; a NaN stays one. */
#define SHRINK(x, by)  copysign(NOT_BELOW_0(fabs(x) - (by)), x)
#define NOT_BELOW_0(x) ((x) < 0 ? 0 : (x))

/* ---- what the letters of an argument list become ---- */

#define APPLY_NONE(...)
#define APPLY_PLACE(name, t...) AT_##name,

#define APPLY_SPAN_V(name, s, T, A, DT, LD, ST)                                \
    const T *old_##name = (const T *)a->in[AT_##name] + spans[k].at;           \
    T *new_##name = (T *)a->out[AT_##name] + spans[k].at;
#define APPLY_OPEN_N(name, s, T, A, DT, LD, ST)                                \
    const A name = LD(*(const T *)a->in[AT_##name]);
#define APPLY_OPEN_J(name, s, T, A, DT, LD, ST)                                \
    const int64_t name = *(const int64_t *)a->in[AT_##name];
#define APPLY_SPAN_G(name, s, T, A, DT, LD, ST)                                \
    const T *old_##name = (const T *)a->in[AT_##name] + spans[k].from;
#define APPLY_OPEN_F(name, value, t...)         const bool name = a->flag;

#define APPLY_LOAD_V(name, s, T, A, DT, LD, ST) A name = LD(old_##name[i]);
#define APPLY_LOAD_G(name, s, T, A, DT, LD, ST)                                \
    const A name = LD(old_##name[i]);
#define APPLY_SAVE_V(name, s, T, A, DT, LD, ST) new_##name[i] = (T)ST(name);

/* Never on; the choice of optimizers that have none. */
enum { no_choice };

#define APPLY_ONE(OP, s, T, A, DT, LD, ST)                                     \
    {                                                                          \
        OP                                                                     \
        ##_ARGS(APPLY_LOAD_V, APPLY_NONE, APPLY_NONE, APPLY_LOAD_G,            \
                APPLY_NONE, s, T, A, DT, LD, ST) OP                            \
        ##_STEP OP                                                             \
        ##_ARGS(APPLY_SAVE_V, APPLY_NONE, APPLY_NONE, APPLY_NONE, APPLY_NONE,  \
                s, T, A, DT, LD, ST)                                           \
    }
#define APPLY_EACH(OP, value, s, T, A, DT, LD, ST)                             \
    {                                                                          \
        const bool OP                                                          \
        ##_CHOICE __attribute__((unused)) = value;                             \
                                                                               \
        IN_PLACE                                                               \
        for (int64_t i = 0; i < n; i++)                                        \
            APPLY_ONE(OP, s, T, A, DT, LD, ST)                                 \
    }

#define APPLY_LOOP(op, OP, s, T, A, DT, LD, ST)                                \
    VECTOR_CLONES RACY static void op##_loop_##s(                              \
        const struct apply_args *a, const struct rows_span *spans,             \
        int64_t count, int64_t n)                                              \
    {                                                                          \
        typedef A num __attribute__((unused));                                 \
        enum {                                                                 \
            OP##_ARGS(APPLY_PLACE, APPLY_PLACE, APPLY_PLACE, APPLY_PLACE,      \
                      APPLY_NONE, s)                                           \
        };                                                                     \
                                                                               \
        OP                                                                     \
        ##_ARGS(APPLY_NONE, APPLY_OPEN_N, APPLY_OPEN_J, APPLY_NONE,            \
                APPLY_OPEN_F, s, T, A, DT, LD, ST) OP                          \
        ##_BEFORE                                                              \
                                                                               \
            for (int64_t k = 0, i = 0; n == 1 && k < count; k++)               \
        {                                                                      \
            OP                                                                 \
            ##_ARGS(APPLY_SPAN_V, APPLY_NONE, APPLY_NONE, APPLY_SPAN_G,        \
                    APPLY_NONE, s, T, A, DT, LD, ST)                           \
                APPLY_ONE(OP, s, T, A, DT, LD, ST)                             \
        }                                                                      \
        for (int64_t k = 0; n > 1 && k < count; k++) {                         \
            OP                                                                 \
            ##_ARGS(APPLY_SPAN_V, APPLY_NONE, APPLY_NONE, APPLY_SPAN_G,        \
                    APPLY_NONE, s, T, A, DT, LD, ST) if (OP##_CHOICE)          \
                APPLY_EACH(OP, true, s, T, A, DT, LD,                          \
                           ST) else APPLY_EACH(OP, false, s, T, A, DT, LD, ST) \
        }                                                                      \
    }                                                                          \
    static enum mst_code op##_##s(struct op_ctx *c)                            \
    {                                                                          \
        return apply_run(c, op##_loop_##s);                                    \
    }

#define APPLY_ROW(op, s, T, A, DT, LD, ST) { DT, op##_##s },
/* Half and bfloat16 have no loops of their own: apply_run() feeds the one for
 * float with pieces that it widens and narrows again. So results are rounded
 * once. TensorFlow rounds after each operation and is off by many of the last
 * digits where a formula subtracts; ours are not meant to agree with that. */
#define APPLY_KERNELS(op, OP, TYPES)                                           \
    TYPES(OP)                                                                  \
    static const struct op_kernel op##_kernels[] = {                           \
        TYPES(OP##_ROW){ DT_HALF, op##_f32 }, { DT_BFLOAT16, op##_f32 }, { 0 } \
    };
#define TYPES_APPLY(X)      TYPES_APPLY_REAL(X) TYPES_COMPLEX(X)
#define TYPES_APPLY_REAL(X) TYPES_FLOAT32(X) TYPES_FLOAT64(X)

/* ---- records ---- */

#define APPLY_TEXT_REF(name, t...)      ", " #name ": Ref(T)"
#define APPLY_TEXT_RES(name, t...)      ", " #name ": resource"
#define APPLY_TEXT_N(name, t...)        ", " #name ": T"
#define APPLY_TEXT_J(name, t...)        ", " #name ": int64"
#define APPLY_TEXT_G(name, t...)        ", " #name ": T"
#define APPLY_TEXT_ROWS(name, t...)     ", grad: T, indices: Tindices"
#define APPLY_TEXT_F(name, value, t...) "; " #name ": bool = " #value

#define APPLY_OUT_REF                   "out: Ref(T)"
#define APPLY_OUT_RES                   ""
#define APPLY_FLAGS_REF                 0
#define APPLY_FLAGS_RES                 OP_STATEFUL

#define APPLY_FIELDS(op, OP, text, FORM, GRAD, more)                           \
    .name = text,                                                              \
    .in = &(OP##_ARGS(APPLY_TEXT_##FORM, APPLY_TEXT_N, APPLY_TEXT_J,           \
                      APPLY_TEXT_##GRAD, APPLY_NONE, t))[2],                   \
    .out = APPLY_OUT_##FORM,                                                   \
    .attr = "T: numbertype" more "; use_locking: bool = false" OP              \
    ##_ARGS(APPLY_NONE, APPLY_NONE, APPLY_NONE, APPLY_NONE, APPLY_TEXT_F, t),  \
        .flags = APPLY_FLAGS_##FORM, .init = apply_init,                       \
        .kernel = op##_kernels

/* FORM is REF or RES. */
#define APPLY_RECORD(stem, op, OP, text, FORM)                                 \
    const struct op_def def_##stem = { APPLY_FIELDS(op, OP, text, FORM, G, "") }
#define APPLY_RECORD_SPARSE(stem, op, OP, text, FORM)                          \
    const struct op_def def_##stem = { APPLY_FIELDS(                           \
        op, OP, text, FORM, ROWS, "; Tindices: {int32, int64}") }
/* Both forms, dense or sparse: def_apply_adam and def_resource_apply_adam. */
#define APPLY_RECORDS(op, OP, Name)                                            \
    APPLY_RECORD(apply_##op, op, OP, "Apply" Name, REF);                       \
    APPLY_RECORD(resource_apply_##op, op, OP, "ResourceApply" Name, RES)
#define APPLY_RECORDS_SPARSE(op, OP, Name)                                     \
    APPLY_RECORD_SPARSE(sparse_apply_##op, op, OP, "SparseApply" Name, REF);   \
    APPLY_RECORD_SPARSE(resource_sparse_apply_##op, op, OP,                    \
                        "ResourceSparseApply" Name, RES)

enum mst_code apply_init(struct op_node *n, struct status *st);
enum mst_code apply_run(struct op_ctx *c, apply_fn *loop);

#endif
