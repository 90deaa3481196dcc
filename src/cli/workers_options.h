/*
 * What `muster add-worker` and `muster remove-worker` are told: whom to ask,
 * which task and, for the first, its address.
 */
#ifndef CLI_WORKERS_OPTIONS_H
#define CLI_WORKERS_OPTIONS_H

#include <stdio.h>

#include "cli/targets.h"

struct workers_options {
    struct targets targets;
    char *job_name;
    int task;
    char *address; /* NULL for the removal */
    bool replace;
    int timeout_s;
    bool help; /* nothing else was looked at */
};

/* argv are the words after the subcommand. To be done with in any case. */
MUST_USE enum mst_code workers_options_parse(struct workers_options *o,
                                             bool adding, int argc, char **argv,
                                             struct status *st);
void workers_options_done(struct workers_options *o);
void workers_options_help(bool adding, FILE *out);

#endif
