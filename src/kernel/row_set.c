#include "kernel/row_set.h"

#include "base/hash.h"
#include "kernel/types.h"

struct row_kind {
    uint64_t (*hash)(const void *row, int64_t n);
    bool (*equal)(const void *a, const void *b, int64_t n);
};

static inline uint64_t mix(uint64_t h, uint64_t x)
{
    h = (h ^ x) * 0x9e3779b97f4a7c15ull;
    return h ^ h >> 29;
}

/* Hashes the number, not the bits: 0 and -0 go to the same place. */
#define ROW_KIND(s, T, A, DT, LD, ST)                                          \
    static uint64_t hash_##s(const void *row, int64_t n)                       \
    {                                                                          \
        const T *x = row;                                                      \
        uint64_t h = 1;                                                        \
                                                                               \
        for (int64_t i = 0; i < n; i++) {                                      \
            A v = LD(x[i]);                                                    \
            uint64_t bits = 0;                                                 \
                                                                               \
            if (v != 0)                                                        \
                memcpy(&bits, &v, sizeof(v));                                  \
            h = mix(h, bits);                                                  \
        }                                                                      \
        return h;                                                              \
    }                                                                          \
    static bool equal_##s(const void *a, const void *b, int64_t n)             \
    {                                                                          \
        const T *x = a, *y = b;                                                \
                                                                               \
        for (int64_t i = 0; i < n; i++)                                        \
            if (LD(x[i]) != LD(y[i]))                                          \
                return false;                                                  \
        return true;                                                           \
    }
TYPES_REAL(ROW_KIND)
TYPES_BOOL(ROW_KIND)

static uint64_t hash_strings(const void *row, int64_t n)
{
    const struct str *x = row;
    uint64_t h = 1;

    for (int64_t i = 0; i < n; i++)
        h = mix(h, hash_bytes(x[i].data, x[i].len, HASH_SEED));
    return h;
}

static bool equal_strings(const void *a, const void *b, int64_t n)
{
    const struct str *x = a, *y = b;

    for (int64_t i = 0; i < n; i++)
        if (x[i].len != y[i].len ||
            (x[i].len && memcmp(x[i].data, y[i].data, x[i].len)))
            return false;
    return true;
}

#define ROW_KIND_ROW(s, T, A, DT, LD, ST) [DT] = { hash_##s, equal_##s },
static const struct row_kind kinds[DT_COUNT] = {
    TYPES_REAL(ROW_KIND_ROW)
        TYPES_BOOL(ROW_KIND_ROW)[DT_STRING] = { hash_strings, equal_strings },
};

enum mst_code row_set_init(struct row_set *s, const struct tensor *rows,
                           int64_t length, int64_t count, struct status *st)
{
    int64_t room = 16;
    enum mst_code rc;

    *s = (struct row_set){ .kind = &kinds[rows->dtype],
                           .rows = rows,
                           .length = length };
    if (!s->kind->hash)
        return status_set(st, MST_UNIMPLEMENTED,
                          "Elements of type %s cannot be told apart",
                          dtype_name(rows->dtype));
    if (count >= INT32_MAX)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "unique does not support input tensors larger than "
                          "%d elements",
                          INT32_MAX);
    while (room < 2 * count)
        room *= 2;
    rc = tensor_new(&s->slots, DT_INT32, 1, &room, st);
    if (rc)
        return rc;
    tensor_zero(&s->slots);
    s->mask = room - 1;
    return MST_OK;
}

void row_set_done(struct row_set *s)
{
    tensor_unref(&s->slots);
}

static const void *row_of(const struct row_set *s, const struct tensor *t,
                          int64_t i)
{
    size_t size = dtype_size((enum dtype)t->dtype);

    return (const uint8_t *)t->data + (size_t)(i * s->length) * size;
}

int64_t row_set_find(struct row_set *s, const struct tensor *t, int64_t i,
                     bool add)
{
    const void *row = row_of(s, t, i);
    int32_t *slots = s->slots.data;
    int64_t at = (int64_t)(s->kind->hash(row, s->length) >> 7) & s->mask;

    for (; slots[at]; at = (at + 1) & s->mask) {
        int64_t k = slots[at] - 1;

        if (s->kind->equal(row, row_of(s, s->rows, k), s->length))
            return k;
    }
    if (add)
        slots[at] = (int32_t)i + 1;
    return -1;
}
