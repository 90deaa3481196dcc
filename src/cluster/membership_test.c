/* The state machine, call by call: adding, removing, and what is told. */
#include "cluster/membership_test.h"

/* ---- one ps ---- */

static void test_add_is_written_then_merged_then_answered(void **state)
{
    boot_all(1);
    add(0, 2, "w2:1");
    assert_int_equal(call.answers, 0);
    assert_null(at(0, 2));
    write_end(&nodes[0], write_of(&nodes[0]));
    assert_ok();
    assert_true(call.changed);
    assert_int_equal(call.task, 2);
    assert_string_equal(call.address, "w2:1");
    assert_at(0, 2, "w2:1");
    assert_int_equal(nodes[0].changes, 1);
    assert_int_equal(
        members_get(membership_table(nodes[0].ms), "worker", 2)->since_ms,
        5000);
}

static void test_same_add_again_changes_nothing(void **state)
{
    boot_all(1);
    add(0, 2, "w2:1");
    settle();
    call = (struct call){ 0 };
    add(0, 2, "w2:1");
    assert_null(write_of(&nodes[0]));
    assert_ok();
    assert_false(call.changed);
    assert_int_equal(nodes[0].changes, 1);
}

/* What the flags say is not in the journal, and is worth writing down. */
static void test_add_of_what_the_flags_say_is_journalled(void **state)
{
    boot_all(1);
    add(0, 1, "w1:1");
    settle();
    assert_ok();
    assert_non_null(members_get(&nodes[0].disk, "worker", 1));
}

static void test_another_address_takes_replace(void **state)
{
    boot_all(1);
    add(0, 1, "x:1");
    assert_failed(MST_ALREADY_EXISTS, "/job:worker/task:1 is at w1:1");
    assert_at(0, 1, "w1:1");
    move(0, 1, "x:1");
    settle();
    assert_ok();
    assert_at(0, 1, "x:1");
}

static void test_address_of_another_task_is_refused(void **state)
{
    boot_all(1);
    move(0, 2, "w1:1");
    assert_failed(MST_ALREADY_EXISTS, "w1:1 is the address of /job:worker/"
                                      "task:1");
    move(0, 2, "p0:1");
    assert_failed(MST_ALREADY_EXISTS, "p0:1 is the address of /job:ps/task:0");
    assert_null(write_of(&nodes[0]));
}

static void test_nonsense_is_refused(void **state)
{
    boot_all(1);
    add(0, -1, "x:1");
    assert_failed(MST_INVALID_ARGUMENT, "from 0 to 999999, not -1");
    add(0, 1000000, "x:1");
    assert_failed(MST_INVALID_ARGUMENT, "999999");
    add(0, 2, "x");
    assert_failed(MST_INVALID_ARGUMENT, "no port");
    add(0, 2, "x:0");
    assert_failed(MST_INVALID_ARGUMENT, "port 0");
    add(0, 2, NULL);
    assert_failed(MST_INVALID_ARGUMENT, "an address is needed");
    join(0, NULL, &call);
    assert_failed(MST_INVALID_ARGUMENT, "an address is needed");
    join(0, "nonsense", &call);
    assert_failed(MST_INVALID_ARGUMENT, "no port");
    membership_add(nodes[0].ms, &call, "not a job", 1, "x:1", false, 0);
    assert_failed(MST_INVALID_ARGUMENT, "no name for a job");
    membership_add(nodes[0].ms, &call, "ps", 1, "x:1", false, 0);
    assert_failed(MST_INVALID_ARGUMENT, "do not change while it runs");
    membership_remove(nodes[0].ms, &call, "ps", 0, NULL, 0);
    assert_failed(MST_INVALID_ARGUMENT, "do not change while it runs");
    drop(0, 1, "nonsense");
    assert_failed(MST_INVALID_ARGUMENT, "no port");
    assert_null(write_of(&nodes[0]));
}

static void test_removal_leaves_a_mark(void **state)
{
    boot_all(1);
    drop(0, 1, NULL);
    settle();
    assert_ok();
    assert_true(call.changed);
    assert_string_equal(call.address, "");
    assert_at(0, 1, "");
    call = (struct call){ 0 };
    drop(0, 1, NULL);
    assert_ok();
    assert_false(call.changed);
}

static void test_removal_of_what_is_not_so_is_refused(void **state)
{
    boot_all(1);
    drop(0, 7, NULL);
    assert_failed(MST_NOT_FOUND, "there is no /job:worker/task:7");
    drop(0, 1, "x:1");
    assert_failed(MST_FAILED_PRECONDITION, "is at w1:1, not at x:1");
    drop(0, 1, "w1:1");
    settle();
    assert_ok();
}

static void test_failed_write_changes_nothing(void **state)
{
    boot_all(2);
    nodes[0].full = true;
    add(0, 2, "w2:1");
    settle();
    assert_failed(MST_RESOURCE_EXHAUSTED, "no space left");
    assert_null(at(0, 2));
    assert_null(at(1, 2));
    join(0, "w2:1", &call);
    settle();
    assert_failed(MST_RESOURCE_EXHAUSTED, "no space left");
    nodes[0].full = false;
    tick_all();
    assert_null(at(0, 2));
    assert_null(at(1, 2));
    add(0, 2, "w2:1");
    settle();
    assert_ok();
    assert_at(1, 2, "w2:1");
}

static void test_changes_of_one_task_come_one_after_the_other(void **state)
{
    boot_all(1);
    add(0, 2, "a:1");
    membership_add(nodes[0].ms, &other, "worker", 2, "b:1", false, 0);
    assert_int_equal(write_of(&nodes[0])->members.count, 1);
    write_end(&nodes[0], write_of(&nodes[0]));
    assert_ok();
    assert_answer(&other, MST_ALREADY_EXISTS, "is at a:1");
    assert_null(write_of(&nodes[0]));
}

static void take_over(void *who, const char *address,
                      struct member_version gone)
{
    membership_take_over(nodes[0].ms, who, "worker", 1, address, gone, 0);
}

static struct member_version version_of_1(void)
{
    return members_get(membership_table(nodes[0].ms), "worker", 1)->version;
}

/* Both have seen that it is gone; the second has not seen the first. */
static void test_who_is_gone_is_replaced_by_one(void **state)
{
    struct member_version gone;

    boot_all(2);
    gone = version_of_1();
    take_over(&call, "a:1", gone);
    take_over(&other, "b:1", gone);
    settle();
    assert_ok();
    assert_true(call.changed);
    assert_answer(&other, MST_ALREADY_EXISTS, "is at a:1");
    assert_at(0, 1, "a:1");
    assert_at(1, 1, "a:1");
    /* Whose wish came true is told so, whoever did it. */
    other = (struct call){ 0 };
    take_over(&other, "a:1", gone);
    settle();
    assert_answer(&other, MST_OK, "");
    assert_false(other.changed);
    /* And when that one is gone, too. */
    other = (struct call){ 0 };
    take_over(&other, "b:1", version_of_1());
    settle();
    assert_answer(&other, MST_OK, "");
    assert_at(1, 1, "b:1");
}

static void test_changes_of_one_address_come_one_after_the_other(void **state)
{
    boot_all(1);
    add(0, 2, "a:1");
    membership_add(nodes[0].ms, &other, "worker", 3, "a:1", true, 0);
    settle();
    assert_ok();
    assert_answer(&other, MST_ALREADY_EXISTS, "address of /job:worker/task:2");
}

static void test_what_is_under_way_is_forgotten_on_free(void **state)
{
    boot_all(2);
    add(0, 2, "a:1");
    membership_add(nodes[0].ms, &other, "worker", 2, "b:1", false, 0);
    add(1, 2, "a:1");
    write_end(&nodes[1], write_of(&nodes[1]));
    packet_arrive(packet_of(1, 0));
    join(0, "x:1", &other);
    membership_free(nodes[0].ms);
    nodes[0].ms = NULL;
    assert_int_equal(call.answers + other.answers, 0);
}

/* ---- several ---- */

static void test_add_reaches_every_ps(void **state)
{
    boot_all(3);
    add(1, 2, "w2:1");
    settle();
    assert_ok();
    assert_int_equal(call.reached, 1 << 0 | 1 << 2);
    assert_int_equal(call.missed, 0);
    for (int i = 0; i < 3; i++) {
        assert_at(i, 2, "w2:1");
        assert_non_null(members_get(&nodes[i].disk, "worker", 2));
        assert_int_equal(digest(i), digest(0));
    }
}

static void test_ps_that_was_down_gets_it_at_a_tick(void **state)
{
    boot_all(3);
    nodes[2].down = true;
    add(0, 2, "w2:1");
    settle();
    assert_ok();
    assert_int_equal(call.reached, 1 << 1);
    assert_int_equal(call.missed, 1 << 2);
    assert_null(at(2, 2));
    nodes[2].down = false;
    membership_tick(nodes[2].ms);
    settle();
    assert_at(2, 2, "w2:1");
    assert_int_equal(digest(2), digest(0));
}

static void test_tick_tells_what_only_the_asker_has(void **state)
{
    boot_all(2);
    nodes[1].down = true;
    add(0, 2, "w2:1");
    settle();
    nodes[1].down = false;
    membership_tick(nodes[0].ms);
    settle();
    assert_at(1, 2, "w2:1");
}

static void test_equal_tables_exchange_nothing_but_digests(void **state)
{
    boot_all(2);
    membership_tick(nodes[0].ms);
    packet_arrive(packet_of(0, 1));
    assert_int_equal(packet_of(0, 1)->msg.count, 0);
    packet_return(packet_of(0, 1));
    assert_null(packet_of(0, 1));
}

/* One that names more ps than the others do is no reason to talk for ever. */
static void test_different_lists_of_ps_come_to_rest(void **state)
{
    boot(0, 2, 2);
    boot(1, 3, 2);
    nodes[2].down = true;
    tick_all();
    assert_int_equal(digest(0), digest(1));
}

static void test_question_is_not_asked_twice_at_once(void **state)
{
    boot_all(2);
    membership_tick(nodes[0].ms);
    membership_tick(nodes[0].ms);
    packet_arrive(packet_of(0, 1));
    packet_return(packet_of(0, 1));
    assert_null(packet_of(0, 1));
}

static void test_told_entry_is_on_disk_before_table_and_answer(void **state)
{
    struct packet *p;

    boot_all(2);
    add(0, 2, "w2:1");
    write_end(&nodes[0], write_of(&nodes[0]));
    p = packet_of(0, 1);
    packet_arrive(p);
    assert_false(p->answered);
    assert_null(at(1, 2));
    write_end(&nodes[1], write_of(&nodes[1]));
    assert_true(p->answered);
    assert_at(1, 2, "w2:1");
    assert_int_equal(call.answers, 0);
    packet_return(p);
    assert_ok();
}

/* The second of two equal messages must not be answered by the first's being
 * in memory. */
static void test_duplicate_is_answered_after_the_disk_too(void **state)
{
    struct membership_msg msg;
    struct packet *p, twin = { 0 };

    boot_all(2);
    add(0, 2, "w2:1");
    write_end(&nodes[0], write_of(&nodes[0]));
    p = packet_of(0, 1);
    msg = p->msg;
    packet_arrive(p);
    membership_exchange(nodes[1].ms, &twin, &msg);
    assert_false(twin.answered);
    nodes[1].full = true;
    settle();
    assert_true(twin.answered);
    assert_int_equal(twin.st.code, MST_RESOURCE_EXHAUSTED);
    assert_int_equal(call.missed, 1 << 1);
    assert_null(at(1, 2));
}

static void test_ps_that_cannot_write_is_missed_and_repaired(void **state)
{
    boot_all(2);
    nodes[1].full = true;
    add(0, 2, "w2:1");
    settle();
    assert_ok();
    assert_int_equal(call.missed, 1 << 1);
    membership_tick(nodes[1].ms);
    settle();
    assert_int_equal(nodes[1].says, 1);
    assert_non_null(strstr(nodes[1].said, "could not be written here: no sp"));
    assert_null(at(1, 2));
    nodes[1].full = false;
    tick_all();
    assert_at(1, 2, "w2:1");
}

/* What a call here says is newer than whatever was heard of, kept or not. */
static void test_version_is_larger_than_any_that_was_heard_of(void **state)
{
    const struct member told = {
        .job = "worker", .task = 2, .address = "x:1", .version = { 9, 1 }
    };
    struct packet p = { 0 };

    boot_all(1);
    nodes[0].full = true;
    membership_exchange(
        nodes[0].ms, &p,
        &(struct membership_msg){ .members = &told, .count = 1 });
    settle();
    assert_int_equal(p.st.code, MST_RESOURCE_EXHAUSTED);
    nodes[0].full = false;
    add(0, 2, "y:1");
    settle();
    assert_ok();
    assert_int_equal(
        members_get(membership_table(nodes[0].ms), "worker", 2)->version.epoch,
        10);
}

static void test_bad_entries_of_a_peer_are_refused(void **state)
{
    const struct member bad[] = {
        { .job = "worker", .task = -1, .address = "x:1", .version = { 2, 1 } },
        { .job = "worker", .task = 5, .address = "x", .version = { 2, 1 } },
        { .job = "ps", .task = 1, .address = "x:1", .version = { 2, 1 } },
        { .job = "worker", .task = 6, .address = "x:1", .version = { 2, 1 } },
    };
    struct packet p = { 0 };

    boot_all(1);
    membership_exchange(nodes[0].ms, &p,
                        &(struct membership_msg){ .members = bad, .count = 4 });
    settle();
    assert_true(p.answered);
    assert_int_equal(p.st.code, MST_INVALID_ARGUMENT);
    assert_null(at(0, 5));
    assert_at(0, 6, "x:1");
    assert_null(members_get(membership_table(nodes[0].ms), "ps", 1));
}

static void test_flags_of_others_fill_gaps(void **state)
{
    boot(0, 2, 2);
    boot(1, 2, 3);
    membership_tick(nodes[0].ms);
    settle();
    assert_at(0, 2, "w2:1");
    assert_null(members_get(&nodes[0].disk, "worker", 2));
    assert_int_equal(digest(0), digest(1));
}

/* A task that keeps no list has it from a ps. */
static void test_what_is_learnt_is_not_written(void **state)
{
    const struct member told[] = {
        { .job = "worker", .task = 2, .address = "x:1", .version = { 3, 1 } },
        { .job = "ps", .task = 0, .address = "x:1", .version = { 3, 1 } },
        { .job = "worker", .task = -1, .address = "y:1", .version = { 3, 1 } },
    };

    boot_all(1);
    membership_learn(nodes[0].ms, told, 3);
    assert_null(write_of(&nodes[0]));
    assert_at(0, 2, "x:1");
    assert_int_equal(nodes[0].changes, 1);
    membership_learn(nodes[0].ms, told, 1);
    assert_int_equal(nodes[0].changes, 1);
}

/* Two calls for one task on two ps at once: one of them succeeds. */
static void test_one_of_two_calls_at_once_is_aborted(void **state)
{
    struct packet *p;

    boot_all(2);
    add(0, 2, "a:1");
    membership_add(nodes[1].ms, &other, "worker", 2, "b:1", false, 0);
    write_end(&nodes[0], write_of(&nodes[0]));
    p = packet_of(0, 1);
    packet_arrive(p);
    /* What ps 0 told is on ps 1's disk; its own call is not. */
    for (struct disk_write *w = nodes[1].writes; w->used; w++)
        if (!strcmp(w->members.m[0].address, "a:1"))
            write_end(&nodes[1], w);
    assert_false(p->answered);
    settle();
    assert_failed(MST_ABORTED, "was set to b:1 by another call");
    assert_answer(&other, MST_OK, "");
    assert_at(0, 2, "b:1");
    assert_at(1, 2, "b:1");
}

static void test_same_call_on_every_ps_at_once_is_fine(void **state)
{
    boot_all(2);
    add(0, 2, "a:1");
    membership_add(nodes[1].ms, &other, "worker", 2, "a:1", false, 0);
    settle();
    assert_ok();
    assert_answer(&other, MST_OK, "");
    assert_int_equal(digest(0), digest(1));
}

static void test_newer_entry_that_cannot_be_written_fails_the_call(void **state)
{
    boot_all(2);
    nodes[0].down = true;
    membership_add(nodes[1].ms, &other, "worker", 2, "b:1", false, 0);
    membership_add(nodes[1].ms, &other, "worker", 3, "c:1", false, 0);
    settle();
    nodes[0].down = false;
    add(0, 3, "a:1");
    write_end(&nodes[0], write_of(&nodes[0]));
    nodes[0].full = true;
    settle();
    assert_failed(MST_RESOURCE_EXHAUSTED, "what another ps told could not");
}

static void test_partition_ends_with_the_newer_entry(void **state)
{
    boot_all(2);
    nodes[1].down = true;
    add(0, 2, "a:1");
    settle();
    nodes[1].down = false;
    nodes[0].down = true;
    membership_add(nodes[1].ms, &other, "worker", 2, "b:1", false, 0);
    settle();
    nodes[0].down = false;
    assert_ok();
    assert_answer(&other, MST_OK, "");
    tick_all();
    assert_at(0, 2, "b:1");
    assert_at(1, 2, "b:1");
}

static void test_foreign_ps_is_neither_reached_nor_missed(void **state)
{
    boot_all(2);
    nodes[1].foreign = true;
    add(0, 2, "w2:1");
    settle();
    assert_ok();
    assert_int_equal(call.reached | call.missed, 0);
    call = (struct call){ 0 };
    add(0, 3, "w3:1");
    write_end(&nodes[0], write_of(&nodes[0]));
    assert_null(packet_of(0, 1));
    assert_ok();
}

static void test_foreign_ps_is_asked_again_after_a_while(void **state)
{
    boot_all(2);
    nodes[1].foreign = true;
    tick_all();
    nodes[1].foreign = false;
    add(0, 2, "w2:1");
    settle();
    for (int i = 0; i < 16; i++) {
        membership_tick(nodes[0].ms);
        settle();
    }
    assert_at(1, 2, "w2:1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_add_is_written_then_merged_then_answered),
        T(test_same_add_again_changes_nothing),
        T(test_add_of_what_the_flags_say_is_journalled),
        T(test_another_address_takes_replace),
        T(test_address_of_another_task_is_refused),
        T(test_nonsense_is_refused),
        T(test_removal_leaves_a_mark),
        T(test_removal_of_what_is_not_so_is_refused),
        T(test_failed_write_changes_nothing),
        T(test_changes_of_one_task_come_one_after_the_other),
        T(test_who_is_gone_is_replaced_by_one),
        T(test_changes_of_one_address_come_one_after_the_other),
        T(test_what_is_under_way_is_forgotten_on_free),
        T(test_add_reaches_every_ps),
        T(test_ps_that_was_down_gets_it_at_a_tick),
        T(test_tick_tells_what_only_the_asker_has),
        T(test_equal_tables_exchange_nothing_but_digests),
        T(test_different_lists_of_ps_come_to_rest),
        T(test_question_is_not_asked_twice_at_once),
        T(test_told_entry_is_on_disk_before_table_and_answer),
        T(test_duplicate_is_answered_after_the_disk_too),
        T(test_ps_that_cannot_write_is_missed_and_repaired),
        T(test_version_is_larger_than_any_that_was_heard_of),
        T(test_bad_entries_of_a_peer_are_refused),
        T(test_flags_of_others_fill_gaps),
        T(test_what_is_learnt_is_not_written),
        T(test_one_of_two_calls_at_once_is_aborted),
        T(test_same_call_on_every_ps_at_once_is_fine),
        T(test_newer_entry_that_cannot_be_written_fails_the_call),
        T(test_partition_ends_with_the_newer_entry),
        T(test_foreign_ps_is_neither_reached_nor_missed),
        T(test_foreign_ps_is_asked_again_after_a_while),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
