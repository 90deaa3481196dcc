/*
 * Numbers in strings: read by StringToNumber, written by AsString.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "kernel/number.h"
#include "kernel/real.h"
#include "kernel/text.h"
#include "kernel/types.h"

/* One function for all types. */
#define ALL_ROW(s, T, A, DT, LD, ST, op) { DT, op },

/* ---- read ---- */

static bool read_real(const char *text, char **end, enum dtype dt, void *ret)
{
    if (dt == DT_FLOAT)
        *(float *)ret = strtof(text, end);
    else
        *(double *)ret = strtod(text, end);
    return *end != text;
}

static bool read_unsigned(const char *text, char **end, enum dtype dt,
                          void *ret)
{
    uint64_t v = strtoull(text, end, 10);

    if (errno || *text == '-' || (dt == DT_UINT32 && v > UINT32_MAX))
        return false;
    if (dt == DT_UINT32)
        *(uint32_t *)ret = (uint32_t)v;
    else
        *(uint64_t *)ret = v;
    return *end != text;
}

static bool read_signed(const char *text, char **end, enum dtype dt, void *ret)
{
    int64_t v = strtoll(text, end, 10);

    if (errno || (dt == DT_INT32 && (v > INT32_MAX || v < INT32_MIN)))
        return false;
    if (dt == DT_INT32)
        *(int32_t *)ret = (int32_t)v;
    else
        *(int64_t *)ret = v;
    return *end != text;
}

bool number_read(const struct str *s, enum dtype dt, void *ret)
{
    size_t begin = 0, end = s->len;
    char small[64], *text = small, *stop;
    bool good;

    while (begin < end && isspace((unsigned char)s->data[begin]))
        begin++;
    while (end > begin && isspace((unsigned char)s->data[end - 1]))
        end--;
    if (begin == end)
        return false;
    if (end - begin < sizeof(small)) {
        memcpy(small, s->data + begin, end - begin);
        small[end - begin] = '\0';
    } else {
        text = mem_strn(s->data + begin, end - begin);
    }
    errno = 0;
    if (isspace((unsigned char)text[0]))
        good = false;
    else if (dtype_is_float(dt))
        good = read_real(text, &stop, dt, ret);
    else if (dt == DT_UINT32 || dt == DT_UINT64)
        good = read_unsigned(text, &stop, dt, ret);
    else
        good = read_signed(text, &stop, dt, ret);
    good = good && stop == text + (end - begin);
    if (text != small)
        mem_free(text);
    return good;
}

static enum mst_code string_to_number(struct op_ctx *c)
{
    const struct tensor *in = op_in(c, 0);
    enum dtype dt = (enum dtype)c->node->out_types[0];
    enum mst_code rc = op_out_like(c, 0, in);

    for (int64_t i = 0; i < in->count && !rc; i++) {
        const struct str *s = tensor_str(in, i);
        uint8_t *to =
            (uint8_t *)op_out(c, 0)->data + (size_t)i * dtype_size(dt);

        if (!number_read(s, dt, to))
            rc = op_fail(c, MST_INVALID_ARGUMENT,
                         "StringToNumberOp could not correctly convert string: "
                         "%.*s",
                         (int)MIN(s->len, 1000), s->data ? s->data : "");
    }
    return rc;
}

const struct op_def def_string_to_number = {
    .name = "StringToNumber",
    .in = "string_tensor: string",
    .out = "output: out_type",
    .attr = "out_type: {float, double, int32, int64, uint32, uint64} = float",
    .kernel = (const struct op_kernel[]){ { DT_ANY, string_to_number }, { 0 } },
};

/* ---- written ---- */

/* A width beyond this is not meant. */
#define WIDTH_MAX (1 << 20)

static bool is_unsigned(enum dtype dt)
{
    return dt == DT_UINT8 || dt == DT_UINT16 || dt == DT_UINT32 ||
           dt == DT_UINT64;
}

/* A format for printf: "%0*.3f" without its size letters, which differ. */
static enum mst_code as_string_init(struct op_node *n, struct status *st)
{
    int64_t precision = op_attr_int(n, "precision");
    int64_t width = op_attr_int(n, "width");
    bool scientific = op_attr_bool(n, "scientific");
    bool shortest = op_attr_bool(n, "shortest");
    struct attr_text fill = op_attr_str(n, "fill");
    enum dtype dt = (enum dtype)n->in_types[0];
    bool real = dtype_is_float(dt) || dtype_is_complex(dt) || dt == DT_STRING;
    char format[96];
    int at;

    if (scientific && shortest)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Cannot select both scientific and shortest "
                          "notation");
    if (!real && (scientific || shortest))
        return status_set(st, MST_INVALID_ARGUMENT,
                          "scientific and shortest format not supported for "
                          "datatype %s",
                          dtype_name(dt));
    if (!real && precision >= 0)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "precision not supported for datatype %s",
                          dtype_name(dt));
    if (fill.len > 1)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Fill string must be one or fewer characters");
    if (fill.len && !strchr(" +-0#", fill.data[0]))
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Fill argument not supported: \"%s\"", fill.data);
    if (width > WIDTH_MAX || precision > WIDTH_MAX)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Numbers of that width are not supported");
    at = snprintf(format, sizeof(format), "%%%s", fill.data);
    if (width >= 0)
        at += snprintf(format + at, sizeof(format) - (size_t)at, "%lld",
                       (long long)width);
    if (precision >= 0)
        at += snprintf(format + at, sizeof(format) - (size_t)at, ".%lld",
                       (long long)precision);
    snprintf(format + at, sizeof(format) - (size_t)at, "%s",
             !real        ? is_unsigned(dt) ? "llu" : "lld"
             : scientific ? "e"
             : shortest   ? "g"
                          : "f");
    n->state = arena_str(n->arena, format);
    return MST_OK;
}

#pragma GCC diagnostic ignored "-Wformat-nonliteral"

static void write_complex(struct text *t, const char *format, double re,
                          double im)
{
    text_add(t, "(", 1);
    text_addf(t, format, re);
    text_add(t, ",", 1);
    text_addf(t, format, im);
    text_add(t, ")", 1);
}

/* The precision, where there is one, is how much is shown, as in printf. */
static void write_string(struct text *t, int64_t width, int64_t precision,
                         bool left, const struct str *s)
{
    size_t len =
        precision < 0 ? s->len : (size_t)MIN((int64_t)s->len, precision);
    int pad = (int)MAX(width - (int64_t)len, 0);

    text_addf(t, "%*s", left ? 0 : pad, "");
    text_add(t, s->data, len);
    text_addf(t, "%*s", left ? pad : 0, "");
}

static enum mst_code as_string(struct op_ctx *c)
{
    const struct tensor *in = op_in(c, 0);
    const char *format = c->node->state;
    enum mst_code rc;

    rc = op_out_like(c, 0, in);
    for (int64_t i = 0; i < in->count && !rc; i++) {
        struct text t = { 0 };

        if (in->dtype == DT_STRING)
            write_string(&t, op_attr_int(c->node, "width"),
                         op_attr_int(c->node, "precision"),
                         op_attr_str(c->node, "fill").data[0] == '-',
                         tensor_str(in, i));
        else if (in->dtype == DT_BOOL)
            text_addf(&t, "%s", TENSOR_DATA(in, bool)[i] ? "true" : "false");
        else if (in->dtype == DT_COMPLEX64)
            write_complex(&t, format, TENSOR_DATA(in, float)[2 * i],
                          TENSOR_DATA(in, float)[2 * i + 1]);
        else if (in->dtype == DT_COMPLEX128)
            write_complex(&t, format, TENSOR_DATA(in, double)[2 * i],
                          TENSOR_DATA(in, double)[2 * i + 1]);
        else if (dtype_is_float((enum dtype)in->dtype))
            text_addf(&t, format, real_load(in, i));
        else
            text_addf(&t, format, (long long)tensor_int(in, i));
        text_give(&t, tensor_str(op_out(c, 0), i));
    }
    return rc;
}

const struct op_def def_as_string = {
    .name = "AsString",
    .in = "input: T",
    .out = "output: string",
    .attr = "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, "
            "uint16, half, uint32, uint64, complex64, complex128, bool, "
            "variant, string}; precision: int = -1; scientific: bool = false; "
            "shortest: bool = false; width: int = -1; fill: string = ''",
    .init = as_string_init,
    .kernel = KERNELS({ DT_BOOL, as_string }, { DT_STRING, as_string },
                      TYPES_REAL(ALL_ROW, as_string)
                          TYPES_COMPLEX(ALL_ROW, as_string)),
};
