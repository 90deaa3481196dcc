/*
 * Functions as sub-steps: a call runs the function's own plan under the
 * caller's step, with the same id, cancellation and rendezvous.
 */
#ifndef EXEC_CALL_H
#define EXEC_CALL_H

#include "exec/plan.h"
#include "op/call.h"

/* What nodes use whose op is the name of a function. */
extern const struct op_def call_def;
enum mst_code call_init_direct(struct op_node *n, const char *function,
                               struct status *st) MUST_USE;

extern const struct op_calls call_ops;
void call_free_callees(struct plan *p);

#endif
