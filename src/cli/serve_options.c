#include "cli/serve_options.h"

#include "base/mem.h"
#include "cli/bind.h"
#include "cli/options.h"
#include "cluster/spec_parse.h"

/* The flags as they were given; from them the options are worked out. */
struct flags {
    char *ps_hosts, *worker_hosts, *cluster;
    char *job_name, *bind, *log;
    int task_index, threads, loops;
    bool help;
};

#define ROW(name, kind, field, value, help)                                    \
    {                                                                          \
        name, kind, offsetof(struct flags, field), value, help                 \
    }

static const struct option table[] = {
    ROW("ps_hosts", OPTION_TEXT, ps_hosts, "HOSTS",
        "the tasks of job ps, host:port,host:port"),
    ROW("worker_hosts", OPTION_TEXT, worker_hosts, "HOSTS",
        "the tasks of job worker"),
    ROW("cluster", OPTION_TEXT, cluster, "JOBS",
        "any jobs at once, in place of the two above: "
        "ps=host:port,host:port;worker=host:port. worker/2=host:port lets a "
        "list begin with task 2."),
    ROW("job_name", OPTION_TEXT, job_name, "NAME",
        "the job of this task (ps, worker, ...)"),
    ROW("task_index", OPTION_INT, task_index, "N",
        "the number of this task within its job; 0 if not given"),
    ROW("bind", OPTION_TEXT, bind, "ADDRESS",
        "where to listen: HOST, HOST:PORT or :PORT (all addresses). If not "
        "given: what the cluster calls this task, if that is an address of "
        "this machine or localhost, else all addresses."),
    ROW("log", OPTION_WORD, log, "error|warn|info|debug",
        "how much to say on standard error; info if not given"),
    ROW("threads", OPTION_INT, threads, "N",
        "threads that compute; 0, as if not given, is one a CPU"),
    ROW("loops", OPTION_INT, loops, "N",
        "threads that serve connections; 0, as if not given, leaves it to the "
        "server"),
    ROW("help", OPTION_HELP, help, NULL, "this text"),
    /* Names that other launchers give to the same things. */
    ROW("ps", OPTION_TEXT, ps_hosts, "HOSTS", NULL),
    ROW("worker", OPTION_TEXT, worker_hosts, "HOSTS", NULL),
    ROW("job", OPTION_TEXT, job_name, "NAME", NULL),
    ROW("task", OPTION_INT, task_index, "N", NULL),
    { 0 },
};

static void flags_done(struct flags *f)
{
    mem_free(f->ps_hosts);
    mem_free(f->worker_hosts);
    mem_free(f->cluster);
    mem_free(f->job_name);
    mem_free(f->bind);
    mem_free(f->log);
}

void serve_options_done(struct serve_options *o)
{
    cluster_spec_done(&o->cluster);
    mem_free(o->job_name);
    mem_free(o->address);
    mem_free(o->bind);
    mem_free(o->log);
    *o = (struct serve_options){ 0 };
}

void serve_options_help(FILE *out)
{
    fputs("Usage: muster serve [options]\n\n"
          "Runs one task of a TensorFlow cluster until SIGTERM or SIGINT, in "
          "place of\ntf.distribute.Server. The cluster and the task come from "
          "the options, or from\nthe environment variable TF_CONFIG.\n\n",
          out);
    options_help(table, out);
}

static enum mst_code cluster_from_flags(struct cluster_spec *spec,
                                        const struct flags *f,
                                        struct status *st)
{
    enum mst_code code = MST_OK;

    if (f->cluster && (f->ps_hosts || f->worker_hosts))
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Give either --cluster or --ps_hosts and "
                          "--worker_hosts");
    if (f->cluster)
        return spec_parse_jobs(spec, f->cluster, st);
    if (f->ps_hosts)
        code = spec_parse_hosts(spec, "ps", 0, f->ps_hosts, st);
    if (!code && f->worker_hosts)
        code = spec_parse_hosts(spec, "worker", 0, f->worker_hosts, st);
    return code;
}

/* The cluster and, when TF_CONFIG has it and no flag does, the task. */
static enum mst_code take_cluster(struct serve_options *o,
                                  const struct flags *f, const char *tf_config,
                                  struct status *st)
{
    struct cluster_spec other;
    enum mst_code code;
    char *job = NULL;
    int task = -1;

    code = cluster_from_flags(&o->cluster, f, st);
    if (code)
        return code;
    if (tf_config && *tf_config) {
        cluster_spec_init(&other);
        code = spec_parse_tf_config(
            cluster_spec_size(&o->cluster) ? &other : &o->cluster, tf_config,
            &job, &task, st);
        cluster_spec_done(&other);
        if (code)
            return code;
    }
    if (!f->job_name && job) {
        o->job_name = mem_str(job);
        o->task_index = task;
    }
    mem_free(job);
    if (!cluster_spec_size(&o->cluster))
        return status_set(st, MST_INVALID_ARGUMENT,
                          "No cluster: give --ps_hosts and --worker_hosts, or "
                          "--cluster, or set TF_CONFIG");
    return cluster_spec_check(&o->cluster, st);
}

static enum mst_code take_task(struct serve_options *o, const struct flags *f,
                               struct status *st)
{
    const char *address;
    enum mst_code code;

    if (f->job_name)
        o->job_name = mem_str(f->job_name);
    if (f->task_index >= 0)
        o->task_index = f->task_index;
    if (!o->job_name && cluster_spec_size(&o->cluster) == 1) {
        o->job_name = mem_str(o->cluster.jobs[0].name);
        o->task_index = o->cluster.jobs[0].tasks[0].index;
    }
    if (!o->job_name)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Which task is this? Give --job_name and "
                          "--task_index");
    code = cluster_spec_find(&o->cluster, o->job_name, o->task_index, &address,
                             st);
    if (!code)
        o->address = mem_str(address);
    return code;
}

enum mst_code serve_options_parse(struct serve_options *o, int argc,
                                  char **argv, const char *tf_config,
                                  struct status *st)
{
    struct flags f = { .task_index = -1 };
    enum mst_code code;

    *o = (struct serve_options){ 0 };
    code = options_parse(table, argc, argv, &f, st);
    o->help = f.help;
    if (code || f.help)
        goto out;
    o->log = mem_str(f.log ? f.log : "info");
    o->threads = f.threads;
    o->loops = f.loops;
    code = take_cluster(o, &f, tf_config, st);
    if (!code)
        code = take_task(o, &f, st);
    if (!code)
        code = bind_choose(f.bind, o->address, &o->bind, st);
out:
    flags_done(&f);
    return code;
}
