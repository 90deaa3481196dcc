/*
 * What a training does in each step, worked out from the options and the
 * graph: which tensors are fed, from where, what is run, and which numbers are
 * reported.
 */
#ifndef CLI_TRAIN_PLAN_H
#define CLI_TRAIN_PLAN_H

#include "cli/train_options.h"
#include "client/meta_graph.h"
#include "client/session.h"
#include "train/data.h"

struct train_names {
    const char **list;
    int count, room;
};

struct train_plan {
    struct meta_graph graph;
    struct train_names feeds;   /* tensors */
    struct data_feed *sources;  /* by feed */
    struct train_names fetches; /* tensors; the global step's last, if any */
    struct train_names labels;  /* of the fetches that are reported */
    struct train_names targets; /* ops */
    struct train_names evals, eval_labels;
    struct train_names eval_feeds;
    struct data_feed *eval_sources;
};

/* Reads the graph and finds all names in it. */
enum mst_code train_plan_read(struct train_plan *p,
                              const struct train_options *o,
                              struct status *st) MUST_USE;
void train_plan_done(struct train_plan *p);

struct client_want train_plan_step(const struct train_plan *p);
struct client_want train_plan_eval(const struct train_plan *p);

/* A number out of a tensor of one element, whatever its type. */
enum mst_code train_plan_number(const struct tensor *t, const char *name,
                                double *ret, struct status *st) MUST_USE;

#endif
