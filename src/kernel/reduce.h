/*
 * The machine of reductions.
 *
 * Neighbouring dimensions that are both kept, or both reduced, are merged, and
 * those of size one are dropped, so that kept and reduced ones alternate. What
 * remains is one of two loops over contiguous elements: a row that becomes one
 * value, or rows that become one row. An op brings those two for its type.
 *
 * Sums of floats are kept apart in lanes and blocks and joined in double, so
 * that the error does not grow with the number of elements. Work is split by
 * the shape alone: a result does not depend on the number of threads.
 */
#ifndef KERNEL_REDUCE_H
#define KERNEL_REDUCE_H

#include "kernel/types.h"

/* Columns that are reduced at once; accumulators take 16 bytes at most. */
#define REDUCE_COLS_MAX 512
#define REDUCE_ACC_MAX  16

/* One reduction for one type. acc: accumulators, of a type of its own. */
struct reduce {
    size_t acc_size;
    void (*start)(void *acc, int64_t n);
    /* Adds n elements to one accumulator. */
    void (*row)(void *acc, const void *in, int64_t n);
    /* Adds rows, `stride` elements apart, of n elements each to n of them. */
    void (*cols)(void *acc, const void *in, int64_t rows, int64_t stride,
                 int64_t n);
    void (*join)(void *acc, const void *other, int64_t n);
    /* The values of n accumulators, each of count elements. */
    void (*finish)(void *out, const void *acc, int64_t n, int64_t count);
};

/* The record of an op for a type; NULL when there is none. */
enum reduce_op {
    REDUCE_SUM,
    REDUCE_MEAN,
    REDUCE_SQRT_N, /* the sum divided by the square root of the count */
    REDUCE_PROD,
    REDUCE_MAX,
    REDUCE_MIN,
};
const struct reduce *reduce_of(enum reduce_op op, enum dtype dt);

/* What is to be reduced. dims alternate; reduced[i] says which. */
struct reduce_shape {
    int ndim;
    int64_t dims[TENSOR_RANK_MAX];
    bool reduced[TENSOR_RANK_MAX];
    struct shape out;
};

/* From a tensor of axes, of any rank, negative ones counted from the end. */
enum mst_code reduce_shape_of(struct op_ctx *c, const struct tensor *in,
                              const struct tensor *axes, bool keep_dims,
                              struct reduce_shape *ret) MUST_USE;
/* From a mask of the input's dimensions. */
void reduce_shape_mask(const struct tensor *in, const bool *mask,
                       bool keep_dims, struct reduce_shape *ret);
/* Elements that become one. */
int64_t reduce_count(const struct reduce_shape *s);
/* Runs it: in (dense, of that shape) to out, which has the elements of s->out.
 * cost_ns: of an element. */
void reduce_run(const struct op_ctx *c, const struct reduce *r,
                const struct reduce_shape *s, const struct tensor *in,
                void *out, double cost_ns);

/* ---- making the loops ---- */

#define REDUCE_LANES 32
#define REDUCE_BLOCK 128 /* steps before lanes are joined */

/*
 * Accumulators of type B for elements T: `name`_{start,row,cols,join}_s.
 * Lanes are of type L. MAP(x) makes an L of a loaded element, STEP(a, b) joins
 * two L, JOIN(a, b) an accumulator and an L or an accumulator.
 */
#define REDUCE_ACC(name, s, T, L, B, LD, INIT, MAP, STEP, JOIN)                \
    static void name##_start_##s(void *acc_, int64_t n)                        \
    {                                                                          \
        B *acc = acc_;                                                         \
                                                                               \
        for (int64_t i = 0; i < n; i++)                                        \
            acc[i] = INIT;                                                     \
    }                                                                          \
    CLONES_##s static void name##_row_##s(void *acc, const void *in_,          \
                                          int64_t n)                           \
    {                                                                          \
        const T *in = in_;                                                     \
        B total = *(B *)acc;                                                   \
                                                                               \
        while (n >= REDUCE_LANES) {                                            \
            int64_t rows = MIN(n / REDUCE_LANES, REDUCE_BLOCK);                \
            L lane[REDUCE_LANES];                                              \
                                                                               \
            for (int j = 0; j < REDUCE_LANES; j++)                             \
                lane[j] = MAP(LD(in[j]));                                      \
            for (int64_t i = 1; i < rows; i++)                                 \
                for (int j = 0; j < REDUCE_LANES; j++) {                       \
                    L x = MAP(LD(in[i * REDUCE_LANES + j]));                   \
                                                                               \
                    lane[j] = STEP(lane[j], x);                                \
                }                                                              \
            for (int w = REDUCE_LANES / 2; w; w /= 2)                          \
                for (int j = 0; j < w; j++)                                    \
                    lane[j] = STEP(lane[j], lane[j + w]);                      \
            total = JOIN(total, lane[0]);                                      \
            in += rows * REDUCE_LANES;                                         \
            n -= rows * REDUCE_LANES;                                          \
        }                                                                      \
        for (; n >= 4; n -= 4, in += 4) {                                      \
            L x = MAP(LD(in[0])), y = MAP(LD(in[1]));                          \
            L z = MAP(LD(in[2])), w = MAP(LD(in[3]));                          \
                                                                               \
            x = STEP(x, y);                                                    \
            z = STEP(z, w);                                                    \
            x = STEP(x, z);                                                    \
            total = JOIN(total, x);                                            \
        }                                                                      \
        for (; n > 0; n--, in++) {                                             \
            L x = MAP(LD(*in));                                                \
                                                                               \
            total = JOIN(total, x);                                            \
        }                                                                      \
        *(B *)acc = total;                                                     \
    }                                                                          \
    CLONES_##s static void name##_cols_##s(                                    \
        void *acc_, const void *in_, int64_t rows, int64_t stride, int64_t n)  \
    {                                                                          \
        const T *in = in_;                                                     \
        B *acc = acc_;                                                         \
        L part[REDUCE_COLS_MAX];                                               \
                                                                               \
        if (rows == 1) {                                                       \
            for (int64_t j = 0; j < n; j++) {                                  \
                L x = MAP(LD(in[j]));                                          \
                                                                               \
                acc[j] = JOIN(acc[j], x);                                      \
            }                                                                  \
            return;                                                            \
        }                                                                      \
        while (rows > 0) {                                                     \
            int64_t block = MIN(rows, REDUCE_BLOCK);                           \
                                                                               \
            for (int64_t j = 0; j < n; j++)                                    \
                part[j] = MAP(LD(in[j]));                                      \
            for (int64_t i = 1; i < block; i++) {                              \
                const T *row = in + i * stride;                                \
                                                                               \
                for (int64_t j = 0; j < n; j++) {                              \
                    L x = MAP(LD(row[j]));                                     \
                                                                               \
                    part[j] = STEP(part[j], x);                                \
                }                                                              \
            }                                                                  \
            for (int64_t j = 0; j < n; j++)                                    \
                acc[j] = JOIN(acc[j], part[j]);                                \
            in += block * stride;                                              \
            rows -= block;                                                     \
        }                                                                      \
    }                                                                          \
    static void name##_join_##s(void *acc_, const void *other_, int64_t n)     \
    {                                                                          \
        const B *other = other_;                                               \
        B *acc = acc_;                                                         \
                                                                               \
        for (int64_t i = 0; i < n; i++)                                        \
            acc[i] = JOIN(acc[i], other[i]);                                   \
    }

/* The record `op`_reduce_s over the accumulators `name`; VALUE makes a T of
 * `a`, an accumulator, and `count`. */
#define REDUCE_RECORD(op, name, s, T, B, VALUE)                                \
    REDUCE_RECORD_ROW(op, name, name##_row_##s, s, T, B, VALUE)
/* With another loop for rows. */
#define REDUCE_RECORD_ROW(op, name, row, s, T, B, VALUE)                       \
    static void op##_finish_##s(void *out_, const void *acc_, int64_t n,       \
                                int64_t count)                                 \
    {                                                                          \
        const B *acc = acc_;                                                   \
        T *out = out_;                                                         \
                                                                               \
        for (int64_t i = 0; i < n; i++) {                                      \
            B a = acc[i];                                                      \
                                                                               \
            out[i] = (T)(VALUE);                                               \
        }                                                                      \
    }                                                                          \
    static const struct reduce op##_reduce_##s = {                             \
        sizeof(B),       name##_start_##s, row,                                \
        name##_cols_##s, name##_join_##s,  op##_finish_##s,                    \
    };

#endif
