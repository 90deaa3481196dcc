/*
 * Parts of tensors: how checkpoints name, describe and copy them. A variable
 * that is partitioned over several tasks is saved by each task as one slice of
 * the whole.
 *
 * A slice has a start and a length in every dimension; the length SLICE_FULL
 * stands for all of it, with start 0. Slices on disk keep that distinction, as
 * it is part of their keys. A resolved slice has real lengths only.
 */
#ifndef STORE_SLICE_H
#define STORE_SLICE_H

#include "store/cursor.h"
#include "tensor/tensor.h"

#define SLICE_FULL (-1)

struct slice {
    int ndim;
    int64_t start[TENSOR_RANK_MAX], length[TENSOR_RANK_MAX];
};

struct slice slice_all(int ndim);

/*
 * Reads the text that SaveV2 and RestoreV2 get: "4 5 0,2:-" is rows 0 and 1 of
 * a tensor of shape [4,5]. Fills the whole shape, the slice as written, and the
 * slice's own shape. Codes and texts as TensorFlow's.
 */
enum mst_code slice_parse_spec(const char *text, size_t len,
                               struct shape *ret_whole, struct slice *ret_slice,
                               struct shape *ret_shape,
                               struct status *st) MUST_USE;

/* "0,2:-", as TensorFlow prints it. */
#define SLICE_TEXT_MAX (TENSOR_RANK_MAX * 44)
const char *slice_text(const struct slice *s, char *text);

/* With real lengths; INTERNAL, as in TensorFlow, when it does not fit. */
enum mst_code slice_resolve(const struct slice *s, int ndim,
                            const int64_t *dims, struct slice *ret,
                            struct status *st) MUST_USE;

/* The key of a slice in a checkpoint's index: zero, the name, the rank, then
 * start and length of each dimension, in a code that sorts as they do. */
void slice_put_key(struct bytes *key, const void *name, size_t name_len,
                   const struct slice *s);

/* TensorSliceProto. */
void slice_put_proto(struct pb_out *o, const struct slice *s);
bool slice_get_proto(struct pb_in in, struct slice *ret);

/* ---- of resolved slices of the same tensor ---- */

int64_t slice_count(const struct slice *s);
/* False when they have no element in common. */
bool slice_intersect(const struct slice *a, const struct slice *b,
                     struct slice *ret);

/*
 * The elements that two slices share, as runs that are contiguous in both, in
 * the order in which they lie in `from`:
 *   slice_walk_init(&w, &from, &to);
 *   while (slice_walk_next(&w))
 *       copy w.run elements from w.from on in one to w.to on in the other.
 */
struct slice_walk {
    int64_t from, to, run; /* in elements */
    int ndim;              /* dimensions that are walked, not in a run */
    bool started, none;
    int64_t at[TENSOR_RANK_MAX], count[TENSOR_RANK_MAX];
    int64_t from_step[TENSOR_RANK_MAX], to_step[TENSOR_RANK_MAX];
};

void slice_walk_init(struct slice_walk *w, const struct slice *from,
                     const struct slice *to);
bool slice_walk_next(struct slice_walk *w);

#endif
