/*
 * Qr, Svd, and least squares by decomposition: what LAPACK does with matrices
 * of any shape. TensorFlow's are in row-major order, which LAPACK sees as the
 * transposed.
 */
#include "kernel/lapack.h"
#include "kernel/linalg.h"

struct qr_state {
    bool full, vectors;
};

static enum mst_code qr_init(struct op_node *n, struct status *st)
{
    struct qr_state *s = ARENA_NEW(n->arena, struct qr_state);

    s->full = op_attr_bool(n, "full_matrices");
    s->vectors = n->out_count < 3 || op_attr_bool(n, "compute_uv");
    n->state = s;
    return MST_OK;
}

static const struct qr_state *state_of(const struct linalg_one *m)
{
    return m->l->c->node->state;
}

static double qr_cost(const struct linalg *l)
{
    double m = (double)l->rows[0], n = (double)l->cols[0];

    return 500 + m * n * MIN(m, n);
}

/* The identity, where a decomposition of nothing has one. */
#define IDENTITY(s, T, A, DT, LD, ST)                                          \
    static void identity_##s(T *a, int64_t n)                                  \
    {                                                                          \
        for (int64_t i = 0; i < n * n; i++)                                    \
            a[i] = i % (n + 1) == 0;                                           \
    }                                                                          \
    static bool finite_##s(const T *a, int64_t n)                              \
    {                                                                          \
        real_##s sum = 0;                                                      \
                                                                               \
        for (int64_t i = 0; i < n; i++)                                        \
            sum += 0 * ABS_##s(a[i]);                                          \
        return sum == 0;                                                       \
    }
TYPES_DENSE(IDENTITY)

/* ---- Qr ---- */

/* a, tau and the work space lie behind one another in the scratch. */
#define QR(s, T, A, DT, LD, ST)                                                \
    static const char *qr_one_##s(const struct linalg_one *o)                  \
    {                                                                          \
        int m = (int)o->l->rows[0], n = (int)o->l->cols[0], k = MIN(m, n);     \
        int columns = state_of(o)->full ? m : k, rows = columns;               \
        T *a = o->scratch, *tau = a + (int64_t)m * MAX(n, columns);            \
        T *q = o->out[0], *r = o->out[1], *work = tau + k;                     \
                                                                               \
        if (!k && q)                                                           \
            identity_##s(q, m);                                                \
        if (!k)                                                                \
            return NULL;                                                       \
        dense_adjoint_##s(a, o->in[0], m, n, false);                           \
        lapack_qr_##s(m, n, a, tau, work, (int)o->l->work_size);               \
        for (int64_t i = 0; i < rows; i++)                                     \
            for (int64_t j = 0; j < n; j++)                                    \
                r[i * n + j] = j < i ? 0 : a[j * m + i];                       \
        lapack_q_##s(m, columns, k, a, tau, work, (int)o->l->work_size);       \
        dense_adjoint_##s(q, a, columns, m, false);                            \
        return NULL;                                                           \
    }                                                                          \
    static enum mst_code qr_##s(struct op_ctx *c)                              \
    {                                                                          \
        struct linalg l;                                                       \
        int64_t k, columns;                                                    \
        enum mst_code rc = qr_begin(&l, c, &k, &columns);                      \
        int m = (int)l.rows[0], n = (int)l.cols[0];                            \
        T one = 1, two = 1;                                                    \
                                                                               \
        if (rc)                                                                \
            return rc;                                                         \
        if (k) {                                                               \
            lapack_qr_##s(m, n, NULL, NULL, &one, -1);                         \
            lapack_q_##s(m, (int)columns, (int)k, NULL, NULL, &two, -1);       \
        }                                                                      \
        l.work_size = lapack_size(MAX(REAL_##s(one), REAL_##s(two)));          \
        return linalg_run(&l, qr_cost(&l),                                     \
                          m * MAX(n, columns) + k + l.work_size, sizeof(T),    \
                          qr_one_##s);                                         \
    }

static enum mst_code too_large(struct op_ctx *c)
{
    char text[SHAPE_TEXT_MAX];

    return op_fail(c, MST_RESOURCE_EXHAUSTED,
                   "matrices of %s are too large to be decomposed",
                   tensor_shape_text(op_in(c, 0), text));
}

static enum mst_code qr_begin(struct linalg *l, struct op_ctx *c, int64_t *k,
                              int64_t *columns)
{
    const struct qr_state *s = c->node->state;
    enum mst_code rc = linalg_begin(l, c, 1);

    if (rc)
        return rc;
    *k = MIN(l->rows[0], l->cols[0]);
    *columns = s->full ? l->rows[0] : *k;
    if (!lapack_fits(l->rows[0], MAX(l->cols[0], *columns)))
        return too_large(c);
    rc = linalg_out(l, 0, 2, l->rows[0], *columns);
    return rc ? rc : linalg_out(l, 1, 2, *columns, l->cols[0]);
}
TYPES_DENSE(QR)

static enum mst_code qr_f16(struct op_ctx *c)
{
    return linalg_half(c, qr_f32);
}

const struct op_def def_qr = {
    .name = "Qr",
    .in = "input: T",
    .out = "q: T, r: T",
    .attr = "full_matrices: bool = false; "
            "T: {double, float, half, complex64, complex128}",
    .flags = OP_EXPENSIVE,
    .init = qr_init,
    .kernel = KERNELS(TYPES_DENSE(ROW, qr) TYPES_HALF(ROW, qr)),
};

/* ---- Svd ---- */

static char svd_job(const struct qr_state *s)
{
    return !s->vectors ? 'N' : s->full ? 'A' : 'S';
}

/* Of V. */
static int svd_columns(const struct qr_state *s, int n, int k)
{
    return !s->vectors ? 0 : s->full ? n : k;
}

/*
 * LAPACK sees A^T = conj(V) S U^T: what it calls V^T is, read in row-major
 * order, U. `more` comes first in the scratch, as bytes.
 */
#define SVD(s, T, A, DT, LD, ST)                                               \
    static const char *svd_one_##s(const struct linalg_one *o)                 \
    {                                                                          \
        const struct qr_state *st = state_of(o);                               \
        int m = (int)o->l->rows[0], n = (int)o->l->cols[0], k = MIN(m, n);     \
        int columns = svd_columns(st, n, k);                                   \
        T *a = (T *)((uint8_t *)o->scratch + svd_more(m, n));                  \
        T *v = a + (int64_t)m * n, *work = v + (int64_t)n * columns;           \
        real_##s *values = (real_##s *)(work + o->l->work_size);               \
        bool good;                                                             \
                                                                               \
        if (!k) {                                                              \
            if (st->vectors && st->full)                                       \
                identity_##s(m ? o->out[1] : o->out[2], MAX(m, n));            \
            return NULL;                                                       \
        }                                                                      \
        memcpy(a, o->in[0], (size_t)m *(size_t)n * sizeof(T));                 \
        good = finite_##s(a, (int64_t)m * n) &&                                \
               lapack_svd_##s(svd_job(st), n, m, a, values, v, o->out[1],      \
                              o->scratch, work, (int)o->l->work_size) == 0;    \
        for (int64_t i = 0; i < k; i++)                                        \
            ((T *)o->out[0])[i] = good ? values[i] : (T)NONE_##s;              \
        if (st->vectors && good)                                               \
            dense_adjoint_##s(o->out[2], v, columns, n, true);                 \
        for (int i = 1; i < 3 && st->vectors && !good; i++)                    \
            for (int64_t j = 0; j < o->l->out_size[i]; j++)                    \
                ((T *)o->out[i])[j] = (T)NONE_##s;                             \
        return NULL;                                                           \
    }                                                                          \
    static enum mst_code svd_##s(struct op_ctx *c)                             \
    {                                                                          \
        struct linalg l;                                                       \
        enum mst_code rc = svd_begin(&l, c);                                   \
        int m = (int)l.rows[0], n = (int)l.cols[0], k = MIN(m, n);             \
        int64_t size;                                                          \
        T ask = 1;                                                             \
                                                                               \
        if (rc)                                                                \
            return rc;                                                         \
        if (k)                                                                 \
            lapack_svd_##s(svd_job(c->node->state), n, m, NULL, NULL, NULL,    \
                           NULL, NULL, &ask, -1);                              \
        l.work_size = lapack_size(REAL_##s(ask));                              \
        size = (int64_t)n * (m + svd_columns(c->node->state, n, k));           \
        size = (size + l.work_size + k) * (int64_t)sizeof(T);                  \
        return linalg_run(&l, 10 * qr_cost(&l),                                \
                          (int64_t)svd_more(m, n) + size, 1, svd_one_##s);     \
    }

static size_t svd_more(int64_t m, int64_t n)
{
    return (lapack_svd_more(m, n) + 63) / 64 * 64;
}

static enum mst_code svd_begin(struct linalg *l, struct op_ctx *c)
{
    const struct qr_state *s = c->node->state;
    enum mst_code rc = linalg_begin(l, c, 1);
    int64_t m, n, k;

    if (rc)
        return rc;
    m = l->rows[0];
    n = l->cols[0];
    k = MIN(m, n);
    if (!lapack_fits(m, n) || (s->full && !lapack_fits(MAX(m, n), MAX(m, n))))
        return too_large(c);
    rc = linalg_out(l, 0, 1, k, 0);
    if (!rc)
        rc = s->vectors ? linalg_out(l, 1, 2, m, s->full ? m : k)
                        : linalg_out_none(l, 1);
    if (!rc)
        rc = s->vectors ? linalg_out(l, 2, 2, n, s->full ? n : k)
                        : linalg_out_none(l, 2);
    return rc;
}
TYPES_DENSE(SVD)

#define SVD_DEF(stem, NAME, SET)                                               \
    const struct op_def def_##stem = {                                         \
        .name = NAME,                                                          \
        .in = "input: T",                                                      \
        .out = "s: T, u: T, v: T",                                             \
        .attr = "compute_uv: bool = true; full_matrices: bool = false; "       \
                "T: " SET,                                                     \
        .flags = OP_EXPENSIVE,                                                 \
        .init = qr_init,                                                       \
        .kernel = KERNELS(TYPES_DENSE(ROW, svd)),                              \
    }
SVD_DEF(svd, "Svd", "{double, float, half, complex64, complex128}");
SVD_DEF(batch_svd, "BatchSvd", "{double, float, complex64, complex128}");
