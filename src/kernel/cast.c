/*
 * Cast and Bitcast.
 *
 * A table of loops, one for each pair of types. What C leaves open is done as
 * an x86 CPU does it, which is what TensorFlow's users see: a float that does
 * not fit an int32 or int64 (or is NaN) becomes the least one; narrower types
 * take the low bits of an int32, uint32 those of an int64. (TensorFlow cuts
 * narrow types off at their ends in some of its loops and not in others.)
 * Complex numbers lose their imaginary part.
 */
#include "kernel/cast.h"

#include "kernel/pointwise.h"

/* ---- from float and double ---- */

#define IN_I32(x) ((x) >= -2147483648.0f && (x) < 2147483648.0f)
#define IN_I64(x)                                                              \
    ((x) >= -9223372036854775808.0f && (x) < 9223372036854775808.0f)

static inline int32_t to_i32(double x)
{
    return IN_I32(x) ? (int32_t)x : INT32_MIN;
}

static inline int64_t to_i64(double x)
{
    return IN_I64(x) ? (int64_t)x : INT64_MIN;
}

static inline uint64_t to_u64(double x)
{
    if (x >= 9223372036854775808.0 && x < 18446744073709551616.0)
        return (uint64_t)x;
    return (uint64_t)to_i64(x);
}

/* Of floats alone, so that the loop stays in float. */
static inline int32_t to_i32f(float x)
{
    return IN_I32(x) ? (int32_t)x : INT32_MIN;
}

#define FLOAT_i8(x)   to_i32f(x)
#define FLOAT_i16(x)  to_i32f(x)
#define FLOAT_u8(x)   to_i32f(x)
#define FLOAT_u16(x)  to_i32f(x)
#define FLOAT_i32(x)  to_i32f(x)
#define FLOAT_i64(x)  to_i64(x)
#define FLOAT_u32(x)  to_i64(x)
#define FLOAT_u64(x)  to_u64(x)
#define DOUBLE_i8(x)  to_i32(x)
#define DOUBLE_i16(x) to_i32(x)
#define DOUBLE_u8(x)  to_i32(x)
#define DOUBLE_u16(x) to_i32(x)
#define DOUBLE_i32(x) to_i32(x)
#define DOUBLE_i64(x) to_i64(x)
#define DOUBLE_u32(x) to_i64(x)
#define DOUBLE_u64(x) to_u64(x)

/* ---- loops: from s, T (loaded with LD into A) to d, D (stored with ST) ----
 */

#define CAST(CLONES, s, T, A, LD, d, D, EXPR)                                  \
    CLONES static void cast_##s##_##d(void *out_, const void *in_, int64_t n)  \
    {                                                                          \
        const T *in = in_;                                                     \
        D *out = out_;                                                         \
                                                                               \
        for (int64_t i = 0; i < n; i++) {                                      \
            const A x = LD(in[i]);                                             \
                                                                               \
            out[i] = (D)(EXPR);                                                \
        }                                                                      \
    }

#define TO_FLOATS(s, T, A, LD)                                                 \
    CAST(CLONES_##s, s, T, A, LD, f32, float, x)                               \
    CAST(CLONES_##s, s, T, A, LD, f64, double, x)                              \
    CAST(CLONES_##s, s, T, A, LD, f16, half_bits, half_store((float)x))        \
    CAST(CLONES_##s, s, T, A, LD, bf16, bf16_bits, bf16_store((float)x))       \
    CAST(CLONES_##s, s, T, A, LD, b, bool, x != 0)
#define TO_COMPLEX(s, T, A, LD)                                                \
    CAST(, s, T, A, LD, c64, float complex, x)                                 \
    CAST(, s, T, A, LD, c128, double complex, x)
#define TO_INTS(s, T, A, LD, KIND)                                             \
    CAST(, s, T, A, LD, i8, int8_t, KIND##_i8(x))                              \
    CAST(, s, T, A, LD, i16, int16_t, KIND##_i16(x))                           \
    CAST(, s, T, A, LD, i32, int32_t, KIND##_i32(x))                           \
    CAST(, s, T, A, LD, i64, int64_t, KIND##_i64(x))                           \
    CAST(, s, T, A, LD, u8, uint8_t, KIND##_u8(x))                             \
    CAST(, s, T, A, LD, u16, uint16_t, KIND##_u16(x))                          \
    CAST(, s, T, A, LD, u32, uint32_t, KIND##_u32(x))                          \
    CAST(, s, T, A, LD, u64, uint64_t, KIND##_u64(x))
#define WHOLE_i8(x)  (x)
#define WHOLE_i16(x) (x)
#define WHOLE_i32(x) (x)
#define WHOLE_i64(x) (x)
#define WHOLE_u8(x)  (x)
#define WHOLE_u16(x) (x)
#define WHOLE_u32(x) (x)
#define WHOLE_u64(x) (x)

#define FROM_COMPLEX(s, T, A, DT, LD, ST, KIND)                                \
    TO_FLOATS(s, T, A, LD)                                                     \
    TO_INTS(s, T, A, LD, KIND)
#define FROM(s, T, A, DT, LD, ST, KIND)                                        \
    FROM_COMPLEX(s, T, A, DT, LD, ST, KIND)                                    \
    TO_COMPLEX(s, T, A, LD)
#define REAL_PART(z) (__real__(z))
TYPES_FLOAT32(FROM, FLOAT)
TYPES_FLOAT16(FROM, FLOAT)
TYPES_FLOAT64(FROM, DOUBLE)
TYPES_INT(FROM, WHOLE)
TYPES_BOOL(FROM, WHOLE)
FROM_COMPLEX(c64, float complex, float, , REAL_PART, , FLOAT)
FROM_COMPLEX(c128, double complex, double, , REAL_PART, , DOUBLE)
TO_COMPLEX(c64, float complex, float complex, SAME)
TO_COMPLEX(c128, double complex, double complex, SAME)

#define TABLE_ROW(s)                                                           \
    {                                                                          \
        [DT_FLOAT] = cast_##s##_f32, [DT_DOUBLE] = cast_##s##_f64,             \
        [DT_HALF] = cast_##s##_f16, [DT_BFLOAT16] = cast_##s##_bf16,           \
        [DT_INT8] = cast_##s##_i8, [DT_INT16] = cast_##s##_i16,                \
        [DT_INT32] = cast_##s##_i32, [DT_INT64] = cast_##s##_i64,              \
        [DT_UINT8] = cast_##s##_u8, [DT_UINT16] = cast_##s##_u16,              \
        [DT_UINT32] = cast_##s##_u32, [DT_UINT64] = cast_##s##_u64,            \
        [DT_COMPLEX64] = cast_##s##_c64, [DT_COMPLEX128] = cast_##s##_c128,    \
        [DT_BOOL] = cast_##s##_b                                               \
    }
#define TABLE_FROM(s, T, A, DT, LD, ST) [DT] = TABLE_ROW(s),

static void (*const loops[DT_COUNT][DT_COUNT])(void *, const void *,
                                               int64_t) = {
    TYPES_NUMBER(TABLE_FROM) TYPES_BOOL(TABLE_FROM)
};

void (*cast_loop(enum dtype from, enum dtype to))(void *, const void *, int64_t)
{
    return loops[from][to];
}

/* ---- truncation: the mantissa's low bits are dropped, not rounded ---- */

#define TRUNCATE(name, T, BITS, mask, D, EXPR)                                 \
    static void name(void *out_, const void *in_, int64_t n)                   \
    {                                                                          \
        const T *in = in_;                                                     \
        D *out = out_;                                                         \
                                                                               \
        for (int64_t i = 0; i < n; i++) {                                      \
            union {                                                            \
                T x;                                                           \
                BITS bits;                                                     \
            } v = { in[i] };                                                   \
            v.bits &= ~(BITS)(mask);                                           \
            out[i] = EXPR;                                                     \
        }                                                                      \
    }
TRUNCATE(truncate_f32_bf16, float, uint32_t, 0xffff, bf16_bits, bf16_store(v.x))
TRUNCATE(truncate_f32_f16, float, uint32_t, 0x1fff, half_bits, half_store(v.x))
TRUNCATE(truncate_f64_f32, double, uint64_t, 0x1fffffff, float, (float)v.x)
TRUNCATE(truncate_f64_f16, double, uint64_t, 0x3ffffffffff, half_bits,
         half_store((float)v.x))

static void (*truncate_loop(int from, int to))(void *, const void *, int64_t)
{
    if (from == DT_FLOAT && to == DT_BFLOAT16)
        return truncate_f32_bf16;
    if (from == DT_FLOAT && to == DT_HALF)
        return truncate_f32_f16;
    if (from == DT_DOUBLE && to == DT_FLOAT)
        return truncate_f64_f32;
    if (from == DT_DOUBLE && to == DT_HALF)
        return truncate_f64_f16;
    return loops[from][to];
}

/* ---- running ---- */

struct cast_job {
    void (*loop)(void *out, const void *in, int64_t n);
    const char *in;
    char *out;
    size_t in_size, out_size;
};

static void cast_piece(void *arg, int64_t begin, int64_t end)
{
    const struct cast_job *j = arg;

    j->loop(j->out + (size_t)begin * j->out_size,
            j->in + (size_t)begin * j->in_size, end - begin);
}

static void cast_run(const struct op_ctx *c,
                     void (*loop)(void *, const void *, int64_t),
                     struct tensor *dst, const struct tensor *src)
{
    struct cast_job j = { loop, src->data, dst->data,
                          dtype_size((enum dtype)src->dtype),
                          dtype_size((enum dtype)dst->dtype) };

    op_for(c, src->count, 0.5, cast_piece, &j);
}

enum mst_code cast_tensor(struct op_ctx *c, struct tensor *dst, enum dtype to,
                          const struct tensor *src)
{
    enum mst_code rc = tensor_new_like(dst, to, src, c->st);

    if (!rc)
        cast_run(c, loops[src->dtype][to], dst, src);
    return rc;
}

struct cast_state {
    void (*loop)(void *out, const void *in, int64_t n); /* NULL: the same */
};

static enum mst_code cast_init(struct op_node *n, struct status *st)
{
    struct cast_state *s = ARENA_NEW(n->arena, struct cast_state);
    int from = dtype_base(op_attr_type(n, "SrcT"));
    int to = dtype_base(op_attr_type(n, "DstT"));

    n->state = s;
    if (from == to)
        return MST_OK;
    s->loop =
        op_attr_bool(n, "Truncate") ? truncate_loop(from, to) : loops[from][to];
    if (!s->loop)
        return status_set(st, MST_UNIMPLEMENTED,
                          "Cast %s to %s is not supported", dtype_name(from),
                          dtype_name(to));
    return MST_OK;
}

static enum mst_code cast(struct op_ctx *c)
{
    const struct cast_state *s = c->node->state;
    enum mst_code rc;

    if (!s->loop) {
        op_out_same(c, 0, 0);
        return MST_OK;
    }
    rc = op_out_like(c, 0, op_in(c, 0));
    if (!rc)
        cast_run(c, s->loop, op_out(c, 0), op_in(c, 0));
    return rc;
}

const struct op_def def_cast = {
    .name = "Cast",
    .in = "x: SrcT",
    .out = "y: DstT",
    .attr = "SrcT: type; DstT: type; Truncate: bool = false",
    .init = cast_init,
    .kernel = KERNELS({ DT_ANY, cast }, ),
};

/* ---- Bitcast ---- */

/* The bytes stay; the last dimension takes up a difference in size. */
static enum mst_code bitcast(struct op_ctx *c)
{
    const struct tensor *in = op_in(c, 0);
    enum dtype to = dtype_base(c->node->out_types[0]);
    size_t from_size = dtype_size((enum dtype)in->dtype);
    size_t to_size = dtype_size(to);
    int64_t dims[TENSOR_RANK_MAX + 1];
    int ndim = in->ndim;

    memcpy(dims, in->dims, sizeof(in->dims));
    if (from_size > to_size) {
        dims[ndim++] = (int64_t)(from_size / to_size);
    } else if (from_size < to_size) {
        if (!ndim || dims[ndim - 1] != (int64_t)(to_size / from_size))
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Cannot bitcast from %d to %d", in->dtype, (int)to);
        ndim--;
    }
    if (ndim > TENSOR_RANK_MAX)
        return op_fail(c, MST_UNIMPLEMENTED,
                       "Tensors of rank %d are not supported", ndim);
    tensor_wrap(op_out(c, 0), to, ndim, dims, buffer_ref(in->buf), in->data);
    return MST_OK;
}

#define SET_BITCAST                                                            \
    "{bfloat16, half, float, double, int64, int32, uint8, uint16, uint32, "    \
    "uint64, int8, int16, complex64, complex128, qint8, quint8, qint16, "      \
    "quint16, qint32}"

const struct op_def def_bitcast = {
    .name = "Bitcast",
    .in = "input: T",
    .out = "output: type",
    .attr = "T: " SET_BITCAST "; type: " SET_BITCAST,
    .kernel = KERNELS({ DT_ANY, bitcast }, ),
};
