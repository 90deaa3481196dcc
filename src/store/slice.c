#include "store/slice.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct slice slice_all(int ndim)
{
    struct slice s = { .ndim = ndim };

    for (int i = 0; i < ndim; i++)
        s.length[i] = SLICE_FULL;
    return s;
}

/* ---- text ---- */

/* A piece of a text that need not end with a zero byte. */
struct piece {
    const char *at;
    size_t len;
};

/* Cuts the first piece off *rest; false at its end. */
static bool cut(struct piece *rest, char separator, struct piece *ret)
{
    const char *end;

    if (!rest->at)
        return false;
    end = rest->len ? memchr(rest->at, separator, rest->len) : NULL;
    *ret =
        (struct piece){ rest->at, end ? (size_t)(end - rest->at) : rest->len };
    *rest = end ? (struct piece){ end + 1, rest->len - ret->len - 1 }
                : (struct piece){ NULL, 0 };
    return true;
}

static bool cut_nonempty(struct piece *rest, char separator, struct piece *ret)
{
    while (cut(rest, separator, ret))
        if (ret->len)
            return true;
    return false;
}

static bool number(struct piece p, int64_t *ret)
{
    char text[32], *end;

    if (!p.len || p.len >= sizeof(text))
        return false;
    memcpy(text, p.at, p.len);
    text[p.len] = '\0';
    errno = 0;
    *ret = strtoll(text, &end, 10);
    return !errno && end != text && !*end && strlen(text) == p.len;
}

static enum mst_code too_many_dims(struct status *st)
{
    return status_set(st, MST_UNIMPLEMENTED,
                      "Slices of tensors of more than %d dimensions are not "
                      "supported",
                      TENSOR_RANK_MAX);
}

static enum mst_code parse_slice(struct piece text, struct slice *ret,
                                 struct status *st)
{
    struct piece rest = text, dim, first, second, extra;
    struct slice s = { 0 };

    while (cut_nonempty(&rest, ':', &dim)) {
        struct piece pair = dim;
        int64_t start = 0, length = SLICE_FULL;

        if (s.ndim == TENSOR_RANK_MAX)
            return too_many_dims(st);
        if (dim.len != 1 || dim.at[0] != '-') {
            if (!cut_nonempty(&pair, ',', &first) ||
                !cut_nonempty(&pair, ',', &second) ||
                cut_nonempty(&pair, ',', &extra) || !number(first, &start) ||
                !number(second, &length))
                return status_set(
                    st, MST_INVALID_ARGUMENT,
                    "Expected a pair of numbers or '-' but got '%.*s': string "
                    "= %.*s",
                    (int)dim.len, dim.at, (int)text.len, text.at);
            if (start < 0 || length <= 0)
                return status_set(
                    st, MST_INVALID_ARGUMENT,
                    "Expected non-negative start and positive length but got "
                    "start = %lld, length = %lld: string = %.*s",
                    (long long)start, (long long)length, (int)text.len,
                    text.at);
        }
        s.start[s.ndim] = start;
        s.length[s.ndim++] = length;
    }
    *ret = s;
    return MST_OK;
}

static enum mst_code parse_shape(struct piece text, struct piece spec,
                                 struct shape *ret, struct status *st)
{
    struct shape s = { 0 };
    struct piece dim;
    int64_t count;

    while (cut(&text, ' ', &dim)) {
        int64_t size;

        if (s.ndim == TENSOR_RANK_MAX)
            return too_many_dims(st);
        if (!number(dim, &size))
            return status_set(st, MST_INVALID_ARGUMENT,
                              "Non numerical dimension in shape_and_slice: "
                              "%.*s",
                              (int)spec.len, spec.at);
        s.dims[s.ndim++] = size;
    }
    if (!shape_count(s.ndim, s.dims, 1, &count))
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Invalid dimension in shape_and_slice: %.*s",
                          (int)spec.len, spec.at);
    *ret = s;
    return MST_OK;
}

enum mst_code slice_parse_spec(const char *text, size_t len,
                               struct shape *ret_whole, struct slice *ret_slice,
                               struct shape *ret_shape, struct status *st)
{
    const char *space = memrchr(text, ' ', len);
    struct piece spec = { text, len };
    struct slice resolved;
    enum mst_code rc;
    size_t head;

    if (!space)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Need least two elements in shape_and_slice "
                          "specification: %.*s",
                          (int)len, text);
    head = (size_t)(space - text);
    rc =
        parse_slice((struct piece){ space + 1, len - head - 1 }, ret_slice, st);
    if (!rc)
        rc = parse_shape((struct piece){ text, head }, spec, ret_whole, st);
    if (!rc)
        rc = slice_resolve(ret_slice, ret_whole->ndim, ret_whole->dims,
                           &resolved, st);
    if (rc)
        return rc;
    ret_shape->ndim = resolved.ndim;
    memcpy(ret_shape->dims, resolved.length, sizeof(ret_shape->dims));
    return MST_OK;
}

const char *slice_text(const struct slice *s, char *text)
{
    size_t n = 0;

    text[0] = '\0';
    for (int i = 0; i < s->ndim; i++) {
        if (s->length[i] == SLICE_FULL)
            n += (size_t)sprintf(text + n, "%s-", i ? ":" : "");
        else
            n += (size_t)sprintf(text + n, "%s%lld,%lld", i ? ":" : "",
                                 (long long)s->start[i],
                                 (long long)s->length[i]);
    }
    return text;
}

enum mst_code slice_resolve(const struct slice *s, int ndim,
                            const int64_t *dims, struct slice *ret,
                            struct status *st)
{
    char shape[SHAPE_TEXT_MAX], text[SLICE_TEXT_MAX];

    if (s->ndim != ndim)
        return status_set(st, MST_INTERNAL,
                          "Mismatching ranks: shape = %s, slice = %s",
                          shape_text(ndim, dims, shape), slice_text(s, text));
    *ret = *s;
    for (int i = 0; i < ndim; i++) {
        if (s->length[i] == SLICE_FULL) {
            ret->start[i] = 0;
            ret->length[i] = dims[i];
        } else if (s->start[i] < 0 || s->length[i] < 0 ||
                   s->start[i] > dims[i] ||
                   s->length[i] > dims[i] - s->start[i]) {
            return status_set(
                st, MST_INTERNAL,
                "Extent in dimension %d out of bounds: shape = %s, slice = %s",
                i, shape_text(ndim, dims, shape), slice_text(s, text));
        }
    }
    return MST_OK;
}

/* ---- keys: numbers and strings in an order-preserving code ---- */

static void put_ordered_text(struct bytes *b, const uint8_t *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        bytes_u8(b, text[i]);
        if (text[i] == 0x00)
            bytes_u8(b, 0xff);
        else if (text[i] == 0xff)
            bytes_u8(b, 0x00);
    }
    bytes_put(b, "\x00\x01", 2);
}

/* The count of its bytes, then the bytes from the highest on. */
static void put_ordered_unsigned(struct bytes *b, uint64_t v)
{
    int n = v ? (71 - __builtin_clzll(v)) / 8 : 0;

    bytes_u8(b, (uint8_t)n);
    while (n--)
        bytes_u8(b, (uint8_t)(v >> (8 * n)));
}

/*
 * Two's complement, the highest byte first, with its sign bit flipped, and over
 * it as many leading one-bits as there are bytes (zero-bits and inverted for
 * negative numbers): n bytes hold 7n - 1 bits and the sign.
 */
static void put_ordered_signed(struct bytes *b, int64_t v)
{
    uint64_t magnitude = (uint64_t)(v < 0 ? ~v : v);
    int bits = magnitude ? 64 - __builtin_clzll(magnitude) : 0;
    int n = bits / 7 + 1;
    uint8_t out[10];

    for (int i = 0; i < n; i++) {
        int shift = 8 * (n - 1 - i);

        out[i] = (uint8_t)(shift > 63 ? (v < 0 ? -1 : 0) : v >> shift);
    }
    /* n leading bits flip; they may reach into the second byte. */
    out[0] ^= n >= 8 ? 0xff : (uint8_t)(0xff00 >> n);
    if (n > 8)
        out[1] ^= (uint8_t)(0xff00 >> (n - 8));
    bytes_put(b, out, (size_t)n);
}

void slice_put_key(struct bytes *key, const void *name, size_t name_len,
                   const struct slice *s)
{
    put_ordered_unsigned(key, 0);
    put_ordered_text(key, name, name_len);
    put_ordered_unsigned(key, (uint64_t)s->ndim);
    for (int i = 0; i < s->ndim; i++) {
        put_ordered_signed(key, s->start[i]);
        put_ordered_signed(key, s->length[i]);
    }
}

/* ---- TensorSliceProto { 1: repeated Extent { 1: start, 2: length } } ---- */

void slice_put_proto(struct pb_out *o, const struct slice *s)
{
    for (int i = 0; i < s->ndim; i++) {
        struct pb_out extent;

        pb_out_init(&extent);
        if (s->length[i] != SLICE_FULL) {
            if (s->start[i])
                pb_put_uint(&extent, 1, (uint64_t)s->start[i]);
            /* In a oneof: it is there also when it is zero. */
            pb_put_uint(&extent, 2, (uint64_t)s->length[i]);
        }
        pb_put_bytes(o, 1, extent.data, extent.len);
        pb_out_done(&extent);
    }
}

bool slice_get_proto(struct pb_in in, struct slice *ret)
{
    struct pb_field dim, f;

    ret->ndim = 0;
    while (pb_next(&in, &dim)) {
        struct pb_in extent = field_message(&dim);

        if (dim.number != 1)
            continue;
        if (ret->ndim == TENSOR_RANK_MAX)
            return false;
        ret->start[ret->ndim] = 0;
        ret->length[ret->ndim] = SLICE_FULL;
        while (pb_next(&extent, &f)) {
            if (f.number == 1)
                ret->start[ret->ndim] = (int64_t)field_number(&f);
            else if (f.number == 2)
                ret->length[ret->ndim] = (int64_t)field_number(&f);
        }
        if (extent.bad)
            return false;
        ret->ndim++;
    }
    return !in.bad;
}

/* ---- resolved slices ---- */

int64_t slice_count(const struct slice *s)
{
    int64_t n = 1;

    for (int i = 0; i < s->ndim; i++)
        n *= s->length[i];
    return n;
}

bool slice_intersect(const struct slice *a, const struct slice *b,
                     struct slice *ret)
{
    CHECK(a->ndim == b->ndim);
    ret->ndim = a->ndim;
    for (int i = 0; i < a->ndim; i++) {
        int64_t start = MAX(a->start[i], b->start[i]);
        int64_t end =
            MIN(a->start[i] + a->length[i], b->start[i] + b->length[i]);

        if (end <= start)
            return false;
        ret->start[i] = start;
        ret->length[i] = end - start;
    }
    return true;
}

void slice_walk_init(struct slice_walk *w, const struct slice *from,
                     const struct slice *to)
{
    int64_t from_step = 1, to_step = 1;
    struct slice both = { 0 };
    int d = from->ndim - 1;

    *w = (struct slice_walk){ .run = 1 };
    w->none = !slice_intersect(from, to, &both);
    if (w->none)
        return;
    for (int i = d; i >= 0; i--) {
        w->from_step[i] = from_step;
        w->to_step[i] = to_step;
        w->from += (both.start[i] - from->start[i]) * from_step;
        w->to += (both.start[i] - to->start[i]) * to_step;
        from_step *= from->length[i];
        to_step *= to->length[i];
    }
    /* Inner dimensions that both have whole belong to one run, and so does the
     * first that they have not. */
    for (bool whole = true; d >= 0 && whole; d--) {
        w->run *= both.length[d];
        whole = both.length[d] == from->length[d] &&
                both.length[d] == to->length[d];
    }
    w->ndim = d + 1;
    memcpy(w->count, both.length, sizeof(w->count));
}

bool slice_walk_next(struct slice_walk *w)
{
    if (w->none)
        return false;
    if (!w->started) {
        w->started = true;
        return true;
    }
    for (int i = w->ndim - 1; i >= 0; i--) {
        w->from += w->from_step[i];
        w->to += w->to_step[i];
        if (++w->at[i] < w->count[i])
            return true;
        w->from -= w->from_step[i] * w->count[i];
        w->to -= w->to_step[i] * w->count[i];
        w->at[i] = 0;
    }
    w->none = true;
    return false;
}
