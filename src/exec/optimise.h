/*
 * What is done to a graph once its nodes are known and before it is laid out:
 * docs/adr/0014-optimiser.md.
 *
 * Every edge has been checked and every kernel chosen by then, so whatever a
 * graph is refused for, it is refused for with and without. Nothing that a step
 * returns or changes is different afterwards, to the bit, nor what it fails
 * with, to the text; but pure nodes whose values nobody reads are not run, and
 * so do not fail, as with TensorFlow.
 */
#ifndef EXEC_OPTIMISE_H
#define EXEC_OPTIMISE_H

#include "exec/plan.h"

/* Works on the inputs in g, and on the nodes of p that stand for its own. What
 * is not needed any more is marked as gone; numbers do not change. */
void optimise(struct plan *p, struct graph *g);

#endif
