/*
 * The attributes of a node, once they are out of the wire: typed values that
 * live in the graph's arena. Defaults have been filled in and everything
 * checked against the op's definition before a kernel sees them, so the getters
 * of op/op.h do not fail.
 */
#ifndef OP_ATTR_H
#define OP_ATTR_H

#include "tensor/tensor.h"

enum attr_kind {
    ATTR_NONE,
    ATTR_STRING,
    ATTR_INT,
    ATTR_FLOAT,
    ATTR_BOOL,
    ATTR_TYPE,
    ATTR_SHAPE,
    ATTR_TENSOR,
    ATTR_FUNC,
    ATTR_PLACEHOLDER, /* "$T" in a function's body: the caller says */
};

struct attr_text {
    const char *data; /* NUL-terminated too */
    size_t len;
};

struct attr_value {
    union {
        struct attr_text s; /* ATTR_STRING, ATTR_FUNC, ATTR_PLACEHOLDER */
        int64_t i;
        float f;
        bool b;
        int type; /* enum dtype, possibly + DT_REF */
        const struct shape *shape;
        struct tensor *tensor;
    };
    /* ATTR_FUNC: the attributes that the function is called with. */
    const struct attr *args;
    int arg_count;
};

struct attr {
    const char *name;
    enum attr_kind kind; /* of the value, or of the list's elements */
    bool list;
    int count;                      /* of a list; 1 otherwise */
    const struct attr_value *value; /* count of them */
};

/* "int", "list(type)" … as op definitions spell it. */
const char *attr_kind_name(enum attr_kind kind, bool list);
const struct attr *attr_find(const struct attr *attrs, int count,
                             const char *name);

#endif
