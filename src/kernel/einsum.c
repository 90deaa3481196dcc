/*
 * Einsum: sums of products over named dimensions, of one or two tensors.
 *
 * Every label of the equation is of one kind: in both inputs and the output
 * (batch), in one input and the output (free), in both inputs only
 * (contract), in one input only (reduce); an ellipsis stands for batch
 * dimensions that are broadcast. Each input is copied, unless it lies so
 * already, to the order [ellipsis, batch, free, contract, reduce], taking
 * diagonals where a label repeats; what is to be reduced is summed; then it is
 * a product of batches of matrices, whose dimensions are put into the order of
 * the output. A label that repeats in the output is a diagonal there.
 */
#include "kernel/batches.h"
#include "kernel/dense.h"
#include "kernel/product.h"
#include "kernel/strided.h"

enum label_kind { ELLIPSIS, BATCH, FREE, CONTRACT, REDUCE, KIND_COUNT };

#define LABELS_MAX (2 * TENSOR_RANK_MAX + 2)
#define DOTS       (-1)

/* The labels of one subscript; DOTS stands for an ellipsis. */
struct labels {
    int count;
    int8_t at[LABELS_MAX];
};

struct einsum_state {
    int inputs;
    struct labels in[2], out;
    int names; /* labels with a name are 0 .. names - 1 */
    uint8_t kind[LABELS_MAX];
};

/* ---- the equation ---- */

static enum mst_code parse_labels(const char *text, size_t len,
                                  const char *equation, char *names,
                                  int *name_count, struct labels *ret,
                                  struct status *st)
{
    ret->count = 0;
    for (size_t i = 0; i < len; i++) {
        char *known =
            *name_count ? memchr(names, text[i], (size_t)*name_count) : NULL;

        if (ret->count == TENSOR_RANK_MAX + 1 ||
            (!known && *name_count == TENSOR_RANK_MAX * 2))
            return status_set(st, MST_INVALID_ARGUMENT,
                              "Too many labels in einsum equation: %s",
                              equation);
        if (text[i] == '.') {
            if (memchr(ret->at, DOTS, (size_t)ret->count))
                return status_set(st, MST_INVALID_ARGUMENT,
                                  "More than one ellipsis in a subscript of "
                                  "einsum equation: %s",
                                  equation);
            ret->at[ret->count++] = DOTS;
            i += 2;
            continue;
        }
        if (!known) {
            known = names + *name_count;
            *known = text[i];
            ++*name_count;
        }
        ret->at[ret->count++] = (int8_t)(known - names);
    }
    return MST_OK;
}

static bool has_label(const struct labels *l, int label)
{
    return memchr(l->at, label, (size_t)l->count) != NULL;
}

static enum mst_code find_kinds(struct einsum_state *s, const char *equation,
                                struct status *st)
{
    for (int i = 0; i < s->names; i++) {
        bool kept = has_label(&s->out, i);
        bool both = s->inputs == 2 && has_label(&s->in[0], i) &&
                    has_label(&s->in[1], i);

        if (!both && !has_label(&s->in[0], i) &&
            (s->inputs == 1 || !has_label(&s->in[1], i)))
            return status_set(st, MST_INVALID_ARGUMENT,
                              "A label of the output is in no input of "
                              "einsum equation: %s",
                              equation);
        s->kind[i] = kept ? (both ? BATCH : FREE) : (both ? CONTRACT : REDUCE);
    }
    return MST_OK;
}

static enum mst_code einsum_init(struct op_node *n, struct status *st)
{
    struct einsum_state *s = ARENA_NEW(n->arena, struct einsum_state);
    const char *text = op_attr_str(n, "equation").data, *comma;
    const char *arrow = strstr(text, "->");
    char names[TENSOR_RANK_MAX * 2 + 1];
    enum mst_code rc;
    int commas = 0;

    n->state = s;
    if (!arrow || strstr(arrow + 2, "->"))
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Expecting exactly one '->' in einsum equation: %s",
                          text);
    for (const char *p = text; p < arrow; p++)
        commas += *p == ',';
    if (commas > 1)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Expecting 1 or 2 input subscripts in equation '%s' "
                          "but got: %d",
                          text, commas + 1);
    s->inputs = commas + 1;
    comma = commas ? strchr(text, ',') : arrow;
    rc = parse_labels(text, (size_t)(comma - text), text, names, &s->names,
                      &s->in[0], st);
    if (!rc && commas)
        rc = parse_labels(comma + 1, (size_t)(arrow - comma - 1), text, names,
                          &s->names, &s->in[1], st);
    if (!rc)
        rc = parse_labels(arrow + 2, strlen(arrow + 2), text, names, &s->names,
                          &s->out, st);
    return rc ? rc : find_kinds(s, text, st);
}

/* ---- one run ---- */

/* An input, or the product of both, in its order of labels. Those of an
 * ellipsis are numbered from s->names on. */
struct operand {
    struct tensor t;          /* in that order, without gaps */
    struct labels labels;     /* no label twice, no DOTS */
    int64_t dims[LABELS_MAX]; /* one a label */
    int64_t size[KIND_COUNT]; /* products of dims */
    int batch;                /* how many labels are of a batch */
    bool swapped;             /* contract comes before free */
};

struct einsum {
    struct op_ctx *c;
    const struct einsum_state *s;
    int dots; /* dimensions of the widest ellipsis */
    int64_t size[LABELS_MAX];
    struct operand in[2], out;
};

static int kind_of(const struct einsum *e, int label)
{
    return label < e->s->names ? e->s->kind[label] : ELLIPSIS;
}

/* What an ellipsis stands for: labels from `names` on. */
static void spell_out(const struct labels *l, int names, int dots,
                      struct labels *ret)
{
    ret->count = 0;
    for (int i = 0; i < l->count; i++)
        if (l->at[i] != DOTS)
            ret->at[ret->count++] = l->at[i];
        else
            for (int k = 0; k < dots; k++)
                ret->at[ret->count++] = (int8_t)(names + k);
}

/* The labels of input i, one for each of its dimensions. */
static enum mst_code label_input(struct einsum *e, int i, struct labels *ret)
{
    const struct labels *l = &e->s->in[i];
    const struct tensor *t = op_in(e->c, i);
    bool dots = has_label(l, DOTS);
    char text[SHAPE_TEXT_MAX];

    if (!dots && t->ndim != l->count)
        return op_fail(e->c, MST_INVALID_ARGUMENT,
                       "Expected input %d to have rank %d but got: %d", i,
                       l->count, t->ndim);
    if (dots && t->ndim < l->count - 1)
        return op_fail(e->c, MST_INVALID_ARGUMENT,
                       "Expected input %d to have rank at least %d but got: %d",
                       i, l->count - 1, t->ndim);
    spell_out(l, e->s->names, t->ndim - l->count + 1, ret);
    if (dots)
        e->dots = MAX(e->dots, t->ndim - l->count + 1);
    for (int d = 0; d < ret->count; d++) {
        int label = ret->at[d];

        if (label >= e->s->names)
            continue;
        if (e->size[label] && e->size[label] != t->dims[d])
            return op_fail(e->c, MST_INVALID_ARGUMENT,
                           "Expected dimension %lld at axis %d of the input "
                           "shaped %s but got dimension %lld",
                           (long long)e->size[label], d,
                           tensor_shape_text(t, text), (long long)t->dims[d]);
        e->size[label] = t->dims[d];
    }
    return MST_OK;
}

/* The labels of an operand, each once, by kind and then by number; or with
 * contract and free exchanged, if that is how they lie. */
static void order_labels(const struct einsum *e, const struct labels *l,
                         bool swapped, struct labels *ret)
{
    static const int plain[] = { ELLIPSIS, BATCH, FREE, CONTRACT, REDUCE };
    static const int other[] = { ELLIPSIS, BATCH, CONTRACT, FREE, REDUCE };

    ret->count = 0;
    for (int k = 0; k < KIND_COUNT; k++)
        for (int label = 0; label < e->s->names + e->dots; label++)
            if (kind_of(e, label) == (swapped ? other : plain)[k] &&
                has_label(l, label))
                ret->at[ret->count++] = (int8_t)label;
}

static bool same_labels(const struct labels *a, const struct labels *b)
{
    return a->count == b->count && !memcmp(a->at, b->at, (size_t)a->count);
}

/* Where label l steps in t, whose dimensions have the labels given: along the
 * diagonal, if it is there more than once. */
static int64_t label_step(const struct labels *labels, const int64_t *dims,
                          int label)
{
    int64_t step = 1, sum = 0;

    for (int d = labels->count - 1; d >= 0; d--) {
        if (labels->at[d] == label)
            sum += step;
        step *= dims[d];
    }
    return sum;
}

/* Input i in the order in which it is multiplied. */
static enum mst_code lay_out(struct einsum *e, int i, const struct labels *have)
{
    const struct tensor *t = op_in(e->c, i);
    struct operand *o = &e->in[i];
    struct strided s = { 0 };
    enum mst_code rc;

    order_labels(e, have, true, &o->labels);
    o->swapped = same_labels(&o->labels, have);
    if (!o->swapped)
        order_labels(e, have, false, &o->labels);
    for (int k = 0; k < KIND_COUNT; k++)
        o->size[k] = 1;
    for (int k = 0; k < o->labels.count; k++) {
        int label = o->labels.at[k], kind = kind_of(e, label);
        const int8_t *at = memchr(have->at, label, (size_t)have->count);

        o->dims[k] = t->dims[at - have->at];
        o->size[kind] *= o->dims[k];
        o->batch += kind == ELLIPSIS || kind == BATCH;
    }
    if (same_labels(&o->labels, have)) {
        o->t = tensor_ref(t);
        return MST_OK;
    }
    rc = tensor_new(&o->t, (enum dtype)t->dtype, o->labels.count, o->dims,
                    e->c->st);
    for (int k = 0; k < o->labels.count; k++)
        strided_dim(&s, o->dims[k],
                    label_step(&o->labels, o->dims, o->labels.at[k]),
                    label_step(have, t->dims, o->labels.at[k]));
    if (!rc && o->t.count)
        strided_copy(e->c, &o->t, t, &s);
    return rc;
}

/* ---- sums and products of elements ---- */

#define EINSUM_LOOPS(s, T, A, DT, LD, ST)                                      \
    static void sum_##s(void *out_, const void *in_, int64_t rows, int64_t n)  \
    {                                                                          \
        const T *in = in_;                                                     \
        T *out = out_;                                                         \
                                                                               \
        for (int64_t i = 0; i < rows; i++, in += n) {                          \
            A sum = 0;                                                         \
                                                                               \
            for (int64_t j = 0; j < n; j++)                                    \
                sum += LD(in[j]);                                              \
            out[i] = ST(sum);                                                  \
        }                                                                      \
    }                                                                          \
    static void mul_##s(void *out_, const void *x_, const void *y_, int64_t n) \
    {                                                                          \
        const T *x = x_, *y = y_;                                              \
        T *out = out_;                                                         \
                                                                               \
        for (int64_t i = 0; i < n; i++)                                        \
            out[i] = ST((A)MUL_##s(LD(x[i]), LD(y[i])));                       \
    }
#define MUL_f16(x, y)  ((x) * (y))
#define MUL_bf16(x, y) ((x) * (y))
#define MUL_u32(x, y)  ((x) * (y))
#define MUL_u64(x, y)  ((x) * (y))
#define TYPES_EINSUM(X, ...)                                                   \
    TYPES_FLOAT(X, ##__VA_ARGS__)                                              \
    TYPES_COMPLEX(X, ##__VA_ARGS__) TYPES_INDEX_WRAP(X, ##__VA_ARGS__)
TYPES_EINSUM(EINSUM_LOOPS)

#define LOOPS_ROW(s, T, A, DT, LD, ST) [DT] = { sum_##s, mul_##s },
static const struct {
    void (*sum)(void *out, const void *in, int64_t rows, int64_t n);
    void (*mul)(void *out, const void *x, const void *y, int64_t n);
} loops[DT_COUNT] = { TYPES_EINSUM(LOOPS_ROW) };

/* Sums what is to be reduced, and makes the operand a batch of matrices. */
static enum mst_code reduce(struct einsum *e, struct operand *o)
{
    int first = o->swapped ? CONTRACT : FREE;
    struct tensor sum;
    int64_t rows = 1;
    enum mst_code rc;

    for (int k = 0; k < o->batch; k++)
        rows *= o->dims[k];
    if (o->batch + 2 > TENSOR_RANK_MAX)
        return op_fail(e->c, MST_UNIMPLEMENTED,
                       "Einsum of more than %d batch dimensions",
                       TENSOR_RANK_MAX - 2);
    o->dims[o->batch] = o->size[first];
    o->dims[o->batch + 1] = o->size[FREE + CONTRACT - first];
    rows *= o->size[FREE] * o->size[CONTRACT];
    if (o->size[REDUCE] == 1) {
        tensor_reshape(&sum, &o->t, o->batch + 2, o->dims);
    } else {
        rc = tensor_new(&sum, (enum dtype)o->t.dtype, o->batch + 2, o->dims,
                        e->c->st);
        if (rc)
            return rc;
        loops[o->t.dtype].sum(sum.data, o->t.data, rows, o->size[REDUCE]);
    }
    tensor_unref(&o->t);
    o->t = sum;
    return MST_OK;
}

/* ---- the product ---- */

static enum mst_code multiply(struct einsum *e, const struct shape *batch)
{
    struct operand *x = &e->in[0], *y = &e->in[1];
    struct gemm g = { .m = x->size[FREE],
                      .n = y->size[FREE],
                      .k = x->size[CONTRACT] };
    struct tensor at = { 0 };
    enum mst_code rc;
    int64_t *places;

    if (!e->out.t.count)
        return MST_OK;
    if (g.m * g.n * g.k == 1 && x->t.count == y->t.count &&
        x->t.count == e->out.t.count) {
        loops[x->t.dtype].mul(e->out.t.data, x->t.data, y->t.data, x->t.count);
        return MST_OK;
    }
    g.a_row = x->swapped ? 1 : g.k;
    g.a_col = x->swapped ? g.m : 1;
    g.b_row = y->swapped ? g.n : 1;
    g.b_col = y->swapped ? 1 : g.k;
    g.c_row = g.n;
    g.batch = e->out.t.count / (g.m * g.n);
    rc = tensor_new(&at, DT_INT64, 2, (int64_t[]){ 3, g.batch }, e->c->st);
    if (rc)
        return rc;
    places = at.data;
    for (int64_t i = 0; i < g.batch; i++) {
        places[i] = batches_at(&x->t, batch, i);
        places[g.batch + i] = batches_at(&y->t, batch, i);
        places[2 * g.batch + i] = i * g.m * g.n;
    }
    g.a_at = places;
    g.b_at = places + g.batch;
    g.c_at = places + 2 * g.batch;
    rc = product_run(e->c, &g, &x->t, false, &y->t, false, &e->out.t);
    tensor_unref(&at);
    return rc;
}

static enum mst_code contract(struct einsum *e)
{
    struct operand *x = &e->in[0], *y = &e->in[1];
    char xt[SHAPE_TEXT_MAX], yt[SHAPE_TEXT_MAX];
    struct shape batch;
    enum mst_code rc;

    if (!batches_shape(&x->t, &y->t, &batch) ||
        (x->size[CONTRACT] != y->size[CONTRACT] && x->t.count && y->t.count))
        return op_fail(e->c, MST_INVALID_ARGUMENT,
                       "Invalid broadcasting dimensions: %s vs. %s",
                       tensor_shape_text(&x->t, xt),
                       tensor_shape_text(&y->t, yt));
    for (int i = 0; i < batch.ndim; i++)
        e->out.dims[i] = batch.dims[i];
    batch.dims[batch.ndim] = x->size[FREE];
    batch.dims[batch.ndim + 1] = y->size[FREE];
    rc = tensor_new(&e->out.t, (enum dtype)x->t.dtype, batch.ndim + 2,
                    batch.dims, e->c->st);
    e->out.batch = batch.ndim;
    if (!rc && !(x->t.count && y->t.count)) {
        tensor_zero(&e->out.t);
        return MST_OK;
    }
    return rc ? rc : multiply(e, &batch);
}

/* ---- the output ---- */

/* The labels of the result: ellipsis, batch, then what is free in each. */
static void label_result(struct einsum *e)
{
    struct labels *l = &e->out.labels;
    int inputs = e->s->inputs;

    for (int i = 0; i < e->dots; i++)
        l->at[l->count++] = (int8_t)(e->s->names + i);
    for (int i = 0; i < e->s->names; i++)
        if (e->s->kind[i] == BATCH)
            l->at[l->count++] = (int8_t)i;
    for (int k = 0; k < inputs; k++)
        for (int i = 0; i < e->s->names; i++)
            if (e->s->kind[i] == FREE && has_label(&e->s->in[k], i)) {
                e->out.dims[l->count] = e->size[i];
                l->at[l->count++] = (int8_t)i;
            }
}

static enum mst_code emit(struct einsum *e)
{
    const struct labels *have = &e->out.labels;
    int64_t dims[LABELS_MAX] = { 0 };
    struct strided s = { 0 };
    struct labels want;
    enum mst_code rc;

    spell_out(&e->s->out, e->s->names, e->dots, &want);
    if (same_labels(&want, have)) {
        if (want.count > TENSOR_RANK_MAX)
            return op_fail(e->c, MST_UNIMPLEMENTED,
                           "Einsum to more than %d dimensions",
                           TENSOR_RANK_MAX);
        tensor_reshape(op_out(e->c, 0), &e->out.t, want.count, e->out.dims);
        return MST_OK;
    }
    for (int i = 0; i < want.count; i++) {
        const int8_t *at = memchr(have->at, want.at[i], (size_t)have->count);

        dims[i] = e->out.dims[at - have->at];
    }
    rc = op_out_new(e->c, 0, want.count, dims);
    if (rc || !e->out.t.count)
        return rc;
    if (want.count > have->count)
        tensor_zero(op_out(e->c, 0));
    for (int k = 0; k < have->count; k++)
        strided_dim(&s, e->out.dims[k], label_step(&want, dims, have->at[k]),
                    label_step(have, e->out.dims, have->at[k]));
    strided_copy(e->c, op_out(e->c, 0), &e->out.t, &s);
    return MST_OK;
}

static enum mst_code run(struct einsum *e)
{
    struct labels have[2];
    enum mst_code rc = MST_OK;

    for (int i = 0; i < e->s->inputs && !rc; i++)
        rc = label_input(e, i, &have[i]);
    if (!rc && e->dots && !has_label(&e->s->out, DOTS))
        rc = op_fail(e->c, MST_INVALID_ARGUMENT,
                     "Output contains %d broadcasting dimension(s) but no "
                     "ellipsis (...) was found in the output subscripts.",
                     e->dots);
    for (int i = 0; i < e->s->inputs && !rc; i++) {
        rc = lay_out(e, i, &have[i]);
        if (!rc)
            rc = reduce(e, &e->in[i]);
    }
    if (rc)
        return rc;
    if (e->s->inputs == 1) {
        tensor_move(&e->out.t, &e->in[0].t);
        memcpy(e->out.dims, e->in[0].dims, sizeof(e->out.dims));
    } else {
        rc = contract(e);
    }
    label_result(e);
    return rc ? rc : emit(e);
}

static enum mst_code einsum(struct op_ctx *c)
{
    struct einsum e = { .c = c, .s = c->node->state };
    enum mst_code rc;

    if (c->node->in_count != e.s->inputs)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Expected %d inputs but got: %d", e.s->inputs,
                       c->node->in_count);
    rc = run(&e);
    tensor_unref(&e.in[0].t);
    tensor_unref(&e.in[1].t);
    tensor_unref(&e.out.t);
    return rc;
}

#define EINSUM_ROW(s, T, A, DT, LD, ST) { DT, einsum },

const struct op_def def_einsum = {
    .name = "Einsum",
    .in = "inputs: N * T",
    .out = "output: T",
    .attr = "equation: string; N: int >= 1; T: type",
    .flags = OP_EXPENSIVE,
    .init = einsum_init,
    .kernel = KERNELS(TYPES_EINSUM(EINSUM_ROW)),
};
