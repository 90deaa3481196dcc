/* The table: who wins, what the digest sees, and what is no member at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cluster/members.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"

static struct members t;
static struct status st;

static int setup(void **state)
{
    members_init(&t);
    status_clear(&st);
    return 0;
}

static int teardown(void **state)
{
    members_done(&t);
    return 0;
}

static struct member entry(int task, const char *address, uint64_t epoch,
                           uint64_t origin)
{
    return (struct member){ .job = "worker",
                            .task = task,
                            .address = address,
                            .version = { epoch, origin },
                            .since_ms = epoch * 1000 };
}

static bool merge(struct members *into, int task, const char *address,
                  uint64_t epoch, uint64_t origin)
{
    struct member m = entry(task, address, epoch, origin);
    bool wants = members_wants(into, &m);

    assert_int_equal(members_merge(into, &m), wants);
    return wants;
}

static const char *address_of(int task)
{
    return members_get(&t, "worker", task)->address;
}

static void test_later_entry_replaces(void **state)
{
    assert_true(merge(&t, 2, "a:1", 2, 7));
    assert_true(merge(&t, 2, "b:1", 3, 5));
    assert_string_equal(address_of(2), "b:1");
    assert_int_equal(t.epoch, 3);
    assert_int_equal(t.present, 1);
    assert_null(members_at(&t, "a:1"));
    assert_int_equal(members_at(&t, "b:1")->task, 2);
}

static void test_earlier_entry_is_refused(void **state)
{
    merge(&t, 2, "b:1", 3, 5);
    assert_false(merge(&t, 2, "a:1", 2, 7));
    assert_false(merge(&t, 2, "a:1", 3, 4));
    assert_false(merge(&t, 2, NULL, 3, 4));
    assert_string_equal(address_of(2), "b:1");
    assert_int_equal(t.revision, 1);
}

static void test_origin_decides_between_equal_epochs(void **state)
{
    merge(&t, 2, "a:1", 3, 5);
    assert_true(merge(&t, 2, "b:1", 3, 6));
    assert_string_equal(address_of(2), "b:1");
}

static void test_same_entry_again_changes_nothing(void **state)
{
    uint64_t digest;

    merge(&t, 2, "a:1", 3, 5);
    digest = t.digest;
    assert_false(merge(&t, 2, "a:1", 3, 5));
    assert_int_equal(t.revision, 1);
    assert_int_equal(t.digest, digest);
}

static void test_two_contents_of_one_version_have_one_end(void **state)
{
    struct members other;

    members_init(&other);
    merge(&t, 2, "a:1", 3, 5);
    merge(&t, 2, "b:1", 3, 5);
    merge(&t, 2, NULL, 3, 5);
    merge(&other, 2, NULL, 3, 5);
    merge(&other, 2, "b:1", 3, 5);
    merge(&other, 2, "a:1", 3, 5);
    assert_string_equal(address_of(2), "b:1");
    assert_string_equal(members_get(&other, "worker", 2)->address, "b:1");
    assert_int_equal(t.digest, other.digest);
    members_done(&other);
}

static void test_removal_stays_and_holds_back_old_messages(void **state)
{
    merge(&t, 2, "a:1", 2, 5);
    assert_true(merge(&t, 2, NULL, 3, 5));
    assert_false(merge(&t, 2, "a:1", 2, 5));
    assert_non_null(members_get(&t, "worker", 2));
    assert_null(address_of(2));
    assert_null(members_at(&t, "a:1"));
    assert_int_equal(t.present, 0);
    assert_true(merge(&t, 2, "a:1", 4, 5));
    assert_int_equal(t.present, 1);
}

static void test_flags_fill_gaps_and_replace_nothing(void **state)
{
    assert_true(merge(&t, 0, "a:1", MEMBER_EPOCH_FLAGS, 0));
    assert_false(merge(&t, 0, "b:1", MEMBER_EPOCH_FLAGS, 9));
    assert_string_equal(address_of(0), "a:1");
    assert_true(merge(&t, 0, "b:1", MEMBER_EPOCH_GIVEN, 5));
    assert_false(merge(&t, 0, "a:1", MEMBER_EPOCH_FLAGS, 0));
    merge(&t, 1, NULL, 3, 5);
    assert_false(merge(&t, 1, "a:1", MEMBER_EPOCH_FLAGS, 0));
    assert_null(address_of(1));
}

static void test_revision_counts_changes(void **state)
{
    merge(&t, 0, "a:1", 2, 1);
    merge(&t, 1, "b:1", 3, 1);
    merge(&t, 0, "c:1", 4, 1);
    merge(&t, 0, "a:1", 2, 1);
    assert_int_equal(t.revision, 3);
    assert_int_equal(members_get(&t, "worker", 0)->revision, 3);
    assert_int_equal(members_get(&t, "worker", 1)->revision, 2);
}

static void test_texts_are_copied(void **state)
{
    char job[] = "worker", address[] = "a:1";
    struct member m = entry(0, address, 2, 1);

    m.job = job;
    members_merge(&t, &m);
    memset(job, 'x', 3);
    memset(address, 'x', 1);
    assert_string_equal(address_of(0), "a:1");
    assert_string_equal(members_at(&t, "a:1")->job, "worker");
}

static void test_walk_goes_by_number(void **state)
{
    struct members_walk at = { 0 };
    const int order[] = { 7, 0, 3, 900, 5 }, sorted[] = { 0, 3, 5, 7, 900 };
    const struct member *m;

    for (size_t i = 0; i < COUNT(order); i++)
        merge(&t, order[i], order[i] == 3 ? NULL : "a:1", 2 + i, 1);
    for (size_t i = 0; i < COUNT(sorted); i++) {
        m = members_next(&t, &at);
        assert_int_equal(m->task, sorted[i]);
    }
    assert_null(members_next(&t, &at));
    assert_null(members_next(&t, &at));
}

static void test_next_task_is_never_one_that_was_used(void **state)
{
    assert_int_equal(members_next_task(&t, "worker"), 0);
    merge(&t, 3, "a:1", 2, 1);
    assert_int_equal(members_next_task(&t, "worker"), 4);
    merge(&t, 3, NULL, 3, 1);
    assert_int_equal(members_next_task(&t, "worker"), 4);
    assert_int_equal(members_next_task(&t, "chief"), 0);
}

static void test_unknown_is_not_found(void **state)
{
    assert_null(members_get(&t, "worker", 0));
    merge(&t, 3, "a:1", 2, 1);
    assert_null(members_get(&t, "worker", 2));
    assert_null(members_get(&t, "worker", 4));
    assert_null(members_get(&t, "chief", 3));
    assert_null(members_at(&t, "b:1"));
}

/* Two ps that did not know of each other may give one address to two tasks. */
static void test_one_address_of_several_is_found_as_long_as_one_has_it(void **s)
{
    merge(&t, 1, "a:1", 2, 1);
    merge(&t, 2, "a:1", 4, 1);
    merge(&t, 3, "a:1", 3, 1);
    assert_int_equal(members_at(&t, "a:1")->task, 2);
    merge(&t, 2, "b:1", 5, 1);
    assert_int_equal(members_at(&t, "a:1")->task, 3);
    merge(&t, 1, NULL, 6, 1);
    assert_int_equal(members_at(&t, "a:1")->task, 3);
    merge(&t, 3, NULL, 7, 1);
    assert_null(members_at(&t, "a:1"));
    assert_int_equal(t.present, 1);
}

static void test_parameter_servers_are_not_in_the_digest(void **state)
{
    struct member ps = { .job = MEMBER_PS_JOB, .task = 0, .address = "p:1" };

    merge(&t, 0, "a:1", MEMBER_EPOCH_FLAGS, 0);
    assert_int_not_equal(t.digest, 0);
    members_merge(&t, &ps);
    members_merge(&t, &(struct member){
                          .job = MEMBER_PS_JOB, .task = 1, .address = "p:2" });
    members_done(&t);
    members_init(&t);
    members_merge(&t, &ps);
    assert_int_equal(t.digest, 0);
}

static void test_digest_knows_flags_by_task_only(void **state)
{
    struct members other;

    members_init(&other);
    merge(&t, 0, "a:1", MEMBER_EPOCH_FLAGS, 0);
    merge(&other, 0, "alias:1", MEMBER_EPOCH_FLAGS, 0);
    assert_int_equal(t.digest, other.digest);
    merge(&other, 1, "b:1", MEMBER_EPOCH_FLAGS, 0);
    assert_int_not_equal(t.digest, other.digest);
    members_done(&other);
}

/* Small numbers all of them, as real tables have: nothing may cancel out. */
static void test_digest_tells_traded_entries_apart(void **state)
{
    struct members other;

    for (uint64_t e = 2; e < 40; e++)
        for (int task = 1; task < 40; task++) {
            members_init(&other);
            merge(&t, 0, "a:1", e, 1);
            merge(&t, task, "a:1", e + 1, 1);
            merge(&other, 0, "a:1", e + 1, 1);
            merge(&other, task, "a:1", e, 1);
            assert_int_not_equal(t.digest, other.digest);
            members_done(&other);
            members_done(&t);
            members_init(&t);
        }
}

static void test_digest_sees_every_part_of_an_entry(void **state)
{
    const struct member all[] = {
        entry(1, "a:1", 3, 1),
        entry(2, "a:1", 3, 1),
        entry(1, "b:1", 3, 1),
        entry(1, "a:1", 4, 1),
        entry(1, "a:1", 3, 2),
        entry(1, NULL, 3, 1),
        { .job = "chief", .task = 1, .address = "a:1", .version = { 3, 1 } },
    };
    uint64_t digests[COUNT(all)];

    for (size_t i = 0; i < COUNT(all); i++) {
        members_merge(&t, &all[i]);
        digests[i] = t.digest;
        members_done(&t);
        members_init(&t);
        for (size_t k = 0; k < i; k++)
            assert_int_not_equal(digests[i], digests[k]);
    }
}

#define SET 24

/* Any order, any repetition: the same table (invariants 1 to 5). */
static void test_order_and_repetition_do_not_matter(void **state)
{
    uint64_t seed = 1;
    struct members other;
    struct member set[SET];
    char addresses[SET][16];

    for (int round = 0; round < 300; round++) {
        members_init(&other);
        for (int i = 0; i < SET; i++) {
            snprintf(addresses[i], sizeof(addresses[i]), "a:%d",
                     1 + (int)(rng_next(&seed) % 6));
            set[i] = entry((int)(rng_next(&seed) % 5),
                           rng_next(&seed) % 4 ? addresses[i] : NULL,
                           1 + rng_next(&seed) % 9, 1 + (uint64_t)i);
            members_merge(&t, &set[i]);
        }
        for (int i = 0; i < SET * 12; i++)
            members_merge(&other, &set[rng_next(&seed) % SET]);
        for (int i = SET; i--;)
            members_merge(&other, &set[i]);
        assert_int_equal(t.digest, other.digest);
        assert_int_equal(t.present, other.present);
        assert_int_equal(t.epoch, other.epoch);
        for (int i = 0; i < SET; i++) {
            const struct member *a, *b;

            a = members_get(&t, "worker", set[i].task);
            b = members_get(&other, "worker", set[i].task);
            assert_int_equal(member_version_compare(a->version, b->version), 0);
            assert_true(member_version_compare(a->version, set[i].version) >=
                        0);
            a = members_at(&t, addresses[i]);
            b = members_at(&other, addresses[i]);
            assert_int_equal(a ? a->task : -1, b ? b->task : -1);
        }
        members_done(&other);
        members_done(&t);
        members_init(&t);
    }
}

static void assert_refused(struct member m, const char *part)
{
    status_clear(&st);
    assert_int_equal(member_check(&m, &st), MST_INVALID_ARGUMENT);
    if (!strstr(st.msg, part))
        fail_msg("\"%s\" is not in: %s", part, st.msg);
}

static void test_what_cannot_be_a_member_is_refused(void **state)
{
    char *address = mem_array(1, MEMBER_ADDRESS_MAX + 8);
    char *job = mem_array(1, MEMBER_JOB_MAX + 2);
    struct member m = entry(1, "a:1", 2, 1);

    m.job = "9";
    assert_refused(m, "no name for a job");
    m.job = "";
    assert_refused(m, "no name for a job");
    memset(job, 'j', MEMBER_JOB_MAX + 1);
    m.job = job;
    assert_refused(m, "at most 255 letters, not 256");
    assert_refused(entry(-1, "a:1", 2, 1), "from 0 to 999999, not -1");
    assert_refused(entry(1000000, "a:1", 2, 1), "from 0 to 999999");
    assert_refused(entry(1, "a", 2, 1), "no port");
    assert_refused(entry(1, "a b:1", 2, 1), "no host name");
    assert_refused(entry(1, "a\n:1", 2, 1), "no host name");
    assert_refused(entry(1, "", 2, 1), "");
    assert_refused(entry(1, "a:0", 2, 1), "port 0");
    assert_refused(entry(1, "a:1", MEMBER_EPOCH_MAX + 1, 1), "version");
    memset(address, 'h', MEMBER_ADDRESS_MAX);
    strcpy(address + MEMBER_ADDRESS_MAX - 1, ":1");
    assert_refused(entry(1, address, 2, 1), "at most 320 letters, not 321");
    mem_free(address);
    mem_free(job);
}

static void test_what_can_be_a_member_is_taken(void **state)
{
    struct member m = entry(MEMBER_TASK_MAX, "[::1]:1", MEMBER_EPOCH_MAX, 0);

    assert_int_equal(member_check(&m, &st), 0);
    m = entry(0, NULL, 0, 0);
    assert_int_equal(member_check(&m, &st), 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_later_entry_replaces),
        T(test_earlier_entry_is_refused),
        T(test_origin_decides_between_equal_epochs),
        T(test_same_entry_again_changes_nothing),
        T(test_two_contents_of_one_version_have_one_end),
        T(test_removal_stays_and_holds_back_old_messages),
        T(test_flags_fill_gaps_and_replace_nothing),
        T(test_revision_counts_changes),
        T(test_texts_are_copied),
        T(test_walk_goes_by_number),
        T(test_next_task_is_never_one_that_was_used),
        T(test_unknown_is_not_found),
        T(test_one_address_of_several_is_found_as_long_as_one_has_it),
        T(test_parameter_servers_are_not_in_the_digest),
        T(test_digest_knows_flags_by_task_only),
        T(test_digest_tells_traded_entries_apart),
        T(test_digest_sees_every_part_of_an_entry),
        T(test_order_and_repetition_do_not_matter),
        T(test_what_cannot_be_a_member_is_refused),
        T(test_what_can_be_a_member_is_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
