/*
 * Datasets that begin a pipeline: tensors, slices of tensors, ranges.
 */
#include "base/mem.h"
#include "kernel/dataset.h"
#include "kernel/types.h"

/* ---- tensors ---- */

static enum mst_code tensors_go(struct dataset_iter *it, enum mst_code got)
{
    const struct dataset *d = it->d;

    (void)got;
    if (it->at++)
        return dataset_end(it);
    dataset_room(it, d->tensor_count);
    for (int i = 0; i < d->tensor_count; i++)
        it->out[i] = tensor_ref(&d->tensors[i]);
    return MST_OK;
}

static int64_t one(const struct dataset *d)
{
    (void)d;
    return 1;
}

static const struct dataset_kind tensors_kind = { sizeof(struct dataset_iter),
                                                  tensors_go, NULL, one };

static void keep_inputs(struct op_ctx *c, struct dataset *d)
{
    for (int i = 0; i < d->tensor_count; i++)
        d->tensors[i] = tensor_ref(op_in(c, i));
}

static enum mst_code tensors_run(struct op_ctx *c)
{
    struct dataset *d = dataset_new(&tensors_kind, 0, c->node->in_count);

    keep_inputs(c, d);
    return dataset_put(c, d);
}

const struct op_def def_tensor_dataset = {
    .name = "TensorDataset",
    .in = "components: Toutput_types",
    .out = "handle: variant",
    .attr = "Toutput_types: list(type) >= 1; "
            "output_shapes: list(shape) >= 1" DATASET_META,
    .flags = OP_STATEFUL,
    .kernel = (const struct op_kernel[]){ { DT_ANY, tensors_run }, { 0 } },
};

/* ---- slices ---- */

static enum mst_code slices_go(struct dataset_iter *it, enum mst_code got)
{
    const struct dataset *d = it->d;

    (void)got;
    if (it->at >= d->tensors[0].dims[0])
        return dataset_end(it);
    dataset_room(it, d->tensor_count);
    for (int i = 0; i < d->tensor_count; i++) {
        struct tensor row = { 0 };
        enum mst_code rc =
            tensor_slice(&row, &d->tensors[i], it->at, 1, it->c->st);

        if (rc)
            return rc;
        tensor_reshape(&it->out[i], &row, row.ndim - 1, row.dims + 1);
        tensor_unref(&row);
    }
    it->at++;
    return MST_OK;
}

static int64_t rows(const struct dataset *d)
{
    return d->tensors[0].dims[0];
}

static const struct dataset_kind slices_kind = { sizeof(struct dataset_iter),
                                                 slices_go, NULL, rows };

static enum mst_code slices_run(struct op_ctx *c)
{
    struct dataset *d;

    for (int i = 0; i < c->node->in_count; i++) {
        if (!op_in(c, i)->ndim)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "All components must be at least 1-dimensional");
        if (op_in(c, i)->dims[0] != op_in(c, 0)->dims[0])
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "All components must have the same size in the 0th "
                           "dimension");
    }
    d = dataset_new(&slices_kind, 0, c->node->in_count);
    keep_inputs(c, d);
    return dataset_put(c, d);
}

const struct op_def def_tensor_slice_dataset = {
    .name = "TensorSliceDataset",
    .in = "components: Toutput_types",
    .out = "handle: variant",
    .attr = "Toutput_types: list(type) >= 1; output_shapes: list(shape) >= 1; "
            "is_files: bool = false" DATASET_META
            "; replicate_on_split: bool = false",
    .flags = OP_STATEFUL,
    .kernel = (const struct op_kernel[]){ { DT_ANY, slices_run }, { 0 } },
};

/* ---- ranges: n[] is start, stop and step ---- */

static int64_t range_count(const struct dataset *d)
{
    __int128 start = d->n[0], stop = d->n[1], step = d->n[2];

    if (step > 0 ? start >= stop : start <= stop)
        return 0;
    return (int64_t)((stop - start + step - (step > 0 ? 1 : -1)) / step);
}

#define PUT_NUMBER(s, T, A, DT, LD, ST)                                        \
    case DT:                                                                   \
        *TENSOR_DATA(&it->out[0], T) = ST((A)x);                               \
        break;

static enum mst_code range_go(struct dataset_iter *it, enum mst_code got)
{
    const struct dataset *d = it->d;
    int64_t x;
    enum mst_code rc;

    (void)got;
    if (it->at >= range_count(d))
        return dataset_end(it);
    x = (int64_t)((uint64_t)d->n[0] + (uint64_t)it->at++ * (uint64_t)d->n[2]);
    dataset_room(it, 1);
    rc = tensor_new_scalar(&it->out[0], (enum dtype)d->tensors[0].dtype,
                           it->c->st);
    if (rc)
        return rc;
    switch (it->out[0].dtype) {
        TYPES_REAL(PUT_NUMBER)
    }
    return MST_OK;
}

static const struct dataset_kind range_kind = { sizeof(struct dataset_iter),
                                                range_go, NULL, range_count };

static enum mst_code range_run(struct op_ctx *c)
{
    static const char *const names[] = { "start", "stop", "step" };
    int type = op_attr(c->node, "output_types")->value[0].type;
    struct dataset *d;
    int64_t n[3];
    enum mst_code rc = MST_OK;

    for (int i = 0; i < 3 && !rc; i++)
        rc = dataset_number(c, i, names[i], &n[i]);
    if (rc)
        return rc;
    if (!n[2])
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "step must be a non-zero integer.");
    if (!dtype_is_int((enum dtype)type) && !dtype_is_float((enum dtype)type))
        return op_fail(c, MST_INVALID_ARGUMENT, "Unsupported data type: %s",
                       dtype_name(type));
    d = dataset_new(&range_kind, 0, 1);
    memcpy(d->n, n, sizeof(n));
    rc = tensor_new_scalar(&d->tensors[0], (enum dtype)type, c->st);
    if (rc) {
        dataset_unref(d);
        return rc;
    }
    return dataset_put(c, d);
}

const struct op_def def_range_dataset = {
    .name = "RangeDataset",
    .in = "start: int64, stop: int64, step: int64",
    .out = "handle: variant",
    .attr = DATASET_ATTRS DATASET_META "; replicate_on_split: bool = false",
    .flags = OP_STATEFUL,
    .kernel = (const struct op_kernel[]){ { DT_ANY, range_run }, { 0 } },
};
