#include "kernel/signature.h"

#include <string.h>

void signature_append(struct status *st, const int *types, int count)
{
    for (int i = 0; i < count; i++)
        status_append(st, "%s%s", i ? ", " : "", dtype_name(types[i]));
}

static bool same(const int *types, int count, struct signature want)
{
    return count == want.count &&
           (!count ||
            !memcmp(types, want.types, (size_t)count * sizeof(*types)));
}

enum mst_code signature_check(struct op_ctx *c, int fixed, struct signature in,
                              struct signature out)
{
    const struct op_node *n = c->node;

    if (same(n->in_types + fixed, n->in_count - fixed, in) &&
        same(n->out_types, n->out_count, out))
        return MST_OK;
    status_set(c->st, MST_INVALID_ARGUMENT, "Signature mismatch, have: ");
    signature_append(c->st, n->in_types, n->in_count);
    status_append(c->st, "->");
    signature_append(c->st, n->out_types, n->out_count);
    status_append(c->st, " expected: ");
    signature_append(c->st, n->in_types, fixed);
    if (in.count)
        status_append(c->st, ", ");
    signature_append(c->st, in.types, in.count);
    status_append(c->st, "->");
    signature_append(c->st, out.types, out.count);
    return MST_INVALID_ARGUMENT;
}
