/*
 * DecodeJSONExample: tf.train.Example written as JSON, as protobuf maps it:
 * field names in either spelling, whole numbers and odd floats perhaps as
 * strings, bytes in base64.
 */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "kernel/types.h"
#include "wire/pb.h"

static enum mst_code bad(struct op_ctx *c, const char *what)
{
    return op_fail(c, MST_INVALID_ARGUMENT, "Error while parsing JSON: %s",
                   what);
}

/* The member of either name; false when there is another one. */
static bool member(const json_t *o, const char *camel, const char *snake,
                   json_t **ret)
{
    const char *key;
    json_t *value;

    *ret = NULL;
    if (!json_is_object(o))
        return json_is_null(o);
    json_object_foreach((json_t *)o, key, value)
    {
        if (strcmp(key, camel) && strcmp(key, snake))
            return false;
        if (!json_is_null(value))
            *ret = value;
    }
    return true;
}

/* ---- values: each a field of its list, not packed ---- */

static bool put_float(struct pb_out *o, const json_t *v)
{
    float x = (float)json_number_value(v);
    char *end;

    if (json_is_string(v)) {
        const char *s = json_string_value(v);

        x = !strcmp(s, "NaN")         ? NAN
            : !strcmp(s, "Infinity")  ? INFINITY
            : !strcmp(s, "-Infinity") ? -INFINITY
                                      : strtof(s, &end);
        if (isfinite(x) && (end == s || *end))
            return false;
    } else if (!json_is_number(v)) {
        return false;
    }
    pb_put_tag(o, 1, PB_FIXED32);
    pb_put_raw(o, &x, sizeof(x));
    return true;
}

static bool put_int(struct pb_out *o, const json_t *v)
{
    long long x = json_integer_value(v);

    if (json_is_real(v)) {
        double d = json_real_value(v);

        if (d != floor(d) || fabs(d) >= 0x1p63)
            return false;
        x = (long long)d;
    } else if (json_is_string(v)) {
        const char *s = json_string_value(v);
        char *end;

        errno = 0;
        x = strtoll(s, &end, 10);
        if (end == s || *end || errno)
            return false;
    } else if (!json_is_integer(v)) {
        return false;
    }
    pb_put_uint(o, 1, (uint64_t)x);
    return true;
}

static int base64_value(char ch)
{
    return ch >= 'A' && ch <= 'Z'   ? ch - 'A'
           : ch >= 'a' && ch <= 'z' ? ch - 'a' + 26
           : ch >= '0' && ch <= '9' ? ch - '0' + 52
           : ch == '+' || ch == '-' ? 62
           : ch == '/' || ch == '_' ? 63
                                    : -1;
}

static bool put_bytes(struct pb_out *o, const json_t *v)
{
    const char *s = json_string_value(v);
    size_t len = s ? json_string_length(v) : 0;
    uint32_t bits = 0;
    int have = 0;
    struct pb_out data;
    bool good = s != NULL;

    while (len && s[len - 1] == '=')
        len--;
    pb_out_init(&data);
    for (size_t i = 0; i < len && good; i++) {
        int x = base64_value(s[i]);

        good = x >= 0;
        bits = bits << 6 | (uint32_t)(x & 63);
        have += 6;
        if (have >= 8) {
            have -= 8;
            pb_put_raw(&data, &(uint8_t){ (uint8_t)(bits >> have) }, 1);
        }
    }
    if (good)
        pb_put_bytes(o, 1, data.data, data.len);
    pb_out_done(&data);
    return good;
}

/* ---- messages ---- */

static const struct list {
    const char *camel, *snake;
    bool (*put)(struct pb_out *o, const json_t *v);
    uint32_t field;
} lists[] = {
    { "bytesList", "bytes_list", put_bytes, 1 },
    { "floatList", "float_list", put_float, 2 },
    { "int64List", "int64_list", put_int, 3 },
};

static bool put_list(struct pb_out *o, const struct list *l, const json_t *v)
{
    struct pb_out list;
    json_t *array, *value;
    size_t i;
    bool good = member(v, "value", "value", &array);

    if (!good || (array && !json_is_array(array)))
        return false;
    pb_out_init(&list);
    json_array_foreach(array, i, value) good = good && l->put(&list, value);
    pb_put_bytes(o, l->field, list.data, list.len);
    pb_out_done(&list);
    return good;
}

static bool put_feature(struct pb_out *o, const json_t *v)
{
    const char *key;
    json_t *value;

    if (json_is_null(v))
        return true;
    if (!json_is_object(v))
        return false;
    json_object_foreach((json_t *)v, key, value)
    {
        size_t i = 0;

        if (json_is_null(value))
            continue;
        while (i < COUNT(lists) && strcmp(key, lists[i].camel) &&
               strcmp(key, lists[i].snake))
            i++;
        if (i == COUNT(lists) || !put_list(o, &lists[i], value))
            return false;
    }
    return true;
}

static bool put_features(struct pb_out *o, const json_t *map)
{
    const char *key;
    json_t *value;
    bool good = !map || json_is_object(map);

    json_object_foreach((json_t *)map, key, value)
    {
        struct pb_out entry, feature;

        pb_out_init(&entry);
        pb_out_init(&feature);
        good = good && put_feature(&feature, value);
        pb_put_bytes(&entry, 1, key, strlen(key));
        pb_put_bytes(&entry, 2, feature.data, feature.len);
        pb_put_bytes(o, 1, entry.data, entry.len);
        pb_out_done(&entry);
        pb_out_done(&feature);
    }
    return good;
}

static bool put_example(struct pb_out *o, const json_t *root)
{
    json_t *features, *map;
    struct pb_out inner;
    bool good;

    if (!member(root, "features", "features", &features))
        return false;
    if (!features)
        return true;
    if (!member(features, "feature", "feature", &map))
        return false;
    pb_out_init(&inner);
    good = put_features(&inner, map);
    pb_put_bytes(o, 1, inner.data, inner.len);
    pb_out_done(&inner);
    return good;
}

static enum mst_code decode_one(struct op_ctx *c, const struct str *s,
                                struct str *ret)
{
    enum mst_code rc = MST_OK;
    json_error_t error;
    json_t *root =
        json_loadb(s->len ? s->data : "", s->len, JSON_ALLOW_NUL, &error);
    struct pb_out o;

    if (!root)
        return bad(c, error.text);
    pb_out_init(&o);
    if (put_example(&o, root))
        str_set(ret, o.data, o.len);
    else
        rc = bad(c, "it is no tensorflow.Example");
    pb_out_done(&o);
    json_decref(root);
    return rc;
}

static enum mst_code decode_json_example(struct op_ctx *c)
{
    const struct tensor *in = op_in(c, 0);
    enum mst_code rc = op_out_like(c, 0, in);

    for (int64_t i = 0; i < in->count && !rc; i++)
        rc = decode_one(c, tensor_str(in, i), tensor_str(op_out(c, 0), i));
    return rc;
}

const struct op_def def_decode_json_example = {
    .name = "DecodeJSONExample",
    .in = "json_examples: string",
    .out = "binary_examples: string",
    .flags = OP_EXPENSIVE,
    .kernel =
        (const struct op_kernel[]){ { DT_ANY, decode_json_example }, { 0 } },
};
