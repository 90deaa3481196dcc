#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "io/resolve.h"
#include "io/socket.h"

static int listen_on(const char *text, uint16_t *port, struct status *st,
                     int fds[SOCKET_LISTEN_MAX], int *count)
{
    struct addr_name name;

    assert_int_equal(addr_parse(text, &name, st), MST_OK);
    return (int)socket_listen(&name, fds, count, port, st);
}

static void close_all(const int *fds, int count)
{
    while (count--)
        close(fds[count]);
}

static int connect_to(const char *host, uint16_t port)
{
    struct addr_name name = { .port = port };
    struct pollfd p = { .events = POLLOUT };
    struct addr to;
    int error;

    strcpy(name.host, host);
    assert_true(addr_numeric(&name, &to));
    p.fd = socket_connect(&to);
    if (p.fd < 0)
        return errno;
    poll(&p, 1, -1);
    error = socket_error(p.fd);
    if (!error)
        assert_true(addr_same_host(p.fd));
    socket_tune(p.fd);
    close(p.fd);
    return error;
}

static void test_socket_listens_on_one_address(void **state)
{
    struct status st = STATUS_INIT;
    int fds[SOCKET_LISTEN_MAX], count;
    uint16_t port = 0;

    assert_int_equal(listen_on("127.0.0.1:0", &port, &st, fds, &count), 0);
    assert_int_equal(count, 1);
    assert_int_not_equal(port, 0);
    assert_int_equal(connect_to("127.0.0.1", port), 0);
    close_all(fds, count);
    assert_int_equal(connect_to("127.0.0.1", port), ECONNREFUSED);
}

static void test_socket_listens_on_all_addresses(void **state)
{
    struct status st = STATUS_INIT;
    int fds[SOCKET_LISTEN_MAX], count;
    uint16_t port = 0;

    assert_int_equal(listen_on(":0", &port, &st, fds, &count), 0);
    assert_int_equal(connect_to("127.0.0.1", port), 0);
    close_all(fds, count);
}

static void test_socket_says_that_a_port_is_taken(void **state)
{
    struct status st = STATUS_INIT;
    int fds[SOCKET_LISTEN_MAX], count, fds2[SOCKET_LISTEN_MAX], count2 = 7;
    uint16_t port = 0, port2 = 7;
    char text[64];

    assert_int_equal(listen_on("localhost:0", &port, &st, fds, &count), 0);
    snprintf(text, sizeof(text), "127.0.0.1:%u", port);
    assert_int_equal(listen_on(text, &port2, &st, fds2, &count2),
                     MST_ALREADY_EXISTS);
    assert_non_null(strstr(st.msg, "the port is taken"));
    assert_int_equal(count2, 7);
    assert_int_equal(port2, 7);
    close_all(fds, count);
}

static void test_socket_says_that_a_host_is_unknown(void **state)
{
    struct status st = STATUS_INIT;
    int fds[SOCKET_LISTEN_MAX], count;
    uint16_t port;

    assert_int_equal(
        listen_on("no.such.host.invalid:0", &port, &st, fds, &count),
        MST_UNAVAILABLE);
    assert_int_equal(listen_on("192.0.2.1:0", &port, &st, fds, &count),
                     MST_UNAVAILABLE);
}

struct lookup {
    struct loop_task task;
    struct loop *loop;
    const char *host;
    bool cancel;
    int count;
    bool failed;
    sem_t over;
};

static void found(void *arg, const struct addr *addrs, int count,
                  const char *error)
{
    struct lookup *l = arg;

    assert_false(l->cancel);
    l->count = count;
    l->failed = error != NULL;
    for (int i = 0; i < count; i++)
        assert_int_equal(addr_port(&addrs[i]), 99);
    sem_post(&l->over);
}

static void look(struct loop_task *task)
{
    struct lookup *l = CONTAINER(task, struct lookup, task);
    struct addr_name name = { .port = 99 };
    struct resolve *r;

    strcpy(name.host, l->host);
    r = resolve_start(l->loop, &name, found, l);
    if (l->cancel) {
        resolve_cancel(r);
        sem_post(&l->over);
    }
}

static void look_up(struct lookup *l)
{
    struct loop_group *g = loop_group_new(NULL);

    l->task.run = look;
    l->loop = loop_group_at(g, 0);
    sem_init(&l->over, 0, 0);
    loop_post(l->loop, &l->task);
    sem_wait(&l->over);
    sem_destroy(&l->over);
    loop_group_free(g);
}

static void test_resolve_finds_names_and_numbers(void **state)
{
    struct lookup number = { .host = "10.1.2.3" };
    struct lookup name = { .host = "localhost" };
    struct lookup wrong = { .host = "no.such.host.invalid" };

    look_up(&number);
    assert_int_equal(number.count, 1);
    look_up(&name);
    assert_true(name.count >= 1);
    look_up(&wrong);
    assert_true(wrong.failed);
}

static void test_resolve_can_be_cancelled(void **state)
{
    struct lookup number = { .host = "10.1.2.3", .cancel = true };
    struct lookup name = { .host = "localhost", .cancel = true };

    look_up(&number);
    look_up(&name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_socket_listens_on_one_address),
        cmocka_unit_test(test_socket_listens_on_all_addresses),
        cmocka_unit_test(test_socket_says_that_a_port_is_taken),
        cmocka_unit_test(test_socket_says_that_a_host_is_unknown),
        cmocka_unit_test(test_resolve_finds_names_and_numbers),
        cmocka_unit_test(test_resolve_can_be_cancelled),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
