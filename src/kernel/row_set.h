/*
 * A set of rows of tensors, to tell equal ones: for Unique and its relatives.
 * A row is `length` elements; a tensor of single elements has rows of one.
 *
 * Equal means what == means for the type: 0 and -0 are, NaNs never are. Types
 * that have no == (complex numbers, objects) are not supported.
 */
#ifndef KERNEL_ROW_SET_H
#define KERNEL_ROW_SET_H

#include "op/op.h"

struct row_kind;

struct row_set {
    const struct row_kind *kind;
    const struct tensor *rows; /* whose rows are in the set */
    int64_t length;
    struct tensor slots; /* int32: number of a row, plus 1; 0: free */
    int64_t mask;
};

/* Room for `count` rows. Fails for a type without rows, or for want of
 * memory. */
enum mst_code row_set_init(struct row_set *s, const struct tensor *rows,
                           int64_t length, int64_t count,
                           struct status *st) MUST_USE;
void row_set_done(struct row_set *s);
/* The number of the row in the set that equals row i of t; -1 when there is
 * none. With `add`, row i of s->rows is added then. */
int64_t row_set_find(struct row_set *s, const struct tensor *t, int64_t i,
                     bool add);

#endif
