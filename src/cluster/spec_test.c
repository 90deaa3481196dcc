/* Specs from every text form, and every way that one can be wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cluster/spec.h"

#include <string.h>

#include "base/mem.h"
#include "cluster/spec_parse.h"

static struct cluster_spec spec;
static struct status st;

static int setup(void **state)
{
    cluster_spec_init(&spec);
    status_clear(&st);
    return 0;
}

static int teardown(void **state)
{
    cluster_spec_done(&spec);
    return 0;
}

static void assert_says(const char *part)
{
    if (!strstr(st.msg, part))
        fail_msg("\"%s\" is not in: %s", part, st.msg);
}

static void test_hosts_are_numbered_in_order(void **state)
{
    assert_int_equal(
        spec_parse_hosts(&spec, "ps", 0, " a: 1, b.c:22 ,[::1]:3", &st), 0);
    assert_string_equal(cluster_spec_address(&spec, "ps", 0), "a:1");
    assert_string_equal(cluster_spec_address(&spec, "ps", 1), "b.c:22");
    assert_string_equal(cluster_spec_address(&spec, "ps", 2), "[::1]:3");
    assert_null(cluster_spec_address(&spec, "ps", 3));
    assert_null(cluster_spec_address(&spec, "ps", -1));
    assert_null(cluster_spec_address(&spec, "worker", 0));
    assert_int_equal(cluster_spec_size(&spec), 3);
}

static void test_empty_list_names_no_job(void **state)
{
    assert_int_equal(spec_parse_hosts(&spec, "ps", 0, "", &st), 0);
    assert_null(cluster_spec_job(&spec, "ps"));
}

static void test_jobs_text_gives_every_job(void **state)
{
    assert_int_equal(spec_parse_jobs(&spec,
                                     "ps=a:1,b:2; worker/2 = c:3, d:4; "
                                     "chief=e:5;",
                                     &st),
                     0);
    assert_int_equal(spec.count, 3);
    assert_string_equal(spec.jobs[2].name, "chief");
    assert_string_equal(cluster_spec_address(&spec, "worker", 3), "d:4");
    assert_null(cluster_spec_address(&spec, "worker", 0));
}

static void test_sparse_tasks_stay_sorted(void **state)
{
    assert_int_equal(cluster_spec_add(&spec, "worker", 7, "h:7", &st), 0);
    assert_int_equal(cluster_spec_add(&spec, "worker", 2, "h:2", &st), 0);
    assert_int_equal(cluster_spec_add(&spec, "worker", 5, "h:5", &st), 0);
    assert_int_equal(spec.jobs[0].tasks[0].index, 2);
    assert_int_equal(spec.jobs[0].tasks[2].index, 7);
    assert_string_equal(cluster_spec_address(&spec, "worker", 5), "h:5");
    assert_null(cluster_spec_address(&spec, "worker", 3));
}

static void test_copy_is_independent(void **state)
{
    struct cluster_spec copy;

    assert_int_equal(spec_parse_jobs(&spec, "ps=a:1;worker/4=b:2", &st), 0);
    cluster_spec_copy(&copy, &spec);
    cluster_spec_done(&spec);
    assert_string_equal(cluster_spec_address(&copy, "worker", 4), "b:2");
    assert_int_equal(cluster_spec_add(&copy, "worker", 5, "b:3", &st), 0);
    cluster_spec_done(&copy);
}

static void test_bad_addresses_are_named(void **state)
{
    static const char *const bad[][2] = {
        { "ps0", "no port" },
        { ":2222", "host is empty" },
        { "[]:2222", "host is empty" },
        { "a:", "port must be" },
        { "a:65536", "port must be" },
        { "a:-1", "port must be" },
        { "a:1x", "port must be" },
        { "a:99999999999999999999", "port must be" },
        { "::1:2222", "brackets" },
        { "[::1", "not closed" },
        { "[::1]", "no port" },
        { "a/b:1", "no host name" },
        { "grpc://a:1", "brackets" },
    };

    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_int_equal(cluster_spec_add(&spec, "ps", 0, bad[i][0], &st),
                         MST_INVALID_ARGUMENT);
        assert_says("Could not interpret");
        assert_says(bad[i][0]);
        assert_says(bad[i][1]);
    }
    assert_int_equal(spec.count, 0);
}

static void test_split_gives_host_and_port(void **state)
{
    struct cluster_address a;

    assert_int_equal(cluster_address_split("[fe80::1%eth0]:65535", &a, &st), 0);
    assert_int_equal(a.host_len, 12);
    assert_memory_equal(a.host, "fe80::1%eth0", 12);
    assert_int_equal(a.port, 65535);
    assert_int_equal(cluster_address_split("localhost:0", &a, &st), 0);
    assert_int_equal(a.port, 0);
}

static void test_bad_lists_are_refused(void **state)
{
    static const char *const bad[][2] = {
        { "ps=a:1,,b:2", "empty item (2)" },
        { "ps=a:1,", "empty item (2)" },
        { "ps", "does not say" },
        { "ps=", "does not say" },
        { "=a:1", "does not say" },
        { "a:1,b:2", "does not say" },
        { "ps/x=a:1", "no task index" },
        { "ps/-1=a:1", "no task index" },
        { "0ps=a:1", "no job name" },
        { "p s!=a:1", "no job name" },
        { "w=a:1,b:2;w/1=c:3", "named twice" },
    };

    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_int_equal(spec_parse_jobs(&spec, bad[i][0], &st),
                         MST_INVALID_ARGUMENT);
        assert_says(bad[i][1]);
        cluster_spec_done(&spec);
    }
}

static void test_one_address_for_two_tasks_is_refused(void **state)
{
    assert_int_equal(spec_parse_jobs(&spec, "ps=a:1,b:1;worker=b:1", &st), 0);
    assert_int_equal(cluster_spec_check(&spec, &st), MST_INVALID_ARGUMENT);
    assert_says("b:1 is the address of two tasks: /job:ps/task:1 and "
                "/job:worker/task:0");
    cluster_spec_done(&spec);
    assert_int_equal(spec_parse_jobs(&spec, "ps=a:0,a:0;worker=b:1", &st), 0);
    assert_int_equal(cluster_spec_check(&spec, &st), 0);
}

static void test_find_says_what_is_there(void **state)
{
    const char *address = NULL;

    assert_int_equal(spec_parse_jobs(&spec, "ps=a:1,b:1;worker=c:1", &st), 0);
    assert_int_equal(cluster_spec_find(&spec, "ps", 1, &address, &st), 0);
    assert_string_equal(address, "b:1");
    assert_int_equal(cluster_spec_find(&spec, "ps", 2, &address, &st),
                     MST_INVALID_ARGUMENT);
    assert_says("Job ps has no task 2. The cluster names 0 (a:1), 1 (b:1)");
    assert_int_equal(cluster_spec_find(&spec, "chief", 0, &address, &st),
                     MST_INVALID_ARGUMENT);
    assert_says("has no job \"chief\". It names ps, worker");
}

static void test_tf_config_gives_cluster_and_task(void **state)
{
    char *job;
    int task;

    assert_int_equal(
        spec_parse_tf_config(
            &spec,
            "{\"cluster\": {\"chief\": [\"c:1\"], \"ps\": [\"a:1\", \"b: 2\"],"
            " \"worker\": {\"3\": \"w:3\"}},"
            " \"task\": {\"type\": \"ps\", \"index\": \"1\"},"
            " \"environment\": \"cloud\"}",
            &job, &task, &st),
        0);
    assert_string_equal(job, "ps");
    assert_int_equal(task, 1);
    mem_free(job);
    assert_string_equal(cluster_spec_address(&spec, "ps", 1), "b:2");
    assert_string_equal(cluster_spec_address(&spec, "worker", 3), "w:3");
    assert_string_equal(cluster_spec_address(&spec, "chief", 0), "c:1");
}

static void test_tf_config_may_lack_a_task(void **state)
{
    char *job;
    int task;

    assert_int_equal(spec_parse_tf_config(&spec,
                                          "{\"cluster\": {\"ps\": [\"a:1\"]}}",
                                          &job, &task, &st),
                     0);
    assert_null(job);
    assert_int_equal(task, -1);
}

static void test_bad_tf_config_is_explained(void **state)
{
    static const char *const bad[][2] = {
        { "", "is no JSON" },
        { "{\"cluster\": ", "is no JSON" },
        { "[]", "must be objects" },
        { "{\"cluster\": []}", "must be objects" },
        { "{\"cluster\": {\"ps\": \"a:1\"}}", "neither a list" },
        { "{\"cluster\": {\"ps\": [1]}}", "is no string" },
        { "{\"cluster\": {\"ps\": {\"x\": \"a:1\"}}}", "no task index" },
        { "{\"cluster\": {\"ps\": [\"a\"]}}", "no port" },
        { "{\"task\": 1}", "no object" },
        { "{\"task\": {}}", "no \"type\"" },
        { "{\"task\": {\"type\": \"ps\", \"index\": -1}}", "no task index" },
        { "{\"task\": {\"type\": \"ps\", \"index\": 1.5}}", "no task index" },
    };
    char *job;
    int task;

    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_int_equal(
            spec_parse_tf_config(&spec, bad[i][0], &job, &task, &st),
            MST_INVALID_ARGUMENT);
        assert_says(bad[i][1]);
        cluster_spec_done(&spec);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_hosts_are_numbered_in_order),
        TEST(test_empty_list_names_no_job),
        TEST(test_jobs_text_gives_every_job),
        TEST(test_sparse_tasks_stay_sorted),
        TEST(test_copy_is_independent),
        TEST(test_bad_addresses_are_named),
        TEST(test_split_gives_host_and_port),
        TEST(test_bad_lists_are_refused),
        TEST(test_one_address_for_two_tasks_is_refused),
        TEST(test_find_says_what_is_there),
        TEST(test_tf_config_gives_cluster_and_task),
        TEST(test_tf_config_may_lack_a_task),
        TEST(test_bad_tf_config_is_explained),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
