/*
 * Tensor lists: who may change what. Values and texts of all ops have been
 * compared with TensorFlow's elsewhere.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kernel/tensor_list.h"
#include "op/harness.h"

static struct tensor number(int32_t x)
{
    return harness_int32s(0, NULL, &x);
}

static struct tensor floats(int n, const float *v)
{
    return harness_floats(1, (int64_t[]){ n }, v);
}

static struct tensor finish(struct harness *h)
{
    struct tensor out;

    assert_int_equal(harness_run(h), MST_OK);
    out = tensor_ref(&h->out[0].t);
    harness_done(h);
    return out;
}

static void start(struct harness *h, const char *op)
{
    harness_init(h, op);
    harness_type(h, "element_dtype", DT_FLOAT);
    harness_type(h, "shape_type", DT_INT32);
}

static struct tensor empty(void)
{
    struct harness h;

    start(&h, "EmptyTensorList");
    harness_in(&h, number(-1));
    harness_in(&h, number(-1));
    return finish(&h);
}

/* The list is moved in, so that it may be the only one. */
static struct tensor push(struct tensor list, struct tensor item)
{
    struct harness h;

    start(&h, "TensorListPushBack");
    harness_in(&h, list);
    harness_in(&h, item);
    return finish(&h);
}

static const struct tensor_list *list_of(const struct tensor *t)
{
    return CONTAINER(*tensor_object(t, 0), struct tensor_list, o);
}

static void test_push_works_in_place_on_an_only_list(void **state)
{
    struct tensor t = push(empty(), floats(1, (float[]){ 1 }));
    const struct tensor_list *l = list_of(&t);

    (void)state;
    t = push(t, floats(1, (float[]){ 2 }));
    assert_ptr_equal(list_of(&t), l);
    assert_int_equal(l->count, 2);
    tensor_unref(&t);
}

static void test_push_leaves_a_shared_list_alone(void **state)
{
    struct tensor a = push(empty(), floats(1, (float[]){ 1 }));
    struct tensor b = push(tensor_ref(&a), floats(1, (float[]){ 2 }));
    struct tensor c = push(tensor_ref(&a), floats(1, (float[]){ 3 }));

    (void)state;
    assert_int_equal(list_of(&a)->count, 1);
    assert_int_equal(list_of(&b)->count, 2);
    assert_float_equal(*TENSOR_DATA(&list_of(&c)->items[1], float), 3, 0);
    tensor_unref(&a);
    tensor_unref(&b);
    tensor_unref(&c);
}

/* Two tensors may hold the same list as an object, too. */
static void test_push_leaves_a_list_alone_that_another_tensor_has(void **state)
{
    struct tensor a = push(empty(), floats(1, (float[]){ 1 }));
    struct status st = STATUS_INIT;
    struct tensor b;

    (void)state;
    assert_int_equal(tensor_copy(&b, &a, &st), MST_OK);
    b = push(b, floats(1, (float[]){ 2 }));
    assert_int_equal(list_of(&a)->count, 1);
    assert_int_equal(list_of(&b)->count, 2);
    tensor_unref(&a);
    tensor_unref(&b);
}

static void test_rows_of_a_tensor_share_its_bytes(void **state)
{
    struct tensor t =
        harness_floats(2, (int64_t[]){ 2, 2 }, (float[]){ 1, 2, 3, 4 });
    struct harness h;
    struct tensor l, row;

    (void)state;
    start(&h, "TensorListFromTensor");
    harness_in(&h, tensor_ref(&t));
    harness_in(&h, number(-1));
    l = finish(&h);
    assert_ptr_equal(list_of(&l)->items[1].data, (float *)t.data + 2);
    start(&h, "TensorListPopBack");
    harness_in(&h, l);
    harness_in(&h, number(-1));
    assert_int_equal(harness_run(&h), MST_OK);
    row = tensor_ref(&h.out[1].t);
    harness_done(&h);
    assert_float_equal(TENSOR_DATA(&row, float)[1], 4, 0);
    assert_int_equal(row.ndim, 1);
    tensor_unref(&row);
    tensor_unref(&t);
}

static void test_absurd_sizes_are_refused(void **state)
{
    struct harness h;

    (void)state;
    start(&h, "TensorListReserve");
    harness_in(&h, number(-1));
    harness_in(&h, number(INT32_MAX));
    assert_int_equal(harness_run(&h), MST_RESOURCE_EXHAUSTED);
    harness_done(&h);
    start(&h, "TensorListConcatV2");
    harness_in(&h, push(empty(), floats(1, (float[]){ 1 })));
    harness_in(&h, harness_int32s(1, (int64_t[]){ 2 }, (int32_t[]){ -1, -7 }));
    harness_in(&h, harness_int64s(1, (int64_t[]){ 0 }, NULL));
    assert_int_equal(harness_run(&h), MST_INVALID_ARGUMENT);
    harness_done(&h);
}

/* A loop may put a list into a list into a list …: their end takes no more
 * stack than that of one. */
static void test_lists_may_be_deep(void **state)
{
    struct status st = STATUS_INIT;
    struct shape any = { .ndim = -1 };
    struct tensor t;

    (void)state;
    assert_int_equal(tensor_new_scalar(&t, DT_VARIANT, &st), MST_OK);
    for (int i = 0; i < 200000; i++) {
        struct tensor_list *l = tensor_list_new(DT_VARIANT, &any, -1);

        tensor_list_push(l, t);
        assert_int_equal(tensor_new_scalar(&t, DT_VARIANT, &st), MST_OK);
        *tensor_object(&t, 0) = &l->o;
    }
    tensor_unref(&t);
}

static void test_what_is_no_list_is_refused(void **state)
{
    struct status st = STATUS_INIT;
    struct tensor t;
    struct harness h;

    (void)state;
    assert_int_equal(tensor_new_scalar(&t, DT_VARIANT, &st), MST_OK);
    harness_init(&h, "TensorListLength");
    harness_in(&h, t);
    assert_int_equal(harness_run(&h), MST_INVALID_ARGUMENT);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_push_works_in_place_on_an_only_list),
        cmocka_unit_test(test_push_leaves_a_shared_list_alone),
        cmocka_unit_test(test_push_leaves_a_list_alone_that_another_tensor_has),
        cmocka_unit_test(test_rows_of_a_tensor_share_its_bytes),
        cmocka_unit_test(test_absurd_sizes_are_refused),
        cmocka_unit_test(test_lists_may_be_deep),
        cmocka_unit_test(test_what_is_no_list_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
