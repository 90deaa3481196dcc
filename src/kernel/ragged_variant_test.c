/*
 * Ragged values that no op of ours made: they came in a message. Values and
 * texts of the ops have been compared with TensorFlow's elsewhere.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "op/harness.h"
#include "tensor/ragged.h"

static struct object *value(struct tensor splits)
{
    struct ragged_value *r = ragged_value_new(1);

    r->splits[0] = splits;
    r->values = harness_floats(1, (int64_t[]){ 2 }, (float[]){ 1, 2 });
    return &r->o;
}

static enum mst_code join(struct tensor splits)
{
    struct status st = STATUS_INIT;
    struct harness h;
    struct tensor t;
    enum mst_code rc;

    assert_int_equal(tensor_new(&t, DT_VARIANT, 1, (int64_t[]){ 2 }, &st),
                     MST_OK);
    *tensor_object(&t, 0) = value(splits);
    *tensor_object(&t, 1) =
        value(harness_int64s(1, (int64_t[]){ 3 }, (int64_t[]){ 0, 1, 2 }));
    harness_init(&h, "RaggedTensorFromVariant");
    harness_int(&h, "input_ragged_rank", 1);
    harness_int(&h, "output_ragged_rank", 2);
    harness_type(&h, "Tvalues", DT_FLOAT);
    harness_type(&h, "Tsplits", DT_INT64);
    harness_in(&h, t);
    rc = harness_run(&h);
    if (!rc)
        assert_int_equal(h.out[1].t.count, 4);
    harness_done(&h);
    return rc;
}

static void test_splits_must_be_vectors_that_are_not_empty(void **state)
{
    int64_t two[] = { 0, 2 };

    assert_int_equal(join(harness_int64s(1, (int64_t[]){ 2 }, two)), MST_OK);
    assert_int_equal(join(harness_int64s(1, (int64_t[]){ 0 }, two)),
                     MST_INVALID_ARGUMENT);
    assert_int_equal(join(harness_int64s(0, NULL, two)), MST_INVALID_ARGUMENT);
    assert_int_equal(join(harness_int64s(2, (int64_t[]){ 1, 2 }, two)),
                     MST_INVALID_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_splits_must_be_vectors_that_are_not_empty),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
