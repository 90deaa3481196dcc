#include "train/checkpoint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "store/file.h"

static char folder[64];

static int setup(void **state)
{
    snprintf(folder, sizeof(folder), "/tmp/muster-test-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int teardown(void **state)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -r %s", folder);
    return system(command);
}

static void touch(const char *name)
{
    struct status st = STATUS_INIT;
    char path[128];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    assert_int_equal(file_write(path, "x", 1, &st), MST_OK);
}

static bool exists(const char *name)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return file_exists(path);
}

static void test_the_newest_few_are_kept(void **state)
{
    struct status st = STATUS_INIT;
    struct checkpoint_dir c;
    char name[64], *latest;

    assert_int_equal(checkpoint_open(&c, folder, &st), MST_OK);
    assert_null(checkpoint_latest(&c));
    for (int step = 10; step <= 50; step += 10) {
        snprintf(name, sizeof(name), "model.ckpt-%d.index", step);
        touch(name);
        snprintf(name, sizeof(name), "model.ckpt-%d.data-00000-of-00001", step);
        touch(name);
        assert_int_equal(checkpoint_add(&c, step, 2, &st), MST_OK);
    }
    assert_false(exists("model.ckpt-30.index"));
    assert_false(exists("model.ckpt-30.data-00000-of-00001"));
    assert_true(exists("model.ckpt-40.index"));
    checkpoint_close(&c);
    assert_int_equal(checkpoint_open(&c, folder, &st), MST_OK);
    assert_int_equal(c.count, 2);
    latest = checkpoint_latest(&c);
    assert_string_equal(latest + strlen(latest) - 14, "/model.ckpt-50");
    mem_free(latest);
    checkpoint_close(&c);
}

static void test_tensorflows_file_is_read(void **state)
{
    struct status st = STATUS_INIT;
    char path[128], text[512], *latest;
    struct checkpoint_dir c;

    snprintf(text, sizeof(text),
             "model_checkpoint_path: \"%s/model.ckpt-7\"\n"
             "all_model_checkpoint_paths: \"%s/model.ckpt-3\"\n"
             "all_model_checkpoint_paths: \"%s/model.ckpt-7\"\n"
             "all_model_checkpoint_timestamps: 1700000000.5\n",
             folder, folder, folder);
    snprintf(path, sizeof(path), "%s/checkpoint", folder);
    assert_int_equal(file_write(path, text, strlen(text), &st), MST_OK);
    touch("model.ckpt-3.index");
    assert_int_equal(checkpoint_open(&c, folder, &st), MST_OK);
    assert_int_equal(c.count, 2);
    assert_string_equal(c.names[1], "model.ckpt-7");
    latest = checkpoint_latest(&c); /* 7 is not there */
    assert_non_null(strstr(latest, "model.ckpt-3"));
    mem_free(latest);
    checkpoint_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_newest_few_are_kept, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_tensorflows_file_is_read, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
