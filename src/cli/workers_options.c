#include "cli/workers_options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/options.h"

#define TIMEOUT_S 10

struct flags {
    char *ps_hosts, *job_name;
    int timeout_s;
    bool replace, help;
};

#define ROW(name, kind, field, value, help)                                    \
    {                                                                          \
        name, kind, offsetof(struct flags, field), value, help                 \
    }

#define PS_HOSTS                                                               \
    ROW("ps_hosts", OPTION_TEXT, ps_hosts, "HOSTS",                            \
        "the parameter servers of the job, host:port,host:port; they are "     \
        "tried in this order, and the first that answers tells the others")
#define OTHERS                                                                 \
    ROW("job_name", OPTION_TEXT, job_name, "NAME",                             \
        "the job of the task; worker if not given"),                           \
        ROW("timeout", OPTION_INT, timeout_s, "SECONDS",                       \
            "how long to wait for each answer; 10 if not given"),              \
        ROW("help", OPTION_HELP, help, NULL, "this text"),                     \
        ROW("target", OPTION_TEXT, ps_hosts, "HOSTS", NULL),                   \
        ROW("ps", OPTION_TEXT, ps_hosts, "HOSTS", NULL),                       \
        ROW("job", OPTION_TEXT, job_name, "NAME", NULL)

static const struct option add_table[] = {
    PS_HOSTS,
    ROW("replace", OPTION_SWITCH, replace, NULL,
        "move the worker also if the one that has the index is alive"),
    OTHERS,
    { 0 },
};

static const struct option remove_table[] = { PS_HOSTS, OTHERS, { 0 } };

void workers_options_help(bool adding, FILE *out)
{
    fputs(adding
              ? "Usage: muster add-worker --ps_hosts=HOSTS INDEX HOST:PORT\n"
                "       muster add-worker grpc://HOST:PORT INDEX HOST:PORT\n\n"
                "Adds a worker to a job that trains, or moves one that is gone "
                "to another\naddress. One parameter server that answers "
                "suffices; it tells the others.\n\n"
              : "Usage: muster remove-worker --ps_hosts=HOSTS INDEX\n"
                "       muster remove-worker grpc://HOST:PORT INDEX\n\n"
                "Takes a worker out of a job that trains. Its index can be "
                "used again later.\n\n",
          out);
    options_help(adding ? add_table : remove_table, out);
}

void workers_options_done(struct workers_options *o)
{
    targets_done(&o->targets);
    mem_free(o->job_name);
    mem_free(o->address);
    *o = (struct workers_options){ 0 };
}

/* Which numbers an index may have is for muster/cluster.h to say. */
static enum mst_code take_index(const char *word, int *ret, struct status *st)
{
    char *end;
    long n;

    errno = 0;
    n = strtol(word, &end, 10);
    if (end == word || *end || errno || n < INT32_MIN || n > INT32_MAX)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "The index of a worker is a number from 0 up, not "
                          "\"%s\"",
                          word);
    *ret = (int)n;
    return MST_OK;
}

/* [TARGET] INDEX [ADDRESS]: a target is known by its scheme, or by being one
 * word too many where nobody else is named. */
static enum mst_code take_words(struct workers_options *o, bool adding,
                                const struct option_words *w, struct status *st)
{
    int want = adding ? 2 : 1, at = 0;
    enum mst_code rc = MST_OK;

    while (at < w->count && !rc &&
           (targets_is_one(w->at[at]) ||
            (w->count - at == want + 1 && !o->targets.count)))
        rc = targets_add(&o->targets, w->at[at++], st);
    if (rc)
        return rc;
    if (w->count - at != want)
        return status_set(st, MST_INVALID_ARGUMENT,
                          adding ? "Give the worker's index and its address: "
                                   "2 host:port"
                                 : "Give the worker's index, and nothing else");
    if (!o->targets.count)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Whom to ask? Give --ps_hosts=host:port,... or "
                          "grpc://host:port");
    if (adding)
        o->address = mem_str(w->at[at + 1]);
    return take_index(w->at[at], &o->task, st);
}

enum mst_code workers_options_parse(struct workers_options *o, bool adding,
                                    int argc, char **argv, struct status *st)
{
    struct flags f = { .timeout_s = TIMEOUT_S };
    struct option_words words = { 0 };
    enum mst_code rc;

    *o = (struct workers_options){ 0 };
    rc = options_parse_words(adding ? add_table : remove_table, argc, argv, &f,
                             &words, st);
    o->help = f.help;
    if (!rc && !f.help) {
        if (f.ps_hosts)
            rc = targets_add(&o->targets, f.ps_hosts, st);
        if (!rc)
            rc = take_words(o, adding, &words, st);
        o->job_name = mem_str(f.job_name ? f.job_name : "worker");
        o->replace = f.replace;
        o->timeout_s = f.timeout_s;
    }
    mem_free(f.ps_hosts);
    mem_free(f.job_name);
    option_words_done(&words);
    return rc;
}
