#include "cli/serve_options.h"

#include <string.h>

#include "base/mem.h"
#include "cli/bind.h"
#include "cli/options.h"
#include "cluster/spec_parse.h"

#define ROW(name, kind, field, value, help)                                    \
    {                                                                          \
        name, kind, offsetof(struct serve_flags, field), value, help           \
    }

const struct option serve_options_table[] = {
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
    ROW("join", OPTION_TEXT, join, "ADDRESS",
        "a parameter server of a job that runs: this worker asks there for its "
        "index and the cluster, in place of the options above, and leaves when "
        "it stops. --bind says where to listen; if not given, on all "
        "addresses, at a port that is free."),
    ROW("advertise", OPTION_TEXT, advertise, "HOST[:PORT]",
        "with --join: what the others call this worker. If not given: the "
        "address it listens on, or the one it is seen to come from."),
    ROW("state_dir", OPTION_TEXT, state_dir, "FOLDER",
        "where a parameter server keeps who joined and left: "
        "$MUSTER_STATE_DIR, "
        "$STATE_DIRECTORY, $XDG_STATE_HOME/muster or ~/.local/state/muster if "
        "not given. \"none\": in memory only."),
    ROW("job_id", OPTION_TEXT, job_id, "NAME",
        "of the job, so that it does not begin with who joined an earlier one "
        "on the same parameter servers. The same for each of them and at each "
        "restart. $MUSTER_JOB_ID if not given; none: any job with the same "
        "--ps_hosts is the same job."),
    ROW("lease", OPTION_INT, lease, "SECONDS",
        "after which the sessions of a worker that is gone are dropped; 0 is "
        "never. If not given: 60 for workers of muster, never for "
        "TensorFlow's."),
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

static char *take(char **text)
{
    char *taken = *text;

    *text = NULL;
    return taken;
}

static void flags_done(struct serve_flags *f)
{
    mem_free(f->ps_hosts);
    mem_free(f->worker_hosts);
    mem_free(f->cluster);
    mem_free(f->job_name);
    mem_free(f->bind);
    mem_free(f->log);
    mem_free(f->state_dir);
    mem_free(f->job_id);
    mem_free(f->join);
    mem_free(f->advertise);
}

void serve_options_done(struct serve_options *o)
{
    cluster_spec_done(&o->cluster);
    mem_free(o->job_name);
    mem_free(o->address);
    mem_free(o->bind);
    mem_free(o->log);
    mem_free(o->state_dir);
    mem_free(o->job_id);
    mem_free(o->join);
    mem_free(o->advertise);
    *o = (struct serve_options){ 0 };
}

void serve_options_help(FILE *out)
{
    fputs("Usage: muster serve [options]\n\n"
          "Runs one task of a TensorFlow cluster until SIGTERM or SIGINT, in "
          "place of\ntf.distribute.Server. The cluster and the task come from "
          "the options, or from\nthe environment variable TF_CONFIG.\n\n",
          out);
    options_help(serve_options_table, out);
}

static enum mst_code cluster_from_flags(struct cluster_spec *spec,
                                        const struct serve_flags *f,
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
                                  const struct serve_flags *f,
                                  const char *tf_config, struct status *st)
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

static enum mst_code take_task(struct serve_options *o,
                               const struct serve_flags *f, struct status *st)
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

/* With --join everything else is to be asked for. */
static enum mst_code take_join(struct serve_options *o, struct serve_flags *f,
                               struct status *st)
{
    struct cluster_address parts;

    if (f->ps_hosts || f->worker_hosts || f->cluster || f->task_index >= 0)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "With --join the cluster and the task are asked for: "
                          "give no --ps_hosts, --worker_hosts, --cluster or "
                          "--task_index");
    o->join = take(&f->join);
    o->bind = take(&f->bind);
    o->job_name = f->job_name ? take(&f->job_name) : mem_str("worker");
    return cluster_address_split(
        strstr(o->join, "://") ? strstr(o->join, "://") + 3 : o->join, &parts,
        st);
}

enum mst_code serve_options_take(struct serve_options *o, struct serve_flags *f,
                                 const char *tf_config, struct status *st)
{
    enum mst_code code;

    *o = (struct serve_options){ 0 };
    o->help = f->help;
    o->log = mem_str(f->log ? f->log : "info");
    o->threads = f->threads;
    o->loops = f->loops;
    o->lease_s = f->lease < 0 ? 0 : f->lease == 0 ? -1 : f->lease;
    o->state_dir = take(&f->state_dir);
    o->job_id = take(&f->job_id);
    o->advertise = take(&f->advertise);
    if (f->help) {
        code = MST_OK;
    } else if (f->join) {
        code = take_join(o, f, st);
    } else {
        code = take_cluster(o, f, tf_config, st);
        if (!code)
            code = take_task(o, f, st);
        if (!code)
            code = bind_choose(f->bind, o->address, &o->bind, st);
    }
    flags_done(f);
    return code;
}

enum mst_code serve_options_parse(struct serve_options *o, int argc,
                                  char **argv, const char *tf_config,
                                  struct status *st)
{
    struct serve_flags f = { .task_index = -1, .lease = -1 };
    enum mst_code code;

    *o = (struct serve_options){ 0 };
    code = options_parse(serve_options_table, argc, argv, &f, st);
    if (code) {
        flags_done(&f);
        return code;
    }
    return serve_options_take(o, &f, tf_config, st);
}
