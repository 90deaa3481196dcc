/*
 * A tensor list: what functional loops collect their values in. It is a value
 * like any other, an element of a DT_VARIANT tensor, and never changes once
 * someone else may have seen it. An op that pushes or sets works in place when
 * its input is the only one to hold the list, and on a copy otherwise; a copy
 * shares the elements.
 *
 * An element that is none has not been set yet; it reads as zeros.
 */
#ifndef TENSOR_LIST_H
#define TENSOR_LIST_H

#include "tensor/variant.h"

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
extern const struct variant_codec tensor_list_codec;

struct tensor_list *tensor_list_new(int dtype, const struct shape *shape,
                                    int64_t count_max);
struct tensor_list *tensor_list_copy(const struct tensor_list *l);
void tensor_list_push(struct tensor_list *l, struct tensor item); /* moved */
/* New elements are none. */
void tensor_list_resize(struct tensor_list *l, int64_t count);

#endif
