/*
 * Strings one by one: their length, parts of them, case, surrounding space.
 *
 * Where characters are counted (UTF8_CHAR), a character begins at every byte
 * that does not continue one; malformed text is not refused, as in TensorFlow.
 */
#include <ctype.h>
#include <string.h>

#include "kernel/strided.h"
#include "kernel/text.h"
#include "kernel/unicode.h"

static bool starts_char(char c)
{
    return ((unsigned char)c & 0xc0) != 0x80;
}

static size_t char_count(const struct str *s)
{
    size_t n = 0;

    for (size_t i = 0; i < s->len; i++)
        n += starts_char(s->data[i]);
    return n;
}

/* node->state is set where the unit is characters. */
static enum mst_code unit_init(struct op_node *n, struct status *st)
{
    (void)st;
    if (!strcmp(op_attr_str(n, "unit").data, "UTF8_CHAR"))
        n->state = n;
    return MST_OK;
}

static enum mst_code string_length(struct op_ctx *c)
{
    const struct tensor *in = op_in(c, 0);
    enum mst_code rc = op_out_like(c, 0, in);

    for (int64_t i = 0; i < in->count && !rc; i++) {
        const struct str *s = tensor_str(in, i);

        TENSOR_DATA(op_out(c, 0), int32_t)
        [i] = (int32_t)(c->node->state ? char_count(s) : s->len);
    }
    return rc;
}

const struct op_def def_string_length = {
    .name = "StringLength",
    .in = "input: string",
    .out = "output: int32",
    .attr = "unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'",
    .init = unit_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, string_length }, { 0 } },
};

/* ---- parts ---- */

/* The byte at which character n begins; the end when there are fewer. */
static size_t char_at(const struct str *s, size_t from, int64_t n)
{
    size_t i = from;

    for (; i < s->len && n > 0; n--) {
        i++;
        while (i < s->len && !starts_char(s->data[i]))
            i++;
    }
    return i;
}

/* Bytes [*ret_begin, *ret_end) of s; false when pos is outside of it. A
 * negative pos counts from the end. A negative length means all the rest of the
 * bytes, but no characters, or an error. */
static bool substr_range(const struct str *s, bool chars, int64_t pos,
                         int64_t len, size_t *ret_begin, size_t *ret_end)
{
    int64_t size = (int64_t)(chars ? char_count(s) : s->len), rest;

    if (pos > size || pos < -size || (chars && pos < 0 && len < 0))
        return false;
    if (chars && len < 0)
        len = 0;
    pos = pos < 0 ? pos + size : pos;
    rest = len < 0 || len > size - pos ? size - pos : len;
    *ret_begin = chars ? char_at(s, 0, pos) : (size_t)pos;
    *ret_end = chars ? char_at(s, *ret_begin, rest) : (size_t)(pos + rest);
    return true;
}

/* "0", or "(1, 2)" in two dimensions, as the errors have it. */
static void index_text(const struct tensor *t, bool broadcast, int64_t i,
                       struct text *ret)
{
    if (!broadcast || t->ndim < 2)
        text_addf(ret, "%lld", (long long)i);
    else
        text_addf(ret, "(%lld, %lld)", (long long)(i / t->dims[1]),
                  (long long)(i % t->dims[1]));
}

static enum mst_code substr_range_error(struct op_ctx *c, const struct str *s,
                                        int64_t pos, int64_t i, bool broadcast)
{
    struct text t = { 0 };

    text_addf(&t, "pos %lld out of range for string", (long long)pos);
    if (!c->node->state) {
        text_addf(&t, " b'");
        text_add_escaped(&t, s);
        text_addf(&t, "'");
    }
    text_addf(&t, " at index ");
    index_text(op_out(c, 0), broadcast, i, &t);
    op_fail(c, MST_INVALID_ARGUMENT, "%.*s", (int)MIN(t.len, 1000), t.data);
    text_done(&t);
    return MST_INVALID_ARGUMENT;
}

static enum mst_code substr_one(struct op_ctx *c, int64_t to, int64_t from,
                                int64_t at, bool broadcast)
{
    const struct str *s = tensor_str(op_in(c, 0), from);
    int64_t pos = tensor_int(op_in(c, 1), at);
    size_t begin, end;

    if (!substr_range(s, c->node->state, pos, tensor_int(op_in(c, 2), at),
                      &begin, &end))
        return substr_range_error(c, s, pos, to, broadcast);
    str_set(tensor_str(op_out(c, 0), to), s->data ? s->data + begin : NULL,
            end - begin);
    return MST_OK;
}

static enum mst_code substr(struct op_ctx *c)
{
    const struct tensor *in = op_in(c, 0), *pos = op_in(c, 1);
    char ta[SHAPE_TEXT_MAX], tb[SHAPE_TEXT_MAX];
    int64_t si[TENSOR_RANK_MAX], sp[TENSOR_RANK_MAX];
    struct shape out;
    enum mst_code rc;
    bool broadcast;

    if (!tensor_same_shape(pos, op_in(c, 2)))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "pos and len should have the same shape, got: %s vs. %s",
                       tensor_shape_text(pos, ta),
                       tensor_shape_text(op_in(c, 2), tb));
    if (!shape_broadcast(in, pos, &out))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Incompatible shapes: %s vs. %s",
                       tensor_shape_text(in, ta), tensor_shape_text(pos, tb));
    rc = op_out_new(c, 0, out.ndim, out.dims);
    strided_of(in->ndim, in->dims, si);
    strided_of(pos->ndim, pos->dims, sp);
    broadcast = pos->ndim && !tensor_same_shape(in, pos);
    for (int64_t i = 0; !rc && i < op_out(c, 0)->count; i++) {
        int64_t rest = i, from = 0, at = 0;

        for (int d = out.ndim - 1; d >= 0; d--) {
            int64_t k = rest % out.dims[d];
            int di = d - (out.ndim - in->ndim), dp = d - (out.ndim - pos->ndim);

            from += di < 0 || in->dims[di] == 1 ? 0 : k * si[di];
            at += dp < 0 || pos->dims[dp] == 1 ? 0 : k * sp[dp];
            rest /= out.dims[d];
        }
        rc = substr_one(c, i, from, at, broadcast);
    }
    return rc;
}

const struct op_def def_substr = {
    .name = "Substr",
    .in = "input: string, pos: T, len: T",
    .out = "output: string",
    .attr = "T: {int32, int64}; unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'",
    .init = unit_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, substr }, { 0 } },
};

/* ---- case and space ---- */

/* Letters of ASCII, or of all of Unicode where the strings are UTF-8. */
static enum mst_code change_case(struct op_ctx *c, bool upper)
{
    const struct tensor *in = op_in(c, 0);
    enum mst_code rc = tensor_copy(op_out(c, 0), in, c->st);

    for (int64_t i = 0; i < in->count && !rc; i++) {
        struct str *s = tensor_str(op_out(c, 0), i);
        bool ascii = true;

        /* TensorFlow hands UTF-8 on as a C string. */
        if (c->node->state && s->len)
            s->len = strnlen(s->data, s->len);
        for (size_t k = 0; k < s->len; k++) {
            unsigned char ch = (unsigned char)s->data[k];

            ascii &= ch < 0x80;
            if (ch < 0x80)
                s->data[k] = (char)(upper ? toupper(ch) : tolower(ch));
        }
        if (!ascii && c->node->state)
            rc = unicode_change_case(s, upper, c->st);
    }
    return rc;
}

static enum mst_code string_upper(struct op_ctx *c)
{
    return change_case(c, true);
}

static enum mst_code string_lower(struct op_ctx *c)
{
    return change_case(c, false);
}

static enum mst_code case_init(struct op_node *n, struct status *st)
{
    struct attr_text encoding = op_attr_str(n, "encoding");

    if (encoding.len && strcmp(encoding.data, "utf-8"))
        return status_set(st, MST_INVALID_ARGUMENT,
                          "only utf-8 or '' (no encoding) is supported, "
                          "received %s",
                          encoding.data);
    if (encoding.len)
        n->state = n;
    return MST_OK;
}

const struct op_def def_string_upper = {
    .name = "StringUpper",
    .in = "input: string",
    .out = "output: string",
    .attr = "encoding: string = ''",
    .init = case_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, string_upper }, { 0 } },
};

const struct op_def def_string_lower = {
    .name = "StringLower",
    .in = "input: string",
    .out = "output: string",
    .attr = "encoding: string = ''",
    .init = case_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, string_lower }, { 0 } },
};

static enum mst_code string_strip(struct op_ctx *c)
{
    const struct tensor *in = op_in(c, 0);
    enum mst_code rc = op_out_like(c, 0, in);

    for (int64_t i = 0; i < in->count && !rc; i++) {
        const struct str *s = tensor_str(in, i);
        size_t begin = 0, end = s->len;

        while (begin < end && isspace((unsigned char)s->data[begin]))
            begin++;
        while (end > begin && isspace((unsigned char)s->data[end - 1]))
            end--;
        str_set(tensor_str(op_out(c, 0), i), s->data ? s->data + begin : NULL,
                end - begin);
    }
    return rc;
}

const struct op_def def_string_strip = {
    .name = "StringStrip",
    .in = "input: string",
    .out = "output: string",
    .kernel = (const struct op_kernel[]){ { DT_ANY, string_strip }, { 0 } },
};
