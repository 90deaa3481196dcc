#include "kernel/rows.h"

#include <stdio.h>
#include <string.h>

/* More parts than this scan the indices more often than they save. */
#define PARTS_MAX 16

/* Wraps: the dimensions of an empty tensor may be as large as they like, and
 * then no row of it is ever reached. */
static int64_t times(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

void rows_init(struct rows *r, const struct tensor *index, int depth, int ndim,
               const int64_t *dims)
{
    int64_t step = 1;

    CHECK(depth <= ndim);
    *r = (struct rows){ .index = index->data,
                        .type = (enum dtype)index->dtype,
                        .depth = depth,
                        .count = depth ? index->count / depth : 0 };
    for (int i = ndim - 1; i >= depth; i--)
        step = times(step, dims[i]);
    r->size = step;
    for (int i = depth - 1; i >= 0; i--) {
        r->dims[i] = dims[i];
        r->steps[i] = step;
        step = times(step, dims[i]);
    }
}

/* Rows that one number names, as most are. First as if all of them were there,
 * by vectors; what was written is what was checked. */
#define SOME(s, T)                                                             \
    VECTOR_CLONES static bool fill_##s(struct rows_span *ret, const T *index,  \
                                       int64_t first, int64_t n,               \
                                       uint64_t most, uint64_t size)           \
    {                                                                          \
        uint64_t bad = 0;                                                      \
                                                                               \
        for (int64_t i = 0; i < n; i++) {                                      \
            uint64_t k = (uint64_t)index[first + i];                           \
                                                                               \
            ret[i].at = (int64_t)(k * size);                                   \
            ret[i].from = (int64_t)((uint64_t)(first + i) * size);             \
            bad |= k >= most;                                                  \
        }                                                                      \
        return !bad;                                                           \
    }                                                                          \
    static int64_t some_##s(const struct rows *r, int64_t *next,               \
                            struct rows_span *ret)                             \
    {                                                                          \
        const T *index = r->index;                                             \
        uint64_t most = (uint64_t)r->dims[0], mask = (uint64_t)r->part_mask;   \
        uint64_t part = (uint64_t)r->part, size = (uint64_t)r->size;           \
        int64_t i = *next, n = MIN(r->count - i, ROWS_SOME);                   \
                                                                               \
        if (!mask && fill_##s(ret, index, i, n, most, size)) {                 \
            *next = i + n;                                                     \
            return n;                                                          \
        }                                                                      \
        for (n = 0; i < r->count && n < ROWS_SOME; i++) {                      \
            uint64_t k = (uint64_t)index[i];                                   \
                                                                               \
            ret[n].at = (int64_t)(k * size);                                   \
            ret[n].from = (int64_t)((uint64_t)i * size);                       \
            n += (k < most) & ((k & mask) == part);                            \
        }                                                                      \
        *next = i;                                                             \
        return n;                                                              \
    }                                                                          \
    /* Whether each number is one of a row. */                                 \
    VECTOR_CLONES static bool all_##s(const T *index, int64_t n, int64_t most) \
    {                                                                          \
        uint64_t bad = 0;                                                      \
                                                                               \
        for (int64_t i = 0; i < n; i++)                                        \
            bad |= (uint64_t)index[i] >= (uint64_t)most;                       \
        return !bad;                                                           \
    }
SOME(i32, int32_t)
SOME(i64, int64_t)

int64_t rows_some(const struct rows *r, int64_t *next, struct rows_span *ret)
{
    int64_t n = 0;

    if (r->depth == 1 && r->type == DT_INT32)
        return some_i32(r, next, ret);
    if (r->depth == 1 && r->type == DT_INT64)
        return some_i64(r, next, ret);
    for (; *next < r->count && n < ROWS_SOME; ++*next) {
        ret[n].at = rows_at(r, *next);
        ret[n].from = times(*next, r->size);
        n += ret[n].at >= 0;
    }
    return n;
}

int64_t rows_bad(const struct rows *r)
{
    if (r->depth == 1 && r->type == DT_INT32 && r->part_mask == 0 &&
        all_i32(r->index, r->count, r->dims[0]))
        return -1;
    if (r->depth == 1 && r->type == DT_INT64 && r->part_mask == 0 &&
        all_i64(r->index, r->count, r->dims[0]))
        return -1;
    for (int64_t i = 0; i < r->count; i++)
        if (rows_at(r, i) < 0)
            return i;
    return -1;
}

const char *rows_place(char *text, size_t room, const struct tensor *index,
                       int ndim, int64_t i)
{
    size_t len = 0;
    int64_t below = 1;

    for (int k = 1; k < ndim; k++)
        below *= index->dims[k];
    text[0] = '\0';
    for (int k = 0; k < ndim && len < room; k++) {
        len += (size_t)snprintf(text + len, room - len, k ? ",%ld" : "%ld",
                                (long)(i / below));
        i %= below;
        if (k + 1 < ndim)
            below /= index->dims[k + 1];
    }
    return text;
}

enum mst_code rows_fail(struct op_ctx *c, const struct rows *r,
                        const struct tensor *index, int64_t bad)
{
    char place[256];

    rows_place(place, sizeof(place), index, index->ndim, bad);
    return op_fail(c, MST_INVALID_ARGUMENT,
                   "indices%s%s%s = %ld is not in "
                   "[0, %ld)",
                   index->ndim ? "[" : "", place, index->ndim ? "]" : "",
                   (long)rows_number(r, bad), (long)r->dims[0]);
}

enum mst_code rows_fail_nd(struct op_ctx *c, const struct rows *r,
                           const struct tensor *index, int64_t bad,
                           const char *what, int ndim, const int64_t *dims)
{
    char place[256], numbers[288], shape[SHAPE_TEXT_MAX];
    size_t len = 0;

    rows_place(place, sizeof(place), index, index->ndim - 1, bad);
    numbers[0] = '\0';
    for (int k = 0; k < r->depth && len < sizeof(numbers); k++)
        len += (size_t)snprintf(numbers + len, sizeof(numbers) - len,
                                k ? ", %ld" : "%ld",
                                (long)rows_number(r, bad * r->depth + k));
    return op_fail(c, MST_INVALID_ARGUMENT,
                   "indices%s%s%s = [%s] does not index into %sshape %s",
                   index->ndim > 1 ? "[" : "", place,
                   index->ndim > 1 ? "]" : "", numbers, what,
                   shape_text(ndim, dims, shape));
}

RACY void rows_copy(void *to, const void *from, size_t bytes)
{
#ifdef BASE_TSAN
    /* Its memmove looks for races on its own. */
    for (volatile size_t i = 0; i < bytes; i++)
        ((char *)to)[i] = ((const char *)from)[i];
#else
    memmove(to, from, bytes);
#endif
}

#ifndef BASE_TSAN
/* Read whole before it is written, as memmove() does. */
#define COPY_SPANS(bytes)                                                      \
    for (int64_t k = 0; k < count; k++)                                        \
    __builtin_memmove((char *)to + (size_t)spans[k].at * size,                 \
                      (const char *)from + (size_t)spans[k].from * size,       \
                      bytes)

void rows_copy_spans(void *to, const void *from, const struct rows_span *spans,
                     int64_t count, size_t size, size_t bytes)
{
    switch (bytes) {
    case 4:
        COPY_SPANS(4);
        break;
    case 8:
        COPY_SPANS(8);
        break;
    case 16:
        COPY_SPANS(16);
        break;
    case 32:
        COPY_SPANS(32);
        break;
    case 64:
        COPY_SPANS(64);
        break;
    default:
        COPY_SPANS(bytes);
    }
}
#else
void rows_copy_spans(void *to, const void *from, const struct rows_span *spans,
                     int64_t count, size_t size, size_t bytes)
{
    for (int64_t k = 0; k < count; k++)
        rows_copy((char *)to + (size_t)spans[k].at * size,
                  (const char *)from + (size_t)spans[k].from * size, bytes);
}
#endif

struct each {
    const struct rows *rows;
    int64_t mask;
    void (*fn)(void *arg, const struct rows *part);
    void *arg;
};

static void each_part(void *p, int64_t begin, int64_t end)
{
    const struct each *e = p;
    struct rows part = *e->rows;

    part.part_mask = e->mask;
    for (part.part = begin; part.part < end; part.part++)
        e->fn(e->arg, &part);
}

void rows_each(const struct op_ctx *c, const struct rows *r, double cost_ns,
               void (*fn)(void *arg, const struct rows *part), void *arg)
{
    double work_ns = (double)r->count * (double)r->size * cost_ns;
    struct each e = { r, 0, fn, arg };
    int64_t parts = 1;

    if (r->depth > 0)
        while (parts < op_threads(c, work_ns) && parts < PARTS_MAX)
            parts *= 2;
    e.mask = parts - 1;
    op_for(c, parts, work_ns / (double)parts, each_part, &e);
}
