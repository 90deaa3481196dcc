/* One text out of the errors of several tasks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/root_error.h"

#include <string.h>

static void add(struct root_errors *e, const char *task, enum mst_code code,
                const char *text)
{
    struct status st = STATUS_INIT;

    status_set(&st, code, "%s", text);
    root_errors_add(e, task, &st);
}

static void test_one_error_is_told_as_it_is(void **state)
{
    struct root_errors e = { 0 };
    struct status st = STATUS_INIT;

    root_errors_join(&e, &st);
    assert_int_equal(st.code, MST_OK);
    add(&e, "/job:ps/replica:0/task:1", MST_ABORTED, "gone");
    root_errors_join(&e, &st);
    assert_int_equal(st.code, MST_ABORTED);
    assert_string_equal(st.msg, "From /job:ps/replica:0/task:1:\ngone");
    root_errors_done(&e);
}

static void test_several_are_sorted_from_the_last(void **state)
{
    struct root_errors e = { 0 };
    struct status st = STATUS_INIT;

    add(&e, "/job:ps/replica:0/task:0", MST_INVALID_ARGUMENT, "a");
    add(&e, "/job:ps/replica:0/task:1", MST_ABORTED, "b");
    add(&e, "/job:ps/replica:0/task:2", MST_INVALID_ARGUMENT, "c");
    root_errors_join(&e, &st);
    assert_int_equal(st.code, MST_INVALID_ARGUMENT);
    assert_string_equal(st.msg,
                        "\n=====================\n"
                        "INVALID_ARGUMENT: From /job:ps/replica:0/task:2:\nc\n"
                        "INVALID_ARGUMENT: From /job:ps/replica:0/task:0:\na\n"
                        "ABORTED: From /job:ps/replica:0/task:1:\nb\n"
                        "=====================\n");
    root_errors_done(&e);
}

static void test_what_is_known_is_not_repeated(void **state)
{
    struct root_errors e = { 0 };

    add(&e, "/job:ps/replica:0/task:0", MST_INVALID_ARGUMENT, "a\n [[x]]");
    add(&e, "/job:ps/replica:0/task:1", MST_INVALID_ARGUMENT, "a\n [[x]]");
    assert_int_equal(e.count, 1);
    root_errors_done(&e);
}

static void test_too_long_a_text_is_cut(void **state)
{
    struct root_errors e = { 0 };
    struct status st = STATUS_INIT;
    char text[STATUS_MSG_MAX];

    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    add(&e, "/job:ps/replica:0/task:0", MST_INTERNAL, text);
    text[0] = 'y';
    add(&e, "/job:ps/replica:0/task:1", MST_INTERNAL, text);
    assert_int_equal(e.count, 2);
    root_errors_join(&e, &st);
    assert_int_equal(strlen(st.msg), STATUS_MSG_MAX - 1);
    root_errors_done(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_error_is_told_as_it_is),
        cmocka_unit_test(test_several_are_sorted_from_the_last),
        cmocka_unit_test(test_what_is_known_is_not_repeated),
        cmocka_unit_test(test_too_long_a_text_is_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
