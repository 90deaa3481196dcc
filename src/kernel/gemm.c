/*
 * Matrix products by blocks.
 *
 * C is cut into blocks that threads take. A block goes through k in steps of
 * K_STEP: the rows of A and the columns of B that it needs are packed so that
 * the tile loops read them in order, and stay in the second-level cache. Where
 * packing would cost more than it brings (few rows, few columns), the tiles
 * read the matrices as they lie.
 *
 * All of this moves elements without knowing what they are, so it is here once,
 * by their size; only the tiles (gemm_tile.h) compute. At the edges a tile
 * works on a copy of its part of C.
 */
#include "kernel/gemm.h"

#include <string.h>

#include "kernel/cpu.h"
#include "kernel/gemm_tile.h"
#include "kernel/narrow.h"
#include "kernel/turn.h"

#define K_STEP    320  /* products between two visits to C */
#define M_STEP    256  /* rows of A that are packed at a time */
#define M_BLOCK   1024 /* of C */
#define N_BLOCK   1024
#define PANELS    16
#define AHEAD     4   /* rows */
#define BLOCK_MIN 64  /* what threads make blocks smaller to */
#define TURN_ROWS 128 /* the most of C that is computed transposed */
/* Rows of A times bytes from row to row of B. */
#define SPREAD_BYTES 131072
/* A matrix that stays in the first cache. */
#define NEAR_BYTES 32768
/* Packed panels up to this size are on the stack. */
#define STACK_BYTES 16384

/* ---- the tiles ---- */

GEMM_TILES(f32_base, BASE_TARGET, float, 16, 4, 3, 2)
GEMM_TILES(f64_base, BASE_TARGET, double, 16, 4, 3, 2)
GEMM_TILES(u32_base, BASE_TARGET, uint32_t, 16, 4, 3, 2)
GEMM_TILES(u64_base, BASE_TARGET, uint64_t, 16, 4, 3, 2)

#ifdef __x86_64__
GEMM_TILES(f32_avx2, AVX2_TARGET, float, 32, 6, 4, 2)
GEMM_TILES(f64_avx2, AVX2_TARGET, double, 32, 6, 4, 2)
GEMM_TILES(u32_avx2, AVX2_TARGET, uint32_t, 32, 6, 4, 2)
GEMM_TILES(f32_avx512, AVX512_TARGET, float, 64, 8, 4, 2)
GEMM_TILES(f64_avx512, AVX512_TARGET, double, 64, 8, 4, 2)
GEMM_TILES(u32_avx512, AVX512_TARGET, uint32_t, 64, 8, 4, 2)
GEMM_TILES(u64_avx512, AVX512_TARGET, uint64_t, 64, 8, 4, 2)
#endif

static const struct gemm_tiles *tiles_of(enum dtype dt)
{
#ifdef __x86_64__
    enum cpu_kind kind = cpu_kind();

    if (kind == CPU_AVX512)
        return dt == DT_FLOAT    ? &f32_avx512_tiles
               : dt == DT_DOUBLE ? &f64_avx512_tiles
               : dt == DT_INT32  ? &u32_avx512_tiles
                                 : &u64_avx512_tiles;
    if (kind == CPU_AVX2 && dt != DT_INT64)
        return dt == DT_FLOAT    ? &f32_avx2_tiles
               : dt == DT_DOUBLE ? &f64_avx2_tiles
                                 : &u32_avx2_tiles;
#endif
    return dt == DT_FLOAT    ? &f32_base_tiles
           : dt == DT_DOUBLE ? &f64_base_tiles
           : dt == DT_INT32  ? &u32_base_tiles
                             : &u64_base_tiles;
}

/* ---- packing ---- */

/* w pieces of contiguous bytes; the usual lengths as constants. */
static void pack_pieces(char *to, size_t to_step, const char *from, size_t step,
                        size_t bytes, int64_t w)
{
#define PIECES(n)                                                              \
    case n:                                                                    \
        for (int64_t j = 0; j < w; j++, to += to_step, from += step)           \
            memcpy(to, from, n);                                               \
        return;
    switch (bytes) {
        PIECES(8)
        PIECES(16)
        PIECES(32)
        PIECES(64)
        PIECES(128)
    }
#undef PIECES
    for (int64_t j = 0; j < w; j++, to += to_step, from += step)
        memcpy(to, from, bytes);
}

/* to[j * to_step + i] = from[i * row + j * col], of h by w elements. */
#define PACK(bits)                                                             \
    static void pack##bits(uint##bits##_t *to, int64_t to_step,                \
                           const uint##bits##_t *from, int64_t row,            \
                           int64_t col, int64_t h, int64_t w)                  \
    {                                                                          \
        for (int64_t j = 0; j < w; j++)                                        \
            for (int64_t i = 0; i < h; i++)                                    \
                to[j * to_step + i] = from[i * row + j * col];                 \
    }
PACK(32)
PACK(64)

static void pack(size_t size, void *to, int64_t to_step, const void *from,
                 int64_t row, int64_t col, int64_t h, int64_t w)
{
    if (row == 1)
        pack_pieces(to, (size_t)to_step * size, from, (size_t)col * size,
                    (size_t)h * size, w);
    else if (col == 1 && size == 4)
        turn_32(to, to_step, from, row, w, h);
    else if (col == 1)
        turn_64(to, to_step, from, row, w, h);
    else if (size == 4)
        pack32(to, to_step, from, row, col, h, w);
    else
        pack64(to, to_step, from, row, col, h, w);
}

/* ---- a block of C ---- */

struct block {
    const struct gemm *g;
    const struct gemm_tiles *t;
    size_t size;
    int64_t m, n;      /* of this block */
    const char *a, *b; /* where it begins, in each */
    char *c;
    int64_t c_row;
    bool turned; /* the transposed product: C is a copy till the end */
    bool direct_a, direct_b;
    char *packed_a, *packed_b;
};

static int height_index(const struct gemm_tiles *t, int64_t rows)
{
    int i = 0;

    while (t->height[i] > rows)
        i++;
    return i;
}

/* Rows [from, end). */
static void pack_a(const struct block *b, int64_t p, int64_t k, int64_t from,
                   int64_t end)
{
    char *to = b->packed_a;
    int64_t h;

    for (int64_t i = from; i < end; i += h) {
        h = b->t->height[height_index(b->t, end - i)];
        pack(b->size, to, h,
             b->a + (size_t)(i * b->g->a_row + p * b->g->a_col) * b->size,
             b->g->a_row, b->g->a_col, h, k);
        to += (size_t)(h * k) * b->size;
    }
}

/* k rows of `panels` pieces, each piece to its own panel. Pieces of the rows
 * that come are asked for early: rows may lie a page apart, where the CPU does
 * not look ahead by itself. */
#define PANEL_ROWS(bytes)                                                      \
    for (int64_t i = 0; i < k; i++, to += bytes, from += row) {                \
        for (int64_t j = 0; j < panels; j++) {                                 \
            for (size_t at = 0; at < bytes; at += 64)                          \
                __builtin_prefetch(from + AHEAD * row + j * bytes + at);       \
            memcpy(to + j * step, from + j * bytes, bytes);                    \
        }                                                                      \
    }

VECTOR_CLONES static void panel_rows(char *to, size_t step, const char *from,
                                     int64_t row, size_t bytes, int64_t panels,
                                     int64_t k)
{
    if (bytes == 128)
        PANEL_ROWS(128)
    else if (bytes == 64)
        PANEL_ROWS(64)
    else
        PANEL_ROWS(bytes)
}

/* Whole panels of contiguous rows: a piece of a row at a time, for several of
 * them. */
static int64_t pack_panels(const struct block *b, int64_t p, int64_t k,
                           int64_t j)
{
    int64_t wide = 2 * b->t->lanes, n;
    size_t bytes = (size_t)wide * b->size;

    for (; j + wide <= b->n; j += n * wide) {
        n = MIN((b->n - j) / wide, PANELS);
        panel_rows(b->packed_b + (size_t)(j * k) * b->size, bytes * (size_t)k,
                   b->b + (size_t)(p * b->g->b_row + j) * b->size,
                   b->g->b_row * (int64_t)b->size, bytes, n, k);
    }
    return j;
}

/* B of a narrower type. */
static void pack_narrow(const struct block *b, int64_t p, int64_t k)
{
    const struct gemm *g = b->g;
    int64_t wide = 2 * b->t->lanes;

    for (int64_t j = 0; j < b->n; j += wide) {
        int64_t n = MIN(b->n - j, wide);
        int64_t w = n > b->t->lanes ? wide : b->t->lanes;
        float *to = (float *)b->packed_b + j * k;

        if (n < w)
            memset(to, 0, (size_t)(w * k) * sizeof(float));
        narrow_load_rows(g->b_type, to, w,
                         (const uint16_t *)b->b + p * g->b_row + j, g->b_row, k,
                         n);
    }
}

/* Panels two vectors wide; the last is one or two, with zeros at its end. */
static void pack_b(const struct block *b, int64_t p, int64_t k, int64_t from)
{
    int64_t wide = 2 * b->t->lanes;

    if (b->g->b_type) {
        pack_narrow(b, p, k);
        return;
    }
    if (b->g->b_col == 1)
        from = pack_panels(b, p, k, from);
    for (int64_t j = from; j < b->n; j += wide) {
        int64_t n = MIN(b->n - j, wide);
        int64_t w = n > b->t->lanes ? wide : b->t->lanes;
        char *to = b->packed_b + (size_t)(j * k) * b->size;

        if (n < w)
            memset(to, 0, (size_t)(w * k) * b->size);
        pack(b->size, to, w,
             b->b + (size_t)(p * b->g->b_row + j * b->g->b_col) * b->size,
             b->g->b_col, b->g->b_row, n, k);
    }
}

/* A tile at the right edge: on a copy of its part of C. */
static void edge_tile(const struct block *b, void (*tile)(GEMM_TILE_ARGS),
                      int h, int w, int64_t n, int64_t k, const char *a,
                      int64_t a_row, int64_t a_col, const char *bp, char *c,
                      bool add)
{
    _Alignas(64) char copy[HEIGHT_MAX * 2 * LANES_MAX * 4];
    size_t bytes = (size_t)n * b->size, step = (size_t)w * b->size;

    for (int i = 0; add && i < h; i++)
        memcpy(copy + (size_t)i * step, c + (size_t)(i * b->c_row) * b->size,
               bytes);
    tile(k, a, a_row, a_col, bp, w, copy, w, add);
    for (int i = 0; i < h; i++)
        memcpy(c + (size_t)(i * b->c_row) * b->size, copy + (size_t)i * step,
               bytes);
}

/* A step of a block: rows [begin, end), products [p, p + k). */
struct step {
    const struct block *b;
    int64_t begin, end, p, k;
    bool add;
};

/* Those rows of a panel of B that begins in column j. */
static void panel(const struct step *s, int64_t j, const char *bp,
                  int64_t b_row)
{
    const struct block *b = s->b;
    const struct gemm *g = b->g;
    int64_t n = MIN(b->n - j, 2 * b->t->lanes), h;
    bool two = n > b->t->lanes;
    int w = two ? 2 * b->t->lanes : b->t->lanes;

    for (int64_t i = s->begin; i < s->end; i += h) {
        int x = height_index(b->t, s->end - i);
        void (*tile)(GEMM_TILE_ARGS) = two ? b->t->two[x] : b->t->one[x];
        char *c = b->c + (size_t)(i * b->c_row + j) * b->size;
        const char *a;

        h = b->t->height[x];
        if (b->direct_a)
            a = b->a + (size_t)(i * g->a_row + s->p * g->a_col) * b->size;
        else
            a = b->packed_a + (size_t)((i - s->begin) * s->k) * b->size;
        if (n == w)
            tile(s->k, a, b->direct_a ? g->a_row : 1,
                 b->direct_a ? g->a_col : h, bp, b_row, c, b->c_row, s->add);
        else
            edge_tile(b, tile, (int)h, w, n, s->k, a,
                      b->direct_a ? g->a_row : 1, b->direct_a ? g->a_col : h,
                      bp, c, s->add);
    }
}

/* Panels from column j on, packed. */
static void packed_panels(const struct step *s, int64_t j)
{
    const struct block *b = s->b;
    int64_t wide = 2 * b->t->lanes;

    for (; j < b->n; j += wide)
        panel(s, j, b->packed_b + (size_t)(j * s->k) * b->size,
              b->n - j > b->t->lanes ? wide : b->t->lanes);
}

/* Whole panels of B as it lies. */
static void direct_panels(const struct step *s)
{
    const struct block *b = s->b;
    const struct gemm *g = b->g;
    int64_t wide = 2 * b->t->lanes, j = 0;
    const char *from = b->b + (size_t)(s->p * g->b_row) * b->size;

    if (b->m == 1)
        for (; j + 4 * wide <= b->n; j += 4 * wide)
            b->t->eight(s->k, b->a + (size_t)(s->p * g->a_col) * b->size,
                        g->a_row, g->a_col, from + (size_t)j * b->size,
                        g->b_row, b->c + (size_t)j * b->size, b->c_row, s->add);
    for (; j + wide <= b->n; j += wide)
        panel(s, j, from + (size_t)j * b->size, g->b_row);
}

/* B is packed once for all rows, where it is read as it lies only the columns
 * that do not fill a panel; A for M_STEP rows. */
static void block_step(const struct block *b, int64_t p, int64_t k)
{
    struct step s = { .b = b, .p = p, .k = k, .add = b->g->add || p > 0 };
    int64_t j = b->direct_b ? b->n - b->n % (2 * b->t->lanes) : 0;

    pack_b(b, p, k, j);
    for (; s.begin < b->m; s.begin += M_STEP) {
        s.end = MIN(b->m, s.begin + M_STEP);
        if (!b->direct_a)
            pack_a(b, p, k, s.begin, s.end);
        if (b->direct_b)
            direct_panels(&s);
        packed_panels(&s, j);
    }
}

/* Packing B pays when each element is used for several tiles, and the earlier
 * the farther apart its rows lie, unless all of it stays in the first cache. */
static bool is_b_direct(const struct block *b)
{
    const struct gemm *g = b->g;
    size_t row = (size_t)g->b_row * b->size;

    return g->b_col == 1 && !g->b_type &&
           (b->m <= 4 * b->t->height[0] || (size_t)b->m * row <= SPREAD_BYTES ||
            (size_t)g->k * row <= NEAR_BYTES);
}

/* Packing A pays when each element is used for several panels, and for more of
 * them where it lies in order. */
static bool block_run(struct block *b)
{
    const struct gemm *g = b->g;
    _Alignas(64) char stack[STACK_BYTES];
    int64_t steps = (g->k + K_STEP - 1) / K_STEP, k = g->k / steps + 1;
    int64_t wide = 2 * b->t->lanes;
    size_t a_bytes, b_bytes, c_bytes = 0;
    struct buffer *buf = NULL;
    char *c = b->c;

    b->direct_a = b->n <= (g->a_col == 1 ? 8 : 4) * wide;
    b->direct_b = is_b_direct(b);
    a_bytes = b->direct_a ? 0 : (size_t)(MIN(b->m, M_STEP) * k) * b->size;
    a_bytes = (a_bytes + 63) & ~(size_t)63;
    b_bytes = (size_t)((b->n + wide - 1) / wide * wide * k) * b->size;
    if (b->turned)
        c_bytes = (size_t)(b->m * b->n) * b->size;
    b->packed_a = stack;
    if (a_bytes + b_bytes + c_bytes > sizeof(stack)) {
        buf = buffer_new(a_bytes + b_bytes + c_bytes);
        if (!buf)
            return false;
        b->packed_a = (char *)buf->data;
    }
    b->packed_b = b->packed_a + a_bytes;
    b->c_row = b->turned ? b->n : g->c_row;
    if (b->turned)
        b->c = b->packed_b + b_bytes;
    for (int64_t i = 0; i < steps; i++) {
        int64_t p = g->k * i / steps;

        block_step(b, p, g->k * (i + 1) / steps - p);
    }
    if (b->turned && b->size == 4)
        turn_32((uint32_t *)c, g->c_row, (uint32_t *)b->c, b->n, b->n, b->m);
    else if (b->turned)
        turn_64((uint64_t *)c, g->c_row, (uint64_t *)b->c, b->n, b->n, b->m);
    buffer_unref(buf);
    return true;
}

/* ---- all blocks ---- */

/* About what a product of these sizes takes. */
static double cost_ns(const struct gemm *g, int64_t m, int64_t n, double per_ns)
{
    return 20 + 2.0 * (double)m * (double)n * (double)g->k / per_ns;
}

struct gemm_blocks gemm_cut(const struct op_ctx *c, const struct gemm *g,
                            int64_t m, int64_t n, double per_ns)
{
    double all_ns = cost_ns(g, g->m, g->n, per_ns) * (double)g->batch;
    int64_t want = 2 * op_threads(c, all_ns);

    for (;;) {
        struct gemm_blocks cut = { .m = m, .n = n };

        cut.cost_ns = cost_ns(g, MIN(g->m, m), MIN(g->n, n), per_ns);
        cut.m_count = (g->m + m - 1) / m;
        cut.n_count = (g->n + n - 1) / n;
        if (cut.m_count * cut.n_count * g->batch >= want)
            return cut;
        if (MIN(g->n, n) >= MIN(g->m, m) && n > BLOCK_MIN)
            n /= 2;
        else if (m > BLOCK_MIN)
            m /= 2;
        else
            return cut;
    }
}

struct gemm_block gemm_block(const struct gemm *g,
                             const struct gemm_blocks *cut, int64_t i)
{
    int64_t n = i % cut->n_count * cut->n, rest = i / cut->n_count;
    int64_t m = rest % cut->m_count * cut->m;
    struct gemm_block b = { .i = m, .j = n, .a = m * g->a_row };

    b.m = MIN(g->m - m, cut->m);
    b.n = MIN(g->n - n, cut->n);
    b.b = n * g->b_col;

    i = rest / cut->m_count;
    b.a += g->a_at ? g->a_at[i] : 0;
    b.b += g->b_at ? g->b_at[i] : 0;
    b.c = g->c_at ? g->c_at[i] : 0;
    return b;
}

struct work {
    const struct gemm *g;
    const struct gemm_tiles *t;
    size_t size;
    struct gemm_blocks cut;
    bool turned;
    atomic_bool failed;
};

static void work_piece(void *arg, int64_t begin, int64_t end)
{
    struct work *w = arg;
    const struct gemm *g = w->g;

    for (int64_t u = begin; u < end; u++) {
        struct gemm_block at = gemm_block(g, &w->cut, u);
        struct block b = { .g = g, .t = w->t, .size = w->size };
        int64_t c = at.c + (w->turned ? at.j * g->c_row + at.i
                                      : at.i * g->c_row + at.j);

        b.m = at.m;
        b.n = at.n;
        b.a = (const char *)g->a + (size_t)at.a * w->size;
        b.b = (const char *)g->b +
              (size_t)at.b * (g->b_type ? sizeof(uint16_t) : w->size);
        b.c = (char *)g->c + (size_t)c * w->size;
        b.turned = w->turned;
        if (!block_run(&b))
            atomic_store(&w->failed, true);
    }
}

static void zero_rows(const struct gemm *g, size_t size)
{
    for (int64_t i = 0; i < g->batch; i++)
        for (int64_t r = 0; r < g->m; r++)
            memset((char *)g->c +
                       (size_t)((g->c_at ? g->c_at[i] : 0) + r * g->c_row) *
                           size,
                   0, (size_t)g->n * size);
}

/*
 * To pack a transposed B is to transpose it. Where C has few rows, it is
 * cheaper to compute C's transpose: B is then the left factor, which is read as
 * it lies, and A and C are what is transposed.
 */
static bool is_better_turned(const struct gemm *g)
{
    return !g->add && g->b_row == 1 && g->b_col != 1 && 2 * g->m <= g->n &&
           g->m <= TURN_ROWS;
}

/* C^T = B^T A^T; c_row stays that of C. */
static struct gemm turned(const struct gemm *g)
{
    struct gemm t = *g;

    t.m = g->n;
    t.n = g->m;
    t.a = g->b;
    t.a_row = g->b_col;
    t.a_col = g->b_row;
    t.a_at = g->b_at;
    t.b = g->a;
    t.b_row = g->a_col;
    t.b_col = g->a_row;
    t.b_at = g->a_at;
    return t;
}

enum mst_code gemm_run(struct op_ctx *c, enum dtype dt, const struct gemm *g)
{
    struct gemm t;
    struct work w = { .g = g, .t = tiles_of(dt), .size = dtype_size(dt) };

    if (!g->m || !g->n || !g->batch)
        return MST_OK;
    if (!g->k) {
        if (!g->add)
            zero_rows(g, w.size);
        return MST_OK;
    }
    if (is_better_turned(g)) {
        t = turned(g);
        g = w.g = &t;
        w.turned = true;
    }
    w.cut = gemm_cut(c, g, M_BLOCK, N_BLOCK, w.size > 4 ? 50 : 100);
    op_for(c, w.cut.m_count * w.cut.n_count * g->batch, w.cut.cost_ns,
           work_piece, &w);
    if (atomic_load(&w.failed))
        return op_fail(c, MST_RESOURCE_EXHAUSTED,
                       "OOM when multiplying matrices");
    return MST_OK;
}
