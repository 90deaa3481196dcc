/*
 * One loop for each operation and type. Whole numbers wrap, so signed and
 * unsigned ones share their loops, but for division and comparison.
 */
#include "kernel/combine.h"

#include "base/mem.h"
#include "kernel/narrow.h"
#include "kernel/rows.h"

#define LOOP(s, T, A, DT, LD, ST, op, EXPR)                                    \
    VECTOR_CLONES RACY static void op##_##s(void *to, const void *old,         \
                                            const void *value, int64_t n)      \
    {                                                                          \
        const T *a = old, *b = value;                                          \
        T *c = to;                                                             \
                                                                               \
        IN_PLACE                                                               \
        for (int64_t i = 0; i < n; i++) {                                      \
            A x = a[i], y = b[i];                                              \
                                                                               \
            c[i] = (T)(EXPR);                                                  \
        }                                                                      \
    }

#define TYPES_RING(X, ...)                                                     \
    TYPES_FLOAT_WIDE(X, __VA_ARGS__)                                           \
    TYPES_UNSIGNED(X, __VA_ARGS__) TYPES_COMPLEX(X, __VA_ARGS__)

/* 1u: two 16-bit numbers would be multiplied as int, and overflow. */
TYPES_RING(LOOP, add, x + y)
TYPES_RING(LOOP, sub, x - y)
TYPES_RING(LOOP, mul, x *(1u * y))
TYPES_FLOAT_WIDE(LOOP, div, x / y)
TYPES_COMPLEX(LOOP, div, x / y)
/* Zeros are refused before; the least number by -1 wraps to itself. */
TYPES_UNSIGNED(LOOP, div, y == 0 ? 0 : x / y)
TYPES_SIGNED(LOOP, div,
             y == 0    ? 0
             : y == -1 ? (int64_t)(0 - (uint64_t)x)
                       : x / y)
/* What compares with nothing, a NaN, leaves the old value. */
TYPES_FLOAT_WIDE(LOOP, min, y < x ? y : x)
TYPES_FLOAT_WIDE(LOOP, max, x < y ? y : x)
TYPES_INT(LOOP, min, y < x ? y : x)
TYPES_INT(LOOP, max, x < y ? y : x)
TYPES_BOOL(LOOP, add, x || y)
TYPES_BOOL(LOOP, sub, x != y)

#define ENTRY(s, T, A, DT, LD, ST, op)     [DT] = op##_##s,
#define ENTRY_F32(s, T, A, DT, LD, ST, op) [DT] = op##_f32,

/* clang-format off */
static combine_fn *const loops[][DT_COUNT] = {
    [COMBINE_ADD] = { TYPES_RING(ENTRY, add) TYPES_SIGNED_WRAP(ENTRY, add)
                      TYPES_FLOAT16(ENTRY_F32, add) TYPES_BOOL(ENTRY, add) },
    [COMBINE_SUB] = { TYPES_RING(ENTRY, sub) TYPES_SIGNED_WRAP(ENTRY, sub)
                      TYPES_FLOAT16(ENTRY_F32, sub) TYPES_BOOL(ENTRY, sub) },
    [COMBINE_MUL] = { TYPES_RING(ENTRY, mul) TYPES_SIGNED_WRAP(ENTRY, mul)
                      TYPES_FLOAT16(ENTRY_F32, mul) },
    [COMBINE_DIV] = { TYPES_RING(ENTRY, div) TYPES_SIGNED(ENTRY, div)
                      TYPES_FLOAT16(ENTRY_F32, div) },
    [COMBINE_MIN] = { TYPES_FLOAT_WIDE(ENTRY, min) TYPES_INT(ENTRY, min)
                      TYPES_FLOAT16(ENTRY_F32, min) },
    [COMBINE_MAX] = { TYPES_FLOAT_WIDE(ENTRY, max) TYPES_INT(ENTRY, max)
                      TYPES_FLOAT16(ENTRY_F32, max) },
};
/* clang-format on */

bool combiner_init(struct combiner *k, enum combine how, enum dtype type)
{
    *k = (struct combiner){ how, type, loops[how][type],
                            dtype_is_plain(type) ? dtype_size(type) : 0 };
    return k->fn || how == COMBINE_SET ||
           (how == COMBINE_ADD && type == DT_STRING);
}

static const struct {
    const char *suffix;
    enum combine how;
} suffixes[] = {
    { "Update", COMBINE_SET }, { "Add", COMBINE_ADD }, { "Sub", COMBINE_SUB },
    { "Mul", COMBINE_MUL },    { "Div", COMBINE_DIV }, { "Min", COMBINE_MIN },
    { "Max", COMBINE_MAX },
};

enum combine combine_of(const char *name)
{
    size_t len = strlen(name);

    for (size_t i = 0; i < COUNT(suffixes); i++) {
        size_t n = strlen(suffixes[i].suffix);

        if (len > n && !strcmp(name + len - n, suffixes[i].suffix))
            return suffixes[i].how;
    }
    CHECK(!"the name ends with what it does");
    return COMBINE_SET;
}

static void combine_narrow(const struct combiner *k, uint16_t *to,
                           const uint16_t *old, const uint16_t *value,
                           int64_t n)
{
    float x[NARROW_PIECE], y[NARROW_PIECE];

    for (int64_t at = 0, m; at < n; at += m) {
        m = MIN(n - at, NARROW_PIECE);
        narrow_load(k->type, x, old + at, m);
        narrow_load(k->type, y, value + at, m);
        k->fn(x, x, y, m);
        narrow_store(k->type, to + at, x, m);
    }
}

void combine(const struct combiner *k, void *to, const void *old,
             const void *value, int64_t n)
{
    if (!k->fn)
        rows_copy(to, value, (size_t)n * k->size);
    else if (narrow_is(k->type))
        combine_narrow(k, to, old, value, n);
    else
        k->fn(to, old, value, n);
}

/* ---- any type, and one value for all ---- */

static void append(struct str *to, const struct str *more)
{
    char *both;

    if (more->len == 0)
        return;
    both = mem_array(to->len + more->len, 1);
    if (to->len)
        memcpy(both, to->data, to->len);
    memcpy(both + to->len, more->data, more->len);
    str_set(to, both, to->len + more->len);
    mem_free(both);
}

static void combine_objects(const struct combiner *k, struct tensor *t,
                            int64_t at, const struct tensor *value,
                            int64_t value_at, bool one, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t from = value_at + (one ? 0 : i);

        if (k->how == COMBINE_ADD)
            append(tensor_str(t, at + i), tensor_str(value, from));
        else
            tensor_copy_elems(t, at + i, value, from, 1);
    }
}

/* The one value, as often as fits in a piece. */
static void combine_one(const struct combiner *k, char *to, const char *value,
                        int64_t n)
{
    char piece[2048];
    size_t size = k->size;
    int64_t room = (int64_t)(sizeof(piece) / size);

    room = MIN(room, n);
    for (int64_t i = 0; i < room; i++)
        memcpy(piece + (size_t)i * size, value, size);
    for (int64_t at = 0, m; at < n; at += m) {
        m = MIN(n - at, room);
        combine(k, to + (size_t)at * size, to + (size_t)at * size, piece, m);
    }
}

void combine_elems(const struct combiner *k, struct tensor *t, int64_t at,
                   const struct tensor *value, int64_t value_at, bool one,
                   int64_t n)
{
    char *to = (char *)t->data + (size_t)at * k->size;
    const char *from = (const char *)value->data + (size_t)value_at * k->size;

    if (k->size == 0)
        combine_objects(k, t, at, value, value_at, one, n);
    else if (one)
        combine_one(k, to, from, n);
    else
        combine(k, to, to, from, n);
}
