/*
 * Eigenvalues and eigenvectors: of self-adjoint matrices, of which the lower
 * triangle is read and whose values come in rising order, and of any.
 *
 * Vectors have length one. Their sign, or phase, is free, and so is the order
 * of the values of a matrix that is not self-adjoint; TensorFlow's are what
 * Eigen happens to make.
 */
#include "kernel/lapack.h"
#include "kernel/linalg.h"

struct eigen_state {
    bool vectors;
};

static enum mst_code eigen_init(struct op_node *n, struct status *st)
{
    struct eigen_state *s = ARENA_NEW(n->arena, struct eigen_state);

    s->vectors = n->out_count < 2 || op_attr_bool(n, "compute_v");
    n->state = s;
    return MST_OK;
}

static bool vectors_of(const struct op_ctx *c)
{
    return ((const struct eigen_state *)c->node->state)->vectors;
}

static double eigen_cost(int64_t n)
{
    return 500 + 5 * (double)n * (double)n * (double)n;
}

/* The old form has one output: the values as a row above the vectors. */
static enum mst_code eigen_begin(struct linalg *l, struct op_ctx *c)
{
    enum mst_code rc = linalg_begin(l, c, 1);
    char text[SHAPE_TEXT_MAX];
    int64_t n;

    if (!rc)
        rc = linalg_square(l);
    if (rc)
        return rc;
    n = l->rows[0];
    if (!lapack_fits(n, n))
        return op_fail(c, MST_RESOURCE_EXHAUSTED,
                       "matrices of %s are too large to be decomposed",
                       tensor_shape_text(op_in(c, 0), text));
    if (c->node->out_count < 2)
        return linalg_out(l, 0, 2, n + 1, n);
    rc = linalg_out(l, 0, 1, n, 0);
    if (rc)
        return rc;
    return vectors_of(c) ? linalg_out(l, 1, 2, n, n) : linalg_out_none(l, 1);
}

/* ---- self-adjoint ---- */

static size_t eigh_more(int64_t n)
{
    return (lapack_eigh_more(n) + 63) / 64 * 64;
}

/*
 * LAPACK sees the transposed, that is the conjugate, and the conjugates of the
 * vectors. Scratch: `more` in bytes, the matrix, the work space, the values.
 */
#define SELF_ADJOINT(s, T, A, DT, LD, ST)                                      \
    static bool lower_finite_##s(const T *a, int64_t n)                        \
    {                                                                          \
        real_##s sum = 0;                                                      \
                                                                               \
        for (int64_t i = 0; i < n; i++)                                        \
            for (int64_t j = 0; j <= i; j++)                                   \
                sum += 0 * ABS_##s(a[i * n + j]);                              \
        return sum == 0;                                                       \
    }                                                                          \
    static bool eigh_##s(const struct linalg_one *o, T *values, T *vectors)    \
    {                                                                          \
        int64_t n = o->l->rows[0];                                             \
        T *a = (T *)((uint8_t *)o->scratch + eigh_more(n));                    \
        T *work = a + n * n;                                                   \
        real_##s *w = (real_##s *)(work + o->l->work_size);                    \
                                                                               \
        memcpy(a, o->in[0], (size_t)(n * n) * sizeof(T));                      \
        if (!lower_finite_##s(a, n) ||                                         \
            lapack_eigh_##s(vectors ? 'V' : 'N', (int)n, a, w, o->scratch,     \
                            work, (int)o->l->work_size) != 0)                  \
            return false;                                                      \
        for (int64_t i = 0; i < n; i++)                                        \
            values[i] = w[i];                                                  \
        if (vectors)                                                           \
            dense_adjoint_##s(vectors, a, n, n, true);                         \
        return true;                                                           \
    }                                                                          \
    static const char *pair_one_##s(const struct linalg_one *o)                \
    {                                                                          \
        if (!o->in[0] || eigh_##s(o, o->out[0], o->out[1]))                    \
            return NULL;                                                       \
        return "Self-adjoint eigen decomposition was not successful. The "     \
               "input might not be valid.";                                    \
    }                                                                          \
    static const char *stack_one_##s(const struct linalg_one *o)               \
    {                                                                          \
        T *out = o->out[0];                                                    \
                                                                               \
        if (!o->in[0] || eigh_##s(o, out, out + o->l->rows[0]))                \
            return NULL;                                                       \
        return "Self Adjoint Eigen decomposition wasnot successful. The "      \
               "input might not be valid.";                                    \
    }                                                                          \
    static enum mst_code self_adjoint_##s(struct op_ctx *c)                    \
    {                                                                          \
        bool stacked = c->node->out_count < 2;                                 \
        struct linalg l;                                                       \
        enum mst_code rc = eigen_begin(&l, c);                                 \
        int64_t n = l.rows[0], size;                                           \
        T ask = 1;                                                             \
                                                                               \
        if (rc)                                                                \
            return rc;                                                         \
        if (n)                                                                 \
            lapack_eigh_##s(vectors_of(c) ? 'V' : 'N', (int)n, NULL, NULL,     \
                            NULL, &ask, -1);                                   \
        l.work_size = lapack_size(REAL_##s(ask));                              \
        size = (n * n + l.work_size + n) * (int64_t)sizeof(T);                 \
        return linalg_run(&l, eigen_cost(n), (int64_t)eigh_more(n) + size, 1,  \
                          stacked ? stack_one_##s : pair_one_##s);             \
    }
TYPES_DENSE(SELF_ADJOINT)

#define SELF_ADJOINT_DEF(stem, NAME, SET)                                      \
    const struct op_def def_##stem = {                                         \
        .name = NAME,                                                          \
        .in = "input: T",                                                      \
        .out = "e: T, v: T",                                                   \
        .attr = "compute_v: bool = true; T: " SET,                             \
        .flags = OP_EXPENSIVE,                                                 \
        .init = eigen_init,                                                    \
        .kernel = KERNELS(TYPES_DENSE(ROW, self_adjoint)),                     \
    }
SELF_ADJOINT_DEF(self_adjoint_eig_v2, "SelfAdjointEigV2",
                 "{double, float, half, complex64, complex128}");
SELF_ADJOINT_DEF(batch_self_adjoint_eig_v2, "BatchSelfAdjointEigV2",
                 "{double, float}");

#define STACKED_DEF(stem, NAME, SET)                                           \
    const struct op_def def_##stem = {                                         \
        .name = NAME,                                                          \
        .in = "input: T",                                                      \
        .out = "output: T",                                                    \
        .attr = "T: " SET,                                                     \
        .flags = OP_EXPENSIVE,                                                 \
        .init = eigen_init,                                                    \
        .kernel = KERNELS(TYPES_FLOAT_WIDE(ROW, self_adjoint)),                \
    }
STACKED_DEF(self_adjoint_eig, "SelfAdjointEig", "{double, float, half}");
STACKED_DEF(batch_self_adjoint_eig, "BatchSelfAdjointEig", "{double, float}");

/* ---- any matrix ---- */

/* In double whatever the type, so that there are two routines, not four. */
#define ANY_MATRIX(s, T, A, DT, LD, ST, C)                                     \
    static void wide_##s(void *out_, const void *in_, int64_t n)               \
    {                                                                          \
        const T *in = in_;                                                     \
        C *out = out_;                                                         \
                                                                               \
        for (int64_t i = 0; i < n; i++)                                        \
            for (int64_t j = 0; j < n; j++)                                    \
                out[j * n + i] = in[i * n + j];                                \
    }
TYPES_FLOAT32(ANY_MATRIX, double)
TYPES_FLOAT64(ANY_MATRIX, double)
TYPES_COMPLEX64(ANY_MATRIX, double complex)
TYPES_COMPLEX128(ANY_MATRIX, double complex)

static void store(void *out, bool wide, int64_t at, double complex v)
{
    if (wide)
        ((double complex *)out)[at] = v;
    else
        ((float complex *)out)[at] = (float complex)v;
}

static const char *const not_valid =
    "Eigen decomposition was not successful. The input might not be valid.";

static const char *eig_real(const struct linalg_one *o)
{
    struct op_ctx *c = o->l->c;
    bool wide = op_out(c, 0)->dtype == DT_COMPLEX128, pair = false;
    int64_t n = o->l->rows[0];
    double *a = o->scratch, *v = a + n * n, *w = v + n * n, *work = w + 2 * n;
    double sum = 0;

    if (!n)
        return NULL;
    (op_in(c, 0)->dtype == DT_FLOAT ? wide_f32 : wide_f64)(a, o->in[0], n);
    for (int64_t i = 0; i < n * n; i++)
        sum += 0 * a[i];
    if (sum != 0 || lapack_eig_f64((int)n, a, w, o->out[1] ? v : NULL, NULL,
                                   work, (int)o->l->work_size) != 0)
        return not_valid;
    for (int64_t j = 0; j < n; j++) {
        double im = w[n + j];

        store(o->out[0], wide, j, __builtin_complex(w[j], im));
        pair = im != 0 && !pair; /* the first of two: v is v[j] + i v[j+1] */
        for (int64_t i = 0; o->out[1] && i < n; i++) {
            const double *col = v + j * n + i;
            double complex x = im == 0 ? __builtin_complex(col[0], 0.0)
                               : pair  ? __builtin_complex(col[0], col[n])
                                       : __builtin_complex(col[-n], -col[0]);

            store(o->out[1], wide, i * n + j, x);
        }
    }
    return NULL;
}

static const char *eig_complex(const struct linalg_one *o)
{
    struct op_ctx *c = o->l->c;
    bool wide = op_out(c, 0)->dtype == DT_COMPLEX128;
    int64_t n = o->l->rows[0];
    double complex *a = o->scratch, *v = a + n * n, *w = v + n * n;
    double complex *work = w + 2 * n;
    double sum = 0;

    if (!n)
        return NULL;
    (wide ? wide_c128 : wide_c64)(a, o->in[0], n);
    for (int64_t i = 0; i < n * n; i++)
        sum += 0 * cabs(a[i]);
    if (sum != 0 ||
        lapack_eig_c128((int)n, a, w, o->out[1] ? v : NULL, (double *)(w + n),
                        work, (int)o->l->work_size) != 0)
        return not_valid;
    for (int64_t j = 0; j < n; j++) {
        store(o->out[0], wide, j, w[j]);
        for (int64_t i = 0; o->out[1] && i < n; i++)
            store(o->out[1], wide, i * n + j, v[j * n + i]);
    }
    return NULL;
}

static enum mst_code eig(struct op_ctx *c)
{
    int in = op_in(c, 0)->dtype, out = c->node->out_types[0];
    int want =
        in == DT_FLOAT || in == DT_COMPLEX64 ? DT_COMPLEX64 : DT_COMPLEX128;
    bool complex_in = dtype_is_complex((enum dtype)in);
    struct linalg l;
    double complex ask = 1;
    enum mst_code rc;
    int64_t n;

    if (out != want)
        return op_fail(c, MST_INVALID_ARGUMENT, "Invalid output dtype %d vs %d",
                       out, want);
    rc = eigen_begin(&l, c);
    if (rc)
        return rc;
    n = l.rows[0];
    if (n && complex_in)
        lapack_eig_c128((int)n, NULL, NULL, vectors_of(c) ? &ask : NULL, NULL,
                        &ask, -1);
    else if (n)
        lapack_eig_f64((int)n, NULL, NULL,
                       vectors_of(c) ? (double *)&ask : NULL, NULL,
                       (double *)&ask, -1);
    l.work_size = lapack_size(creal(ask));
    return linalg_run(&l, 5 * eigen_cost(n), 2 * n * n + 2 * n + l.work_size,
                      complex_in ? sizeof(double complex) : sizeof(double),
                      complex_in ? eig_complex : eig_real);
}

const struct op_def def_eig = {
    .name = "Eig",
    .in = "input: T",
    .out = "e: Tout, v: Tout",
    .attr = "compute_v: bool = true; "
            "T: {float, double, complex64, complex128}; "
            "Tout: {complex64, complex128}",
    .flags = OP_EXPENSIVE,
    .init = eigen_init,
    .kernel = KERNELS({ DT_FLOAT, eig }, { DT_DOUBLE, eig },
                      { DT_COMPLEX64, eig }, { DT_COMPLEX128, eig }, ),
};
