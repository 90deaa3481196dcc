/*
 * A tensor: a small value, two cache lines, over a refcounted buffer. It may
 * be copied as a struct when the reference moves along with it; tensor_ref()
 * makes a second one. Elements lie in row-major order without gaps.
 *
 * Invariants
 *  1. dtype == DT_INVALID: no tensor at all; nothing to release.
 *  2. count is the product of dims[0..ndim), 1 for a scalar.
 *  3. data points into buf, unless count is 0 (then it may be NULL).
 *  4. A tensor of objects (string, resource, variant) owns its whole buffer:
 *     no views, and the buffer's end releases the elements.
 *  5. Elements are written only by who made the tensor, before anyone else saw
 *     it, or when tensor_unique() holds.
 */
#ifndef TENSOR_TENSOR_H
#define TENSOR_TENSOR_H

#include "base/buffer.h"
#include "base/status.h"
#include "tensor/dtype.h"

#define TENSOR_RANK_MAX 12
/* What a shape may come to: more is refused before anything is multiplied. */
#define TENSOR_BYTES_MAX ((int64_t)1 << 46)

struct tensor {
    struct buffer *buf;
    void *data;
    int64_t count;
    uint8_t dtype; /* enum dtype, never a reference type */
    uint8_t ndim;
    int64_t dims[TENSOR_RANK_MAX];
};

/* The shape of a tensor, or of none yet: any dimension may be -1, unknown; so
 * may the rank. */
struct shape {
    int ndim; /* -1: unknown rank */
    int64_t dims[TENSOR_RANK_MAX];
};

/* An element of a DT_STRING tensor. The bytes are its own. */
struct str {
    char *data;
    size_t len;
};

struct object;

/* What a DT_RESOURCE or DT_VARIANT element points to: anything that is
 * counted. The kind is compared by address. The name of what may be in a
 * variant is the one that TensorFlow has for it. */
struct object_kind {
    const char *name;
    void (*free)(struct object *);
};

struct object {
    atomic_uint refs;
    const struct object_kind *kind;
    struct object *next; /* object_unref()'s */
};

void object_init(struct object *o, const struct object_kind *kind);
struct object *object_ref(struct object *o); /* accepts NULL */
void object_unref(struct object *o);         /* accepts NULL */

/* ---- handing on ---- */

/* Copies the record, no reference: only those dims that there are. The bytes
 * were mostly written just before, in small pieces, and a wide load of them
 * would wait for all of those to reach the cache. */
static inline void tensor_assign(struct tensor *dst, const struct tensor *src)
{
    dst->buf = src->buf;
    dst->data = src->data;
    dst->count = src->count;
    dst->dtype = src->dtype;
    dst->ndim = src->ndim;
    switch (src->ndim) {
    default:
        for (int i = 4; i < src->ndim; i++)
            dst->dims[i] = src->dims[i];
        /* fall through */
    case 4:
        dst->dims[3] = src->dims[3];
        /* fall through */
    case 3:
        dst->dims[2] = src->dims[2];
        /* fall through */
    case 2:
        dst->dims[1] = src->dims[1];
        /* fall through */
    case 1:
        dst->dims[0] = src->dims[0];
        /* fall through */
    case 0:
        break;
    }
}

/* Its shape can still be read. */
static inline void tensor_unset(struct tensor *t)
{
    t->buf = NULL;
    t->data = NULL;
    t->dtype = DT_INVALID;
}

static inline struct tensor tensor_ref(const struct tensor *t)
{
    struct tensor copy;

    tensor_assign(&copy, t);
    buffer_ref(t->buf);
    return copy;
}

/* And sets it to none. */
static inline void tensor_unref(struct tensor *t)
{
    buffer_unref(t->buf);
    tensor_unset(t);
}

/* dst gets what src had; src becomes none. */
static inline void tensor_move(struct tensor *dst, struct tensor *src)
{
    tensor_assign(dst, src);
    tensor_unset(src);
}

/* ---- making and ending ---- */

/* An uninitialised tensor of that shape (strings empty, objects NULL).
 * INVALID_ARGUMENT for a bad shape, RESOURCE_EXHAUSTED without memory. */
enum mst_code tensor_new(struct tensor *t, enum dtype dt, int ndim,
                         const int64_t *dims, struct status *st) MUST_USE;
/* Of the shape of `like`. */
enum mst_code tensor_new_like(struct tensor *t, enum dtype dt,
                              const struct tensor *like,
                              struct status *st) MUST_USE;
/* A scalar; the caller writes *(T *)t.data. Never fails but for memory. */
enum mst_code tensor_new_scalar(struct tensor *t, enum dtype dt,
                                struct status *st) MUST_USE;
/* Over bytes of a buffer, of which one reference is taken over. */
void tensor_wrap(struct tensor *t, enum dtype dt, int ndim, const int64_t *dims,
                 struct buffer *buf, void *data);
/* A copy with a buffer of its own. */
enum mst_code tensor_copy(struct tensor *dst, const struct tensor *src,
                          struct status *st) MUST_USE;
/* Rows [begin, begin + rows) of the first dimension; plain types share the
 * buffer, strings and objects are copied. */
enum mst_code tensor_slice(struct tensor *dst, const struct tensor *src,
                           int64_t begin, int64_t rows,
                           struct status *st) MUST_USE;
/* The same elements under another shape of equal count (checked by CHECK). */
void tensor_reshape(struct tensor *dst, const struct tensor *src, int ndim,
                    const int64_t *dims);
/* Copies n elements, of whatever type, between initialised tensors. */
void tensor_copy_elems(struct tensor *dst, int64_t dst_at,
                       const struct tensor *src, int64_t src_at, int64_t n);
void tensor_zero(struct tensor *t); /* all elements, of any type */

/* ---- looking ---- */

static inline bool tensor_set(const struct tensor *t)
{
    return t->dtype != DT_INVALID;
}

/* Nobody else has these bytes: they may be written in place. */
static inline bool tensor_unique(const struct tensor *t)
{
    return t->buf && buffer_unique(t->buf);
}

static inline size_t tensor_bytes(const struct tensor *t)
{
    return (size_t)t->count * dtype_size((enum dtype)t->dtype);
}

bool tensor_same_shape(const struct tensor *a, const struct tensor *b);
/* The value of a whole-number scalar or element, int32 or int64. */
int64_t tensor_int(const struct tensor *t, int64_t at);
/* An element of a DT_STRING tensor, and how to set one (copies). */
struct str *tensor_str(const struct tensor *t, int64_t at);
void str_set(struct str *s, const void *data, size_t len);
/* An element of a DT_RESOURCE or DT_VARIANT tensor. */
struct object **tensor_object(const struct tensor *t, int64_t at);

#define TENSOR_DATA(t, type) ((type *)(t)->data)

/* ---- shapes ---- */

/* Multiplies dimensions; false on a negative one, overflow, or more elements
 * of elem_size than TENSOR_BYTES_MAX (0: only as many as can be counted). */
bool shape_count(int ndim, const int64_t *dims, size_t elem_size,
                 int64_t *ret_count);
/* "[2,3]", as TensorFlow prints it; "<unknown>" for an unknown rank. */
#define SHAPE_TEXT_MAX 288
const char *shape_text(int ndim, const int64_t *dims, char *text);
const char *tensor_shape_text(const struct tensor *t, char *text);
bool shape_compatible(const struct shape *s, const struct tensor *t);
/* NumPy's broadcasting; false when the shapes do not go together. */
bool shape_broadcast(const struct tensor *a, const struct tensor *b,
                     struct shape *ret);

#endif
