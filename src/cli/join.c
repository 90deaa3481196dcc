#include "cli/join.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "muster/cluster.h"

#define TRY_MS   5000
#define LEAVE_MS 1000
#define PAUSE_MS 100

/* A port that is free now. */
static int free_port(void)
{
    struct sockaddr_in6 a = { .sin6_family = AF_INET6 };
    socklen_t len = sizeof(a);
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0), port = 0;

    if (fd >= 0 && !bind(fd, (struct sockaddr *)&a, sizeof(a)) &&
        !getsockname(fd, (struct sockaddr *)&a, &len))
        port = ntohs(a.sin6_port);
    if (fd >= 0)
        close(fd);
    return port;
}

/* Where to listen: --bind is HOST, HOST:PORT, :PORT, PORT or nothing. */
static void choose_bind(struct serve_options *o, char **ret_host, int *ret_port)
{
    char *host = mem_str(o->bind ? o->bind : ""), *colon = strrchr(host, ':');
    bool only_port = *host && strspn(host, "0123456789") == strlen(host);

    if (colon && strchr(colon, ']'))
        colon = NULL;
    *ret_port = only_port ? atoi(host) : colon ? atoi(colon + 1) : 0;
    if (only_port)
        *host = '\0';
    if (colon)
        *colon = '\0';
    if (!*ret_port)
        *ret_port = free_port();
    mem_free(o->bind);
    o->bind = mem_printf("%s:%d", host, *ret_port);
    *ret_host = host;
}

/* What others call this worker: --advertise, or the address it listens on, or
 * (":port") the one that its parameter server sees it come from. */
static char *choose_address(const struct serve_options *o, const char *host,
                            int port)
{
    bool any = !*host || !strcmp(host, "0.0.0.0") || !strcmp(host, "[::]");

    if (!o->advertise)
        return mem_printf("%s:%d", any ? "" : host, port);
    if (strrchr(o->advertise, ':') && !strchr(strrchr(o->advertise, ':'), ']'))
        return mem_str(o->advertise);
    return mem_printf("%s:%d", o->advertise, port);
}

static enum mst_code take_members(struct serve_options *o,
                                  const struct mst_members *all,
                                  const struct mst_member *self,
                                  struct status *st)
{
    for (size_t i = 0; i < all->count; i++)
        if (all->at[i].address &&
            cluster_spec_add(&o->cluster, all->at[i].job, all->at[i].task,
                             all->at[i].address, st))
            return st->code;
    o->task_index = self->task;
    o->address = mem_str(self->address);
    return MST_OK;
}

/* Asks until the job's parameter servers are up; each reason for waiting is
 * said once. */
static enum mst_code ask(const struct serve_options *o, const char *address,
                         struct mst_members **all,
                         const struct mst_member **self,
                         struct mst_error *error)
{
    const struct mst_change_opts opts = { .job = o->job_name,
                                          .timeout_ms = TRY_MS };
    char said[sizeof(error->message)] = "";
    enum mst_code rc;

    for (;;) {
        rc = mst_cluster_join(o->join, address, &opts, all, self, error);
        if (rc != MST_UNAVAILABLE && rc != MST_DEADLINE_EXCEEDED)
            return rc;
        if (strcmp(said, error->message))
            log_line(LOG_INFO, "waiting to join the job of %s: %s", o->join,
                     error->message);
        memcpy(said, error->message, sizeof(said));
        usleep(PAUSE_MS * 1000);
    }
}

enum mst_code join_cluster(struct serve_options *o, struct status *st)
{
    const struct mst_member *self;
    struct mst_members *all;
    struct mst_error error;
    char *host, *address;
    enum mst_code rc;
    int port;

    choose_bind(o, &host, &port);
    address = choose_address(o, host, port);
    rc = ask(o, address, &all, &self, &error);
    if (rc) {
        status_set(st, rc, "%s", error.message);
    } else {
        rc = take_members(o, all, self, st);
        mst_members_free(all);
    }
    mem_free(host);
    mem_free(address);
    return rc;
}

void join_leave(const struct serve_options *o)
{
    const struct mst_change_opts opts = { .job = o->job_name,
                                          .only_at = o->address,
                                          .timeout_ms = LEAVE_MS };
    struct mst_error error;

    if (mst_cluster_remove_worker(o->join, o->task_index, &opts, NULL, &error))
        log_line(LOG_WARN, "the job was not told of the leave: %s",
                 error.message);
}
