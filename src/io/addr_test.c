#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/base.h"
#include "io/addr.h"

static void test_addr_parse_takes_the_three_forms(void **state)
{
    struct status st = STATUS_INIT;
    struct addr_name n;

    assert_int_equal(addr_parse("ps0.example:2222", &n, &st), MST_OK);
    assert_string_equal(n.host, "ps0.example");
    assert_int_equal(n.port, 2222);
    assert_int_equal(addr_parse("[fe80::1]:0", &n, &st), MST_OK);
    assert_string_equal(n.host, "fe80::1");
    assert_int_equal(n.port, 0);
    assert_int_equal(addr_parse(":65535", &n, &st), MST_OK);
    assert_string_equal(n.host, "");
    assert_int_equal(n.port, 65535);
}

static void test_addr_parse_refuses_the_rest(void **state)
{
    static const char *const bad[] = {
        "",      "host",     "host:",      "host:x", "host:65536", "host:-1",
        "::1:5", "[::1]",    "[::1",       "[::1]5", "[:5",        "host:1 ",
        "h:+1",  "h:00001x", "h:99999999", "]:5:5",
    };

    for (size_t i = 0; i < COUNT(bad); i++) {
        struct status st = STATUS_INIT;
        struct addr_name n;

        assert_int_equal(addr_parse(bad[i], &n, &st), MST_INVALID_ARGUMENT);
        assert_non_null(strstr(st.msg, "is not host:port"));
    }
}

static void check_print(const char *host, const char *expect)
{
    struct addr_name n = { .port = 80 };
    char text[ADDR_TEXT_MAX];
    struct addr a;

    strcpy(n.host, host);
    assert_true(addr_numeric(&n, &a));
    assert_int_equal(addr_port(&a), 80);
    addr_print(&a, text);
    assert_string_equal(text, expect);
}

static void test_addr_print_is_as_grpc_prints(void **state)
{
    check_print("127.0.0.1", "ipv4:127.0.0.1:80");
    check_print("::1", "ipv6:[::1]:80");
    check_print("::ffff:10.0.0.1", "ipv4:10.0.0.1:80");
}

static void test_addr_numeric_refuses_names(void **state)
{
    struct addr_name n = { .host = "localhost" };
    struct addr a;

    assert_false(addr_numeric(&n, &a));
    n.host[0] = '\0';
    assert_false(addr_numeric(&n, &a));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_addr_parse_takes_the_three_forms),
        cmocka_unit_test(test_addr_parse_refuses_the_rest),
        cmocka_unit_test(test_addr_print_is_as_grpc_prints),
        cmocka_unit_test(test_addr_numeric_refuses_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
