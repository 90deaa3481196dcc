/*
 * One op run by itself, without a graph: for unit tests and fuzzers.
 *
 *   struct harness h;
 *   harness_init(&h, "Neg");
 *   harness_type(&h, "T", DT_FLOAT);
 *   harness_in(&h, harness_floats(1, (int64_t[]){ 2 }, (float[]){ 1, 2 }));
 *   assert_int_equal(harness_run(&h), MST_OK);
 *   … h.out[0].t …
 *   harness_done(&h);
 *
 * An asynchronous op may not have finished when harness_run() returns
 * OP_LATER; harness_wait() waits for it.
 */
#ifndef OP_HARNESS_H
#define OP_HARNESS_H

#include "op/op.h"

#define HARNESS_ARGS_MAX 64

struct harness {
    struct arena arena;
    struct op_env env;
    struct op_node node;
    struct op_step step;
    struct cancel cancel;
    struct attr attrs[24];
    struct op_value in[HARNESS_ARGS_MAX], out[HARNESS_ARGS_MAX];
    int in_count;
    struct op_ctx ctx;
    _Alignas(16) uint8_t scratch[OP_SCRATCH];
    struct status st;
    bool ready; /* completed and initialised */
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool finished;      /* under lock */
    enum mst_code code; /* under lock */
};

void harness_init(struct harness *h, const char *op);
void harness_done(struct harness *h);
/* Variables, queues … of several harnesses can be the same ones. */
void harness_share(struct harness *h, struct resources *r);
void harness_name(struct harness *h, const char *node_name);

void harness_int(struct harness *h, const char *attr, int64_t value);
void harness_float(struct harness *h, const char *attr, float value);
void harness_bool(struct harness *h, const char *attr, bool value);
void harness_str(struct harness *h, const char *attr, const char *value);
void harness_type(struct harness *h, const char *attr, int dt);
void harness_types(struct harness *h, const char *attr, int count,
                   const int *dts);
void harness_ints(struct harness *h, const char *attr, int count,
                  const int64_t *values);
void harness_shape(struct harness *h, const char *attr, int ndim,
                   const int64_t *dims);
void harness_shapes(struct harness *h, const char *attr, int count,
                    const struct shape *shapes);
/* Functions of a library, by name. */
void harness_func(struct harness *h, const char *attr, const char *name);
void harness_funcs(struct harness *h, const char *attr, int count,
                   const char *const *names);
void harness_tensor(struct harness *h, const char *attr, struct tensor t);

/* The next input, taken over. */
void harness_in(struct harness *h, struct tensor t);
void harness_in_ref(struct harness *h, struct variable *v);
struct tensor harness_floats(int ndim, const int64_t *dims,
                             const float *values);
struct tensor harness_int32s(int ndim, const int64_t *dims,
                             const int32_t *values);
struct tensor harness_int64s(int ndim, const int64_t *dims,
                             const int64_t *values);
struct tensor harness_strs(int ndim, const int64_t *dims,
                           const char *const *values);

/* Completes the node, initialises it and runs it; again with new inputs when
 * called again. Outputs of the run before are released. */
enum mst_code harness_run(struct harness *h);
enum mst_code harness_wait(struct harness *h);

#endif
