#include "kernel/sparse_batch.h"

#include <string.h>

void sparse_part_done(struct sparse_part *p)
{
    tensor_unref(&p->indices);
    tensor_unref(&p->values);
    tensor_unref(&p->shape);
}

/* ---- cut ---- */

enum mst_code sparse_batch_ranks(struct op_ctx *c)
{
    static const struct {
        const char *name, *kind;
        int ndim;
    } want[] = { { "indices", "matrix", 2 },
                 { "values", "vector", 1 },
                 { "shape", "vector", 1 } };
    char text[SHAPE_TEXT_MAX];

    for (int i = 0; i < 3; i++)
        if (op_in(c, i)->ndim != want[i].ndim)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Input %s should be a %s but received shape %s",
                           want[i].name, want[i].kind,
                           tensor_shape_text(op_in(c, i), text));
    return MST_OK;
}

enum mst_code sparse_batch_in(struct op_ctx *c, struct sparse *s,
                              struct tensor *own)
{
    int64_t size;
    enum mst_code rc = sparse_batch_ranks(c);

    if (rc)
        return rc;
    if (op_in(c, 2)->count < 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Rank of input SparseTensor should be > 1, but saw "
                       "rank: %lld",
                       (long long)op_in(c, 2)->count);
    rc = sparse_create(c, 0, s);
    if (!rc)
        rc = sparse_size(c, s->shape, &size);
    if (!rc)
        rc = sparse_own(c, s, own);
    return rc ? rc : sparse_check(c, s, true);
}

enum mst_code sparse_batch_cut(struct op_ctx *c, const struct sparse *s,
                               int64_t row, int64_t *at,
                               struct sparse_part *ret)
{
    int64_t begin = *at, end = begin, ndim = s->ndim - 1, *index;
    struct sparse_part p = { 0 };
    enum mst_code rc;

    while (end < s->n && sparse_row(s, end)[0] == row)
        end++;
    *at = end;
    rc = tensor_new(&p.indices, DT_INT64, 2, (int64_t[]){ end - begin, ndim },
                    c->st);
    if (!rc)
        rc = tensor_slice(&p.values, s->values, begin, end - begin, c->st);
    if (!rc)
        rc = tensor_new(&p.shape, DT_INT64, 1, &ndim, c->st);
    if (rc) {
        sparse_part_done(&p);
        return rc;
    }
    index = p.indices.data;
    for (int64_t i = begin; i < end; i++, index += ndim)
        memcpy(index, sparse_row(s, i) + 1, (size_t)ndim * sizeof(*index));
    for (int64_t d = 0; d < ndim; d++)
        TENSOR_DATA(&p.shape, int64_t)[d] = tensor_int(s->shape, d + 1);
    *ret = p;
    return MST_OK;
}

/* ---- stacked ---- */

static enum mst_code stack_outputs(struct op_ctx *c,
                                   const struct sparse_part *parts, int64_t n,
                                   int lead, const int64_t *lead_dims)
{
    int64_t total = 0, ndim = lead + parts[0].shape.count, *dims;
    enum mst_code rc;

    for (int64_t i = 0; i < n; i++)
        total += parts[i].values.count;
    rc = op_out_new(c, 0, 2, (int64_t[]){ total, ndim });
    if (!rc)
        rc = op_out_new(c, 1, 1, &total);
    if (!rc)
        rc = op_out_new(c, 2, 1, &ndim);
    if (rc)
        return rc;
    dims = op_out(c, 2)->data;
    memset(dims, 0, (size_t)ndim * sizeof(*dims));
    memcpy(dims, lead_dims, (size_t)lead * sizeof(*dims));
    for (int64_t i = 0; i < n; i++)
        for (int64_t d = lead; d < ndim; d++)
            dims[d] = MAX(dims[d], tensor_int(&parts[i].shape, d - lead));
    return MST_OK;
}

enum mst_code sparse_batch_stack(struct op_ctx *c,
                                 const struct sparse_part *parts, int64_t n,
                                 int lead, const int64_t *lead_dims)
{
    int64_t inner = parts[0].shape.count, *index, at = 0;
    enum mst_code rc = stack_outputs(c, parts, n, lead, lead_dims);

    if (rc)
        return rc;
    index = op_out(c, 0)->data;
    for (int64_t i = 0; i < n; i++) {
        const struct sparse_part *p = &parts[i];
        const int64_t *from = p->indices.data;

        for (int64_t k = 0; k < p->values.count; k++, from += inner) {
            int64_t rest = i;

            for (int d = lead - 1; d >= 0; d--) {
                index[d] = rest % lead_dims[d];
                rest /= lead_dims[d];
            }
            if (inner)
                memcpy(index + lead, from, (size_t)inner * sizeof(*index));
            index += lead + inner;
        }
        tensor_copy_elems(op_out(c, 1), at, &p->values, 0, p->values.count);
        at += p->values.count;
    }
    return MST_OK;
}
