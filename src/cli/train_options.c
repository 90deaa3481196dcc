#include "cli/train_options.h"

#include <string.h>

#include "base/mem.h"

#define BATCH 32

struct flags {
    struct serve_flags task; /* first: its rows are taken over */
    struct train_options o;
};

#define ROW(name, kind, field, value, help)                                    \
    {                                                                          \
        name, kind, offsetof(struct flags, o.field), value, help               \
    }

static const struct option table[] = {
    ROW("meta_graph", OPTION_TEXT, meta_graph, "FILE",
        "the graph: a MetaGraphDef or GraphDef that TensorFlow wrote"),
    ROW("data", OPTION_TEXT, data, "FILES",
        "TFRecord files of tf.train.Examples (a,b*,c), or one .npz"),
    ROW("feed", OPTION_LIST, feeds, "NAME=SOURCE",
        "what a placeholder, or a signature's input, is fed with: a .npy "
        "file, FILE.npz:ARRAY, or, with --data, a feature of the examples or "
        "an array of the archive; @record is a whole record. Once for each."),
    ROW("batch", OPTION_INT, batch, "N", "rows in a batch; 32 if not given"),
    ROW("shuffle", OPTION_SWITCH, shuffle, NULL,
        "take the rows in another order each time"),
    ROW("seed", OPTION_INT, seed, "N", "of the shuffling; 1 if not given"),
    ROW("target", OPTION_LIST, targets, "OP",
        "what a step runs; the graph's train_op if not given"),
    ROW("fetch", OPTION_LIST, fetches, "NAME=TENSOR",
        "a number to be reported; the graph's loss if not given. May be given "
        "several times."),
    ROW("steps", OPTION_INT, steps, "N",
        "stop when the global step has come to this; 0, as if not given: "
        "never"),
    ROW("seconds", OPTION_INT, seconds, "N", "stop after so long"),
    ROW("checkpoint_dir", OPTION_TEXT, checkpoint_dir, "FOLDER",
        "where the chief keeps checkpoints, and restores the newest from"),
    ROW("save_steps", OPTION_INT, save_steps, "N",
        "save each N steps; if neither this nor --save_secs is given, each "
        "600 s. At the end in any case."),
    ROW("save_secs", OPTION_INT, save_secs, "N", "save each N seconds"),
    ROW("keep", OPTION_INT, keep, "N",
        "how many checkpoints are kept, 0: all; if not given, as the graph's "
        "saver says"),
    ROW("eval", OPTION_LIST, evals, "NAME=TENSOR",
        "a number that the chief takes the mean of over the data for "
        "evaluation, at the end"),
    ROW("eval_data", OPTION_TEXT, eval_data, "FILES",
        "data for evaluation; as --data"),
    ROW("eval_feed", OPTION_LIST, eval_feeds, "NAME=SOURCE",
        "feeds for evaluation; those of --feed if not given"),
    ROW("log_steps", OPTION_INT, log_steps, "N",
        "report each N steps of this worker; if not given, now and then"),
    ROW("json", OPTION_SWITCH, json, NULL, "report in JSON, a line each"),
    ROW("quiet", OPTION_SWITCH, quiet, NULL, "report at the end only"),
    ROW("bench", OPTION_SWITCH, bench, NULL,
        "train on request: each line of standard input is a number of seconds, "
        "and is answered with the steps of that time, in JSON"),
    { 0 },
};

/* The rows of both tables; those of `muster serve` come last. */
#define ROWS_MAX 64

static void all_rows(struct option rows[ROWS_MAX])
{
    size_t n = 0;

    for (const struct option *o = table; o->name; o++)
        rows[n++] = *o;
    for (const struct option *o = serve_options_table; o->name; o++) {
        CHECK(n < ROWS_MAX - 1);
        rows[n++] = *o;
    }
    rows[n] = (struct option){ 0 };
}

void train_options_done(struct train_options *o)
{
    serve_options_done(&o->task);
    option_words_done(&o->feeds);
    option_words_done(&o->fetches);
    option_words_done(&o->targets);
    option_words_done(&o->evals);
    option_words_done(&o->eval_feeds);
    mem_free(o->meta_graph);
    mem_free(o->data);
    mem_free(o->checkpoint_dir);
    mem_free(o->eval_data);
    *o = (struct train_options){ 0 };
}

void train_options_help(FILE *out)
{
    fputs("Usage: muster train --meta_graph=FILE --feed NAME=SOURCE "
          "[options]\n\n"
          "Trains a graph that TensorFlow exported, as one worker of a job: "
          "runs the\nworker's task in this process, and steps until the end. "
          "The ps tasks are\n`muster serve`. Task 0, or that of job chief, "
          "initialises and saves.\n\n"
          "The cluster and the task are told as to `muster serve` "
          "(--ps_hosts, --worker_hosts,\n--cluster, --job_name, --task_index, "
          "--join, TF_CONFIG and the rest); without any\nit trains alone. "
          "Besides:\n\n",
          out);
    options_help(table, out);
    fputs("  --help                this text\n", out);
}

static enum mst_code check_pairs(const struct option_words *w, const char *name,
                                 struct status *st)
{
    for (int i = 0; i < w->count; i++) {
        const char *mark = strchr(w->at[i], '=');

        if (!mark || mark == w->at[i] || !mark[1])
            return status_set(st, MST_INVALID_ARGUMENT,
                              "--%s needs NAME=..., not \"%s\"", name,
                              w->at[i]);
    }
    return MST_OK;
}

static enum mst_code check(const struct train_options *o, struct status *st)
{
    if (!o->meta_graph)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Which graph? Give --meta_graph");
    if (check_pairs(&o->feeds, "feed", st) ||
        check_pairs(&o->fetches, "fetch", st) ||
        check_pairs(&o->evals, "eval", st) ||
        check_pairs(&o->eval_feeds, "eval_feed", st))
        return st->code;
    if (o->data && !o->feeds.count)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "What is fed from --data? Give --feed");
    if (!o->batch)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "--batch needs a number from 1 up");
    if (!o->checkpoint_dir && (o->save_steps || o->save_secs))
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Where to save? Give --checkpoint_dir");
    if (!o->evals.count && (o->eval_data || o->eval_feeds.count))
        return status_set(st, MST_INVALID_ARGUMENT,
                          "What is to be evaluated? Give --eval");
    return MST_OK;
}

static bool is_alone(const struct serve_flags *f, const char *tf_config)
{
    return !f->ps_hosts && !f->worker_hosts && !f->cluster && !f->join &&
           !(tf_config && *tf_config);
}

enum mst_code train_options_parse(struct train_options *o, int argc,
                                  char **argv, const char *tf_config,
                                  struct status *st)
{
    struct flags f = { .task = { .task_index = -1, .lease = -1 },
                       .o = { .batch = BATCH, .seed = 1, .keep = -1 } };
    struct option rows[ROWS_MAX];
    enum mst_code code, taken;
    bool help;

    all_rows(rows);
    code = options_parse(rows, argc, argv, &f, st);
    *o = f.o;
    help = f.task.help;
    if (!code && !help)
        code = check(o, st);
    if (code)
        f.task.help = true; /* so that nothing else is complained about */
    if (!f.task.log)
        f.task.log = mem_str("warn");
    if (is_alone(&f.task, tf_config))
        f.task.worker_hosts = mem_str("127.0.0.1:0");
    taken = serve_options_take(&o->task, &f.task, tf_config, st);
    o->task.help = help;
    if (!code && !taken && !help && !strcmp(o->task.job_name, "ps"))
        return status_set(st, MST_INVALID_ARGUMENT,
                          "A parameter server does not train: run `muster "
                          "serve` with these options");
    return code ? code : taken;
}
