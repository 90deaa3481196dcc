/*
 * Strings of bytes that stand for something else: compressed bytes, and
 * tensors as they are serialized.
 */
#include "kernel/serialize.h"
#include "kernel/types.h"
#include "kernel/unzip.h"
#include "tensor/proto.h"

/* ---- DecodeCompressed ---- */

static enum mst_code compressed_init(struct op_node *n, struct status *st)
{
    enum unzip_format *format = ARENA_NEW(n->arena, enum unzip_format);

    n->state = format;
    if (unzip_format_of(op_attr_str(n, "compression_type"), format))
        return MST_OK;
    return status_set(st, MST_INVALID_ARGUMENT,
                      "Only ZLIB, GZIP or NONE are supported compressions");
}

static enum mst_code decode_compressed(struct op_ctx *c)
{
    const struct tensor *in = op_in(c, 0);
    enum mst_code rc = op_out_like(c, 0, in);

    for (int64_t i = 0; i < in->count && !rc; i++) {
        const struct str *s = tensor_str(in, i);
        struct text t = { 0 };

        rc = unzip_all(*(const enum unzip_format *)c->node->state, s->data,
                       s->len, &t, c->st);
        text_give(&t, tensor_str(op_out(c, 0), i));
    }
    return rc;
}

const struct op_def def_decode_compressed = {
    .name = "DecodeCompressed",
    .in = "bytes: string",
    .out = "output: string",
    .attr = "compression_type: string = ''",
    .flags = OP_EXPENSIVE,
    .init = compressed_init,
    .kernel =
        (const struct op_kernel[]){ { DT_ANY, decode_compressed }, { 0 } },
};

/* ---- tensors ---- */

/* "Could not parse …" shows the bytes so that they survive a message. */
static enum mst_code no_tensor(struct op_ctx *c, const struct str *s)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "abcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t len = MIN(s->len, 900);
    char text[1204];
    size_t to = 0;

    for (size_t i = 0; i < len; i += 3) {
        size_t n = MIN(3, len - i);
        uint32_t v = 0;

        for (size_t k = 0; k < 3; k++)
            v = v << 8 | (k < n ? (uint8_t)s->data[i + k] : 0);
        for (size_t k = 0; k < 4; k++)
            text[to++] = k > n ? '=' : letters[v >> (18 - 6 * k) & 63];
    }
    return op_fail(c, MST_INVALID_ARGUMENT,
                   "Could not parse `serialized` as TensorProto, base64: %.*s",
                   (int)to, text);
}

static enum mst_code parse_tensor(struct op_ctx *c)
{
    const struct tensor *in = op_in(c, 0);
    enum dtype want = (enum dtype)c->node->out_types[0];
    char text[SHAPE_TEXT_MAX];
    const struct str *s;
    enum mst_code rc;

    if (in->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Expected `serialized` to be a scalar, got shape: %s",
                       tensor_shape_text(in, text));
    s = tensor_str(in, 0);
    rc = tensor_from_proto(op_out(c, 0), s->data, s->len, NULL, c->st);
    if (rc == MST_INVALID_ARGUMENT)
        return no_tensor(c, s);
    if (rc)
        return rc;
    if (op_out(c, 0)->dtype != want)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Type mismatch between parsed tensor (%s) and dtype "
                       "(%s)",
                       dtype_name(op_out(c, 0)->dtype), dtype_name(want));
    return MST_OK;
}

const struct op_def def_parse_tensor = {
    .name = "ParseTensor",
    .in = "serialized: string",
    .out = "output: out_type",
    .attr = "out_type: type",
    .kernel = (const struct op_kernel[]){ { DT_ANY, parse_tensor }, { 0 } },
};

static enum mst_code serialize(struct op_ctx *c)
{
    struct text t = { 0 };
    enum mst_code rc = op_out_new(c, 0, 0, NULL);

    if (!rc)
        rc = serialize_tensor(op_in(c, 0), &t, c->st);
    if (!rc)
        text_give(&t, tensor_str(op_out(c, 0), 0));
    return rc;
}

const struct op_def def_serialize_tensor = {
    .name = "SerializeTensor",
    .in = "tensor: T",
    .out = "serialized: string",
    .attr = "T: type",
    .kernel = (const struct op_kernel[]){ { DT_ANY, serialize }, { 0 } },
};

/* ---- DecodePaddedRaw ---- */

static enum mst_code padded_init(struct op_node *n, struct status *st)
{
    (void)st;
    if (!op_attr_bool(n, "little_endian"))
        n->state = n;
    return MST_OK;
}

static void copy_padded(uint8_t *to, size_t length, const struct str *s,
                        size_t size, bool reverse)
{
    memset(to, 0, length);
    if (s->len)
        memcpy(to, s->data, MIN(s->len, length));
    for (size_t i = 0; i < length && reverse; i += size)
        for (size_t k = 0; k < size / 2; k++) {
            uint8_t t = to[i + k];

            to[i + k] = to[i + size - 1 - k];
            to[i + size - 1 - k] = t;
        }
}

static enum mst_code decode_padded_raw(struct op_ctx *c)
{
    const struct tensor *in = op_in(c, 0), *length = op_in(c, 1);
    size_t size = dtype_size((enum dtype)c->node->out_types[0]);
    int64_t dims[TENSOR_RANK_MAX + 1];
    char text[SHAPE_TEXT_MAX];
    enum mst_code rc;
    int32_t n;

    if (length->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "k must be scalar, got shape %s",
                       tensor_shape_text(length, text));
    n = *TENSOR_DATA(length, int32_t);
    /* As the unsigned number that TensorFlow divides. */
    if ((uint64_t)(int64_t)n % size)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "fixed_length (%d) must be a multiple of the size of "
                       "out_type (%zu)",
                       n, size);
    if (n <= 0)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "fixed_length (%d) must be greater than zero.", n);
    memcpy(dims, in->dims, (size_t)in->ndim * sizeof(dims[0]));
    dims[in->ndim] = n / (int64_t)size;
    rc = op_out_new(c, 0, in->ndim + 1, dims);
    for (int64_t i = 0; i < in->count && !rc; i++)
        copy_padded((uint8_t *)op_out(c, 0)->data + i * n, (size_t)n,
                    tensor_str(in, i), size, c->node->state != NULL);
    return rc;
}

/* One function for all types. */
#define ALL_ROW(s, T, A, DT, LD, ST, op) { DT, op },

const struct op_def def_decode_padded_raw = {
    .name = "DecodePaddedRaw",
    .in = "input_bytes: string, fixed_length: int32",
    .out = "output: out_type",
    .attr = "out_type: {half, float, double, int32, uint16, uint8, int16, "
            "int8, int64, bfloat16}; little_endian: bool = true",
    .key = "out_type",
    .init = padded_init,
    .kernel = KERNELS(
        TYPES_FLOAT_WIDE(ALL_ROW, decode_padded_raw)
            TYPES_BFLOAT16(ALL_ROW, decode_padded_raw) TYPES_SIGNED(
                ALL_ROW, decode_padded_raw){ DT_UINT8, decode_padded_raw },
        { DT_UINT16, decode_padded_raw }, ),
};
