/*
 * RandomShuffle: the rows of a tensor in another order. Row i changes places
 * with one of those from i on.
 */
#include "kernel/random_state.h"

static void permutation(struct philox gen, int64_t *row, int64_t n)
{
    struct philox_words w = philox_words(gen);

    for (int64_t i = 0; i < n; i++)
        row[i] = i;
    for (int64_t i = 0; i < n - 1; i++) {
        int64_t k = i + philox_word(&w) % (uint32_t)(n - i);
        int64_t t = row[i];

        row[i] = row[k];
        row[k] = t;
    }
}

static enum mst_code random_shuffle(struct op_ctx *c)
{
    const struct tensor *in = op_in(c, 0);
    int64_t n = in->ndim ? in->dims[0] : 1, size;
    struct tensor rows = { 0 };
    enum mst_code rc;

    if (n <= 1 || in->count <= 1) {
        op_out_same(c, 0, 0);
        return MST_OK;
    }
    if (n > UINT32_MAX)
        return op_fail(c, MST_INVALID_ARGUMENT, "Too many rows to shuffle");
    rc = op_out_like(c, 0, in);
    if (!rc)
        rc = tensor_new(&rows, DT_INT64, 1, &n, c->st);
    if (rc)
        return rc;
    permutation(random_reserve(c, (uint64_t)(n - 1 + 3) / 4), rows.data, n);
    size = in->count / n;
    for (int64_t i = 0; i < n; i++)
        tensor_copy_elems(op_out(c, 0), i * size, in,
                          TENSOR_DATA(&rows, int64_t)[i] * size, size);
    tensor_unref(&rows);
    return MST_OK;
}

const struct op_def def_random_shuffle = {
    .name = "RandomShuffle",
    .in = "value: T",
    .out = "output: T",
    .attr = "seed: int = 0; seed2: int = 0; T: type",
    .flags = OP_STATEFUL,
    .init = random_state_init,
    .done = random_state_done,
    .kernel = (const struct op_kernel[]){ { DT_ANY, random_shuffle }, { 0 } },
};
