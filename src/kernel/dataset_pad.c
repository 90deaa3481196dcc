/*
 * Batches of elements of different shapes: PaddedBatchDataset. The wanted
 * shape of each component says -1 where the longest of a batch decides.
 * d->tensors are the shapes and then the padding values.
 */
#include "base/mem.h"
#include "kernel/dataset.h"
#include "kernel/dataset_collect.h"
#include "kernel/types.h"

struct pad_iter {
    struct dataset_iter it;
    struct collected s;
    bool over;
};

static enum mst_code pad_shape(struct dataset_iter *it,
                               const struct collected *s, int k,
                               struct shape *ret)
{
    const struct tensor *want = &it->d->tensors[k];
    int64_t n = collected_count(s);

    ret->ndim = (int)want->count + 1;
    ret->dims[0] = n;
    for (int d = 0; d < want->count; d++)
        ret->dims[d + 1] = MAX(tensor_int(want, d), 0);
    for (int64_t i = 0; i < n; i++) {
        const struct tensor *t = collected_at(s, i, k);

        if (t->ndim != want->count)
            return status_set(
                it->c->st, MST_INVALID_ARGUMENT,
                "All elements in a batch must have the same rank as the padded "
                "shape for component%d: expected rank %lld but got element "
                "with rank %d",
                k, (long long)want->count, t->ndim);
        for (int d = 0; d < t->ndim; d++) {
            if (tensor_int(want, d) < 0)
                ret->dims[d + 1] = MAX(ret->dims[d + 1], t->dims[d]);
            else if (t->dims[d] > tensor_int(want, d))
                return status_set(it->c->st, MST_DATA_LOSS,
                                  "Attempted to pad to a smaller size than the "
                                  "input element.");
        }
    }
    return MST_OK;
}

/* Copies t into element i of out, whose rows may be longer. */
static void pad_copy(struct tensor *out, int64_t i, const struct tensor *t)
{
    int64_t row = t->ndim ? t->dims[t->ndim - 1] : 1;

    for (int64_t at = 0; at < t->count; at += row) {
        int64_t rest = at / row, to = 0, step = 1;

        step = t->ndim ? out->dims[t->ndim] : 1;
        for (int d = t->ndim - 2; d >= 0; d--) {
            to += rest % t->dims[d] * step;
            rest /= t->dims[d];
            step *= out->dims[d + 1];
        }
        tensor_copy_elems(out, i * step + to, t, at, row);
    }
}

static enum mst_code pad(struct dataset_iter *it, const struct collected *s,
                         int k)
{
    const struct tensor *with = &it->d->tensors[it->d->tensor_count / 2 + k];
    const struct tensor *first = collected_at(s, 0, k);
    struct tensor *out = &it->out[k];
    struct shape shape;
    enum mst_code rc = pad_shape(it, s, k, &shape);

    for (int64_t i = 0; i < collected_count(s) && !rc; i++)
        if (collected_at(s, i, k)->dtype != with->dtype)
            rc = status_set(it->c->st, MST_INVALID_ARGUMENT,
                            "Component %d is of type %s and is padded with %s",
                            k, dtype_name(first->dtype),
                            dtype_name(with->dtype));
    if (!rc)
        rc = tensor_new(out, (enum dtype)with->dtype, shape.ndim, shape.dims,
                        it->c->st);
    if (rc)
        return rc;
    for (int64_t i = 0; i < out->count; i++)
        tensor_copy_elems(out, i, with, 0, 1);
    for (int64_t i = 0; i < collected_count(s); i++)
        pad_copy(out, i, collected_at(s, i, k));
    return MST_OK;
}

static enum mst_code pad_go(struct dataset_iter *it, enum mst_code got)
{
    struct pad_iter *p = CONTAINER(it, struct pad_iter, it);
    struct dataset_iter *in = dataset_iter_input(it, 0);
    enum mst_code rc = MST_OK;

    while (!p->over) {
        if (got == DATASET_FRESH)
            got = dataset_pull(in, it);
        if (got)
            return got;
        p->over = in->end;
        if (!in->end)
            collected_add(&p->s, in);
        if (collected_count(&p->s) >= it->d->n[0])
            break;
        got = DATASET_FRESH;
    }
    if (!p->s.count || (it->d->flag && collected_count(&p->s) < it->d->n[0])) {
        collected_done(&p->s);
        return dataset_end(it);
    }
    if (p->s.width != it->d->tensor_count / 2)
        rc = status_set(it->c->st, MST_INVALID_ARGUMENT,
                        "There are %d components and %d shapes", p->s.width,
                        it->d->tensor_count / 2);
    dataset_room(it, p->s.width);
    for (int k = 0; k < it->count && !rc; k++)
        rc = pad(it, &p->s, k);
    collected_done(&p->s);
    return rc;
}

static void pad_iter_done(struct dataset_iter *it)
{
    collected_done(&CONTAINER(it, struct pad_iter, it)->s);
}

static int64_t pad_count(const struct dataset *d)
{
    int64_t have = dataset_cardinality(d->inputs[0]);

    return have < 0 ? have
                    : have / d->n[0] + (!d->flag && have % d->n[0] ? 1 : 0);
}

static const struct dataset_kind pad_kind = { sizeof(struct pad_iter), pad_go,
                                              pad_iter_done, pad_count };

static enum mst_code pad_check(struct op_ctx *c, int shapes, int64_t *ret_size)
{
    enum mst_code rc = dataset_number(c, 1, "batch_size", ret_size);

    if (rc)
        return rc;
    if (*ret_size <= 0)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Batch size must be greater than zero.");
    for (int i = 0; i < shapes; i++) {
        if (op_in(c, 2 + i)->ndim != 1 ||
            op_in(c, 2 + i)->count >= TENSOR_RANK_MAX)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "All padded shapes must be vectors");
        if (op_in(c, 2 + shapes + i)->ndim)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "All padding values must be scalars");
    }
    return MST_OK;
}

static enum mst_code pad_run(struct op_ctx *c)
{
    int shapes = (int)op_attr_int(c->node, "N");
    int last = c->node->in_count - 1;
    bool v2 = last == 2 + 2 * shapes;
    struct dataset *d;
    int64_t size;
    enum mst_code rc;

    if (last != 1 + 2 * shapes + v2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "There must be as many padding values as shapes");
    rc = pad_check(c, shapes, &size);
    if (!rc && v2 && op_in(c, last)->ndim)
        rc =
            op_fail(c, MST_INVALID_ARGUMENT, "drop_remainder must be a scalar");
    if (!rc)
        rc = dataset_make(c, &pad_kind, 1, 2 * shapes, &d);
    if (rc)
        return rc;
    for (int i = 0; i < 2 * shapes; i++)
        d->tensors[i] = tensor_ref(op_in(c, 2 + i));
    d->n[0] = size;
    d->flag = v2 && *TENSOR_DATA(op_in(c, last), bool);
    return dataset_put(c, d);
}

#define PADDED(stem, text, in_, more)                                          \
    const struct op_def def_##stem = {                                         \
        .name = text,                                                          \
        .in = "input_dataset: variant, batch_size: int64, "                    \
              "padded_shapes: N * int64, padding_values: Toutput_types" in_,   \
        .out = "handle: variant",                                              \
        .attr = more "Toutput_types: list(type) >= 1; "                        \
                     "output_shapes: list(shape) >= 1; "                       \
                     "N: int >= 1" DATASET_META,                               \
        .kernel = (const struct op_kernel[]){ { DT_ANY, pad_run }, { 0 } },    \
    };

PADDED(padded_batch_dataset, "PaddedBatchDataset", "", "")
PADDED(padded_batch_dataset_v2, "PaddedBatchDatasetV2",
       ", drop_remainder: bool", "parallel_copy: bool = false; ")
