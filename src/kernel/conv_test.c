/*
 * Convolutions against the definition of one, written down as loops, in shapes
 * that TensorFlow has with oneDNN only: dilated gradients, groups, channels in
 * front.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/rng.h"
#include "op/harness.h"

struct shape2 {
    int n, h, w, c, kh, kw, f, groups, stride, dilation, before, after;
    bool first;
};

static int out_of(int in, int k, const struct shape2 *s)
{
    return (in + s->before + s->after - (k - 1) * s->dilation - 1) / s->stride +
           1;
}

static int at(const struct shape2 *s, int h, int w, int c, int n, int y, int x,
              int ch)
{
    return s->first ? ((n * c + ch) * h + y) * w + x
                    : ((n * h + y) * w + x) * c + ch;
}

/* Adds to one of the three from the other two. */
static void slow(const struct shape2 *s, float *x, float *w, float *y,
                 int result)
{
    int oh = out_of(s->h, s->kh, s), ow = out_of(s->w, s->kw, s);
    int depth = s->c / s->groups, per = s->f / s->groups;

    for (int n = 0; n < s->n; n++)
        for (int i = 0; i < oh * ow * s->f * s->kh * s->kw * depth; i++) {
            int ch = i % depth, b = i / depth % s->kw, a, f, v, u, rest;
            int sy, sx, px, pw, py;

            rest = i / depth / s->kw;
            a = rest % s->kh;
            f = rest / s->kh % s->f;
            v = rest / s->kh / s->f % ow;
            u = rest / s->kh / s->f / ow;
            sy = u * s->stride - s->before + a * s->dilation;
            sx = v * s->stride - s->before + b * s->dilation;
            if (sy < 0 || sy >= s->h || sx < 0 || sx >= s->w)
                continue;
            px = at(s, s->h, s->w, s->c, n, sy, sx, f / per * depth + ch);
            pw = ((a * s->kw + b) * depth + ch) * s->f + f;
            py = at(s, oh, ow, s->f, n, u, v, f);
            if (result == 0)
                x[px] += w[pw] * y[py];
            else if (result == 1)
                w[pw] += x[px] * y[py];
            else
                y[py] += x[px] * w[pw];
        }
}

static void set_dims(const struct shape2 *s, int64_t *d, int h, int w, int c)
{
    d[0] = s->n;
    d[s->first ? 1 : 3] = c;
    d[s->first ? 2 : 1] = h;
    d[s->first ? 3 : 2] = w;
}

static void check(const struct shape2 *s, int result)
{
    static const char *const ops[] = { "Conv2DBackpropInput",
                                       "Conv2DBackpropFilter", "Conv2D" };
    static float data[3][20000];
    int64_t dims[3][4], counts[3], attr[4], pad[8] = { 0 };
    struct harness h;
    uint64_t seed = 5;
    const float *got;

    set_dims(s, dims[0], s->h, s->w, s->c);
    dims[1][0] = s->kh;
    dims[1][1] = s->kw;
    dims[1][2] = s->c / s->groups;
    dims[1][3] = s->f;
    set_dims(s, dims[2], out_of(s->h, s->kh, s), out_of(s->w, s->kw, s), s->f);
    for (int i = 0; i < 3; i++) {
        assert_true(shape_count(4, dims[i], 4, &counts[i]));
        assert_true(counts[i] <= 20000);
        for (int64_t k = 0; k < counts[i]; k++)
            data[i][k] =
                i == result ? 0 : (float)(int)(rng_next(&seed) % 9) - 4;
    }
    slow(s, data[0], data[1], data[2], result);
    harness_init(&h, ops[result]);
    harness_type(&h, "T", DT_FLOAT);
    set_dims(s, attr, s->stride, s->stride, 1);
    attr[0] = 1;
    harness_ints(&h, "strides", 4, attr);
    set_dims(s, attr, s->dilation, s->dilation, 1);
    attr[0] = 1;
    harness_ints(&h, "dilations", 4, attr);
    for (int i = 0; i < 2; i++) {
        pad[2 * (i + (s->first ? 2 : 1))] = s->before;
        pad[2 * (i + (s->first ? 2 : 1)) + 1] = s->after;
    }
    harness_ints(&h, "explicit_paddings", 8, pad);
    harness_str(&h, "padding", "EXPLICIT");
    harness_str(&h, "data_format", s->first ? "NCHW" : "NHWC");
    for (int i = 0; i < (result == 2 ? 2 : 3); i++) {
        int32_t d32[4];

        for (int k = 0; k < 4; k++)
            d32[k] = (int32_t)dims[i][k];
        harness_in(&h, i == result ? harness_int32s(1, (int64_t[]){ 4 }, d32)
                                   : harness_floats(4, dims[i], data[i]));
    }
    assert_int_equal(harness_run(&h), MST_OK);
    assert_int_equal(h.out[0].t.count, counts[result]);
    assert_memory_equal(h.out[0].t.dims, dims[result], sizeof(dims[result]));
    got = h.out[0].t.data;
    for (int64_t k = 0; k < counts[result]; k++)
        assert_true(got[k] == data[result][k]); /* small whole numbers */
    harness_done(&h);
}

static void test_convolutions_are_what_the_definition_says(void **state)
{
    static const struct shape2 shapes[] = {
        { 2, 9, 8, 3, 3, 2, 4, 1, 1, 2, 1, 2, false },
        { 2, 9, 8, 3, 3, 3, 5, 1, 2, 3, 2, 1, false },
        { 1, 11, 10, 2, 3, 3, 3, 1, 3, 2, 0, 4, true },
        { 2, 7, 6, 6, 3, 3, 9, 3, 2, 1, 1, 1, false },
        { 3, 6, 5, 4, 2, 3, 4, 4, 1, 2, 2, 2, true },
        { 2, 12, 12, 1, 5, 5, 33, 1, 1, 1, 2, 2, false },
        { 1, 3, 3, 70, 3, 3, 18, 1, 1, 1, 1, 1, false },
        { 20, 3, 3, 5, 2, 2, 4, 1, 1, 1, 0, 0, false },
        { 2, 9, 9, 2, 2, 2, 3, 1, 4, 3, 0, 0, false },
        { 1, 1, 30, 3, 1, 7, 17, 1, 6, 1, 3, 9, true },
    };

    for (size_t i = 0; i < COUNT(shapes); i++)
        for (int result = 0; result < 3; result++)
            check(&shapes[i], result);
}

static void test_shapes_that_do_not_fit_are_refused(void **state)
{
    struct harness h;
    float none[64] = { 0 };

    harness_init(&h, "Conv2D");
    harness_type(&h, "T", DT_FLOAT);
    harness_ints(&h, "strides", 4, (int64_t[]){ 1, 1, 1, 1 });
    harness_str(&h, "padding", "VALID");
    harness_in(&h, harness_floats(4, (int64_t[]){ 1, 2, 2, 2 }, none));
    harness_in(&h, harness_floats(4, (int64_t[]){ 4, 4, 2, 1 }, none));
    assert_int_equal(harness_run(&h), MST_INVALID_ARGUMENT);
    assert_string_equal(h.st.msg,
                        "Computed output size would be negative: -1 "
                        "[input_size: 2, effective_filter_size: 4, stride: 1]");
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_convolutions_are_what_the_definition_says),
        cmocka_unit_test(test_shapes_that_do_not_fit_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
