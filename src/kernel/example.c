#include "kernel/example.h"

#include <string.h>

void example_keys_init(struct example_keys *k)
{
    map_init(&k->map);
}

void example_keys_done(struct example_keys *k)
{
    map_done(&k->map);
}

bool example_keys_add(struct example_keys *k, const struct str *key,
                      size_t number)
{
    /* A number as a pointer; NULL would say that there is none. */
    return !map_put(&k->map, key->len ? key->data : "", key->len,
                    (void *)(uintptr_t)(number + 1));
}

static bool read_entry(struct pb_in in, struct example_bytes *key,
                       struct example_bytes *value)
{
    struct pb_field f;

    *key = *value = (struct example_bytes){ (const uint8_t *)"", 0, true };
    while (pb_next(&in, &f)) {
        if (f.wire != PB_LEN)
            return false;
        if (f.number == 1)
            *key = (struct example_bytes){ f.data, f.len, true };
        else if (f.number == 2)
            *value = (struct example_bytes){ f.data, f.len, true };
    }
    return !in.bad;
}

bool example_find(struct pb_in features, const struct example_keys *k,
                  struct example_bytes *row)
{
    struct example_bytes key, value;
    struct pb_field f;

    while (pb_next(&features, &f)) {
        const void *at;

        if (f.number != 1 || f.wire != PB_LEN ||
            !read_entry(pb_in(f.data, f.len), &key, &value))
            return false;
        at = map_get(&k->map, key.data, key.len);
        if (at)
            row[(uintptr_t)at - 1] = value;
    }
    return !features.bad;
}

bool example_open(struct example_bytes b, struct example_feature *ret)
{
    static const enum dtype types[] = { DT_INVALID, DT_STRING, DT_FLOAT,
                                        DT_INT64 };
    struct pb_in in = pb_in(b.data, b.len);
    struct pb_field f;

    *ret = (struct example_feature){ DT_INVALID, NULL, 0 };
    while (pb_next(&in, &f)) {
        if (f.wire != PB_LEN || f.number < 1 || f.number > 3)
            return false;
        *ret = (struct example_feature){ types[f.number], f.data, f.len };
    }
    return !in.bad;
}

/* Values of a packed field; negative when it is malformed. */
static int64_t packed_count(enum dtype dt, const uint8_t *data, size_t len)
{
    int64_t n = 0;

    if (dt == DT_FLOAT)
        return len % 4 ? -1 : (int64_t)(len / 4);
    for (const uint8_t *at = data, *end = data + len; at < end; n++) {
        uint64_t ignored;

        if (!pb_varint(&at, end, &ignored))
            return -1;
    }
    return n;
}

int64_t example_count(const struct example_feature *f)
{
    struct pb_in in = pb_in(f->data, f->len);
    struct pb_field v;
    int64_t n = 0;

    while (pb_next(&in, &v)) {
        int64_t more = 1;

        if (v.number != 1)
            return -1;
        if (f->dtype == DT_STRING && v.wire != PB_LEN)
            return -1;
        if (f->dtype != DT_STRING && v.wire == PB_LEN)
            more = packed_count(f->dtype, v.data, v.len);
        else if (f->dtype == DT_FLOAT && v.wire != PB_FIXED32)
            return -1;
        else if (f->dtype == DT_INT64 && v.wire != PB_VARINT)
            return -1;
        if (more < 0)
            return -1;
        n += more;
    }
    return in.bad ? -1 : n;
}

static int64_t read_floats(const struct pb_field *v, float *to)
{
    uint32_t bits = (uint32_t)v->value;

    if (v->wire == PB_LEN) {
        memcpy(to, v->data, v->len);
        return (int64_t)(v->len / 4);
    }
    memcpy(to, &bits, 4);
    return 1;
}

static int64_t read_ints(const struct pb_field *v, int64_t *to)
{
    const uint8_t *at = v->data, *end = at + v->len;
    uint64_t x = v->value;
    int64_t n = 0;

    if (v->wire != PB_LEN) {
        *to = (int64_t)x;
        return 1;
    }
    while (at < end && pb_varint(&at, end, &x))
        to[n++] = (int64_t)x;
    return n;
}

void example_read(const struct example_feature *f, const struct tensor *t,
                  int64_t at)
{
    struct pb_in in = pb_in(f->data, f->len);
    struct pb_field v;

    while (pb_next(&in, &v)) {
        if (f->dtype == DT_STRING)
            str_set(tensor_str(t, at++), v.data, v.len);
        else if (f->dtype == DT_FLOAT)
            at += read_floats(&v, TENSOR_DATA(t, float) + at);
        else
            at += read_ints(&v, TENSOR_DATA(t, int64_t) + at);
    }
}

bool example_next(struct pb_in *in, struct example_bytes *ret)
{
    struct pb_field f;

    if (!pb_next(in, &f))
        return false;
    if (f.number != 1 || f.wire != PB_LEN) {
        in->bad = true;
        return false;
    }
    *ret = (struct example_bytes){ f.data, f.len, true };
    return true;
}

void example_set_split(const struct tensor *t, int64_t at, int64_t value)
{
    if (t->dtype == DT_INT32)
        TENSOR_DATA(t, int32_t)[at] = (int32_t)value;
    else
        TENSOR_DATA(t, int64_t)[at] = value;
}
