/*
 * What `muster train` is told: the task, by the same options as `muster serve`
 * has them, the graph, the data, and when to stop and to save.
 */
#ifndef CLI_TRAIN_OPTIONS_H
#define CLI_TRAIN_OPTIONS_H

#include "cli/options.h"
#include "cli/serve_options.h"

struct train_options {
    struct serve_options task;
    char *meta_graph;
    char *data;                  /* files; NULL: none */
    struct option_words feeds;   /* "x=images.npy" */
    struct option_words fetches; /* "loss=mean:0" */
    struct option_words targets; /* ops */
    int batch, seed;
    bool shuffle;
    int steps;   /* of the global step; 0: no end */
    int seconds; /* 0: no end */
    char *checkpoint_dir;
    int save_steps, save_secs; /* 0: not by this */
    int keep;                  /* -1: as the graph says */
    struct option_words evals; /* "accuracy=acc:0" */
    char *eval_data;
    struct option_words eval_feeds;
    int log_steps; /* 0: by time */
    bool json, quiet, bench;
};

void train_options_done(struct train_options *o);
/* As serve_options_parse(). Without any cluster it is a job of one task. */
MUST_USE enum mst_code train_options_parse(struct train_options *o, int argc,
                                           char **argv, const char *tf_config,
                                           struct status *st);
void train_options_help(FILE *out);

#endif
