/*
 * Whole recurrent cells as one op: LSTMBlockCell, BlockLSTM (all times at
 * once), GRUBlockCell, and their gradients, in float; half is widened to it.
 *
 * Letters: T times, B sequences, I inputs, C cells. Weights are [I + C, gates],
 * the first I rows for the input and the others for the state before. A row of
 * LSTM gates is 4 * C: input, cell, forget, output; in BlockLSTMV2 the forget
 * gate comes before the cell.
 */
#include <string.h>

#include "base/mem.h"
#include "kernel/gemm.h"
#include "kernel/types.h"
#include "kernel/widen.h"

struct rnn_node {
    float forget_bias, clip;
    bool peephole, forget_first;
};

static enum mst_code rnn_init(struct op_node *n, struct status *st)
{
    struct rnn_node *s = ARENA_NEW(n->arena, struct rnn_node);
    const struct attr *bias = op_attr(n, "forget_bias");
    const struct attr *clip = op_attr(n, "cell_clip");
    const struct attr *peephole = op_attr(n, "use_peephole");

    s->forget_bias = bias ? bias->value->f : 0;
    s->clip = clip ? clip->value->f : 0;
    s->peephole = peephole && peephole->value->b;
    s->forget_first = strstr(n->def->name, "V2") != NULL;
    n->state = s;
    return MST_OK;
}

/* ---- shapes and products ---- */

/* Input i must be of that shape. */
static enum mst_code want(struct op_ctx *c, int i, int ndim, int64_t a,
                          int64_t b, int64_t d)
{
    const struct tensor *t = op_in(c, i);
    const int64_t dims[3] = { a, b, d };
    char have[SHAPE_TEXT_MAX], need[SHAPE_TEXT_MAX];

    if (t->ndim == ndim && !memcmp(t->dims, dims, (size_t)ndim * sizeof(*dims)))
        return MST_OK;
    return op_fail(c, MST_INVALID_ARGUMENT,
                   "Expected input %d of %s to be of shape %s, got %s", i,
                   c->node->def->name, shape_text(ndim, dims, need),
                   tensor_shape_text(t, have));
}

/* out [m, n] (+)= a [m, k] times rows [from, from + k) of w [.., n]. */
static enum mst_code times(struct op_ctx *c, float *out, const float *a,
                           const float *w, int64_t from, int64_t m, int64_t k,
                           int64_t n, bool add)
{
    struct gemm g = { .m = m,
                      .n = n,
                      .k = k,
                      .a = a,
                      .b = w + from * n,
                      .a_row = k,
                      .a_col = 1,
                      .b_row = n,
                      .b_col = 1,
                      .c = out,
                      .c_row = n,
                      .add = add,
                      .batch = 1 };

    return gemm_run(c, DT_FLOAT, &g);
}

/* out [m, n] = a [m, k] times the transpose of rows [from, from + n) of
 * w [.., k]. */
static enum mst_code times_turned(struct op_ctx *c, float *out, const float *a,
                                  const float *w, int64_t from, int64_t m,
                                  int64_t k, int64_t n, bool add)
{
    struct gemm g = { .m = m,
                      .n = n,
                      .k = k,
                      .a = a,
                      .b = w + from * k,
                      .a_row = k,
                      .a_col = 1,
                      .b_row = 1,
                      .b_col = k,
                      .c = out,
                      .c_row = n,
                      .add = add,
                      .batch = 1 };

    return gemm_run(c, DT_FLOAT, &g);
}

/* Rows [from, from + m) of out [.., n] += the transpose of a [k, m] times
 * b [k, n]. */
static enum mst_code turned_times(struct op_ctx *c, float *out, int64_t from,
                                  const float *a, const float *b, int64_t m,
                                  int64_t k, int64_t n)
{
    struct gemm g = { .m = m,
                      .n = n,
                      .k = k,
                      .a = a,
                      .b = b,
                      .a_row = 1,
                      .a_col = m,
                      .b_row = n,
                      .b_col = 1,
                      .c = out + from * n,
                      .c_row = n,
                      .add = true,
                      .batch = 1 };

    return gemm_run(c, DT_FLOAT, &g);
}

static float sigmoid(float x)
{
    return 1 / (1 + expf(-x));
}

/* ---- one step of an LSTM ---- */

struct lstm {
    const struct rnn_node *s;
    int64_t batch, inputs, cells;
    const float *w, *wci, *wcf, *wco, *b;
};

/* What a step makes of each cell, [B, C] each, in the order of outputs. */
struct lstm_values {
    float *i, *cs, *f, *o, *ci, *co, *h;
};

static enum mst_code lstm_step(struct op_ctx *c, const struct lstm *l,
                               const float *x, const float *cs_prev,
                               const float *h_prev, float *gates,
                               const struct lstm_values *v)
{
    int64_t n = l->cells, cell = l->s->forget_first ? 2 * n : n;
    int64_t forget = l->s->forget_first ? n : 2 * n;
    bool peep = l->s->peephole;
    enum mst_code rc =
        times(c, gates, x, l->w, 0, l->batch, l->inputs, 4 * n, false);

    if (!rc)
        rc = times(c, gates, h_prev, l->w, l->inputs, l->batch, n, 4 * n, true);
    for (int64_t k = 0; k < l->batch * n && !rc; k++) {
        int64_t j = k % n;
        const float *g = gates + k / n * 4 * n + j, *b = l->b + j;
        float cs, old = cs_prev[k];

        v->i[k] = sigmoid(g[0] + b[0] + (peep ? old * l->wci[j] : 0));
        v->ci[k] = tanhf(g[cell] + b[cell]);
        v->f[k] = sigmoid(g[forget] + b[forget] + l->s->forget_bias +
                          (peep ? old * l->wcf[j] : 0));
        cs = v->i[k] * v->ci[k] + v->f[k] * old;
        if (l->s->clip > 0)
            cs = cs > l->s->clip    ? l->s->clip
                 : cs < -l->s->clip ? -l->s->clip
                                    : cs;
        v->cs[k] = cs;
        v->co[k] = tanhf(cs);
        v->o[k] = sigmoid(g[3 * n] + b[3 * n] + (peep ? cs * l->wco[j] : 0));
        v->h[k] = v->o[k] * v->co[k];
    }
    return rc;
}

/* Of the gates [B, 4 * C], and of the cells before into cs_grad; weights of
 * peepholes are added to. */
static void lstm_back(const struct lstm *l, const struct lstm_values *v,
                      const float *cs_prev, const float *h_grad, float *cs_grad,
                      float *gates, float *const peep_grad[3])
{
    int64_t n = l->cells, cell = l->s->forget_first ? 2 * n : n;
    int64_t forget = l->s->forget_first ? n : 2 * n;

    for (int64_t k = 0; k < l->batch * n; k++) {
        int64_t j = k % n;
        float i = v->i[k], f = v->f[k], o = v->o[k], ci = v->ci[k];
        float co = v->co[k], *g = gates + k / n * 4 * n + j;
        float d_o = o * (1 - o) * h_grad[k] * co;
        float dcs = (1 - co * co) * h_grad[k] * o + cs_grad[k];

        if (l->s->peephole)
            dcs += d_o * l->wco[j];
        g[0] = i * (1 - i) * dcs * ci;
        g[cell] = (1 - ci * ci) * dcs * i;
        g[forget] = f * (1 - f) * dcs * cs_prev[k];
        g[3 * n] = d_o;
        cs_grad[k] = dcs * f;
        if (l->s->peephole) {
            cs_grad[k] += g[0] * l->wci[j] + g[forget] * l->wcf[j];
            peep_grad[0][j] += g[0] * cs_prev[k];
            peep_grad[1][j] += g[forget] * cs_prev[k];
            peep_grad[2][j] += d_o * v->cs[k];
        }
    }
}

/* x is input `at`, then cs_prev, h_prev, w, wci, wcf, wco, b. */
static enum mst_code lstm_read(struct op_ctx *c, int at, bool times,
                               struct lstm *l)
{
    const struct tensor *x = op_in(c, at), *cs = op_in(c, at + 1);
    enum mst_code rc = MST_OK;

    l->s = c->node->state;
    if (x->ndim != (times ? 3 : 2) || cs->ndim != 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "x must be %dD and cs_prev 2D but are %dD and %dD",
                       times ? 3 : 2, x->ndim, cs->ndim);
    l->batch = x->dims[x->ndim - 2];
    l->inputs = x->dims[x->ndim - 1];
    l->cells = cs->dims[1];
    if ((rc = want(c, at + 1, 2, l->batch, l->cells, 0)) ||
        (rc = want(c, at + 2, 2, l->batch, l->cells, 0)) ||
        (rc = want(c, at + 3, 2, l->inputs + l->cells, 4 * l->cells, 0)) ||
        (rc = want(c, at + 7, 1, 4 * l->cells, 0, 0)))
        return rc;
    for (int i = 4; i < 7 && !rc; i++)
        rc = want(c, at + i, 1, l->cells, 0, 0);
    l->w = op_in(c, at + 3)->data;
    l->wci = op_in(c, at + 4)->data;
    l->wcf = op_in(c, at + 5)->data;
    l->wco = op_in(c, at + 6)->data;
    l->b = op_in(c, at + 7)->data;
    return rc;
}

static struct lstm_values values_at(float *const p[7], int64_t at)
{
    return (struct lstm_values){ p[0] + at, p[1] + at, p[2] + at, p[3] + at,
                                 p[4] + at, p[5] + at, p[6] + at };
}

static struct buffer *scratch(struct op_ctx *c, int64_t floats)
{
    struct buffer *b = buffer_new((size_t)MAX(floats, 1) * sizeof(float));

    if (b)
        memset(b->data, 0, (size_t)floats * sizeof(float));
    else
        status_set(c->st, MST_RESOURCE_EXHAUSTED, "OOM in a recurrent cell");
    return b;
}

static enum mst_code lstm_cell(struct op_ctx *c)
{
    struct lstm l;
    struct lstm_values v;
    struct buffer *gates;
    float *out[7];
    enum mst_code rc = lstm_read(c, 0, false, &l);

    for (int i = 0; i < 7 && !rc; i++) {
        rc = op_out_like(c, i, op_in(c, 1));
        out[i] = op_out(c, i)->data;
    }
    if (rc || !op_out(c, 0)->count)
        return rc;
    gates = scratch(c, l.batch * 4 * l.cells);
    if (!gates)
        return MST_RESOURCE_EXHAUSTED;
    v = values_at(out, 0);
    rc = lstm_step(c, &l, op_in(c, 0)->data, op_in(c, 1)->data,
                   op_in(c, 2)->data, (float *)gates->data, &v);
    buffer_unref(gates);
    return rc;
}

/* How many of the times are run. */
static enum mst_code read_times(struct op_ctx *c, int64_t *ret)
{
    const struct tensor *t = op_in(c, 0);

    if (t->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT, "seq_len_max must be a scalar");
    *ret = *TENSOR_DATA(t, int64_t);
    if (op_in(c, 1)->ndim == 3 && (*ret < 0 || *ret > op_in(c, 1)->dims[0]))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "seq_len_max must be between 0 and the length of x, got "
                       "%lld",
                       (long long)*ret);
    return MST_OK;
}

static enum mst_code block_lstm(struct op_ctx *c)
{
    struct lstm l;
    struct buffer *gates;
    float *out[7];
    int64_t times, step;
    enum mst_code rc = read_times(c, &times);

    if (!rc)
        rc = lstm_read(c, 1, true, &l);
    for (int i = 0; i < 7 && !rc; i++) {
        rc = op_out_new(c, i, 3,
                        (int64_t[]){ op_in(c, 1)->dims[0], l.batch, l.cells });
        if (!rc)
            tensor_zero(op_out(c, i));
        out[i] = op_out(c, i)->data;
    }
    if (rc || !op_out(c, 0)->count)
        return rc;
    step = l.batch * l.cells;
    gates = scratch(c, 4 * step);
    if (!gates)
        return MST_RESOURCE_EXHAUSTED;
    for (int64_t t = 0; t < times && !rc; t++) {
        struct lstm_values v = values_at(out, t * step);

        rc = lstm_step(
            c, &l, TENSOR_DATA(op_in(c, 1), float) + t * l.batch * l.inputs,
            t ? v.cs - step : op_in(c, 2)->data,
            t ? v.h - step : op_in(c, 3)->data, (float *)gates->data, &v);
    }
    buffer_unref(gates);
    return rc;
}

/* Inputs from `at` on are i, cs, f, o, ci, co (and h), of one shape. */
static enum mst_code read_values(struct op_ctx *c, int at, int n,
                                 const struct tensor *like, float *ret[7])
{
    for (int i = 0; i < n; i++) {
        if (!tensor_same_shape(op_in(c, at + i), like))
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Input %d of %s has another shape than its cells",
                           at + i, c->node->def->name);
        if (i < 7)
            ret[i] = op_in(c, at + i)->data;
    }
    return MST_OK;
}

static enum mst_code lstm_cell_grad(struct op_ctx *c)
{
    struct lstm l;
    struct lstm_values v;
    float *in[7] = { 0 }, *peep[3];
    enum mst_code rc = lstm_read(c, 0, false, &l);

    if (!rc)
        rc = read_values(c, 8, 6, op_in(c, 1), in);
    if (!rc)
        rc = read_values(c, 14, 2, op_in(c, 1), (float *[7]){ 0 });
    if (!rc)
        rc = tensor_copy(op_out(c, 0), op_in(c, 14), c->st);
    if (!rc)
        rc = op_out_new(c, 1, 2, (int64_t[]){ l.batch, 4 * l.cells });
    for (int i = 0; i < 3 && !rc; i++) {
        rc = op_out_new(c, 2 + i, 1, &l.cells);
        if (!rc)
            tensor_zero(op_out(c, 2 + i));
        peep[i] = op_out(c, 2 + i)->data;
    }
    if (rc)
        return rc;
    in[6] = in[0];
    v = values_at(in, 0);
    lstm_back(&l, &v, op_in(c, 1)->data, op_in(c, 15)->data, op_out(c, 0)->data,
              op_out(c, 1)->data, peep);
    return MST_OK;
}

/* Outputs: x, cs_prev, h_prev, w, wci, wcf, wco, b. */
struct lstm_grads {
    float *x, *cs, *h, *w, *peep[3], *b;
};

static enum mst_code block_back(struct op_ctx *c, const struct lstm *l,
                                int64_t t, float *const in[7], float *gates,
                                float *h_grad, const struct lstm_grads *g)
{
    int64_t step = l->batch * l->cells, n4 = 4 * l->cells;
    struct lstm_values v = values_at(in, t * step);
    const float *x = TENSOR_DATA(op_in(c, 1), float) + t * l->batch * l->inputs;
    const float *cs_prev = t ? v.cs - step : op_in(c, 2)->data;
    const float *h_prev = t ? v.h - step : op_in(c, 3)->data;
    const float *cs_given = TENSOR_DATA(op_in(c, 16), float) + t * step;
    const float *h_given = TENSOR_DATA(op_in(c, 17), float) + t * step;
    enum mst_code rc;

    for (int64_t k = 0; k < step; k++) {
        g->cs[k] += cs_given[k];
        h_grad[k] = g->h[k] + h_given[k];
    }
    lstm_back(l, &v, cs_prev, h_grad, g->cs, gates, g->peep);
    for (int64_t k = 0; k < l->batch * n4; k++)
        g->b[k % n4] += gates[k];
    if ((rc = times_turned(c, g->x + t * l->batch * l->inputs, gates, l->w, 0,
                           l->batch, n4, l->inputs, false)) ||
        (rc = times_turned(c, g->h, gates, l->w, l->inputs, l->batch, n4,
                           l->cells, false)) ||
        (rc = turned_times(c, g->w, 0, x, gates, l->inputs, l->batch, n4)))
        return rc;
    return turned_times(c, g->w, l->inputs, h_prev, gates, l->cells, l->batch,
                        n4);
}

static enum mst_code block_lstm_grad(struct op_ctx *c)
{
    struct lstm l;
    struct lstm_grads g;
    struct buffer *memory;
    float *in[7] = { 0 }, *none[7], *gates, *h_grad;
    int64_t times;
    enum mst_code rc = read_times(c, &times);

    if (!rc)
        rc = lstm_read(c, 1, true, &l);
    if (!rc)
        rc = want(c, 9, 3, op_in(c, 1)->dims[0], l.batch, l.cells);
    if (!rc)
        rc = read_values(c, 9, 7, op_in(c, 9), in);
    if (!rc)
        rc = read_values(c, 16, 2, op_in(c, 9), none);
    for (int i = 0; i < 8 && !rc; i++) {
        rc = op_out_like(c, i, op_in(c, 1 + i));
        if (!rc)
            tensor_zero(op_out(c, i));
    }
    if (rc)
        return rc;
    g = (struct lstm_grads){ op_out(c, 0)->data,
                             op_out(c, 1)->data,
                             op_out(c, 2)->data,
                             op_out(c, 3)->data,
                             { op_out(c, 4)->data, op_out(c, 5)->data,
                               op_out(c, 6)->data },
                             op_out(c, 7)->data };
    memory = scratch(c, 5 * l.batch * l.cells);
    if (!memory)
        return MST_RESOURCE_EXHAUSTED;
    gates = (float *)memory->data;
    h_grad = gates + 4 * l.batch * l.cells;
    for (int64_t t = times - 1; t >= 0 && !rc && l.batch > 0; t--)
        rc = block_back(c, &l, t, in, gates, h_grad, &g);
    buffer_unref(memory);
    return rc;
}

/* ---- GRU: x, h_prev, w_ru, w_c, b_ru, b_c ---- */

struct gru {
    int64_t batch, inputs, cells;
    const float *x, *h, *w_ru, *w_c, *b_ru, *b_c;
};

static enum mst_code gru_read(struct op_ctx *c, struct gru *g)
{
    const struct tensor *x = op_in(c, 0), *h = op_in(c, 1);
    enum mst_code rc;

    if (x->ndim != 2 || h->ndim != 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Rank of x and h_prev must be 2, got %d and %d", x->ndim,
                       h->ndim);
    g->batch = x->dims[0];
    g->inputs = x->dims[1];
    g->cells = h->dims[1];
    if ((rc = want(c, 1, 2, g->batch, g->cells, 0)) ||
        (rc = want(c, 2, 2, g->inputs + g->cells, 2 * g->cells, 0)) ||
        (rc = want(c, 3, 2, g->inputs + g->cells, g->cells, 0)) ||
        (rc = want(c, 4, 1, 2 * g->cells, 0, 0)) ||
        (rc = want(c, 5, 1, g->cells, 0, 0)))
        return rc;
    g->x = x->data;
    g->h = h->data;
    g->w_ru = op_in(c, 2)->data;
    g->w_c = op_in(c, 3)->data;
    g->b_ru = op_in(c, 4)->data;
    g->b_c = op_in(c, 5)->data;
    return MST_OK;
}

static enum mst_code gru_run(struct op_ctx *c, const struct gru *g, float *ru)
{
    float *r = op_out(c, 0)->data, *u = op_out(c, 1)->data;
    float *cc = op_out(c, 2)->data, *h = op_out(c, 3)->data;
    int64_t n = g->cells;
    enum mst_code rc =
        times(c, ru, g->x, g->w_ru, 0, g->batch, g->inputs, 2 * n, false);

    if (!rc)
        rc = times(c, ru, g->h, g->w_ru, g->inputs, g->batch, n, 2 * n, true);
    for (int64_t k = 0; k < g->batch * n && !rc; k++) {
        const float *at = ru + k / n * 2 * n + k % n;

        r[k] = sigmoid(at[0] + g->b_ru[k % n]);
        u[k] = sigmoid(at[n] + g->b_ru[n + k % n]);
        h[k] = g->h[k] * r[k];
    }
    if (!rc)
        rc = times(c, cc, g->x, g->w_c, 0, g->batch, g->inputs, n, false);
    if (!rc)
        rc = times(c, cc, h, g->w_c, g->inputs, g->batch, n, n, true);
    for (int64_t k = 0; k < g->batch * n && !rc; k++) {
        cc[k] = tanhf(cc[k] + g->b_c[k % n]);
        h[k] = u[k] * (g->h[k] - cc[k]) + cc[k];
    }
    return rc;
}

static enum mst_code gru_cell(struct op_ctx *c)
{
    struct gru g;
    struct buffer *ru;
    enum mst_code rc = gru_read(c, &g);

    for (int i = 0; i < 4 && !rc; i++)
        rc = op_out_like(c, i, op_in(c, 1));
    if (rc || !op_out(c, 0)->count)
        return rc;
    ru = scratch(c, g.batch * 2 * g.cells);
    if (!ru)
        return MST_RESOURCE_EXHAUSTED;
    rc = gru_run(c, &g, (float *)ru->data);
    buffer_unref(ru);
    return rc;
}

/* Outputs: d_x, d_h_prev, d_c_bar, d_r_bar_u_bar. hr: scratch [B, C]. */
static enum mst_code gru_back(struct op_ctx *c, const struct gru *g, float *hr)
{
    const float *r = op_in(c, 6)->data, *u = op_in(c, 7)->data;
    const float *cc = op_in(c, 8)->data, *dh = op_in(c, 9)->data;
    float *dx = op_out(c, 0)->data, *dprev = op_out(c, 1)->data;
    float *dc = op_out(c, 2)->data, *dru = op_out(c, 3)->data;
    int64_t n = g->cells;
    enum mst_code rc;

    for (int64_t k = 0; k < g->batch * n; k++) {
        dc[k] = dh[k] * (1 - u[k]) * (1 - cc[k] * cc[k]);
        dru[k / n * 2 * n + n + k % n] =
            dh[k] * (g->h[k] - cc[k]) * u[k] * (1 - u[k]);
    }
    rc = times_turned(c, hr, dc, g->w_c, g->inputs, g->batch, n, n, false);
    for (int64_t k = 0; k < g->batch * n && !rc; k++)
        dru[k / n * 2 * n + k % n] = hr[k] * g->h[k] * r[k] * (1 - r[k]);
    if (!rc)
        rc = times_turned(c, dx, dc, g->w_c, 0, g->batch, n, g->inputs, false);
    if (!rc)
        rc = times_turned(c, dx, dru, g->w_ru, 0, g->batch, 2 * n, g->inputs,
                          true);
    if (!rc)
        rc = times_turned(c, dprev, dru, g->w_ru, g->inputs, g->batch, 2 * n, n,
                          false);
    for (int64_t k = 0; k < g->batch * n && !rc; k++)
        dprev[k] += hr[k] * r[k] + dh[k] * u[k];
    return rc;
}

static enum mst_code gru_cell_grad(struct op_ctx *c)
{
    struct gru g;
    struct buffer *hr;
    float *none[7];
    enum mst_code rc = gru_read(c, &g);

    if (!rc)
        rc = read_values(c, 6, 4, op_in(c, 1), none);
    if (!rc)
        rc = op_out_like(c, 0, op_in(c, 0));
    for (int i = 1; i < 3 && !rc; i++)
        rc = op_out_like(c, i, op_in(c, 1));
    if (!rc)
        rc = op_out_new(c, 3, 2, (int64_t[]){ g.batch, 2 * g.cells });
    if (rc || !op_out(c, 1)->count)
        return rc;
    hr = scratch(c, g.batch * g.cells);
    if (!hr)
        return MST_RESOURCE_EXHAUSTED;
    rc = gru_back(c, &g, (float *)hr->data);
    buffer_unref(hr);
    return rc;
}

/* ---- records ---- */

#define LSTM_IN                                                                \
    "x: T, cs_prev: T, h_prev: T, w: T, wci: T, wcf: T, wco: T, b: T"
#define LSTM_OUT "i: T, cs: T, f: T, o: T, ci: T, co: T, h: T"
#define LSTM_ATTRS                                                             \
    "forget_bias: float = 1; cell_clip: float = 3; "                           \
    "use_peephole: bool = false; T: {half, float}"
#define LSTM_GRAD_ATTRS "use_peephole: bool; T: {half, float}"
#define BLOCK_GRAD_IN                                                          \
    "seq_len_max: int64, " LSTM_IN ", " LSTM_OUT ", cs_grad: T, h_grad: T"
#define BLOCK_GRAD_OUT                                                         \
    "x_grad: T, cs_prev_grad: T, h_prev_grad: T, w_grad: T, wci_grad: T, "     \
    "wcf_grad: T, wco_grad: T, b_grad: T"

#define RNN_DEF(stem, NAME, IN, OUT, ATTR, ...)                                \
    const struct op_def def_##stem = {                                         \
        .name = NAME,                                                          \
        .in = IN,                                                              \
        .out = OUT,                                                            \
        .attr = ATTR,                                                          \
        .flags = OP_EXPENSIVE,                                                 \
        .init = rnn_init,                                                      \
        .kernel = KERNELS(__VA_ARGS__, ),                                      \
    }
#define LSTM_DEF(stem, NAME, IN, OUT, ATTR, FN)                                \
    WIDEN(stem##_half, FN)                                                     \
    RNN_DEF(stem, NAME, IN, OUT, ATTR, { DT_FLOAT, FN },                       \
            { DT_HALF, stem##_half })
LSTM_DEF(lstm_block_cell, "LSTMBlockCell", LSTM_IN, LSTM_OUT, LSTM_ATTRS,
         lstm_cell);
LSTM_DEF(lstm_block_cell_grad, "LSTMBlockCellGrad",
         LSTM_IN ", i: T, cs: T, f: T, o: T, ci: T, co: T, cs_grad: T, "
                 "h_grad: T",
         "cs_prev_grad: T, dicfo: T, wci_grad: T, wcf_grad: T, wco_grad: T",
         LSTM_GRAD_ATTRS, lstm_cell_grad);
LSTM_DEF(block_lstm, "BlockLSTM", "seq_len_max: int64, " LSTM_IN, LSTM_OUT,
         LSTM_ATTRS, block_lstm);
LSTM_DEF(block_lstm_v2, "BlockLSTMV2", "seq_len_max: int64, " LSTM_IN, LSTM_OUT,
         "cell_clip: float = 0; use_peephole: bool = false; T: {half, float}",
         block_lstm);
LSTM_DEF(block_lstm_grad, "BlockLSTMGrad", BLOCK_GRAD_IN, BLOCK_GRAD_OUT,
         LSTM_GRAD_ATTRS, block_lstm_grad);
LSTM_DEF(block_lstm_grad_v2, "BlockLSTMGradV2", BLOCK_GRAD_IN, BLOCK_GRAD_OUT,
         LSTM_GRAD_ATTRS, block_lstm_grad);
RNN_DEF(gru_block_cell, "GRUBlockCell",
        "x: T, h_prev: T, w_ru: T, w_c: T, b_ru: T, b_c: T",
        "r: T, u: T, c: T, h: T", "T: {float}", { DT_FLOAT, gru_cell });
RNN_DEF(gru_block_cell_grad, "GRUBlockCellGrad",
        "x: T, h_prev: T, w_ru: T, w_c: T, b_ru: T, b_c: T, r: T, u: T, c: T, "
        "d_h: T",
        "d_x: T, d_h_prev: T, d_c_bar: T, d_r_bar_u_bar: T", "T: {float}",
        { DT_FLOAT, gru_cell_grad });
