/*
 * UnicodeDecode, UnicodeEncode, UnicodeTranscode, UnicodeScript.
 */
#include <unicode/uscript.h>

#include "base/mem.h"
#include "kernel/example.h"
#include "kernel/types.h"
#include "kernel/unicode.h"

struct unicode {
    struct unicode_policy policy;
    const char *from;
    enum unicode_encoding to;
};

static enum mst_code encode_init(struct op_node *n, struct status *st)
{
    struct unicode *u = ARENA_NEW(n->arena, struct unicode);

    n->state = u;
    u->to = unicode_encoding_of(op_attr_str(n, "output_encoding"));
    return unicode_policy_init(&u->policy, n, st);
}

static enum mst_code decode_init(struct op_node *n, struct status *st)
{
    struct unicode *u = ARENA_NEW(n->arena, struct unicode);
    struct unicode_reader r;
    enum mst_code rc;

    n->state = u;
    u->from = op_attr_str(n, "input_encoding").data;
    rc = unicode_policy_init(&u->policy, n, st);
    if (rc)
        return rc;
    u->policy.controls = op_attr_bool(n, "replace_control_characters");
    if (!unicode_reader_open(&r, u->from))
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Could not create converter for input encoding: %s",
                          u->from);
    unicode_reader_close(&r);
    return MST_OK;
}

static enum mst_code transcode_init(struct op_node *n, struct status *st)
{
    enum mst_code rc = decode_init(n, st);
    struct unicode *u = n->state;

    u->to = unicode_encoding_of(op_attr_str(n, "output_encoding"));
    return rc;
}

static enum mst_code open_reader(struct op_ctx *c, struct unicode_reader *r)
{
    const struct unicode *u = c->node->state;

    if (unicode_reader_open(r, u->from))
        return MST_OK;
    return op_fail(c, MST_INVALID_ARGUMENT,
                   "Could not create converter for input encoding: %s",
                   u->from);
}

static enum mst_code malformed(struct op_ctx *c)
{
    return op_fail(c, MST_INVALID_ARGUMENT,
                   "Invalid formatting on input string");
}

/* ---- UnicodeTranscode ---- */

struct transcode {
    const struct unicode_policy *policy;
    struct unicode_writer w;
    bool malformed;
};

static void transcode_one(void *arg, int32_t ch, int64_t bytes, bool bad)
{
    struct transcode *t = arg;

    (void)bytes;
    if (bad || (t->policy->controls && ch <= 0x1f)) {
        t->malformed = true;
        if (t->policy->ignore)
            return;
        ch = t->policy->replacement;
    }
    unicode_add(&t->w, ch);
}

static enum mst_code unicode_transcode(struct op_ctx *c)
{
    const struct unicode *u = c->node->state;
    const struct tensor *in = op_in(c, 0);
    struct transcode t = { .policy = &u->policy };
    struct unicode_reader r;
    enum mst_code rc = open_reader(c, &r);

    if (rc)
        return rc;
    rc = op_out_like(c, 0, in);
    for (int64_t i = 0; i < in->count && !rc; i++) {
        unicode_read(&r, tensor_str(in, i), transcode_one, &t);
        unicode_give(&t.w, u->to, tensor_str(op_out(c, 0), i));
    }
    if (!rc && t.malformed && u->policy.strict)
        rc = malformed(c);
    unicode_writer_done(&t.w);
    unicode_reader_close(&r);
    return rc;
}

#define POLICY_ATTRS "replacement_char: int = 65533"
#define CONTROL_ATTR "; replace_control_characters: bool = false"
#define ENCODINGS    "output_encoding: {'UTF-8', 'UTF-16-BE', 'UTF-32-BE'}; "

const struct op_def def_unicode_transcode = {
    .name = "UnicodeTranscode",
    .in = "input: string",
    .out = "output: string",
    .attr = "input_encoding: string; " ENCODINGS
            "errors: {'strict', 'replace', 'ignore'} = 'replace'; " POLICY_ATTRS
                CONTROL_ATTR,
    .init = transcode_init,
    .kernel =
        (const struct op_kernel[]){ { DT_ANY, unicode_transcode }, { 0 } },
};

/* ---- UnicodeDecode ---- */

struct decode {
    const struct unicode_policy *policy;
    int32_t *points;
    int64_t *starts; /* only where they are asked for */
    int64_t count, room, start_count, start_room;
    int64_t offset; /* in the string */
    bool offsets, malformed;
};

static void decode_one(void *arg, int32_t ch, int64_t bytes, bool bad)
{
    struct decode *d = arg;
    int64_t at = d->offset;

    d->offset += bytes;
    if (bad)
        d->malformed = true;
    if (bad || (d->policy->controls && ch <= 0x1f)) {
        if (d->policy->ignore)
            return;
        ch = d->policy->replacement;
    }
    *MEM_PUSH(d->points, d->count, d->room) = ch;
    if (d->offsets)
        *MEM_PUSH(d->starts, d->start_count, d->start_room) = at;
}

static enum mst_code give_points(struct op_ctx *c, const struct decode *d)
{
    enum mst_code rc = op_out_new(c, 1, 1, &d->count);

    if (!rc && d->count)
        memcpy(op_out(c, 1)->data, d->points,
               (size_t)d->count * sizeof(*d->points));
    if (rc || !d->offsets)
        return rc;
    rc = op_out_new(c, 2, 1, &d->count);
    if (!rc && d->count)
        memcpy(op_out(c, 2)->data, d->starts,
               (size_t)d->count * sizeof(*d->starts));
    return rc;
}

static enum mst_code unicode_decode(struct op_ctx *c)
{
    const struct unicode *u = c->node->state;
    const struct tensor *in = op_in(c, 0);
    struct decode d = { .policy = &u->policy,
                        .offsets = c->node->out_count == 3 };
    struct unicode_reader r;
    enum mst_code rc = open_reader(c, &r);

    if (rc)
        return rc;
    rc = op_out_new(c, 0, 1, (int64_t[]){ in->count + 1 });
    if (!rc)
        example_set_split(op_out(c, 0), 0, 0);
    for (int64_t i = 0; i < in->count && !rc; i++) {
        d.offset = 0;
        unicode_read(&r, tensor_str(in, i), decode_one, &d);
        example_set_split(op_out(c, 0), i + 1, d.count);
        if (d.malformed && u->policy.strict)
            rc = malformed(c);
    }
    if (!rc)
        rc = give_points(c, &d);
    mem_free(d.points);
    mem_free(d.starts);
    unicode_reader_close(&r);
    return rc;
}

#define DECODE_ATTRS                                                           \
    "input_encoding: string; "                                                 \
    "errors: {'strict', 'replace', 'ignore'} = 'replace'; " POLICY_ATTRS       \
        CONTROL_ATTR "; Tsplits: {int32, int64} = int64"

const struct op_def def_unicode_decode = {
    .name = "UnicodeDecode",
    .in = "input: string",
    .out = "row_splits: Tsplits, char_values: int32",
    .attr = DECODE_ATTRS,
    .init = decode_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, unicode_decode }, { 0 } },
};

const struct op_def def_unicode_decode_with_offsets = {
    .name = "UnicodeDecodeWithOffsets",
    .in = "input: string",
    .out = "row_splits: Tsplits, char_values: int32, "
           "char_to_byte_starts: int64",
    .attr = DECODE_ATTRS,
    .init = decode_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, unicode_decode }, { 0 } },
};

/* ---- UnicodeEncode ---- */

/* In Unicode's range, and no surrogate. */
static bool is_character(int32_t ch)
{
    return ch >= 0 && ch <= 0x10ffff && ch >> 11 != 0x1b;
}

static enum mst_code encode_row(struct op_ctx *c, struct unicode_writer *w,
                                int64_t begin, int64_t end)
{
    const struct unicode *u = c->node->state;

    for (int64_t i = begin; i < end; i++) {
        int32_t ch = TENSOR_DATA(op_in(c, 0), int32_t)[i];

        if (!is_character(ch)) {
            if (u->policy.strict)
                return op_fail(c, MST_INVALID_ARGUMENT,
                               "Code point is out of range for Unicode, or is "
                               "a surrogate.");
            if (u->policy.ignore)
                continue;
            ch = u->policy.replacement;
        }
        unicode_add(w, ch);
    }
    return MST_OK;
}

static enum mst_code check_splits(struct op_ctx *c, const struct tensor *splits)
{
    const char *why = NULL;

    if (!splits->count)
        why = "Input_splits should contain elements, but given input_values "
              "has 0 elements";
    else if (tensor_int(splits, 0))
        why = "First value in input_splits must be zero.";
    else if (tensor_int(splits, splits->count - 1) != op_in(c, 0)->count)
        why = "Last value in input_splits must be equal to length of "
              "input_tensor.";
    for (int64_t i = 1; i < splits->count && !why; i++)
        if (tensor_int(splits, i) < tensor_int(splits, i - 1))
            why = "Values in input_splits must be equal or in ascending "
                  "order.";
    return why ? op_fail(c, MST_INVALID_ARGUMENT, "%s", why) : MST_OK;
}

static enum mst_code unicode_encode(struct op_ctx *c)
{
    const struct unicode *u = c->node->state;
    const struct tensor *splits = op_in(c, 1);
    struct unicode_writer w = { 0 };
    int64_t at = 0;
    enum mst_code rc;

    if (op_in(c, 0)->ndim != 1 || splits->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Both the input_tensor and input_splits should be of "
                       "rank 1. ");
    rc = check_splits(c, splits);
    if (rc)
        return rc;
    rc = op_out_new(c, 0, 1, (int64_t[]){ splits->count - 1 });
    for (int64_t i = 1; i < splits->count && !rc; i++) {
        int64_t end = tensor_int(splits, i);

        rc = encode_row(c, &w, at, end);
        at = end;
        if (!rc)
            unicode_give(&w, u->to, tensor_str(op_out(c, 0), i - 1));
    }
    unicode_writer_done(&w);
    return rc;
}

const struct op_def def_unicode_encode = {
    .name = "UnicodeEncode",
    .in = "input_values: int32, input_splits: Tsplits",
    .out = "output: string",
    .attr = "errors: {'ignore', 'replace', 'strict'} = 'replace'; " ENCODINGS
        POLICY_ATTRS "; Tsplits: {int32, int64} = int64",
    .init = encode_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, unicode_encode }, { 0 } },
};

/* ---- UnicodeScript ---- */

static enum mst_code unicode_script(struct op_ctx *c)
{
    const struct tensor *in = op_in(c, 0);
    enum mst_code rc = op_out_like(c, 0, in);

    for (int64_t i = 0; i < in->count && !rc; i++) {
        UErrorCode code = U_ZERO_ERROR;
        int32_t script =
            (int32_t)uscript_getScript(TENSOR_DATA(in, int32_t)[i], &code);

        TENSOR_DATA(op_out(c, 0), int32_t)[i] = U_SUCCESS(code) ? script : -1;
    }
    return rc;
}

const struct op_def def_unicode_script = {
    .name = "UnicodeScript",
    .in = "input: int32",
    .out = "output: int32",
    .kernel = (const struct op_kernel[]){ { DT_ANY, unicode_script }, { 0 } },
};
