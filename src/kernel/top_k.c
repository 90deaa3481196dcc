/*
 * The greatest of a row: TopK, InTopK, NthElement.
 *
 * TopK keeps a heap of the k best seen so far, with the worst of them on top;
 * equal values rank by their place. The result is sorted also where the node
 * does not ask for it.
 */
#include "base/mem.h"
#include "kernel/types.h"

struct top_job {
    /* The k best of n, best first: values, and places in scratch. */
    void (*row)(void *values, int64_t *places, const void *in, int64_t n,
                int64_t k);
    const char *in;
    struct tensor *values, *places;
    size_t size;
    int64_t n, k;
};

static void store_places(struct tensor *out, int64_t at, const int64_t *place,
                         int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (out->dtype == DT_INT64)
            TENSOR_DATA(out, int64_t)[at + i] = place[i];
        else if (out->dtype == DT_INT32)
            TENSOR_DATA(out, int32_t)[at + i] = (int32_t)place[i];
        else
            TENSOR_DATA(out, int16_t)[at + i] = (int16_t)place[i];
    }
}

static void top_rows(void *arg, int64_t begin, int64_t end)
{
    const struct top_job *j = arg;
    int64_t *places = mem_array((size_t)j->k, sizeof(*places));

    for (int64_t r = begin; r < end; r++) {
        j->row((char *)j->values->data + (size_t)(r * j->k) * j->size, places,
               j->in + (size_t)(r * j->n) * j->size, j->n, j->k);
        store_places(j->places, r * j->k, places, j->k);
    }
    mem_free(places);
}

static enum mst_code top_k_of(struct op_ctx *c, int64_t *ret)
{
    const struct tensor *in = op_in(c, 0);
    char text[SHAPE_TEXT_MAX];

    if (c->node->in_count == 1) {
        *ret = *(const int64_t *)c->node->state;
    } else {
        if (op_in(c, 1)->ndim)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "k must be scalar, got shape %s",
                           tensor_shape_text(op_in(c, 1), text));
        *ret = tensor_int(op_in(c, 1), 0);
    }
    if (*ret < 0)
        return op_fail(c, MST_INVALID_ARGUMENT, "Need k >= 0, got %lld",
                       (long long)*ret);
    if (!in->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "input must be >= 1-D, got shape %s",
                       tensor_shape_text(in, text));
    if (in->dims[in->ndim - 1] < *ret)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "input must have at least k columns. Had %lld, needed "
                       "%lld",
                       (long long)in->dims[in->ndim - 1], (long long)*ret);
    return MST_OK;
}

static enum mst_code top_run(struct op_ctx *c, struct top_job *j)
{
    const struct tensor *in = op_in(c, 0);
    int64_t dims[TENSOR_RANK_MAX];
    enum mst_code rc = top_k_of(c, &j->k);

    if (rc)
        return rc;
    memcpy(dims, in->dims, sizeof(dims));
    dims[in->ndim - 1] = j->k;
    rc = op_out_new(c, 0, in->ndim, dims);
    if (!rc)
        rc = op_out_new(c, 1, in->ndim, dims);
    if (rc || !op_out(c, 0)->count)
        return rc;
    j->n = in->dims[in->ndim - 1];
    j->in = in->data;
    j->values = op_out(c, 0);
    j->places = op_out(c, 1);
    j->size = dtype_size((enum dtype)in->dtype);
    op_for(c, in->count / j->n, (double)j->n + 20 * (double)j->k, top_rows, j);
    return MST_OK;
}

/* in[a] ranks before in[b]. */
#define TOP_K(s, T, A, DT, LD, ST)                                             \
    static inline bool before_##s(const T *in, int64_t a, int64_t b)           \
    {                                                                          \
        A x = LD(in[a]), y = LD(in[b]);                                        \
                                                                               \
        return x > y || (!(x < y) && a < b);                                   \
    }                                                                          \
    /* Lets the element at i of the heap sink to its place. */                 \
    static void sink_##s(const T *in, int64_t *heap, int64_t i, int64_t n)     \
    {                                                                          \
        for (int64_t child; (child = 2 * i + 1) < n; i = child) {              \
            int64_t t = heap[i];                                               \
                                                                               \
            if (child + 1 < n && before_##s(in, heap[child], heap[child + 1])) \
                child++;                                                       \
            if (!before_##s(in, t, heap[child]))                               \
                return;                                                        \
            heap[i] = heap[child];                                             \
            heap[child] = t;                                                   \
        }                                                                      \
    }                                                                          \
    static void top_row_##s(void *values_, int64_t *heap, const void *in_,     \
                            int64_t n, int64_t k)                              \
    {                                                                          \
        const T *in = in_;                                                     \
        T *values = values_;                                                   \
                                                                               \
        for (int64_t i = 0; i < k; i++)                                        \
            heap[i] = i;                                                       \
        for (int64_t i = k / 2 - 1; i >= 0; i--)                               \
            sink_##s(in, heap, i, k);                                          \
        for (int64_t i = k; i < n; i++)                                        \
            if (before_##s(in, i, heap[0])) {                                  \
                heap[0] = i;                                                   \
                sink_##s(in, heap, 0, k);                                      \
            }                                                                  \
        for (int64_t i = k - 1; i > 0; i--) {                                  \
            int64_t t = heap[0];                                               \
                                                                               \
            heap[0] = heap[i];                                                 \
            heap[i] = t;                                                       \
            sink_##s(in, heap, 0, i);                                          \
        }                                                                      \
        for (int64_t i = 0; i < k; i++)                                        \
            values[i] = in[heap[i]];                                           \
    }                                                                          \
    static enum mst_code top_k_##s(struct op_ctx *c)                           \
    {                                                                          \
        struct top_job j = { .row = top_row_##s };                             \
                                                                               \
        return top_run(c, &j);                                                 \
    }
TYPES_REAL(TOP_K)

static enum mst_code k_init(struct op_node *n, struct status *st)
{
    int64_t *k = ARENA_NEW(n->arena, int64_t);

    *k = op_attr_int(n, "k");
    n->state = k;
    return MST_OK;
}

const struct op_def def_top_k = {
    .name = "TopK",
    .in = "input: T",
    .out = "values: T, indices: int32",
    .attr = "k: int >= 0; sorted: bool = true; T: realnumbertype",
    .init = k_init,
    .kernel = KERNELS(TYPES_REAL(ROW, top_k)),
};

const struct op_def def_top_kv2 = {
    .name = "TopKV2",
    .in = "input: T, k: Tk",
    .out = "values: T, indices: index_type",
    .attr = "sorted: bool = true; T: realnumbertype; "
            "Tk: {int16, int32, int64} = int32; "
            "index_type: {int16, int32, int64} = int32",
    .kernel = KERNELS(TYPES_REAL(ROW, top_k)),
};

/* ---- InTopK ---- */

/* Whether fewer than k of the row are above the target. A row with anything
 * that is not finite, or a target that is no class, says no. */
static bool in_top(const float *row, int64_t n, int64_t target, int64_t k)
{
    int64_t above = 0;

    if (target < 0 || target >= n)
        return false;
    for (int64_t i = 0; i < n; i++) {
        if (!(fabsf(row[i]) < INFINITY))
            return false;
        above += row[i] > row[target];
    }
    return above < k;
}

static enum mst_code in_top_k(struct op_ctx *c)
{
    const struct tensor *in = op_in(c, 0), *targets = op_in(c, 1);
    char text[SHAPE_TEXT_MAX];
    enum mst_code rc;
    int64_t k;

    if (c->node->in_count == 3) {
        if (op_in(c, 2)->ndim)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "k must be 0-D, got shape %s",
                           tensor_shape_text(op_in(c, 2), text));
        k = tensor_int(op_in(c, 2), 0);
    } else {
        k = *(const int64_t *)c->node->state;
    }
    if (in->ndim != 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "predictions must be 2-dimensional");
    if (targets->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "targets must be 1-dimensional");
    if (in->dims[0] != targets->count)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "First dimension of predictions %lld must match length "
                       "of targets %lld",
                       (long long)in->dims[0], (long long)targets->count);
    rc = op_out_new(c, 0, 1, targets->dims);
    for (int64_t i = 0; i < targets->count && !rc; i++)
        TENSOR_DATA(op_out(c, 0), bool)
    [i] = in_top(TENSOR_DATA(in, float) + i * in->dims[1], in->dims[1],
                 tensor_int(targets, i), k);
    return rc;
}

const struct op_def def_in_top_k = {
    .name = "InTopK",
    .in = "predictions: float, targets: T",
    .out = "precision: bool",
    .attr = "k: int; T: {int32, int64} = int32",
    .init = k_init,
    .kernel = KERNELS({ DT_ANY, in_top_k }, ),
};

const struct op_def def_in_top_kv2 = {
    .name = "InTopKV2",
    .in = "predictions: float, targets: T, k: T",
    .out = "precision: bool",
    .attr = "T: {int32, int64} = int32",
    .kernel = KERNELS({ DT_ANY, in_top_k }, ),
};

/* ---- NthElement: the one at place n of the row if it were sorted ---- */

static enum mst_code nth_init(struct op_node *n, struct status *st)
{
    if (op_attr_bool(n, "reverse"))
        n->state = n;
    return MST_OK;
}

static enum mst_code nth_check(struct op_ctx *c, int64_t *ret)
{
    const struct tensor *in = op_in(c, 0), *n = op_in(c, 1);

    if (n->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "N must be scalar but has rank %d", n->ndim);
    *ret = tensor_int(n, 0);
    if (*ret < 0)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "n must be non-negative but is %lld", (long long)*ret);
    if (!in->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input must be at least rank 1 but is rank 0");
    if (*ret >= in->dims[in->ndim - 1])
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input must have last dimension > n = %lld",
                       (long long)*ret);
    return MST_OK;
}

/* Place n of the ascending order is place size - 1 - n of the falling one. */
static enum mst_code nth_run(struct op_ctx *c, struct top_job *j)
{
    const struct tensor *in = op_in(c, 0);
    enum mst_code rc = nth_check(c, &j->k);
    int64_t rows, *places;
    char *values;

    if (!rc)
        rc = op_out_new(c, 0, in->ndim - 1, in->dims);
    if (rc || !op_out(c, 0)->count)
        return rc;
    j->n = in->dims[in->ndim - 1];
    j->k = c->node->state ? j->k + 1 : j->n - j->k;
    j->size = dtype_size((enum dtype)in->dtype);
    rows = in->count / j->n;
    values = mem_array((size_t)j->k, j->size);
    places = mem_array((size_t)j->k, sizeof(*places));
    for (int64_t r = 0; r < rows; r++) {
        j->row(values, places,
               (const char *)in->data + (size_t)(r * j->n) * j->size, j->n,
               j->k);
        memcpy((char *)op_out(c, 0)->data + (size_t)r * j->size,
               values + (size_t)(j->k - 1) * j->size, j->size);
    }
    mem_free(values);
    mem_free(places);
    return MST_OK;
}

#define NTH(s, T, A, DT, LD, ST)                                               \
    static enum mst_code nth_element_##s(struct op_ctx *c)                     \
    {                                                                          \
        struct top_job j = { .row = top_row_##s };                             \
                                                                               \
        return nth_run(c, &j);                                                 \
    }
TYPES_REAL(NTH)

const struct op_def def_nth_element = {
    .name = "NthElement",
    .in = "input: T, n: int32",
    .out = "values: T",
    .attr = "reverse: bool = false; T: realnumbertype",
    .init = nth_init,
    .kernel = KERNELS(TYPES_REAL(ROW, nth_element)),
};
