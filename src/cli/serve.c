/*
 * `muster serve`: runs one task of a cluster until it is told to stop.
 *
 * SIGTERM and SIGINT end it in order: no new calls, a moment for those under
 * way, exit 0. A second signal does not wait.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "cli/command.h"
#include "cli/join.h"
#include "cli/serve_options.h"
#include "server/server.h"

#define GRACE_MS 2000

static int serve(struct serve_options *o)
{
    struct status st = STATUS_INIT;
    struct server *server;
    sigset_t stop;
    int got;

    (void)log_set_level(o->log);
    signal(SIGPIPE, SIG_IGN);
    if (o->join && join_cluster(o, &st)) {
        fprintf(stderr, "muster serve: %s\n", st.msg);
        return EXIT_FAILURE;
    }
    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    sigaddset(&stop, SIGINT);
    /* Blocked in all threads, which inherit this; waited for below. */
    pthread_sigmask(SIG_BLOCK, &stop, NULL);
    if (server_start(&(struct server_opts){ .job = o->job_name,
                                            .task = o->task_index,
                                            .cluster = &o->cluster,
                                            .bind = o->bind,
                                            .threads = o->threads,
                                            .loops = o->loops,
                                            .state_dir = o->state_dir,
                                            .job_id = o->job_id,
                                            .lease_s = o->lease_s },
                     &server, &st)) {
        fprintf(stderr, "muster serve: %s\n", st.msg);
        return EXIT_FAILURE;
    }
    printf("muster: /job:%s/task:%d ready, listening on port %d\n", o->job_name,
           o->task_index, server_port(server));
    fflush(stdout);
    sigwait(&stop, &got);
    log_line(LOG_INFO, "stopping");
    pthread_sigmask(SIG_UNBLOCK, &stop, NULL);
    if (o->join)
        join_leave(o);
    server_stop(server, GRACE_MS);
    return EXIT_SUCCESS;
}

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
        rc = serve(&o);
    }
    serve_options_done(&o);
    return rc;
}
