/*
 * Square roots and logarithms of matrices.
 *
 * All are computed in double and complex, whatever the type: they are rare,
 * and so there is one of each. They work on the triangle T of the Schur
 * decomposition A = Q T Q^H. A real matrix with a negative eigenvalue has
 * no real root, and gives NaN.
 */
#include "kernel/lapack.h"
#include "kernel/linalg.h"

typedef double complex number;

/* ---- triangles: upper, n by n, in column-major order ---- */

/* column[0 .. k) -= x times that of t's column k: what a known element k of a
 * column takes from those above it. */
static void eliminate(number *column, number x, const number *t, int64_t k,
                      int64_t n)
{
    dense_sub_c128(column, k, &x, 1, false, t + k * n, n, 1);
}

/* t becomes its root: the diagonal first, then column by column, from the
 * diagonal up. */
static void root_of_triangle(number *t, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        t[i * n + i] = csqrt(t[i * n + i]);
    for (int64_t j = 1; j < n; j++) {
        number *column = t + j * n;

        for (int64_t i = j - 1; i >= 0; i--) {
            number d = t[i * n + i] + column[j];

            column[i] = COMPLEX_DIV(column[i], d);
            eliminate(column, column[i], t, i, n);
        }
    }
}

/* How far t is from the identity, in the 1-norm. */
static double distance(const number *t, int64_t n)
{
    double most = 0;

    for (int64_t j = 0; j < n; j++) {
        double sum = 0;

        for (int64_t i = 0; i <= j; i++)
            sum += cabs(t[j * n + i] - (i == j));
        if (!(sum <= most))
            most = sum;
    }
    return most;
}

/* x becomes (1 + f e)^-1 e, of upper triangles. */
static void resolvent(number *x, const number *e, double f, int64_t n)
{
    memcpy(x, e, (size_t)(n * n) * sizeof(number));
    for (int64_t j = 0; j < n; j++) {
        number *column = x + j * n;

        for (int64_t i = j; i >= 0; i--) {
            column[i] = COMPLEX_DIV(column[i], 1 + f * e[i * n + i]);
            eliminate(column, f * column[i], e, i, n);
        }
    }
}

/*
 * The logarithm: roots are taken until t is near the identity, where log(1 + e)
 * is the integral of (1 + x e)^-1 e over x from 0 to 1, by Gauss's rule of
 * seven points (exact to 1e-16 for |e| < 0.26). The diagonal has its own.
 */
static void log_of_triangle(number *t, int64_t n, number *e, number *x)
{
    static const double place[] = { 0, 0.4058451513773972, 0.7415311855993945,
                                    0.9491079123427585 };
    static const double weight[] = { 0.4179591836734694, 0.3818300505051189,
                                     0.2797053914892766, 0.1294849661688697 };
    double scale = 0.5;
    number *diagonal = x + n * n;

    for (int64_t i = 0; i < n; i++)
        diagonal[i] = clog(t[i * n + i]);
    for (int i = 0; i < 100 && distance(t, n) > 0.25; i++, scale *= 2)
        root_of_triangle(t, n);
    memcpy(e, t, (size_t)(n * n) * sizeof(number));
    for (int64_t i = 0; i < n; i++)
        e[i * n + i] -= 1;
    memset(t, 0, (size_t)(n * n) * sizeof(number));
    for (int p = -3; p <= 3; p++) {
        int k = p < 0 ? -p : p;

        resolvent(x, e, 0.5 + (p < 0 ? -place[k] : place[k]) / 2, n);
        for (int64_t i = 0; i < n * n; i++)
            t[i] += scale * weight[k] * x[i];
    }
    for (int64_t i = 0; i < n; i++)
        t[i * n + i] = diagonal[i];
}

/* ---- between TensorFlow's types and ours ---- */

#define CONVERT(s, T, A, DT, LD, ST)                                           \
    static bool load_##s(number *out, const void *in_, int64_t n)              \
    {                                                                          \
        const T *in = in_;                                                     \
        double sum = 0;                                                        \
                                                                               \
        for (int64_t i = 0; i < n * n; i++) {                                  \
            out[i % n * n + i / n] = in[i];                                    \
            sum += 0 * ABS_##s(in[i]);                                         \
        }                                                                      \
        return sum == 0;                                                       \
    }                                                                          \
    static void store_##s(void *out_, const number *in, int64_t n)             \
    {                                                                          \
        T *out = out_;                                                         \
                                                                               \
        for (int64_t i = 0; i < n * n; i++)                                    \
            out[i] = (T)in[i % n * n + i / n];                                 \
    }
TYPES_DENSE(CONVERT)

/* To column-major order; whether all of it is finite. */
static bool load(const struct linalg_one *o, number *out)
{
    int64_t n = o->l->rows[0];

    switch (op_in(o->l->c, 0)->dtype) {
    case DT_FLOAT:
        return load_f32(out, o->in[0], n);
    case DT_DOUBLE:
        return load_f64(out, o->in[0], n);
    case DT_COMPLEX64:
        return load_c64(out, o->in[0], n);
    default:
        return load_c128(out, o->in[0], n);
    }
}

static void store(const struct linalg_one *o, const number *in)
{
    int64_t n = o->l->rows[0];

    switch (op_in(o->l->c, 0)->dtype) {
    case DT_FLOAT:
        store_f32(o->out[0], in, n);
        break;
    case DT_DOUBLE:
        store_f64(o->out[0], in, n);
        break;
    case DT_COMPLEX64:
        store_c64(o->out[0], in, n);
        break;
    default:
        store_c128(o->out[0], in, n);
    }
}

static void store_none(const struct linalg_one *o, number *a)
{
    for (int64_t i = 0; i < o->l->rows[0] * o->l->rows[0]; i++)
        a[i] = __builtin_complex((double)NAN, (double)NAN);
    store(o, a);
}

/* out = a b^H or, not adjoint, a b: columns, so rows of the transposed. */
static void times(number *out, const number *a, const number *b, bool adjoint,
                  int64_t n)
{
    memset(out, 0, (size_t)(n * n) * sizeof(number));
    for (int64_t j = 0; j < n; j++) {
        dense_sub_c128(out + j * n, n, adjoint ? b + j : b + j * n,
                       adjoint ? n : 1, adjoint, a, n, n);
        for (int64_t i = 0; i < n; i++)
            out[j * n + i] = -out[j * n + i];
    }
}

/* ---- the ops ---- */

static bool negative_real(const struct linalg_one *o, const number *w)
{
    bool real = !dtype_is_complex((enum dtype)op_in(o->l->c, 0)->dtype);
    bool found = false;

    for (int64_t i = 0; real && i < o->l->rows[0]; i++)
        found |= creal(w[i]) < 0 && fabs(cimag(w[i])) < 1e-13 * -creal(w[i]);
    return found;
}

/* Scratch: four matrices, the eigenvalues, 2 n more, the work space. */
static const char *through_schur(const struct linalg_one *o, bool root)
{
    int64_t n = o->l->rows[0], size = n * n;
    number *t = o->scratch, *q = t + size, *e = q + size, *x = e + size;
    number *w = x + size + n, *more = w + n, *work = more + n;

    if (!n)
        return NULL;
    if (!load(o, t) ||
        lapack_schur_c128((int)n, t, w, q, (double *)more, work,
                          (int)o->l->work_size) != 0 ||
        (root && negative_real(o, w))) {
        store_none(o, t);
        return NULL;
    }
    if (root)
        root_of_triangle(t, n);
    else
        log_of_triangle(t, n, e, x);
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = j + 1; i < n; i++)
            t[j * n + i] = 0;
    times(e, q, t, false, n);
    times(x, e, q, true, n);
    store(o, x);
    return NULL;
}

static const char *root_one(const struct linalg_one *o)
{
    return through_schur(o, true);
}

static const char *log_one(const struct linalg_one *o)
{
    return through_schur(o, false);
}

static enum mst_code run(struct op_ctx *c,
                         const char *(*fn)(const struct linalg_one *o))
{
    struct linalg l;
    enum mst_code rc = linalg_begin(&l, c, 1);
    char text[SHAPE_TEXT_MAX];
    number ask = 1;
    int64_t n;

    if (!rc)
        rc = linalg_square(&l);
    if (!rc)
        rc = linalg_out(&l, 0, 2, l.rows[0], l.rows[0]);
    if (rc)
        return rc;
    n = l.rows[0];
    if (!lapack_fits(n, n))
        return op_fail(c, MST_RESOURCE_EXHAUSTED,
                       "matrices of %s are too large to be decomposed",
                       tensor_shape_text(op_in(c, 0), text));
    if (n)
        lapack_schur_c128((int)n, NULL, NULL, NULL, NULL, &ask, -1);
    l.work_size = lapack_size(creal(ask));
    return linalg_run(&l, 500 + 30 * (double)n * (double)n * (double)n,
                      5 * n * n + 4 * n + l.work_size, sizeof(number), fn);
}

static enum mst_code matrix_root(struct op_ctx *c)
{
    return run(c, root_one);
}

static enum mst_code matrix_log(struct op_ctx *c)
{
    return run(c, log_one);
}

#define FUNCTION_DEF(stem, NAME, SET, ...)                                     \
    const struct op_def def_##stem = {                                         \
        .name = NAME,                                                          \
        .in = "input: T",                                                      \
        .out = "output: T",                                                    \
        .attr = "T: " SET,                                                     \
        .flags = OP_EXPENSIVE,                                                 \
        .kernel = KERNELS(__VA_ARGS__),                                        \
    }
#define FUNCTION_ROW(s, T, A, DT, LD, ST, op) { DT, op },
FUNCTION_DEF(matrix_square_root, "MatrixSquareRoot",
             "{double, float, half, complex64, complex128}",
             TYPES_DENSE(FUNCTION_ROW, matrix_root));
FUNCTION_DEF(matrix_logarithm, "MatrixLogarithm", "{complex64, complex128}",
             TYPES_COMPLEX(FUNCTION_ROW, matrix_log));
