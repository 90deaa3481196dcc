/*
 * bfloat16 has products of its own where the CPU does. Else it and half are
 * multiplied as float, narrow whole numbers as int32, by converting both inputs
 * once (B of the former while it is packed, if its rows are contiguous).
 * Complex numbers are taken apart into planes of their parts: four real
 * products.
 */
#include "kernel/product.h"

#include "kernel/cast.h"
#include "kernel/gemm_bf16.h"
#include "kernel/narrow.h"
#include "kernel/types.h"

static enum mst_code plain(struct op_ctx *c, const struct gemm *g,
                           const void *a, const void *b, struct tensor *out,
                           bool add)
{
    struct gemm one = *g;

    one.a = a;
    one.b = b;
    one.c = out->data;
    one.add = add;
    return gemm_run(c, (enum dtype)out->dtype, &one);
}

static enum mst_code bf16_product(struct op_ctx *c, const struct gemm *g,
                                  const struct tensor *a,
                                  const struct tensor *b, struct tensor *out)
{
    struct gemm one = *g;

    one.a = a->data;
    one.b = b->data;
    one.c = out->data;
    return gemm_bf16_run(c, (enum dtype)out->dtype, &one);
}

/* Through `wide`, a type that gemm_run() knows. */
static enum mst_code widened(struct op_ctx *c, const struct gemm *g,
                             const struct tensor *a, const struct tensor *b,
                             struct tensor *out, enum dtype wide)
{
    struct tensor t[3] = { { 0 } };
    struct gemm one = *g;
    bool same = out->dtype == wide;
    enum mst_code rc = cast_tensor(c, &t[0], wide, a);

    if (wide == DT_FLOAT && narrow_is((enum dtype)b->dtype) && g->b_col == 1) {
        one.b_type = (enum dtype)b->dtype;
        t[1] = tensor_ref(b);
    } else if (!rc) {
        rc = cast_tensor(c, &t[1], wide, b);
    }
    if (!rc && !same)
        rc = tensor_new_like(&t[2], wide, out, c->st);
    if (!rc)
        rc = plain(c, &one, t[0].data, t[1].data, same ? out : &t[2], false);
    if (!rc && !same) {
        struct tensor back;

        rc = cast_tensor(c, &back, (enum dtype)out->dtype, &t[2]);
        if (!rc) {
            tensor_unref(out);
            tensor_move(out, &back);
        }
    }
    for (int i = 0; i < 3; i++)
        tensor_unref(&t[i]);
    return rc;
}

/* ---- complex numbers ---- */

/* Planes of a tensor: real parts, imaginary parts, and those negated. */
#define PLANES(s, T)                                                           \
    static void split_##s(const void *in_, bool conjugate, T *re, T *im,       \
                          T *minus, int64_t n)                                 \
    {                                                                          \
        const T *in = in_;                                                     \
                                                                               \
        for (int64_t i = 0; i < n; i++) {                                      \
            T y = conjugate ? -in[2 * i + 1] : in[2 * i + 1];                  \
                                                                               \
            re[i] = in[2 * i];                                                 \
            im[i] = y;                                                         \
            if (minus)                                                         \
                minus[i] = -y;                                                 \
        }                                                                      \
    }                                                                          \
    static void weave_##s(void *out_, const T *re, const T *im, int64_t n)     \
    {                                                                          \
        T *out = out_;                                                         \
                                                                               \
        for (int64_t i = 0; i < n; i++) {                                      \
            out[2 * i] = re[i];                                                \
            out[2 * i + 1] = im[i];                                            \
        }                                                                      \
    }
PLANES(f32, float)
PLANES(f64, double)

static void split(const struct tensor *t, bool conjugate, struct tensor *re,
                  struct tensor *im, struct tensor *minus)
{
    if (t->dtype == DT_COMPLEX64)
        split_f32(t->data, conjugate, re->data, im->data,
                  minus ? minus->data : NULL, t->count);
    else
        split_f64(t->data, conjugate, re->data, im->data,
                  minus ? minus->data : NULL, t->count);
}

enum { A_RE, A_IM, A_MINUS, B_RE, B_IM, C_RE, C_IM, PLANE_COUNT };

static enum mst_code complex_product(struct op_ctx *c, const struct gemm *g,
                                     const struct tensor *a, bool conj_a,
                                     const struct tensor *b, bool conj_b,
                                     struct tensor *out)
{
    enum dtype real = a->dtype == DT_COMPLEX64 ? DT_FLOAT : DT_DOUBLE;
    const struct tensor *like[] = { a, a, a, b, b, out, out };
    struct tensor p[PLANE_COUNT] = { { 0 } };
    enum mst_code rc = MST_OK;

    for (int i = 0; i < PLANE_COUNT && !rc; i++)
        rc = tensor_new_like(&p[i], real, like[i], c->st);
    if (!rc) {
        split(a, conj_a, &p[A_RE], &p[A_IM], &p[A_MINUS]);
        split(b, conj_b, &p[B_RE], &p[B_IM], NULL);
        rc = plain(c, g, p[A_RE].data, p[B_RE].data, &p[C_RE], false);
    }
    if (!rc)
        rc = plain(c, g, p[A_MINUS].data, p[B_IM].data, &p[C_RE], true);
    if (!rc)
        rc = plain(c, g, p[A_RE].data, p[B_IM].data, &p[C_IM], false);
    if (!rc)
        rc = plain(c, g, p[A_IM].data, p[B_RE].data, &p[C_IM], true);
    if (!rc && real == DT_FLOAT)
        weave_f32(out->data, p[C_RE].data, p[C_IM].data, out->count);
    else if (!rc)
        weave_f64(out->data, p[C_RE].data, p[C_IM].data, out->count);
    for (int i = 0; i < PLANE_COUNT; i++)
        tensor_unref(&p[i]);
    return rc;
}

enum mst_code product_run(struct op_ctx *c, const struct gemm *g,
                          const struct tensor *a, bool conj_a,
                          const struct tensor *b, bool conj_b,
                          struct tensor *out)
{
    if (!out->count)
        return MST_OK;
    if (dtype_is_complex((enum dtype)a->dtype))
        return complex_product(c, g, a, conj_a, b, conj_b, out);
    if (a->dtype == DT_BFLOAT16 && b->dtype == DT_BFLOAT16 && g->k &&
        gemm_bf16_can())
        return bf16_product(c, g, a, b, out);
    switch (out->dtype) {
    case DT_FLOAT:
    case DT_DOUBLE:
    case DT_INT32:
    case DT_INT64:
        if (a->dtype == out->dtype && b->dtype == out->dtype)
            return plain(c, g, a->data, b->data, out, false);
        return widened(c, g, a, b, out, (enum dtype)out->dtype);
    case DT_HALF:
    case DT_BFLOAT16:
        return widened(c, g, a, b, out, DT_FLOAT);
    default:
        return widened(c, g, a, b, out, DT_INT32);
    }
}
