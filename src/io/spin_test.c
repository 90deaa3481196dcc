#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "io/spin.h"

/* As on a machine with cores to spare, whatever this one has. */
static struct spin roomy(uint64_t ns_max)
{
    return (struct spin){
        .ns_max = ns_max, .gap_ns = 1000000, .cores = 64, .load_fd = -1
    };
}

static void waited(struct spin *s, uint64_t ns, int times)
{
    while (times--)
        spin_waited(s, ns);
}

static void test_spin_begins_with_sleeping(void **state)
{
    struct spin s = roomy(200000);

    assert_int_equal(spin_budget_ns(&s, 1000000000, true), 0);
}

static void test_spin_polls_after_short_gaps(void **state)
{
    struct spin s = roomy(200000);

    waited(&s, 15000, 12);
    assert_in_range(spin_budget_ns(&s, 1000000000, true), 1, 200000);
    assert_in_range(spin_budget_ns(&s, 1000000000, false), 1, 100000);
}

static void test_spin_stops_after_long_gaps(void **state)
{
    struct spin s = roomy(200000);

    waited(&s, 15000, 12);
    waited(&s, 1000000000, 1);
    assert_int_equal(spin_budget_ns(&s, 1000000000, true), 0);
}

static void test_spin_never_polls_when_off(void **state)
{
    struct spin s;

    spin_init(&s, -1);
    waited(&s, 100, 100);
    assert_int_equal(spin_budget_ns(&s, 1000000000, true), 0);
    spin_done(&s);
}

static void test_spin_leaves_a_crowded_machine_alone(void **state)
{
    struct spin s;

    spin_init(&s, 200);
    waited(&s, 100, 100);
    s.cores = 0; /* whatever runs is too much */
    if (s.load_fd >= 0)
        assert_int_equal(spin_budget_ns(&s, 1000000000, true), 0);
    spin_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spin_begins_with_sleeping),
        cmocka_unit_test(test_spin_polls_after_short_gaps),
        cmocka_unit_test(test_spin_stops_after_long_gaps),
        cmocka_unit_test(test_spin_never_polls_when_off),
        cmocka_unit_test(test_spin_leaves_a_crowded_machine_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
