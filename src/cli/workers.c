/*
 * `muster add-worker` and `muster remove-worker`: a change of who is in a
 * running job, asked of one parameter server after the other until one says
 * yes or no.
 */
#include "cli/workers_options.h"

#include <stdlib.h>

#include "base/mem.h"
#include "cli/command.h"
#include "cluster/spec_parse.h"
#include "muster/cluster.h"

static const char *name_of(bool adding)
{
    return adding ? "add-worker" : "remove-worker";
}

static enum mst_code ask(const struct workers_options *o, const char *target,
                         struct mst_change *change, struct mst_error *error)
{
    struct mst_change_opts opts = { .job = o->job_name,
                                    .replace = o->replace,
                                    .timeout_ms =
                                        (uint64_t)o->timeout_s * 1000 };

    return o->address ? mst_cluster_add_worker(target, o->task, o->address,
                                               &opts, change, error)
                      : mst_cluster_remove_worker(target, o->task, &opts,
                                                  change, error);
}

static void print_change(const struct workers_options *o,
                         const struct mst_change *c)
{
    printf("/job:%s/task:%d ", o->job_name, o->task);
    if (o->address) {
        char *address = spec_parse_squeeze(o->address);

        printf("%s at %s%s", c->changed ? "is" : "was", address,
               c->changed ? "" : " already");
        mem_free(address);
    } else {
        fputs(c->changed ? "is removed" : "was removed already", stdout);
    }
    printf("; %u ps %s it", c->reached, c->reached == 1 ? "has" : "have");
    if (c->missed)
        printf(", %u more will when %s back", c->missed,
               c->missed == 1 ? "it is" : "they are");
    putchar('\n');
}

/* The text of each that could not be asked is worth reading only if no other
 * could. */
static int change(const struct workers_options *o)
{
    struct mst_error *errors =
        mem_array((size_t)o->targets.count, sizeof(*errors));
    struct mst_change done = { 0 };
    enum mst_code rc = MST_OK;
    int i, tried = 0;

    do {
        rc = ask(o, o->targets.at[tried], &done, &errors[tried]);
    } while (targets_try_next(rc) && ++tried < o->targets.count);
    if (!rc)
        print_change(o, &done);
    else if (!targets_try_next(rc))
        fprintf(stderr, "muster %s: %s\n", name_of(o->address),
                errors[tried].message);
    else
        for (i = 0; i < tried; i++)
            fprintf(stderr, "muster %s: %s\n", name_of(o->address),
                    errors[i].message);
    mem_free(errors);
    if (rc == MST_INVALID_ARGUMENT)
        return EXIT_USAGE;
    return rc ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int workers_main(bool adding, int argc, char **argv)
{
    struct status st = STATUS_INIT;
    struct workers_options o;
    int rc = EXIT_SUCCESS;

    if (workers_options_parse(&o, adding, argc, argv, &st)) {
        fprintf(stderr, "muster %s: %s\n", name_of(adding), st.msg);
        rc = EXIT_USAGE;
    } else if (o.help) {
        workers_options_help(adding, stdout);
    } else {
        rc = change(&o);
    }
    workers_options_done(&o);
    return rc;
}

int add_worker_main(int argc, char **argv)
{
    return workers_main(true, argc, argv);
}

int remove_worker_main(int argc, char **argv)
{
    return workers_main(false, argc, argv);
}
