/*
 * StringNGrams: runs of a few neighbouring strings of each row of a ragged
 * tensor, joined by a separator, with padding at the rows' ends.
 */
#include "kernel/example.h"
#include "kernel/text.h"
#include "kernel/types.h"

struct ngrams {
    struct attr_text separator, left, right;
    const struct attr *widths;
    int64_t pad;
    bool keep_short;
};

static enum mst_code ngrams_init(struct op_node *n, struct status *st)
{
    struct ngrams *g = ARENA_NEW(n->arena, struct ngrams);

    (void)st;
    g->separator = op_attr_str(n, "separator");
    g->left = op_attr_str(n, "left_pad");
    g->right = op_attr_str(n, "right_pad");
    g->widths = op_attr(n, "ngram_widths");
    g->pad = op_attr_int(n, "pad_width");
    g->keep_short = op_attr_bool(n, "preserve_short_sequences");
    n->state = g;
    return MST_OK;
}

/* Padding is never so wide that an n-gram could be nothing else. */
static int64_t pad_width(const struct ngrams *g, int64_t width)
{
    return g->pad < 0 ? width - 1 : MIN(g->pad, width - 1);
}

static int64_t count_of(const struct ngrams *g, int64_t length, int64_t width)
{
    return MAX(0, length + 2 * pad_width(g, width) - width + 1);
}

static enum mst_code check_splits(struct op_ctx *c)
{
    int64_t size = op_in(c, 0)->count, last;
    const struct tensor *splits = op_in(c, 1);

    if (!splits->count)
        return MST_OK;
    last = tensor_int(splits, 0);
    if (last)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "First split value must be 0, got %lld",
                       (long long)last);
    for (int64_t i = 1; i < splits->count; i++) {
        int64_t at = tensor_int(splits, i);

        if (at < last || at > size)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Invalid split value %lld, must be in [%lld, %lld]",
                           (long long)at, (long long)last, (long long)size);
        last = at;
    }
    if (last != size)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Last split value must be data size. Expected %lld, got "
                       "%lld",
                       (long long)size, (long long)last);
    return MST_OK;
}

/* N-gram i of `count` over strings data[begin..]. */
static void make_ngram(const struct ngrams *g, const struct tensor *data,
                       int64_t begin, int64_t width, int64_t i, int64_t count,
                       struct str *ret)
{
    int64_t pad = pad_width(g, width), left = MAX(0, pad - i);
    int64_t right = MAX(0, pad - (count - (i + 1)));
    int64_t tokens = width - left - right, from = MAX(0, i - pad);
    struct text t = { 0 };

    for (int64_t k = 0; k < width; k++) {
        if (k)
            text_add(&t, g->separator.data, g->separator.len);
        if (k < left)
            text_add(&t, g->left.data, g->left.len);
        else if (k < left + tokens)
            text_add_str(&t, tensor_str(data, begin + from + k - left));
        else
            text_add(&t, g->right.data, g->right.len);
    }
    text_give(&t, ret);
}

static enum mst_code fill_row(struct op_ctx *c, int64_t row, int64_t at)
{
    const struct ngrams *g = c->node->state;
    int64_t begin = tensor_int(op_in(c, 1), row), start = at;
    int64_t length = tensor_int(op_in(c, 1), row + 1) - begin;

    for (int w = 0; w < g->widths->count; w++) {
        int64_t width = g->widths->value[w].i, n = count_of(g, length, width);

        for (int64_t i = 0; i < n; i++)
            make_ngram(g, op_in(c, 0), begin, width, i, n,
                       tensor_str(op_out(c, 0), at++));
    }
    if (!g->keep_short || at != start || !length)
        return MST_OK;
    if (g->pad < 0)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Pad width should be >= 0 when "
                       "preserve_short_sequences is True and ngram_widths are "
                       "not provided, got %lld",
                       (long long)g->pad);
    make_ngram(g, op_in(c, 0), begin, length + 2 * g->pad, 0, 1,
               tensor_str(op_out(c, 0), at));
    return MST_OK;
}

/* Fills the output splits; *ret gets the number of all n-grams. */
static enum mst_code count_all(struct op_ctx *c, int64_t *ret)
{
    const struct ngrams *g = c->node->state;
    const struct tensor *splits = op_in(c, 1), *out = op_out(c, 1);
    double bytes = 0,
           each = (double)(g->separator.len + g->left.len + g->right.len + 1);
    int64_t total = 0;

    if (splits->count)
        example_set_split(out, 0, 0);
    for (int64_t row = 0; row + 1 < splits->count; row++) {
        int64_t length = tensor_int(splits, row + 1) - tensor_int(splits, row),
                n = 0;

        for (int w = 0; w < g->widths->count; w++) {
            int64_t width = g->widths->value[w].i;

            n += count_of(g, length, width);
            bytes += (double)count_of(g, length, width) * (double)width * each;
        }
        if (g->keep_short && length > 0 && !n) {
            n = 1;
            bytes += 2 * (double)g->pad * each;
        }
        /* Padding costs the peer nothing, and us what it comes to. */
        if (bytes > 0x1p40 || !buffer_within_limit((size_t)MAX(bytes, 0)))
            return op_fail(c, MST_RESOURCE_EXHAUSTED, "N-grams of %g bytes",
                           bytes);
        total += n;
        if (out->dtype == DT_INT32 && total > INT32_MAX)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "More n-grams than int32 can count");
        example_set_split(out, row + 1, total);
    }
    *ret = total;
    return MST_OK;
}

static enum mst_code string_ngrams(struct op_ctx *c)
{
    const struct ngrams *g = c->node->state;
    const struct tensor *data = op_in(c, 0), *splits = op_in(c, 1);
    int64_t total;
    enum mst_code rc;

    for (int w = 0; w < g->widths->count; w++)
        if (g->widths->value[w].i <= 0 || g->widths->value[w].i > INT32_MAX)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "ngram_widths must contain positive values");
    rc = check_splits(c);
    if (!rc)
        rc = op_out_like(c, 1, splits);
    if (rc)
        return rc;
    if (!data->count || !splits->count) {
        tensor_zero(op_out(c, 1));
        return op_out_like(c, 0, data);
    }
    rc = count_all(c, &total);
    if (!rc)
        rc = op_out_new(c, 0, 1, &total);
    for (int64_t row = 0; row + 1 < splits->count && !rc; row++)
        rc = fill_row(c, row, tensor_int(op_out(c, 1), row));
    return rc;
}

const struct op_def def_string_n_grams = {
    .name = "StringNGrams",
    .in = "data: string, data_splits: Tsplits",
    .out = "ngrams: string, ngrams_splits: Tsplits",
    .attr = "separator: string; ngram_widths: list(int) >= 0; "
            "left_pad: string; right_pad: string; pad_width: int; "
            "preserve_short_sequences: bool; Tsplits: {int32, int64} = int64",
    .init = ngrams_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, string_ngrams }, { 0 } },
};
