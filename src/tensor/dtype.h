/*
 * Element types, with the numbers that TensorFlow's DataType has on the wire.
 * A reference type is its base type plus 100 and lives on edges only.
 */
#ifndef TENSOR_DTYPE_H
#define TENSOR_DTYPE_H

#include "base/base.h"

enum dtype {
    DT_INVALID = 0,
    DT_FLOAT = 1,
    DT_DOUBLE = 2,
    DT_INT32 = 3,
    DT_UINT8 = 4,
    DT_INT16 = 5,
    DT_INT8 = 6,
    DT_STRING = 7,
    DT_COMPLEX64 = 8,
    DT_INT64 = 9,
    DT_BOOL = 10,
    DT_QINT8 = 11,
    DT_QUINT8 = 12,
    DT_QINT32 = 13,
    DT_BFLOAT16 = 14,
    DT_QINT16 = 15,
    DT_QUINT16 = 16,
    DT_UINT16 = 17,
    DT_COMPLEX128 = 18,
    DT_HALF = 19,
    DT_RESOURCE = 20,
    DT_VARIANT = 21,
    DT_UINT32 = 22,
    DT_UINT64 = 23,
    DT_COUNT = 24,
    DT_REF = 100, /* added to a base type */
};

static inline enum dtype dtype_base(int dt)
{
    return (enum dtype)(dt > DT_REF ? dt - DT_REF : dt);
}

static inline bool dtype_is_ref(int dt)
{
    return dt > DT_REF;
}

/* TensorFlow's spelling: "float", "int32", "half", "float_ref" … */
const char *dtype_name(int dt);
/* The type of that name; DT_INVALID when there is none. */
enum dtype dtype_by_name(const char *name, size_t len);
/* Bytes an element takes in a tensor's buffer; 0 when there is no such type. */
size_t dtype_size(enum dtype dt);
/* A base type that this library has. */
bool dtype_valid(int dt);
/* Elements are plain bytes: not string, resource or variant. */
bool dtype_is_plain(enum dtype dt);
bool dtype_is_float(enum dtype dt); /* half and bfloat16 too */
bool dtype_is_complex(enum dtype dt);
bool dtype_is_int(enum dtype dt); /* signed or unsigned, not bool */

/* 16-bit floats are kept as their bits and computed in float. */
typedef uint16_t half_bits;
typedef uint16_t bf16_bits;

static inline float bf16_load(bf16_bits v)
{
    union {
        uint32_t u;
        float f;
    } x = { .u = (uint32_t)v << 16 };

    return x.f;
}

/* Rounds to nearest even; a NaN stays one. */
static inline bf16_bits bf16_store(float f)
{
    union {
        float f;
        uint32_t u;
    } x = { .f = f };

    if ((x.u & 0x7fffffffu) > 0x7f800000u)
        return (bf16_bits)((x.u >> 16) | 0x40u);
    return (bf16_bits)((x.u + 0x7fffu + ((x.u >> 16) & 1u)) >> 16);
}

/* Without a step on a denormal float, which may be taken for zero. */
static inline float half_load(half_bits h)
{
    uint32_t rest = (uint32_t)(h & 0x7fffu) << 13;
    union {
        uint32_t u;
        float f;
    } normal = { .u = rest + 0x38000000u },
      small = { .f = (float)(h & 0x3ffu) * 0x1p-24f }, x;

    if ((h & 0x7c00u) == 0x7c00u) /* infinity or NaN */
        normal.u += 0x38000000u;
    x.u = (h & 0x7c00u) ? normal.u : small.u;
    x.u |= (uint32_t)(h & 0x8000u) << 16;
    return x.f;
}

/* Rounds to nearest even. All cases are computed and one is chosen, so that
 * loops become vectors. */
static inline half_bits half_store(float f)
{
    union {
        float f;
        uint32_t u;
    } x = { .f = f }, small;
    uint32_t sign = (x.u >> 16) & 0x8000u, large, normal;

    x.u &= 0x7fffffffu;
    large = x.u > 0x7f800000u ? 0x7e00u : 0x7c00u; /* NaN, or infinity */
    small.f = x.f + 0.5f; /* subnormal: the adder rounds */
    normal = (x.u + 0xc8000fffu + ((x.u >> 13) & 1u)) >> 13;
    normal = x.u < 0x38800000u ? small.u - 0x3f000000u : normal;
    return (half_bits)(sign | (x.u >= 0x47800000u ? large : normal));
}

#endif
