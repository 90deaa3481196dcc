#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "op/harness.h"

static struct tensor matrix(void)
{
    return harness_floats(2, (int64_t[]){ 3, 2 },
                          (float[]){ 0, 1, 10, 11, 20, 21 });
}

static struct tensor indices(int64_t n, const int32_t *values)
{
    return harness_int32s(1, &n, values);
}

static void begin(struct harness *h, const char *op)
{
    harness_init(h, op);
    harness_type(h, "Tparams", DT_FLOAT);
    harness_type(h, "Tindices", DT_INT32);
    harness_type(h, "Taxis", DT_INT32);
}

static void assert_values(const struct tensor *t, int ndim, const int64_t *dims,
                          const float *values)
{
    assert_int_equal(t->ndim, ndim);
    for (int i = 0; i < ndim; i++)
        assert_int_equal(t->dims[i], dims[i]);
    for (int64_t i = 0; i < t->count; i++)
        assert_float_equal(TENSOR_DATA(t, float)[i], values[i], 0);
}

static void test_gather_takes_slices_along_an_axis(void **state)
{
    struct harness h;

    (void)state;
    begin(&h, "GatherV2");
    harness_in(&h, matrix());
    harness_in(&h, indices(3, (int32_t[]){ 1, 1, 0 }));
    harness_in(&h, harness_int32s(0, NULL, (int32_t[]){ -1 }));
    assert_int_equal(harness_run(&h), MST_OK);
    assert_values(&h.out[0].t, 2, (int64_t[]){ 3, 3 },
                  (float[]){ 1, 1, 0, 11, 11, 10, 21, 21, 20 });
    harness_done(&h);
}

static void test_gather_pairs_batches(void **state)
{
    struct harness h;

    (void)state;
    begin(&h, "GatherV2");
    harness_int(&h, "batch_dims", 1);
    harness_in(&h, matrix());
    harness_in(&h, indices(3, (int32_t[]){ 1, 0, 1 }));
    harness_in(&h, harness_int32s(0, NULL, (int32_t[]){ 1 }));
    assert_int_equal(harness_run(&h), MST_OK);
    assert_values(&h.out[0].t, 1, (int64_t[]){ 3 }, (float[]){ 1, 10, 21 });
    /* One index too few. */
    harness_in(&h, matrix());
    harness_in(&h, indices(2, (int32_t[]){ 1, 0 }));
    harness_in(&h, harness_int32s(0, NULL, (int32_t[]){ 1 }));
    assert_int_equal(harness_run(&h), MST_INVALID_ARGUMENT);
    assert_string_equal(
        h.st.msg, "params.shape[0]: 3 should be equal to indices.shape[0]: 2");
    harness_done(&h);
}

static void test_gather_refuses_indices_outside(void **state)
{
    struct harness h;

    (void)state;
    begin(&h, "Gather");
    harness_in(&h, matrix());
    harness_in(
        &h, harness_int32s(2, (int64_t[]){ 2, 2 }, (int32_t[]){ 0, 1, -1, 7 }));
    assert_int_equal(harness_run(&h), MST_INVALID_ARGUMENT);
    assert_string_equal(h.st.msg, "indices[1,0] = -1 is not in [0, 3)");
    harness_done(&h);
}

static void test_gather_gives_no_more_than_the_greatest_rank(void **state)
{
    int64_t ones[TENSOR_RANK_MAX];
    float zero = 0;
    int32_t first = 0;
    struct harness h;

    (void)state;
    for (int i = 0; i < TENSOR_RANK_MAX; i++)
        ones[i] = 1;
    begin(&h, "Gather");
    harness_in(&h, harness_floats(TENSOR_RANK_MAX, ones, &zero));
    harness_in(&h, harness_int32s(TENSOR_RANK_MAX, ones, &first));
    assert_int_equal(harness_run(&h), MST_UNIMPLEMENTED);
    harness_done(&h);
}

static void in_handle(struct harness *h, struct variable *v)
{
    struct handle *handle =
        handle_anonymous(&variable_kind, &variable_ref(v)->o, "");
    struct tensor t;

    assert_int_equal(tensor_new_scalar(&t, DT_RESOURCE, &h->st), MST_OK);
    *tensor_object(&t, 0) = &handle->o;
    harness_in(h, t);
}

static void test_resource_gather_reads_rows_of_the_right_type(void **state)
{
    struct variable *v = variable_new("v", DT_FLOAT, false);
    struct tensor m = matrix();
    struct harness h;

    (void)state;
    variable_assign(v, &m);
    harness_init(&h, "ResourceGather");
    harness_type(&h, "dtype", DT_FLOAT);
    harness_type(&h, "Tindices", DT_INT32);
    in_handle(&h, v);
    harness_in(&h, indices(2, (int32_t[]){ 2, 0 }));
    assert_int_equal(harness_run(&h), MST_OK);
    assert_values(&h.out[0].t, 2, (int64_t[]){ 2, 2 },
                  (float[]){ 20, 21, 0, 1 });
    harness_done(&h);
    harness_init(&h, "ResourceGather");
    harness_type(&h, "dtype", DT_DOUBLE);
    harness_type(&h, "Tindices", DT_INT32);
    in_handle(&h, v);
    harness_in(&h, indices(1, (int32_t[]){ 2 }));
    assert_int_equal(harness_run(&h), MST_INVALID_ARGUMENT);
    harness_done(&h);
    variable_unref(v);
}

static void test_gather_nd_names_elements_rows_or_everything(void **state)
{
    static const struct {
        int64_t depth;
        int32_t index[2];
        int ndim;
        int64_t dims[2];
        float values[6];
    } cases[] = {
        { 2, { 2, 1 }, 0, { 0 }, { 21 } },
        { 1, { 1 }, 1, { 2 }, { 10, 11 } },
        { 0, { 0 }, 2, { 3, 2 }, { 0, 1, 10, 11, 20, 21 } },
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct harness h;

        begin(&h, "GatherNd");
        harness_in(&h, matrix());
        harness_in(&h, indices(cases[i].depth, cases[i].index));
        assert_int_equal(harness_run(&h), MST_OK);
        assert_values(&h.out[0].t, cases[i].ndim, cases[i].dims,
                      cases[i].values);
        harness_done(&h);
    }
}

static void test_gather_nd_may_ignore_indices_outside(void **state)
{
    struct harness h;

    (void)state;
    begin(&h, "GatherNd");
    harness_str(&h, "bad_indices_policy", "IGNORE");
    harness_in(&h, matrix());
    harness_in(&h, harness_int32s(2, (int64_t[]){ 2, 1 }, (int32_t[]){ 9, 1 }));
    assert_int_equal(harness_run(&h), MST_OK);
    assert_values(&h.out[0].t, 2, (int64_t[]){ 2, 2 },
                  (float[]){ 0, 0, 10, 11 });
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gather_takes_slices_along_an_axis),
        cmocka_unit_test(test_gather_pairs_batches),
        cmocka_unit_test(test_gather_refuses_indices_outside),
        cmocka_unit_test(test_gather_gives_no_more_than_the_greatest_rank),
        cmocka_unit_test(test_resource_gather_reads_rows_of_the_right_type),
        cmocka_unit_test(test_gather_nd_names_elements_rows_or_everything),
        cmocka_unit_test(test_gather_nd_may_ignore_indices_outside),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
