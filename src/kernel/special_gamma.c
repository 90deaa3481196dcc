/*
 * The gamma function's kin: incomplete gamma and beta functions, the zeta
 * function of Hurwitz, polygamma. Outside of their domains they give what
 * TensorFlow's give.
 */
#include "kernel/special.h"

#include <math.h>

#define EPS     0x1p-53
#define STEPS   10000 /* no series or fraction here needs as many */
#define TINY    1e-300
#define NOTHING ((double)NAN)

/* d/dx lgamma: shifted up to where the asymptotic series is good, reflected
 * for negative numbers; not a number at the poles. */
double special_digamma(double x)
{
    static const double b[] = { 1.0 / 12,   -1.0 / 120,      1.0 / 252,
                                -1.0 / 240, 1.0 / 132,       -691.0 / 32760,
                                1.0 / 12,   -3617.0 / 8160.0 };
    double sum = 0, inv, inv2, power;

    if (x <= 0) {
        if (x == floor(x))
            return NOTHING;
        sum = -M_PI / tan(M_PI * (x - floor(x)));
        x = 1 - x;
    }
    for (; x < 10; x += 1)
        sum -= 1 / x;
    inv = 1 / x;
    inv2 = inv * inv;
    power = inv2;
    sum += log(x) - inv / 2;
    for (size_t i = 0; i < COUNT(b); i++, power *= inv2)
        sum -= b[i] * power;
    return sum;
}

static double log_gamma(double x)
{
    int sign;

    return lgamma_r(x, &sign);
}

/* ---- incomplete gamma ---- */

/* A number and its derivative by a. */
struct dual {
    double v, d;
};

/* The sum of x^n / ((a + 1) … (a + n)): P is that, times x^a e^-x / gamma(a+1).
 * For x <= a, or small. */
static struct dual series(double a, double x)
{
    struct dual sum = { 1, 0 };
    double term = 1, slope = 0;

    for (int n = 1; n < STEPS; n++) {
        term *= x / (a + n);
        slope -= 1 / (a + n);
        sum.v += term;
        sum.d += term * slope;
        if (term <= EPS * sum.v && fabs(term * slope) <= EPS * fabs(sum.d))
            break;
    }
    return sum;
}

/*
 * 1 / (x + 1 - a - 1 (1 - a) / (x + 3 - a - …)): Q is that, times
 * x^a e^-x / gamma(a). For x greater than a and than 1. By Lentz's method: the
 * fraction is f, and c and d are quotients of its numerators and
 * denominators; each has its derivative.
 */
static struct dual fraction(double a, double x)
{
    struct dual b = { x + 1 - a, -1 }, c = { 1 / TINY, 0 }, d, f;

    d.v = 1 / b.v;
    d.d = -b.d * d.v * d.v;
    f = d;
    for (int n = 1; n < STEPS; n++) {
        double an = -n * (n - a), an_d = n, f_before = f.d;
        struct dual u, m;

        b.v += 2;
        u.v = an * d.v + b.v; /* 1 / d */
        u.d = an_d * d.v + an * d.d + b.d;
        if (fabs(u.v) < TINY)
            u.v = TINY;
        d.v = 1 / u.v;
        d.d = -u.d * d.v * d.v;
        u.v = b.v + an / c.v;
        u.d = b.d + an_d / c.v - an * c.d / (c.v * c.v);
        c = u;
        if (fabs(c.v) < TINY)
            c.v = TINY;
        m.v = c.v * d.v;
        m.d = c.d * d.v + c.v * d.d;
        f.d = f.d * m.v + f.v * m.d;
        f.v *= m.v;
        if (fabs(m.v - 1) <= 4 * EPS &&
            fabs(f.d - f_before) <= 4 * EPS * fabs(f.d))
            break;
    }
    return f;
}

static bool by_fraction(double a, double x)
{
    return x > 1 && x > a;
}

/* x^a e^-x / gamma(a), from its logarithm. */
static double density(double a, double x)
{
    return exp(a * log(x) - x - log_gamma(a));
}

static bool outside(double a, double x)
{
    return isnan(a) || isnan(x) || x < 0 || a <= 0;
}

double special_igamma(double a, double x)
{
    if (x == 0)
        return 0;
    if (outside(a, x))
        return NOTHING;
    if (isinf(x))
        return isinf(a) ? NOTHING : 1;
    if (isinf(a))
        return 0;
    if (by_fraction(a, x))
        return 1 - density(a, x) * fraction(a, x).v;
    return density(a, x) / a * series(a, x).v;
}

double special_igammac(double a, double x)
{
    if (outside(a, x))
        return NOTHING;
    if (x == 0)
        return 1;
    if (isinf(x))
        return isinf(a) ? NOTHING : 0;
    if (isinf(a))
        return 1;
    if (by_fraction(a, x))
        return density(a, x) * fraction(a, x).v;
    return 1 - density(a, x) / a * series(a, x).v;
}

/* dP/da over the density x^(a-1) e^-x / gamma(a), whose product with it is the
 * one gradient, and whose negative is the other. */
static double grad_ratio(double a, double x)
{
    if (by_fraction(a, x)) {
        struct dual f = fraction(a, x);

        return -x * ((log(x) - special_digamma(a)) * f.v + f.d);
    } else {
        struct dual s = series(a, x);

        return x / a * ((log(x) - special_digamma(a + 1)) * s.v + s.d);
    }
}

double special_igamma_grad_a(double a, double x)
{
    if (x == 0)
        return 0;
    if (outside(a, x))
        return NOTHING;
    return density(a, x) / x * grad_ratio(a, x);
}

double special_gamma_sample_grad(double a, double x)
{
    if (outside(a, x))
        return NOTHING;
    return x == 0 ? 0 : -grad_ratio(a, x);
}

/* ---- zeta, polygamma ---- */

/* The formula of Euler and Maclaurin, from where q + n is large enough. */
static double zeta_sum(double s, double q)
{
    static const double b[] = { /* Bernoulli's numbers over factorials */
                                1.0 / 12,
                                -1.0 / 720,
                                1.0 / 30240,
                                -1.0 / 1209600,
                                1.0 / 47900160,
                                -691.0 / 1307674368000,
                                1.0 / 74724249600,
                                -3617.0 / 10670622842880000,
                                43867.0 / 5109094217170944000,
                                -174611.0 / 802857662698291200000.0
    };
    double sum = 0, factor = s, power;

    for (int n = 0; n < 1000000 && (n < 9 || q <= 12); n++, q += 1) {
        double term = pow(q, -s);

        sum += term;
        if (q > 0 && term <= EPS * sum)
            return sum;
    }
    power = pow(q, -s);
    sum += power * q / (s - 1) + power / 2;
    power /= q;
    for (size_t k = 0; k < COUNT(b); k++) {
        double term = b[k] * factor * power;

        sum += term;
        if (fabs(term) <= EPS * fabs(sum))
            break;
        factor *= (s + 2 * (double)k + 1) * (s + 2 * (double)k + 2);
        power /= q * q;
    }
    return sum;
}

double special_zeta(double s, double q)
{
    if (s == 1)
        return (double)INFINITY;
    if (isnan(s) || isnan(q) || s < 1)
        return NOTHING;
    if (q <= 0) {
        if (q == floor(q)) /* a pole, of both signs when s is odd */
            return s == floor(s) && fmod(s, 2) == 0 ? (double)INFINITY
                                                    : NOTHING;
        if (s != floor(s))
            return NOTHING;
    }
    return zeta_sum(s, q);
}

double special_polygamma(double n, double x)
{
    double value;

    if (n != floor(n) || n < 0)
        return NOTHING;
    if (n == 0)
        return special_digamma(x);
    value = exp(log_gamma(n + 1)) * special_zeta(n + 1, x);
    return fmod(n, 2) == 0 ? -value : value;
}

/* ---- incomplete beta ---- */

/* The continued fraction of I_x(a, b), by Lentz's method. */
static double beta_fraction(double a, double b, double x)
{
    double c = 1, d = 1 - (a + b) * x / (a + 1), f;

    d = 1 / (fabs(d) < TINY ? TINY : d);
    f = d;
    for (int n = 1; n < STEPS; n++) {
        double m = n, change = 1;

        for (int half = 0; half < 2; half++) {
            double e = half ? -(a + m) * (a + b + m) * x /
                                  ((a + 2 * m) * (a + 2 * m + 1))
                            : m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));

            d = 1 + e * d;
            d = 1 / (fabs(d) < TINY ? TINY : d);
            c = 1 + e / c;
            c = fabs(c) < TINY ? TINY : c;
            f *= c * d;
            change = c * d;
        }
        if (fabs(change - 1) <= 2 * EPS)
            break;
    }
    return f;
}

double special_betainc(double a, double b, double x)
{
    double front;

    if (isnan(a) || isnan(b) || isnan(x) || a <= 0 || b <= 0 || x < 0 || x > 1)
        return NOTHING;
    if (x == 0 || x == 1)
        return x;
    front = exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * log(x) +
                b * log1p(-x));
    if (x < (a + 1) / (a + b + 2))
        return front * beta_fraction(a, b, x) / a;
    return 1 - front * beta_fraction(b, a, 1 - x) / b;
}
