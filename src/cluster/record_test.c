/* The journal's text: what is read back, and damage at every byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cluster/record.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/mem.h"

static struct members t;
static struct record_text text;
static struct record_report report;
static struct status st;

static int setup(void **state)
{
    members_init(&t);
    text = (struct record_text){ 0 };
    status_clear(&st);
    return 0;
}

static int teardown(void **state)
{
    members_done(&t);
    record_text_done(&text);
    return 0;
}

static void put(int task, const char *address, uint64_t epoch)
{
    record_put(&text, &(struct member){ .job = "worker",
                                        .task = task,
                                        .address = address,
                                        .version = { epoch, 0xa1b2 },
                                        .since_ms = 1763280000000 });
}

/* A line with a right checksum, whatever it says. */
static void put_raw(const char *body)
{
    char *line =
        mem_printf("%08" PRIx32 " %s\n", crc32c(0, body, strlen(body)), body);
    size_t len = strlen(line);

    text.text = mem_grow(text.text, text.len + len, 1);
    memcpy(text.text + text.len, line, len);
    text.room = text.len += len;
    mem_free(line);
}

static enum mst_code scan(void)
{
    return record_scan(text.text, text.len, &t, &report, &st);
}

/* Scans a copy that ends where it says, for sanitizers to see. */
static enum mst_code scan_part(size_t len)
{
    char *part = mem_copy(text.text, len);
    enum mst_code code;

    members_done(&t);
    members_init(&t);
    code = record_scan(part, len, &t, &report, &st);
    mem_free(part);
    return code;
}

static void assert_says(const char *part)
{
    if (!strstr(st.msg, part))
        fail_msg("\"%s\" is not in: %s", part, st.msg);
}

static void test_text_is_as_documented(void **state)
{
    record_put_head(&text);
    put(2, "w2:2222", 3);
    put(2, NULL, 4);
    assert_string_equal(
        text.text, "19062706 journal 1\n"
                   "9296615a 3 000000000000a1b2 1763280000000 add worker 2 "
                   "w2:2222\n"
                   "389c5592 4 000000000000a1b2 1763280000000 remove worker "
                   "2\n");
}

static void test_entries_come_back(void **state)
{
    const struct member *m;

    record_put_head(&text);
    put(2, "[fe80::1%25]:2222", 3);
    put(3, "w3:1", 4);
    put(3, NULL, 5);
    assert_int_equal(scan(), 0);
    assert_int_equal(report.entries, 3);
    assert_int_equal(report.damaged, 0);
    assert_int_equal(report.good, text.len);
    m = members_get(&t, "worker", 2);
    assert_string_equal(m->address, "[fe80::1%25]:2222");
    assert_int_equal(m->version.epoch, 3);
    assert_int_equal(m->version.origin, 0xa1b2);
    assert_int_equal(m->since_ms, 1763280000000);
    assert_null(members_get(&t, "worker", 3)->address);
}

static void test_largest_entry_comes_back(void **state)
{
    char job[MEMBER_JOB_MAX + 1] = { 0 };
    char address[MEMBER_ADDRESS_MAX + 1] = { 0 };
    struct member m = { .job = job,
                        .task = MEMBER_TASK_MAX,
                        .address = address,
                        .version = { MEMBER_EPOCH_MAX, UINT64_MAX },
                        .since_ms = UINT64_MAX };

    memset(job, 'j', MEMBER_JOB_MAX);
    memset(address, 'a', MEMBER_ADDRESS_MAX);
    strcpy(address + MEMBER_ADDRESS_MAX - 6, ":65535");
    assert_int_equal(member_check(&m, &st), 0);
    record_put_head(&text);
    record_put(&text, &m);
    assert_int_equal(scan(), 0);
    assert_int_equal(report.entries, 1);
    assert_string_equal(members_get(&t, job, MEMBER_TASK_MAX)->address,
                        address);
}

static void test_order_of_lines_does_not_matter(void **state)
{
    record_put_head(&text);
    put(2, "new:1", 5);
    put(2, "old:1", 3);
    assert_int_equal(scan(), 0);
    assert_int_equal(report.entries, 2);
    assert_string_equal(members_get(&t, "worker", 2)->address, "new:1");
}

static void test_whole_table_leaves_out_flags(void **state)
{
    struct members all;

    members_init(&all);
    members_merge(&all, &(struct member){ .job = "ps", .address = "p:1" });
    members_merge(&all, &(struct member){ .job = "worker", .address = "w:1" });
    members_merge(&all, &(struct member){ .job = "worker",
                                          .task = 1,
                                          .address = "w:2",
                                          .version = { 1, 2 } });
    members_merge(&all, &(struct member){
                            .job = "worker", .task = 2, .version = { 3, 2 } });
    record_put_all(&text, &all);
    members_done(&all);
    assert_int_equal(scan(), 0);
    assert_int_equal(report.entries, 2);
    assert_null(members_get(&t, "worker", 0));
    assert_string_equal(members_get(&t, "worker", 1)->address, "w:2");
}

static void test_empty_text_is_a_journal_to_be_begun(void **state)
{
    assert_int_equal(record_scan(NULL, 0, &t, &report, &st), 0);
    assert_int_equal(report.good, 0);
    assert_int_equal(report.entries, 0);
}

/* A crash leaves any beginning of what was written. */
static void test_cut_at_every_byte_keeps_the_whole_lines(void **state)
{
    size_t ends[4];

    record_put_head(&text);
    ends[0] = text.len;
    put(0, "a:1", 2);
    ends[1] = text.len;
    put(1, "b:1", 3);
    ends[2] = text.len;
    put(0, NULL, 4);
    ends[3] = text.len;
    for (size_t len = 0; len <= ends[3]; len++) {
        int whole = (len >= ends[1]) + (len >= ends[2]) + (len >= ends[3]);

        assert_int_equal(scan_part(len), 0);
        assert_int_equal(report.entries, whole);
        assert_int_equal(report.damaged, 0);
        assert_int_equal(report.good, len < ends[0] ? 0 : ends[whole]);
    }
}

/* Each byte in turn becomes something else, with what follows it or without. */
static void test_damage_at_every_byte_costs_one_line(void **state)
{
    const char other[] = { '\0', '\n', ' ', 'x', '0', '\x80' };
    size_t head, first, second;

    record_put_head(&text);
    head = text.len;
    put(0, "a:1", 2);
    first = text.len;
    put(1, "b:1", 3);
    second = text.len;
    for (size_t at = head; at < second; at++)
        for (size_t k = 0; k < COUNT(other); k++) {
            char old = text.text[at];

            if (old == other[k])
                continue;
            text.text[at] = other[k];
            assert_int_equal(scan_part(second), 0);
            text.text[at] = old;
            assert_int_equal(members_get(&t, "worker", at >= first) != NULL, 0);
            /* The end of the first line: both are one, and neither holds. */
            if (at == first - 1) {
                assert_int_equal(report.entries, 0);
                assert_int_equal(report.good, head);
            } else {
                assert_int_equal(report.entries, 1);
                assert_int_equal(report.good, at < first ? second : first);
                assert_int_equal(report.damaged != 0, at < first);
            }
        }
}

static void test_damaged_last_lines_are_the_tail(void **state)
{
    size_t good;

    record_put_head(&text);
    put(0, "a:1", 2);
    good = text.len;
    put(1, "b:1", 3);
    put(2, "c:1", 4);
    text.text[good] ^= 1;
    text.text[text.len - 2] ^= 1;
    assert_int_equal(scan(), 0);
    assert_int_equal(report.good, good);
    assert_int_equal(report.damaged, 0);
    assert_int_equal(report.entries, 1);
}

static void test_tail_of_zeros_is_cut(void **state)
{
    size_t good;

    record_put_head(&text);
    put(0, "a:1", 2);
    good = text.len;
    text.text = mem_grow(text.text, good + 4096, 1);
    memset(text.text + good, 0, 4096);
    text.text[good + 4000] = '\n';
    text.len = good + 4096;
    assert_int_equal(scan(), 0);
    assert_int_equal(report.good, good);
    assert_int_equal(report.entries, 1);
}

static void test_damage_between_good_lines_is_counted(void **state)
{
    record_put_head(&text);
    put(0, "a:1", 2);
    put_raw("");
    put_raw("nonsense");
    put(1, "b:1", 3);
    assert_int_equal(scan(), 0);
    assert_int_equal(report.entries, 2);
    assert_int_equal(report.damaged, 2);
    assert_int_equal(report.good, text.len);
}

static void test_over_long_line_is_damage(void **state)
{
    char *body = mem_array(1, 100001);

    record_put_head(&text);
    memset(body, '1', 100000);
    put_raw(body);
    body[1023] = '\0';
    put_raw(body);
    body[1024] = '\0';
    put_raw(body);
    put(1, "b:1", 3);
    mem_free(body);
    assert_int_equal(scan(), 0);
    assert_int_equal(report.entries, 1);
    assert_int_equal(report.damaged, 3);
}

/* The checksum is right, yet no writer of ours wrote it. */
static void test_line_that_says_nonsense_is_damage(void **state)
{
    const char *bodies[] = {
        "3 a1 5 add worker 2",
        "3 a1 5 add worker 2 ",
        "3 a1 5 add worker 2 a",
        "3 a1 5 add worker 2 a:0",
        "3 a1 5 add worker 2 a:1 ",
        "3 a1 5 add worker 2 a:1 b:2",
        "3 a1 5 add worker -2 a:1",
        "3 a1 5 add worker +2 a:1",
        "3 a1 5 add worker 0x2 a:1",
        "3 a1 5 add worker 1000000 a:1",
        "3 a1 5 add worker 4294967298 a:1",
        "3 a1 5 add worker 18446744073709551618 a:1",
        "3 a1 5 add 9 2 a:1",
        "3 a1 5 add  2 a:1",
        "3 a1 5  add worker 2 a:1",
        "3 a1 5 put worker 2 a:1",
        "3 a1 5 remove worker 2 a:1",
        "3 a1 5 remove worker 2 ",
        "3 a1 5 remove worker",
        "3 a1 5 remove",
        "3 a1 5",
        "3 a1 ",
        "3",
        "3 g1 5 remove worker 2",
        "3 A1 5 remove worker 2",
        "0 a1 5 remove worker 2",
        "-3 a1 5 remove worker 2",
        " 3 a1 5 remove worker 2",
        "a 1 5 remove worker 2",
        "18446744073709551616 a1 5 remove worker 2",
        "9223372036854775808 a1 5 remove worker 2",
        "3 10000000000000000 5 remove worker 2",
        "journal 1",
    };

    record_put_head(&text);
    for (size_t i = 0; i < COUNT(bodies); i++)
        put_raw(bodies[i]);
    put_raw("3 a1 5 remove worker 2");
    assert_int_equal(scan(), 0);
    assert_int_equal(report.entries, 1);
    assert_int_equal(report.damaged, COUNT(bodies));
}

static void test_another_format_is_refused(void **state)
{
    put_raw("journal 2");
    put(0, "a:1", 2);
    assert_int_equal(scan(), MST_FAILED_PRECONDITION);
    assert_says("format 2, and this program knows 1 only");
    assert_int_equal(t.revision, 0);
}

static void test_what_is_no_journal_is_refused(void **state)
{
    const char *texts[] = {
        "\n",
        "hello\n",
        "hello",
        "journal 1\n",
        "19062707 journal 1\n",
        "19062706 journal 1x",
        "19062706 journal 1x\n",
        "1x",
        "00000000000000000000000000000000000000000000",
    };

    for (size_t i = 0; i < COUNT(texts); i++) {
        status_clear(&st);
        assert_int_equal(
            record_scan(texts[i], strlen(texts[i]), &t, &report, &st),
            MST_FAILED_PRECONDITION);
        assert_says("does not begin as a journal does");
        assert_int_equal(report.good, 0);
    }
    put_raw("journal 1 ");
    put(0, "a:1", 2);
    assert_int_equal(scan(), MST_FAILED_PRECONDITION);
    assert_int_equal(t.revision, 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_text_is_as_documented),
        T(test_entries_come_back),
        T(test_largest_entry_comes_back),
        T(test_order_of_lines_does_not_matter),
        T(test_whole_table_leaves_out_flags),
        T(test_empty_text_is_a_journal_to_be_begun),
        T(test_cut_at_every_byte_keeps_the_whole_lines),
        T(test_damage_at_every_byte_costs_one_line),
        T(test_damaged_last_lines_are_the_tail),
        T(test_tail_of_zeros_is_cut),
        T(test_damage_between_good_lines_is_counted),
        T(test_over_long_line_is_damage),
        T(test_line_that_says_nonsense_is_damage),
        T(test_another_format_is_refused),
        T(test_what_is_no_journal_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
