#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "kernel/bf16_tile.h"
#include "kernel/narrow.h"
#include "op/harness.h"

/* Small whole numbers, so that every order of adding gives the same. */
static struct tensor noise(uint64_t seed, int64_t rows, int64_t cols)
{
    float *v = test_calloc((size_t)(rows * cols) + 1, sizeof(float));
    struct tensor t;

    for (int64_t i = 0; i < rows * cols; i++)
        v[i] = (float)(rng_next(&seed) % 7) - 3;
    t = harness_floats(2, (int64_t[]){ rows, cols }, v);
    test_free(v);
    return t;
}

static float at(const struct tensor *t, int64_t i, int64_t j, bool transposed)
{
    const float *v = t->data;

    return transposed ? v[j * t->dims[1] + i] : v[i * t->dims[1] + j];
}

/* The same as another type, taken over. */
static struct tensor narrowed(struct tensor t, enum dtype dt)
{
    struct tensor to;
    struct status st;

    if (dt == DT_FLOAT)
        return t;
    assert_int_equal(tensor_new_like(&to, dt, &t, &st), MST_OK);
    narrow_store(dt, to.data, t.data, t.count);
    tensor_unref(&t);
    return to;
}

static float out_at(const struct tensor *t, int64_t i)
{
    float f;

    if (t->dtype == DT_FLOAT)
        return TENSOR_DATA(t, float)[i];
    narrow_load((enum dtype)t->dtype, &f, TENSOR_DATA(t, uint16_t) + i, 1);
    return f;
}

static float rounded(float f, enum dtype dt)
{
    uint16_t bits;

    if (dt != DT_FLOAT) {
        narrow_store(dt, &bits, &f, 1);
        narrow_load(dt, &f, &bits, 1);
    }
    return f;
}

static void check_typed(enum dtype dt, struct pool *pool, int64_t m, int64_t n,
                        int64_t k, bool ta, bool tb)
{
    struct tensor a = ta ? noise(1, k, m) : noise(1, m, k);
    struct tensor b = tb ? noise(2, n, k) : noise(2, k, n);
    struct tensor ra = tensor_ref(&a), rb = tensor_ref(&b);
    struct harness h;

    harness_init(&h, "MatMul");
    h.env.pool = pool;
    harness_type(&h, "T", dt);
    harness_bool(&h, "transpose_a", ta);
    harness_bool(&h, "transpose_b", tb);
    harness_in(&h, narrowed(a, dt));
    harness_in(&h, narrowed(b, dt));
    assert_int_equal(harness_run(&h), MST_OK);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            float sum = 0;

            for (int64_t p = 0; p < k; p++)
                sum += at(&ra, i, p, ta) * at(&rb, p, j, tb);
            assert_true(rounded(sum, dt) == out_at(&h.out[0].t, i * n + j));
        }
    tensor_unref(&ra);
    tensor_unref(&rb);
    harness_done(&h);
}

static void check_product(struct pool *pool, int64_t m, int64_t n, int64_t k,
                          bool ta, bool tb)
{
    check_typed(DT_FLOAT, pool, m, n, k, ta, tb);
}

static void test_products_of_all_edges(void **state)
{
    static const int64_t sizes[] = { 1, 2, 3, 5, 8, 13, 16, 17, 31, 33, 70 };
    uint64_t seed = 3;

    (void)state;
    for (int i = 0; i < 120; i++) {
        int64_t m = sizes[rng_next(&seed) % COUNT(sizes)];
        int64_t n = sizes[rng_next(&seed) % COUNT(sizes)];
        int64_t k = sizes[rng_next(&seed) % COUNT(sizes)];

        check_product(NULL, m, n, k, i & 1, i & 2);
    }
    check_product(NULL, 1, 300, 600, false, false);  /* the wide row */
    check_product(NULL, 9, 20, 600, true, true);     /* several steps of k */
    check_product(NULL, 300, 530, 3, false, true);   /* several blocks */
    check_product(NULL, 37, 1100, 700, false, true); /* few rows */
}

static void test_products_on_several_threads(void **state)
{
    struct pool *pool = pool_new(3);

    (void)state;
    check_product(pool, 150, 140, 300, false, false);
    check_product(pool, 70, 200, 260, true, true);
    check_product(pool, 33, 300, 400, false, true);
    pool_free(pool);
}

static void check_narrow(enum dtype dt, struct pool *pool)
{
    static const int64_t sizes[] = { 1, 2, 7, 15, 16, 17, 31, 32, 33, 65 };
    uint64_t seed = 5;

    for (int i = 0; i < 80; i++) {
        int64_t m = sizes[rng_next(&seed) % COUNT(sizes)];
        int64_t n = sizes[rng_next(&seed) % COUNT(sizes)];
        int64_t k = sizes[rng_next(&seed) % COUNT(sizes)];

        check_typed(dt, pool, m, n, k, i & 1, i & 2);
    }
    for (int i = 0; i < 4; i++) {
        check_typed(dt, pool, 35, 49, 1059, i & 1, i & 2); /* steps of k */
        check_typed(dt, pool, 300, 530, 33, i & 1, i & 2); /* blocks */
    }
    check_typed(dt, pool, 3, 5, 0, false, false);
    check_typed(dt, pool, 0, 5, 3, false, false);
}

/* Each way in which this CPU can multiply bfloat16. */
static void test_narrow_products_of_all_edges(void **state)
{
    struct pool *pool = pool_new(3);

    (void)state;
    for (int most = BF16_TILE_NONE; most <= BF16_TILE_AMX; most++) {
        bf16_tile_limit((enum bf16_tile_kind)most);
        check_narrow(DT_BFLOAT16, NULL);
        check_narrow(DT_BFLOAT16, pool);
    }
    check_narrow(DT_HALF, NULL);
    check_narrow(DT_HALF, pool);
    pool_free(pool);
}

/* Rows of two products, of three matrices against one. */
static void test_narrow_batches(void **state)
{
    struct harness h;

    (void)state;
    for (int most = BF16_TILE_NONE; most <= BF16_TILE_AMX; most++) {
        bf16_tile_limit((enum bf16_tile_kind)most);
        harness_init(&h, "BatchMatMulV2");
        harness_type(&h, "T", DT_BFLOAT16);
        harness_in(&h, narrowed(harness_floats(3, (int64_t[]){ 3, 1, 2 },
                                               (float[]){ 1, 2, 3, 4, 5, 6 }),
                                DT_BFLOAT16));
        harness_in(&h, narrowed(harness_floats(2, (int64_t[]){ 2, 2 },
                                               (float[]){ 1, 0, 10, 1 }),
                                DT_BFLOAT16));
        assert_int_equal(harness_run(&h), MST_OK);
        for (int i = 0; i < 6; i++)
            assert_true(out_at(&h.out[0].t, i) ==
                        ((float[]){ 21, 2, 43, 4, 65, 6 })[i]);
        harness_done(&h);
    }
}

/* SparseMatMul gives float, which is not rounded. */
static void test_narrow_inputs_of_a_float_product(void **state)
{
    struct harness h;

    (void)state;
    harness_init(&h, "SparseMatMul");
    harness_type(&h, "Ta", DT_BFLOAT16);
    harness_type(&h, "Tb", DT_BFLOAT16);
    harness_in(&h, narrowed(harness_floats(2, (int64_t[]){ 1, 2 },
                                           (float[]){ 256, 1 }),
                            DT_BFLOAT16));
    harness_in(
        &h, narrowed(harness_floats(2, (int64_t[]){ 2, 1 }, (float[]){ 4, 3 }),
                     DT_BFLOAT16));
    assert_int_equal(harness_run(&h), MST_OK);
    assert_true(out_at(&h.out[0].t, 0) == 1027);
    harness_done(&h);
}

static void test_a_product_over_nothing_is_zero(void **state)
{
    struct harness h;

    (void)state;
    harness_init(&h, "MatMul");
    harness_type(&h, "T", DT_FLOAT);
    harness_in(&h, noise(1, 2, 0));
    harness_in(&h, noise(1, 0, 3));
    assert_int_equal(harness_run(&h), MST_OK);
    assert_int_equal(h.out[0].t.count, 6);
    for (int i = 0; i < 6; i++)
        assert_true(TENSOR_DATA(&h.out[0].t, float)[i] == 0);
    harness_done(&h);
}

static void add_fused(struct harness *h, int count, const char *const *ops)
{
    struct attr_value *v = ARENA_ARRAY(&h->arena, struct attr_value, count);

    for (int i = 0; i < count; i++)
        v[i].s = (struct attr_text){ ops[i], strlen(ops[i]) };
    h->attrs[h->node.attr_count++] = (struct attr){ .name = "fused_ops",
                                                    .kind = ATTR_STRING,
                                                    .list = true,
                                                    .count = count,
                                                    .value = v };
}

static enum mst_code run_fused(struct harness *h, const char *activation)
{
    const char *ops[] = { "BiasAdd", activation };

    harness_init(h, "_FusedMatMul");
    harness_type(h, "T", DT_FLOAT);
    harness_int(h, "num_args", 1);
    add_fused(h, activation ? 2 : 1, ops);
    harness_in(h, harness_floats(2, (int64_t[]){ 2, 1 }, (float[]){ 1, -1 }));
    harness_in(h, harness_floats(2, (int64_t[]){ 1, 2 }, (float[]){ 4, 20 }));
    harness_in(h, harness_floats(1, (int64_t[]){ 2 }, (float[]){ 1, -2 }));
    return harness_run(h);
}

static void test_fused_activations(void **state)
{
    static const struct {
        const char *name;
        float want[4];
    } cases[] = { { NULL, { 5, 18, -3, -22 } },
                  { "Relu", { 5, 18, 0, 0 } },
                  { "Relu6", { 5, 6, 0, 0 } },
                  { "LeakyRelu", { 5, 18, -0.6f, -4.4f } },
                  { "Elu", { 5, 18, -0.95021296f, -1 } } };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct harness h;

        assert_int_equal(run_fused(&h, cases[i].name), MST_OK);
        for (int k = 0; k < 4; k++)
            assert_float_equal(TENSOR_DATA(&h.out[0].t, float)[k],
                               cases[i].want[k], 1e-6);
        harness_done(&h);
    }
}

static void test_an_unknown_fusion_is_refused(void **state)
{
    struct harness h;

    (void)state;
    assert_int_equal(run_fused(&h, "Nonsense"), MST_UNIMPLEMENTED);
    harness_done(&h);
}

static void test_batches_are_broadcast(void **state)
{
    struct harness h;

    (void)state;
    harness_init(&h, "BatchMatMulV2");
    harness_type(&h, "T", DT_INT32);
    harness_in(&h, harness_int32s(3, (int64_t[]){ 2, 1, 1 },
                                  (int32_t[]){ 2, INT32_MAX }));
    harness_in(&h, harness_int32s(2, (int64_t[]){ 1, 2 }, (int32_t[]){ 3, 4 }));
    assert_int_equal(harness_run(&h), MST_OK);
    assert_int_equal(h.out[0].t.ndim, 3);
    assert_memory_equal(h.out[0].t.data,
                        ((int32_t[]){ 6, 8, INT32_MAX - 2, -4 }), 16);
    harness_done(&h);
}

static void test_a_row_times_a_transposed_matrix(void **state)
{
    struct harness h;

    (void)state;
    harness_init(&h, "BatchMatMulV2");
    harness_type(&h, "T", DT_INT64);
    harness_bool(&h, "adj_y", true);
    harness_in(&h, harness_int64s(3, (int64_t[]){ 2, 1, 2 },
                                  (int64_t[]){ 1, 2, 3, 4 }));
    harness_in(&h, harness_int64s(2, (int64_t[]){ 3, 2 },
                                  (int64_t[]){ 1, 10, 2, 20, 3, 30 }));
    assert_int_equal(harness_run(&h), MST_OK);
    assert_memory_equal(h.out[0].t.data,
                        ((int64_t[]){ 21, 42, 63, 43, 86, 129 }), 48);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products_of_all_edges),
        cmocka_unit_test(test_products_on_several_threads),
        cmocka_unit_test(test_narrow_products_of_all_edges),
        cmocka_unit_test(test_narrow_batches),
        cmocka_unit_test(test_narrow_inputs_of_a_float_product),
        cmocka_unit_test(test_a_product_over_nothing_is_zero),
        cmocka_unit_test(test_fused_activations),
        cmocka_unit_test(test_an_unknown_fusion_is_refused),
        cmocka_unit_test(test_batches_are_broadcast),
        cmocka_unit_test(test_a_row_times_a_transposed_matrix),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
