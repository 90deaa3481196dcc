/* Tensor lists as inputs and outputs of kernels. */
#ifndef KERNEL_TENSOR_LIST_H
#define KERNEL_TENSOR_LIST_H

#include "op/op.h"
#include "tensor/list.h"

/* The list in the scalar input i, borrowed. */
enum mst_code tensor_list_in(struct op_ctx *c, int i,
                             const struct tensor_list **ret) MUST_USE;
/* The same, with elements of the type dt. */
enum mst_code tensor_list_in_typed(struct op_ctx *c, int i, int dt,
                                   const struct tensor_list **ret) MUST_USE;
/* Output 0 is the list of input 0, or a copy of it, and may be changed. */
enum mst_code tensor_list_change(struct op_ctx *c,
                                 struct tensor_list **ret) MUST_USE;
/* Output 0 is that list; its one reference is taken over. */
enum mst_code tensor_list_out(struct op_ctx *c, struct tensor_list *l) MUST_USE;
/* The partial shape in input i: -1, or a vector of dimensions. */
enum mst_code tensor_list_shape_in(struct op_ctx *c, int i,
                                   struct shape *ret) MUST_USE;
/* That shape together with what the list knows. */
enum mst_code tensor_list_shape_of(struct op_ctx *c, int i,
                                   const struct tensor_list *l,
                                   struct shape *ret) MUST_USE;
/* A size or an index in the scalar input i. */
enum mst_code tensor_list_number(struct op_ctx *c, int i, const char *name,
                                 int64_t *ret) MUST_USE;
/* count elements are not too many. */
enum mst_code tensor_list_check_count(struct op_ctx *c, int64_t count) MUST_USE;

#endif
