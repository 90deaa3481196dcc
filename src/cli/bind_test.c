/* What a server binds to for what it is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/bind.h"

#include <string.h>

#include "base/mem.h"

static void assert_bind(const char *flag, const char *address,
                        const char *expected)
{
    struct status st = STATUS_INIT;
    char *got = NULL;

    if (bind_choose(flag, address, &got, &st))
        fail_msg("%s, %s: %s", flag ? flag : "-", address, st.msg);
    assert_string_equal(got, expected);
    mem_free(got);
}

static void test_loopback_stays_loopback(void **state)
{
    assert_bind(NULL, "127.0.0.1:2222", "127.0.0.1:2222");
    assert_bind(NULL, "127.8.8.8:2222", "127.8.8.8:2222");
    assert_bind(NULL, "localhost:0", "localhost:0");
    assert_bind(NULL, "ps0.localhost:1", "ps0.localhost:1");
    assert_bind(NULL, "[::1]:2222", "[::1]:2222");
}

static void test_others_listen_everywhere(void **state)
{
    assert_bind(NULL, "192.0.2.77:2222", ":2222");
    assert_bind(NULL, "[2001:db8::77]:2222", ":2222");
    assert_bind(NULL, "ps0.example.com:2222", ":2222");
    assert_bind(NULL, "notlocalhost:2222", ":2222");
    assert_bind(NULL, "0.0.0.0:2222", ":2222");
}

static void test_flag_overrules_in_part_or_whole(void **state)
{
    assert_bind(":7", "localhost:2222", ":7");
    assert_bind("7", "localhost:2222", ":7");
    assert_bind("10.0.0.1", "localhost:2222", "10.0.0.1:2222");
    assert_bind("10.0.0.1:0", "localhost:2222", "10.0.0.1:0");
    assert_bind("eth0.host", "localhost:2222", "eth0.host:2222");
    assert_bind("::1", "localhost:2222", "[::1]:2222");
    assert_bind("::", "localhost:2222", "[::]:2222");
    assert_bind("[::1]", "localhost:2222", "[::1]:2222");
    assert_bind("[::1]:9", "localhost:2222", "[::1]:9");
    assert_bind("all:9", "localhost:2222", "all:9");
}

static void test_bad_flags_are_refused(void **state)
{
    static const char *const bad[] = {
        "", ":", ":x", "a:", "a:b", "70000", "[::1", "a b", "[]:1",
    };

    for (size_t i = 0; i < COUNT(bad); i++) {
        struct status st = STATUS_INIT;
        char *got = NULL;

        assert_int_equal(bind_choose(bad[i], "localhost:1", &got, &st),
                         MST_INVALID_ARGUMENT);
        assert_non_null(strstr(st.msg, "--bind="));
        assert_null(got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loopback_stays_loopback),
        cmocka_unit_test(test_others_listen_everywhere),
        cmocka_unit_test(test_flag_overrules_in_part_or_whole),
        cmocka_unit_test(test_bad_flags_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
