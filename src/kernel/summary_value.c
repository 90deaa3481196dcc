#include "kernel/summary_value.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "kernel/real.h"
#include "kernel/serialize.h"

double summary_number(const struct tensor *t, int64_t i)
{
    enum dtype dt = (enum dtype)t->dtype;

    if (dtype_is_float(dt))
        return real_load(t, i);
    if (dt == DT_BOOL)
        return TENSOR_DATA(t, bool)[i];
    if (dt == DT_UINT64)
        return (double)TENSOR_DATA(t, uint64_t)[i];
    return (double)tensor_int(t, i);
}

static void put_double(struct pb_out *o, uint32_t field, double x)
{
    if (x == 0 && !signbit(x))
        return;
    pb_put_tag(o, field, PB_FIXED64);
    pb_put_raw(o, &x, sizeof(x));
}

static void begin_value(struct pb_out *v, const struct str *tag)
{
    pb_out_init(v);
    if (tag && tag->len)
        pb_put_bytes(v, 1, tag->data, tag->len);
}

static void end_value(struct pb_out *o, struct pb_out *v)
{
    pb_put_bytes(o, 1, v->data, v->len);
    pb_out_done(v);
}

void summary_put_scalar(struct pb_out *o, const struct str *tag, float value)
{
    struct pb_out v;

    begin_value(&v, tag);
    pb_put_tag(&v, 2, PB_FIXED32);
    pb_put_raw(&v, &value, sizeof(value));
    end_value(o, &v);
}

/* ---- histograms ---- */

#define LIMITS_MAX 1600

/* Ends of buckets: they grow by a tenth from 1e-12 to 1e20, on both sides. */
static double limits[LIMITS_MAX];
static int limit_count;
static pthread_once_t limits_once = PTHREAD_ONCE_INIT;

static void make_limits(void)
{
    double above[LIMITS_MAX / 2];
    int n = 0;

    for (double v = 1e-12; v < 1e20; v *= 1.1)
        above[n++] = v;
    above[n++] = DBL_MAX;
    CHECK(2 * n + 1 <= LIMITS_MAX);
    for (int i = 0; i < n; i++) {
        limits[i] = -above[n - 1 - i];
        limits[n + 1 + i] = above[i];
    }
    limit_count = 2 * n + 1;
}

struct histogram {
    double min, max, count, sum, squares;
    double buckets[LIMITS_MAX];
};

/* The first bucket whose end is beyond x. */
static int bucket_of(double x)
{
    int low = 0, high = limit_count - 1;

    while (low < high) {
        int middle = (low + high) / 2;

        if (limits[middle] > x)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static void add_number(struct histogram *h, double x)
{
    h->buckets[bucket_of(x)]++;
    h->min = MIN(h->min, x);
    h->max = MAX(h->max, x);
    h->count++;
    h->sum += x;
    h->squares += x * x;
}

/* Buckets without a value become one. */
static void put_histogram(struct pb_out *o, const struct histogram *h)
{
    double ends[LIMITS_MAX], counts[LIMITS_MAX];
    size_t n = 0;

    for (int i = 0; i < limit_count; n++) {
        counts[n] = h->buckets[i];
        ends[n] = limits[i++];
        while (counts[n] == 0 && i < limit_count && h->buckets[i] == 0)
            ends[n] = limits[i++];
    }
    put_double(o, 1, h->min);
    put_double(o, 2, h->max);
    put_double(o, 3, h->count);
    put_double(o, 4, h->sum);
    put_double(o, 5, h->squares);
    pb_put_bytes(o, 6, ends, n * sizeof(*ends));
    pb_put_bytes(o, 7, counts, n * sizeof(*counts));
}

enum mst_code summary_put_histogram(struct op_ctx *c, struct pb_out *o,
                                    const struct str *tag,
                                    const struct tensor *values)
{
    struct histogram h = { .min = DBL_MAX, .max = -DBL_MAX };
    struct pb_out v, histo;

    pthread_once(&limits_once, make_limits);
    for (int64_t i = 0; i < values->count; i++) {
        double x = summary_number(values, i);

        if (!isfinite(x))
            return op_fail(c, MST_INVALID_ARGUMENT, "%s for: %s",
                           isnan(x) ? "Nan in summary histogram"
                                    : "Infinity in Histogram",
                           c->node->name);
        add_number(&h, x);
    }
    begin_value(&v, tag);
    pb_out_init(&histo);
    put_histogram(&histo, &h);
    pb_put_bytes(&v, 5, histo.data, histo.len);
    pb_out_done(&histo);
    end_value(o, &v);
    return MST_OK;
}

/* ---- tensors ---- */

enum mst_code summary_put_tensor(struct op_ctx *c, struct pb_out *o,
                                 const struct str *tag, const char *node_name,
                                 const struct tensor *t,
                                 const struct str *metadata)
{
    struct text bytes = { 0 };
    struct pb_out v;
    enum mst_code rc = serialize_tensor(t, &bytes, c->st);

    if (rc)
        return rc;
    begin_value(&v, tag);
    if (node_name)
        pb_put_bytes(&v, 7, node_name, strlen(node_name));
    pb_put_bytes(&v, 8, bytes.data, bytes.len);
    text_done(&bytes);
    if (metadata)
        pb_put_bytes(&v, 9, metadata->data, metadata->len);
    end_value(o, &v);
    return MST_OK;
}
