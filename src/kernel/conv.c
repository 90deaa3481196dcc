/*
 * Convolution and the gradient of its input.
 *
 * Both are one pass: every position of a grid gets, for each tap of a filter,
 * the channels of one pixel of a source times a matrix. Forward, the source is
 * x and the grid y. For the gradient the source is y and the grid x; with a
 * stride of s the positions of x fall into s phases in each dimension, which
 * see different taps, and each phase is a pass of its own.
 *
 * A pass is cut into units of some rows of one image, which threads take. A
 * unit copies the box of the source that it sees, with the padding as zeros,
 * so that it stays in the second-level cache, and then multiplies tiles of
 * eight pixels with panels of the filter (conv_tile.h). Where nothing is
 * padded the source is used as it lies. The filter is packed once a pass. The
 * order in which a sum is taken does not depend on the number of threads.
 */
#include "kernel/conv.h"

#include <string.h>

#include "kernel/conv_tile.h"
#include "kernel/gemm.h"
#include "kernel/window_axis.h"

#define K_STEP      768         /* products between two visits to C */
#define STRIP_BYTES (256 << 10) /* what a unit's box should not exceed */
#define PIXELS_MIN  400 /* of a unit: the filter is read once for them */

struct pass {
    const struct conv *v;
    const struct conv_tiles *t;
    size_t size; /* of an element */
    bool back;   /* the gradient of the input */
    struct window_axis ax[3];
    const char *source;
    char *dest;
    int64_t k, n;             /* channels of source and dest in a group */
    int64_t source_c, dest_c; /* and in all */
    int64_t rows;             /* of the packed filter: taps * k */
    int64_t images, lines;    /* in a unit */
    int64_t line_units, image_units;
    bool direct;    /* nothing is padded */
    int64_t box[3]; /* of a unit's strip, or the source */
    int64_t segments;
    struct conv_segment *segment;
    int64_t *a_at, *c_at; /* of the pixels of a unit */
    char *packed;
    struct buffer *memory;
    atomic_bool failed;
};

/* ---- boxes ---- */

/* One line of w pixels from `start` on, `have` of them there. */
static void strip_line(char *to, int64_t w, const char *from, int64_t have,
                       int64_t start, size_t bytes)
{
    int64_t begin = MIN(MAX(-start, 0), w);
    int64_t end = MAX(MIN(have - start, w), begin);

    memset(to, 0, (size_t)begin * bytes);
    if (end > begin)
        memcpy(to + (size_t)begin * bytes,
               from + (size_t)(start + begin) * bytes,
               (size_t)(end - begin) * bytes);
    memset(to + (size_t)end * bytes, 0, (size_t)(w - end) * bytes);
}

void conv_strip(char *to, const int64_t n[3], const char *from,
                const int64_t dims[3], const int64_t start[3], size_t bytes)
{
    size_t line = (size_t)n[2] * bytes;

    for (int64_t d = 0; d < n[0]; d++)
        for (int64_t h = 0; h < n[1]; h++, to += line) {
            int64_t sd = start[0] + d, sh = start[1] + h;

            if (sd < 0 || sd >= dims[0] || sh < 0 || sh >= dims[1])
                memset(to, 0, line);
            else
                strip_line(to, n[2],
                           from +
                               (size_t)((sd * dims[1] + sh) * dims[2]) * bytes,
                           dims[2], start[2], bytes);
        }
}

/* ---- the plan of a pass ---- */

/* The source's pixels are used as they lie if all that are seen are there. */
static bool is_direct(const struct pass *p)
{
    for (int i = 0; i < 3; i++) {
        const struct window_axis *a = &p->ax[i];

        if (a->start < 0 ||
            a->start + (a->count - 1) * a->step + a->reach > a->source)
            return false;
    }
    return true;
}

static void choose_units(struct pass *p, const struct op_ctx *c)
{
    struct pool *pool = c->node->env ? c->node->env->pool : NULL;
    int64_t threads = pool ? pool_threads(pool) : 1;
    int64_t want = threads > 1 ? 2 * threads : 1, batch;
    const struct window_axis *d = &p->ax[0], *h = &p->ax[1], *w = &p->ax[2];
    double line = (double)((w->count - 1) * w->step + w->reach) *
                  (double)(p->source_c * (int64_t)p->size) * (double)d->reach;

    batch = p->v->fit.batch;
    p->lines = h->count;
    while (
        p->lines > 1 &&
        (line * (double)((p->lines - 1) * h->step + h->reach) > STRIP_BYTES ||
         batch * d->count * ((h->count + p->lines - 1) / p->lines) < want))
        p->lines = (p->lines + 1) / 2;
    p->images = 1;
    if (p->lines == h->count && w->count * h->count < PIXELS_MIN)
        p->images = MIN(PIXELS_MIN / (w->count * h->count), batch);
    while (p->images > 1 && batch / p->images < want)
        p->images /= 2;
    p->line_units = (h->count + p->lines - 1) / p->lines;
    p->image_units = (batch + p->images - 1) / p->images;
    p->direct = is_direct(p);
    p->box[0] = p->direct ? d->source : d->reach;
    p->box[1] = p->direct ? h->source : (p->lines - 1) * h->step + h->reach;
    p->box[2] = p->direct ? w->source : (w->count - 1) * w->step + w->reach;
}

/* Taps that lie side by side are one segment; long ones are cut. */
static int64_t make_segments(const struct pass *p, struct conv_segment *to)
{
    const struct window_axis *d = &p->ax[0], *h = &p->ax[1], *w = &p->ax[2];
    bool join = w->off_step == 1 && p->k == p->source_c;
    int64_t runs = join ? MIN(w->taps, 1) : w->taps;
    int64_t length = join ? w->taps * p->k : p->k, b = 0, n = 0;

    for (int64_t i = 0; i < d->taps; i++)
        for (int64_t j = 0; j < h->taps; j++)
            for (int64_t r = 0; r < runs; r++) {
                int64_t line =
                    (i * d->off_step * p->box[1] + j * h->off_step) * p->box[2];
                int64_t a = (line + r * w->off_step) * p->source_c;

                for (int64_t at = 0; at < length; at += K_STEP, n++) {
                    int64_t k = MIN(length - at, K_STEP);

                    if (to)
                        to[n] = (struct conv_segment){ a + at, b + at, k };
                }
                b += length;
            }
    return n;
}

static void make_pixels(const struct pass *p)
{
    const struct window_axis *h = &p->ax[1], *w = &p->ax[2];
    int64_t box = p->box[0] * p->box[1] * p->box[2] * p->source_c;
    int64_t dest = p->ax[0].dest * h->dest * w->dest * p->dest_c, n = 0;

    for (int64_t i = 0; i < p->images; i++)
        for (int64_t y = 0; y < p->lines; y++)
            for (int64_t x = 0; x < w->count; x++, n++) {
                p->a_at[n] = i * box + (y * h->step * p->box[2] + x * w->step) *
                                           p->source_c;
                p->c_at[n] =
                    i * dest +
                    (y * h->out_step * w->dest + x * w->out_step) * p->dest_c;
            }
}

/* ---- the packed filter: [group][panel][row][column of the panel] ---- */

static const char *filter_at(const struct pass *p, int64_t tap, int64_t channel,
                             int64_t filter)
{
    int64_t depth = p->back ? p->n : p->k;

    return (const char *)p->v->w +
           (size_t)((tap * depth + channel) * p->v->filters + filter) * p->size;
}

/* Columns [j, j + n) of group g for one tap, into rows of w columns. */
static void pack_tap(const struct pass *p, char *to, int64_t w, int64_t tap,
                     int64_t g, int64_t j, int64_t n)
{
    if (!p->back) {
        for (int64_t i = 0; i < p->k; i++)
            memcpy(to + (size_t)(i * w) * p->size,
                   filter_at(p, tap, i, g * p->n + j), (size_t)n * p->size);
        return;
    }
    for (int64_t x = 0; x < n; x++) {
        const char *from = filter_at(p, tap, j + x, g * p->k);

        if (p->size == 4)
            for (int64_t i = 0; i < p->k; i++)
                ((uint32_t *)to)[i * w + x] = ((const uint32_t *)from)[i];
        else
            for (int64_t i = 0; i < p->k; i++)
                ((uint64_t *)to)[i * w + x] = ((const uint64_t *)from)[i];
    }
}

static int64_t panels_of(const struct pass *p)
{
    return (p->n + 2 * p->t->lanes - 1) / (2 * p->t->lanes);
}

static void pack_panels(void *arg, int64_t begin, int64_t end)
{
    const struct pass *p = arg;
    int64_t wide = 2 * p->t->lanes, panels = panels_of(p);

    for (int64_t u = begin; u < end; u++) {
        int64_t g = u / panels, j = u % panels * wide;
        int64_t n = MIN(p->n - j, wide), w = n > p->t->lanes ? wide : wide / 2;
        char *to = p->packed + (size_t)(u * p->rows * wide) * p->size;

        if (n < w)
            memset(to, 0, (size_t)(p->rows * w) * p->size);
        for (int64_t t = 0; t < p->rows / p->k; t++) {
            int64_t tw = t % p->ax[2].taps, rest = t / p->ax[2].taps;
            int64_t th = rest % p->ax[1].taps, td = rest / p->ax[1].taps;
            int64_t tap = p->ax[0].tap + td * p->ax[0].tap_step;

            tap = tap * p->ax[1].size + p->ax[1].tap + th * p->ax[1].tap_step;
            tap = tap * p->ax[2].size + p->ax[2].tap + tw * p->ax[2].tap_step;
            pack_tap(p, to + (size_t)(t * p->k * w) * p->size, w, tap, g, j, n);
        }
    }
}

/* ---- units ---- */

/* All pixels of a unit, for one group of channels. a: its box, c: where its
 * first pixel goes. */
static void unit_group(const struct pass *p, int64_t g, int64_t pixels,
                       const char *a, char *c)
{
    int64_t wide = 2 * p->t->lanes, panels = panels_of(p), s = 0, e;

    a += (size_t)(g * p->k) * p->size;
    c += (size_t)(g * p->n) * p->size;
    do {
        int64_t k = 0;

        for (e = s; e < p->segments && k + p->segment[e].k <= K_STEP; e++)
            k += p->segment[e].k;
        for (int64_t u = 0; u < panels; u++) {
            int64_t n = MIN(p->n - u * wide, wide), h;
            const char *b =
                p->packed +
                (size_t)((g * panels + u) * p->rows * wide) * p->size;

            for (int64_t i = 0; i < pixels; i += h) {
                int x = conv_height_index(p->t, pixels - i);

                h = p->t->height[x];
                conv_tile(p->t, p->size, x, n, p->segment + s, e - s, a,
                          p->a_at + i, 1, b, n > p->t->lanes ? wide : wide / 2,
                          c + (size_t)(u * wide) * p->size, p->c_at + i, s > 0);
            }
        }
        s = e;
    } while (s < p->segments);
}

/* A unit: images from n on, position d, lines from y on. */
static void run_unit(const struct pass *p, char *strip, int64_t n, int64_t d,
                     int64_t y)
{
    const struct window_axis *ax = p->ax;
    int64_t images = MIN(p->v->fit.batch - n, p->images);
    int64_t lines = MIN(ax[1].count - y, p->lines);
    const int64_t dims[3] = { ax[0].source, ax[1].source, ax[2].source };
    const int64_t start[3] = { ax[0].start + d * ax[0].step,
                               ax[1].start + y * ax[1].step, ax[2].start };
    size_t pixel = (size_t)p->source_c * p->size;
    size_t image = (size_t)(dims[0] * dims[1] * dims[2]) * pixel;
    size_t box = (size_t)(p->box[0] * p->box[1] * p->box[2]) * pixel;
    const char *a = p->source + (size_t)n * image;
    char *c = p->dest;

    if (p->direct) {
        a += (size_t)((start[0] * dims[1] + start[1]) * dims[2] + start[2]) *
             pixel;
    } else {
        for (int64_t i = 0; i < images; i++)
            conv_strip(strip + (size_t)i * box, p->box, a + (size_t)i * image,
                       dims, start, pixel);
        a = strip;
    }
    c += (size_t)((((n * ax[0].dest + ax[0].out + d * ax[0].out_step) *
                        ax[1].dest +
                    ax[1].out + y * ax[1].out_step) *
                       ax[2].dest +
                   ax[2].out) *
                  p->dest_c) *
         p->size;
    for (int64_t g = 0; g < p->v->groups; g++)
        unit_group(p, g, images * lines * ax[2].count, a, c);
}

static void run_units(void *arg, int64_t begin, int64_t end)
{
    struct pass *p = arg;
    struct buffer *strip = NULL;

    if (!p->direct) {
        strip = buffer_new((size_t)(p->images * p->box[0] * p->box[1] *
                                    p->box[2] * p->source_c) *
                           p->size);
        if (!strip) {
            atomic_store(&p->failed, true);
            return;
        }
    }
    for (int64_t u = begin; u < end; u++) {
        int64_t y = u % p->line_units * p->lines, rest = u / p->line_units;

        run_unit(p, strip ? (char *)strip->data : NULL,
                 rest / p->ax[0].count * p->images, rest % p->ax[0].count, y);
    }
    buffer_unref(strip);
}

static enum mst_code pass_memory(struct op_ctx *c, struct pass *p)
{
    int64_t pixels = p->images * p->lines * p->ax[2].count, wide, panels;
    size_t seg, table, packed;

    wide = 2 * p->t->lanes;
    panels = panels_of(p) * p->v->groups;
    p->segments = make_segments(p, NULL);
    seg = (size_t)p->segments * sizeof(*p->segment);
    table = (size_t)pixels * sizeof(*p->a_at);
    packed = (size_t)(panels * wide * p->rows) * p->size;
    p->memory = buffer_new(packed + seg + 2 * table);
    if (!p->memory)
        return op_fail(c, MST_RESOURCE_EXHAUSTED, "OOM in a convolution");
    p->packed = (char *)p->memory->data;
    p->segment = (struct conv_segment *)(p->packed + packed);
    p->a_at = (int64_t *)((char *)p->segment + seg);
    p->c_at = p->a_at + pixels;
    make_segments(p, p->segment);
    make_pixels(p);
    return MST_OK;
}

static enum mst_code run_pass(struct op_ctx *c, struct pass *p)
{
    int64_t pixels, taps;
    enum mst_code rc;

    if (!p->ax[0].count || !p->ax[1].count || !p->ax[2].count)
        return MST_OK;
    taps = p->ax[0].taps * p->ax[1].taps * p->ax[2].taps;
    p->rows = taps * p->k;
    choose_units(p, c);
    rc = pass_memory(c, p);
    if (rc)
        return rc;
    if (p->rows)
        op_for(c, panels_of(p) * p->v->groups,
               0.3 * (double)(p->rows * 2 * p->t->lanes), pack_panels, p);
    pixels = p->images * p->lines * p->ax[2].count;
    op_for(c, p->image_units * p->ax[0].count * p->line_units,
           20 + (double)pixels * (double)p->rows * (double)p->dest_c / 25,
           run_units, p);
    buffer_unref(p->memory);
    if (atomic_load(&p->failed))
        return op_fail(c, MST_RESOURCE_EXHAUSTED, "OOM in a convolution");
    return MST_OK;
}

/* ---- what is a product of two matrices ---- */

/* A window of one pixel, or one that is the whole image. */
static bool is_product(const struct conv *v)
{
    bool point = v->groups == 1, whole = v->groups == 1;

    for (int i = 0; i < 3; i++) {
        const struct window_dim *d = &v->fit.dim[i];

        point = point && d->size == 1 && d->stride == 1 && !d->before &&
                d->in == d->out;
        whole = whole && d->out == 1 && d->size == d->in && !d->before &&
                d->dilation == 1;
    }
    return point || whole;
}

static enum mst_code product(struct op_ctx *c, const struct conv *v, bool back)
{
    struct gemm g = { .m = v->fit.batch, .k = v->fit.channels, .batch = 1 };

    for (int i = 0; i < 3; i++) {
        g.m *= v->fit.dim[i].out;
        g.k *= v->fit.dim[i].size;
    }
    g.n = v->filters;
    if (back) {
        g.n = g.k;
        g.k = v->filters;
    }
    g.a = back ? v->y : v->x;
    g.b = v->w;
    g.c = v->out;
    g.a_row = g.k;
    g.a_col = 1;
    g.b_row = back ? 1 : g.n;
    g.b_col = back ? g.k : 1;
    g.c_row = g.n;
    return gemm_run(c, v->dtype, &g);
}

/* ---- both ways ---- */

static struct pass new_pass(const struct conv *v, bool back)
{
    struct pass p = { .v = v,
                      .t = conv_tiles_of(v->dtype),
                      .size = dtype_size(v->dtype),
                      .back = back,
                      .source = back ? v->y : v->x,
                      .dest = v->out };

    p.source_c = back ? v->filters : v->fit.channels;
    p.dest_c = back ? v->fit.channels : v->filters;
    p.k = p.source_c / v->groups;
    p.n = p.dest_c / v->groups;
    return p;
}

enum mst_code conv_forward(struct op_ctx *c, const struct conv *v)
{
    struct pass p = new_pass(v, false);

    if (is_product(v))
        return product(c, v, false);
    for (int i = 0; i < 3; i++)
        window_axis_forward(&p.ax[i], &v->fit.dim[i]);
    return run_pass(c, &p);
}

enum mst_code conv_back_input(struct op_ctx *c, const struct conv *v)
{
    const struct window_dim *d = v->fit.dim;
    enum mst_code rc = MST_OK;

    if (is_product(v))
        return product(c, v, true);
    for (int64_t i = 0; i < MIN(d[0].stride, d[0].in) && !rc; i++)
        for (int64_t j = 0; j < MIN(d[1].stride, d[1].in) && !rc; j++)
            for (int64_t k = 0; k < MIN(d[2].stride, d[2].in) && !rc; k++) {
                struct pass p = new_pass(v, true);

                window_axis_back(&p.ax[0], &d[0],
                                 (i + d[0].before) % d[0].stride);
                window_axis_back(&p.ax[1], &d[1],
                                 (j + d[1].before) % d[1].stride);
                window_axis_back(&p.ax[2], &d[2],
                                 (k + d[2].before) % d[2].stride);
                rc = run_pass(c, &p);
            }
    return rc;
}
