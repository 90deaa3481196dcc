/*
 * Special functions as ops, element by element. Their arithmetic is in double
 * for every type; none of them is common enough to be worth more.
 */
#include "kernel/special.h"

#include "kernel/pointwise.h"

#define SPECIAL(s, T, A, DT, LD, ST, op, fn)                                   \
    UNARY(s, T, A, DT, LD, ST, op, 80, fn((double)x))
#define SPECIAL_DEF(stem, NAME, ...)                                           \
    const struct op_def def_##stem = {                                         \
        .name = NAME,                                                          \
        .in = "x: T",                                                          \
        .out = "y: T",                                                         \
        .attr = "T: " SET_FLOAT,                                               \
        .kernel = KERNELS(__VA_ARGS__),                                        \
    }
#define SPECIAL_WIDE(stem, NAME, fn)                                           \
    TYPES_FLOAT_WIDE(SPECIAL, stem, fn)                                        \
    SPECIAL_DEF(stem, NAME, TYPES_FLOAT_WIDE(ROW, stem))
#define SPECIAL_HALF(stem, NAME, fn)                                           \
    TYPES_FLOAT_WIDE(SPECIAL, stem, fn)                                        \
    TYPES_HALF(SPECIAL, stem, fn)                                              \
    SPECIAL_DEF(stem, NAME, TYPES_FLOAT_WIDE(ROW, stem) TYPES_HALF(ROW, stem))

/* ---- inverses of the error function ---- */

/* The y with erfc(y) = q, for q in (0, 1]: from a known approximation, by
 * Halley's steps, each of which triples the digits. */
static double erfc_inverse(double q)
{
    double t = sqrt(-2 * log(q / 2));
    double y = (t - (2.515517 + t * (0.802853 + t * 0.010328)) /
                        (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)))) /
               M_SQRT2;

    for (int i = 0; i < 3; i++) {
        double error = erfc(y) - q;

        y += error / (M_2_SQRTPI * exp(-y * y) - error * y);
    }
    return y;
}

static double ndtri(double p)
{
    if (!(p >= 0 && p <= 1))
        return (double)NAN;
    if (p == 0 || p == 1)
        return p == 0 ? -(double)INFINITY : (double)INFINITY;
    return p < 0.5 ? -M_SQRT2 * erfc_inverse(2 * p)
                   : M_SQRT2 * erfc_inverse(2 * (1 - p));
}

static double erfinv(double x)
{
    double a = fabs(x), y;

    if (!(a <= 1))
        return (double)NAN;
    if (a == 1)
        return x > 0 ? (double)INFINITY : -(double)INFINITY;
    y = erfc_inverse(1 - a);
    if (a < 0.5) /* 1 - a has lost digits */
        y -= (erf(y) - a) / (M_2_SQRTPI * exp(-y * y));
    return copysign(y, x);
}

SPECIAL_WIDE(ndtri, "Ndtri", ndtri);
SPECIAL_WIDE(erfinv, "Erfinv", erfinv);

/* ---- integrals ---- */

/* Dawson's: e^(-x^2) times the integral of e^(t^2), by Rybicki's sum, whose
 * error with this step is below 1e-17. */
static double dawsn(double x)
{
    const double h = 0.25;
    double a = fabs(x), near = 2 * round(a / (2 * h)), sum = 0;

    if (a < 0.1) {
        double s = a * a;

        return x *
               (1 - s * 2 / 3 *
                        (1 - s * 2 / 5 *
                                 (1 - s * 2 / 7 *
                                          (1 - s * 2 / 9 * (1 - s * 2 / 11)))));
    }
    if (a > 1e8)
        return 0.5 / x;
    for (int k = -27; k <= 27; k += 2) { /* odd multiples of h */
        double gap = a - (near + k) * h;

        sum += exp(-gap * gap) / (near + k);
    }
    return copysign(sum * M_2_SQRTPI / 2, x);
}

/* Ei, for positive numbers. */
static double expint(double x)
{
    double sum = 0, term = 1;

    if (!(x > 0))
        return x == 0 ? -(double)INFINITY : (double)NAN;
    if (isinf(x))
        return x;
    if (x < 40) {
        for (int k = 1; k < 200; k++) {
            term *= x / k;
            sum += term / k;
            if (term < 0x1p-54 * sum)
                break;
        }
        return sum + log(x) + 0.57721566490153286061;
    }
    for (int k = 1; k < x && term > 0x1p-54; k++) { /* asymptotic */
        sum += term;
        term *= k / x;
    }
    return exp(x) / x * sum;
}

/* The integrals of cos(pi t^2 / 2) and of the sine: series, then a continued
 * fraction of the complementary error function of a complex number. */
static double complex fresnel(double x)
{
    double a = fabs(x), t = M_PI / 2 * a * a;
    double complex sum = 0, term = a, b, c, d, f;

    if (a < 1.6) {
        for (int k = 0; k < 100; k++) { /* (i t)^k / k! (2 k + 1) */
            sum += term / (2 * k + 1);
            term = __builtin_complex(-cimag(term), creal(term)) * t / (k + 1);
            if (cabs(term) < 0x1p-56)
                break;
        }
        return copysign(1, x) * sum;
    }
    if (a > 1e9)
        return copysign(1, x) * __builtin_complex(0.5, 0.5);
    b = __builtin_complex(1.0, -2 * t);
    c = 1e300;
    f = d = 1 / b;
    for (int k = 1; k < 200; k++) {
        double e = -(2 * k - 1) * (2.0 * k);

        b += 4;
        d = 1 / (e * d + b);
        c = b + e / c;
        f *= c * d;
        if (cabs(c * d - 1) < 0x1p-52)
            break;
    }
    f *= __builtin_complex(a, -a);
    f = __builtin_complex(0.5, 0.5) *
        (1 - __builtin_complex(cos(t), sin(t)) * f);
    return copysign(1, x) * f;
}

static double fresnel_cos(double x)
{
    return isnan(x) ? x : creal(fresnel(x));
}

static double fresnel_sin(double x)
{
    return isnan(x) ? x : cimag(fresnel(x));
}

/* The dilogarithm of 1 - x: by its series in log(x), for which x is brought
 * near to 1. */
static double spence(double x)
{
    static const double b[] = { 1.0 / 36,
                                -1.0 / 3600,
                                1.0 / 211680,
                                -1.0 / 10886400,
                                1.0 / 526901760,
                                -4.0647616451442255e-11,
                                8.9216910204564526e-13,
                                -1.9939295860721076e-14,
                                4.5189800296199182e-16 };
    double u, power, sum;

    if (!(x >= 0) || isinf(x))
        return x < 0 || isnan(x) ? (double)NAN : -(double)INFINITY;
    if (x == 0)
        return M_PI * M_PI / 6;
    if (x > 2) {
        u = log(x);
        return -spence(1 / x) - u * u / 2;
    }
    if (x < 0.5)
        return M_PI * M_PI / 6 - log(x) * log1p(-x) - spence(1 - x);
    u = -log(x);
    sum = u - u * u / 4;
    power = u;
    for (size_t k = 0; k < COUNT(b); k++) {
        power *= u * u;
        sum += b[k] * power;
    }
    return sum;
}

SPECIAL_WIDE(dawsn, "Dawsn", dawsn);
SPECIAL_WIDE(expint, "Expint", expint);
SPECIAL_WIDE(fresnel_cos, "FresnelCos", fresnel_cos);
SPECIAL_WIDE(fresnel_sin, "FresnelSin", fresnel_sin);
SPECIAL_WIDE(spence, "Spence", spence);

/* ---- Bessel's functions ---- */

/* e^-|x| I_n(x), n 0 or 1: a series of positive terms, then the asymptotic
 * one. */
static double bessel_i(int n, double x)
{
    double a = fabs(x), sum = 0, term = n ? a / 2 : 1;

    if (a < 25) {
        for (int k = 0; k < 200 && term > 0x1p-54 * sum; k++) {
            sum += term;
            term *= a * a / 4 / (k + 1.0) / (k + 1.0 + n);
        }
        sum *= exp(-a);
    } else {
        term = 1;
        for (int k = 1; k < 40 && fabs(term) > 0x1p-54; k++) {
            sum += term;
            term *= -(4.0 * n - (2 * k - 1) * (2 * k - 1)) / (k * 8.0 * a);
        }
        sum *= isinf(a) ? 0 : 1 / sqrt(2 * M_PI * a);
    }
    return isnan(x) ? x : n && x < 0 ? -sum : sum;
}

/* e^x K_n(x): the integral of e^(x - x cosh t) cosh(n t), by the rule of
 * trapezoids, whose error is below 1e-17 with this step; a series near zero.
 * Below zero it is infinite, as in TensorFlow. */
static double bessel_k(int n, double x)
{
    double sum = 0.5, euler = 0.57721566490153286061, q = x * x / 4;

    if (!(x > 0))
        return isnan(x) ? x : (double)INFINITY;
    if (isinf(x))
        return 0;
    if (x >= 1) {
        double h = MIN(0.2, 0.7 / sqrt(x));

        for (double t = h, e = 1; e > 1e-20; t += h) {
            double s = sinh(t / 2);

            e = exp(-2 * x * s * s);
            sum += e * (n ? cosh(t) : 1);
        }
        return h * sum;
    }
    sum = n ? 1 / x : 0;
    for (double k = 0, term = n ? x / 4 : 1, harmonic = -2 * euler; k < 30;
         k++) {
        double more = n ? harmonic + 1 / (k + 1) : harmonic;

        sum +=
            n ? term * (2 * log(x / 2) - more) : term * (more / 2 - log(x / 2));
        harmonic += 2 / (k + 1);
        term *= q / ((k + 1) * (k + 1 + n));
    }
    return sum * exp(x);
}

static double bessel_y0(double x)
{
    return x <= 0 ? -(double)INFINITY : y0(x);
}

static double bessel_y1(double x)
{
    return x <= 0 ? -(double)INFINITY : y1(x);
}

static double i0e(double x)
{
    return bessel_i(0, x);
}

static double i1e(double x)
{
    return bessel_i(1, x);
}

/* Half of the exponent at a time: the product may be finite where it is not. */
static double i0(double x)
{
    return bessel_i(0, x) * exp(fabs(x) / 2) * exp(fabs(x) / 2);
}

static double i1(double x)
{
    return bessel_i(1, x) * exp(fabs(x) / 2) * exp(fabs(x) / 2);
}

static double k0e(double x)
{
    return bessel_k(0, x);
}

static double k1e(double x)
{
    return bessel_k(1, x);
}

static double k0(double x)
{
    return bessel_k(0, x) * exp(-x);
}

static double k1(double x)
{
    return bessel_k(1, x) * exp(-x);
}

SPECIAL_HALF(bessel_i0, "BesselI0", i0);
SPECIAL_HALF(bessel_i0e, "BesselI0e", i0e);
SPECIAL_HALF(bessel_i1, "BesselI1", i1);
SPECIAL_HALF(bessel_i1e, "BesselI1e", i1e);
SPECIAL_HALF(bessel_k0, "BesselK0", k0);
SPECIAL_HALF(bessel_k0e, "BesselK0e", k0e);
SPECIAL_HALF(bessel_k1, "BesselK1", k1);
SPECIAL_HALF(bessel_k1e, "BesselK1e", k1e);
SPECIAL_HALF(bessel_j0, "BesselJ0", j0);
SPECIAL_HALF(bessel_j1, "BesselJ1", j1);
SPECIAL_HALF(bessel_y0, "BesselY0", bessel_y0);
SPECIAL_HALF(bessel_y1, "BesselY1", bessel_y1);

/* ---- of two numbers ---- */

#define SPECIAL_PAIR(s, T, A, DT, LD, ST, op, fn)                              \
    BINARY(s, T, A, DT, LD, ST, op, 200, fn((double)x, (double)y))
#define PAIR_DEF(stem, NAME, IN, OUT, SET, fn)                                 \
    TYPES_FLOAT_WIDE(SPECIAL_PAIR, stem, fn)                                   \
    const struct op_def def_##stem = {                                         \
        .name = NAME,                                                          \
        .in = IN,                                                              \
        .out = OUT,                                                            \
        .attr = "T: " SET,                                                     \
        .kernel = KERNELS(TYPES_FLOAT_WIDE(ROW, stem)),                        \
    }
PAIR_DEF(igamma, "Igamma", "a: T, x: T", "z: T", SET_FLOAT, special_igamma);
PAIR_DEF(igammac, "Igammac", "a: T, x: T", "z: T", SET_FLOAT, special_igammac);
PAIR_DEF(igamma_grad_a, "IgammaGradA", "a: T, x: T", "z: T", "{float, double}",
         special_igamma_grad_a);
PAIR_DEF(random_gamma_grad, "RandomGammaGrad", "alpha: T, sample: T",
         "output: T", "{float, double}", special_gamma_sample_grad);
PAIR_DEF(zeta, "Zeta", "x: T, q: T", "z: T", "{float, double}", special_zeta);
PAIR_DEF(polygamma, "Polygamma", "a: T, x: T", "z: T", "{float, double}",
         special_polygamma);

/* ---- Betainc: three inputs, each of one shape or a scalar ---- */

struct betainc_run {
    const struct tensor *in[3];
    struct tensor *out;
};

#define BETAINC(s, T, A, DT, LD, ST)                                           \
    static void betainc_some_##s(void *arg, int64_t begin, int64_t end)        \
    {                                                                          \
        const struct betainc_run *r = arg;                                     \
        T *out = r->out->data;                                                 \
                                                                               \
        for (int64_t i = begin; i < end; i++) {                                \
            double v[3];                                                       \
                                                                               \
            for (int k = 0; k < 3; k++)                                        \
                v[k] = (double)((const T *)r->in[k]                            \
                                    ->data)[r->in[k]->ndim ? i : 0];           \
            out[i] = (T)special_betainc(v[0], v[1], v[2]);                     \
        }                                                                      \
    }                                                                          \
    static enum mst_code betainc_##s(struct op_ctx *c)                         \
    {                                                                          \
        struct betainc_run r;                                                  \
        enum mst_code rc = betainc_begin(c, &r);                               \
                                                                               \
        if (!rc)                                                               \
            op_for(c, r.out->count, 500, betainc_some_##s, &r);                \
        return rc;                                                             \
    }

static enum mst_code betainc_begin(struct op_ctx *c, struct betainc_run *r)
{
    static const struct {
        int x, y;
        char names[2];
    } pairs[] = { { 0, 1, "ab" }, { 0, 2, "ax" }, { 1, 2, "bx" } };
    char xt[SHAPE_TEXT_MAX], yt[SHAPE_TEXT_MAX];
    int widest = 0;
    enum mst_code rc;

    for (size_t i = 0; i < COUNT(pairs); i++) {
        const struct tensor *x = op_in(c, pairs[i].x);
        const struct tensor *y = op_in(c, pairs[i].y);

        if (x->ndim && y->ndim && !tensor_same_shape(x, y))
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Shapes of %c and %c are inconsistent: %s vs. %s",
                           pairs[i].names[0], pairs[i].names[1],
                           tensor_shape_text(x, xt), tensor_shape_text(y, yt));
    }
    for (int i = 0; i < 3; i++) {
        r->in[i] = op_in(c, i);
        widest = r->in[i]->ndim ? i : widest;
    }
    rc = op_out_like(c, 0, r->in[widest]);
    r->out = op_out(c, 0);
    return rc;
}
TYPES_FLOAT_WIDE(BETAINC)

const struct op_def def_betainc = {
    .name = "Betainc",
    .in = "a: T, b: T, x: T",
    .out = "z: T",
    .attr = "T: {float, double}",
    .kernel = KERNELS(TYPES_FLOAT_WIDE(ROW, betainc)),
};
