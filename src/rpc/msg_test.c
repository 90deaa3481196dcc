#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "rpc/msg.h"

static void check_is(struct rpc_msg *m, const uint8_t *expect, size_t len)
{
    const struct rpc_piece *p = rpc_msg_pieces(m);
    size_t at = 0;

    assert_int_equal(rpc_msg_len(m), len);
    for (uint32_t i = 0; i < m->count; i++) {
        assert_true(at + p[i].len <= len);
        assert_memory_equal(rpc_piece_data(m, &p[i]), expect + at, p[i].len);
        at += p[i].len;
    }
    assert_int_equal(at, len);
}

static void test_msg_keeps_small_copies_inline(void **state)
{
    struct rpc_msg m;

    rpc_msg_init(&m);
    rpc_msg_copy(&m, "abc", 3);
    rpc_msg_copy(&m, "", 0);
    rpc_msg_copy(&m, "def", 3);
    assert_int_equal(m.count, 1);
    assert_null(m.chunk);
    check_is(&m, (const uint8_t *)"abcdef", 6);
    rpc_msg_done(&m);
}

static void test_msg_holds_what_it_refers_to(void **state)
{
    struct buffer *b = buffer_new(1000);
    struct rpc_msg m, moved;

    memset(b->data, 7, 1000);
    rpc_msg_init(&m);
    rpc_msg_ref(&m, b->data, 1000, b);
    assert_false(buffer_unique(b));
    rpc_msg_ref(&m, b->data, 10, b); /* so few are copied */
    assert_int_equal(rpc_msg_pieces(&m)[0].len, 1000);
    assert_ptr_equal(rpc_msg_pieces(&m)[0].data, b->data);
    rpc_msg_move(&moved, &m);
    assert_int_equal(rpc_msg_len(&m), 0);
    assert_int_equal(rpc_msg_len(&moved), 1010);
    rpc_msg_done(&m);
    assert_false(buffer_unique(b));
    rpc_msg_done(&moved);
    assert_true(buffer_unique(b));
    buffer_unref(b);
}

static void test_msg_of_any_pieces_is_their_sum(void **state)
{
    uint64_t seed = 5;

    for (int round = 0; round < 200; round++) {
        size_t total = 0, room = 1 << 20;
        uint8_t *expect = mem_new(room);
        struct buffer *b = buffer_new(4096);
        struct rpc_msg m, moved;

        for (size_t i = 0; i < 4096; i++)
            b->data[i] = (uint8_t)rng_next(&seed);
        rpc_msg_init(&m);
        for (uint64_t n = rng_next(&seed) % 60; n; n--) {
            size_t len = rng_next(&seed) % (n % 3 ? 100 : 4096);

            if (rng_next(&seed) % 3)
                rpc_msg_copy(&m, b->data, len);
            else
                rpc_msg_ref(&m, b->data, len, b);
            memcpy(expect + total, b->data, len);
            total += len;
        }
        check_is(&m, expect, total);
        rpc_msg_move(&moved, &m);
        check_is(&moved, expect, total);
        rpc_msg_done(&moved);
        assert_true(buffer_unique(b));
        buffer_unref(b);
        mem_free(expect);
    }
}

static void test_msg_says_that_there_is_no_memory(void **state)
{
    struct rpc_msg m;

    rpc_msg_init(&m);
    assert_null(rpc_msg_reserve(&m, SIZE_MAX / 2));
    assert_true(m.no_memory);
    rpc_msg_done(&m);
    assert_false(m.no_memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_msg_keeps_small_copies_inline),
        cmocka_unit_test(test_msg_holds_what_it_refers_to),
        cmocka_unit_test(test_msg_of_any_pieces_is_their_sum),
        cmocka_unit_test(test_msg_says_that_there_is_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
