/*
 * Bytes in strings: base64, the variant that is safe in URLs, and numbers as
 * they lie in memory.
 */
#include <string.h>

#include "kernel/args.h"
#include "kernel/text.h"

static const char letters[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static void encode(const struct str *s, bool pad, struct text *t)
{
    const uint8_t *in = (const uint8_t *)s->data;

    for (size_t i = 0; i < s->len; i += 3) {
        size_t n = MIN(3, s->len - i);
        uint32_t v = 0;

        for (size_t k = 0; k < 3; k++)
            v = v << 8 | (k < n ? in[i + k] : 0);
        for (size_t k = 0; k <= n; k++)
            text_add(t, &letters[v >> (18 - 6 * k) & 63], 1);
        for (size_t k = n; k < 3 && pad; k++)
            text_add(t, "=", 1);
    }
}

static enum mst_code encode_base64(struct op_ctx *c)
{
    const struct tensor *in = op_in(c, 0);
    enum mst_code rc = op_out_like(c, 0, in);

    for (int64_t i = 0; i < in->count && !rc; i++) {
        struct text t = { 0 };

        encode(tensor_str(in, i), c->node->state != NULL, &t);
        text_give(&t, tensor_str(op_out(c, 0), i));
    }
    return rc;
}

static enum mst_code encode_base64_init(struct op_node *n, struct status *st)
{
    (void)st;
    if (op_attr_bool(n, "pad")) /* only whether it is set matters */
        n->state = n;
    return MST_OK;
}

const struct op_def def_encode_base64 = {
    .name = "EncodeBase64",
    .in = "input: string",
    .out = "output: string",
    .attr = "pad: bool = false",
    .init = encode_base64_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, encode_base64 }, { 0 } },
};

static int value_of(char ch)
{
    const char *at = ch ? strchr(letters, ch) : NULL;

    return at ? (int)(at - letters) : -1;
}

/* Up to four letters to one byte less; false for what is no letter. */
static bool decode_four(const char *in, size_t n, struct text *t)
{
    uint32_t v = 0;

    for (size_t k = 0; k < 4; k++) {
        int bits = k < n ? value_of(in[k]) : 0;

        if (bits < 0)
            return false;
        v = v << 6 | (uint32_t)bits;
    }
    for (size_t k = 0; k + 1 < n; k++)
        text_add(t, &(uint8_t){ (uint8_t)(v >> (16 - 8 * k)) }, 1);
    return true;
}

static enum mst_code decode(struct op_ctx *c, const struct str *s,
                            struct text *t)
{
    const char *in = s->data;
    size_t n = s->len;
    bool good = true;

    if (n && n % 4 == 0 && in[n - 1] == '=')
        n -= in[n - 2] == '=' ? 2 : 1;
    for (size_t i = 0; i < n && good; i += 4) {
        if (n - i == 1)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Base64 string length cannot be 1 modulo 4.");
        good = decode_four(in + i, MIN(4, n - i), t);
    }
    return good ? MST_OK
                : op_fail(c, MST_INVALID_ARGUMENT,
                          "Invalid character found in base64.");
}

static enum mst_code decode_base64(struct op_ctx *c)
{
    const struct tensor *in = op_in(c, 0);
    enum mst_code rc = op_out_like(c, 0, in);

    for (int64_t i = 0; i < in->count && !rc; i++) {
        struct text t = { 0 };

        rc = decode(c, tensor_str(in, i), &t);
        text_give(&t, tensor_str(op_out(c, 0), i));
    }
    return rc;
}

const struct op_def def_decode_base64 = {
    .name = "DecodeBase64",
    .in = "input: string",
    .out = "output: string",
    .kernel = (const struct op_kernel[]){ { DT_ANY, decode_base64 }, { 0 } },
};

/* ---- numbers as they lie in memory ---- */

static void reverse_bytes(uint8_t *data, size_t bytes, size_t size)
{
    for (size_t i = 0; i < bytes; i += size)
        for (size_t k = 0; k < size / 2; k++) {
            uint8_t t = data[i + k];

            data[i + k] = data[i + size - 1 - k];
            data[i + size - 1 - k] = t;
        }
}

static enum mst_code decode_raw(struct op_ctx *c)
{
    const struct tensor *in = op_in(c, 0);
    enum dtype dt = (enum dtype)c->node->out_types[0];
    size_t size = dtype_size(dt),
           length = in->count ? tensor_str(in, 0)->len : 0;
    int64_t dims[TENSOR_RANK_MAX + 1];
    uint8_t *to;
    enum mst_code rc;

    for (int64_t i = 1; i < in->count; i++)
        if (tensor_str(in, i)->len != length)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "DecodeRaw requires input strings to all be the "
                           "same size, but element %lld has size %zu != %zu",
                           (long long)i, length, tensor_str(in, i)->len);
    if (length % size)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input to DecodeRaw has length %zu that is not a "
                       "multiple of %zu, the size of %s",
                       length, size, dtype_name(dt));
    memcpy(dims, in->dims, (size_t)in->ndim * sizeof(dims[0]));
    dims[in->ndim] = (int64_t)(length / size);
    rc = op_out_new(c, 0, in->ndim + 1, dims);
    if (rc || !op_out(c, 0)->count)
        return rc;
    to = op_out(c, 0)->data;
    for (int64_t i = 0; i < in->count; i++, to += length) {
        memcpy(to, tensor_str(in, i)->data, length);
        if (c->node->state) /* big-endian; of complex numbers, the parts */
            reverse_bytes(to, length, dtype_is_complex(dt) ? size / 2 : size);
    }
    /* Any other bits are no bool. */
    to = op_out(c, 0)->data;
    for (int64_t i = 0; dt == DT_BOOL && i < op_out(c, 0)->count; i++)
        to[i] = to[i] != 0;
    return MST_OK;
}

static enum mst_code decode_raw_init(struct op_node *n, struct status *st)
{
    (void)st;
    if (!op_attr_bool(n, "little_endian"))
        n->state = n;
    return MST_OK;
}

const struct op_def def_decode_raw = {
    .name = "DecodeRaw",
    .in = "bytes: string",
    .out = "output: out_type",
    .attr = "out_type: {half, float, double, int32, uint16, uint8, int16, "
            "int8, int64, complex64, complex128, bool, bfloat16}; "
            "little_endian: bool = true",
    .init = decode_raw_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, decode_raw }, { 0 } },
};
