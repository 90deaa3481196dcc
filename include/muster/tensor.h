/*
 * Values that go into a step and come out of it. A tensor has a type, a shape
 * and elements in row-major order without gaps, and never changes its shape.
 *
 * An mst_tensor has one owner, who frees it; a step that it is fed to keeps
 * the elements alive on its own, so it may be freed once the call has
 * returned. What a step returned may share memory with other tensors: do not
 * write to it.
 */
#ifndef MUSTER_TENSOR_H
#define MUSTER_TENSOR_H

#include <stddef.h>
#include <stdint.h>

#include "muster/api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* TensorFlow's numbers. */
enum mst_dtype {
    MST_FLOAT = 1,
    MST_DOUBLE = 2,
    MST_INT32 = 3,
    MST_UINT8 = 4,
    MST_INT16 = 5,
    MST_INT8 = 6,
    MST_STRING = 7,
    MST_COMPLEX64 = 8,
    MST_INT64 = 9,
    MST_BOOL = 10,
    MST_BFLOAT16 = 14,
    MST_UINT16 = 17,
    MST_COMPLEX128 = 18,
    MST_HALF = 19,
    MST_UINT32 = 22,
    MST_UINT64 = 23,
};

typedef struct mst_tensor mst_tensor;

/* Elements that are for the caller to write, strings empty; ndim 0 is a
 * scalar. */
MST_API enum mst_code mst_tensor_new(enum mst_dtype dtype, int ndim,
                                     const int64_t *dims, mst_tensor **ret,
                                     struct mst_error *error);
/* Over len bytes of the caller's, which release(arg) gives back, on any
 * thread, when nothing needs them any more; also when this fails. They stay as
 * they are until then. Not for strings. */
MST_API enum mst_code mst_tensor_wrap(enum mst_dtype dtype, int ndim,
                                      const int64_t *dims, void *data,
                                      size_t len, void (*release)(void *arg),
                                      void *arg, mst_tensor **ret,
                                      struct mst_error *error);
MST_API void mst_tensor_free(mst_tensor *tensor); /* accepts NULL */

MST_API enum mst_dtype mst_tensor_dtype(const mst_tensor *tensor);
MST_API int mst_tensor_ndim(const mst_tensor *tensor);
MST_API const int64_t *mst_tensor_dims(const mst_tensor *tensor);
/* How many elements, and how many bytes they take. */
MST_API int64_t mst_tensor_count(const mst_tensor *tensor);
MST_API size_t mst_tensor_bytes(const mst_tensor *tensor);
/* The elements; NULL for strings. */
MST_API void *mst_tensor_data(const mst_tensor *tensor);

/* An element of a string tensor, and how to set one, which copies. */
MST_API const char *mst_tensor_string(const mst_tensor *tensor, int64_t at,
                                      size_t *ret_len);
MST_API void mst_tensor_set_string(mst_tensor *tensor, int64_t at,
                                   const void *data, size_t len);

#ifdef __cplusplus
}
#endif
#endif
