#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "op/harness.h"

/* n by n, with a diagonal that keeps it far from singular. */
static struct tensor regular(uint64_t seed, int64_t n)
{
    float *v = test_calloc((size_t)(n * n) + 1, sizeof(float));
    struct tensor t;

    for (int64_t i = 0; i < n * n; i++)
        v[i] = (float)(rng_next(&seed) % 100) / 50 - 1;
    for (int64_t i = 0; i < n; i++)
        v[i * n + i] += (float)n;
    t = harness_floats(2, (int64_t[]){ n, n }, v);
    test_free(v);
    return t;
}

static void test_a_solution_solves_beyond_one_block(void **state)
{
    int64_t n = 131;
    struct tensor a = regular(7, n), b = regular(8, n);
    struct harness h;

    harness_init(&h, "MatrixSolve");
    harness_type(&h, "T", DT_FLOAT);
    harness_in(&h, tensor_ref(&a));
    harness_in(&h, tensor_ref(&b));
    assert_int_equal(harness_run(&h), MST_OK);
    for (int64_t i = 0; i < n; i += 13)
        for (int64_t j = 0; j < n; j++) {
            double sum = 0;

            for (int64_t k = 0; k < n; k++)
                sum += (double)TENSOR_DATA(&a, float)[i * n + k] *
                       (double)TENSOR_DATA(&h.out[0].t, float)[k * n + j];
            assert_true(fabs(sum - (double)TENSOR_DATA(&b, float)[i * n + j]) <
                        1e-3);
        }
    harness_done(&h);
    tensor_unref(&a);
    tensor_unref(&b);
}

static void test_a_singular_matrix_anywhere_in_a_batch_is_an_error(void **state)
{
    struct harness h;

    harness_init(&h, "MatrixInverse");
    harness_type(&h, "T", DT_FLOAT);
    harness_in(&h,
               harness_floats(3, (int64_t[]){ 3, 1, 1 }, (float[]){ 1, 0, 2 }));
    assert_int_equal(harness_run(&h), MST_INVALID_ARGUMENT);
    assert_string_equal(h.st.msg, "Input is not invertible.");
    harness_done(&h);
}

static void test_huge_matrices_of_an_empty_batch_are_refused(void **state)
{
    int64_t dims[] = { 0, (int64_t)1 << 40, (int64_t)1 << 40 };
    struct tensor t;
    struct status st;
    struct harness h;

    if (tensor_new(&t, DT_FLOAT, 3, dims, &st) != MST_OK)
        return; /* there is no such tensor, which is as good */
    harness_init(&h, "Cholesky");
    harness_type(&h, "T", DT_FLOAT);
    harness_in(&h, t);
    assert_int_not_equal(harness_run(&h), MST_OK);
    harness_done(&h);
}

/* Pivots are the greatest by absolute value: 3.6i comes before 2.5+2.5i,
 * which has the greater sum of parts, by which LAPACK chooses. */
static void test_complex_pivots_are_as_eigen_chooses_them(void **state)
{
    static const float values[] = { 3, 0, 1, 0, 0, 4.2f, 1, 0 };
    static const float other[] = { 2.5f, 2.5f, 1, 0, 0, 3.6f, 1, 0 };
    const float *inputs[] = { values, other };
    const int32_t want[] = { 1, 1 };

    for (int i = 0; i < 2; i++) {
        struct tensor t;
        struct status st;
        struct harness h;

        harness_init(&h, "Lu");
        harness_type(&h, "T", DT_COMPLEX64);
        assert_int_equal(
            tensor_new(&t, DT_COMPLEX64, 2, (int64_t[]){ 2, 2 }, &st), MST_OK);
        memcpy(t.data, inputs[i], sizeof(values));
        harness_in(&h, t);
        assert_int_equal(harness_run(&h), MST_OK);
        assert_int_equal(TENSOR_DATA(&h.out[1].t, int32_t)[0], want[i]);
        harness_done(&h);
    }
}

/* TensorFlow crashes here. */
static void test_a_perturbed_system_for_nothing(void **state)
{
    struct harness h;

    harness_init(&h, "TridiagonalSolve");
    harness_type(&h, "T", DT_FLOAT);
    harness_bool(&h, "perturb_singular", true);
    harness_in(&h, harness_floats(2, (int64_t[]){ 3, 2 },
                                  (float[]){ 0, 0, 0, 0, 0, 0 }));
    harness_in(&h, harness_floats(2, (int64_t[]){ 2, 0 }, (float[]){ 0 }));
    assert_int_equal(harness_run(&h), MST_OK);
    assert_int_equal(h.out[0].t.count, 0);
    harness_done(&h);
}

static void test_old_names_have_the_kernels_of_the_new(void **state)
{
    static const char *const names[] = {
        "Cholesky",          "CholeskyGrad",
        "MatrixDeterminant", "MatrixInverse",
        "MatrixSolve",       "MatrixTriangularSolve",
        "MatrixSolveLs",     "Svd",
        "SelfAdjointEigV2",  "SelfAdjointEig",
        "MatrixBandPart",    "MatrixDiag",
        "MatrixDiagPart",    "MatrixSetDiag",
    };
    char old[64];

    for (size_t i = 0; i < COUNT(names); i++) {
        const struct op_def *a = op_find(names[i]), *b;

        snprintf(old, sizeof(old), "Batch%s", names[i]);
        b = op_find(old);
        assert_non_null(a);
        assert_non_null(b);
        for (int k = 0; a->kernel[k].run; k++)
            assert_ptr_equal(a->kernel[k].run, b->kernel[k].run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_solution_solves_beyond_one_block),
        cmocka_unit_test(
            test_a_singular_matrix_anywhere_in_a_batch_is_an_error),
        cmocka_unit_test(test_huge_matrices_of_an_empty_batch_are_refused),
        cmocka_unit_test(test_complex_pivots_are_as_eigen_chooses_them),
        cmocka_unit_test(test_a_perturbed_system_for_nothing),
        cmocka_unit_test(test_old_names_have_the_kernels_of_the_new),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
