/*
 * Common subexpressions: of pure nodes with the same op, attributes, inputs and
 * control inputs the first is run and the others name it. Nodes in different
 * frames have different inputs, so they never meet; only constants have none,
 * and those that wait for nothing are all outside of loops.
 *
 * Constants are compared by value when they are small: to compare large ones
 * costs more than it would ever save.
 */
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "exec/draft.h"

#define TENSOR_BYTES_COMPARED 4096

void cse_init(struct cse *c, int count)
{
    uint32_t room = 16;

    while (room < 2 * (uint32_t)count)
        room *= 2;
    c->mask = room - 1;
    c->table = mem_array(room, sizeof(*c->table));
    c->hash = mem_array((size_t)count, sizeof(*c->hash));
}

void cse_done(struct cse *c)
{
    mem_free(c->table);
    mem_free(c->hash);
}

/* ---- hashing ---- */

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9ddfea08eb382d69ull;
    return h ^ (h >> 29);
}

static bool is_compared(const struct tensor *t)
{
    return dtype_is_plain((enum dtype)t->dtype) &&
           tensor_bytes(t) <= TENSOR_BYTES_COMPARED;
}

static uint64_t hash_value(uint64_t h, enum attr_kind kind,
                           const struct attr_value *v)
{
    uint32_t bits;

    switch (kind) {
    case ATTR_STRING:
        return mix(h, hash_bytes(v->s.data, v->s.len, HASH_SEED));
    case ATTR_INT:
        return mix(h, (uint64_t)v->i);
    case ATTR_FLOAT:
        memcpy(&bits, &v->f, sizeof(bits));
        return mix(h, bits);
    case ATTR_BOOL:
        return mix(h, v->b);
    case ATTR_TYPE:
        return mix(h, (uint64_t)v->type);
    case ATTR_TENSOR:
        if (!v->tensor)
            return h; /* left to the op, which has it as a default */
        h = mix(h, (uint64_t)v->tensor->count);
        return is_compared(v->tensor) && v->tensor->count
                   ? mix(h, hash_bytes(v->tensor->data, tensor_bytes(v->tensor),
                                       HASH_SEED))
                   : h;
    default:
        return h;
    }
}

static uint32_t hash_node(const struct draft *d, int node)
{
    const struct op_node *n = &d->p->nodes[node].op;
    const struct graph_node *g = &d->g->nodes[node];
    uint64_t h = (uint64_t)(uintptr_t)n->def;

    for (int k = 0; k < g->input_count; k++)
        h = mix(h, (uint64_t)(uint32_t)g->inputs[k].node << 32 |
                       (uint32_t)g->inputs[k].output);
    for (int i = 0; i < n->attr_count; i++)
        for (int k = 0; k < n->attrs[i].count; k++)
            h = hash_value(h, n->attrs[i].kind, &n->attrs[i].value[k]);
    return (uint32_t)(h ^ (h >> 32));
}

/* ---- comparing ---- */

static bool same_tensor(const struct tensor *a, const struct tensor *b)
{
    if (!a || !b)
        return a == b;
    if (a->dtype != b->dtype || !tensor_same_shape(a, b))
        return false;
    if (!a->count || (a->data == b->data && a->buf == b->buf))
        return true;
    return is_compared(a) && !memcmp(a->data, b->data, tensor_bytes(a));
}

static bool same_shape(const struct shape *a, const struct shape *b)
{
    if (!a || !b)
        return a == b;
    return a->ndim == b->ndim &&
           (a->ndim <= 0 ||
            !memcmp(a->dims, b->dims, (size_t)a->ndim * sizeof(a->dims[0])));
}

static bool same_value(enum attr_kind kind, const struct attr_value *a,
                       const struct attr_value *b)
{
    switch (kind) {
    case ATTR_STRING:
        return a->s.len == b->s.len && !memcmp(a->s.data, b->s.data, a->s.len);
    case ATTR_INT:
        return a->i == b->i;
    case ATTR_FLOAT:
        return !memcmp(&a->f, &b->f, sizeof(a->f));
    case ATTR_BOOL:
        return a->b == b->b;
    case ATTR_TYPE:
        return a->type == b->type;
    case ATTR_SHAPE:
        return same_shape(a->shape, b->shape);
    case ATTR_TENSOR:
        return same_tensor(a->tensor, b->tensor);
    default:
        return false;
    }
}

static bool same_attr(const struct attr *a, const struct attr *b)
{
    if (a->count != b->count || a->list != b->list ||
        (a->count && a->kind != b->kind))
        return false;
    for (int k = 0; k < a->count; k++)
        if (!same_value(a->kind, &a->value[k], &b->value[k]))
            return false;
    return true;
}

static bool same_node(const struct draft *d, int node, int other)
{
    const struct op_node *a = &d->p->nodes[node].op;
    const struct op_node *b = &d->p->nodes[other].op;
    const struct graph_node *g = &d->g->nodes[node];
    const struct graph_node *h = &d->g->nodes[other];

    if (a->def != b->def || g->input_count != h->input_count ||
        g->data_count != h->data_count ||
        d->p->nodes[node].frame != d->p->nodes[other].frame)
        return false;
    for (int k = 0; k < g->input_count; k++)
        if (g->inputs[k].node != h->inputs[k].node ||
            g->inputs[k].output != h->inputs[k].output)
            return false;
    for (int i = 0; i < a->attr_count; i++)
        if (!same_attr(&a->attrs[i], &b->attrs[i]))
            return false;
    return true;
}

bool draft_merge(struct draft *d, int node)
{
    const struct plan_node *n = &d->p->nodes[node];
    struct cse *c = &d->cse;
    uint32_t at;

    if (!d->used[node] || !draft_is_pure(n) || !n->op.out_count ||
        (!n->op.in_count && n->op.def != d->constant))
        return false;
    c->hash[node] = hash_node(d, node);
    for (at = c->hash[node]; c->table[at & c->mask]; at++) {
        int other = c->table[at & c->mask] - 1;

        if (c->hash[other] == c->hash[node] && same_node(d, node, other)) {
            d->instead[node].node = other;
            return true;
        }
    }
    c->table[at & c->mask] = node + 1;
    return false;
}
