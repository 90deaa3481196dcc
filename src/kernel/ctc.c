/*
 * CTCLoss: minus the logarithm of the probability that a sequence of outputs
 * gives a sequence of labels, by Graves' forward and backward variables, and
 * its gradient. Everything is in logarithms and in double.
 *
 * Letters: T times, B sequences in a batch, C classes, the last of them the
 * blank; U = 2 * labels + 1 states: a blank, a label, a blank, ….
 */
#include <string.h>

#include "base/mem.h"
#include "kernel/types.h"

struct ctc_node {
    bool collapse, merge, ignore_longer;
};

/* The labels of a batch: those of b are label[begin[b]..begin[b + 1]). */
struct ctc_labels {
    int32_t *label;
    int64_t *begin;
};

struct ctc_job {
    const struct ctc_node *node;
    struct ctc_labels labels;
    int64_t times, batch, classes;
    const int32_t *length;
    const struct tensor *in;
    struct tensor *loss, *grad;
    atomic_bool failed;
};

static enum mst_code ctc_init(struct op_node *n, struct status *st)
{
    struct ctc_node *s = ARENA_NEW(n->arena, struct ctc_node);

    s->collapse = op_attr_bool(n, "preprocess_collapse_repeated");
    s->merge = op_attr_bool(n, "ctc_merge_repeated");
    s->ignore_longer = op_attr_bool(n, "ignore_longer_outputs_than_inputs");
    n->state = s;
    return MST_OK;
}

/* log(exp(a) + exp(b)) */
static double log_add(double a, double b)
{
    double most = a > b ? a : b, least = a > b ? b : a;

    return least == -INFINITY ? most : most + log1p(exp(least - most));
}

static double load(const struct tensor *t, int64_t at)
{
    return t->dtype == DT_DOUBLE ? TENSOR_DATA(t, double)[at]
                                 : TENSOR_DATA(t, float)[at];
}

static void store(struct tensor *t, int64_t at, double v)
{
    if (t->dtype == DT_DOUBLE)
        TENSOR_DATA(t, double)[at] = v;
    else
        TENSOR_DATA(t, float)[at] = (float)v;
}

/* ---- one sequence ---- */

struct ctc_run {
    const struct ctc_job *j;
    int64_t b, times, states;
    const int32_t *label;
    double *log_y, *alpha, *beta; /* [T, C], [T, U], [T, U] */
};

static int64_t class_of(const struct ctc_run *r, int64_t u)
{
    return u % 2 ? r->label[u / 2] : r->j->classes - 1;
}

/* Whether state u may be reached from u - 2, over the blank between. */
static bool may_skip(const struct ctc_run *r, int64_t u)
{
    return u > 1 && u % 2 &&
           !(r->j->node->merge && r->label[u / 2] == r->label[u / 2 - 1]);
}

static bool may_stay(const struct ctc_run *r, int64_t u)
{
    return u % 2 == 0 || r->j->node->merge;
}

static void log_softmax(const struct ctc_run *r)
{
    int64_t n = r->j->classes;

    for (int64_t t = 0; t < r->times; t++) {
        int64_t at = (t * r->j->batch + r->b) * n;
        double most = -INFINITY, sum = 0;

        for (int64_t k = 0; k < n; k++)
            most = MAX(most, load(r->j->in, at + k));
        for (int64_t k = 0; k < n; k++)
            sum += exp(load(r->j->in, at + k) - most);
        for (int64_t k = 0; k < n; k++)
            r->log_y[t * n + k] = load(r->j->in, at + k) - most - log(sum);
    }
}

static void forward(const struct ctc_run *r)
{
    int64_t n = r->j->classes, states = r->states;

    for (int64_t u = 0; u < states; u++)
        r->alpha[u] = u < 2 ? r->log_y[class_of(r, u)] : -INFINITY;
    for (int64_t t = 1; t < r->times; t++) {
        const double *old = r->alpha + (t - 1) * states;

        for (int64_t u = 0; u < states; u++) {
            double sum = may_stay(r, u) ? old[u] : -INFINITY;

            if (u)
                sum = log_add(sum, old[u - 1]);
            if (may_skip(r, u))
                sum = log_add(sum, old[u - 2]);
            r->alpha[t * states + u] = sum + r->log_y[t * n + class_of(r, u)];
        }
    }
}

static void backward(const struct ctc_run *r)
{
    int64_t n = r->j->classes, states = r->states, last = r->times - 1;

    for (int64_t u = 0; u < states; u++)
        r->beta[last * states + u] = u >= states - 2 ? 0 : -INFINITY;
    for (int64_t t = last - 1; t >= 0; t--) {
        const double *next = r->beta + (t + 1) * states;
        const double *y = r->log_y + (t + 1) * n;

        for (int64_t u = 0; u < states; u++) {
            double sum =
                may_stay(r, u) ? next[u] + y[class_of(r, u)] : -INFINITY;

            if (u + 1 < states)
                sum = log_add(sum, next[u + 1] + y[class_of(r, u + 1)]);
            if (u + 2 < states && may_skip(r, u + 2))
                sum = log_add(sum, next[u + 2] + y[class_of(r, u + 2)]);
            r->beta[t * states + u] = sum;
        }
    }
}

/* y - the share of each class in all paths; just y when there is no path. */
static void gradient(const struct ctc_run *r, double log_p)
{
    int64_t n = r->j->classes;

    for (int64_t t = 0; t < r->times; t++) {
        int64_t at = (t * r->j->batch + r->b) * n;
        double *y = r->log_y + t * n;

        for (int64_t k = 0; k < n; k++)
            y[k] = exp(y[k]);
        for (int64_t u = 0; u < r->states && log_p > -INFINITY; u++)
            y[class_of(r, u)] -= exp(r->alpha[t * r->states + u] +
                                     r->beta[t * r->states + u] - log_p);
        for (int64_t k = 0; k < n; k++)
            store(r->j->grad, at + k, y[k]);
    }
}

static void run_one(struct ctc_job *j, int64_t b)
{
    int64_t labels = j->labels.begin[b + 1] - j->labels.begin[b];
    struct ctc_run r = { .j = j, .b = b, .times = j->length[b] };
    double log_p = -INFINITY;
    struct buffer *memory;

    if (!r.times || (j->node->ignore_longer && labels > r.times))
        return;
    r.label = j->labels.label + j->labels.begin[b];
    r.states = 2 * labels + 1;
    memory = buffer_new((size_t)(r.times * (j->classes + 2 * r.states)) *
                        sizeof(double));
    if (!memory) {
        atomic_store(&j->failed, true);
        return;
    }
    r.log_y = (double *)memory->data;
    r.alpha = r.log_y + r.times * j->classes;
    r.beta = r.alpha + r.times * r.states;
    log_softmax(&r);
    forward(&r);
    backward(&r);
    for (int64_t u = 0; u < r.states; u++)
        log_p = log_add(log_p, r.alpha[u] + r.beta[u]);
    store(j->loss, b, -log_p);
    gradient(&r, log_p);
    buffer_unref(memory);
}

static void run_batch(void *arg, int64_t begin, int64_t end)
{
    for (int64_t b = begin; b < end; b++)
        run_one(arg, b);
}

/* ---- labels ---- */

/* Labels of batch b from [from, to) of the values; the rest of a sequence
 * after a blank must be blank. */
static enum mst_code take_labels(struct op_ctx *c, struct ctc_job *j, int64_t b,
                                 int64_t from, int64_t to)
{
    const int32_t *value = op_in(c, 2)->data;
    int64_t n = j->labels.begin[b], room = j->length[b];
    bool ended = false;

    for (int64_t i = from; i < to; i++) {
        if (i > from && j->node->collapse && value[i] == value[i - 1])
            continue;
        if (value[i] >= j->classes - 1) {
            ended = true;
            continue;
        }
        if (ended)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Saw a non-null label (index >= num_classes - 1) "
                           "following a null label, batch: %lld num_classes: "
                           "%lld",
                           (long long)b, (long long)j->classes);
        if (value[i] < 0)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "All labels must be nonnegative integers, batch: "
                           "%lld",
                           (long long)b);
        j->labels.label[n++] = value[i];
    }
    j->labels.begin[b + 1] = n;
    if (!j->node->ignore_longer && to - from > room)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Not enough time for target transition sequence "
                       "(required: %lld, available: %lld)%lldYou can turn this "
                       "error into a warning by using the flag "
                       "ignore_longer_outputs_than_inputs",
                       (long long)(to - from), (long long)room, (long long)b);
    return MST_OK;
}

static enum mst_code read_labels(struct op_ctx *c, struct ctc_job *j)
{
    const struct tensor *at = op_in(c, 1);
    const int64_t *index = at->data;
    int64_t i = 0;

    for (int64_t b = 0; b < j->batch; b++) {
        int64_t from = i;
        enum mst_code rc;

        while (i < at->dims[0] && index[2 * i] == b)
            i++;
        rc = take_labels(c, j, b, from, i);
        if (rc)
            return rc;
    }
    if (i < at->dims[0])
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "label SparseTensor is not valid: indices[%lld] = "
                       "[%lld,%lld] is out of order or out of bounds",
                       (long long)i, (long long)index[2 * i],
                       (long long)index[2 * i + 1]);
    return MST_OK;
}

static enum mst_code check_inputs(struct op_ctx *c, struct ctc_job *j)
{
    const struct tensor *in = op_in(c, 0), *index = op_in(c, 1);
    const struct tensor *value = op_in(c, 2), *length = op_in(c, 3);

    if (in->ndim != 3)
        return op_fail(c, MST_INVALID_ARGUMENT, "inputs is not a 3-Tensor");
    if (length->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "sequence_length is not a vector");
    if (index->ndim != 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "labels_indices is not a matrix");
    if (index->dims[1] != 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "labels_indices second dimension must be >= 1. Received "
                       "%lld",
                       (long long)index->dims[1]);
    if (value->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "labels_values is not a vector");
    j->times = in->dims[0];
    j->batch = in->dims[1];
    j->classes = in->dims[2];
    if (!j->batch)
        return op_fail(c, MST_INVALID_ARGUMENT, "batch_size must not be 0");
    if (!j->times || !j->classes)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "inputs must have times and classes");
    if (length->count != j->batch)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "len(sequence_length) != batch_size.  "
                       "len(sequence_length):  %lld batch_size: %lld",
                       (long long)length->count, (long long)j->batch);
    if (index->dims[0] != value->count)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "labels_indices and labels_values must contain the same "
                       "number of rows, but saw shapes: [%lld,2] vs. [%lld]",
                       (long long)index->dims[0], (long long)value->count);
    j->length = length->data;
    for (int64_t b = 0; b < j->batch; b++)
        if (j->length[b] < 0)
            return op_fail(c, MST_INVALID_ARGUMENT, "seq_len(%lld) < 0",
                           (long long)b);
        else if (j->length[b] > j->times)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "sequence_length(%lld) <= %lld", (long long)b,
                           (long long)j->times);
    return MST_OK;
}

static enum mst_code ctc_loss(struct op_ctx *c)
{
    struct ctc_job j = { .node = c->node->state, .in = op_in(c, 0) };
    enum mst_code rc = check_inputs(c, &j);

    if (!rc)
        rc = op_out_new(c, 0, 1, &j.batch);
    if (!rc)
        rc = op_out_like(c, 1, op_in(c, 0));
    if (rc)
        return rc;
    tensor_zero(op_out(c, 0));
    tensor_zero(op_out(c, 1));
    j.loss = op_out(c, 0);
    j.grad = op_out(c, 1);
    j.labels.label = mem_array((size_t)op_in(c, 2)->count + 1, sizeof(int32_t));
    j.labels.begin = mem_array((size_t)j.batch + 1, sizeof(int64_t));
    rc = read_labels(c, &j);
    if (!rc)
        op_for(c, j.batch,
               (double)j.times *
                   (10 * (double)j.classes +
                    100 * (double)op_in(c, 2)->count / (double)j.batch),
               run_batch, &j);
    mem_free(j.labels.label);
    mem_free(j.labels.begin);
    if (!rc && atomic_load(&j.failed))
        rc = op_fail(c, MST_RESOURCE_EXHAUSTED, "OOM in CTCLoss");
    return rc;
}

const struct op_def def_ctc_loss = {
    .name = "CTCLoss",
    .in = "inputs: T, labels_indices: int64, labels_values: int32, "
          "sequence_length: int32",
    .out = "loss: T, gradient: T",
    .attr = "preprocess_collapse_repeated: bool = false; "
            "ctc_merge_repeated: bool = true; "
            "ignore_longer_outputs_than_inputs: bool = false; "
            "T: {float, double} = float",
    .init = ctc_init,
    .kernel = KERNELS({ DT_ANY, ctc_loss }, ),
};
