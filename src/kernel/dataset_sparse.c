/*
 * SparseTensorSliceDataset: the rows of a sparse tensor, each a sparse tensor
 * of its own. d->tensors are indices, values and shape; the indices are in
 * order of their rows, so an iterator goes through them once.
 */
#include "base/mem.h"
#include "kernel/dataset.h"
#include "kernel/types.h"

struct sparse_iter {
    struct dataset_iter it; /* it.at is the row */
    int64_t next;           /* the first value that was not given */
};

/* The indices of `count` values, without their row. */
static enum mst_code row_indices(struct dataset_iter *it, int64_t first,
                                 int64_t count)
{
    const struct tensor *all = &it->d->tensors[0];
    int64_t rank = all->dims[1], dims[] = { count, rank - 1 };
    const int64_t *from = TENSOR_DATA(all, int64_t) + first * rank;
    int64_t *to;
    enum mst_code rc = tensor_new(&it->out[0], DT_INT64, 2, dims, it->c->st);

    if (rc)
        return rc;
    to = TENSOR_DATA(&it->out[0], int64_t);
    for (int64_t i = 0; i < count; i++)
        memcpy(to + i * (rank - 1), from + i * rank + 1,
               (size_t)(rank - 1) * sizeof(*to));
    return MST_OK;
}

static int64_t sparse_rows(const struct dataset *d)
{
    return MAX(TENSOR_DATA(&d->tensors[2], int64_t)[0], 0);
}

static enum mst_code sparse_go(struct dataset_iter *it, enum mst_code got)
{
    struct sparse_iter *s = CONTAINER(it, struct sparse_iter, it);
    const struct tensor *all = it->d->tensors;
    const int64_t *row = TENSOR_DATA(&all[0], int64_t);
    int64_t n = all[0].dims[0], rank = all[0].dims[1], first;
    enum mst_code rc;

    (void)got;
    if (it->at >= sparse_rows(it->d))
        return dataset_end(it);
    while (s->next < n && row[s->next * rank] < it->at)
        s->next++;
    first = s->next;
    while (s->next < n && row[s->next * rank] == it->at)
        s->next++;
    it->at++;
    dataset_room(it, 3);
    rc = row_indices(it, first, s->next - first);
    if (!rc)
        rc = tensor_slice(&it->out[1], &all[1], first, s->next - first,
                          it->c->st);
    if (!rc)
        rc = tensor_slice(&it->out[2], &all[2], 1, rank - 1, it->c->st);
    return rc;
}

static const struct dataset_kind sparse_kind = { sizeof(struct sparse_iter),
                                                 sparse_go, NULL, sparse_rows };

static enum mst_code check_shapes(struct op_ctx *c)
{
    static const char *const texts[] = { "Input indices must be a matrix.",
                                         "Input values must be a vector.",
                                         "Input shape must be a vector." };
    const struct tensor *indices = op_in(c, 0);
    char text[SHAPE_TEXT_MAX];

    for (int i = 0; i < 3; i++)
        if (op_in(c, i)->ndim != (i ? 1 : 2))
            return op_fail(c, MST_INVALID_ARGUMENT, "%s Got: %s", texts[i],
                           tensor_shape_text(op_in(c, i), text));
    if (op_in(c, 1)->dims[0] != indices->dims[0])
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Number of values must match first dimension of "
                       "indices. Got %lld values, indices shape: %s",
                       (long long)op_in(c, 1)->dims[0],
                       tensor_shape_text(indices, text));
    if (op_in(c, 2)->dims[0] != indices->dims[1])
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Number of dimensions must match second dimension of "
                       "indices. Got %lld dimensions, indices shape: %s",
                       (long long)op_in(c, 2)->dims[0],
                       tensor_shape_text(indices, text));
    if (!op_in(c, 2)->dims[0])
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "The shape argument requires at least one element.");
    return MST_OK;
}

static enum mst_code sparse_run(struct op_ctx *c)
{
    const int64_t *row = TENSOR_DATA(op_in(c, 0), int64_t);
    struct dataset *d;
    enum mst_code rc = check_shapes(c);

    if (rc)
        return rc;
    for (int64_t i = 1; i < op_in(c, 0)->dims[0]; i++) {
        int64_t rank = op_in(c, 0)->dims[1];

        if (row[i * rank] < row[(i - 1) * rank])
            return op_fail(c, MST_UNIMPLEMENTED,
                           "The SparseTensor must be ordered in the batch "
                           "dimension; handling arbitrarily ordered input is "
                           "not currently supported.");
    }
    d = dataset_new(&sparse_kind, 0, 3);
    for (int i = 0; i < 3; i++)
        d->tensors[i] = tensor_ref(op_in(c, i));
    return dataset_put(c, d);
}

const struct op_def def_sparse_tensor_slice_dataset = {
    .name = "SparseTensorSliceDataset",
    .in = "indices: int64, values: Tvalues, dense_shape: int64",
    .out = "handle: variant",
    .attr = "Tvalues: type",
    .flags = OP_STATEFUL,
    .kernel = (const struct op_kernel[]){ { DT_ANY, sparse_run }, { 0 } },
};
