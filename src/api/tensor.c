#include "api/tensor.h"

#include "api/error.h"
#include "base/mem.h"

mst_tensor *tensor_to_api(struct tensor *t)
{
    mst_tensor *ret = MEM_NEW(mst_tensor);

    tensor_move(&ret->t, t);
    return ret;
}

static bool is_known(enum mst_dtype dtype)
{
    return dtype_valid((int)dtype) && (int)dtype != DT_RESOURCE &&
           (int)dtype != DT_VARIANT;
}

static enum mst_code check(enum mst_dtype dtype, int ndim, struct status *st)
{
    if (!is_known(dtype))
        return status_set(st, MST_INVALID_ARGUMENT, "There is no type %d",
                          (int)dtype);
    if (ndim < 0 || ndim > TENSOR_RANK_MAX)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "A tensor has up to %d dimensions, not %d",
                          TENSOR_RANK_MAX, ndim);
    return MST_OK;
}

enum mst_code mst_tensor_new(enum mst_dtype dtype, int ndim,
                             const int64_t *dims, mst_tensor **ret,
                             struct mst_error *error)
{
    struct status st = STATUS_INIT;
    struct tensor t;

    if (check(dtype, ndim, &st) ||
        tensor_new(&t, (enum dtype)dtype, ndim, dims, &st))
        return error_tell(error, &st);
    *ret = tensor_to_api(&t);
    return MST_OK;
}

static enum mst_code wrap(enum mst_dtype dtype, int ndim, const int64_t *dims,
                          size_t len, struct buffer *buf, struct tensor *ret,
                          struct status *st)
{
    int64_t count;

    if (check(dtype, ndim, st))
        return st->code;
    if (!dtype_is_plain((enum dtype)dtype))
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Strings cannot be wrapped");
    if (!shape_count(ndim, dims, dtype_size((enum dtype)dtype), &count) ||
        (size_t)count * dtype_size((enum dtype)dtype) != len)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "%zu bytes are not those of the shape", len);
    tensor_wrap(ret, (enum dtype)dtype, ndim, dims, buf, buf->data);
    return MST_OK;
}

static void keep(void *arg)
{
    (void)arg;
}

enum mst_code mst_tensor_wrap(enum mst_dtype dtype, int ndim,
                              const int64_t *dims, void *data, size_t len,
                              void (*release)(void *arg), void *arg,
                              mst_tensor **ret, struct mst_error *error)
{
    struct buffer *buf = buffer_wrap(data, len, release ? release : keep, arg);
    struct status st = STATUS_INIT;
    struct tensor t;

    if (wrap(dtype, ndim, dims, len, buf, &t, &st)) {
        buffer_unref(buf);
        return error_tell(error, &st);
    }
    *ret = tensor_to_api(&t);
    return MST_OK;
}

void mst_tensor_free(mst_tensor *tensor)
{
    if (!tensor)
        return;
    tensor_unref(&tensor->t);
    mem_free(tensor);
}

enum mst_dtype mst_tensor_dtype(const mst_tensor *tensor)
{
    return (enum mst_dtype)tensor->t.dtype;
}

int mst_tensor_ndim(const mst_tensor *tensor)
{
    return tensor->t.ndim;
}

const int64_t *mst_tensor_dims(const mst_tensor *tensor)
{
    return tensor->t.dims;
}

int64_t mst_tensor_count(const mst_tensor *tensor)
{
    return tensor->t.count;
}

size_t mst_tensor_bytes(const mst_tensor *tensor)
{
    return dtype_is_plain((enum dtype)tensor->t.dtype)
               ? tensor_bytes(&tensor->t)
               : 0;
}

void *mst_tensor_data(const mst_tensor *tensor)
{
    return dtype_is_plain((enum dtype)tensor->t.dtype) ? tensor->t.data : NULL;
}

const char *mst_tensor_string(const mst_tensor *tensor, int64_t at,
                              size_t *ret_len)
{
    const struct str *s = tensor_str(&tensor->t, at);

    *ret_len = s->len;
    return s->len ? s->data : "";
}

void mst_tensor_set_string(mst_tensor *tensor, int64_t at, const void *data,
                           size_t len)
{
    str_set(tensor_str(&tensor->t, at), data, len);
}
