#include "server/master_cluster.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cluster/spec_parse.h"
#include "wire/control.h"

bool master_cluster_filter(const struct session_config *config, const char *job,
                           int task)
{
    struct device_name d = { .replica = 0, .task = task, .id = -1 }, filter;

    snprintf(d.job, sizeof(d.job), "%s", job);
    for (int i = 0; i < config->filter_count; i++)
        if (device_parse(config->filters[i].text, config->filters[i].len,
                         &filter) &&
            device_compatible(&d, &filter))
            return true;
    return !config->filter_count;
}

/* ---- the client's cluster ---- */

static enum mst_code read_cluster(const struct session_config *config,
                                  struct cluster_spec *spec, struct status *st)
{
    Tensorflow__ClusterDef *def = CONTROL_UNPACK(
        tensorflow__cluster_def, config->cluster.data, config->cluster.len);
    enum mst_code rc;

    if (!def)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "The cluster_def cannot be read");
    rc = spec_parse_def(spec, def, st);
    control_free(def);
    return rc;
}

/* "grpc://host:port" without what is before the host. */
static struct message_text address_of(struct message_text target)
{
    for (size_t i = 0; i + 3 <= target.len; i++)
        if (!memcmp(target.data + i, "://", 3))
            return (struct message_text){ target.data + i + 3,
                                          target.len - i - 3 };
    return target;
}

static enum mst_code found_twice(const struct cluster_spec *spec,
                                 struct message_text target, struct status *st)
{
    status_set(st, MST_INVALID_ARGUMENT,
               "Found multiple matching tasks that correspond to to the "
               "master. Master target: '%.*s'. ClusterDef: ",
               (int)MIN(target.len, 200), target.data);
    for (int j = 0; j < spec->count; j++) {
        status_append(st, "%sjob { name: \"%s\"", j ? " " : "",
                      spec->jobs[j].name);
        for (int i = 0; i < spec->jobs[j].count; i++)
            status_append(st, " tasks { key: %d value: \"%s\" }",
                          spec->jobs[j].tasks[i].index,
                          spec->jobs[j].tasks[i].address);
        status_append(st, " }");
    }
    return MST_INVALID_ARGUMENT;
}

/* Which task of the cluster the master is. */
static enum mst_code find_own(const struct master *m,
                              const struct cluster_spec *spec,
                              struct message_text target, const char **ret_job,
                              int *ret_task, struct status *st)
{
    struct message_text address = address_of(target);

    *ret_job = NULL;
    for (int j = 0; j < spec->count; j++)
        for (int i = 0; i < spec->jobs[j].count; i++) {
            const struct cluster_task *t = &spec->jobs[j].tasks[i];

            if (strlen(t->address) != address.len ||
                memcmp(t->address, address.data, address.len))
                continue;
            if (*ret_job)
                return found_twice(spec, target, st);
            if (!strcmp(spec->jobs[j].name, m->job) && t->index == m->task)
                return status_set(
                    st, MST_INVALID_ARGUMENT,
                    "The ClusterSpec names the job and task index to be the "
                    "same names that were provided when the server booted. "
                    "This is currently not allowed. Job: %s, task index: %d",
                    m->job, m->task);
            *ret_job = spec->jobs[j].name;
            *ret_task = t->index;
        }
    if (!*ret_job)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "The ClusterSpec has no task at the session's "
                          "target '%.*s'",
                          (int)MIN(target.len, 200), target.data);
    return MST_OK;
}

enum mst_code master_cluster_choose(struct master *m, struct master_session *ms,
                                    const struct session_config *config,
                                    struct message_text target,
                                    struct status *st)
{
    struct cluster_spec spec;
    const char *own_job;
    int own_task, count = 0;
    enum mst_code rc;

    cluster_spec_init(&spec);
    rc = read_cluster(config, &spec, st);
    if (!rc)
        rc = find_own(m, &spec, target, &own_job, &own_task, st);
    if (!rc) {
        ms->peers = peers_new(m->loops, &spec);
        ms->tasks =
            mem_array((size_t)cluster_spec_size(&spec), sizeof(*ms->tasks));
    }
    for (int j = 0; j < spec.count && !rc; j++)
        for (int i = 0; i < spec.jobs[j].count; i++) {
            const char *job = spec.jobs[j].name;
            int task = spec.jobs[j].tasks[i].index;
            bool own = !strcmp(job, own_job) && task == own_task;

            if (!own && !master_cluster_filter(config, job, task))
                continue;
            ms->tasks[count].name =
                mem_printf("/job:%s/replica:0/task:%d", job, task);
            ms->tasks[count++].channel =
                own ? NULL : peers_channel(ms->peers, job, task);
        }
    ms->task_count = count;
    cluster_spec_done(&spec);
    return rc;
}

/* ---- what another task is told ---- */

static bool is_loopback(const char *address)
{
    return !strncmp(address, "localhost:", 10) ||
           !strncmp(address, "127.", 4) || !strncmp(address, "[::1]", 5);
}

static void put_task(struct pb_out *job, int task, const char *address)
{
    struct pb_out t;

    pb_out_init(&t);
    pb_put_uint(&t, 1, (uint64_t)task);
    pb_put_bytes(&t, 2, address, strlen(address));
    pb_put_bytes(job, 2, t.data, t.len);
    pb_out_done(&t);
}

/* The session's tasks, as this task knows them: those of one job follow each
 * other. */
static void put_known(const struct cluster_spec *now,
                      const struct master_session *ms, struct pb_out *cluster)
{
    char last[128] = "";
    struct pb_out job;

    pb_out_init(&job);
    for (int i = 0; i < ms->task_count; i++) {
        struct device_name d;
        const char *address;

        if (!device_parse(ms->tasks[i].name, strlen(ms->tasks[i].name), &d))
            continue;
        address = cluster_spec_address(now, d.job, d.task);
        if (!address)
            continue;
        if (strcmp(d.job, last)) {
            if (job.len)
                pb_put_bytes(cluster, 1, job.data, job.len);
            job.len = 0;
            pb_put_bytes(&job, 1, d.job, strlen(d.job));
            memcpy(last, d.job, sizeof(last));
        }
        put_task(&job, d.task, address);
    }
    pb_put_bytes(cluster, 1, job.data, job.len);
    pb_out_done(&job);
}

/* Our own address is not worth telling when it only means something on this
 * machine. */
static bool is_worth_telling(const struct master *m,
                             const struct cluster_spec *now,
                             const struct master_task *t)
{
    const char *here = cluster_spec_address(now, m->job, m->task);
    const char *there = NULL;
    struct device_name d;

    if (device_parse(t->name, strlen(t->name), &d))
        there = cluster_spec_address(now, d.job, d.task);
    return here && there && (!is_loopback(here) || is_loopback(there));
}

void master_cluster_put(const struct master *m, const struct master_session *ms,
                        const struct session_config *config, int task,
                        struct pb_out *server_def)
{
    struct cluster_spec now;
    struct pb_out cluster;

    if (config->cluster.len) {
        pb_put_bytes(server_def, 1, config->cluster.data, config->cluster.len);
        return;
    }
    if (ms->tasks[task].ours) /* its own table changes with the job's members */
        return;
    peers_cluster(worker_peers(m->worker), &now);
    if (is_worth_telling(m, &now, &ms->tasks[task])) {
        pb_out_init(&cluster);
        put_known(&now, ms, &cluster);
        pb_put_bytes(server_def, 1, cluster.data, cluster.len);
        pb_out_done(&cluster);
    }
    cluster_spec_done(&now);
}
