#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/rng.h"
#include "rpc/outq.h"

/* A stream of known bytes goes in by copies and references of all sizes, and
 * comes out in order, whatever is written at a time. */
#define BYTES ((size_t)1 << 20)

static uint8_t pattern(size_t at)
{
    return (uint8_t)(at * 131 + (at >> 8) * 17 + (at >> 16));
}

static size_t check_out(struct outq *q, size_t at, size_t want)
{
    int count;
    const struct iovec *v = outq_iov(q, &count);
    size_t n = 0;

    for (int i = 0; i < count && n < want; i++) {
        const uint8_t *p = v[i].iov_base;

        for (size_t k = 0; k < v[i].iov_len && n < want; k++, n++)
            assert_int_equal(p[k], pattern(at + n));
    }
    outq_sent(q, n);
    return n;
}

static void test_outq_keeps_the_order(void **state)
{
    struct buffer *src = buffer_new(BYTES);
    static struct outq q;
    uint64_t seed = 3;
    size_t in = 0, out = 0;

    for (size_t i = 0; i < BYTES; i++)
        src->data[i] = pattern(i);
    outq_init(&q);
    while (out < BYTES) {
        size_t len = rng_next(&seed) % 5000;

        len = MIN(len, BYTES - in);
        if (len && rng_next(&seed) % 2)
            in += outq_copy(&q, src->data + in, len);
        else if (len && outq_fits(&q, 1, 0)) {
            outq_ref(&q, src->data + in, len, buffer_ref(src));
            in += len;
        }
        if (rng_next(&seed) % 3 == 0)
            out += check_out(&q, out, rng_next(&seed) % 20000);
        assert_int_equal(q.bytes, in - out);
    }
    assert_true(buffer_unique(src));
    outq_done(&q);
    buffer_unref(src);
}

static void test_outq_refuses_when_full(void **state)
{
    static uint8_t bytes[OUTQ_RING + 1];
    static struct outq q;

    outq_init(&q);
    assert_int_equal(outq_copy(&q, bytes, sizeof(bytes)), OUTQ_RING);
    assert_int_equal(outq_copy(&q, bytes, 1), 0);
    assert_false(outq_fits(&q, 0, 1));
    outq_sent(&q, 100);
    assert_true(outq_fits(&q, 0, 100));
    assert_false(outq_fits(&q, OUTQ_IOV / 2, 0));
    outq_done(&q);
}

static void test_outq_lets_go_of_what_was_not_sent(void **state)
{
    struct buffer *b = buffer_new(5000);
    static struct outq q;

    memset(b->data, 0, 5000);
    outq_init(&q);
    outq_ref(&q, b->data, 5000, buffer_ref(b));
    outq_sent(&q, 10);
    assert_false(buffer_unique(b));
    outq_done(&q);
    assert_true(buffer_unique(b));
    buffer_unref(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_outq_keeps_the_order),
        cmocka_unit_test(test_outq_refuses_when_full),
        cmocka_unit_test(test_outq_lets_go_of_what_was_not_sent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
