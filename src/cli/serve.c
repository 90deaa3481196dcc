/* `muster serve`: runs one task of a cluster until it is told to stop. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/command.h"
#include "cli/serve_options.h"

int serve_main(int argc, char **argv)
{
    struct status st = STATUS_INIT;
    struct serve_options o;
    int rc = EXIT_SUCCESS;

    if (serve_options_parse(&o, argc, argv, getenv("TF_CONFIG"), &st)) {
        fprintf(stderr, "muster serve: %s\n", st.msg);
        rc = EXIT_USAGE;
    } else if (o.help) {
        serve_options_help(stdout);
    } else {
        fprintf(stderr, "muster serve: this build has no server yet\n");
        rc = EXIT_FAILURE;
    }
    serve_options_done(&o);
    return rc;
}
