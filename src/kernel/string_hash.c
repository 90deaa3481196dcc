/*
 * Strings to numbers of buckets, by three hashes: an old one, the fast one,
 * and one with a secret key for who has to fear chosen strings.
 */
#include "base/hash.h"
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
