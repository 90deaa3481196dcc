/*
 * Control flow: what the executor does not do by itself. Dead values, frames
 * and iterations are its matter (exec/), by the kind in the record; these
 * kernels only move values.
 *
 * On reference edges the value is the variable, so one body serves both forms.
 */
#include "kernel/types.h"

static enum mst_code pass(struct op_ctx *c)
{
    op_out_move(c, 0, 0);
    return MST_OK;
}

static const struct op_kernel pass_kernel[] = { { DT_ANY, pass }, { 0 } };

static enum mst_code switch_run(struct op_ctx *c)
{
    const struct tensor *pred = op_in(c, 1);

    if (pred->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "The second input must be a scalar, but it has rank %d",
                       pred->ndim);
    op_out_move(c, *TENSOR_DATA(pred, bool) ? 1 : 0, 0);
    return MST_OK;
}

static const struct op_kernel switch_kernel[] = { { DT_ANY, switch_run },
                                                  { 0 } };

const struct op_def def_switch = {
    .name = "Switch",
    .in = "data: T, pred: bool",
    .out = "output_false: T, output_true: T",
    .attr = "T: type",
    .kind = OP_SWITCH,
    .kernel = switch_kernel,
};

const struct op_def def_ref_switch = {
    .name = "RefSwitch",
    .in = "data: Ref(T), pred: bool",
    .out = "output_false: Ref(T), output_true: Ref(T)",
    .attr = "T: type",
    .kind = OP_SWITCH,
    .flags = OP_UNINIT_REF,
    .kernel = switch_kernel,
};

/* What TensorFlow's master makes of Case: one output of many lives. */
static enum mst_code switch_n_run(struct op_ctx *c)
{
    const struct tensor *index = op_in(c, 1);
    int64_t last = c->node->out_count - 1, i;

    if (index->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "The second input must be a scalar, but it has rank %d",
                       index->ndim);
    i = tensor_int(index, 0);
    op_out_move(c, (int)(i < 0 || i > last ? last : i), 0);
    return MST_OK;
}

const struct op_def def_switch_n = {
    .name = "_SwitchN",
    .in = "data: T, output_index: int32",
    .out = "outputs: num_outs * T",
    .attr = "num_outs: int >= 1; T: type",
    .kind = OP_SWITCH,
    .kernel = (const struct op_kernel[]){ { DT_ANY, switch_n_run }, { 0 } },
};

/* Runs with its first live input; the others are unset. */
static enum mst_code merge_run(struct op_ctx *c)
{
    enum mst_code rc = tensor_new_scalar(op_out(c, 1), DT_INT32, c->st);

    if (rc)
        return rc;
    for (int i = 0; i < c->node->in_count; i++) {
        if (!tensor_set(&c->in[i].t) && !c->in[i].ref)
            continue;
        op_out_move(c, 0, i);
        *TENSOR_DATA(op_out(c, 1), int32_t) = i;
        return MST_OK;
    }
    return op_fail(c, MST_INTERNAL, "Merge has no live input");
}

static const struct op_kernel merge_kernel[] = { { DT_ANY, merge_run }, { 0 } };

const struct op_def def_merge = {
    .name = "Merge",
    .in = "inputs: N * T",
    .out = "output: T, value_index: int32",
    .attr = "T: type; N: int >= 1",
    .kind = OP_MERGE,
    .kernel = merge_kernel,
};

const struct op_def def_ref_merge = {
    .name = "RefMerge",
    .in = "inputs: N * T",
    .out = "output: Ref(T), value_index: int32",
    .attr = "T: type; N: int >= 1",
    .kind = OP_MERGE,
    .flags = OP_UNINIT_REF,
    .kernel = merge_kernel,
};

const struct op_def def_enter = {
    .name = "Enter",
    .in = "data: T",
    .out = "output: T",
    .attr = "T: type; frame_name: string; is_constant: bool = false; "
            "parallel_iterations: int = 10",
    .kind = OP_ENTER,
    .kernel = pass_kernel,
};

const struct op_def def_ref_enter = {
    .name = "RefEnter",
    .in = "data: Ref(T)",
    .out = "output: Ref(T)",
    .attr = "T: type; frame_name: string; is_constant: bool = false; "
            "parallel_iterations: int = 10",
    .kind = OP_ENTER,
    .flags = OP_UNINIT_REF,
    .kernel = pass_kernel,
};

const struct op_def def_exit = {
    .name = "Exit",
    .in = "data: T",
    .out = "output: T",
    .attr = "T: type",
    .kind = OP_EXIT,
    .kernel = pass_kernel,
};

const struct op_def def_ref_exit = {
    .name = "RefExit",
    .in = "data: Ref(T)",
    .out = "output: Ref(T)",
    .attr = "T: type",
    .kind = OP_EXIT,
    .flags = OP_UNINIT_REF,
    .kernel = pass_kernel,
};

const struct op_def def_next_iteration = {
    .name = "NextIteration",
    .in = "data: T",
    .out = "output: T",
    .attr = "T: type",
    .kind = OP_NEXT_ITERATION,
    .kernel = pass_kernel,
};

const struct op_def def_ref_next_iteration = {
    .name = "RefNextIteration",
    .in = "data: Ref(T)",
    .out = "output: Ref(T)",
    .attr = "T: type",
    .kind = OP_NEXT_ITERATION,
    .flags = OP_UNINIT_REF,
    .kernel = pass_kernel,
};

const struct op_def def_loop_cond = {
    .name = "LoopCond",
    .in = "input: bool",
    .out = "output: bool",
    .kernel = pass_kernel,
};
