#include "op/attr.h"

#include <string.h>

const char *attr_kind_name(enum attr_kind kind, bool list)
{
    static const char *const names[][2] = {
        [ATTR_NONE] = { "none", "list(none)" },
        [ATTR_STRING] = { "string", "list(string)" },
        [ATTR_INT] = { "int", "list(int)" },
        [ATTR_FLOAT] = { "float", "list(float)" },
        [ATTR_BOOL] = { "bool", "list(bool)" },
        [ATTR_TYPE] = { "type", "list(type)" },
        [ATTR_SHAPE] = { "shape", "list(shape)" },
        [ATTR_TENSOR] = { "tensor", "list(tensor)" },
        [ATTR_FUNC] = { "func", "list(func)" },
        [ATTR_PLACEHOLDER] = { "placeholder", "list(placeholder)" },
    };

    return names[kind][list];
}

const struct attr *attr_find(const struct attr *attrs, int count,
                             const char *name)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(attrs[i].name, name))
            return &attrs[i];
    return NULL;
}
