/* Blocks from one side to the other and back, and what a peer may not do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "io/shm.h"

#define SIZE 100000

/* A block that the other side has as a buffer. */
static struct buffer *pass(struct shm_out *o, struct shm_in *in, int fill,
                           struct shm_block *ret)
{
    struct shm_segment s;

    assert_true(shm_out_take(o, SIZE, ret, &s));
    if (s.fd >= 0)
        assert_true(shm_in_add(in, &s));
    memset(ret->data, fill, SIZE);
    return shm_in_buffer(in, ret->segment, ret->index, SIZE);
}

static void test_block_is_used_again_when_it_came_back(void **state)
{
    struct shm_out *o = shm_out_new();
    struct shm_in *in = shm_in_new();
    struct shm_block a, b, c;
    struct buffer *x = pass(o, in, 1, &a), *y = pass(o, in, 2, &b), *z;

    assert_non_null(x);
    assert_non_null(y);
    assert_ptr_not_equal(a.data, b.data);
    assert_int_equal(x->data[SIZE - 1], 1);
    assert_int_equal(y->data[0], 2);
    assert_int_equal((uintptr_t)x->data % BUFFER_ALIGN, 0);
    buffer_unref(x);
    z = pass(o, in, 3, &c);
    assert_ptr_equal(a.data, c.data);
    assert_int_equal(z->data[SIZE / 2], 3);
    buffer_unref(y);
    buffer_unref(z);
    shm_out_free(o);
    shm_in_free(in);
}

static void test_buffer_outlives_both_sides(void **state)
{
    struct shm_out *o = shm_out_new();
    struct shm_in *in = shm_in_new();
    struct shm_block a;
    struct buffer *x = pass(o, in, 7, &a);

    shm_out_free(o);
    shm_in_free(in);
    assert_int_equal(x->data[SIZE - 1], 7);
    buffer_unref(x);
}

static void test_more_blocks_than_a_segment_has(void **state)
{
    enum { COUNT_ALL = 100 };
    struct shm_out *o = shm_out_new();
    struct shm_in *in = shm_in_new();
    struct buffer *held[COUNT_ALL];
    struct shm_block b;

    for (int i = 0; i < COUNT_ALL; i++)
        held[i] = pass(o, in, i, &b);
    for (int i = 0; i < COUNT_ALL; i++) {
        assert_int_equal(held[i]->data[9], i);
        buffer_unref(held[i]);
    }
    shm_out_free(o);
    shm_in_free(in);
}

static void test_block_in_use_or_unknown_is_refused(void **state)
{
    struct shm_out *o = shm_out_new();
    struct shm_in *in = shm_in_new();
    struct shm_block a;
    struct buffer *x = pass(o, in, 1, &a);

    assert_null(shm_in_buffer(in, a.segment, a.index, SIZE));
    assert_null(shm_in_buffer(in, a.segment + 1, 0, SIZE));
    assert_null(shm_in_buffer(in, a.segment, 1000, SIZE));
    assert_null(shm_in_buffer(in, a.segment, a.index + 1, SIZE * 2));
    buffer_unref(x);
    shm_out_free(o);
    shm_in_free(in);
}

static void test_file_that_may_shrink_is_refused(void **state)
{
    struct shm_in *in = shm_in_new();
    struct shm_segment s = { .count = 2, .room = 1 << 20 };

    s.fd = memfd_create("loose", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_int_equal(ftruncate(s.fd, 4 << 20), 0);
    assert_false(shm_in_add(in, &s));
    s.fd = memfd_create("none", MFD_CLOEXEC);
    assert_false(shm_in_add(in, &s));
    s.fd = dup(0);
    assert_false(shm_in_add(in, &s));
    shm_in_free(in);
}

static void test_limit_is_kept(void **state)
{
    struct shm_out *o = shm_out_new();
    struct shm_segment s;
    struct shm_block b;

    shm_limit(1 << 20);
    assert_true(shm_out_take(o, 700 << 10, &b, &s));
    close(s.fd);
    assert_false(shm_out_take(o, 700 << 10, &b, &s));
    assert_false(shm_out_take(o, 2 << 20, &b, &s));
    shm_out_free(o);
    o = shm_out_new();
    assert_true(shm_out_take(o, 700 << 10, &b, &s));
    close(s.fd);
    shm_out_free(o);
    shm_limit(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_block_is_used_again_when_it_came_back),
        cmocka_unit_test(test_buffer_outlives_both_sides),
        cmocka_unit_test(test_more_blocks_than_a_segment_has),
        cmocka_unit_test(test_block_in_use_or_unknown_is_refused),
        cmocka_unit_test(test_file_that_may_shrink_is_refused),
        cmocka_unit_test(test_limit_is_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
