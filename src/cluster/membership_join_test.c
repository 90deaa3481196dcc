/* The state machine, call by call: indices that are given, and restarts. */
#include "cluster/membership_test.h"

/* ---- joining ---- */

static void test_join_gives_the_next_index(void **state)
{
    boot_all(2);
    join(0, "x:1", &call);
    settle();
    assert_ok();
    assert_true(call.changed);
    assert_int_equal(call.task, 2);
    assert_at(1, 2, "x:1");
}

static void test_join_again_gives_the_same_index(void **state)
{
    boot_all(2);
    join(0, "x:1", &call);
    settle();
    join(0, "x:1", &other);
    settle();
    assert_answer(&other, MST_OK, "");
    assert_int_equal(other.task, 2);
    assert_false(other.changed);
}

static void test_join_of_a_worker_of_the_flags_gives_its_index(void **state)
{
    boot_all(2);
    join(0, "w1:1", &call);
    settle();
    assert_ok();
    assert_int_equal(call.task, 1);
    assert_non_null(members_get(&nodes[1].disk, "worker", 1));
}

static void test_joins_at_once_get_different_indices(void **state)
{
    boot_all(2);
    join(0, "x:1", &call);
    join(0, "y:1", &other);
    settle();
    assert_ok();
    assert_answer(&other, MST_OK, "");
    assert_int_equal(call.task + other.task, 2 + 3);
}

static void test_joins_of_one_address_at_once_get_one_index(void **state)
{
    boot_all(2);
    join(0, "x:1", &call);
    join(0, "x:1", &other);
    settle();
    assert_ok();
    assert_int_equal(call.task, 2);
    assert_int_equal(other.task, 2);
}

static void test_index_of_one_that_was_removed_is_not_given(void **state)
{
    boot_all(1);
    drop(0, 1, NULL);
    settle();
    join(0, "w1:1", &other);
    settle();
    assert_int_equal(other.task, 2);
}

static void test_join_is_for_ps_0(void **state)
{
    boot_all(2);
    join(1, "x:1", &call);
    assert_failed(MST_FAILED_PRECONDITION, "it is ps 0 that gives");
}

static void test_join_of_another_jobs_address_is_refused(void **state)
{
    boot_all(1);
    join(0, "p0:1", &call);
    assert_failed(MST_ALREADY_EXISTS, "the address of /job:ps/task:0");
}

static void test_join_needs_every_ps(void **state)
{
    boot_all(3);
    nodes[2].down = true;
    join(0, "x:1", &call);
    settle();
    assert_failed(MST_UNAVAILABLE, "ps 2 cannot be reached");
    for (int i = 0; i < 3; i++)
        assert_null(at(i, 2));
    nodes[2].down = false;
    join(0, "x:1", &call);
    settle();
    assert_ok();
}

/* One goes down between the question and the index. */
static void test_join_that_failed_half_way_gets_its_index_later(void **state)
{
    boot_all(2);
    join(0, "x:1", &call);
    packet_arrive(packet_of(0, 1));
    packet_return(packet_of(0, 1));
    nodes[1].down = true;
    settle();
    assert_failed(MST_UNAVAILABLE, "ps 1 cannot be reached");
    nodes[1].down = false;
    join(0, "y:1", &other);
    settle();
    assert_int_equal(other.task, 3);
    join(0, "x:1", &call);
    settle();
    assert_ok();
    assert_int_equal(call.task, 2);
}

static void test_join_learns_what_only_another_ps_knows(void **state)
{
    boot_all(2);
    nodes[0].down = true;
    add(1, 2, "y:1");
    settle();
    nodes[0].down = false;
    join(0, "x:1", &other);
    settle();
    assert_answer(&other, MST_OK, "");
    assert_int_equal(other.task, 3);
    assert_at(0, 2, "y:1");
}

/* ps 1 is asked for the same index after it was asked what it knows. ps 0 has
 * seen many changes, so that its versions are larger: the call wins. */
static void test_join_never_takes_the_index_of_a_call(void **state)
{
    boot_all(2);
    nodes[1].down = true;
    for (int i = 0; i < 5; i++) {
        call = (struct call){ 0 };
        move(0, 1, i % 2 ? "a:1" : "b:1");
        settle();
    }
    nodes[1].down = false;
    call = (struct call){ 0 };
    join(0, "x:1", &other);
    packet_arrive(packet_of(0, 1));
    packet_return(packet_of(0, 1));
    packet_lose(packet_of(0, 1)); /* so that ps 1's versions stay small */
    add(1, 2, "y:1");
    settle();
    assert_ok();
    assert_answer(&other, MST_OK, "");
    assert_int_equal(other.task, 3);
    assert_at(0, 2, "y:1");
    assert_at(1, 2, "y:1");
}

static void test_join_waits_for_a_call_that_is_being_written(void **state)
{
    struct packet *p;

    boot_all(2);
    join(0, "x:1", &other);
    packet_arrive(packet_of(0, 1));
    packet_return(packet_of(0, 1));
    write_end(&nodes[0], write_of(&nodes[0]));
    p = packet_of(0, 1);
    add(1, 2, "y:1");
    packet_arrive(p);
    settle();
    assert_ok();
    assert_answer(&other, MST_OK, "");
    assert_int_equal(other.task, 3);
    assert_at(0, 2, "y:1");
}

static void test_join_asks_a_ps_that_was_foreign(void **state)
{
    boot_all(2);
    add(1, 2, "y:1");
    nodes[0].down = true;
    settle();
    nodes[0].down = false;
    nodes[1].foreign = true;
    membership_tick(nodes[0].ms);
    settle();
    nodes[1].foreign = false;
    join(0, "x:1", &other);
    settle();
    assert_answer(&other, MST_OK, "");
    assert_int_equal(other.task, 3);
}

static void test_join_does_without_a_foreign_ps(void **state)
{
    boot_all(2);
    nodes[1].foreign = true;
    join(0, "x:1", &call);
    settle();
    assert_ok();
    assert_int_equal(call.task, 2);
}

static void test_join_finds_no_number_left(void **state)
{
    boot_all(1);
    add(0, 999999, "a:1");
    settle();
    join(0, "x:1", &other);
    settle();
    assert_answer(&other, MST_RESOURCE_EXHAUSTED, "no number left");
}

/* ---- starting again ---- */

static void test_restart_brings_the_journal_back(void **state)
{
    boot_all(2);
    add(0, 2, "w2:1");
    settle();
    drop(1, 1, NULL);
    settle();
    nodes[0].says = 0;
    boot(0, 2, 1);
    assert_at(0, 2, "w2:1");
    assert_at(0, 1, "");
    assert_int_equal(digest(0), digest(1));
    assert_int_equal(nodes[0].says, 0);
}

static void test_conflict_of_flags_and_journal_is_said(void **state)
{
    boot_all(1);
    move(0, 1, "x:1");
    settle();
    boot(0, 1, 2);
    assert_int_equal(nodes[0].says, 1);
    assert_string_equal(nodes[0].said,
                        "/job:worker/task:1 is w1:1 in the flags, but the "
                        "journal has it at x:1, which is newer and holds");
    drop(0, 1, NULL);
    settle();
    boot(0, 1, 2);
    assert_int_equal(nodes[0].says, 2);
    assert_non_null(strstr(nodes[0].said, "the journal has it removed"));
    assert_at(0, 1, "");
}

static void test_longer_list_that_agrees_is_not_said(void **state)
{
    boot_all(1);
    add(0, 2, "w2:1");
    settle();
    boot(0, 1, 3);
    assert_int_equal(nodes[0].says, 0);
    assert_at(0, 2, "w2:1");
}

static void test_versions_go_on_after_a_restart(void **state)
{
    boot_all(1);
    add(0, 2, "a:1");
    settle();
    boot(0, 1, 2);
    call = (struct call){ 0 };
    move(0, 2, "b:1");
    settle();
    assert_ok();
    assert_at(0, 2, "b:1");
}

static void test_journal_does_not_say_who_is_a_ps(void **state)
{
    members_merge(&nodes[0].disk, &(struct member){ .job = "ps",
                                                    .task = 0,
                                                    .address = "q:1",
                                                    .version = { 2, 1 } });
    boot_all(1);
    assert_string_equal(
        members_get(membership_table(nodes[0].ms), "ps", 0)->address, "p0:1");
}

static void test_late_ends_are_ignored(void **state)
{
    struct status st = STATUS_INIT;

    boot_all(1);
    membership_written(nodes[0].ms, 77, &st);
    membership_sent(nodes[0].ms, 78, &(struct membership_msg){ 0 }, &st);
    assert_int_equal(call.answers, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_join_gives_the_next_index),
        T(test_join_again_gives_the_same_index),
        T(test_join_of_a_worker_of_the_flags_gives_its_index),
        T(test_joins_at_once_get_different_indices),
        T(test_joins_of_one_address_at_once_get_one_index),
        T(test_index_of_one_that_was_removed_is_not_given),
        T(test_join_is_for_ps_0),
        T(test_join_of_another_jobs_address_is_refused),
        T(test_join_needs_every_ps),
        T(test_join_that_failed_half_way_gets_its_index_later),
        T(test_join_learns_what_only_another_ps_knows),
        T(test_join_never_takes_the_index_of_a_call),
        T(test_join_waits_for_a_call_that_is_being_written),
        T(test_join_asks_a_ps_that_was_foreign),
        T(test_join_does_without_a_foreign_ps),
        T(test_join_finds_no_number_left),
        T(test_restart_brings_the_journal_back),
        T(test_conflict_of_flags_and_journal_is_said),
        T(test_longer_list_that_agrees_is_not_said),
        T(test_versions_go_on_after_a_restart),
        T(test_journal_does_not_say_who_is_a_ps),
        T(test_late_ends_are_ignored),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
