/*
 * A server by its public face: what it takes and refuses, its states, what a
 * child of fork() may do. That it serves is seen against TensorFlow, in
 * tests/interop.
 */
#include "muster/server.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/thread.h"
#include "wire/pb.h"

/* A server from a ServerDef of one task, /job:w/task:0. */
static enum mst_code make(const char *address, const char *protocol,
                          const char *job, mst_server **ret,
                          struct mst_error *error)
{
    struct pb_out task, def, one, cluster;
    enum mst_code rc;

    pb_out_init(&task);
    pb_put_uint(&task, 1, 0);
    pb_put_bytes(&task, 2, address, strlen(address));
    pb_out_init(&one);
    pb_put_bytes(&one, 1, "w", 1);
    pb_put_bytes(&one, 2, task.data, task.len);
    pb_out_init(&cluster);
    pb_put_bytes(&cluster, 1, one.data, one.len);
    pb_out_init(&def);
    pb_put_bytes(&def, 1, cluster.data, cluster.len);
    pb_put_bytes(&def, 2, job, strlen(job));
    pb_put_bytes(&def, 5, protocol, strlen(protocol));
    rc = mst_server_new(def.data, def.len, ret, error);
    pb_out_done(&task);
    pb_out_done(&one);
    pb_out_done(&cluster);
    pb_out_done(&def);
    return rc;
}

static mst_server *make_good(void)
{
    struct mst_error error = { .message = "" };
    mst_server *s = NULL;

    if (make("localhost:0", "grpc", "w", &s, &error))
        fail_msg("%s", error.message);
    return s;
}

static void expect_error(const char *address, const char *protocol,
                         const char *job, enum mst_code code, const char *text)
{
    struct mst_error error;
    mst_server *s;

    assert_int_equal(make(address, protocol, job, &s, &error), code);
    assert_int_equal(error.code, code);
    if (!strstr(error.message, text))
        fail_msg("%s", error.message);
}

static void test_defs_are_refused_as_by_tensorflow(void **state)
{
    struct mst_error error;
    mst_server *s;

    expect_error("localhost:0", "verbs", "w", MST_NOT_FOUND,
                 "No server factory registered");
    expect_error("localhost:0", "grpc", "x", MST_INTERNAL,
                 "Job \"x\" was not defined in cluster");
    expect_error("localhost", "grpc", "w", MST_INVALID_ARGUMENT,
                 "Could not parse port for local server from \"localhost\".");
    expect_error("localhost:99999", "grpc", "w", MST_INVALID_ARGUMENT,
                 "Could not parse port");
    assert_int_equal(mst_server_new("\x0a\x7f", 2, &s, &error),
                     MST_INVALID_ARGUMENT);
}

static void test_a_taken_port_is_told(void **state)
{
    mst_server *s = make_good();
    char address[32];

    snprintf(address, sizeof(address), "localhost:%d", mst_server_port(s));
    expect_error(address, "grpc", "w", MST_UNKNOWN,
                 "Could not start gRPC server");
    mst_server_free(s);
}

static void test_states_follow_each_other(void **state)
{
    mst_server *s = make_good();
    struct mst_error error;
    char target[64];

    snprintf(target, sizeof(target), "grpc://localhost:%d", mst_server_port(s));
    assert_string_equal(mst_server_target(s), target);
    assert_true(mst_server_wait(s, -1)); /* not started: nothing to wait for */
    assert_int_equal(mst_server_start(s, &error), 0);
    assert_int_equal(mst_server_start(s, &error), 0);
    assert_false(mst_server_wait(s, 1));
    mst_server_stop(s, 0);
    mst_server_stop(s, 0);
    assert_true(mst_server_wait(s, -1));
    assert_int_equal(mst_server_start(s, &error), MST_FAILED_PRECONDITION);
    mst_server_free(s);
    mst_server_free(NULL);
}

static void *stop_it(void *arg)
{
    mst_server_stop(arg, 0);
    return NULL;
}

static void test_wait_ends_when_another_thread_stops(void **state)
{
    mst_server *s = make_good();
    pthread_t threads[2];

    assert_int_equal(mst_server_start(s, NULL), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(thread_start(&threads[i], NULL, stop_it, s), 0);
    assert_true(mst_server_wait(s, -1));
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    mst_server_free(s);
}

static void test_a_child_of_fork_leaves_it_alone(void **state)
{
    mst_server *s = make_good();
    int status;
    pid_t pid;

    assert_int_equal(mst_server_start(s, NULL), 0);
    pid = fork();
    if (!pid) {
        bool good = mst_server_wait(s, -1) &&
                    mst_server_start(s, NULL) == MST_FAILED_PRECONDITION;

        mst_server_stop(s, 0);
        mst_server_free(s);
        _exit(good ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_false(mst_server_wait(s, 1));
    mst_server_free(s);
}

/* What a thread of ours blocks, from its line in /proc. */
static void test_threads_of_a_server_take_no_signals(void **state)
{
    mst_server *s = make_good();
    char line[128], command[96];
    int threads = 0;
    FILE *f;

    snprintf(command, sizeof(command), "cat /proc/%d/task/*/status",
             (int)getpid());
    f = popen(command, "r");
    assert_non_null(f);
    while (fgets(line, sizeof(line), f))
        if (!strncmp(line, "SigBlk:", 7)) {
            uint64_t blocked = strtoull(line + 7, NULL, 16);

            threads +=
                (blocked >> (SIGINT - 1) & 1) && (blocked >> (SIGTERM - 1) & 1);
        }
    pclose(f);
    assert_true(threads >= 2); /* a loop and a computing one */
    mst_server_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defs_are_refused_as_by_tensorflow),
        cmocka_unit_test(test_a_taken_port_is_told),
        cmocka_unit_test(test_states_follow_each_other),
        cmocka_unit_test(test_wait_ends_when_another_thread_stops),
        cmocka_unit_test(test_a_child_of_fork_leaves_it_alone),
        cmocka_unit_test(test_threads_of_a_server_take_no_signals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
