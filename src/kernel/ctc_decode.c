/*
 * CTCGreedyDecoder and CTCBeamSearchDecoder: from outputs [T, B, C] to the most
 * probable labels. The last class is the blank (the greedy one may be told
 * another).
 *
 * The beam holds nodes of a tree of labels. Each has the probability of all
 * paths that end in its label and that of those that end in a blank after it.
 * In a step every node of the beam goes on by its own label or a blank, and
 * grows children; a child takes the place of the worst node.
 */
#include <string.h>

#include "base/mem.h"
#include "kernel/types.h"

struct decode_node {
    bool merge;
    int64_t blank, width, paths;
};

static enum mst_code decode_init(struct op_node *n, struct status *st)
{
    struct decode_node *s = ARENA_NEW(n->arena, struct decode_node);
    bool beam = op_attr(n, "beam_width") != NULL;

    s->merge = op_attr_bool(n, "merge_repeated");
    s->blank = beam ? -1 : op_attr_int(n, "blank_index");
    s->width = beam ? op_attr_int(n, "beam_width") : 1;
    s->paths = beam ? op_attr_int(n, "top_paths") : 1;
    n->state = s;
    if (s->width > INT32_MAX)
        return status_set(st, MST_INVALID_ARGUMENT, "beam_width is too large");
    return MST_OK;
}

/* Labels of all sequences of a batch, one path each. */
struct decoded {
    int64_t *label;
    int64_t count, room;
    int64_t *length; /* [batch] */
};

static void decoded_push(struct decoded *d, int64_t b, int64_t label)
{
    *MEM_PUSH(d->label, d->count, d->room) = label;
    d->length[b]++;
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

static enum mst_code check_inputs(struct op_ctx *c)
{
    const struct tensor *in = op_in(c, 0), *length = op_in(c, 1);

    if (in->ndim != 3)
        return op_fail(c, MST_INVALID_ARGUMENT, "inputs is not a 3-Tensor");
    if (!in->dims[0])
        return op_fail(c, MST_INVALID_ARGUMENT, "max_time is 0");
    if (!in->dims[2])
        return op_fail(c, MST_INVALID_ARGUMENT, "num_classes is 0");
    if (length->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "sequence_length is not a vector");
    if (length->count != in->dims[1])
        return op_fail(c, MST_FAILED_PRECONDITION,
                       "len(sequence_length) != batch_size.  "
                       "len(sequence_length):  %lld batch_size: %lld",
                       (long long)length->count, (long long)in->dims[1]);
    for (int64_t b = 0; b < length->count; b++)
        if (tensor_int(length, b) > in->dims[0])
            return op_fail(c, MST_FAILED_PRECONDITION,
                           "sequence_length(%lld) <= %lld", (long long)b,
                           (long long)in->dims[0]);
    return MST_OK;
}

/* Outputs i, paths + i and 2 * paths + i: indices, values and shape. */
static enum mst_code deliver(struct op_ctx *c, int i, const struct decoded *d)
{
    const struct decode_node *s = c->node->state;
    int64_t batch = op_in(c, 0)->dims[1], n = 0, most = 0, *at, *value;
    int v = (int)s->paths + i, z = 2 * (int)s->paths + i;
    enum mst_code rc = op_out_new(c, i, 2, (int64_t[]){ d->count, 2 });

    if (!rc)
        rc = op_out_new(c, v, 1, &d->count);
    if (!rc)
        rc = op_out_new(c, z, 1, (int64_t[]){ 2 });
    if (rc)
        return rc;
    at = op_out(c, i)->data;
    value = op_out(c, v)->data;
    for (int64_t b = 0; b < batch; b++) {
        for (int64_t k = 0; k < d->length[b]; k++, n++) {
            at[2 * n] = b;
            at[2 * n + 1] = k;
            value[n] = d->label[n];
        }
        most = MAX(most, d->length[b]);
    }
    TENSOR_DATA(op_out(c, z), int64_t)[0] = batch;
    TENSOR_DATA(op_out(c, z), int64_t)[1] = most;
    return MST_OK;
}

/* ---- greedy ---- */

static void greedy_one(struct op_ctx *c, int64_t b, int64_t blank,
                       struct decoded *d)
{
    const struct decode_node *s = c->node->state;
    const struct tensor *in = op_in(c, 0);
    int64_t n = in->dims[2], old = -1;
    double sum = 0;

    for (int64_t t = 0; t < tensor_int(op_in(c, 1), b); t++) {
        int64_t at = (t * in->dims[1] + b) * n, best = 0;

        for (int64_t k = 1; k < n; k++)
            if (load(in, at + k) > load(in, at + best))
                best = k;
        sum -= load(in, at + best);
        if (best != blank && !(s->merge && best == old))
            decoded_push(d, b, best);
        old = best;
    }
    store(op_out(c, 3), b, sum);
}

static enum mst_code greedy(struct op_ctx *c)
{
    const struct decode_node *s = c->node->state;
    const struct tensor *in = op_in(c, 0);
    struct decoded d = { 0 };
    int64_t blank;
    enum mst_code rc = check_inputs(c);

    if (rc)
        return rc;
    blank = s->blank < 0 ? s->blank + in->dims[2] : s->blank;
    if (blank < 0 || blank >= in->dims[2])
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "blank_index expected to be between 0 and "
                       "num_classes-1, got %lld",
                       (long long)s->blank);
    rc = op_out_new(c, 3, 2, (int64_t[]){ in->dims[1], 1 });
    if (rc)
        return rc;
    d.length = mem_array((size_t)in->dims[1] + 1, sizeof(int64_t));
    for (int64_t b = 0; b < in->dims[1]; b++)
        greedy_one(c, b, blank, &d);
    rc = deliver(c, 0, &d);
    mem_free(d.length);
    mem_free(d.label);
    return rc;
}

const struct op_def def_ctc_greedy_decoder = {
    .name = "CTCGreedyDecoder",
    .in = "inputs: T, sequence_length: int32",
    .out = "decoded_indices: int64, decoded_values: int64, "
           "decoded_shape: int64, log_probability: T",
    .attr = "merge_repeated: bool = false; blank_index: int = -1; "
            "T: {float, double} = float",
    .init = decode_init,
    .kernel = KERNELS({ DT_ANY, greedy }, ),
};

/* ---- beam search ---- */

struct prob {
    double total, blank, label; /* logarithms */
};

static const struct prob no_prob = { -INFINITY, -INFINITY, -INFINITY };

/* Nodes by number in one growing array; 0 is the root. */
struct entry {
    int32_t parent, label, child, sibling; /* -1: none */
    struct prob old, now;
};

struct beam {
    struct entry *entry;
    int64_t count, room;
    int32_t *leaf, *branch;
    int64_t leaves, leaf_room, branch_room, width;
    int64_t worst; /* its place in leaf; -1: not known */
};

static double log_add(double a, double b)
{
    double most = a > b ? a : b, least = a > b ? b : a;

    return least == -INFINITY ? most : most + log1p(exp(least - most));
}

static int32_t new_entry(struct beam *m, int32_t parent, int32_t label)
{
    struct entry *e = MEM_PUSH(m->entry, m->count, m->room);

    *e = (struct entry){ parent, label, -1, -1, no_prob, no_prob };
    if (parent >= 0) {
        e->sibling = m->entry[parent].child;
        m->entry[parent].child = (int32_t)(m->count - 1);
    }
    return (int32_t)(m->count - 1);
}

static int32_t find_child(const struct beam *m, int32_t parent, int32_t label)
{
    int32_t i = m->entry[parent].child;

    while (i >= 0 && m->entry[i].label != label)
        i = m->entry[i].sibling;
    return i;
}

static double worst_total(struct beam *m)
{
    if (m->worst < 0) {
        m->worst = 0;
        for (int64_t i = 1; i < m->leaves; i++)
            if (m->entry[m->leaf[i]].now.total <
                m->entry[m->leaf[m->worst]].now.total)
                m->worst = i;
    }
    return m->entry[m->leaf[m->worst]].now.total;
}

static bool is_candidate(struct beam *m, const struct prob *p)
{
    return p->total > -INFINITY &&
           (m->leaves < m->width || p->total > worst_total(m));
}

/* Into the beam, over the worst one if it is full. */
static void push_leaf(struct beam *m, int32_t i)
{
    if (m->leaves < m->width) {
        *MEM_PUSH(m->leaf, m->leaves, m->leaf_room) = i;
    } else {
        worst_total(m);
        m->entry[m->leaf[m->worst]].now = no_prob;
        m->leaf[m->worst] = i;
    }
    m->worst = -1;
}

/* Best first; few, and nearly sorted. */
static void sort_leaves(const struct beam *m, int32_t *leaf, int64_t n)
{
    for (int64_t i = 1; i < n; i++) {
        int32_t x = leaf[i];
        int64_t k = i;

        for (; k && m->entry[leaf[k - 1]].now.total < m->entry[x].now.total;
             k--)
            leaf[k] = leaf[k - 1];
        leaf[k] = x;
    }
}

static void grow(struct beam *m, int32_t b, const double *y, int64_t classes)
{
    if (!is_candidate(m, &m->entry[b].old))
        return;
    for (int32_t k = 0; k < classes - 1; k++) {
        int32_t child = find_child(m, b, k);
        const struct entry *e = &m->entry[b];
        struct prob p = { .blank = -INFINITY };

        if (child >= 0 && m->entry[child].now.total != -INFINITY)
            continue;
        p.label = y[k] + (k == e->label ? e->old.blank : e->old.total);
        p.total = p.label;
        if (is_candidate(m, &p)) {
            if (child < 0)
                child = new_entry(m, b, k);
            m->entry[child].now = p;
            push_leaf(m, child);
        } else if (child >= 0) { /* it will not grow in this step either */
            m->entry[child].old = m->entry[child].now = no_prob;
        }
    }
}

/* One time; y: logarithms of the classes' probabilities. */
static void beam_step(struct beam *m, const double *y, int64_t classes)
{
    int64_t n = m->leaves;
    int32_t *branch;

    sort_leaves(m, m->leaf, n);
    if (n > m->branch_room) {
        m->branch_room = m->leaf_room;
        m->branch =
            mem_grow(m->branch, (size_t)m->branch_room, sizeof(*branch));
    }
    branch = m->branch;
    memcpy(branch, m->leaf, (size_t)n * sizeof(*branch));
    m->leaves = 0;
    m->worst = -1;
    for (int64_t i = 0; i < n; i++)
        m->entry[branch[i]].old = m->entry[branch[i]].now;
    for (int64_t i = 0; i < n; i++) {
        struct entry *e = &m->entry[branch[i]];

        if (e->parent >= 0) {
            const struct entry *up = &m->entry[e->parent];

            if (up->now.total != -INFINITY)
                e->now.label = log_add(e->now.label, e->label == up->label
                                                         ? up->old.blank
                                                         : up->old.total);
            e->now.label += y[e->label];
        }
        e->now.blank = e->old.total + y[classes - 1];
        e->now.total = log_add(e->now.blank, e->now.label);
        push_leaf(m, branch[i]);
    }
    for (int64_t i = 0; i < n; i++)
        grow(m, branch[i], y, classes);
}

/* The labels on the way from the root, repeated ones once if merged. */
static void read_path(const struct beam *m, int32_t i, bool merge, int64_t b,
                      struct decoded *d)
{
    int64_t n = 0, at;
    int32_t old = -1;

    for (int32_t k = i; k > 0; k = m->entry[k].parent) {
        if (!merge || m->entry[k].label != old)
            n++;
        old = m->entry[k].label;
    }
    for (int64_t k = 0; k < n; k++)
        decoded_push(d, b, 0);
    at = d->count;
    old = -1;
    for (int32_t k = i; k > 0; k = m->entry[k].parent) {
        if (!merge || m->entry[k].label != old)
            d->label[--at] = m->entry[k].label;
        old = m->entry[k].label;
    }
}

static void log_softmax(const struct tensor *in, int64_t at, int64_t n,
                        double *y)
{
    double most = -INFINITY, sum = 0;

    for (int64_t k = 0; k < n; k++)
        most = MAX(most, load(in, at + k));
    for (int64_t k = 0; k < n; k++)
        sum += exp(load(in, at + k) - most);
    for (int64_t k = 0; k < n; k++)
        y[k] = load(in, at + k) - most - log(sum);
}

static enum mst_code beam_one(struct op_ctx *c, struct beam *m, int64_t b,
                              double *y, struct decoded *d)
{
    const struct decode_node *s = c->node->state;
    const struct tensor *in = op_in(c, 0);
    int64_t n = in->dims[2];

    m->count = m->leaves = 0;
    m->worst = -1;
    new_entry(m, -1, -1);
    m->entry[0].now = (struct prob){ 0, 0, -INFINITY };
    push_leaf(m, 0);
    for (int64_t t = 0; t < tensor_int(op_in(c, 1), b); t++) {
        log_softmax(in, (t * in->dims[1] + b) * n, n, y);
        beam_step(m, y, n);
    }
    if (m->leaves < s->paths)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Less leaves in the beam search than requested.");
    sort_leaves(m, m->leaf, m->leaves);
    for (int64_t p = 0; p < s->paths; p++) {
        read_path(m, m->leaf[p], s->merge, b, &d[p]);
        store(op_out(c, 3 * (int)s->paths), b * s->paths + p,
              m->entry[m->leaf[p]].now.total);
    }
    return MST_OK;
}

static enum mst_code beam_search(struct op_ctx *c)
{
    const struct decode_node *s = c->node->state;
    const struct tensor *in = op_in(c, 0);
    struct beam m = { .width = s->width };
    struct decoded *d;
    double *y;
    enum mst_code rc = check_inputs(c);

    if (rc)
        return rc;
    if (s->paths > s->width)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "requested more paths than the beam width.");
    rc = op_out_new(c, 3 * (int)s->paths, 2,
                    (int64_t[]){ in->dims[1], s->paths });
    if (rc)
        return rc;
    d = mem_array((size_t)s->paths, sizeof(*d));
    for (int64_t p = 0; p < s->paths; p++)
        d[p].length = mem_array((size_t)in->dims[1] + 1, sizeof(int64_t));
    y = mem_array((size_t)in->dims[2], sizeof(*y));
    for (int64_t b = 0; b < in->dims[1] && !rc; b++)
        rc = beam_one(c, &m, b, y, d);
    for (int64_t p = 0; p < s->paths; p++) {
        if (!rc)
            rc = deliver(c, (int)p, &d[p]);
        mem_free(d[p].length);
        mem_free(d[p].label);
    }
    mem_free(d);
    mem_free(m.leaf);
    mem_free(m.entry);
    mem_free(m.branch);
    mem_free(y);
    return rc;
}

const struct op_def def_ctc_beam_search_decoder = {
    .name = "CTCBeamSearchDecoder",
    .in = "inputs: T, sequence_length: int32",
    .out = "decoded_indices: top_paths * int64, "
           "decoded_values: top_paths * int64, "
           "decoded_shape: top_paths * int64, log_probability: T",
    .attr = "beam_width: int >= 1; top_paths: int >= 1; "
            "merge_repeated: bool = true; T: {float, double} = float",
    .init = decode_init,
    .kernel = KERNELS({ DT_ANY, beam_search }, ),
};
