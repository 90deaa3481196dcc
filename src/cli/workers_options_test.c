/* Whole command lines of `muster add-worker` and `muster remove-worker`. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/workers_options.h"

#include <string.h>

#include "base/mem.h"

static struct workers_options got;
static struct status st;

static enum mst_code parse(bool adding, const char *line)
{
    char *words[64], *copy = mem_str(line), *rest = copy, *word;
    enum mst_code code;
    int n = 0;

    workers_options_done(&got);
    status_clear(&st);
    while ((word = strsep(&rest, " ")))
        if (*word)
            words[n++] = word;
    code = workers_options_parse(&got, adding, n, words, &st);
    mem_free(copy);
    return code;
}

static int teardown(void **state)
{
    workers_options_done(&got);
    return 0;
}

static void assert_add(const char *line, int targets)
{
    if (parse(true, line))
        fail_msg("%s: %s", line, st.msg);
    assert_int_equal(got.targets.count, targets);
    assert_string_equal(got.targets.at[0], "ps0:2222");
    if (targets > 1)
        assert_string_equal(got.targets.at[1], "ps1:2222");
    assert_int_equal(got.task, 2);
    assert_string_equal(got.address, "w2:2222");
    assert_string_equal(got.job_name, "worker");
    assert_false(got.replace);
    assert_int_equal(got.timeout_s, 10);
}

static void test_every_way_to_say_whom_is_taken(void **state)
{
    assert_add("--ps_hosts=ps0:2222,ps1:2222 2 w2:2222", 2);
    assert_add("2 w2:2222 --ps_hosts=ps0:2222,ps1:2222", 2);
    assert_add("--ps_hosts=grpc://ps0:2222,grpc://ps1:2222 2 w2:2222", 2);
    assert_add("--ps_hosts = ps0: 2222, ps1: 2222 2 w2: 2222", 2);
    assert_add("grpc://ps0:2222 2 w2:2222", 1);
    assert_add("grpc: //ps0:2222 2 w2: 2222", 1);
    assert_add("grpc://ps0:2222 grpc://ps1:2222 2 w2:2222", 2);
    assert_add("ps0:2222 2 w2:2222", 1);
    assert_add("ps0:2222,ps1:2222 2 w2:2222", 2);
    assert_add("--target=grpc://ps0:2222 2 w2:2222", 1);
    assert_add("--ps=ps0:2222 grpc://ps1:2222 2 w2:2222", 2);
}

static void test_removal_takes_an_index_alone(void **state)
{
    assert_int_equal(parse(false, "--ps_hosts=a:1 7 --job_name=evaluator "
                                  "--timeout=3"),
                     0);
    assert_int_equal(got.task, 7);
    assert_null(got.address);
    assert_string_equal(got.job_name, "evaluator");
    assert_int_equal(got.timeout_s, 3);
    assert_int_equal(parse(false, "grpc://a:1 7"), 0);
    assert_int_equal(parse(false, "a:1 7"), 0);
    assert_int_equal(parse(true, "--replace a:1 7 b:1"), 0);
    assert_true(got.replace);
}

static void assert_wrong(bool adding, const char *line, const char *text)
{
    assert_int_equal(parse(adding, line), MST_INVALID_ARGUMENT);
    if (!strstr(st.msg, text))
        fail_msg("%s: \"%s\" is not in: %s", line, text, st.msg);
}

static void test_mistakes_are_explained(void **state)
{
    assert_wrong(true, "", "Give the worker's index and its address");
    assert_wrong(true, "2 w2:2222", "Whom to ask?");
    assert_wrong(true, "--ps_hosts=a:1 2", "Give the worker's index and its");
    assert_wrong(true, "--ps_hosts=a:1 2 w:1 3", "Give the worker's index and");
    assert_wrong(true, "--ps_hosts=a:1 w2:2222 2", "not \"w2:2222\"");
    assert_wrong(true, "--ps_hosts=a:1 two w:1", "not \"two\"");
    assert_wrong(true, "--ps_hosts=a:1 99999999999 w:1", "not \"9999999");
    assert_wrong(true, "--ps_hosts=a 2 w:1", "no port");
    assert_wrong(false, "--ps_hosts=a:1 2 w:1", "nothing else");
    assert_wrong(false, "--ps_hosts=a:1 --replace 2", "no option --replace");
}

static void test_help_needs_nothing_else(void **state)
{
    assert_int_equal(parse(true, "--help"), 0);
    assert_true(got.help);
}

#define TEST(f) cmocka_unit_test_teardown(f, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_every_way_to_say_whom_is_taken),
        TEST(test_removal_takes_an_index_alone),
        TEST(test_mistakes_are_explained),
        TEST(test_help_needs_nothing_else),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
