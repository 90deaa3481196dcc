/*
 * What a training says of itself: a line that changes on a terminal, lines
 * elsewhere, JSON on request. Reports go to standard output; what a person
 * should know besides (waiting, restoring) to standard error.
 */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include "base/base.h"

enum progress_style { PROGRESS_LINES, PROGRESS_LIVE, PROGRESS_JSON };

struct progress {
    enum progress_style style;
    bool quiet;
    int log_steps;       /* 0: by time */
    int64_t goal;        /* of the global step; 0: none */
    uint64_t begin_ns;   /* of the first step */
    uint64_t end_ns;     /* of the last */
    uint64_t shown_ns;   /* last report */
    int64_t shown_steps; /* steps at that time */
    int64_t steps;       /* of this worker */
    double first, last;  /* of the first number */
    bool live;           /* a line is there that is not ended */
};

struct progress_number {
    const char *name;
    double value;
};

/* Looks at standard output and NO_COLOR. */
void progress_init(struct progress *p, bool json, bool quiet, int log_steps,
                   int64_t goal);
/* After the first step was prepared: time counts from here. */
void progress_begin(struct progress *p);
/* A step was made; the first number is the one that it ends with, too. */
void progress_step(struct progress *p, int64_t global_step,
                   const struct progress_number *numbers, int count);
/* Something a person should know. */
void progress_say(struct progress *p, const char *text);
/* The end, with what was evaluated. */
void progress_end(struct progress *p, int64_t global_step,
                  const struct progress_number *evals, int count);

#endif
