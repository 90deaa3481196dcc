/*
 * Old elements combined with new ones: what AssignAdd does to a variable and
 * what the scatter ops do to a row.
 */
#ifndef KERNEL_COMBINE_H
#define KERNEL_COMBINE_H

#include "kernel/types.h"

enum combine {
    COMBINE_SET,
    COMBINE_ADD, /* bool: or; string: one behind the other */
    COMBINE_SUB, /* bool: exclusive or */
    COMBINE_MUL,
    COMBINE_DIV, /* whole numbers: towards zero */
    COMBINE_MIN,
    COMBINE_MAX,
};

typedef void combine_fn(void *to, const void *old, const void *value,
                        int64_t n);

/* One of them for one type. */
struct combiner {
    enum combine how;
    enum dtype type;
    combine_fn *fn; /* NULL: SET, or objects */
    size_t size;    /* of an element; 0 for objects */
};

/* Whether there is such a combination. */
bool combiner_init(struct combiner *k, enum combine how, enum dtype type);
/* The one that an op's name ends with: "ScatterNdAdd". */
enum combine combine_of(const char *op_name);

/* to[i] = old[i] and value[i] combined, n elements of plain data; to and old
 * may be the same. */
void combine(const struct combiner *k, void *to, const void *old,
             const void *value, int64_t n);
/* The n elements of t from `at` on, with those of value from `value_at` on;
 * or with that one element alone when `one` is set. Any type. */
void combine_elems(const struct combiner *k, struct tensor *t, int64_t at,
                   const struct tensor *value, int64_t value_at, bool one,
                   int64_t n);

/* Rows of a kernel table that has the same function for each type. */
#define ROW_SAME(s, T, A, DT, LD, ST, fn) { DT, fn },

#endif
