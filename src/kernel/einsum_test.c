#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "op/harness.h"

/* Runs the equation on vectors of three; the message of its failure. */
static const char *message_of(struct harness *h, const char *equation, int n)
{
    harness_init(h, "Einsum");
    harness_type(h, "T", DT_FLOAT);
    harness_int(h, "N", n);
    harness_str(h, "equation", equation);
    for (int i = 0; i < n; i++)
        harness_in(h,
                   harness_floats(1, (int64_t[]){ 3 }, (float[]){ 1, 2, 3 }));
    assert_int_equal(harness_run(h), MST_INVALID_ARGUMENT);
    return h->st.msg;
}

/* What TensorFlow's Python never lets through, a peer may send. */
static void test_equations_that_are_none_are_refused(void **state)
{
    static const struct {
        const char *equation;
        int inputs;
        const char *part;
    } cases[] = {
        { "i", 1, "exactly one '->'" },
        { "i->i->i", 1, "exactly one '->'" },
        { "i,i,i->i", 3, "1 or 2 input subscripts" },
        { "i->j", 1, "in no input" },
        { "i,i->k", 2, "in no input" },
        { "......->...", 1, "More than one ellipsis" },
        { "i->......", 1, "More than one ellipsis" },
        { "abcdefghijklmnop->a", 1, "Too many labels" },
        { "i,i->i", 1, "Expected 2 inputs" },
        { "i->i", 2, "Expected 1 inputs" },
        { "ij->i", 1, "Expected input 0 to have rank 2" },
        { "...->", 1, "no ellipsis" },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct harness h;

        assert_non_null(strstr(
            message_of(&h, cases[i].equation, cases[i].inputs), cases[i].part));
        harness_done(&h);
    }
}

/* A label that repeats on both sides: the diagonal becomes one. */
static void test_a_diagonal_moves(void **state)
{
    static const float want[] = { 1, 0, 0, 4 };
    struct harness h;

    harness_init(&h, "Einsum");
    harness_type(&h, "T", DT_FLOAT);
    harness_int(&h, "N", 1);
    harness_str(&h, "equation", "ii->ii");
    harness_in(&h,
               harness_floats(2, (int64_t[]){ 2, 2 }, (float[]){ 1, 2, 3, 4 }));
    assert_int_equal(harness_run(&h), MST_OK);
    assert_memory_equal(h.out[0].t.data, want, sizeof(want));
    harness_done(&h);
}

/* The input may be somebody else's: what comes out must not be it changed. */
static void test_an_identity_leaves_its_input(void **state)
{
    struct tensor t = harness_floats(1, (int64_t[]){ 3 }, (float[]){ 1, 2, 3 });
    struct harness h;

    harness_init(&h, "Einsum");
    harness_type(&h, "T", DT_FLOAT);
    harness_int(&h, "N", 1);
    harness_str(&h, "equation", "i->i");
    harness_in(&h, tensor_ref(&t));
    assert_int_equal(harness_run(&h), MST_OK);
    assert_ptr_equal(h.out[0].t.data, t.data);
    assert_false(tensor_unique(&h.out[0].t));
    harness_done(&h);
    tensor_unref(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equations_that_are_none_are_refused),
        cmocka_unit_test(test_a_diagonal_moves),
        cmocka_unit_test(test_an_identity_leaves_its_input),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
