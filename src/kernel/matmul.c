/*
 * Products of two matrices: MatMul, SparseMatMul, _FusedMatMul. SparseMatMul's
 * inputs are dense tensors that may have many zeros; the product is the same.
 */
#include "kernel/pointwise.h"
#include "kernel/product.h"
#include "kernel/vmath.h"

enum fused {
    FUSED_NONE,
    FUSED_RELU,
    FUSED_RELU6,
    FUSED_ELU,
    FUSED_LEAKY_RELU,
    FUSED_TANH,
    FUSED_SIGMOID,
    FUSED_COUNT
};

struct matmul_state {
    bool transpose_a, transpose_b;
    /* _FusedMatMul only: what is done to a row once its bias is added. */
    enum fused fused;
    float alpha;
};

static struct matmul_state *new_state(struct op_node *n)
{
    struct matmul_state *s = ARENA_NEW(n->arena, struct matmul_state);

    s->transpose_a = op_attr_bool(n, "transpose_a");
    s->transpose_b = op_attr_bool(n, "transpose_b");
    n->state = s;
    return s;
}

static enum mst_code matmul_init(struct op_node *n, struct status *st)
{
    new_state(n);
    return MST_OK;
}

/* The product of inputs 0 and 1, which are matrices. */
static enum mst_code multiply(struct op_ctx *c, const char *mismatch)
{
    const struct matmul_state *s = c->node->state;
    const struct tensor *a = op_in(c, 0), *b = op_in(c, 1);
    int ta = s->transpose_a, tb = s->transpose_b;
    char at[SHAPE_TEXT_MAX], bt[SHAPE_TEXT_MAX];
    struct gemm g = { .batch = 1 };
    enum mst_code rc;

    if (a->dims[!ta] != b->dims[tb])
        return op_fail(c, MST_INVALID_ARGUMENT, mismatch,
                       tensor_shape_text(a, at), tensor_shape_text(b, bt));
    g.m = a->dims[ta];
    g.k = a->dims[!ta];
    g.n = b->dims[!tb];
    g.a_row = ta ? 1 : a->dims[1];
    g.a_col = ta ? a->dims[1] : 1;
    g.b_row = tb ? 1 : b->dims[1];
    g.b_col = tb ? b->dims[1] : 1;
    g.c_row = g.n;
    rc = op_out_new(c, 0, 2, (int64_t[]){ g.m, g.n });
    if (rc)
        return rc;
    return product_run(c, &g, a, false, b, false, op_out(c, 0));
}

static enum mst_code matmul(struct op_ctx *c)
{
    for (int i = 0; i < 2; i++)
        if (op_in(c, i)->ndim != 2)
            return op_fail(c, MST_INVALID_ARGUMENT, "In[%d] ndims must be >= 2",
                           i);
    return multiply(c, "Matrix size-incompatible: In[0]: %s, In[1]: %s");
}

const struct op_def def_mat_mul = {
    .name = "MatMul",
    .in = "a: T, b: T",
    .out = "product: T",
    .attr = "transpose_a: bool = false; transpose_b: bool = false; "
            "T: {bfloat16, half, float, double, int32, int64, uint8, uint16, "
            "uint32, uint64, complex64, complex128}; "
            "grad_a: bool = false; grad_b: bool = false",
    .flags = OP_EXPENSIVE,
    .init = matmul_init,
    .kernel = KERNELS({ DT_FLOAT, matmul }, { DT_DOUBLE, matmul },
                      { DT_HALF, matmul }, { DT_BFLOAT16, matmul },
                      { DT_INT32, matmul }, { DT_INT64, matmul },
                      { DT_COMPLEX64, matmul }, { DT_COMPLEX128, matmul }, ),
};

static enum mst_code sparse_matmul(struct op_ctx *c)
{
    for (int i = 0; i < 2; i++)
        if (op_in(c, i)->ndim != 2)
            return op_fail(c, MST_INVALID_ARGUMENT, "%c is not a matrix",
                           'a' + i);
    return multiply(c, "Matrix size incompatible: a: %s, b: %s");
}

const struct op_def def_sparse_mat_mul = {
    .name = "SparseMatMul",
    .in = "a: Ta, b: Tb",
    .out = "product: float",
    .attr = "transpose_a: bool = false; transpose_b: bool = false; "
            "a_is_sparse: bool = false; b_is_sparse: bool = false; "
            "Ta: {float, bfloat16} = float; Tb: {float, bfloat16} = float",
    .key = "Ta",
    .flags = OP_EXPENSIVE,
    .init = matmul_init,
    .kernel = KERNELS({ DT_ANY, sparse_matmul }, ),
};

/* ---- _FusedMatMul: as grappler joins MatMul, BiasAdd and an activation ----
 */

/* What follows the bias, as a loop over a row. */
#define FUSED_LOOP(name, EXPR)                                                 \
    VECTOR_CLONES static void name(float *out, const float *bias, int64_t n,   \
                                   float alpha)                                \
    {                                                                          \
        for (int64_t i = 0; i < n; i++) {                                      \
            const float x = out[i] + bias[i];                                  \
                                                                               \
            out[i] = EXPR;                                                     \
        }                                                                      \
    }
FUSED_LOOP(bias_none, x)
FUSED_LOOP(bias_relu, x < 0 ? 0 : x)
FUSED_LOOP(bias_relu6, x<0 ? 0 : x> 6 ? 6 : x)
FUSED_LOOP(bias_elu, ({
               float e_ = exp(x) - 1;
               x < 0 ? e_ : x;
           }))
FUSED_LOOP(bias_leaky_relu, x > 0 ? x : alpha * x)
FUSED_LOOP(bias_tanh, tanh(x))
FUSED_LOOP(bias_sigmoid, 1 / (1 + exp(-x)))

static const struct {
    const char *name;
    void (*loop)(float *out, const float *bias, int64_t n, float alpha);
} fused_ops[FUSED_COUNT] = {
    [FUSED_NONE] = { "", bias_none },
    [FUSED_RELU] = { "Relu", bias_relu },
    [FUSED_RELU6] = { "Relu6", bias_relu6 },
    [FUSED_ELU] = { "Elu", bias_elu },
    [FUSED_LEAKY_RELU] = { "LeakyRelu", bias_leaky_relu },
    [FUSED_TANH] = { "Tanh", bias_tanh },
    [FUSED_SIGMOID] = { "Sigmoid", bias_sigmoid },
};

static enum mst_code fused_init(struct op_node *n, struct status *st)
{
    struct matmul_state *s = new_state(n);
    const struct attr *ops = op_attr(n, "fused_ops");
    bool known = ops->count && !strcmp(ops->value[0].s.data, "BiasAdd");

    s->alpha = op_attr_float(n, "leakyrelu_alpha");
    if (known && ops->count == 2) {
        s->fused = 1;
        while (s->fused < FUSED_COUNT &&
               strcmp(ops->value[1].s.data, fused_ops[s->fused].name))
            s->fused++;
    }
    if (!known || ops->count > 2 || s->fused == FUSED_COUNT ||
        op_attr_int(n, "num_args") != 1)
        return status_set(st, MST_UNIMPLEMENTED,
                          "Fusion is not implemented: {{node %s}}", n->name);
    return MST_OK;
}

struct fused_job {
    const struct matmul_state *s;
    float *out;
    const float *bias;
    int64_t n;
};

static void fused_rows(void *arg, int64_t begin, int64_t end)
{
    const struct fused_job *j = arg;

    for (int64_t i = begin; i < end; i++)
        fused_ops[j->s->fused].loop(j->out + i * j->n, j->bias, j->n,
                                    j->s->alpha);
}

static enum mst_code fused_matmul(struct op_ctx *c)
{
    const struct tensor *bias = op_in(c, 2);
    char text[SHAPE_TEXT_MAX];
    enum mst_code rc = matmul(c);
    struct fused_job j = { .s = c->node->state };

    if (rc)
        return rc;
    j.out = op_out(c, 0)->data;
    j.bias = bias->data;
    j.n = op_out(c, 0)->dims[1];
    if (bias->ndim != 1 || bias->count != j.n)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Must provide as many biases as the last dimension of "
                       "the output: %s vs. %lld",
                       tensor_shape_text(bias, text), (long long)j.n);
    op_for(c, op_out(c, 0)->dims[0], 0.5 * (double)j.n, fused_rows, &j);
    return MST_OK;
}

const struct op_def def__fused_mat_mul = {
    .name = "_FusedMatMul",
    .in = "a: T, b: T, args: num_args * T",
    .out = "product: T",
    .attr = "transpose_a: bool = false; transpose_b: bool = false; "
            "T: {bfloat16, half, float}; num_args: int >= 0; "
            "fused_ops: list(string) = []; epsilon: float = 0.0001; "
            "leakyrelu_alpha: float = 0.2",
    .flags = OP_EXPENSIVE,
    .init = fused_init,
    .kernel = KERNELS({ DT_FLOAT, fused_matmul }, ),
};
