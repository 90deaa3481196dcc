/* What people and programs see of a job that is made up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/status_print.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define NOW 1700000000000u

static Muster__Member members[4];
static Muster__StatusResponse says;
static Muster__ListResponse list;
static struct status_row rows[4];
static struct status_view view;

static int setup(void **state)
{
    muster__status_response__init(&says);
    muster__list_response__init(&list);
    for (size_t i = 0; i < COUNT(rows); i++) {
        muster__member__init(&members[i]);
        members[i].job = i ? "worker" : "ps";
        members[i].task = i ? (int)i - 1 : 0;
        members[i].address = "host:2222";
        rows[i] = (struct status_row){ .member = &members[i] };
    }
    says.version = "0.1.0";
    says.sessions = 2;
    says.steps_per_s = 12.5;
    says.bytes_in_per_s = 1.5e6;
    says.memory = 42e6;
    rows[0].kind = STATUS_MUSTER;
    rows[0].says = &says;
    rows[0].state = MUSTER__MEMBER__STATE__ALIVE;
    members[0].state_since_ms = NOW - 125 * 60 * 1000;
    members[0].since_ms = NOW - 125 * 60 * 1000;
    rows[1].kind = STATUS_TENSORFLOW;
    rows[1].state = MUSTER__MEMBER__STATE__ALIVE;
    members[1].state_since_ms = NOW + 5000; /* its clock is ahead */
    members[1].sessions = 1;
    rows[2].state = MUSTER__MEMBER__STATE__GONE;
    members[2].state_since_ms = NOW - 30000;
    members[2].since_ms = NOW - 90000;
    members[2].epoch = 1;
    members[3].address = "";
    members[3].since_ms = NOW - 7000;
    members[3].epoch = 2;
    list.job = "ps";
    list.revision = 9;
    list.state_dir = "/state";
    view = (struct status_view){ .target = "host:2222",
                                 .list = &list,
                                 .rows = rows,
                                 .count = COUNT(rows),
                                 .now_ms = NOW };
    return 0;
}

static char *table(bool colour)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    status_print_table(&view, colour, out);
    fclose(out);
    return text;
}

static void test_table_has_a_line_a_member(void **state)
{
    char *text = table(false);

    assert_string_equal(
        text,
        "TASK      ADDRESS    STATE        SINCE  ADDED  SESSIONS  STEPS/S    "
        "IN/S  OUT/S  MEMORY  KIND\n"
        "ps/0      host:2222  alive    2 h 5 min      -         2     12.5  "
        "1.5 MB    0 B   42 MB  muster 0.1.0\n"
        "worker/0  host:2222  alive          0 s      -         1        -    "
        "   -      -       -  tensorflow\n"
        "worker/1  host:2222  gone          30 s  1 min         -        -    "
        "   -      -       -  -\n"
        "worker/2  -          removed        7 s      -         -        -    "
        "   -      -       -  -\n"
        "\n"
        "3 tasks, 2 alive, 1 gone; told by ps/0, revision 9, journal /state\n");
    free(text);
}

static void test_colours_are_used_only_if_asked_for(void **state)
{
    char *text = table(true);

    assert_non_null(strstr(text, "\033[31mgone   \033[0m"));
    assert_non_null(strstr(text, "\033[32malive  \033[0m"));
    free(text);
    text = table(false);
    assert_null(strchr(text, '\033'));
    free(text);
}

static json_t *json(void)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    json_t *ret;

    status_print_json(&view, true, out);
    fclose(out);
    assert_ptr_equal(strchr(text, '\n'), text + size - 1);
    ret = json_loads(text, 0, NULL);
    assert_non_null(ret);
    free(text);
    return ret;
}

static void test_json_has_all_that_is_known(void **state)
{
    json_t *o = json(), *all = json_object_get(o, "members");
    const char *kind, *st;
    double rate;

    assert_int_equal(json_integer_value(json_object_get(o, "revision")), 9);
    assert_int_equal(json_array_size(all), 4);
    assert_int_equal(json_unpack(json_array_get(all, 0), "{s:s, s:s, s:f}",
                                 "kind", &kind, "state", &st, "steps_per_s",
                                 &rate),
                     0);
    assert_string_equal(kind, "muster");
    assert_string_equal(st, "alive");
    assert_true(rate == 12.5);
    assert_true(
        json_is_null(json_object_get(json_array_get(all, 3), "address")));
    assert_true(json_is_null(json_object_get(json_array_get(all, 2), "kind")));
    json_decref(o);
}

#define TEST(f) cmocka_unit_test_setup(f, setup)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_table_has_a_line_a_member),
        TEST(test_colours_are_used_only_if_asked_for),
        TEST(test_json_has_all_that_is_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
