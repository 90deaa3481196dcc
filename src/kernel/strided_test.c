#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "kernel/strided.h"
#include "op/harness.h"

/* What the machine must do, one element after the other. */
static void plainly(const struct strided *s, int d, int32_t *to,
                    const int32_t *from, int64_t t, int64_t f)
{
    if (d == s->ndim) {
        to[t] = from[f];
        return;
    }
    for (int64_t i = 0; i < s->dim[d].n; i++)
        plainly(s, d + 1, to, from, t + i * s->dim[d].to,
                f + i * s->dim[d].from);
}

/* A random permutation of a random shape, some dimensions turned round, some
 * repeated. */
static void test_random_nests_copy_what_loops_would(void **state)
{
    struct pool *pool = pool_new(2);
    struct op_env env = { .pool = pool };
    struct op_node node = { .env = &env };
    struct op_ctx c = { .node = &node };
    uint64_t seed = 7;

    (void)state;
    for (int round = 0; round < 300; round++) {
        int ndim = (int)(rng_next(&seed) % 5);
        int64_t dims[5], step[5], count = 1, in_count = 1;
        struct strided s = { 0 }, copy;
        struct tensor in, out;
        int32_t *want;

        for (int i = 0; i < ndim; i++) {
            dims[i] = 1 + (int64_t)(rng_next(&seed) % (round % 10 ? 9 : 60));
            step[i] = count;
            count *= dims[i];
        }
        in_count = count;
        for (int i = 0; i < ndim; i++) {
            uint64_t kind = rng_next(&seed) % 6;
            int64_t from = step[i];

            if (kind == 0) {
                from = 0;
            } else if (kind == 1) {
                s.from_at += from * (dims[i] - 1);
                from = -from;
            }
            strided_dim(&s, dims[i], 0, from);
        }
        for (int64_t i = ndim - 1, next = 1; i >= 0; i--) {
            s.dim[i].to = next;
            next *= dims[i];
        }
        want = calloc((size_t)count, sizeof(*want));
        in = harness_int32s(1, &in_count, want);
        out = harness_int32s(1, &count, want);
        for (int64_t i = 0; i < in_count; i++)
            TENSOR_DATA(&in, int32_t)[i] = (int32_t)i + 1;
        copy = s;
        plainly(&s, 0, want, in.data, s.to_at, s.from_at);
        strided_copy(&c, &out, &in, &copy);
        assert_memory_equal(out.data, want, (size_t)count * sizeof(*want));
        tensor_unref(&in);
        tensor_unref(&out);
        free(want);
    }
    pool_free(pool);
}

static void slice_row(struct harness *h, struct tensor in, int32_t row)
{
    harness_init(h, "Slice");
    harness_type(h, "T", in.dtype);
    harness_type(h, "Index", DT_INT32);
    harness_in(h, in);
    harness_in(h, harness_int32s(1, (int64_t[]){ 2 }, (int32_t[]){ row, 0 }));
    harness_in(h, harness_int32s(1, (int64_t[]){ 2 }, (int32_t[]){ 1, -1 }));
    assert_int_equal(harness_run(h), MST_OK);
}

static void test_a_row_shares_the_bytes_of_its_matrix(void **state)
{
    struct tensor m =
        harness_floats(2, (int64_t[]){ 2, 2 }, (float[]){ 1, 2, 3, 4 });
    struct harness h;

    (void)state;
    slice_row(&h, tensor_ref(&m), 1);
    assert_ptr_equal(h.out[0].t.data, TENSOR_DATA(&m, float) + 2);
    harness_done(&h);
    tensor_unref(&m);
}

static void test_a_row_of_strings_is_copied(void **state)
{
    static const char *const words[] = { "a", "b", "c", "d" };
    struct harness h;

    (void)state;
    slice_row(&h, harness_strs(2, (int64_t[]){ 2, 2 }, words), 1);
    assert_int_equal(tensor_str(&h.out[0].t, 0)->data[0], 'c');
    assert_int_equal(tensor_str(&h.out[0].t, 1)->data[0], 'd');
    harness_done(&h);
}

/* v[1:3] = v[0:2], where the right side still is the variable's own memory. */
static void test_a_variable_is_assigned_a_part_of_itself(void **state)
{
    struct variable *v = variable_new("v", DT_FLOAT, true);
    struct tensor t = harness_floats(1, (int64_t[]){ 3 }, (float[]){ 1, 2, 3 });
    struct tensor part;
    struct status st = STATUS_INIT;
    struct harness h;

    (void)state;
    assert_int_equal(tensor_slice(&part, &t, 0, 2, &st), MST_OK);
    variable_assign(v, &t);
    harness_init(&h, "StridedSliceAssign");
    harness_type(&h, "T", DT_FLOAT);
    harness_type(&h, "Index", DT_INT32);
    harness_in_ref(&h, v);
    harness_in(&h, harness_int32s(1, (int64_t[]){ 1 }, (int32_t[]){ 1 }));
    harness_in(&h, harness_int32s(1, (int64_t[]){ 1 }, (int32_t[]){ 3 }));
    harness_in(&h, harness_int32s(1, (int64_t[]){ 1 }, (int32_t[]){ 1 }));
    harness_in(&h, part);
    assert_int_equal(harness_run(&h), MST_OK);
    assert_memory_equal(v->t.data, ((float[]){ 1, 1, 2 }), 12);
    harness_done(&h);
    variable_unref(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_nests_copy_what_loops_would),
        cmocka_unit_test(test_a_row_shares_the_bytes_of_its_matrix),
        cmocka_unit_test(test_a_row_of_strings_is_copied),
        cmocka_unit_test(test_a_variable_is_assigned_a_part_of_itself),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
