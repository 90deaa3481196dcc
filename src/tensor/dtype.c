#include "tensor/dtype.h"

#include <string.h>

enum dtype_class { NONE, INT, FLOAT, COMPLEX, OTHER, OBJECT };

static const struct {
    const char *name;
    unsigned char size;
    enum dtype_class class;
} types[DT_COUNT] = {
    [DT_FLOAT] = { "float", 4, FLOAT },
    [DT_DOUBLE] = { "double", 8, FLOAT },
    [DT_INT32] = { "int32", 4, INT },
    [DT_UINT8] = { "uint8", 1, INT },
    [DT_INT16] = { "int16", 2, INT },
    [DT_INT8] = { "int8", 1, INT },
    [DT_STRING] = { "string", 16, OBJECT },
    [DT_COMPLEX64] = { "complex64", 8, COMPLEX },
    [DT_INT64] = { "int64", 8, INT },
    [DT_BOOL] = { "bool", 1, OTHER },
    [DT_QINT8] = { "qint8", 1, OTHER },
    [DT_QUINT8] = { "quint8", 1, OTHER },
    [DT_QINT32] = { "qint32", 4, OTHER },
    [DT_BFLOAT16] = { "bfloat16", 2, FLOAT },
    [DT_QINT16] = { "qint16", 2, OTHER },
    [DT_QUINT16] = { "quint16", 2, OTHER },
    [DT_UINT16] = { "uint16", 2, INT },
    [DT_COMPLEX128] = { "complex128", 16, COMPLEX },
    [DT_HALF] = { "half", 2, FLOAT },
    [DT_RESOURCE] = { "resource", 8, OBJECT },
    [DT_VARIANT] = { "variant", 8, OBJECT },
    [DT_UINT32] = { "uint32", 4, INT },
    [DT_UINT64] = { "uint64", 8, INT },
};

static const char *const ref_names[DT_COUNT] = {
    [DT_FLOAT] = "float_ref",     [DT_DOUBLE] = "double_ref",
    [DT_INT32] = "int32_ref",     [DT_UINT8] = "uint8_ref",
    [DT_INT16] = "int16_ref",     [DT_INT8] = "int8_ref",
    [DT_STRING] = "string_ref",   [DT_COMPLEX64] = "complex64_ref",
    [DT_INT64] = "int64_ref",     [DT_BOOL] = "bool_ref",
    [DT_QINT8] = "qint8_ref",     [DT_QUINT8] = "quint8_ref",
    [DT_QINT32] = "qint32_ref",   [DT_BFLOAT16] = "bfloat16_ref",
    [DT_QINT16] = "qint16_ref",   [DT_QUINT16] = "quint16_ref",
    [DT_UINT16] = "uint16_ref",   [DT_COMPLEX128] = "complex128_ref",
    [DT_HALF] = "half_ref",       [DT_RESOURCE] = "resource_ref",
    [DT_VARIANT] = "variant_ref", [DT_UINT32] = "uint32_ref",
    [DT_UINT64] = "uint64_ref",
};

bool dtype_valid(int dt)
{
    return dt > 0 && dt < DT_COUNT && types[dt].name;
}

const char *dtype_name(int dt)
{
    if (!dtype_valid(dtype_base(dt)))
        return "invalid";
    return dtype_is_ref(dt) ? ref_names[dt - DT_REF] : types[dt].name;
}

enum dtype dtype_by_name(const char *name, size_t len)
{
    for (int i = 1; i < DT_COUNT; i++)
        if (strlen(types[i].name) == len && !memcmp(types[i].name, name, len))
            return (enum dtype)i;
    return DT_INVALID;
}

size_t dtype_size(enum dtype dt)
{
    return dtype_valid(dt) ? types[dt].size : 0;
}

static enum dtype_class class_of(enum dtype dt)
{
    return dtype_valid(dt) ? types[dt].class : NONE;
}

bool dtype_is_plain(enum dtype dt)
{
    return dtype_valid(dt) && class_of(dt) != OBJECT;
}

bool dtype_is_float(enum dtype dt)
{
    return class_of(dt) == FLOAT;
}

bool dtype_is_complex(enum dtype dt)
{
    return class_of(dt) == COMPLEX;
}

bool dtype_is_int(enum dtype dt)
{
    return class_of(dt) == INT;
}
