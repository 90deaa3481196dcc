/*
 * FFT, IFFT, RFFT and IRFFT, over the last one, two or three dimensions.
 *
 * A transform over several dimensions is one over each in turn, in place in
 * the output. That of real numbers has half of the last dimension, n / 2 + 1,
 * since the rest mirrors it; it may be asked for a part of the input only.
 * Lines are computed in double, whatever the type, and kept in the type
 * between dimensions.
 */
#include "kernel/fft.h"
#include "kernel/strided.h"
#include "kernel/types.h"

typedef double complex number;

struct fft_state {
    int rank;
    bool real, inverse;
};

static enum mst_code fft_init(struct op_node *n, struct status *st)
{
    struct fft_state *s = ARENA_NEW(n->arena, struct fft_state);
    const char *name = n->def->name;
    size_t len = strlen(name);

    s->rank = name[len - 1] == 'D' ? name[len - 2] - '0' : 1;
    s->inverse = name[0] == 'I';
    s->real = name[s->inverse] == 'R';
    n->state = s;
    return MST_OK;
}

/* ---- lines ---- */

enum line_kind { COMPLEX_LINE, REAL_IN, REAL_OUT };

/* All lines along one dimension. */
struct pass {
    const struct fft_plan *plan;
    const struct tensor *in;
    struct tensor *out;
    enum line_kind kind;
    bool inverse;
    int64_t n;           /* of the transform */
    int64_t inner;       /* elements between those of a line */
    int64_t in_n, out_n; /* elements of a line on either side */
    atomic_bool no_memory;
};

/* Parts are exchanged for the inverse: i conj(x) there and back. */
#define LINES(s, R, C)                                                         \
    static void load_##s(const struct pass *p, int64_t at, number *line)       \
    {                                                                          \
        const C *in = p->in->data;                                             \
                                                                               \
        for (int64_t k = 0; k < p->n; k++) {                                   \
            int64_t j = k < p->in_n ? k : p->n - k;                            \
            double re = (double)__real__ in[at + j * p->inner];                \
            double im = (double)__imag__ in[at + j * p->inner];                \
                                                                               \
            im = k < p->in_n ? im : -im; /* the half that mirrors */           \
            line[k] = p->inverse ? __builtin_complex(im, re)                   \
                                 : __builtin_complex(re, im);                  \
        }                                                                      \
    }                                                                          \
    static void load_real_##s(const struct pass *p, int64_t at, number *line)  \
    {                                                                          \
        for (int64_t k = 0; k < p->n; k++)                                     \
            line[k] = (double)((const R *)p->in->data)[at + k];                \
    }                                                                          \
    static void store_##s(const struct pass *p, int64_t at,                    \
                          const number *line)                                  \
    {                                                                          \
        double scale = p->inverse ? 1 / (double)p->n : 1;                      \
        C *out = p->out->data;                                                 \
                                                                               \
        for (int64_t k = 0; k < p->out_n; k++) {                               \
            R re = (R)(creal(line[k]) * scale),                                \
              im = (R)(cimag(line[k]) * scale);                                \
                                                                               \
            out[at + k * p->inner] = p->inverse ? __builtin_complex(im, re)    \
                                                : __builtin_complex(re, im);   \
        }                                                                      \
    }                                                                          \
    static void store_real_##s(const struct pass *p, int64_t at,               \
                               const number *line)                             \
    {                                                                          \
        R *out = p->out->data;                                                 \
                                                                               \
        for (int64_t k = 0; k < p->n; k++)                                     \
            out[at + k] = (R)(cimag(line[k]) / (double)p->n);                  \
    }
LINES(c64, float, float complex)
LINES(c128, double, double complex)

static void some_lines(void *arg, int64_t begin, int64_t end)
{
    struct pass *p = arg;
    int64_t room = fft_plan_room(p->plan);
    struct buffer *scratch =
        buffer_new((size_t)(2 * p->n + room) * sizeof(number));
    bool wide = p->in->dtype == DT_COMPLEX128 || p->in->dtype == DT_DOUBLE;
    number *line, *made;

    if (!scratch) {
        atomic_store(&p->no_memory, true);
        return;
    }
    line = (number *)scratch->data;
    made = line + p->n;
    for (int64_t i = begin; i < end; i++) {
        int64_t outer = i / p->inner, rest = i % p->inner;
        int64_t from = outer * p->inner * p->in_n + rest;
        int64_t to = outer * p->inner * p->out_n + rest;

        if (p->kind == REAL_IN)
            (wide ? load_real_c128 : load_real_c64)(p, from, line);
        else
            (wide ? load_c128 : load_c64)(p, from, line);
        fft_run(p->plan, line, made, made + p->n);
        if (p->kind == REAL_OUT)
            (wide ? store_real_c128 : store_real_c64)(p, to, made);
        else
            (wide ? store_c128 : store_c64)(p, to, made);
    }
    buffer_unref(scratch);
}

/* Along dimension `axis` of in and out, which differ in no other. */
static enum mst_code along(struct op_ctx *c, const struct tensor *in,
                           struct tensor *out, int axis, int64_t n,
                           enum line_kind kind)
{
    const struct fft_state *s = c->node->state;
    struct pass p = { .in = in,
                      .out = out,
                      .kind = kind,
                      .inverse = s->inverse,
                      .n = n,
                      .inner = 1,
                      .in_n = in->dims[axis],
                      .out_n = out->dims[axis] };
    struct fft_plan *plan = fft_plan_new(n);
    double cost = 5 * (double)n * (1 + log2((double)n));

    for (int d = axis + 1; d < in->ndim; d++)
        p.inner *= in->dims[d];
    if (plan) {
        p.plan = plan;
        op_for(c, out->count / p.out_n, cost, some_lines, &p);
    }
    fft_plan_free(plan);
    if (plan && !atomic_load(&p.no_memory))
        return MST_OK;
    return op_fail(c, MST_RESOURCE_EXHAUSTED,
                   "no memory for a transform of %lld numbers", (long long)n);
}

/* ---- complex ---- */

static enum mst_code check_rank(struct op_ctx *c)
{
    const struct fft_state *s = c->node->state;
    char text[SHAPE_TEXT_MAX];

    if (op_in(c, 0)->ndim >= s->rank)
        return MST_OK;
    return op_fail(c, MST_INVALID_ARGUMENT,
                   "Input must have rank of at least %d but got: %s", s->rank,
                   tensor_shape_text(op_in(c, 0), text));
}

static enum mst_code fft(struct op_ctx *c)
{
    const struct fft_state *s = c->node->state;
    const struct tensor *in = op_in(c, 0);
    enum mst_code rc = check_rank(c);

    if (!rc)
        rc = op_out_like(c, 0, in);
    for (int i = 0; i < s->rank && !rc && in->count; i++) {
        int axis = in->ndim - 1 - i;

        rc = along(c, i ? op_out(c, 0) : in, op_out(c, 0), axis, in->dims[axis],
                   COMPLEX_LINE);
    }
    return rc;
}

/* ---- real ---- */

/* The lengths asked for, and the shape of the output. */
static enum mst_code real_shape(struct op_ctx *c, int64_t *length,
                                struct shape *out)
{
    const struct fft_state *s = c->node->state;
    const struct tensor *in = op_in(c, 0), *wanted = op_in(c, 1);
    enum mst_code rc = check_rank(c);

    if (rc)
        return rc;
    if (wanted->ndim != 1 || wanted->dims[0] != s->rank)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "fft_length must have shape [%d]", s->rank);
    out->ndim = in->ndim;
    memcpy(out->dims, in->dims, sizeof(out->dims));
    for (int i = 0; i < s->rank; i++) {
        int axis = in->ndim - s->rank + i;
        bool last = i == s->rank - 1;
        int64_t n = length[i] = tensor_int(wanted, i);
        int64_t least = s->inverse && last ? n / 2 + 1 : n;

        if (n < 0)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "fft_length[%d] must >= 0, but got: %lld", i,
                           (long long)n);
        if (in->dims[axis] && in->dims[axis] < least)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Input dimension %d must have length of at least "
                           "%lld but got: %lld",
                           axis, (long long)least, (long long)in->dims[axis]);
        out->dims[axis] = !s->inverse && last && n ? n / 2 + 1 : n;
    }
    if ((in->dtype == DT_FLOAT || in->dtype == DT_COMPLEX64) !=
        (c->node->out_types[0] == DT_FLOAT ||
         c->node->out_types[0] == DT_COMPLEX64))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Wrong types for %s real FFT: in=%d out=%d",
                       s->inverse ? "backward" : "forward", in->dtype,
                       c->node->out_types[0]);
    return MST_OK;
}

/* The part of the input that is transformed: itself, if that is all of it. */
static enum mst_code cropped(struct op_ctx *c, const struct shape *want,
                             struct tensor *ret)
{
    const struct tensor *in = op_in(c, 0);
    int64_t to[TENSOR_RANK_MAX], from[TENSOR_RANK_MAX];
    struct strided s = { 0 };
    enum mst_code rc;

    if (!memcmp(want->dims, in->dims, sizeof(int64_t) * in->ndim)) {
        *ret = tensor_ref(in);
        return MST_OK;
    }
    rc = tensor_new(ret, (enum dtype)in->dtype, want->ndim, want->dims, c->st);
    strided_of(want->ndim, want->dims, to);
    strided_of(in->ndim, in->dims, from);
    for (int d = 0; d < want->ndim; d++)
        strided_dim(&s, want->dims[d], to[d], from[d]);
    if (!rc)
        strided_copy(c, ret, in, &s);
    return rc;
}

static enum mst_code forward(struct op_ctx *c, const struct tensor *in,
                             const int64_t *length)
{
    const struct fft_state *s = c->node->state;
    struct tensor *out = op_out(c, 0);
    enum mst_code rc =
        along(c, in, out, in->ndim - 1, length[s->rank - 1], REAL_IN);

    for (int i = 0; i < s->rank - 1 && !rc; i++)
        rc =
            along(c, out, out, in->ndim - s->rank + i, length[i], COMPLEX_LINE);
    return rc;
}

static enum mst_code backward(struct op_ctx *c, const struct tensor *in,
                              const int64_t *length)
{
    const struct fft_state *s = c->node->state;
    struct tensor made = { 0 };
    const struct tensor *from = in;
    enum mst_code rc = MST_OK;

    if (s->rank > 1)
        rc = tensor_new_like(&made, (enum dtype)in->dtype, in, c->st);
    for (int i = 0; i < s->rank - 1 && !rc; i++, from = &made)
        rc = along(c, from, &made, in->ndim - s->rank + i, length[i],
                   COMPLEX_LINE);
    if (!rc)
        rc = along(c, from, op_out(c, 0), in->ndim - 1, length[s->rank - 1],
                   REAL_OUT);
    tensor_unref(&made);
    return rc;
}

static enum mst_code rfft(struct op_ctx *c)
{
    const struct fft_state *s = c->node->state;
    int64_t length[3] = { 0 };
    struct tensor in = { 0 };
    struct shape shape;
    enum mst_code rc = real_shape(c, length, &shape);

    if (!rc)
        rc = op_out_new(c, 0, shape.ndim, shape.dims);
    if (rc || !op_out(c, 0)->count)
        return rc;
    if (!op_in(c, 0)->count) { /* TensorFlow ends its process here */
        tensor_zero(op_out(c, 0));
        return MST_OK;
    }
    shape.dims[shape.ndim - 1] =
        s->inverse ? length[s->rank - 1] / 2 + 1 : length[s->rank - 1];
    rc = cropped(c, &shape, &in);
    if (!rc)
        rc = (s->inverse ? backward : forward)(c, &in, length);
    tensor_unref(&in);
    return rc;
}

/* ---- records ---- */

#define FFT_DEF(stem, NAME)                                                    \
    const struct op_def def_##stem = {                                         \
        .name = NAME,                                                          \
        .in = "input: Tcomplex",                                               \
        .out = "output: Tcomplex",                                             \
        .attr = "Tcomplex: {complex64, complex128} = complex64",               \
        .key = "Tcomplex",                                                     \
        .flags = OP_EXPENSIVE,                                                 \
        .init = fft_init,                                                      \
        .kernel = KERNELS({ DT_ANY, fft }, ),                                  \
    }
#define RFFT_DEF(stem, NAME, IN, OUT)                                          \
    const struct op_def def_##stem = {                                         \
        .name = NAME,                                                          \
        .in = "input: " IN ", fft_length: int32",                              \
        .out = "output: " OUT,                                                 \
        .attr = "Treal: {float, double} = float; "                             \
                "Tcomplex: {complex64, complex128} = complex64",               \
        .key = "Tcomplex",                                                     \
        .flags = OP_EXPENSIVE,                                                 \
        .init = fft_init,                                                      \
        .kernel = KERNELS({ DT_ANY, rfft }, ),                                 \
    }
FFT_DEF(fft, "FFT");
FFT_DEF(fft2d, "FFT2D");
FFT_DEF(fft3d, "FFT3D");
FFT_DEF(ifft, "IFFT");
FFT_DEF(ifft2d, "IFFT2D");
FFT_DEF(ifft3d, "IFFT3D");
RFFT_DEF(rfft, "RFFT", "Treal", "Tcomplex");
RFFT_DEF(rfft2d, "RFFT2D", "Treal", "Tcomplex");
RFFT_DEF(rfft3d, "RFFT3D", "Treal", "Tcomplex");
RFFT_DEF(irfft, "IRFFT", "Tcomplex", "Treal");
RFFT_DEF(irfft2d, "IRFFT2D", "Tcomplex", "Treal");
RFFT_DEF(irfft3d, "IRFFT3D", "Tcomplex", "Treal");
