/*
 * The texts that a cluster is told in. The first byte picks the form, so one
 * corpus serves all three. Whatever is accepted must survive the checks and
 * lookups that a server makes of it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cluster/spec.h"
#include "cluster/spec_parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum mst_code parse(char form, const char *text,
                           struct cluster_spec *spec, struct status *st)
{
    enum mst_code code;
    char *job = NULL;
    int task;

    switch (form) {
    case 'h':
        return spec_parse_hosts(spec, "ps", 0, text, st);
    case 'j':
        return spec_parse_jobs(spec, text, st);
    default:
        code = spec_parse_tf_config(spec, text, &job, &task, st);
        if (!code)
            mem_free(job);
        return code;
    }
}

static void use(const struct cluster_spec *spec, struct status *st)
{
    for (int j = 0; j < spec->count; j++)
        for (int t = 0; t < spec->jobs[j].count; t++) {
            const struct cluster_task *task = &spec->jobs[j].tasks[t];
            struct cluster_address a;
            const char *found;

            CHECK(!t || task->index > task[-1].index);
            CHECK(!cluster_spec_find(spec, spec->jobs[j].name, task->index,
                                     &found, st));
            CHECK(found == task->address);
            CHECK(!cluster_address_split(found, &a, st));
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct status st = STATUS_INIT;
    struct cluster_spec spec;
    char *text;

    if (!size)
        return 0;
    text = mem_strn((const char *)data + 1, size - 1);
    cluster_spec_init(&spec);
    if (!parse((char)data[0], text, &spec, &st)) {
        (void)!cluster_spec_check(&spec, &st);
        use(&spec, &st);
    }
    cluster_spec_done(&spec);
    mem_free(text);
    return 0;
}
