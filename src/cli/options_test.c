/* Options as people write them, paste them, and get them wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/options.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct answers {
    char *ps, *worker, *job, *log;
    int task;
    bool quick, help;
};

#define ROW(name, kind, field, value, help)                                    \
    {                                                                          \
        name, kind, offsetof(struct answers, field), value, help               \
    }

static const struct option table[] = {
    ROW("ps_hosts", OPTION_TEXT, ps, "HOSTS", "who serves variables"),
    ROW("ps", OPTION_TEXT, ps, "HOSTS", NULL),
    ROW("worker_hosts", OPTION_TEXT, worker, "HOSTS",
        "who computes, and this text goes on for so long that it has to be "
        "broken in two or more lines, each with its indent"),
    ROW("job_name", OPTION_TEXT, job, "NAME", "which job"),
    ROW("task_index", OPTION_INT, task, "N", "which task"),
    ROW("log", OPTION_WORD, log, "warn|info", "how much to say"),
    ROW("quick", OPTION_SWITCH, quick, NULL, "no value"),
    ROW("help", OPTION_HELP, help, NULL, "this text"),
    { 0 },
};

static struct answers got;
static struct status st;

/* Splits the line at blanks, as a shell does, and parses it. */
static enum mst_code parse(const char *line)
{
    char *words[64], *copy = mem_str(line), *rest = copy, *word;
    enum mst_code code;
    int n = 0;

    while ((word = strsep(&rest, " ")))
        if (*word)
            words[n++] = word;
    code = options_parse(table, n, words, &got, &st);
    mem_free(copy);
    return code;
}

static int setup(void **state)
{
    got = (struct answers){ .task = -1 };
    status_clear(&st);
    return 0;
}

static int teardown(void **state)
{
    mem_free(got.ps);
    mem_free(got.worker);
    mem_free(got.job);
    mem_free(got.log);
    return 0;
}

static void assert_says(const char *part)
{
    if (!strstr(st.msg, part))
        fail_msg("\"%s\" is not in: %s", part, st.msg);
}

static void test_plain_forms_are_taken(void **state)
{
    assert_int_equal(parse("--ps_hosts=a:1,b:2 --job_name ps --task_index=7 "
                           "-worker-hosts c:3"),
                     0);
    assert_string_equal(got.ps, "a:1,b:2");
    assert_string_equal(got.job, "ps");
    assert_string_equal(got.worker, "c:3");
    assert_int_equal(got.task, 7);
}

static void test_blanks_around_signs_are_joined(void **state)
{
    assert_int_equal(
        parse("--ps_hosts = ps0.example.com: 2222, ps1.example.com: 2222 "
              "--worker_hosts = worker0.example.com: 2222, "
              "worker1.example.com: 2222 --job_name = ps --task_index = 1"),
        0);
    assert_string_equal(got.ps, "ps0.example.com:2222,ps1.example.com:2222");
    assert_string_equal(got.worker,
                        "worker0.example.com:2222,worker1.example.com:2222");
    assert_string_equal(got.job, "ps");
    assert_int_equal(got.task, 1);
}

static void test_every_split_of_a_list_is_joined(void **state)
{
    static const char *const lines[] = {
        "--ps_hosts=a:1,b:2",     "--ps_hosts= a:1, b:2",
        "--ps_hosts =a:1 ,b:2",   "--ps_hosts = a : 1 , b : 2",
        "--ps_hosts a: 1, b: 2",  "--ps_hosts a:1 , b:2",
        "-ps=a:1, b:2",           "--ps a:1, --b:2",
        "--ps_hosts=a:1, --b: 2",
    };

    for (size_t i = 0; i < COUNT(lines); i++) {
        assert_int_equal(parse(lines[i]), 0);
        assert_string_equal(got.ps, "a:1,b:2");
    }
}

static void test_dashed_item_after_a_comma_is_an_item(void **state)
{
    assert_int_equal(
        parse("--worker_hosts = worker0.example.com: 2222, "
              "worker1.example.com: 2222, --worker2.example.com:2222 "
              "--job_name = worker --task_index = 2"),
        0);
    assert_string_equal(got.worker, "worker0.example.com:2222,"
                                    "worker1.example.com:2222,"
                                    "worker2.example.com:2222");
    assert_string_equal(got.job, "worker");
    assert_int_equal(got.task, 2);
}

static void test_option_after_a_comma_stays_an_option(void **state)
{
    assert_int_equal(parse("--ps_hosts=a:1, --job_name=ps"), 0);
    assert_string_equal(got.ps, "a:1,");
    assert_string_equal(got.job, "ps");
    assert_int_equal(parse("--ps_hosts=a:1, --job_nam=x:1"),
                     MST_INVALID_ARGUMENT);
    assert_says("--job_nam; did you mean --job_name?");
}

static void test_dashed_address_without_a_comma_is_unknown(void **state)
{
    assert_int_equal(parse("--ps_hosts=a:1 --b:2"), MST_INVALID_ARGUMENT);
    assert_says("There is no option --b:2");
}

static void test_empty_text_is_a_value(void **state)
{
    char *words[] = { "--ps_hosts=", "--worker_hosts", "", "--job_name=ps" };

    assert_int_equal(options_parse(table, 4, words, &got, &st), 0);
    assert_string_equal(got.ps, "");
    assert_string_equal(got.worker, "");
    assert_string_equal(got.job, "ps");
}

static void test_last_of_two_wins(void **state)
{
    assert_int_equal(parse("--job_name=ps --job_name=worker"), 0);
    assert_string_equal(got.job, "worker");
}

static void test_mistakes_are_explained(void **state)
{
    static const char *const bad[][2] = {
        { "--worker_host=a:1", "did you mean --worker_hosts?" },
        { "--jobname=ps", "did you mean --job_name?" },
        { "--wholly_other=1", "There is no option --wholly_other" },
        { "stray", "\"stray\" belongs to no option" },
        { "--job_name=ps stray", "\"stray\" belongs to no option" },
        { "--task_index=x", "a number from 0 up, not \"x\"" },
        { "--task_index=1x", "a number from 0 up" },
        { "--task_index -1", "a number from 0 up, not \"-1\"" },
        { "--task_index=99999999999", "a number from 0 up" },
        { "--task_index=", "--task_index needs a value (N)" },
        { "--job_name", "--job_name needs a value (NAME)" },
        { "--job_name --task_index=0", "--job_name needs a value" },
        { "--log=loud", "one of warn|info, not \"loud\"" },
        { "--log=inf", "one of warn|info" },
    };

    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_int_equal(parse(bad[i][0]), MST_INVALID_ARGUMENT);
        assert_says(bad[i][1]);
    }
}

static void test_far_names_are_not_suggested(void **state)
{
    assert_int_equal(parse("--zzz=1"), MST_INVALID_ARGUMENT);
    assert_string_equal(st.msg, "There is no option --zzz");
}

static void test_switch_takes_no_value(void **state)
{
    assert_int_equal(parse("--quick --job_name=ps"), 0);
    assert_true(got.quick);
    assert_string_equal(got.job, "ps");
    assert_int_equal(parse("--quick ps"), MST_INVALID_ARGUMENT);
    assert_int_equal(parse("--quick=ps"), MST_INVALID_ARGUMENT);
    assert_says("--quick takes no value");
}

static void test_help_ends_the_parsing(void **state)
{
    assert_int_equal(parse("--task_index=3 --help --nonsense"), 0);
    assert_true(got.help);
    assert_int_equal(got.task, 3);
}

static void test_help_text_has_every_row_within_the_width(void **state)
{
    char *text = NULL, *rest, *line;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    options_help(table, out);
    fclose(out);
    assert_non_null(strstr(text, "  --ps_hosts=HOSTS      who serves"));
    assert_non_null(strstr(text, "  --worker_hosts=HOSTS  who computes"));
    assert_non_null(strstr(text, "  --help                this text\n"));
    assert_null(strstr(text, "--ps="));
    for (rest = text; (line = strsep(&rest, "\n"));)
        assert_true(strlen(line) < 80 &&
                    (!*line || line[strlen(line) - 1] != ' '));
    free(text);
}

static void assert_words(char **argv, int argc, const char *const *want,
                         int count)
{
    struct option_words w = { 0 };

    assert_int_equal(options_parse_words(table, argc, argv, &got, &w, &st), 0);
    assert_int_equal(w.count, count);
    for (int i = 0; i < count; i++)
        assert_string_equal(w.at[i], want[i]);
    option_words_done(&w);
}

static void test_words_beside_options_are_joined_as_values(void **state)
{
    char *plain[] = { "--quick", "2", "--ps=a:1,b:1", "w2:2222" };
    char *blanks[] = { "--ps=a:", "1,", "b:1", "2", "w2:", "2222", "--quick" };
    const char *want[] = { "2", "w2:2222" };

    assert_words(plain, COUNT(plain), want, COUNT(want));
    assert_true(got.quick);
    assert_string_equal(got.ps, "a:1,b:1");
    assert_words(blanks, COUNT(blanks), want, COUNT(want));
    assert_string_equal(got.ps, "a:1,b:1");
}

static void test_word_may_be_a_negative_number_but_no_option(void **state)
{
    char *negative[] = { "-1" }, *option[] = { "2", "--quik" };
    const char *want[] = { "-1" };
    struct option_words w = { 0 };

    assert_words(negative, 1, want, 1);
    assert_int_equal(options_parse_words(table, 2, option, &got, &w, &st),
                     MST_INVALID_ARGUMENT);
    assert_non_null(strstr(st.msg, "did you mean --quick?"));
    option_words_done(&w);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_plain_forms_are_taken),
        TEST(test_blanks_around_signs_are_joined),
        TEST(test_every_split_of_a_list_is_joined),
        TEST(test_dashed_item_after_a_comma_is_an_item),
        TEST(test_option_after_a_comma_stays_an_option),
        TEST(test_dashed_address_without_a_comma_is_unknown),
        TEST(test_empty_text_is_a_value),
        TEST(test_last_of_two_wins),
        TEST(test_mistakes_are_explained),
        TEST(test_far_names_are_not_suggested),
        TEST(test_switch_takes_no_value),
        TEST(test_help_ends_the_parsing),
        TEST(test_words_beside_options_are_joined_as_values),
        TEST(test_word_may_be_a_negative_number_but_no_option),
        TEST(test_help_text_has_every_row_within_the_width),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
