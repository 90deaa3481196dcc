/*
 * As gemm.c: C is cut into blocks that threads take, and a block goes through k
 * in steps for which A and B are packed. Packing makes squares of pairs
 * (bf16_tile.h) with zeros at the edges, so tiles are always whole; what one
 * gives goes through a piece of memory, from where it is rounded into C. Where
 * k takes several steps, the sums so far are kept as float for the whole block.
 */
#include "kernel/gemm_bf16.h"

#include <string.h>

#include "kernel/bf16_tile.h"
#include "kernel/turn.h"

#define K_STEP  1024 /* products between two visits to the sums */
#define M_STEP  256  /* rows of A that are packed at a time */
#define M_BLOCK 1024 /* of C */
#define N_BLOCK 256
#define SIDE    (2 * BF16_TILE_ROWS) /* of a tile of C */
#define AHEAD   4                    /* pairs of rows */
/* Packed panels up to this size are on the stack. */
#define STACK_BYTES 16384

bool gemm_bf16_can(void)
{
    return bf16_tile_best() != NULL;
}

/* ---- pairs ---- */

/* What is packed: a row of squares, `high` of them at a time, is `rows` rows
 * (of A; columns of B) and k products, of which element (i, p) lies at
 * from[i * row + p * col]. */
struct panel {
    uint32_t *to; /* pairs */
    const uint16_t *from;
    int64_t row, col;
    int64_t rows, k;
};

/* Squares side by side: one when that is enough. */
static int squares_of(int64_t rows)
{
    return rows > BF16_TILE_ROWS ? 2 : 1;
}

/* n pairs; y may be NULL for zeros. */
static inline void weave(uint32_t *to, const uint16_t *x, const uint16_t *y,
                         int64_t n)
{
    if (y)
        for (int64_t i = 0; i < n; i++)
            to[i] = x[i] | (uint32_t)y[i] << 16;
    else
        for (int64_t i = 0; i < n; i++)
            to[i] = x[i];
}

/*
 * One step of up to 32 products of a panel whose elements (i, p) and
 * (i + 1, p) lie side by side: pair q of row i goes to to[q * 16 + i], the rows
 * from 16 on to the square after.
 */
VECTOR_CLONES static void weave_step(uint32_t *to, const uint16_t *from,
                                     int64_t col, int64_t rows, int64_t k)
{
    const int64_t n = BF16_TILE_ROWS, square = n * n;

    if (rows == SIDE && k == BF16_TILE_STEP) {
        for (int64_t q = 0; q < n; q++, from += 2 * col, to += n) {
            const uint16_t *next = from + 2 * AHEAD * col;

            __builtin_prefetch(next);
            __builtin_prefetch(next + col);
            weave(to, from, from + col, n);
            weave(to + square, from + n, from + col + n, n);
        }
        return;
    }
    memset(to, 0, (size_t)squares_of(rows) * BF16_TILE_BYTES);
    for (int64_t p = 0; p < k; p += 2, from += 2 * col, to += n) {
        const uint16_t *y = p + 1 < k ? from + col : NULL;

        weave(to, from, y, MIN(rows, n));
        if (rows > n)
            weave(to + square, from + n, y ? y + n : NULL, rows - n);
    }
}

/* One whole step of so many whole panels side by side, `apart` pairs from one
 * to the next: rows of B are read along. */
VECTOR_CLONES static void weave_panels(uint32_t *to, int64_t apart,
                                       const uint16_t *from, int64_t col,
                                       int64_t panels)
{
    const int64_t n = BF16_TILE_ROWS, square = n * n;

    for (int64_t q = 0; q < n; q++, from += 2 * col, to += n)
        for (int64_t i = 0; i < panels; i++) {
            const uint16_t *x = from + i * SIDE, *y = x + col;

            __builtin_prefetch(x + 2 * AHEAD * col);
            __builtin_prefetch(y + 2 * AHEAD * col);
            weave(to + i * apart, x, y, n);
            weave(to + i * apart + square, x + n, y + n, n);
        }
}

/* The same of a panel whose elements (i, p) and (i, p + 1) lie side by side,
 * turned: pair q of row i goes to to[i * 16 + q]. */
static void copy_step(uint32_t *to, const uint16_t *from, int64_t row,
                      int64_t rows, int64_t k)
{
    if (k == BF16_TILE_STEP) {
        for (int64_t i = 0; i < rows; i++)
            memcpy(to + i * BF16_TILE_ROWS, from + i * row,
                   BF16_TILE_STEP * sizeof(*from));
        to += rows * BF16_TILE_ROWS;
        rows = squares_of(rows) * BF16_TILE_ROWS - rows;
        memset(to, 0, (size_t)rows * BF16_TILE_STEP * sizeof(*from));
        return;
    }
    memset(to, 0, (size_t)squares_of(rows) * BF16_TILE_BYTES);
    for (int64_t i = 0; i < rows; i++)
        memcpy(to + i * BF16_TILE_ROWS, from + i * row,
               (size_t)k * sizeof(*from));
}

/* The same of any panel. */
static void pick_step(uint32_t *to, const uint16_t *from, int64_t row,
                      int64_t col, int64_t rows, int64_t k)
{
    uint16_t *one = (uint16_t *)to;

    memset(to, 0, (size_t)squares_of(rows) * BF16_TILE_BYTES);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t p = 0; p < k; p++)
            one[i * BF16_TILE_STEP + p] = from[i * row + p * col];
}

static void turn_squares(uint32_t *to, const uint32_t *from, int squares)
{
    const int64_t n = BF16_TILE_ROWS;

    for (int s = 0; s < squares; s++)
        turn_32(to + s * n * n, n, from + s * n * n, n, n, n);
}

/* One panel; by_row: pairs of a row lie side by side, as A's, else as B's. */
static void pack_panel(const struct panel *p, bool by_row)
{
    _Alignas(64) uint32_t copy[SIDE * BF16_TILE_ROWS];
    int squares = squares_of(p->rows);
    uint32_t *to = p->to;

    for (int64_t at = 0; at < p->k; at += BF16_TILE_STEP) {
        const uint16_t *from = p->from + at * p->col;
        int64_t k = MIN(p->k - at, BF16_TILE_STEP);
        bool woven = p->row == 1 && p->col != 1;
        uint32_t *step = woven == by_row ? copy : to;

        if (woven)
            weave_step(step, from, p->col, p->rows, k);
        else if (p->col == 1)
            copy_step(step, from, p->row, p->rows, k);
        else
            pick_step(step, from, p->row, p->col, p->rows, k);
        if (step == copy)
            turn_squares(to, copy, squares);
        to += squares * BF16_TILE_ROWS * BF16_TILE_ROWS;
    }
}

/* ---- a block of C ---- */

struct block {
    const struct gemm *g;
    const struct bf16_tiles *t;
    enum dtype out;
    int64_t m, n; /* of this block */
    const uint16_t *a, *b;
    char *c;
    uint32_t *packed_a, *packed_b;
    float *sums; /* of the block; NULL when one step is all */
    int64_t sums_row;
};

/* Pairs of a whole panel of k products. */
static int64_t panel_pairs(int64_t k)
{
    return (k + BF16_TILE_STEP - 1) / BF16_TILE_STEP * SIDE * BF16_TILE_ROWS;
}

static int64_t panels_of(int64_t n)
{
    return (n + SIDE - 1) / SIDE;
}

/* Rounds h by w sums into C. */
VECTOR_CLONES static void round_tile(uint16_t *to, int64_t to_row,
                                     const float *from, int64_t row, int64_t h,
                                     int64_t w)
{
    for (int64_t i = 0; i < h; i++, to += to_row, from += row)
        if (w == SIDE)
            for (int64_t j = 0; j < SIDE; j++)
                to[j] = bf16_store(from[j]);
        else
            for (int64_t j = 0; j < w; j++)
                to[j] = bf16_store(from[j]);
}

static void store_tile(const struct block *b, int64_t i, int64_t j,
                       const float *sums, int64_t row)
{
    int64_t h = MIN(b->m - i, SIDE), w = MIN(b->n - j, SIDE);
    int64_t at = i * b->g->c_row + j;

    if (b->out == DT_BFLOAT16) {
        round_tile((uint16_t *)b->c + at, b->g->c_row, sums, row, h, w);
        return;
    }
    for (int64_t r = 0; r < h; r++)
        memcpy((float *)b->c + at + r * b->g->c_row, sums + r * row,
               (size_t)w * sizeof(float));
}

/* Rows [begin, end) of a block, of which A and B are packed for k products. */
static void multiply(const struct block *b, int64_t begin, int64_t end,
                     int64_t k, bool first, bool last)
{
    _Alignas(64) float sums[SIDE * SIDE];
    int64_t steps = (k + BF16_TILE_STEP - 1) / BF16_TILE_STEP;

    for (int64_t j = 0; j < b->n; j += SIDE)
        for (int64_t i = begin; i < end; i += SIDE) {
            float *c = b->sums ? b->sums + i * b->sums_row + j : sums;
            int64_t row = b->sums ? b->sums_row : SIDE;

            b->t->tile(steps, b->packed_a + (i - begin) / SIDE * panel_pairs(k),
                       squares_of(end - i),
                       b->packed_b + j / SIDE * panel_pairs(k),
                       squares_of(b->n - j), c, row, !first);
            if (last)
                store_tile(b, i, j, c, row);
        }
}

static void block_step(const struct block *b, int64_t p, int64_t k)
{
    const struct gemm *g = b->g;
    bool first = !p, last = p + k == g->k;
    int64_t j = 0;

    if (g->b_col == 1 && g->b_row != 1) {
        j = b->n / SIDE * SIDE;
        for (int64_t at = 0; at + BF16_TILE_STEP <= k; at += BF16_TILE_STEP)
            weave_panels(b->packed_b + at * SIDE / 2, panel_pairs(k),
                         b->b + (p + at) * g->b_row, g->b_row, j / SIDE);
        if (k % BF16_TILE_STEP)
            j = 0;
    }
    for (; j < b->n; j += SIDE)
        pack_panel(&(struct panel){ b->packed_b + j / SIDE * panel_pairs(k),
                                    b->b + j * g->b_col + p * g->b_row,
                                    g->b_col, g->b_row, MIN(b->n - j, SIDE),
                                    k },
                   false);
    for (int64_t begin = 0; begin < b->m; begin += M_STEP) {
        int64_t end = MIN(b->m, begin + M_STEP);

        for (int64_t i = begin; i < end; i += SIDE)
            pack_panel(&(struct panel){ b->packed_a +
                                            (i - begin) / SIDE * panel_pairs(k),
                                        b->a + i * g->a_row + p * g->a_col,
                                        g->a_row, g->a_col, MIN(end - i, SIDE),
                                        k },
                       true);
        multiply(b, begin, end, k, first, last);
    }
}

static bool block_run(struct block *b)
{
    const struct gemm *g = b->g;
    _Alignas(64) char stack[STACK_BYTES];
    int64_t k = MIN(g->k, K_STEP), sums = 0;
    size_t a_bytes, b_bytes, bytes;
    struct buffer *buf = NULL;
    char *memory = stack;

    if (g->k > k) {
        b->sums_row = panels_of(b->n) * SIDE;
        sums = panels_of(b->m) * SIDE * b->sums_row;
    }
    a_bytes = (size_t)(panels_of(MIN(b->m, M_STEP)) * panel_pairs(k)) * 4;
    b_bytes = (size_t)(panels_of(b->n) * panel_pairs(k)) * 4;
    bytes = a_bytes + b_bytes + (size_t)sums * sizeof(float);
    if (bytes > sizeof(stack)) {
        buf = buffer_new(bytes);
        if (!buf)
            return false;
        memory = (char *)buf->data;
    }
    b->packed_a = (uint32_t *)memory;
    b->packed_b = (uint32_t *)(memory + a_bytes);
    b->sums = sums ? (float *)(memory + a_bytes + b_bytes) : NULL;
    for (int64_t p = 0; p < g->k; p += k)
        block_step(b, p, MIN(g->k - p, k));
    buffer_unref(buf);
    return true;
}

/* ---- all blocks ---- */

struct work {
    const struct gemm *g;
    const struct bf16_tiles *t;
    enum dtype out;
    struct gemm_blocks cut;
    atomic_bool failed;
};

static void work_piece(void *arg, int64_t begin, int64_t end)
{
    struct work *w = arg;
    const struct gemm *g = w->g;

    if (w->t->begin)
        w->t->begin();
    for (int64_t u = begin; u < end; u++) {
        struct gemm_block at = gemm_block(g, &w->cut, u);
        struct block b = { .g = g, .t = w->t, .out = w->out };

        b.m = at.m;
        b.n = at.n;
        b.a = (const uint16_t *)g->a + at.a;
        b.b = (const uint16_t *)g->b + at.b;
        b.c = (char *)g->c +
              (size_t)(at.c + at.i * g->c_row + at.j) * dtype_size(w->out);
        if (!block_run(&b))
            atomic_store(&w->failed, true);
    }
    if (w->t->end)
        w->t->end();
}

enum mst_code gemm_bf16_run(struct op_ctx *c, enum dtype out,
                            const struct gemm *g)
{
    struct work w = { .g = g, .t = bf16_tile_best(), .out = out };

    CHECK(w.t && !g->add && g->k);
    w.cut = gemm_cut(c, g, M_BLOCK, N_BLOCK, 400);
    op_for(c, w.cut.m_count * w.cut.n_count * g->batch, w.cut.cost_ns,
           work_piece, &w);
    if (atomic_load(&w.failed))
        return op_fail(c, MST_RESOURCE_EXHAUSTED,
                       "OOM when multiplying matrices");
    return MST_OK;
}
