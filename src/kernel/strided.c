/*
 * How a nest of loops runs.
 *
 * First it is made small: loops of one turn go, and two loops that walk both
 * sides like one become one, so that a contiguous piece is a single run of
 * memcpy. What is left differs in its innermost loop:
 *
 *   run    both sides contiguous: memcpy
 *   tile   one loop is contiguous in the source, another in the destination
 *          (a transposition): both in small square tiles, for the cache
 *   step   element by element
 *
 * by element size, not type. Strings and objects go one by one through
 * tensor_copy_elems(). The outermost loop is shared out over threads.
 */
#include "kernel/strided.h"

#include <string.h>

#include "kernel/turn.h"

#define TILE 16

struct nest {
    struct strided s;
    struct tensor *to;
    const struct tensor *from;
    size_t size; /* of an element; 0: an object */
    /* Runs the loops from `depth` on. */
    void (*inner)(const struct nest *k, int64_t to, int64_t from);
    int depth; /* of the loops that inner() takes */
};

/* ---- innermost loops ---- */

static void run_copy(const struct nest *k, int64_t to, int64_t from)
{
    memcpy((uint8_t *)k->to->data + (size_t)to * k->size,
           (const uint8_t *)k->from->data + (size_t)from * k->size,
           (size_t)k->s.dim[k->depth].n * k->size);
}

static void object_copy(const struct nest *k, int64_t to, int64_t from)
{
    int64_t n = k->s.dim[k->depth].n;
    int64_t to_step = k->s.dim[k->depth].to;
    int64_t from_step = k->s.dim[k->depth].from;

    for (int64_t i = 0; i < n; i++)
        tensor_copy_elems(k->to, to + i * to_step, k->from,
                          from + i * from_step, 1);
}

struct wide {
    uint64_t half[2];
};

/* Loops for one element size; the common strides are constants, for the
 * compiler's sake. */
#define SIZES(X)                                                               \
    X(8, uint8_t)                                                              \
    X(16, uint16_t) X(32, uint32_t) X(64, uint64_t) X(128, struct wide)
#define STEP_LOOP(TO, FROM)                                                    \
    for (int64_t i = 0; i < n; i++)                                            \
    t[i * (TO)] = f[i * (FROM)]
#define STEP(bits, T)                                                          \
    VECTOR_CLONES static void step_##bits(const struct nest *k, int64_t to,    \
                                          int64_t from)                        \
    {                                                                          \
        int64_t n = k->s.dim[k->depth].n, a = k->s.dim[k->depth].to;           \
        int64_t b = k->s.dim[k->depth].from;                                   \
        T *restrict t = (T *)k->to->data + to;                                 \
        const T *restrict f = (const T *)k->from->data + from;                 \
                                                                               \
        if (a == 1 && b == 0)                                                  \
            STEP_LOOP(1, 0);                                                   \
        else if (a == 1)                                                       \
            STEP_LOOP(1, b);                                                   \
        else if (b == 1)                                                       \
            STEP_LOOP(a, 1);                                                   \
        else                                                                   \
            STEP_LOOP(a, b);                                                   \
    }
SIZES(STEP)

/* to[i * a + j] = from[i + j * b], in tiles that stay in the cache. */
#define TURN(bits, T)                                                          \
    static void turn_##bits(T *to, int64_t a, const T *from, int64_t b,        \
                            int64_t rows, int64_t cols)                        \
    {                                                                          \
        for (int64_t r = 0; r < rows; r += TILE)                               \
            for (int64_t c = 0; c < cols; c += TILE)                           \
                for (int64_t i = r; i < MIN(r + TILE, rows); i++)              \
                    for (int64_t j = c; j < MIN(c + TILE, cols); j++)          \
                        to[i * a + j] = from[i + j * b];                       \
    }
TURN(8, uint8_t)
TURN(16, uint16_t)
TURN(128, struct wide)

/* The outer of the two loops is contiguous in the source, the inner one in the
 * destination. */
#define TILED(bits, T)                                                         \
    static void tile_##bits(const struct nest *k, int64_t to, int64_t from)    \
    {                                                                          \
        const __typeof__(k->s.dim[0]) *d = &k->s.dim[k->depth];                \
                                                                               \
        turn_##bits((T *)k->to->data + to, d[0].to,                            \
                    (const T *)k->from->data + from, d[1].from, d[0].n,        \
                    d[1].n);                                                   \
    }
SIZES(TILED)

/* ---- the nest ---- */

static void simplify(struct strided *s)
{
    int n = 0;

    for (int i = 0; i < s->ndim; i++) {
        if (s->dim[i].n == 1)
            continue;
        if (n && s->dim[n - 1].to == s->dim[i].n * s->dim[i].to &&
            s->dim[n - 1].from == s->dim[i].n * s->dim[i].from) {
            s->dim[n - 1].n *= s->dim[i].n;
            s->dim[n - 1].to = s->dim[i].to;
            s->dim[n - 1].from = s->dim[i].from;
        } else {
            s->dim[n++] = s->dim[i];
        }
    }
    s->ndim = n;
    if (!n)
        strided_dim(s, 1, 1, 1);
}

/* When the innermost loop jumps about in the source and another one does not,
 * that one comes next to it: true. */
static bool make_tile(struct strided *s)
{
    int last = s->ndim - 1;

    if (s->dim[last].to != 1 || s->dim[last].from == 1 ||
        s->dim[last].from == 0)
        return false;
    for (int i = 0; i < last; i++)
        if (s->dim[i].from == 1 && s->dim[i].n >= 4) {
            for (; i < last - 1; i++) {
                __typeof__(s->dim[0]) t = s->dim[i];

                s->dim[i] = s->dim[i + 1];
                s->dim[i + 1] = t;
            }
            return true;
        }
    return false;
}

static void choose(struct nest *k)
{
    int last = k->s.ndim - 1;

    k->depth = last;
    if (!k->size) {
        k->inner = object_copy;
    } else if (k->s.dim[last].to == 1 && k->s.dim[last].from == 1) {
        k->inner = run_copy;
    } else if (make_tile(&k->s)) {
        k->depth = last - 1;
        k->inner = k->size == 1   ? tile_8
                   : k->size == 2 ? tile_16
                   : k->size == 4 ? tile_32
                   : k->size == 8 ? tile_64
                                  : tile_128;
    } else {
        k->inner = k->size == 1   ? step_8
                   : k->size == 2 ? step_16
                   : k->size == 4 ? step_32
                   : k->size == 8 ? step_64
                                  : step_128;
    }
}

static void nest_run(const struct nest *k, int depth, int64_t to, int64_t from)
{
    if (depth == k->depth) {
        k->inner(k, to, from);
        return;
    }
    for (int64_t i = 0; i < k->s.dim[depth].n; i++)
        nest_run(k, depth + 1, to + i * k->s.dim[depth].to,
                 from + i * k->s.dim[depth].from);
}

/* Turns [begin, end) of the outermost loop. */
static void nest_part(void *arg, int64_t begin, int64_t end)
{
    struct nest part = *(const struct nest *)arg;

    part.s.dim[0].n = end - begin;
    nest_run(&part, 0, part.s.to_at + begin * part.s.dim[0].to,
             part.s.from_at + begin * part.s.dim[0].from);
}

void strided_copy(const struct op_ctx *c, struct tensor *to,
                  const struct tensor *from, struct strided *s)
{
    struct nest k = { .to = to, .from = from };
    double turn_ns = dtype_is_plain((enum dtype)to->dtype) ? 0.5 : 30;

    for (int i = 0; i < s->ndim; i++)
        if (!s->dim[i].n)
            return;
    simplify(s);
    k.s = *s;
    if (dtype_is_plain((enum dtype)to->dtype))
        k.size = dtype_size((enum dtype)to->dtype);
    choose(&k);
    for (int i = 1; i < k.s.ndim; i++)
        turn_ns *= (double)k.s.dim[i].n;
    op_for(c, k.s.dim[0].n, turn_ns, nest_part, &k);
}

/* Elements of those steps lie one after the other. */
static bool contiguous(int ndim, const int64_t *dims, const int64_t *step)
{
    int64_t next = 1;

    for (int i = ndim - 1; i >= 0; i--) {
        if (dims[i] != 1 && step[i] != next)
            return false;
        next *= dims[i];
    }
    return true;
}

enum mst_code strided_view(struct op_ctx *c, int i, const struct tensor *in,
                           int ndim, const int64_t *dims, const int64_t *step,
                           int64_t at)
{
    struct tensor *out = op_out(c, i);
    int64_t to[TENSOR_RANK_MAX], count;
    struct strided s = { .from_at = at };
    enum mst_code rc;

    if (ndim <= TENSOR_RANK_MAX && dtype_is_plain((enum dtype)in->dtype) &&
        shape_count(ndim, dims, 1, &count) && count &&
        contiguous(ndim, dims, step)) {
        size_t size = dtype_size((enum dtype)in->dtype);

        tensor_wrap(out, (enum dtype)in->dtype, ndim, dims, buffer_ref(in->buf),
                    (uint8_t *)in->data + (size_t)at * size);
        return MST_OK;
    }
    rc = op_out_new(c, i, ndim, dims);
    if (rc || !out->count)
        return rc;
    strided_of(ndim, dims, to);
    for (int k = 0; k < ndim; k++)
        strided_dim(&s, dims[k], to[k], step[k]);
    strided_copy(c, out, in, &s);
    return MST_OK;
}

void strided_fill(const struct op_ctx *c, struct tensor *t,
                  const struct tensor *value)
{
    struct strided s = { 0 };

    strided_dim(&s, t->count, 1, 0);
    strided_copy(c, t, value, &s);
}
