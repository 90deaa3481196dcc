/*
 * NumPy's files: an array in `.npy`, several by name in `.npz`, which is a zip
 * archive of the former, its members stored or deflated.
 *
 * A file is mapped, and an array that lies in it as it is needed stays there:
 * it is not read before it is used. Nothing in a file is believed; damage
 * gives DATA_LOSS. Arrays of objects, structures and other byte orders are
 * refused; so is Fortran order.
 */
#ifndef TRAIN_NPY_H
#define TRAIN_NPY_H

#include "tensor/tensor.h"

/* A mapped file. */
enum mst_code npy_map(const char *path, struct buffer **ret,
                      struct status *st) MUST_USE;
/* The array in the bytes of a `.npy`, which are the buffer's; name is what
 * errors call it. Texts become strings. */
enum mst_code npy_parse(struct tensor *t, const char *name,
                        struct buffer *owner, const uint8_t *data, size_t len,
                        struct status *st) MUST_USE;
/* The array of a `.npz` under that key. NOT_FOUND says which there are. */
enum mst_code npy_member(struct tensor *t, const char *path,
                         struct buffer *file, const char *key,
                         struct status *st) MUST_USE;

/* Both: "x.npy", or "x.npz:key". */
enum mst_code npy_read(struct tensor *t, const char *source,
                       struct status *st) MUST_USE;

#endif
