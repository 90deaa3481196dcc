/*
 * What datasets share that call a function for each element.
 */
#ifndef KERNEL_DATASET_FUNC_H
#define KERNEL_DATASET_FUNC_H

#include "kernel/dataset.h"

/* What go() waits for: an element of the input, or the function. */
enum { DATASET_INPUT, DATASET_CALL };

/* Waits for the input and then for the function; it->out are its results. At
 * the end of the input it->end is set. */
enum mst_code dataset_call_each(struct dataset_iter *it,
                                enum mst_code got) MUST_USE;
/* Of input 0, with a function that captures the inputs after it, but for so
 * many numbers at the end. */
enum mst_code dataset_func_make(struct op_ctx *c,
                                const struct dataset_kind *kind, int numbers,
                                struct dataset **ret) MUST_USE;
/* init() of ops whose function is the attribute f. */
enum mst_code dataset_f_init(struct op_node *n, struct status *st) MUST_USE;

#define DATASET_FUNC(stem, text, in_, more, func, init_, fn)                   \
    const struct op_def def_##stem = {                                         \
        .name = text,                                                          \
        .in = "input_dataset: variant, other_arguments: Targuments" in_,       \
        .out = "handle: variant",                                              \
        .attr =                                                                \
            func ": func; Targuments: list(type) >= 0; " DATASET_ATTRS more    \
                DATASET_META,                                                  \
        .init = init_,                                                         \
        .kernel = (const struct op_kernel[]){ { DT_ANY, fn }, { 0 } },         \
    };

#endif
