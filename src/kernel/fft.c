/*
 * A length is taken apart by its smallest factors first: the transform of n =
 * p m numbers is p transforms of m, combined. Where a prime factor is large
 * that would cost its square, so the whole transform becomes a convolution
 * with a chirp (Bluestein), which transforms of a power of two do.
 */
#include "kernel/fft.h"

#include <math.h>
#include <string.h>

#include "base/buffer.h"
#include "base/mem.h"

#define PRIME_MAX 37 /* the greatest factor that is combined directly */

typedef double complex number;

struct fft_plan {
    int64_t n;
    struct buffer *memory;
    const number *turns;    /* e^(-2 pi i k / n), of k < n */
    struct fft_plan *power; /* Bluestein's: of the power of two, or NULL */
    const number *chirp;    /* n: e^(-pi i k^2 / n) */
    const number *kernel;   /* the chirp's transform, conjugated */
};

static number product(number a, number b)
{
    return __builtin_complex(__real__ a * __real__ b - __imag__ a * __imag__ b,
                             __real__ a * __imag__ b + __imag__ a * __real__ b);
}

static number turn(int64_t k, int64_t n)
{
    double angle = -2 * M_PI * (double)k / (double)n;

    return __builtin_complex(cos(angle), sin(angle));
}

static int64_t smallest_factor(int64_t n)
{
    if (n % 4 == 0)
        return 4;
    for (int64_t p = 2; p <= PRIME_MAX && p * p <= n; p++)
        if (n % p == 0)
            return p;
    return n;
}

static bool factors_are_small(int64_t n)
{
    for (; n > PRIME_MAX; n /= smallest_factor(n))
        if (smallest_factor(n) > PRIME_MAX)
            return false;
    return true;
}

/* ---- plans ---- */

static bool plan_turns(struct fft_plan *p)
{
    number *w;

    p->memory = buffer_new((size_t)p->n * sizeof(number));
    if (!p->memory)
        return false;
    w = (number *)p->memory->data;
    for (int64_t k = 0; k < p->n; k++)
        w[k] = turn(k, p->n);
    p->turns = w;
    return true;
}

static bool plan_chirp(struct fft_plan *p)
{
    int64_t n = p->n, m = 1;
    number *chirp, *kernel, *line;

    while (m < 2 * n - 1)
        m *= 2;
    p->power = fft_plan_new(m);
    p->memory = buffer_new((size_t)(n + 2 * m) * sizeof(number));
    if (!p->power || !p->memory)
        return false;
    p->chirp = chirp = (number *)p->memory->data;
    p->kernel = kernel = chirp + n;
    line = kernel + m;
    memset(line, 0, (size_t)m * sizeof(number));
    for (int64_t k = 0; k < n; k++) {
        int64_t square = (int64_t)((__int128)k * k % (2 * n));

        chirp[k] = turn(square, 2 * n);
        line[k] = line[(m - k) % m] = conj(chirp[k]);
    }
    fft_run(p->power, line, kernel, NULL);
    for (int64_t k = 0; k < m; k++)
        kernel[k] = conj(kernel[k]) / (double)m;
    return true;
}

struct fft_plan *fft_plan_new(int64_t n)
{
    struct fft_plan *p = MEM_NEW(struct fft_plan);

    p->n = n;
    if (n < INT64_MAX / 256 &&
        (factors_are_small(n) ? plan_turns(p) : plan_chirp(p)))
        return p;
    fft_plan_free(p);
    return NULL;
}

void fft_plan_free(struct fft_plan *p)
{
    if (!p)
        return;
    fft_plan_free(p->power);
    buffer_unref(p->memory);
    mem_free(p);
}

int64_t fft_plan_room(const struct fft_plan *p)
{
    return p->power ? 2 * p->power->n : 0;
}

/* ---- runs ---- */

static void combine_two(const number *w, int64_t step, int64_t m, number *out)
{
    for (int64_t k = 0; k < m; k++) {
        number a = out[k], b = product(out[m + k], w[k * step]);

        out[k] = a + b;
        out[m + k] = a - b;
    }
}

static void combine_four(const number *w, int64_t step, int64_t m, number *out)
{
    for (int64_t k = 0; k < m; k++) {
        number a = out[k], b = product(out[m + k], w[k * step]);
        number c = product(out[2 * m + k], w[2 * k * step]);
        number d = product(out[3 * m + k], w[3 * k * step]);
        number even = a + c, odd = a - c, sum = b + d, gap = b - d;

        gap = __builtin_complex(cimag(gap), -creal(gap)); /* times -i */
        out[k] = even + sum;
        out[m + k] = odd + gap;
        out[2 * m + k] = even - sum;
        out[3 * m + k] = odd - gap;
    }
}

static void combine_any(const struct fft_plan *p, int64_t f, int64_t step,
                        int64_t m, number *out)
{
    number part[PRIME_MAX];

    for (int64_t k = 0; k < m; k++) {
        for (int64_t r = 0; r < f; r++)
            part[r] = product(out[r * m + k], p->turns[r * k * step]);
        for (int64_t q = 0; q < f; q++) {
            number sum = part[0];

            for (int64_t r = 1; r < f; r++)
                sum += product(part[r], p->turns[r * q % f * (p->n / f)]);
            out[q * m + k] = sum;
        }
    }
}

/* n numbers, each `step` behind the one before. */
static void transform(const struct fft_plan *p, int64_t n, const number *in,
                      int64_t step, number *out)
{
    int64_t f = smallest_factor(n), m = n / f;

    if (n == 1) {
        out[0] = in[0];
        return;
    }
    for (int64_t r = 0; r < f; r++)
        transform(p, m, in + r * step, step * f, out + r * m);
    if (f == 2)
        combine_two(p->turns, step, m, out);
    else if (f == 4)
        combine_four(p->turns, step, m, out);
    else
        combine_any(p, f, step, m, out);
}

/* The sum over j of in[j] c[j] conj(c[k - j]), times c[k]. */
static void bluestein(const struct fft_plan *p, const number *in, number *out,
                      number *room)
{
    int64_t m = p->power->n;
    number *line = room, *other = room + m;

    memset(line, 0, (size_t)m * sizeof(number));
    for (int64_t k = 0; k < p->n; k++)
        line[k] = product(in[k], p->chirp[k]);
    fft_run(p->power, line, other, NULL);
    for (int64_t k = 0; k < m; k++) /* conjugated: the way back is the way */
        line[k] = product(conj(other[k]), p->kernel[k]);
    fft_run(p->power, line, other, NULL);
    for (int64_t k = 0; k < p->n; k++)
        out[k] = product(conj(other[k]), p->chirp[k]);
}

void fft_run(const struct fft_plan *p, const number *in, number *out,
             number *room)
{
    if (p->power)
        bluestein(p, in, out, room);
    else
        transform(p, p->n, in, 1, out);
}
