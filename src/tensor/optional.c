#include "tensor/optional.h"

#include "base/mem.h"

static void optional_free(struct object *o)
{
    struct optional *v = CONTAINER(o, struct optional, o);

    for (int i = 0; i < v->count; i++)
        tensor_unref(&v->values[i]);
    mem_free(v);
}

const struct object_kind optional_kind = { "tensorflow::data::Optional",
                                           optional_free };

struct optional *optional_new(int count)
{
    struct optional *v =
        mem_new(sizeof(*v) + (size_t)MAX(count, 0) * sizeof(v->values[0]));

    object_init(&v->o, &optional_kind);
    v->count = count;
    return v;
}

/* ---- in messages: the metadata is one byte, whether there is something ----
 */

static void put_meta(const struct object *o, struct pb_out *out)
{
    *pb_out_reserve(out, 1) = CONTAINER(o, struct optional, o)->count >= 0;
}

static const struct tensor *next(const struct object *o, int64_t *at)
{
    const struct optional *v = CONTAINER(o, struct optional, o);

    return *at < v->count ? &v->values[(*at)++] : NULL;
}

static enum mst_code make(const struct variant_parts *p, struct object **ret,
                          struct status *st)
{
    struct optional *v;

    if (p->meta_len != 1 || (!p->meta[0] && p->count))
        return status_set(st, MST_INVALID_ARGUMENT,
                          "An optional has %zu bytes of metadata, which must "
                          "be 1, and %lld values",
                          p->meta_len, (long long)p->count);
    v = optional_new(p->meta[0] ? (int)p->count : -1);
    for (int i = 0; i < v->count; i++)
        tensor_move(&v->values[i], &p->tensors[i]);
    *ret = &v->o;
    return MST_OK;
}

const struct variant_codec optional_codec = { &optional_kind, put_meta, next,
                                              make };
