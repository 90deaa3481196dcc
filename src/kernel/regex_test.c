#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kernel/regex.h"

static struct regex *compile(const char *pattern)
{
    struct status st = STATUS_INIT;
    struct regex *re = NULL;

    assert_int_equal(regex_new(pattern, strlen(pattern), &re, &st), MST_OK);
    return re;
}

static void assert_span(const char *pattern, const char *text, int64_t begin,
                        int64_t end)
{
    struct regex *re = compile(pattern);
    struct regex_run *m = regex_run_new(re);
    int64_t span[2];

    assert_true(regex_find(m, text, strlen(text), 0, span, 1));
    assert_int_equal(span[0], begin);
    assert_int_equal(span[1], end);
    regex_run_free(m);
    regex_free(re);
}

static void test_the_match_is_the_one_perl_finds(void **state)
{
    (void)state;
    assert_span("ab|abc", "xabc", 1, 3);
    assert_span("abc|ab", "xabc", 1, 4);
    assert_span("a+?", "baaa", 1, 2);
    assert_span("(?U)a+", "baaa", 1, 2);
    assert_span("(|a)+", "aaa", 0, 0);
    assert_span("(a|ab)(c|bcd)", "abcd", 0, 4);
    assert_span("\\bfoo\\b", "foobar foo", 7, 10);
    assert_span("(?m)^b$", "a\nb\nc", 2, 3);
    assert_span("[^[:space:]]+$", "one two", 4, 7);
}

static void test_groups_are_those_of_the_last_turn(void **state)
{
    struct regex *re = compile("(?:(a)|(b)|c)*");
    struct regex_run *m = regex_run_new(re);
    int64_t span[6];

    (void)state;
    assert_true(regex_find(m, "abac", 4, 0, span, 3));
    assert_int_equal(span[1], 4);
    assert_int_equal(span[2], 2); /* the second a */
    assert_int_equal(span[4], 1); /* b, turns ago */
    regex_run_free(m);
    regex_free(re);
}

/* A machine that tries all ways takes until the end of the world. */
static void test_time_is_linear_in_the_text(void **state)
{
    char text[4097];
    struct regex *re = compile("(a*)*(a*)*(a*)*b");
    struct regex_run *m = regex_run_new(re);
    int64_t span[2];

    (void)state;
    memset(text, 'a', sizeof(text));
    assert_false(regex_find(m, text, sizeof(text), 0, span, 1));
    regex_run_free(m);
    regex_free(re);
}

static void test_errors_are_re2s(void **state)
{
    static const struct {
        const char *pattern, *error;
    } bad[] = {
        { "(", "missing ): (" },
        { "a)", "unexpected ): a)" },
        { "[a", "missing ]: [a" },
        { "[b-a]", "invalid character class range: b-a" },
        { "*", "no argument for repetition operator: *" },
        { "a**", "bad repetition operator: **" },
        { "a{1001}", "invalid repetition size: {1001}" },
        { "(a{100}){11}", "invalid repetition size: {11}" },
        { "\\1", "invalid escape sequence: \\1" },
        { "a\\", "trailing \\" },
        { "(?=a)", "invalid perl operator: (?=" },
        { "\xff", "invalid UTF-8" },
    };
    struct regex *re = NULL;

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct status st = STATUS_INIT;

        assert_int_equal(
            regex_new(bad[i].pattern, strlen(bad[i].pattern), &re, &st),
            MST_INVALID_ARGUMENT);
        assert_string_equal(st.msg, bad[i].error);
    }
}

static void test_hostile_patterns_are_refused(void **state)
{
    static char many[120000];
    struct status st = STATUS_INIT;
    struct regex *re = NULL;

    (void)state;
    memset(many, '(', sizeof(many));
    assert_int_equal(regex_new(many, 50000, &re, &st), MST_INVALID_ARGUMENT);
    memset(many, 'a', sizeof(many));
    assert_int_equal(regex_new(many, sizeof(many), &re, &st),
                     MST_INVALID_ARGUMENT);
    memcpy(many, "(((a", 4);
    memcpy(many + 30000, "){10}){10}){10}", 15);
    assert_int_equal(regex_new(many, 30015, &re, &st), MST_INVALID_ARGUMENT);
    assert_string_equal(st.msg, "pattern too large - compile failed");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_match_is_the_one_perl_finds),
        cmocka_unit_test(test_groups_are_those_of_the_last_turn),
        cmocka_unit_test(test_time_is_linear_in_the_text),
        cmocka_unit_test(test_errors_are_re2s),
        cmocka_unit_test(test_hostile_patterns_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
