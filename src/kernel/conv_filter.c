/*
 * The gradient of a convolution's filter: for each tap and channel (a row of
 * the result) and each filter (a column), the sum over all pixels of the input
 * under the tap times the gradient of the output there.
 *
 * The images are gone through in chunks of some lines, of which both sides
 * stay in the cache; each chunk adds its products to the tiles of the result.
 * Where lines are short, a chunk is pixels of several images, and those of the
 * input are gathered for each tap, so that the loops stay long.
 * Work is split by rows, and by groups of images that have a result of their
 * own, which are added in the end. The split depends on the shapes alone, so
 * the sums do not change with the number of threads.
 */
#include <string.h>

#include "kernel/conv.h"
#include "kernel/conv_tile.h"

#define CHUNK_PIXELS 512
#define ROWS_MIN     128 /* of a piece of work */
#define ROWS_FEW     256 /* of one that has all images */
#define PIECES       16
#define SMALL_BYTES  (512 << 10) /* a result of which there may be many */
#define LINE_MIN     16          /* shorter ones are gathered */

struct filter_pass {
    const struct conv *v;
    const struct conv_tiles *t;
    size_t size;
    int64_t depth, columns;    /* channels and filters of a group */
    int64_t rows;              /* of the result: taps * depth */
    int64_t row_parts, groups; /* how the work is split: by rows, images */
    int64_t part_rows;
    int64_t lines; /* of the output in a chunk */
    bool direct, gathered;
    int64_t box[3];
    int64_t *a_at, *c_at; /* of each row */
    struct conv_segment *segment;
    char *partial; /* a result for each group of images but the first */
    struct buffer *memory;
    atomic_bool failed;
};

static bool is_direct(const struct conv *v)
{
    for (int i = 0; i < 3; i++) {
        const struct window_dim *d = &v->fit.dim[i];

        if (d->before ||
            (d->out - 1) * d->stride + (d->size - 1) * d->dilation >= d->in)
            return false;
    }
    return true;
}

/* Each part of the rows reads all of its images, so images are split first, as
 * long as the results that are added up in the end are small. Parts of a large
 * one are of whole taps, if they can: a tap's pixels are gathered for each. */
static void split(struct filter_pass *p)
{
    int64_t rows = ROWS_MIN;

    if ((size_t)(p->rows * p->v->filters) * p->size <= SMALL_BYTES) {
        p->groups = MAX(MIN(p->v->fit.batch, PIECES), 1);
        p->row_parts = MIN(MAX(p->rows / ROWS_MIN, 1), PIECES / p->groups);
        rows = MAX((p->rows + p->row_parts - 1) / p->row_parts, 1);
    } else {
        rows = p->depth >= ROWS_FEW ? p->depth / (p->depth / ROWS_FEW)
                                    : ROWS_FEW / p->depth * p->depth;
        rows = MAX(rows, p->rows / PIECES);
        p->groups = 1;
    }
    p->part_rows = (rows + 7) / 8 * 8;
    p->row_parts = MAX((p->rows + p->part_rows - 1) / p->part_rows, 1);
}

static void plan(struct filter_pass *p)
{
    const struct window_dim *d = p->v->fit.dim;

    p->depth = p->v->fit.channels / p->v->groups;
    p->columns = p->v->filters / p->v->groups;
    p->rows = d[0].size * d[1].size * d[2].size * p->depth;
    split(p);
    p->lines = MIN(MAX(CHUNK_PIXELS / d[2].out, 1), d[1].out);
    p->gathered = d[2].out < LINE_MIN && p->v->filters >= LINE_MIN;
    p->direct = is_direct(p->v);
    p->box[0] = p->direct ? d[0].in : (d[0].size - 1) * d[0].dilation + 1;
    p->box[1] = d[1].in;
    p->box[2] = d[2].in;
    if (!p->direct)
        for (int i = 1; i < 3; i++)
            p->box[i] = ((i == 1 ? p->lines : d[2].out) - 1) * d[i].stride +
                        (d[i].size - 1) * d[i].dilation + 1;
}

static void make_rows(const struct filter_pass *p)
{
    const struct window_dim *d = p->v->fit.dim;
    int64_t n = 0;

    for (int64_t i = 0; i < d[0].size; i++)
        for (int64_t j = 0; j < d[1].size; j++)
            for (int64_t k = 0; k < d[2].size; k++)
                for (int64_t ch = 0; ch < p->depth; ch++, n++) {
                    int64_t at =
                        i * d[0].dilation * p->box[1] + j * d[1].dilation;

                    at = at * p->box[2] + k * d[2].dilation;
                    p->a_at[n] =
                        p->gathered ? ch : at * p->v->fit.channels + ch;
                    p->c_at[n] = n * p->v->filters;
                }
    for (int64_t y = 0; y < p->lines; y++)
        p->segment[y] = (struct conv_segment){
            .a = y * d[1].stride * p->box[2] * p->v->fit.channels,
            .b = y * d[2].out,
            .k = d[2].out,
        };
}

static enum mst_code pass_memory(struct op_ctx *c, struct filter_pass *p)
{
    size_t table = (size_t)p->rows * sizeof(*p->a_at);
    size_t seg = (size_t)p->lines * sizeof(*p->segment);
    size_t parts =
        (size_t)(p->rows * p->v->filters) * p->size * (size_t)(p->groups - 1);

    parts = (parts + 63) & ~(size_t)63; /* what follows is wider */
    p->memory = buffer_new(parts + 2 * table + seg);
    if (!p->memory)
        return op_fail(c, MST_RESOURCE_EXHAUSTED, "OOM in a convolution");
    p->partial = (char *)p->memory->data;
    p->a_at = (int64_t *)(p->partial + parts);
    p->c_at = p->a_at + p->rows;
    p->segment = (struct conv_segment *)(p->c_at + p->rows);
    make_rows(p);
    return MST_OK;
}

/* One piece of work, and its scratch memory. */
struct piece {
    const struct filter_pass *p;
    int64_t begin, end; /* rows */
    char *out;
    char *strip, *tail; /* the input's box; columns that are no whole vector */
    const struct conv_segment *segment;
    int64_t segments, a_col;
};

/* Columns that a vector would read beyond of: copied, with zeros behind. */
static void pack_tail(const struct piece *w, const char *y, int64_t pixels,
                      int64_t first, int64_t n)
{
    const struct filter_pass *p = w->p;
    size_t lane = (size_t)p->t->lanes * p->size;

    memset(w->tail, 0, (size_t)pixels * lane);
    for (int64_t i = 0; i < pixels; i++)
        memcpy(w->tail + (size_t)i * lane,
               y + (size_t)(i * p->v->filters + first) * p->size,
               (size_t)n * p->size);
}

static void chunk_group(const struct piece *w, const char *a, const char *y,
                        int64_t pixels, int64_t g, bool add)
{
    const struct filter_pass *p = w->p;
    int64_t lanes = p->t->lanes, n, h, first = g * p->columns;

    a += (size_t)(g * p->depth) * p->size;
    for (int64_t j = 0; j < p->columns; j += n) {
        const char *b = y + (size_t)(first + j) * p->size;
        int64_t b_row = p->v->filters;

        n = p->columns - j >= 2 * lanes ? 2 * lanes : lanes;
        if (n > p->columns - j) {
            n = p->columns - j;
            pack_tail(w, y, pixels, first + j, n);
            b = w->tail;
            b_row = lanes;
        }
        for (int64_t i = w->begin; i < w->end; i += h) {
            int x = conv_height_index(p->t, w->end - i);

            h = p->t->height[x];
            conv_tile(p->t, p->size, x, n, w->segment, w->segments, a,
                      p->a_at + i, w->a_col, b, b_row,
                      w->out + (size_t)(first + j) * p->size, p->c_at + i, add);
        }
    }
}

/* Lines [y, y + lines) of slice d of image n. */
static void run_chunk(struct piece *w, int64_t n, int64_t d, int64_t y,
                      int64_t lines, bool add)
{
    const struct filter_pass *p = w->p;
    const struct window_dim *dim = p->v->fit.dim;
    const int64_t dims[3] = { dim[0].in, dim[1].in, dim[2].in };
    const int64_t start[3] = { d * dim[0].stride - dim[0].before,
                               y * dim[1].stride - dim[1].before,
                               -dim[2].before };
    size_t pixel = (size_t)p->v->fit.channels * p->size;
    const char *a = (const char *)p->v->x +
                    (size_t)(n * dims[0] * dims[1] * dims[2]) * pixel;
    const char *b = (const char *)p->v->y +
                    (size_t)(((n * dim[0].out + d) * dim[1].out + y) *
                             dim[2].out * p->v->filters) *
                        p->size;

    if (p->direct) {
        a += (size_t)((start[0] * dims[1] + start[1]) * dims[2]) * pixel;
    } else {
        conv_strip(w->strip, p->box, a, dims, start, pixel);
        a = w->strip;
    }
    w->segment = p->segment;
    w->segments = lines;
    w->a_col = dim[2].stride * p->v->fit.channels;
    for (int64_t g = 0; g < p->v->groups; g++)
        chunk_group(w, a, b, lines * dim[2].out, g, add);
}

/* ---- short lines ---- */

/* The pixels of the input that tap t has at outputs [begin, begin + n). */
static void gather(const struct piece *w, int64_t t, int64_t begin, int64_t n)
{
    const struct window_dim *d = w->p->v->fit.dim;
    size_t pixel = (size_t)w->p->v->fit.channels * w->p->size;
    int64_t k[3] = { t / d[2].size / d[1].size, t / d[2].size % d[1].size,
                     t % d[2].size };
    char *to = w->strip;

    for (int64_t i = begin; i < begin + n; i++, to += pixel) {
        int64_t rest = i / d[2].out, at[3];
        bool inside = true;

        at[2] = i % d[2].out;
        at[1] = rest % d[1].out;
        at[0] = rest / d[1].out % d[0].out;
        rest = rest / d[1].out / d[0].out;
        for (int j = 0; j < 3; j++) {
            at[j] = at[j] * d[j].stride - d[j].before + k[j] * d[j].dilation;
            inside = inside && at[j] >= 0 && at[j] < d[j].in;
            rest = rest * d[j].in + at[j];
        }
        if (inside)
            memcpy(to, (const char *)w->p->v->x + (size_t)rest * pixel, pixel);
        else
            memset(to, 0, pixel);
    }
}

/* Outputs [begin, end) of all, tap by tap; rows of one tap follow each other.
 */
static void run_gathered(struct piece *w, int64_t begin, int64_t end)
{
    const struct filter_pass *p = w->p;
    int64_t first = w->begin, last = w->end, at = begin;

    for (; at < end; at += CHUNK_PIXELS) {
        int64_t n = MIN(end - at, CHUNK_PIXELS);
        const char *y =
            (const char *)p->v->y + (size_t)(at * p->v->filters) * p->size;
        struct conv_segment all = { .k = n };

        w->segment = &all;
        w->segments = 1;
        w->a_col = p->v->fit.channels;
        for (int64_t t = first / p->depth; t * p->depth < last; t++) {
            gather(w, t, at, n);
            w->begin = MAX(first, t * p->depth);
            w->end = MIN(last, (t + 1) * p->depth);
            for (int64_t g = 0; g < p->v->groups; g++)
                chunk_group(w, w->strip, y, n, g, at > begin);
        }
    }
    w->begin = first;
    w->end = last;
}

static void run_images(struct piece *w, int64_t begin, int64_t end)
{
    const struct filter_pass *p = w->p;
    const struct window_dim *dim = p->v->fit.dim;
    int64_t image = dim[0].out * dim[1].out * dim[2].out;
    bool add = false;

    if (p->gathered) {
        run_gathered(w, begin * image, end * image);
        return;
    }
    for (int64_t n = begin; n < end; n++)
        for (int64_t d = 0; d < dim[0].out; d++)
            for (int64_t y = 0; y < dim[1].out; y += p->lines) {
                run_chunk(w, n, d, y, MIN(dim[1].out - y, p->lines), add);
                add = true;
            }
}

static void run_pieces(void *arg, int64_t begin, int64_t end)
{
    struct filter_pass *p = arg;
    size_t strip =
        (size_t)(p->box[0] * p->box[1] * p->box[2] * p->v->fit.channels) *
        p->size;
    size_t tail =
        (size_t)(p->lines * p->v->fit.dim[2].out * p->t->lanes) * p->size;
    size_t part = (size_t)(p->rows * p->v->filters) * p->size;
    struct buffer *b;

    if (p->gathered) {
        strip = (size_t)(CHUNK_PIXELS * p->v->fit.channels) * p->size;
        tail = (size_t)(CHUNK_PIXELS * p->t->lanes) * p->size;
    }
    strip = p->direct && !p->gathered ? 0 : (strip + 63) & ~(size_t)63;
    b = buffer_new(strip + tail);
    if (!b) {
        atomic_store(&p->failed, true);
        return;
    }
    for (int64_t u = begin; u < end; u++) {
        int64_t g = u / p->row_parts, r = u % p->row_parts;
        int64_t per = p->part_rows;
        int64_t batch = p->v->fit.batch;
        struct piece w = { .p = p,
                           .begin = r * per,
                           .end = MIN((r + 1) * per, p->rows),
                           .strip = (char *)b->data,
                           .tail = (char *)b->data + strip };

        w.out = g ? p->partial + part * (size_t)(g - 1) : p->v->out;
        run_images(&w, batch * g / p->groups, batch * (g + 1) / p->groups);
    }
    buffer_unref(b);
}

#define ADD_UP(name, T)                                                        \
    VECTOR_CLONES static void name(T *to, const T *from, int64_t n)            \
    {                                                                          \
        for (int64_t i = 0; i < n; i++)                                        \
            to[i] += from[i];                                                  \
    }
ADD_UP(add_float, float)
ADD_UP(add_double, double)

static void add_parts(void *arg, int64_t begin, int64_t end)
{
    const struct filter_pass *p = arg;
    int64_t n = p->rows * p->v->filters;

    for (int64_t g = 0; g < p->groups - 1; g++) {
        if (p->v->dtype == DT_FLOAT)
            add_float((float *)p->v->out + begin,
                      (float *)p->partial + g * n + begin, end - begin);
        else
            add_double((double *)p->v->out + begin,
                       (double *)p->partial + g * n + begin, end - begin);
    }
}

enum mst_code conv_back_filter(struct op_ctx *c, const struct conv *v)
{
    struct filter_pass p = { .v = v,
                             .t = conv_tiles_of(v->dtype),
                             .size = dtype_size(v->dtype) };
    const struct window_dim *d = v->fit.dim;
    double products;
    enum mst_code rc;

    plan(&p);
    rc = pass_memory(c, &p);
    if (rc)
        return rc;
    products = (double)(d[0].out * d[1].out * d[2].out) *
               (double)(v->fit.batch * p.rows) * (double)p.columns *
               (double)v->groups;
    op_for(c, p.groups * p.row_parts,
           20 + products / 25 / (double)(p.groups * p.row_parts), run_pieces,
           &p);
    if (p.groups > 1)
        op_for(c, p.rows * v->filters, 0.2 * (double)p.groups, add_parts, &p);
    buffer_unref(p.memory);
    if (atomic_load(&p.failed))
        return op_fail(c, MST_RESOURCE_EXHAUSTED, "OOM in a convolution");
    return MST_OK;
}
