/*
 * Strings cut in pieces: a sparse tensor of them, a row a string.
 *
 * StringSplit cuts at any character of its delimiter, or between all
 * characters. StringSplitV2 is Python's str.split().
 */
#include <ctype.h>
#include <string.h>

#include "base/mem.h"
#include "op/op.h"

struct piece {
    const char *data;
    size_t len;
};

/* The pieces of all strings, and how many each string has. */
struct pieces {
    struct piece *piece;
    size_t count, room;
    int64_t *per_row;
    int64_t row, longest;
};

static void add(struct pieces *p, const char *data, size_t len)
{
    *MEM_PUSH(p->piece, p->count, p->room) = (struct piece){ data, len };
    p->per_row[p->row]++;
}

/* The three outputs from the pieces. */
static enum mst_code put_pieces(struct op_ctx *c, struct pieces *p)
{
    int64_t rows = op_in(c, 0)->count, n = (int64_t)p->count, at = 0, *index;
    enum mst_code rc = op_out_new(c, 0, 2, (int64_t[]){ n, 2 });

    if (!rc)
        rc = op_out_new(c, 1, 1, &n);
    if (!rc)
        rc = op_out_new(c, 2, 1, (int64_t[]){ 2 });
    if (rc)
        return rc;
    index = op_out(c, 0)->data;
    for (int64_t row = 0; row < rows; row++)
        for (int64_t k = 0; k < p->per_row[row]; k++, at++) {
            index[2 * at] = row;
            index[2 * at + 1] = k;
            str_set(tensor_str(op_out(c, 1), at), p->piece[at].data,
                    p->piece[at].len);
            p->longest = MAX(p->longest, k + 1);
        }
    TENSOR_DATA(op_out(c, 2), int64_t)[0] = rows;
    TENSOR_DATA(op_out(c, 2), int64_t)[1] = p->longest;
    return MST_OK;
}

struct split_args {
    const char *sep;
    size_t sep_len;
    bool skip_empty;
    int64_t max;
};

static enum mst_code split_all(struct op_ctx *c, const struct split_args *a,
                               void (*split)(const struct split_args *a,
                                             const struct str *s,
                                             struct pieces *p))
{
    const struct tensor *in = op_in(c, 0);
    struct tensor counts = { 0 };
    struct pieces p = { 0 };
    enum mst_code rc = tensor_new(&counts, DT_INT64, 1, &in->count, c->st);

    if (rc)
        return rc;
    tensor_zero(&counts);
    p.per_row = counts.data;
    for (p.row = 0; p.row < in->count; p.row++)
        split(a, tensor_str(in, p.row), &p);
    rc = put_pieces(c, &p);
    mem_free(p.piece);
    tensor_unref(&counts);
    return rc;
}

static enum mst_code check_vector(struct op_ctx *c)
{
    char text[SHAPE_TEXT_MAX];

    if (op_in(c, 0)->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "input must be a vector, got shape: %s",
                       tensor_shape_text(op_in(c, 0), text));
    return MST_OK;
}

/* ---- the first ---- */

static void split_chars(const struct split_args *a, const struct str *s,
                        struct pieces *p)
{
    size_t begin = 0;

    if (!s->len) /* not even an empty piece */
        return;
    if (!a->sep_len) {
        for (size_t i = 0; i < s->len; i++)
            add(p, s->data + i, 1);
        return;
    }
    for (size_t i = 0; i <= s->len; i++)
        if (i == s->len || memchr(a->sep, s->data[i], a->sep_len)) {
            if (i > begin || !a->skip_empty)
                add(p, s->data + begin, i - begin);
            begin = i + 1;
        }
}

static enum mst_code string_split(struct op_ctx *c)
{
    const struct tensor *sep = op_in(c, 1);
    struct split_args a = { .skip_empty = c->node->state != NULL };
    char text[SHAPE_TEXT_MAX];
    enum mst_code rc = check_vector(c);

    if (rc)
        return rc;
    if (sep->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "delimiter must be a scalar, got shape: %s",
                       tensor_shape_text(sep, text));
    a.sep = tensor_str(sep, 0)->data;
    a.sep_len = tensor_str(sep, 0)->len;
    return split_all(c, &a, split_chars);
}

static enum mst_code string_split_init(struct op_node *n, struct status *st)
{
    (void)st;
    if (op_attr_bool(n, "skip_empty")) /* only whether it is set matters */
        n->state = n;
    return MST_OK;
}

const struct op_def def_string_split = {
    .name = "StringSplit",
    .in = "input: string, delimiter: string",
    .out = "indices: int64, values: string, shape: int64",
    .attr = "skip_empty: bool = true",
    .init = string_split_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, string_split }, { 0 } },
};

/* ---- Python's ---- */

static size_t skip_space(const struct str *s, size_t i)
{
    while (i < s->len && isspace((unsigned char)s->data[i]))
        i++;
    return i;
}

static void split_space(const struct split_args *a, const struct str *s,
                        struct pieces *p)
{
    size_t i = skip_space(s, 0);

    for (int64_t done = 0; i < s->len;) {
        size_t begin = i;

        while (i < s->len && !isspace((unsigned char)s->data[i]))
            i++;
        add(p, s->data + begin, i - begin);
        i = skip_space(s, i);
        if (a->max > 0 && ++done == a->max) {
            add(p, s->data + i, s->len - i);
            return;
        }
    }
}

static void split_at(const struct split_args *a, const struct str *s,
                     struct pieces *p)
{
    const char *at = s->data, *end = at ? at + s->len : NULL, *next;

    if (a->max == 0) {
        add(p, s->data, s->len);
        return;
    }
    if (!a->sep_len) {
        split_space(a, s, p);
        return;
    }
    for (int64_t done = 0; at && (a->max < 0 || done < a->max); done++) {
        next = memmem(at, (size_t)(end - at), a->sep, a->sep_len);
        if (!next)
            break;
        add(p, at, (size_t)(next - at));
        at = next + a->sep_len;
    }
    add(p, at, at ? (size_t)(end - at) : 0);
}

static enum mst_code string_split_v2(struct op_ctx *c)
{
    const struct tensor *sep = op_in(c, 1);
    struct split_args a = { .max = *(const int64_t *)c->node->state };
    char text[SHAPE_TEXT_MAX];
    enum mst_code rc = check_vector(c);

    if (rc)
        return rc;
    if (sep->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "sep must be a scalar, got shape: %s",
                       tensor_shape_text(sep, text));
    a.sep = tensor_str(sep, 0)->data;
    a.sep_len = tensor_str(sep, 0)->len;
    return split_all(c, &a, split_at);
}

static enum mst_code string_split_v2_init(struct op_node *n, struct status *st)
{
    (void)st;
    n->state = ARENA_NEW(n->arena, int64_t);
    *(int64_t *)n->state = op_attr_int(n, "maxsplit");
    return MST_OK;
}

const struct op_def def_string_split_v2 = {
    .name = "StringSplitV2",
    .in = "input: string, sep: string",
    .out = "indices: int64, values: string, shape: int64",
    .attr = "maxsplit: int = -1",
    .init = string_split_v2_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, string_split_v2 }, { 0 } },
};
