/*
 * DecodeCSV: a record of text to one element of each output, by RFC 4180 as
 * TensorFlow reads it: line ends before a field are skipped, a quoted field
 * ends with a quote before the delimiter or at the end.
 */
#include "base/mem.h"
#include "kernel/number.h"
#include "kernel/text.h"
#include "kernel/types.h"

struct csv {
    char delimiter;
    bool quotes;
    struct attr_text na;
    const struct attr *columns; /* which to keep; none: all */
};

/* The fields of one record: one text, and where each ends in it. */
struct fields {
    struct text text;
    size_t *ends;
    int64_t count, room;
    int64_t seen; /* kept or not */
};

static enum mst_code csv_init(struct op_node *n, struct status *st)
{
    struct csv *v = ARENA_NEW(n->arena, struct csv);
    struct attr_text delimiter = op_attr_str(n, "field_delim");
    const struct attr *columns = op_attr(n, "select_cols");

    if (delimiter.len != 1)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "field_delim should be only 1 char");
    if (columns->count && columns->count != n->out_count)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "select_cols should match output size");
    for (int i = 1; i < columns->count; i++)
        if (columns->value[i - 1].i >= columns->value[i].i)
            return status_set(st, MST_INVALID_ARGUMENT,
                              "select_cols should be strictly increasing "
                              "indices");
    if (columns->count && columns->value[0].i < 0)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "select_cols should be non-negative indices");
    v->delimiter = delimiter.data[0];
    v->quotes = op_attr_bool(n, "use_quote_delim");
    v->na = op_attr_str(n, "na_value");
    v->columns = columns;
    n->state = v;
    return MST_OK;
}

/* The field that comes next is one to keep. */
static bool wanted(const struct csv *v, const struct fields *f)
{
    if (!v->columns->count)
        return true;
    return f->count < v->columns->count &&
           v->columns->value[f->count].i == f->seen;
}

/* The field that began at `begin` ends here. */
static void end_field(const struct csv *v, struct fields *f, size_t begin)
{
    if (wanted(v, f))
        *MEM_PUSH(f->ends, f->count, f->room) = f->text.len;
    else
        f->text.len = begin;
    f->seen++;
}

static enum mst_code read_plain(struct op_ctx *c, const struct str *s,
                                size_t *at, struct text *to)
{
    const struct csv *v = c->node->state;
    size_t begin = *at;

    for (; *at < s->len && s->data[*at] != v->delimiter; ++*at) {
        char ch = s->data[*at];

        if ((v->quotes && ch == '"') || ch == '\n' || ch == '\r')
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Unquoted fields cannot have quotes/CRLFs inside");
    }
    text_add(to, s->data + begin, *at - begin);
    ++*at;
    return MST_OK;
}

/* *at is behind the opening quote. */
static enum mst_code read_quoted(struct op_ctx *c, const struct str *s,
                                 size_t *at, struct text *to)
{
    const struct csv *v = c->node->state;
    size_t last = s->len - 1;

    while (*at < last &&
           (s->data[*at] != '"' || s->data[*at + 1] != v->delimiter)) {
        if (s->data[*at] != '"') {
            text_add(to, &s->data[(*at)++], 1);
            continue;
        }
        if (s->data[*at + 1] != '"')
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Quote inside a string has to be escaped by "
                           "another quote");
        text_add(to, "\"", 1);
        *at += 2;
    }
    if (*at > last || s->data[*at] != '"' ||
        (*at != last && s->data[*at + 1] != v->delimiter))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Quoted field has to end with quote followed by delim "
                       "or end");
    *at += 2;
    return MST_OK;
}

static enum mst_code read_fields(struct op_ctx *c, const struct str *s,
                                 struct fields *f)
{
    const struct csv *v = c->node->state;
    size_t at = 0;

    f->text.len = 0;
    f->count = f->seen = 0;
    while (at < s->len) {
        size_t begin = f->text.len;
        enum mst_code rc;

        if (s->data[at] == '\n' || s->data[at] == '\r') {
            at++;
            continue;
        }
        if (v->quotes && s->data[at] == '"') {
            at++;
            rc = read_quoted(c, s, &at, &f->text);
        } else {
            rc = read_plain(c, s, &at, &f->text);
        }
        if (rc)
            return rc;
        end_field(v, f, begin);
        if (v->columns->count && f->count == v->columns->count)
            return MST_OK;
    }
    /* A delimiter at the end has an empty field behind it. */
    if (s->len && s->data[s->len - 1] == v->delimiter)
        end_field(v, f, f->text.len);
    return MST_OK;
}

static enum mst_code set_default(struct op_ctx *c, int field, int64_t record)
{
    const struct tensor *value = op_in(c, 1 + field);

    if (value->count != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Field %d is required but missing in record %lld!",
                       field, (long long)record);
    tensor_copy_elems(op_out(c, field), record, value, 0, 1);
    return MST_OK;
}

static enum mst_code set_field(struct op_ctx *c, const struct fields *f,
                               int field, int64_t record)
{
    const struct csv *v = c->node->state;
    size_t begin = field ? f->ends[field - 1] : 0;
    struct str s = { f->text.data + begin, f->ends[field] - begin };
    struct tensor *out = op_out(c, field);
    enum dtype dt = (enum dtype)out->dtype;

    if (!s.len || (s.len == v->na.len && !memcmp(s.data, v->na.data, s.len)))
        return set_default(c, field, record);
    if (dt == DT_STRING) {
        str_set(tensor_str(out, record), s.data, s.len);
        return MST_OK;
    }
    if (number_read(&s, dt,
                    (char *)out->data + (size_t)record * dtype_size(dt)))
        return MST_OK;
    return op_fail(c, MST_INVALID_ARGUMENT,
                   "Field %d in record %lld is not a valid %s: %.*s", field,
                   (long long)record, dtype_name(dt), (int)MIN(s.len, 1000),
                   s.data);
}

static enum mst_code check_defaults(struct op_ctx *c)
{
    for (int i = 0; i < c->node->out_count; i++) {
        const struct tensor *t = op_in(c, 1 + i);

        if (t->ndim > 1)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Each record default should be at most rank 1");
        if (t->count >= 2)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "There should only be 1 default per field but "
                           "field %d has %lld",
                           i, (long long)t->count);
    }
    return MST_OK;
}

static enum mst_code read_record(struct op_ctx *c, struct fields *f, int64_t i)
{
    enum mst_code rc = read_fields(c, tensor_str(op_in(c, 0), i), f);

    if (rc)
        return rc;
    if (f->count != c->node->out_count)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Expect %d fields but have %lld in record %lld",
                       c->node->out_count, (long long)f->count, (long long)i);
    for (int k = 0; k < c->node->out_count && !rc; k++)
        rc = set_field(c, f, k, i);
    return rc;
}

static enum mst_code decode_csv(struct op_ctx *c)
{
    struct fields f = { 0 };
    enum mst_code rc = check_defaults(c);

    for (int i = 0; i < c->node->out_count && !rc; i++)
        rc = op_out_like(c, i, op_in(c, 0));
    for (int64_t i = 0; i < op_in(c, 0)->count && !rc; i++)
        rc = read_record(c, &f, i);
    text_done(&f.text);
    mem_free(f.ends);
    return rc;
}

const struct op_def def_decode_csv = {
    .name = "DecodeCSV",
    .in = "records: string, record_defaults: OUT_TYPE",
    .out = "output: OUT_TYPE",
    .attr = "OUT_TYPE: list({float, double, int32, int64, string}) >= 1; "
            "field_delim: string = ','; use_quote_delim: bool = true; "
            "na_value: string = ''; select_cols: list(int) >= 0 = []",
    .init = csv_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, decode_csv }, { 0 } },
};
