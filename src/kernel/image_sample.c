/*
 * A random part of an image that still shows enough of one of its objects:
 * SampleDistortedBoundingBox in three forms. Proportions, size and place are
 * drawn until they fit, a given number of times; then it is the whole image.
 * The numbers drawn are TensorFlow's.
 */
#include <math.h>

#include "base/mem.h"
#include "kernel/random_fill.h"
#include "kernel/random_state.h"
#include "kernel/types.h"

struct rect {
    int32_t x0, y0, x1, y1;
};

static float area(struct rect r)
{
    return (float)((int64_t)(r.x1 - r.x0) * (r.y1 - r.y0));
}

static struct rect common(struct rect a, struct rect b)
{
    struct rect r = { MAX(a.x0, b.x0), MAX(a.y0, b.y0), MIN(a.x1, b.x1),
                      MIN(a.y1, b.y1) };

    return r.x0 > r.x1 || r.y0 > r.y1 ? (struct rect){ 0 } : r;
}

struct sample {
    int32_t width, height;
    float aspect[2], area[2], covered;
    int64_t attempts;
    struct rect *objects;
    int64_t count;
};

/* ---- drawing ---- */

static int32_t rounded(float x)
{
    return (int32_t)lrintf(x);
}

/* The greatest height with which the width still fits. */
static int32_t highest(const struct sample *s, float aspect, float most)
{
    int32_t h = rounded(sqrtf(most / aspect));

    if (rounded((float)h * aspect) > s->width) {
        h = (int32_t)((float)(s->width + 0.5 - 0.0000001f) / aspect);
        if (rounded((float)h * aspect) > s->width)
            h--;
    }
    return MIN(h, s->height);
}

static bool draw(const struct sample *s, float aspect, struct philox_words *w,
                 struct rect *ret)
{
    float least = s->area[0] * (float)s->width * (float)s->height;
    float most = s->area[1] * (float)s->width * (float)s->height;
    int32_t h, top, x = 0, y = 0;
    int64_t width;

    if (s->area[1] <= 0 || aspect <= 0 || s->width <= 0 || s->height <= 0 ||
        s->area[0] > s->area[1])
        return false;
    top = highest(s, aspect, most);
    h = MIN(rounded(sqrtf(least / aspect)), top);
    if (h < top)
        h += (int32_t)philox_below(w, (uint32_t)(top - h + 1));
    width = rounded((float)h * aspect);
    /* Rounding is no reason to fail. */
    if ((float)(width * h) < least)
        width = rounded((float)++h * aspect);
    if ((float)(width * h) > most)
        width = rounded((float)--h * aspect);
    if ((float)(width * h) < least || (float)(width * h) > most ||
        width > s->width || h > s->height || width <= 0 || h <= 0)
        return false;
    if (h < s->height)
        y = (int32_t)philox_below(w, (uint32_t)(s->height - h));
    if (width < s->width)
        x = (int32_t)philox_below(w, (uint32_t)(s->width - width));
    *ret = (struct rect){ x, y, x + (int32_t)width, y + h };
    return true;
}

static bool shows(const struct sample *s, struct rect r)
{
    if (area(r) < 1)
        return false;
    for (int64_t i = 0; i < s->count; i++) {
        float size = area(s->objects[i]);

        if (size >= 1 && area(common(r, s->objects[i])) / size >= s->covered)
            return true;
    }
    return false;
}

static struct rect choose(const struct sample *s, struct philox gen)
{
    struct philox_words w = philox_words(gen);
    struct rect r;

    for (int64_t i = 0; i < s->attempts; i++) {
        float aspect =
            philox_float(philox_word(&w)) * (s->aspect[1] - s->aspect[0]) +
            s->aspect[0];

        if (draw(s, aspect, &w, &r) && shows(s, r))
            return r;
    }
    return (struct rect){ 0, 0, s->width, s->height };
}

/* ---- what the op is given ---- */

static int64_t whole_at(const struct tensor *t, int64_t i)
{
    switch (t->dtype) {
    case DT_UINT8:
        return TENSOR_DATA(t, uint8_t)[i];
    case DT_INT8:
        return TENSOR_DATA(t, int8_t)[i];
    case DT_INT16:
        return TENSOR_DATA(t, int16_t)[i];
    default:
        return tensor_int(t, i);
    }
}

static void put_whole(struct tensor *t, int64_t i, int64_t x)
{
    switch (t->dtype) {
    case DT_UINT8:
    case DT_INT8:
        TENSOR_DATA(t, uint8_t)[i] = (uint8_t)x;
        break;
    case DT_INT16:
        TENSOR_DATA(t, int16_t)[i] = (int16_t)x;
        break;
    case DT_INT32:
        TENSOR_DATA(t, int32_t)[i] = (int32_t)x;
        break;
    default:
        TENSOR_DATA(t, int64_t)[i] = x;
    }
}

static enum mst_code check_size(struct op_ctx *c, struct sample *s)
{
    const struct tensor *size = op_in(c, 0);
    char text[SHAPE_TEXT_MAX];

    if (size->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "image_size must be 1-dimensional: %s",
                       tensor_shape_text(size, text));
    if (size->count != 3)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "image_size must contain 3 elements: %s",
                       tensor_shape_text(size, text));
    for (int i = 0; i < 2; i++)
        if (whole_at(size, i) < 0 || whole_at(size, i) > INT32_MAX)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Image height and width must be positive.");
    s->height = (int32_t)whole_at(size, 0);
    s->width = (int32_t)whole_at(size, 1);
    return MST_OK;
}

static enum mst_code read_objects(struct op_ctx *c, struct sample *s)
{
    const struct tensor *boxes = op_in(c, 1);
    const float *b = boxes->data;
    char text[SHAPE_TEXT_MAX];

    if (boxes->ndim != 3)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "input boxes must be 3-dimensional [batch, num_boxes, "
                       "coords]: %s",
                       tensor_shape_text(boxes, text));
    if (boxes->dims[2] != 4)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "bounding boxes must have shape [4] or [*, 4], got %s",
                       tensor_shape_text(boxes, text));
    s->count = boxes->count / 4;
    s->objects = mem_array((size_t)s->count + 1, sizeof(s->objects[0]));
    for (int64_t i = 0; i < s->count; i++, b += 4) {
        for (int k = 0; k < 4; k++)
            if (!(b[k] >= 0 && b[k] <= 1))
                return op_fail(c, MST_INVALID_ARGUMENT,
                               "All bounding box coordinates must be in [0.0, "
                               "1.0]: %g",
                               b[k]);
        s->objects[i] = (struct rect){ (int32_t)(b[1] * (float)s->width),
                                       (int32_t)(b[0] * (float)s->height),
                                       (int32_t)(b[3] * (float)s->width),
                                       (int32_t)(b[2] * (float)s->height) };
    }
    if (s->count)
        return MST_OK;
    if (!op_attr_bool(c->node, "use_image_if_no_bounding_boxes"))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "No bounding boxes provided as input. One must enable "
                       "use_image_if_no_bounding_boxes if you wish to not "
                       "provide any bounding boxes.");
    s->objects[s->count++] = (struct rect){ 0, 0, s->width, s->height };
    return MST_OK;
}

static enum mst_code read_ranges(struct op_ctx *c, struct sample *s)
{
    const struct attr *aspect = op_attr(c->node, "aspect_ratio_range");
    const struct attr *part = op_attr(c->node, "area_range");
    bool given = c->node->in_count > 2;

    for (int i = 0; i < 2; i++) {
        s->aspect[i] = aspect->value[i].f;
        s->area[i] = part->value[i].f;
    }
    s->attempts = op_attr_int(c->node, "max_attempts");
    if (given && op_in(c, 2)->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "min_object_covered must be 0-D");
    s->covered = given ? *TENSOR_DATA(op_in(c, 2), float)
                       : op_attr_float(c->node, "min_object_covered");
    if (!(s->covered >= 0))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Min object covered must be non-negative: %g",
                       s->covered);
    return MST_OK;
}

/* ---- the ops ---- */

static enum mst_code give(struct op_ctx *c, const struct sample *s,
                          struct rect r)
{
    enum mst_code rc = op_out_new(c, 0, 1, (int64_t[]){ 3 });
    float *box;

    if (!rc)
        rc = op_out_new(c, 1, 1, (int64_t[]){ 3 });
    if (!rc)
        rc = op_out_new(c, 2, 3, (int64_t[]){ 1, 1, 4 });
    if (rc)
        return rc;
    put_whole(op_out(c, 0), 0, r.y0);
    put_whole(op_out(c, 0), 1, r.x0);
    put_whole(op_out(c, 0), 2, 0);
    put_whole(op_out(c, 1), 0, r.y1 - r.y0);
    put_whole(op_out(c, 1), 1, r.x1 - r.x0);
    put_whole(op_out(c, 1), 2, -1);
    box = op_out(c, 2)->data;
    box[0] = (float)r.y0 / (float)s->height;
    box[1] = (float)r.x0 / (float)s->width;
    box[2] = (float)r.y1 / (float)s->height;
    box[3] = (float)r.x1 / (float)s->width;
    return MST_OK;
}

static enum mst_code sample_box(struct op_ctx *c)
{
    struct sample s = { 0 };
    struct philox gen = { 0 };
    enum mst_code rc = check_size(c, &s);

    if (!rc)
        rc = read_ranges(c, &s);
    if (!rc)
        rc = read_objects(c, &s);
    if (!rc && c->node->in_count > 3)
        rc = random_scramble(c, 3, &gen);
    else if (!rc)
        gen = random_reserve(c, (uint64_t)s.attempts);
    if (!rc)
        rc = give(c, &s, choose(&s, gen));
    mem_free(s.objects);
    return rc;
}

static enum mst_code sample_init(struct op_node *n, struct status *st)
{
    static const char *const names[] = { "aspect_ratio_range", "area_range" };

    for (int k = 0; k < 2; k++) {
        const struct attr *a = op_attr(n, names[k]);

        if (a->count != 2)
            return status_set(st, MST_INVALID_ARGUMENT,
                              "%s field must specify 2 dimensions", names[k]);
        if (!(a->value[0].f > 0) || !(a->value[1].f > 0) ||
            (k && (a->value[0].f > 1 || a->value[1].f > 1)))
            return status_set(st, MST_INVALID_ARGUMENT,
                              "%s must be positive%s: [%g, %g]", names[k],
                              k ? " and at most 1" : "", a->value[0].f,
                              a->value[1].f);
    }
    if (op_attr_int(n, "max_attempts") <= 0)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "max_attempts must be positive: %lld",
                          (long long)op_attr_int(n, "max_attempts"));
    if (!(n->def->flags & OP_STATEFUL))
        return MST_OK;
    return random_state_init(n, st);
}

#define SAMPLE_DEF(stem, text, in_, attrs, flags_, done_)                      \
    const struct op_def def_##stem = {                                         \
        .name = text,                                                          \
        .in = "image_size: T, bounding_boxes: float" in_,                      \
        .out = "begin: T, size: T, bboxes: float",                             \
        .attr = "T: {uint8, int8, int16, int32, int64}; " attrs                \
                "aspect_ratio_range: list(float) = [0.75, 1.33]; "             \
                "area_range: list(float) = [0.05, 1]; "                        \
                "max_attempts: int = 100; "                                    \
                "use_image_if_no_bounding_boxes: bool = false",                \
        .flags = flags_,                                                       \
        .init = sample_init,                                                   \
        .done = done_,                                                         \
        .kernel = (const struct op_kernel[]){ { DT_ANY, sample_box }, { 0 } }, \
    }

SAMPLE_DEF(sample_distorted_bounding_box, "SampleDistortedBoundingBox", "",
           "seed: int = 0; seed2: int = 0; min_object_covered: float = 0.1; ",
           OP_STATEFUL, random_state_done);
SAMPLE_DEF(sample_distorted_bounding_box_v2, "SampleDistortedBoundingBoxV2",
           ", min_object_covered: float", "seed: int = 0; seed2: int = 0; ",
           OP_STATEFUL, random_state_done);
SAMPLE_DEF(stateless_sample_distorted_bounding_box,
           "StatelessSampleDistortedBoundingBox",
           ", min_object_covered: float, seed: Tseed",
           "Tseed: {int32, int64}; ", 0, NULL);
