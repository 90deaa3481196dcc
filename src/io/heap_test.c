#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "io/heap.h"

#define TIMERS 500

static void test_heap_gives_timers_in_order(void **state)
{
    static struct loop_timer timers[TIMERS];
    struct heap h = { 0 };
    uint64_t seed = 1, last = 0;
    size_t left = 0;

    for (int i = 0; i < TIMERS; i++) {
        timers[i].when_ns = rng_next(&seed) % 1000;
        heap_put(&h, &timers[i]);
    }
    for (int i = 0; i < TIMERS; i += 3) {
        timers[i].when_ns = rng_next(&seed) % 1000;
        heap_put(&h, &timers[i]);
    }
    for (int i = 1; i < TIMERS; i += 3) {
        heap_take(&h, &timers[i]);
        heap_take(&h, &timers[i]);
    }
    for (int i = 0; i < TIMERS; i++)
        left += i % 3 != 1;
    while (heap_first(&h)) {
        struct loop_timer *t = heap_first(&h);

        assert_true(t->when_ns >= last);
        last = t->when_ns;
        heap_take(&h, t);
        left--;
    }
    assert_int_equal(left, 0);
    heap_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_heap_gives_timers_in_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
