/*
 * Lookup tables: from keys to values, both as rows of tensors. TensorFlow has
 * four forms of them. They differ in who may write when and in what a value
 * is; one table serves all:
 *
 *   static   written once, when it is initialised; values are scalars
 *   mutable  values are scalars
 *   tensors  values are vectors
 *   dense    values and keys of any shape; two keys are not allowed. What
 *            it exports and imports is a list of buckets, some of them empty.
 *
 * The rows lie close together in the order of their insertion, a removed one
 * gives its place to the last. An index leads from a key to its row.
 *
 * Threads: any; many readers at once.
 */
#ifndef KERNEL_TABLE_H
#define KERNEL_TABLE_H

#include <pthread.h>

#include "base/map.h"
#include "op/op.h"

enum table_form { TABLE_STATIC, TABLE_MUTABLE, TABLE_TENSORS, TABLE_DENSE };

struct table {
    struct object o; /* kind: &table_kind */
    char *container, *name;
    enum table_form form;
    int key_type, value_type;
    struct shape key_shape, value_shape;
    int64_t key_width, value_width;       /* elements a row */
    struct tensor empty_key, deleted_key; /* TABLE_DENSE; may be none */
    pthread_rwlock_t lock;
    /* All under lock. */
    bool ready;                 /* TABLE_STATIC: it has been initialised */
    struct map index;           /* key -> row + 1 */
    struct tensor keys, values; /* room rows, of which count are there */
    int64_t count, room;
    int64_t buckets; /* TABLE_DENSE: how many TensorFlow's would have */
    float load_max;
};

extern const struct object_kind table_kind;

struct table *table_new(const struct handle *h, enum table_form form,
                        int key_type, int value_type,
                        const struct shape *key_shape,
                        const struct shape *value_shape);

/* ---- under the lock; `at` counts rows of `keys` ---- */

/* The row of a key; -1 when it is not there. */
int64_t table_row(const struct table *t, const struct tensor *keys, int64_t at);
/* Sets the value of a key to row `from` of values. */
enum mst_code table_put(struct table *t, const struct tensor *keys, int64_t at,
                        const struct tensor *values, int64_t from,
                        struct status *st) MUST_USE;
/* The same for a key that must not have another value yet. */
enum mst_code table_put_once(struct table *t, const struct tensor *keys,
                             int64_t at, const struct tensor *values,
                             int64_t from, struct status *st) MUST_USE;
void table_remove(struct table *t, const struct tensor *keys, int64_t at);
void table_clear(struct table *t);

/* ---- for kernels ---- */

/* The table of input 0, with a reference for the caller. */
enum mst_code table_get(struct op_ctx *c, struct table **ret) MUST_USE;
/* A static table before it is initialised: OK, and locked for writing. One
 * that is initialised already, with as many rows: *ret_same is set. */
enum mst_code table_begin(struct op_ctx *c, struct table *t, int64_t rows,
                          bool *ret_same) MUST_USE;
/* The end of it: with an error the table is empty again. */
void table_end(struct table *t, enum mst_code rc);

#endif
