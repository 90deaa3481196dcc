#include "cli/train_options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static enum mst_code parse(struct train_options *o, struct status *st,
                           const char *const *words)
{
    int n = 0;

    while (words[n])
        n++;
    return train_options_parse(o, n, (char **)words, NULL, st);
}

#define WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void test_alone_is_a_job_of_one(void **state)
{
    struct status st = STATUS_INIT;
    struct train_options o;

    assert_int_equal(parse(&o, &st,
                           WORDS("--meta_graph=g", "--feed", "x=a.npy",
                                 "--feed=y=b.npy", "--keep=0")),
                     MST_OK);
    assert_string_equal(o.task.job_name, "worker");
    assert_int_equal(o.task.task_index, 0);
    assert_int_equal(o.feeds.count, 2);
    assert_string_equal(o.feeds.at[1], "y=b.npy");
    assert_int_equal(o.batch, 32);
    assert_int_equal(o.keep, 0);
    train_options_done(&o);
}

static void test_the_task_is_told_as_to_serve(void **state)
{
    struct status st = STATUS_INIT;
    struct train_options o;

    assert_int_equal(parse(&o, &st,
                           WORDS("--meta_graph=g", "--ps_hosts=a:1,b:2",
                                 "--worker_hosts=c:3,d:4", "--job_name=worker",
                                 "--task_index=1", "--steps", "10")),
                     MST_OK);
    assert_int_equal(o.task.task_index, 1);
    assert_int_equal(cluster_spec_size(&o.task.cluster), 4);
    assert_int_equal(o.steps, 10);
    assert_int_equal(o.keep, -1);
    train_options_done(&o);
}

static void expect_wrong(const char *const *words, const char *text)
{
    struct status st = STATUS_INIT;
    struct train_options o;

    assert_int_equal(parse(&o, &st, words), MST_INVALID_ARGUMENT);
    if (!strstr(st.msg, text))
        fail_msg("%s", st.msg);
    train_options_done(&o);
}

static void test_what_is_wrong_is_said(void **state)
{
    expect_wrong(WORDS("--steps=1"), "--meta_graph");
    expect_wrong(WORDS("--meta_graph=g", "--feed", "x"), "NAME=");
    expect_wrong(WORDS("--meta_graph=g", "--data=a"), "--feed");
    expect_wrong(WORDS("--meta_graph=g", "--save_steps=3"), "--checkpoint_dir");
    expect_wrong(WORDS("--meta_graph=g", "--batch=0"), "--batch");
    expect_wrong(WORDS("--meta_graph=g", "--eval_data=a"), "--eval");
    expect_wrong(WORDS("--meta_graph=g", "--ps_hosts=a:1"), "muster serve");
    expect_wrong(WORDS("--meta_grap=g"), "did you mean --meta_graph?");
    expect_wrong(WORDS("--meta_graph=g", "--ps_hosts=a:1,b:2"), "Which task");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alone_is_a_job_of_one),
        cmocka_unit_test(test_the_task_is_told_as_to_serve),
        cmocka_unit_test(test_what_is_wrong_is_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
