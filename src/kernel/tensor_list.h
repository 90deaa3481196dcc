/*
 * A tensor list: what functional loops collect their values in. It is a value
 * like any other, an element of a DT_VARIANT tensor, and never changes once
 * someone else may have seen it. An op that pushes or sets works in place when
 * its input is the only one to hold the list, and on a copy otherwise; a copy
 * shares the elements.
 *
 * An element that is none has not been set yet; it reads as zeros.
 */
#ifndef KERNEL_TENSOR_LIST_H
#define KERNEL_TENSOR_LIST_H

#include "op/op.h"

/* More elements than this no program has; a peer may still ask for them. */
#define TENSOR_LIST_MAX (1 << 24)

struct tensor_list {
    struct object o; /* kind: &tensor_list_kind */
    int dtype;
    struct shape shape; /* of the elements, as far as known */
    int64_t count_max;  /* -1: any */
    struct tensor *items;
    int64_t count, room;
};

extern const struct object_kind tensor_list_kind;

struct tensor_list *tensor_list_new(int dtype, const struct shape *shape,
                                    int64_t count_max);
struct tensor_list *tensor_list_copy(const struct tensor_list *l);
void tensor_list_push(struct tensor_list *l, struct tensor item); /* moved */
/* New elements are none. */
void tensor_list_resize(struct tensor_list *l, int64_t count);

/* ---- for kernels ---- */

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
