/* Whole command lines of `muster serve`. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/serve_options.h"

#include <string.h>

#include "base/mem.h"

static struct serve_options got;
static struct status st;

static enum mst_code parse(const char *line, const char *tf_config)
{
    char *words[64], *copy = mem_str(line), *rest = copy, *word;
    enum mst_code code;
    int n = 0;

    serve_options_done(&got);
    status_clear(&st);
    while ((word = strsep(&rest, " ")))
        if (*word)
            words[n++] = word;
    code = serve_options_parse(&got, n, words, tf_config, &st);
    mem_free(copy);
    return code;
}

static int teardown(void **state)
{
    serve_options_done(&got);
    return 0;
}

static void assert_says(const char *part)
{
    if (!strstr(st.msg, part))
        fail_msg("\"%s\" is not in: %s", part, st.msg);
}

static const char config[] =
    "{\"cluster\": {\"chief\": [\"c:1\"], \"ps\": [\"127.0.0.1:5\", "
    "\"b:6\"]}, \"task\": {\"type\": \"ps\", \"index\": 1}}";

static void test_trainer_line_with_blanks_is_taken(void **state)
{
    assert_int_equal(
        parse("--ps_hosts = ps0.example.com: 2222, ps1.example.com: 2222 "
              "--worker_hosts = worker0.example.com: 2222, "
              "worker1.example.com: 2222, --worker2.example.com:2222 "
              "--job_name = ps --task_index = 1",
              NULL),
        0);
    assert_string_equal(got.job_name, "ps");
    assert_int_equal(got.task_index, 1);
    assert_string_equal(got.address, "ps1.example.com:2222");
    assert_string_equal(got.bind, ":2222");
    assert_string_equal(cluster_spec_address(&got.cluster, "worker", 2),
                        "worker2.example.com:2222");
    assert_string_equal(got.log, "info");
}

static void test_short_names_are_taken(void **state)
{
    assert_int_equal(parse("-ps=localhost:9001 "
                           "--worker=localhost:9002,localhost:9003 --job=ps",
                           NULL),
                     0);
    assert_string_equal(got.bind, "localhost:9001");
    assert_int_equal(got.task_index, 0);
}

static void test_cluster_flag_takes_any_job(void **state)
{
    assert_int_equal(parse("--cluster=ps=a:1;evaluator/3=b:2 "
                           "--job_name=evaluator --task_index=3 "
                           "--bind=127.0.0.1:0 --log=debug --threads=2 "
                           "--loops=1 --state_dir=/s --job_id=j-1",
                           NULL),
                     0);
    assert_string_equal(got.address, "b:2");
    assert_string_equal(got.bind, "127.0.0.1:0");
    assert_string_equal(got.log, "debug");
    assert_int_equal(got.threads, 2);
    assert_int_equal(got.loops, 1);
    assert_string_equal(got.state_dir, "/s");
    assert_string_equal(got.job_id, "j-1");
}

static void test_tf_config_serves_alone(void **state)
{
    assert_int_equal(parse("", config), 0);
    assert_string_equal(got.job_name, "ps");
    assert_int_equal(got.task_index, 1);
    assert_string_equal(got.bind, ":6");
    assert_int_equal(got.cluster.count, 2);
}

static void test_flags_win_over_tf_config(void **state)
{
    assert_int_equal(parse("--task_index=0", config), 0);
    assert_string_equal(got.bind, "127.0.0.1:5");
    assert_int_equal(parse("--job_name=chief", config), 0);
    assert_string_equal(got.address, "c:1");
    assert_int_equal(parse("--ps_hosts=x:1,y:1", config), 0);
    assert_string_equal(got.address, "y:1");
    assert_int_equal(got.cluster.count, 1);
}

static void test_lone_task_needs_no_name(void **state)
{
    assert_int_equal(parse("--cluster=ps/4=localhost:0", NULL), 0);
    assert_string_equal(got.job_name, "ps");
    assert_int_equal(got.task_index, 4);
}

static void test_help_needs_nothing_else(void **state)
{
    assert_int_equal(parse("--help", "not json"), 0);
    assert_true(got.help);
}

static void test_mistakes_are_explained(void **state)
{
    static const char *const bad[][2] = {
        { "", "No cluster" },
        { "--ps_hosts= --job_name=ps", "No cluster" },
        { "--ps_hosts=a:1,b:1", "Which task is this?" },
        { "--ps_hosts=a:1 --job_name=worker", "no job \"worker\"" },
        { "--ps_hosts=a:1 --job_name=ps --task_index=1",
          "Job ps has no task 1" },
        { "--ps_hosts=a:1 --cluster=ps=a:1", "Give either" },
        { "--ps_hosts=a:1,a:1 --job_name=ps", "two tasks" },
        { "--ps_hosts=a --job_name=ps", "no port" },
        { "--ps_hosts=a:1 --job_name=ps --bind=a:x", "--bind=a:x" },
        { "--ps_hosts=a:1 --job_name=ps --log=x", "--log is one of" },
        { "--pshosts=a:1", "did you mean --ps_hosts?" },
    };

    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_int_equal(parse(bad[i][0], NULL), MST_INVALID_ARGUMENT);
        assert_says(bad[i][1]);
    }
    assert_int_equal(parse("--ps_hosts=a:1 --job_name=ps", "{"),
                     MST_INVALID_ARGUMENT);
    assert_says("TF_CONFIG");
}

#define TEST(f) cmocka_unit_test_teardown(f, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_trainer_line_with_blanks_is_taken),
        TEST(test_short_names_are_taken),
        TEST(test_cluster_flag_takes_any_job),
        TEST(test_tf_config_serves_alone),
        TEST(test_flags_win_over_tf_config),
        TEST(test_lone_task_needs_no_name),
        TEST(test_help_needs_nothing_else),
        TEST(test_mistakes_are_explained),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
