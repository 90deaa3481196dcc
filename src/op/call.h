/*
 * How a kernel calls a function of the graph's library: the executor supplies
 * this, so that kernels need not know it.
 */
#ifndef OP_CALL_H
#define OP_CALL_H

#include "op/op.h"

struct callee;

struct op_calls {
    /* Looks up and compiles a function; the result belongs to the plan. */
    enum mst_code (*find)(struct op_node *n, const struct attr_value *func,
                          struct callee **ret, struct status *st);
    /* Runs it with args (moved in) under the step of c; done gets the results
     * (to be moved out) once. c stays alive until then. */
    void (*start)(struct callee *f, struct op_ctx *c, struct op_value *args,
                  int arg_count,
                  void (*done)(struct op_ctx *c, void *arg, enum mst_code code,
                               struct op_value *results, int count),
                  void *arg);
    /* For who keeps a callee longer than its plan may last: the plan stays
     * until the last of them is gone. */
    void (*ref)(struct callee *f);
    void (*unref)(struct callee *f);
};

#endif
