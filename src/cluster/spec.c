#include "cluster/spec.h"

#include <ctype.h>
#include <string.h>

#include "base/mem.h"

void cluster_spec_init(struct cluster_spec *spec)
{
    *spec = (struct cluster_spec){ 0 };
}

void cluster_spec_done(struct cluster_spec *spec)
{
    for (int j = 0; j < spec->count; j++) {
        struct cluster_job *job = &spec->jobs[j];

        for (int t = 0; t < job->count; t++)
            mem_free(job->tasks[t].address);
        mem_free(job->tasks);
        mem_free(job->name);
    }
    mem_free(spec->jobs);
    cluster_spec_init(spec);
}

static enum mst_code bad_address(const char *text, const char *why,
                                 struct status *st)
{
    return status_set(st, MST_INVALID_ARGUMENT,
                      "Could not interpret \"%s\" as a host-port pair: %s",
                      text, why);
}

/* The digits of a port up to the end of the text; -1 when they are none. */
static int port_parse(const char *text)
{
    int port = 0;

    if (!*text)
        return -1;
    for (; *text; text++) {
        if (!isdigit((unsigned char)*text))
            return -1;
        port = port * 10 + (*text - '0');
        if (port > 65535)
            return -1;
    }
    return port;
}

static bool host_char(char c)
{
    return isalnum((unsigned char)c) || (c && strchr("-._:%", c)) || c & 0x80;
}

enum mst_code cluster_address_split(const char *text,
                                    struct cluster_address *ret,
                                    struct status *st)
{
    struct cluster_address a = { .host = text };
    const char *end, *colon = strrchr(text, ':');

    if (*text == '[') {
        a.host++;
        end = strchr(text, ']');
        if (!end)
            return bad_address(text, "the bracket is not closed", st);
        colon = end[1] == ':' ? end + 1 : NULL;
    } else {
        end = colon;
    }
    if (!colon)
        return bad_address(text, "it has no port (host:port is needed)", st);
    a.host_len = (int)(end - a.host);
    if (!a.host_len)
        return bad_address(text, "the host is empty", st);
    if (*text != '[' && memchr(text, ':', (size_t)a.host_len))
        return bad_address(text, "an IPv6 address goes in brackets", st);
    for (int i = 0; i < a.host_len; i++)
        if (!host_char(a.host[i]))
            return bad_address(text, "that is no host name", st);
    a.port = port_parse(colon + 1);
    if (a.port < 0)
        return bad_address(text, "the port must be a number up to 65535", st);
    *ret = a;
    return MST_OK;
}

bool cluster_job_valid(const char *name)
{
    if (!isalpha((unsigned char)*name))
        return false;
    while (isalnum((unsigned char)*name) || *name == '_')
        name++;
    return !*name;
}

static struct cluster_job *find_job(const struct cluster_spec *spec,
                                    const char *name)
{
    for (int i = 0; i < spec->count; i++)
        if (!strcmp(spec->jobs[i].name, name))
            return &spec->jobs[i];
    return NULL;
}

static struct cluster_job *need_job(struct cluster_spec *spec, const char *name)
{
    struct cluster_job *job = find_job(spec, name);

    if (!job) {
        job = MEM_PUSH(spec->jobs, spec->count, spec->room);
        *job = (struct cluster_job){ .name = mem_str(name) };
    }
    return job;
}

/* Where the task stands, or would have to stand. */
static int task_place(const struct cluster_job *job, int index)
{
    int low = 0, high = job->count;

    while (low < high) {
        int mid = low + (high - low) / 2;

        if (job->tasks[mid].index < index)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

enum mst_code cluster_spec_add(struct cluster_spec *spec, const char *job,
                               int task, const char *address, struct status *st)
{
    struct cluster_address parts;
    struct cluster_job *j;
    enum mst_code code;
    int at;

    if (!cluster_job_valid(job))
        return status_set(st, MST_INVALID_ARGUMENT,
                          "\"%s\" is no job name: letters, digits and '_', "
                          "beginning with a letter",
                          job);
    if (task < 0)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Task index %d of job %s is negative", task, job);
    code = cluster_address_split(address, &parts, st);
    if (code)
        return code;
    j = need_job(spec, job);
    at = task_place(j, task);
    if (at < j->count && j->tasks[at].index == task)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Task %d of job %s is named twice: %s and %s", task,
                          job, j->tasks[at].address, address);
    (void)MEM_PUSH(j->tasks, j->count, j->room);
    memmove(&j->tasks[at + 1], &j->tasks[at],
            sizeof(*j->tasks) * (size_t)(j->count - 1 - at));
    j->tasks[at] = (struct cluster_task){ task, mem_str(address) };
    return MST_OK;
}

void cluster_spec_remove(struct cluster_spec *spec, const char *job, int task)
{
    struct cluster_job *j = find_job(spec, job);
    int at = j ? task_place(j, task) : 0;

    if (!j || at == j->count || j->tasks[at].index != task)
        return;
    mem_free(j->tasks[at].address);
    j->count--;
    memmove(&j->tasks[at], &j->tasks[at + 1],
            sizeof(*j->tasks) * (size_t)(j->count - at));
}

void cluster_spec_copy(struct cluster_spec *dst, const struct cluster_spec *src)
{
    cluster_spec_init(dst);
    for (int j = 0; j < src->count; j++) {
        const struct cluster_job *from = &src->jobs[j];
        struct cluster_job *to = need_job(dst, from->name);

        to->count = to->room = from->count;
        to->tasks = mem_array((size_t)from->count, sizeof(*to->tasks));
        for (int t = 0; t < from->count; t++)
            to->tasks[t] =
                (struct cluster_task){ from->tasks[t].index,
                                       mem_str(from->tasks[t].address) };
    }
}

/* A task, counted through all jobs. */
static const struct cluster_task *nth(const struct cluster_spec *spec, int n,
                                      const char **ret_job)
{
    for (int j = 0; j < spec->count; j++) {
        *ret_job = spec->jobs[j].name;
        if (n < spec->jobs[j].count)
            return &spec->jobs[j].tasks[n];
        n -= spec->jobs[j].count;
    }
    return NULL;
}

static bool port_is_open(const char *address)
{
    return strcmp(strrchr(address, ':'), ":0") == 0;
}

enum mst_code cluster_spec_check(const struct cluster_spec *spec,
                                 struct status *st)
{
    const struct cluster_task *a, *b;
    const char *job_a, *job_b;

    for (int i = 0; (a = nth(spec, i, &job_a)); i++)
        for (int k = 0; k < i; k++) {
            b = nth(spec, k, &job_b);
            if (!strcmp(a->address, b->address) && !port_is_open(a->address))
                return status_set(st, MST_INVALID_ARGUMENT,
                                  "%s is the address of two tasks: "
                                  "/job:%s/task:%d and /job:%s/task:%d",
                                  a->address, job_b, b->index, job_a, a->index);
        }
    return MST_OK;
}

const struct cluster_job *cluster_spec_job(const struct cluster_spec *spec,
                                           const char *job)
{
    return find_job(spec, job);
}

const char *cluster_spec_address(const struct cluster_spec *spec,
                                 const char *job, int task)
{
    const struct cluster_job *j = find_job(spec, job);
    int at;

    if (!j)
        return NULL;
    at = task_place(j, task);
    if (at == j->count || j->tasks[at].index != task)
        return NULL;
    return j->tasks[at].address;
}

int cluster_spec_size(const struct cluster_spec *spec)
{
    int n = 0;

    for (int j = 0; j < spec->count; j++)
        n += spec->jobs[j].count;
    return n;
}

enum mst_code cluster_spec_find(const struct cluster_spec *spec,
                                const char *job, int task,
                                const char **ret_address, struct status *st)
{
    const struct cluster_job *j = find_job(spec, job);
    const char *address = cluster_spec_address(spec, job, task);

    if (address) {
        *ret_address = address;
        return MST_OK;
    }
    if (j) {
        status_set(st, MST_INVALID_ARGUMENT,
                   "Job %s has no task %d. The cluster names", job, task);
        for (int t = 0; t < j->count; t++)
            status_append(st, "%s %d (%s)", t ? "," : "", j->tasks[t].index,
                          j->tasks[t].address);
        return st->code;
    }
    status_set(st, MST_INVALID_ARGUMENT,
               "The cluster has no job \"%s\". It names", job);
    for (int i = 0; i < spec->count; i++)
        status_append(st, "%s %s", i ? "," : "", spec->jobs[i].name);
    return st->code;
}
