/*
 * Strings to numbers of buckets, by three hashes: an old one, the fast one,
 * and one with a secret key for who has to fear chosen strings. And rows of any
 * tensor to fingerprints.
 */
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "kernel/fingerprint.h"
#include "op/op.h"

struct buckets {
    uint64_t count;
    uint64_t key[2];
};

static enum mst_code hash_all(struct op_ctx *c,
                              uint64_t (*hash)(const struct buckets *b,
                                               const struct str *s))
{
    const struct buckets *b = c->node->state;
    enum mst_code rc = op_out_like(c, 0, op_in(c, 0));

    for (int64_t i = 0; !rc && i < op_in(c, 0)->count; i++)
        TENSOR_DATA(op_out(c, 0), int64_t)
    [i] = (int64_t)(hash(b, tensor_str(op_in(c, 0), i)) % b->count);
    return rc;
}

static uint64_t old_hash(const struct buckets *b, const struct str *s)
{
    (void)b;
    return hash_bytes(s->data, s->len, HASH_SEED);
}

static uint64_t fast_hash(const struct buckets *b, const struct str *s)
{
    (void)b;
    return fingerprint64(s->data, s->len);
}

static uint64_t strong_hash(const struct buckets *b, const struct str *s)
{
    return fingerprint_keyed(b->key, s->data, s->len);
}

static enum mst_code string_to_hash_bucket(struct op_ctx *c)
{
    return hash_all(c, old_hash);
}

static enum mst_code string_to_hash_bucket_fast(struct op_ctx *c)
{
    return hash_all(c, fast_hash);
}

static enum mst_code string_to_hash_bucket_strong(struct op_ctx *c)
{
    return hash_all(c, strong_hash);
}

static enum mst_code buckets_init(struct op_node *n, struct status *st)
{
    struct buckets *b = ARENA_NEW(n->arena, struct buckets);
    const struct attr *key = op_attr(n, "key");

    b->count = (uint64_t)op_attr_int(n, "num_buckets");
    if (key && key->count != 2)
        return status_set(st, MST_INVALID_ARGUMENT, "Key must have 2 elements");
    for (int i = 0; key && i < 2; i++)
        b->key[i] = (uint64_t)key->value[i].i;
    n->state = b;
    return MST_OK;
}

const struct op_def def_string_to_hash_bucket = {
    .name = "StringToHashBucket",
    .in = "string_tensor: string",
    .out = "output: int64",
    .attr = "num_buckets: int >= 1",
    .init = buckets_init,
    .kernel =
        (const struct op_kernel[]){ { DT_ANY, string_to_hash_bucket }, { 0 } },
};

const struct op_def def_string_to_hash_bucket_fast = {
    .name = "StringToHashBucketFast",
    .in = "input: string",
    .out = "output: int64",
    .attr = "num_buckets: int >= 1",
    .init = buckets_init,
    .kernel =
        (const struct op_kernel[]){ { DT_ANY, string_to_hash_bucket_fast },
                                    { 0 } },
};

const struct op_def def_string_to_hash_bucket_strong = {
    .name = "StringToHashBucketStrong",
    .in = "input: string",
    .out = "output: int64",
    .attr = "num_buckets: int >= 1; key: list(int)",
    .init = buckets_init,
    .kernel =
        (const struct op_kernel[]){ { DT_ANY, string_to_hash_bucket_strong },
                                    { 0 } },
};

/* ---- fingerprints ---- */

static void fingerprint_strings(const struct tensor *in, int64_t row,
                                int64_t count, uint8_t *to)
{
    uint64_t *each, value;

    if (count == 1) {
        const struct str *s = tensor_str(in, row);

        value = fingerprint64(s->data, s->len);
    } else {
        each = mem_array((size_t)count, sizeof(*each));
        for (int64_t i = 0; i < count; i++) {
            const struct str *s = tensor_str(in, row * count + i);

            each[i] = fingerprint64(s->data, s->len);
        }
        value = fingerprint64(each, (size_t)count * sizeof(*each));
        mem_free(each);
    }
    memcpy(to, &value, sizeof(value));
}

static enum mst_code fingerprint(struct op_ctx *c)
{
    const struct tensor *in = op_in(c, 0), *method = op_in(c, 1);
    char text[SHAPE_TEXT_MAX];
    int64_t rows, count;
    enum mst_code rc;

    if (method->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "`method` should be a scalar string: %s",
                       tensor_shape_text(method, text));
    if (tensor_str(method, 0)->len != 10 ||
        memcmp(tensor_str(method, 0)->data, "farmhash64", 10))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Unsupported fingerprint method: %.*s",
                       (int)MIN(tensor_str(method, 0)->len, 1000),
                       tensor_str(method, 0)->data);
    if (!in->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "`data` should have at least one dimension: %s",
                       tensor_shape_text(in, text));
    rows = in->dims[0];
    count = rows ? in->count / rows : 0;
    rc = op_out_new(c, 0, 2, (int64_t[]){ rows, sizeof(uint64_t) });
    for (int64_t i = 0; i < rows && !rc; i++) {
        size_t bytes = (size_t)count * dtype_size((enum dtype)in->dtype);
        uint8_t *to = TENSOR_DATA(op_out(c, 0), uint8_t) + 8 * i;
        uint64_t value;

        if (in->dtype == DT_STRING) {
            fingerprint_strings(in, i, count, to);
            continue;
        }
        value = fingerprint64((char *)in->data + (size_t)i * bytes, bytes);
        memcpy(to, &value, sizeof(value));
    }
    return rc;
}

static enum mst_code fingerprint_init(struct op_node *n, struct status *st)
{
    enum dtype dt = (enum dtype)op_attr_type(n, "T");

    if (dt == DT_STRING || dtype_is_plain(dt))
        return MST_OK;
    return status_set(st, MST_INVALID_ARGUMENT, "Data type not supported: %s",
                      dtype_name(dt));
}

const struct op_def def_fingerprint = {
    .name = "Fingerprint",
    .in = "data: T, method: string",
    .out = "fingerprint: uint8",
    .attr = "T: type",
    .init = fingerprint_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, fingerprint }, { 0 } },
};
