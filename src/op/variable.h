/*
 * A variable: a tensor that updates change.
 *
 * Reading gives the tensor itself, one more reference to its bytes. What an
 * update may do to bytes that a reader has depends on how the variable is
 * reached.
 *
 * By resource handle: a reader keeps what it read. A dense update that finds
 * other references writes its result to new bytes as it computes it, at the
 * cost of no extra pass. A table that is updated by rows (scatter, sparse
 * apply) must not be copied for each few rows: after its first such update,
 * reading copies instead (copy_on_read), and row updates work in place.
 *
 * By reference edge (VariableV2): a reader sees what becomes of the variable.
 * All updates, Assign included, work in place whoever has the bytes. That is
 * TensorFlow's rule, and its programs rely on it: SyncReplicasOptimizer reads
 * the global step before it is counted up and wants the new value. It is also
 * the race that asynchronous training is built on.
 *
 * Lock: variable->lock guards the tensor and its elements while an update
 * runs. Several are taken in order of address: variable_lock_all().
 */
#ifndef OP_VARIABLE_H
#define OP_VARIABLE_H

#include <pthread.h>

#include "tensor/tensor.h"

struct variable {
    struct object o; /* kind: &variable_kind */
    pthread_mutex_t lock;
    struct tensor t; /* under lock; none until first assigned */
    int dtype;
    struct shape shape; /* as VariableV2 declares it; else unknown */
    bool by_ref;        /* reached by reference edges */
    bool copy_on_read;  /* under lock */
    char *name;
};

extern const struct object_kind variable_kind;

struct variable *variable_new(const char *name, int dtype, bool by_ref);
/* For one that begins a larger, zeroed object; its kind's free() ends with
 * variable_kind's. */
void variable_begin(struct variable *v, const struct object_kind *kind,
                    const char *name, int dtype, bool by_ref);
struct variable *variable_ref(struct variable *v);
void variable_unref(struct variable *v);

/* The value; *ret stays none when there is no value yet. */
enum mst_code variable_read(struct variable *v, struct tensor *ret,
                            struct status *st) MUST_USE;
/* Takes the tensor over, or copies it into place. */
void variable_assign(struct variable *v, struct tensor *value);

/* Locks several, each once, in order of address; some may be equal or NULL.
 * At most VARIABLE_LOCK_MAX. */
#define VARIABLE_LOCK_MAX 8
void variable_lock_all(struct variable *const *v, int count);
void variable_unlock_all(struct variable *const *v, int count);

/*
 * For dense updates, under the lock: where to write. *ret_new gets a tensor of
 * the variable's shape: its own bytes when they may be written (then old and
 * new are the same), else fresh ones. After the loop variable_publish() makes
 * it the value.
 */
enum mst_code variable_prepare(struct variable *v, struct tensor *ret_new,
                               struct status *st) MUST_USE;
void variable_publish(struct variable *v, struct tensor *new_value);
/* For updates of some rows, under the lock: makes the elements of v->t
 * writable in place (copies once if a reader has them and it must). */
enum mst_code variable_prepare_rows(struct variable *v,
                                    struct status *st) MUST_USE;

/* ---- for kernels ---- */

struct op_ctx;

/* The variable of input i, a reference edge or a resource handle, borrowed for
 * the length of the run; FAILED_PRECONDITION with TensorFlow's text when it
 * has no value and must_have is set. */
enum mst_code op_variable(struct op_ctx *c, int i, bool must_have,
                          struct variable **ret) MUST_USE;
/* Output i is the reference of input `in` (ref ops hand it on). */
void op_out_ref(struct op_ctx *c, int i, int in);

#endif
