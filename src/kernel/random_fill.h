/*
 * Tensors full of random numbers, for the ops that have a state and those
 * that have none; and the state of the former.
 */
#ifndef KERNEL_RANDOM_FILL_H
#define KERNEL_RANDOM_FILL_H

#include "kernel/philox.h"
#include "op/op.h"

enum random_kind {
    RANDOM_UNIFORM, /* [0, 1) */
    RANDOM_NORMAL,
    RANDOM_TRUNCATED, /* a normal one within two deviations */
    RANDOM_INT,       /* lo + word % range */
    RANDOM_BITS,      /* any whole number */
};

/* The range of RANDOM_INT, in the bits of the output's type. */
struct random_range {
    uint64_t low, range;
};

/* Fills output 0, which is there already, from the generator. */
void random_fill(struct op_ctx *c, enum random_kind kind, struct philox gen,
                 const struct random_range *range);

/* Reads minval and maxval from inputs i and i + 1. */
enum mst_code random_range(struct op_ctx *c, int i, int64_t outputs,
                           struct random_range *ret) MUST_USE;

/* Two normal numbers from two uniform words, or from four. */
void random_box_muller(uint32_t a, uint32_t b, float ret[2]);
void random_box_muller64(const uint32_t word[4], double ret[2]);

#endif
