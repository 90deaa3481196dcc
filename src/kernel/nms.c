/*
 * NonMaxSuppression: boxes by falling score, without those that overlap too
 * much with a better one. The fifth form lowers the score of such a box instead
 * and lets it wait for its turn again.
 */
#include <float.h>
#include <string.h>

#include "base/mem.h"
#include "kernel/types.h"

struct nms_node {
    bool overlaps; /* given as a matrix instead of boxes */
    bool pad;
    int form;
    float iou; /* the first form's, an attribute */
};

static enum mst_code nms_init(struct op_node *n, struct status *st)
{
    struct nms_node *s = ARENA_NEW(n->arena, struct nms_node);
    const struct attr *pad = op_attr(n, "pad_to_max_output_size");
    const char *end = n->def->name + strlen("NonMaxSuppression");

    s->overlaps = *end == 'W';
    s->form = *end == 'V' ? end[1] - '0' : 1;
    s->pad = pad && pad->value->b;
    if (s->form == 1 && !s->overlaps) {
        s->iou = op_attr_float(n, "iou_threshold");
        if (!(s->iou >= 0 && s->iou <= 1))
            return status_set(st, MST_INVALID_ARGUMENT,
                              "iou_threshold must be in [0, 1]");
    }
    n->state = s;
    return MST_OK;
}

/* One run. Candidates are a heap, the best on top; equal scores by number. */
struct candidate {
    int32_t box;
    int64_t seen; /* so many of the selected were looked at */
    float score;
};

struct nms {
    const struct tensor *boxes;
    bool overlaps;
    float iou, threshold, sigma;
    struct candidate *heap;
    int64_t count;
    int32_t *selected;
    float *scores;
    int64_t found, most;
};

static bool better(const struct candidate *a, const struct candidate *b)
{
    return a->score > b->score || (a->score == b->score && a->box < b->box);
}

static void sink(struct nms *m, int64_t i)
{
    for (int64_t k; (k = 2 * i + 1) < m->count; i = k) {
        struct candidate t = m->heap[i];

        if (k + 1 < m->count && better(&m->heap[k + 1], &m->heap[k]))
            k++;
        if (!better(&m->heap[k], &t))
            return;
        m->heap[i] = m->heap[k];
        m->heap[k] = t;
    }
}

static struct candidate pop(struct nms *m)
{
    struct candidate best = m->heap[0];

    m->heap[0] = m->heap[--m->count];
    sink(m, 0);
    return best;
}

static void push(struct nms *m, struct candidate c)
{
    int64_t i = m->count++;

    for (; i && better(&c, &m->heap[(i - 1) / 2]); i = (i - 1) / 2)
        m->heap[i] = m->heap[(i - 1) / 2];
    m->heap[i] = c;
}

static float load(const struct tensor *t, int64_t at)
{
    return t->dtype == DT_HALF ? half_load(TENSOR_DATA(t, half_bits)[at])
                               : TENSOR_DATA(t, float)[at];
}

/* The share of both that both have; corners in either order. */
static float overlap(const struct nms *m, int64_t a, int64_t b)
{
    float p[4], q[4], h, w, area;

    if (m->overlaps)
        return load(m->boxes, a * m->boxes->dims[1] + b);
    for (int i = 0; i < 2; i++) {
        float x = load(m->boxes, 4 * a + i), y = load(m->boxes, 4 * a + 2 + i);
        float u = load(m->boxes, 4 * b + i), v = load(m->boxes, 4 * b + 2 + i);

        p[i] = MIN(x, y);
        p[2 + i] = MAX(x, y);
        q[i] = MIN(u, v);
        q[2 + i] = MAX(u, v);
    }
    if ((p[2] - p[0]) * (p[3] - p[1]) <= 0 ||
        (q[2] - q[0]) * (q[3] - q[1]) <= 0)
        return 0;
    h = MAX(MIN(p[2], q[2]) - MAX(p[0], q[0]), 0);
    w = MAX(MIN(p[3], q[3]) - MAX(p[1], q[1]), 0);
    area = h * w;
    return area / ((p[2] - p[0]) * (p[3] - p[1]) +
                   (q[2] - q[0]) * (q[3] - q[1]) - area);
}

/* Lowers the candidate's score by the selected ones that it has not met; false
 * when one of them rules it out. */
static bool meet(const struct nms *m, struct candidate *c)
{
    float scale = m->sigma > 0 ? -0.5f / m->sigma : 0;

    for (int64_t j = m->found - 1; j >= c->seen; j--) {
        float s = overlap(m, c->box, m->selected[j]);

        if (m->sigma <= 0 && s > m->iou)
            return false;
        c->score *= expf(scale * s * s);
        if (c->score <= m->threshold)
            break;
    }
    c->seen = m->found;
    return true;
}

static void select_boxes(struct nms *m)
{
    while (m->found < m->most && m->count) {
        struct candidate c = pop(m);
        float before = c.score;

        if (!meet(m, &c))
            continue;
        if (c.score == before) {
            m->scores[m->found] = c.score;
            m->selected[m->found++] = c.box;
        } else if (c.score > m->threshold) {
            push(m, c);
        }
    }
}

/* ---- inputs ---- */

static enum mst_code scalar(struct op_ctx *c, int i, const char *name)
{
    char text[SHAPE_TEXT_MAX];

    if (!op_in(c, i)->ndim)
        return MST_OK;
    return op_fail(c, MST_INVALID_ARGUMENT, "%s must be 0-D, got shape %s",
                   name, tensor_shape_text(op_in(c, i), text));
}

static enum mst_code read_limits(struct op_ctx *c, struct nms *m)
{
    static const char *const names[] = { "iou_threshold", "score_threshold",
                                         "soft_nms_sigma" };
    const struct nms_node *s = c->node->state;
    float *const to[] = { &m->iou, &m->threshold, &m->sigma };
    enum mst_code rc = scalar(c, 2, "max_output_size");

    if (rc)
        return rc;
    m->most = tensor_int(op_in(c, 2), 0);
    if (m->most < 0)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "output size must be "
                       "non-negative");
    m->iou = s->iou;
    m->threshold = -FLT_MAX;
    for (int i = 3; i < c->node->in_count; i++) {
        rc = scalar(c, i,
                    s->overlaps && i == 3 ? "overlap_threshold" : names[i - 3]);
        if (rc)
            return rc;
        *to[i - 3] = load(op_in(c, i), 0);
    }
    if (!s->overlaps && !(m->iou >= 0 && m->iou <= 1))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "iou_threshold must be in [0, 1]");
    if (m->sigma < 0)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "soft_nms_sigma must be non-negative");
    return MST_OK;
}

static enum mst_code check_boxes(struct op_ctx *c, struct nms *m)
{
    const struct tensor *b = op_in(c, 0), *scores = op_in(c, 1);
    char text[SHAPE_TEXT_MAX];

    if (b->ndim != 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       m->overlaps ? "overlaps must be 2-D%s"
                                   : "boxes must be 2-D%s",
                       tensor_shape_text(b, text));
    if (m->overlaps && b->dims[0] != b->dims[1])
        return op_fail(c, MST_INVALID_ARGUMENT, "overlaps must be square%s",
                       tensor_shape_text(b, text));
    if (!m->overlaps && b->dims[1] != 4)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "boxes must have 4 columns (Dimension must be 4 but is "
                       "%lld)",
                       (long long)b->dims[1]);
    if (scores->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT, "scores must be 1-D%s",
                       tensor_shape_text(scores, text));
    if (scores->dims[0] != b->dims[0])
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "scores has incompatible shape");
    return MST_OK;
}

static enum mst_code deliver(struct op_ctx *c, const struct nms *m)
{
    const struct nms_node *s = c->node->state;
    int64_t n = s->pad ? m->most : m->found;
    int last = c->node->out_count - 1;
    enum mst_code rc = op_out_new(c, 0, 1, &n);

    if (rc)
        return rc;
    tensor_zero(op_out(c, 0));
    memcpy(op_out(c, 0)->data, m->selected,
           (size_t)m->found * sizeof(*m->selected));
    if (s->form == 5) {
        rc = op_out_new(c, 1, 1, &n);
        if (rc)
            return rc;
        tensor_zero(op_out(c, 1));
        for (int64_t i = 0; i < m->found; i++) {
            if (op_out(c, 1)->dtype == DT_HALF)
                TENSOR_DATA(op_out(c, 1), half_bits)
            [i] = half_store(m->scores[i]);
            else TENSOR_DATA(op_out(c, 1), float)[i] = m->scores[i];
        }
    }
    if (s->form < 4)
        return MST_OK;
    rc = op_out_new(c, last, 0, NULL);
    if (!rc)
        *TENSOR_DATA(op_out(c, last), int32_t) = (int32_t)m->found;
    return rc;
}

static enum mst_code nms(struct op_ctx *c)
{
    const struct nms_node *s = c->node->state;
    struct nms m = { .boxes = op_in(c, 0), .overlaps = s->overlaps };
    int64_t n, room;
    enum mst_code rc = check_boxes(c, &m);

    if (!rc)
        rc = read_limits(c, &m);
    if (rc)
        return rc;
    n = op_in(c, 1)->count;
    room = MIN(n, m.most) + 1;
    m.heap = mem_array((size_t)n + 1, sizeof(*m.heap));
    m.selected = mem_array((size_t)room, sizeof(*m.selected));
    m.scores = mem_array((size_t)room, sizeof(*m.scores));
    for (int64_t i = 0; i < n; i++) {
        float score = load(op_in(c, 1), i);

        if (score > m.threshold)
            push(&m, (struct candidate){ (int32_t)i, 0, score });
    }
    select_boxes(&m);
    rc = deliver(c, &m);
    mem_free(m.heap);
    mem_free(m.selected);
    mem_free(m.scores);
    return rc;
}

#define NMS_DEF(stem, NAME, IN, OUT, ATTR)                                     \
    const struct op_def def_##stem = {                                         \
        .name = NAME,                                                          \
        .in = IN,                                                              \
        .out = OUT,                                                            \
        .attr = ATTR,                                                          \
        .init = nms_init,                                                      \
        .kernel = KERNELS({ DT_ANY, nms }, ),                                  \
    }
#define NMS_TYPES "T: {half, float} = float; T_threshold: {half, float} = float"

NMS_DEF(non_max_suppression, "NonMaxSuppression",
        "boxes: float, scores: float, max_output_size: int32",
        "selected_indices: int32", "iou_threshold: float = 0.5");
NMS_DEF(non_max_suppression_v2, "NonMaxSuppressionV2",
        "boxes: T, scores: T, max_output_size: int32, "
        "iou_threshold: T_threshold",
        "selected_indices: int32", NMS_TYPES);
NMS_DEF(non_max_suppression_v3, "NonMaxSuppressionV3",
        "boxes: T, scores: T, max_output_size: int32, "
        "iou_threshold: T_threshold, score_threshold: T_threshold",
        "selected_indices: int32", NMS_TYPES);
NMS_DEF(non_max_suppression_v4, "NonMaxSuppressionV4",
        "boxes: T, scores: T, max_output_size: int32, "
        "iou_threshold: T_threshold, score_threshold: T_threshold",
        "selected_indices: int32, valid_outputs: int32",
        NMS_TYPES "; pad_to_max_output_size: bool = false");
NMS_DEF(non_max_suppression_v5, "NonMaxSuppressionV5",
        "boxes: T, scores: T, max_output_size: int32, iou_threshold: T, "
        "score_threshold: T, soft_nms_sigma: T",
        "selected_indices: int32, selected_scores: T, valid_outputs: int32",
        "T: {half, float} = float; pad_to_max_output_size: bool = false");
NMS_DEF(non_max_suppression_with_overlaps, "NonMaxSuppressionWithOverlaps",
        "overlaps: float, scores: float, max_output_size: int32, "
        "overlap_threshold: float, score_threshold: float",
        "selected_indices: int32", "");
