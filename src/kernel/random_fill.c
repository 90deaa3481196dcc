/*
 * Random numbers by the tensor.
 *
 * An output is cut into groups, as many elements as one block of four words
 * makes: four, or two of eight bytes. Group g takes block g of the generator,
 * so any thread can make any group. A truncated normal number needs an unknown
 * number of words; there a group starts RANDOM_RESERVE words an element
 * further on. All of this, and the order of the operations on floats, is as
 * TensorFlow has it: the results are the same bits. logf, sincosf and their
 * twins come from the C library there as well as here.
 */
#include "kernel/random_fill.h"

#include <math.h>
#include <string.h>

#include "kernel/random_state.h"
#include "kernel/types.h"

/* ---- distributions: one group each ---- */

/* Uniform words below this would have too large a logarithm. */
#define UNIFORM_MIN 1.0e-7

void random_box_muller(uint32_t a, uint32_t b, float ret[2])
{
    float u = philox_float(a);
    float angle = (float)(2.0 * M_PI * (double)philox_float(b));
    float radius;

    if (u < (float)UNIFORM_MIN)
        u = (float)UNIFORM_MIN;
    radius = sqrtf(-2.0f * logf(u));
    sincosf(angle, &ret[0], &ret[1]);
    ret[0] *= radius;
    ret[1] *= radius;
}

void random_box_muller64(const uint32_t word[4], double ret[2])
{
    double u = philox_double(word[0], word[1]);
    double angle = 2.0 * M_PI * philox_double(word[2], word[3]);
    double radius;

    if (u < UNIFORM_MIN)
        u = UNIFORM_MIN;
    radius = sqrt(-2.0 * log(u));
    sincos(angle, &ret[0], &ret[1]);
    ret[0] *= radius;
    ret[1] *= radius;
}

/* A float in [0, 1) of so few bits that storing it does not round. */
static inline float uniform_f16(uint32_t word)
{
    return philox_float((word & 0x3ffu) << 13);
}

static inline float uniform_bf16(uint32_t word)
{
    return philox_float((word & 0x7fu) << 16);
}

static inline uint64_t word64(const uint32_t *w)
{
    return w[0] | (uint64_t)w[1] << 32;
}

static void truncated(struct philox gen, float ret[4])
{
    struct philox_words w = philox_words(gen);
    int n = 0;

    while (n < 4) {
        uint32_t a = philox_word(&w), b = philox_word(&w);
        float f[2];

        random_box_muller(a, b, f);
        for (int i = 0; i < 2 && n < 4; i++)
            if (fabsf(f[i]) < 2.0f)
                ret[n++] = f[i];
    }
}

static void truncated64(struct philox gen, double ret[2])
{
    int n = 0;

    while (n < 2) {
        uint32_t word[4];
        double f[2];

        philox_next(&gen, word);
        random_box_muller64(word, f);
        for (int i = 0; i < 2 && n < 2; i++)
            if (fabs(f[i]) < 2.0)
                ret[n++] = f[i];
    }
}

/* ---- loops over groups ---- */

struct fill {
    struct philox gen;
    void *out;
    int64_t count;
    struct random_range range;
};

typedef void (*fill_fn)(void *arg, int64_t begin, int64_t end);

/* A loop that gives each group of N elements a block of words, and leaves it
 * to BODY to make elements r[] of the words w[]. */
#define FILL(name, T, N, BODY)                                                 \
    static void fill_##name(void *arg, int64_t begin, int64_t end)             \
    {                                                                          \
        const struct fill *f = arg;                                            \
        const uint64_t low = f->range.low, range = f->range.range;             \
        struct philox gen = f->gen;                                            \
                                                                               \
        philox_skip(&gen, (uint64_t)begin);                                    \
        for (int64_t g = begin; g < end; g++) {                                \
            int64_t n = MIN(N, f->count - g * (N));                            \
            uint32_t w[4];                                                     \
            T r[N];                                                            \
                                                                               \
            philox_next(&gen, w);                                              \
            BODY;                                                              \
            memcpy((T *)f->out + g * (N), r, (size_t)n * sizeof(T));           \
        }                                                                      \
        (void)low;                                                             \
        (void)range;                                                           \
    }
#define EACH(N, EXPR)                                                          \
    for (int i = 0; i < (N); i++)                                              \
    r[i] = (EXPR)

FILL(uniform_f32, float, 4, EACH(4, philox_float(w[i])))
FILL(uniform_f64, double, 2, EACH(2, philox_double(w[2 * i], w[2 * i + 1])))
FILL(uniform_f16, half_bits, 4, EACH(4, half_store(uniform_f16(w[i]))))
FILL(uniform_bf16, bf16_bits, 4, EACH(4, bf16_store(uniform_bf16(w[i]))))

#define NORMAL                                                                 \
    float x[4];                                                                \
    random_box_muller(w[0], w[1], x);                                          \
    random_box_muller(w[2], w[3], x + 2)
FILL(normal_f32, float, 4, NORMAL; EACH(4, x[i]))
FILL(normal_f64, double, 2, random_box_muller64(w, r))
FILL(normal_f16, half_bits, 4, NORMAL; EACH(4, half_store(x[i])))
FILL(normal_bf16, bf16_bits, 4, NORMAL; EACH(4, bf16_store(x[i])))

FILL(int_32, uint32_t, 4, EACH(4, (uint32_t)low + w[i] % (uint32_t)range))
FILL(int_64, uint64_t, 2, EACH(2, low + word64(w + 2 * i) % range))
FILL(bits_32, uint32_t, 4, EACH(4, w[i]))
FILL(bits_64, uint64_t, 2, EACH(2, word64(w + 2 * i)))

/* A group has a stretch of the stream to itself. */
#define FILL_TRUNCATED(s, T, A, N, GROUP, ST)                                  \
    static void fill_truncated_##s(void *arg, int64_t begin, int64_t end)      \
    {                                                                          \
        const struct fill *f = arg;                                            \
                                                                               \
        for (int64_t g = begin; g < end; g++) {                                \
            struct philox gen = f->gen;                                        \
            A r[N];                                                            \
                                                                               \
            philox_skip(&gen, (uint64_t)g *(N)*RANDOM_RESERVE / 4);            \
            GROUP(gen, r);                                                     \
            for (int i = 0; i < (N) && g * (N) + i < f->count; i++)            \
                ((T *)f->out)[g * (N) + i] = ST(r[i]);                         \
        }                                                                      \
    }
FILL_TRUNCATED(f32, float, float, 4, truncated, SAME)
FILL_TRUNCATED(f64, double, double, 2, truncated64, SAME)
FILL_TRUNCATED(f16, half_bits, float, 4, truncated, half_store)
FILL_TRUNCATED(bf16, bf16_bits, float, 4, truncated, bf16_store)

/* Kinds of floats by type, and kinds of whole numbers by size. */
static fill_fn fill_of(enum random_kind kind, enum dtype dt)
{
    static const fill_fn floats[][4] = {
        [RANDOM_UNIFORM] = { fill_uniform_f32, fill_uniform_f64,
                             fill_uniform_f16, fill_uniform_bf16 },
        [RANDOM_NORMAL] = { fill_normal_f32, fill_normal_f64, fill_normal_f16,
                            fill_normal_bf16 },
        [RANDOM_TRUNCATED] = { fill_truncated_f32, fill_truncated_f64,
                               fill_truncated_f16, fill_truncated_bf16 },
    };
    bool wide = dtype_size(dt) == 8;

    if (kind == RANDOM_INT)
        return wide ? fill_int_64 : fill_int_32;
    if (kind == RANDOM_BITS)
        return wide ? fill_bits_64 : fill_bits_32;
    return floats[kind][dt == DT_FLOAT ? 0 : wide ? 1 : dt == DT_HALF ? 2 : 3];
}

void random_fill(struct op_ctx *c, enum random_kind kind, struct philox gen,
                 const struct random_range *range)
{
    static const double group_ns[] = { [RANDOM_UNIFORM] = 10,
                                       [RANDOM_NORMAL] = 50,
                                       [RANDOM_TRUNCATED] = 80,
                                       [RANDOM_INT] = 15,
                                       [RANDOM_BITS] = 10 };
    struct tensor *t = op_out(c, 0);
    int group = dtype_size((enum dtype)t->dtype) == 8 ? 2 : 4;
    struct fill f = { .gen = gen, .out = t->data, .count = t->count };

    if (range)
        f.range = *range;
    op_for(c, (t->count + group - 1) / group, group_ns[kind],
           fill_of(kind, (enum dtype)t->dtype), &f);
}

static bool is_unsigned(enum dtype dt)
{
    return dt == DT_UINT32 || dt == DT_UINT64;
}

enum mst_code random_range(struct op_ctx *c, int i, int64_t outputs,
                           struct random_range *ret)
{
    static const char *const names[] = { "minval", "maxval" };
    char text[SHAPE_TEXT_MAX];
    int64_t v[2];
    bool u = is_unsigned((enum dtype)op_in(c, i)->dtype);

    for (int k = 0; k < 2; k++) {
        const struct tensor *t = op_in(c, i + k);

        if (t->ndim)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "%s must be 0-D, got shape %s", names[k],
                           tensor_shape_text(t, text));
        v[k] = tensor_int(t, 0);
    }
    if (!outputs)
        return MST_OK;
    if (u ? (uint64_t)v[0] >= (uint64_t)v[1] : v[0] >= v[1])
        return op_fail(c, MST_INVALID_ARGUMENT,
                       u ? "Need minval < maxval, got %llu >= %llu"
                         : "Need minval < maxval, got %lld >= %lld",
                       (long long)v[0], (long long)v[1]);
    ret->low = (uint64_t)v[0];
    ret->range = (uint64_t)v[1] - (uint64_t)v[0];
    return MST_OK;
}
