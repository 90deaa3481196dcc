/*
 * Single ops of the table, with attributes and inputs that fit their record,
 * made from the fuzzer's bytes: small shapes, also empty and scalar ones, odd
 * values. This reaches kernels that random bytes of a GraphDef never would.
 *
 * Each input is a constant, a variable with or without a value, or a handle
 * from one of the ops that make them.
 */
#include <stdio.h>

#include "graph/testing.h"
#include "op/spec.h"
#include "run_graph.h"
#include "tensor/boxed.h"
#include "tensor/list.h"
#include "tensor/number.h"
#include "tensor/optional.h"
#include "tensor/ragged.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct bytes {
    const uint8_t *at, *end;
};

static unsigned take(struct bytes *b)
{
    return b->at < b->end ? *b->at++ : 0;
}

static unsigned below(struct bytes *b, unsigned n)
{
    return n ? take(b) % n : 0;
}

static enum dtype pick_type(struct bytes *b, uint64_t allowed)
{
    enum dtype dt;

    for (int i = 0; i < 64; i++) {
        dt = (enum dtype)(1 + below(b, DT_COUNT - 1));
        if (i > 32)
            dt = (enum dtype)(1 + i % (DT_COUNT - 1));
        if (dtype_valid(dt) && (!allowed || (allowed >> dt & 1)))
            return dt;
    }
    return DT_FLOAT;
}

static enum dtype pick_plain(struct bytes *b)
{
    enum dtype dt = pick_type(b, 0);

    return dt == DT_RESOURCE || dt == DT_VARIANT ? DT_FLOAT : dt;
}

static int64_t pick_int(struct bytes *b)
{
    static const int64_t odd[] = { 0,         1,         2,         -1,
                                   -2,        3,         4,         7,
                                   8,         100,       -100,      INT32_MAX,
                                   INT32_MIN, INT64_MAX, INT64_MIN, 65536 };

    return odd[below(b, COUNT(odd))];
}

static void fill(struct bytes *b, struct tensor *t)
{
    size_t size = dtype_size((enum dtype)t->dtype);

    for (int64_t i = 0; i < t->count; i++) {
        uint8_t *to = (uint8_t *)t->data + (size_t)i * size;
        unsigned how = take(b);
        int64_t v = how < 200 ? (int64_t)(how % 7) - 1 : pick_int(b);
        double d = how == 255 ? 0.0 / 0.0 : how == 254 ? 1e300 : (double)v;
        float f = (float)d;

        switch (t->dtype) {
        case DT_STRING:
            str_set(tensor_str(t, i), "ab%1:;/", below(b, 8));
            break;
        case DT_BOOL:
            *to = v & 1;
            break;
        case DT_FLOAT:
        case DT_COMPLEX64:
            memcpy(to, &f, 4);
            break;
        case DT_DOUBLE:
        case DT_COMPLEX128:
            memcpy(to, &d, 8);
            break;
        case DT_HALF:
            *(half_bits *)to = half_store(f);
            break;
        case DT_BFLOAT16:
            *(bf16_bits *)to = bf16_store(f);
            break;
        default:
            memcpy(to, &v, MIN(size, 8));
        }
    }
}

static struct tensor pick_tensor(struct bytes *b, enum dtype dt, int depth);

/* All tensors of a list are of its type. */
static struct object *pick_list(struct bytes *b, int depth)
{
    enum dtype dt = depth && below(b, 4) == 0 ? DT_VARIANT : pick_plain(b);
    struct tensor_list *l =
        tensor_list_new(dt, &(struct shape){ .ndim = -1 }, -1);

    for (unsigned n = below(b, 4); n; n--)
        tensor_list_push(l, below(b, 4) ? pick_tensor(b, dt, depth)
                                        : (struct tensor){ 0 });
    return &l->o;
}

static struct object *pick_object(struct bytes *b, int depth)
{
    struct ragged_value *r;
    struct optional *v;
    struct tensor t;
    struct object *o;

    switch (below(b, 6)) {
    case 0:
        return NULL;
    case 1:
        t = (struct tensor){ 0 };
        CHECK(!tensor_new_scalar(&t, DT_INT32, &(struct status){ 0 }));
        *TENSOR_DATA(&t, int32_t) = (int32_t)take(b);
        return &number_new(t)->o;
    case 2:
        return pick_list(b, depth);
    case 3:
        v = optional_new((int)below(b, 4) - 1);
        for (int i = 0; i < v->count; i++)
            v->values[i] = pick_tensor(b, pick_plain(b), depth);
        return &v->o;
    case 4:
        r = ragged_value_new((int)below(b, 3));
        for (int i = 0; i < r->rank; i++)
            r->splits[i] =
                pick_tensor(b, below(b, 2) ? DT_INT64 : DT_INT32, depth);
        r->values = pick_tensor(b, pick_plain(b), depth);
        return &r->o;
    default:
        t = pick_tensor(b, below(b, 2) ? DT_INT64 : pick_plain(b), depth);
        o = boxed_new(&t);
        tensor_unref(&t);
        return o;
    }
}

/* depth: how many variants may lie within each other. */
static struct tensor pick_tensor(struct bytes *b, enum dtype dt, int depth)
{
    struct status st = STATUS_INIT;
    int64_t dims[4];
    int ndim = (int)below(b, 5);
    struct tensor t;

    for (int i = 0; i < ndim; i++)
        dims[i] = below(b, 5);
    CHECK(!tensor_new(&t, dt, ndim, dims, &st));
    tensor_zero(&t);
    if (dt != DT_VARIANT)
        fill(b, &t);
    for (int64_t i = 0; dt == DT_VARIANT && depth && i < t.count; i++)
        *tensor_object(&t, i) = pick_object(b, depth - 1);
    return t;
}

static void put_const(struct graph_text *g, struct bytes *b, const char *name,
                      enum dtype dt)
{
    struct tensor t;

    if (dt == DT_RESOURCE)
        dt = DT_FLOAT; /* no message has such elements */
    t = pick_tensor(b, dt, 2);
    graph_text_node(g, name, "Const", NULL);
    graph_text_type(g, "dtype", dt);
    graph_text_tensor(g, "value", &t);
    tensor_unref(&t);
}

static void put_unknown_shape(struct graph_text *g)
{
    struct pb_out v;

    pb_out_init(&v);
    pb_put_bytes(&v, 7, "\x18\x01", 2);
    graph_text_attr(g, "shape", &v);
    pb_out_done(&v);
}

/* A variable of either form, with a value more often than not. */
static void put_variable(struct graph_text *g, struct bytes *b,
                         const char *name, enum dtype dt, bool ref)
{
    char value[32], set[32], in[64];

    graph_text_node(g, name, ref ? "VariableV2" : "VarHandleOp", NULL);
    graph_text_type(g, "dtype", dt);
    put_unknown_shape(g);
    graph_text_str(g, "shared_name", name);
    if (below(b, 8) == 0)
        return;
    snprintf(value, sizeof(value), "%s_v", name);
    snprintf(set, sizeof(set), "%s_set", name);
    snprintf(in, sizeof(in), "%s,%s", name, value);
    put_const(g, b, value, dt);
    graph_text_node(g, set, ref ? "Assign" : "AssignVariableOp", in);
    graph_text_type(g, ref ? "T" : "dtype", dt);
}

/* An unknown rank, then one dimension of 2: together or apart. */
static const char shapes[] = "\x18\x01\x12\x02\x08\x02";

static bool put_attr(struct graph_text *g, struct bytes *b,
                     const struct spec_attr *a, struct attr *ret,
                     struct arena *arena)
{
    struct attr_value *v;
    struct pb_out o, list;
    int count = a->list ? (int)below(b, 4) : 1;

    if (a->has_default && below(b, 3) == 0)
        return true;
    if (a->kind == ATTR_TENSOR || a->kind == ATTR_FUNC)
        return false;
    v = ARENA_ARRAY(arena, struct attr_value, count + 1);
    *ret = (struct attr){ a->name, a->kind, a->list, count, v };
    pb_out_init(&o);
    pb_out_init(&list);
    for (int i = 0; i < count; i++) {
        struct pb_out *to = a->list ? &list : &o;

        switch (a->kind) {
        case ATTR_INT:
            v[i].i =
                a->list || below(b, 2) ? (int64_t)below(b, 6) : pick_int(b);
            pb_put_uint(to, 3, (uint64_t)v[i].i);
            break;
        case ATTR_TYPE:
            v[i].type = pick_type(b, a->allowed);
            pb_put_uint(to, 6, (uint64_t)v[i].type);
            break;
        case ATTR_BOOL:
            pb_put_uint(to, 5, below(b, 2));
            break;
        case ATTR_FLOAT: {
            float f = (float)below(b, 5) - 1;
            uint8_t *p;

            pb_put_tag(to, 4, PB_FIXED32);
            p = pb_out_reserve(to, 4);
            memcpy(p, &f, 4);
            break;
        }
        case ATTR_STRING:
            if (a->words && below(b, 8)) {
                int n = 0;

                while (a->words[n])
                    n++;
                n = (int)below(b, (unsigned)n);
                v[i].s = (struct attr_text){ a->words[n], strlen(a->words[n]) };
            } else {
                v[i].s = (struct attr_text){ "name", 4 };
            }
            pb_put_bytes(to, 2, v[i].s.data, v[i].s.len);
            break;
        case ATTR_SHAPE:
            pb_put_bytes(to, 7, &shapes[2 * below(b, 2)], 2 + 2 * below(b, 2));
            break;
        default:
            break;
        }
    }
    if (a->list)
        pb_put_bytes(&o, 1, list.data, list.len);
    graph_text_attr(g, a->name, &o);
    pb_out_done(&o);
    pb_out_done(&list);
    return true;
}

/* Ops that make the handles others take. */
static const char *const makers[] = {
    "FIFOQueueV2",
    "RandomShuffleQueueV2",
    "PaddingFIFOQueueV2",
    "PriorityQueueV2",
    "TensorArrayV3",
    "HashTableV2",
    "StackV2",
    "MutableHashTableV2",
    "ResourceConditionalAccumulator",
    "EmptyTensorList",
    "TensorListReserve",
    "Barrier",
    "FIFOQueue",
    "ConditionalAccumulator",
    "SparseConditionalAccumulator",
};

static bool put_op(struct graph_text *g, struct bytes *b, const char *name,
                   const struct op_def *def, int depth);

static bool put_input(struct graph_text *g, struct bytes *b, const char *name,
                      int dt, int depth)
{
    enum dtype base = dtype_base(dt);

    if (dtype_is_ref(dt) && base != DT_STRING) {
        put_variable(g, b, name, base, true);
        return true;
    }
    if (base == DT_RESOURCE || base == DT_VARIANT || dtype_is_ref(dt)) {
        const struct op_def *maker = op_find(makers[below(b, COUNT(makers))]);

        if (base == DT_RESOURCE && below(b, 2)) {
            put_variable(g, b, name, DT_FLOAT, false);
            return true;
        }
        if (base == DT_VARIANT && below(b, 2)) {
            put_const(g, b, name, DT_VARIANT);
            return true;
        }
        return depth < 2 && maker && put_op(g, b, name, maker, depth + 1);
    }
    put_const(g, b, name, base);
    return true;
}

static bool put_op(struct graph_text *g, struct bytes *b, const char *name,
                   const struct op_def *def, int depth)
{
    const struct op_spec *spec = spec_of(def);
    struct attr attrs[SPEC_ATTRS_MAX];
    struct graph_text scratch;
    struct op_node n = { .name = name, .def = def };
    struct status st = STATUS_INIT;
    struct arena arena;
    char inputs[1024] = "";
    int *types, count, given = 0;
    bool ok = true;

    arena_init(&arena);
    graph_text_init(&scratch);
    for (int i = 0; i < spec->attr_count && ok; i++) {
        struct attr a = { 0 };

        ok = put_attr(&scratch, b, &spec->attr[i], &a, &arena);
        if (a.name)
            attrs[given++] = a;
    }
    n.arena = &arena;
    n.attrs = attrs;
    n.attr_count = given;
    ok = ok && !spec_complete_attrs(&n, &st) &&
         !spec_types(spec, n.attrs, n.attr_count, name, &arena, false, &types,
                     &count, &st) &&
         count < 12;
    for (int i = 0; ok && i < count; i++) {
        char in[48];

        snprintf(in, sizeof(in), "%s_%d", name, i);
        ok = strlen(in) < 40 && put_input(g, b, in, types[i], depth);
        strcat(inputs, i ? "," : "");
        strcat(inputs, in);
    }
    if (ok) {
        graph_text_node(g, name, def->name, inputs);
        pb_put_raw(&g->node, scratch.node.data, scratch.node.len);
    }
    pb_out_done(&scratch.node);
    pb_out_done(&scratch.graph);
    arena_done(&arena);
    return ok;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes b = { data, data + size };
    const struct op_def *const *ops = op_all();
    struct graph_text g;
    unsigned count = 0, at;
    char name[8];

    if (size < 4)
        return 0;
    while (ops[count])
        count++;
    graph_text_init(&g);
    g.device = "";
    at = take(&b);
    at = at << 8 | take(&b);
    for (unsigned i = 0; i < 1 + below(&b, 2); i++) {
        snprintf(name, sizeof(name), "n%u", i);
        (void)put_op(&g, &b, name, ops[(at + i * 7) % count], 0);
    }
    graph_text_close(&g);
    run_graph(g.graph.data, g.graph.len);
    pb_out_done(&g.graph);
    return 0;
}
