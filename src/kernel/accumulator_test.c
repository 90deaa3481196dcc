/*
 * Accumulators through their ops. The expected values and texts are what
 * TensorFlow 2.21 gave for the same calls.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "op/harness.h"

/* Each accumulator has resources of its own; they end with the test. */
static struct resources *kept[8];
static int kept_count;

static int teardown(void **state)
{
    (void)state;
    while (kept_count > 0)
        resources_unref(kept[--kept_count]);
    return 0;
}

static struct tensor make(const char *op, int ndim, const int64_t *dims,
                          const char *reduction)
{
    struct tensor handle;
    struct harness h;

    harness_init(&h, op);
    harness_type(&h, "dtype", DT_FLOAT);
    harness_shape(&h, "shape", ndim, dims);
    harness_str(&h, "reduction_type", reduction);
    assert_int_equal(harness_run(&h), MST_OK);
    handle = tensor_ref(&h.out[0].t);
    kept[kept_count++] = resources_ref(h.env.resources);
    harness_done(&h);
    return handle;
}

static struct tensor dense(const char *reduction)
{
    return make("ResourceConditionalAccumulator", -1, NULL, reduction);
}

static struct tensor sparse(const char *reduction)
{
    return make("SparseConditionalAccumulator", -1, NULL, reduction);
}

static enum mst_code apply(const struct tensor *a, int64_t step, int n,
                           const float *values, const char *text)
{
    struct harness h;
    enum mst_code rc;

    harness_init(&h, "ResourceAccumulatorApplyGradient");
    harness_type(&h, "dtype", DT_FLOAT);
    harness_in(&h, tensor_ref(a));
    harness_in(&h, harness_int64s(0, NULL, &step));
    harness_in(&h, harness_floats(1, (int64_t[]){ n }, values));
    rc = harness_run(&h);
    if (text)
        assert_string_equal(h.st.msg, text);
    harness_done(&h);
    return rc;
}

static void start_take(struct harness *h, const struct tensor *a, int32_t n)
{
    harness_init(h, "ResourceAccumulatorTakeGradient");
    harness_type(h, "dtype", DT_FLOAT);
    harness_in(h, tensor_ref(a));
    harness_in(h, harness_int32s(0, NULL, &n));
}

static void assert_floats(const struct tensor *t, int n, const float *values)
{
    assert_int_equal(t->count, n);
    for (int i = 0; i < n; i++)
        assert_float_equal(TENSOR_DATA(t, float)[i], values[i], 0);
}

static void expect_take(const struct tensor *a, int32_t n, int count,
                        const float *values)
{
    struct harness h;

    start_take(&h, a, n);
    assert_int_equal(harness_run(&h), MST_OK);
    assert_floats(&h.out[0].t, count, values);
    harness_done(&h);
}

static int32_t accumulated(const struct tensor *a)
{
    struct harness h;
    int32_t n;

    harness_init(&h, "ResourceAccumulatorNumAccumulated");
    harness_in(&h, tensor_ref(a));
    assert_int_equal(harness_run(&h), MST_OK);
    n = *TENSOR_DATA(&h.out[0].t, int32_t);
    harness_done(&h);
    return n;
}

static void test_mean_is_over_all_that_came(void **state)
{
    struct tensor a = dense("MEAN");

    (void)state;
    apply(&a, 0, 2, (float[]){ 1, 2 }, NULL);
    apply(&a, 0, 2, (float[]){ 3, 5 }, NULL);
    apply(&a, 0, 2, (float[]){ 1, 1 }, NULL);
    assert_int_equal(accumulated(&a), 3);
    expect_take(&a, 2, 2, (float[]){ 5.0f / 3, 8.0f / 3 });
    assert_int_equal(accumulated(&a), 0);
    tensor_unref(&a);
}

static void test_sum_does_not_divide(void **state)
{
    struct tensor a = dense("SUM");

    (void)state;
    apply(&a, 0, 2, (float[]){ 1, 2 }, NULL);
    apply(&a, 0, 2, (float[]){ 3, 5 }, NULL);
    expect_take(&a, 2, 2, (float[]){ 4, 7 });
    tensor_unref(&a);
}

static void test_stale_gradients_are_dropped_silently(void **state)
{
    struct tensor a = dense("MEAN");
    struct harness h;

    (void)state;
    apply(&a, 0, 1, (float[]){ 1 }, NULL);
    expect_take(&a, 1, 1, (float[]){ 1 }); /* the step is 1 now */
    assert_int_equal(apply(&a, 0, 1, (float[]){ 1 }, NULL), MST_OK);
    assert_int_equal(accumulated(&a), 0);
    apply(&a, 1, 1, (float[]){ 1 }, NULL);
    assert_int_equal(accumulated(&a), 1);
    harness_init(&h, "ResourceAccumulatorSetGlobalStep");
    harness_in(&h, tensor_ref(&a));
    harness_in(&h, harness_int64s(0, NULL, (int64_t[]){ 7 }));
    assert_int_equal(harness_run(&h), MST_OK);
    harness_done(&h);
    apply(&a, 6, 1, (float[]){ 1 }, NULL);
    assert_int_equal(accumulated(&a), 1);
    tensor_unref(&a);
}

static void test_takers_wait_in_order(void **state)
{
    struct tensor a = dense("MEAN");
    struct harness first, second;

    (void)state;
    start_take(&first, &a, 2);
    assert_int_equal(harness_run(&first), OP_LATER);
    start_take(&second, &a, 1);
    assert_int_equal(harness_run(&second), OP_LATER);
    apply(&a, 5, 1, (float[]){ 1 }, NULL);
    assert_false(first.finished || second.finished);
    apply(&a, 5, 1, (float[]){ 3 }, NULL);
    assert_int_equal(harness_wait(&first), MST_OK);
    assert_floats(&first.out[0].t, 1, (float[]){ 2 });
    apply(&a, 5, 1, (float[]){ 9 }, NULL);
    assert_int_equal(harness_wait(&second), MST_OK);
    assert_floats(&second.out[0].t, 1, (float[]){ 9 });
    harness_done(&first);
    harness_done(&second);
    tensor_unref(&a);
}

static void test_cancelled_taker_lets_the_next_one_on(void **state)
{
    struct tensor a = dense("MEAN");
    struct harness first, second;

    (void)state;
    start_take(&first, &a, 2);
    assert_int_equal(harness_run(&first), OP_LATER);
    start_take(&second, &a, 1);
    assert_int_equal(harness_run(&second), OP_LATER);
    apply(&a, 0, 1, (float[]){ 4 }, NULL);
    cancel_all(&first.cancel);
    assert_int_equal(harness_wait(&first), MST_CANCELLED);
    assert_string_equal(first.st.msg, "TakeGrad operation was cancelled");
    assert_int_equal(harness_wait(&second), MST_OK);
    assert_floats(&second.out[0].t, 1, (float[]){ 4 });
    harness_done(&first);
    harness_done(&second);
    tensor_unref(&a);
}

static void test_sum_does_not_touch_a_shared_gradient(void **state)
{
    struct tensor a = dense("SUM");
    struct tensor g = harness_floats(1, (int64_t[]){ 2 }, (float[]){ 1, 2 });

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct harness h;

        harness_init(&h, "ResourceAccumulatorApplyGradient");
        harness_type(&h, "dtype", DT_FLOAT);
        harness_in(&h, tensor_ref(&a));
        harness_in(&h, harness_int64s(0, NULL, (int64_t[]){ 0 }));
        harness_in(&h, tensor_ref(&g));
        assert_int_equal(harness_run(&h), MST_OK);
        harness_done(&h);
    }
    expect_take(&a, 2, 2, (float[]){ 2, 4 });
    assert_floats(&g, 2, (float[]){ 1, 2 });
    tensor_unref(&g);
    tensor_unref(&a);
}

static void test_wrong_arguments_are_refused(void **state)
{
    struct tensor a =
        make("ResourceConditionalAccumulator", 1, (int64_t[]){ 2 }, "MEAN");
    struct tensor any = dense("MEAN"), rows = sparse("MEAN");
    struct harness h;

    (void)state;
    assert_int_equal(apply(&a, 0, 3, (float[]){ 1, 2, 3 },
                           "Shape mismatch: expected [2], got [3]"),
                     MST_INVALID_ARGUMENT);
    apply(&any, 0, 1, (float[]){ 1 }, NULL);
    assert_int_equal(apply(&any, 0, 3, (float[]){ 1, 2, 3 },
                           "Shape mismatch: expected [1], got [3]"),
                     MST_INVALID_ARGUMENT);
    assert_int_equal(apply(&rows, 0, 1, (float[]){ 1 }, NULL),
                     MST_INVALID_ARGUMENT);
    start_take(&h, &a, 0);
    assert_int_equal(harness_run(&h), MST_INVALID_ARGUMENT);
    assert_string_equal(h.st.msg,
                        "Argument num_required must be positive, but was 0");
    harness_done(&h);
    tensor_unref(&a);
    tensor_unref(&any);
    tensor_unref(&rows);
}

/* ---- sparse ---- */

static enum mst_code apply_rows(const struct tensor *a, int n,
                                const int64_t *rows, int width,
                                const float *values, const char *text)
{
    struct harness h;
    enum mst_code rc;

    harness_init(&h, "SparseAccumulatorApplyGradient");
    harness_type(&h, "dtype", DT_FLOAT);
    harness_bool(&h, "has_known_shape", false);
    harness_in(&h, tensor_ref(a));
    harness_in(&h, harness_int64s(0, NULL, (int64_t[]){ 0 }));
    harness_in(&h, harness_int64s(1, (int64_t[]){ n }, rows));
    harness_in(&h, harness_floats(2, (int64_t[]){ n, width }, values));
    harness_in(&h, harness_int64s(1, (int64_t[]){ 0 }, NULL));
    rc = harness_run(&h);
    if (text)
        assert_string_equal(h.st.msg, text);
    harness_done(&h);
    return rc;
}

static void expect_rows(const struct tensor *a, int n, const int64_t *rows,
                        int width, const float *values, int64_t total)
{
    struct harness h;

    harness_init(&h, "SparseAccumulatorTakeGradient");
    harness_type(&h, "dtype", DT_FLOAT);
    harness_in(&h, tensor_ref(a));
    harness_in(&h, harness_int32s(0, NULL, (int32_t[]){ 1 }));
    assert_int_equal(harness_run(&h), MST_OK);
    assert_int_equal(h.out[0].t.count, n);
    for (int i = 0; i < n; i++)
        assert_int_equal(TENSOR_DATA(&h.out[0].t, int64_t)[i], rows[i]);
    assert_floats(&h.out[1].t, n * width, values);
    assert_int_equal(TENSOR_DATA(&h.out[2].t, int64_t)[0], total);
    assert_int_equal(TENSOR_DATA(&h.out[2].t, int64_t)[1], width);
    harness_done(&h);
}

static void test_sparse_mean_is_over_those_that_had_the_row(void **state)
{
    struct tensor a = sparse("MEAN");

    (void)state;
    apply_rows(&a, 2, (int64_t[]){ 0, 2 }, 2, (float[]){ 1, 1, 2, 2 }, NULL);
    apply_rows(&a, 0, NULL, 2, NULL, NULL);
    apply_rows(&a, 2, (int64_t[]){ 0, 1 }, 2, (float[]){ 3, 3, 4, 4 }, NULL);
    expect_rows(&a, 3, (int64_t[]){ 0, 1, 2 }, 2, (float[]){ 2, 2, 4, 4, 2, 2 },
                -1);
    tensor_unref(&a);
}

static void test_unsorted_and_double_rows_merge_as_in_tensorflow(void **state)
{
    static const int64_t rows[] = { 1, 0, 3, 1, 1, 0, 3 };
    static const float sums[] = { 10, 20, 131, 2, 3, 4, 240 };
    static const float means[] = { 10, 20, 131.0f / 3, 2, 3, 4, 120 };

    (void)state;
    for (int mean = 0; mean < 2; mean++) {
        struct tensor a = sparse(mean ? "MEAN" : "SUM");

        apply_rows(&a, 4, (int64_t[]){ 3, 1, 1, 0 }, 1, (float[]){ 1, 2, 3, 4 },
                   NULL);
        apply_rows(&a, 4, (int64_t[]){ 1, 0, 3, 3 }, 1,
                   (float[]){ 10, 20, 30, 40 }, NULL);
        apply_rows(&a, 2, (int64_t[]){ 3, 3 }, 1, (float[]){ 100, 200 }, NULL);
        expect_rows(&a, 7, rows, 1, mean ? means : sums, -1);
        tensor_unref(&a);
    }
}

static void test_sparse_rows_must_fit(void **state)
{
    struct tensor a =
        make("SparseConditionalAccumulator", 2, (int64_t[]){ 3, 2 }, "MEAN");

    (void)state;
    assert_int_equal(apply_rows(&a, 1, (int64_t[]){ 3 }, 2, (float[]){ 1, 2 },
                                "Shape mismatch: index of slice 0 exceeded "
                                "limits of shape; index is 3 exceeded 3"),
                     MST_INVALID_ARGUMENT);
    assert_int_equal(apply_rows(&a, 1, (int64_t[]){ 1 }, 3,
                                (float[]){ 1, 2, 3 },
                                "Shape mismatch: expected values dim 1 to be "
                                "2, got 3"),
                     MST_INVALID_ARGUMENT);
    assert_int_equal(
        apply_rows(&a, 1, (int64_t[]){ 1 }, 2, (float[]){ 1, 2 }, NULL),
        MST_OK);
    expect_rows(&a, 1, (int64_t[]){ 1 }, 2, (float[]){ 1, 2 }, 3);
    tensor_unref(&a);
}

/* ---- threads ---- */

#define ROUNDS 200

static void *hammer_apply(void *arg)
{
    for (int i = 0; i < ROUNDS; i++)
        apply(arg, 1 << 20, 2, (float[]){ 1, 1 }, NULL);
    return NULL;
}

struct taker {
    const struct tensor *a;
    uint64_t seed;
    double sum;
};

static void *canceller(void *arg)
{
    cancel_all(arg);
    return NULL;
}

/* Takes until it has been told that everything is in. */
static void *hammer_take(void *arg)
{
    struct taker *t = arg;

    for (int i = 0; i < ROUNDS; i++) {
        struct harness h;
        pthread_t thread;

        start_take(&h, t->a, (int32_t)(rng_next(&t->seed) % 3) + 1);
        pthread_create(&thread, NULL, canceller, &h.cancel);
        if (harness_run(&h) == OP_LATER)
            harness_wait(&h);
        if (tensor_set(&h.out[0].t))
            t->sum += TENSOR_DATA(&h.out[0].t, float)[0];
        pthread_join(thread, NULL);
        harness_done(&h);
    }
    return NULL;
}

static void test_threads_neither_lose_nor_double_gradients(void **state)
{
    struct tensor a = dense("SUM");
    struct taker takers[2] = { { &a, 1, 0 }, { &a, 2, 0 } };
    pthread_t t[4];
    struct harness h;
    double sum = 0;

    (void)state;
    for (int i = 0; i < 2; i++) {
        pthread_create(&t[i], NULL, hammer_apply, &a);
        pthread_create(&t[2 + i], NULL, hammer_take, &takers[i]);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    if (accumulated(&a)) {
        start_take(&h, &a, 1);
        assert_int_equal(harness_run(&h), MST_OK);
        sum += TENSOR_DATA(&h.out[0].t, float)[0];
        harness_done(&h);
    }
    assert_float_equal(sum + takers[0].sum + takers[1].sum, 2 * ROUNDS, 0);
    tensor_unref(&a);
}

#define TEST(name) cmocka_unit_test_teardown(name, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_mean_is_over_all_that_came),
        TEST(test_sum_does_not_divide),
        TEST(test_stale_gradients_are_dropped_silently),
        TEST(test_takers_wait_in_order),
        TEST(test_cancelled_taker_lets_the_next_one_on),
        TEST(test_sum_does_not_touch_a_shared_gradient),
        TEST(test_wrong_arguments_are_refused),
        TEST(test_sparse_mean_is_over_those_that_had_the_row),
        TEST(test_unsorted_and_double_rows_merge_as_in_tensorflow),
        TEST(test_sparse_rows_must_fit),
        TEST(test_threads_neither_lose_nor_double_gradients),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
