/*
 * The state of random ops: a stream per node, or per node name of a session,
 * that goes on from run to run.
 */
#ifndef KERNEL_RANDOM_STATE_H
#define KERNEL_RANDOM_STATE_H

#include "kernel/philox.h"
#include "op/op.h"

/* What TensorFlow reserves of a stream for an output, in blocks. */
#define RANDOM_RESERVE 256

/* For init(): makes node->state from the attributes seed and seed2. */
enum mst_code random_state_init(struct op_node *n, struct status *st);
void random_state_done(struct op_node *n);
/* The generator, and moves the state on by that many blocks. */
struct philox random_reserve(struct op_ctx *c, uint64_t blocks);

/* The generator of a stateless op's seed, input i. */
enum mst_code random_scramble(struct op_ctx *c, int i,
                              struct philox *ret) MUST_USE;

#endif
