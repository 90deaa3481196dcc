/*
 * Ops whose result is a serialized Summary, for a client that writes it to an
 * event file.
 */
#include "base/map.h"
#include "kernel/summary_value.h"
#include "kernel/types.h"

/* One function for all types. */
#define ALL_ROW(s, T, A, DT, LD, ST, op) { DT, op },

#define SUMMARY_TYPES                                                          \
    "{float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, "     \
    "half, uint32, uint64}"

/* The message is the result, if rc is OK; o ends here. */
static enum mst_code give(struct op_ctx *c, struct pb_out *o, enum mst_code rc)
{
    if (!rc)
        rc = op_out_new(c, 0, 0, NULL);
    if (!rc)
        str_set(tensor_str(op_out(c, 0), 0), o->data, o->len);
    pb_out_done(o);
    return rc;
}

static enum mst_code check_scalar(struct op_ctx *c, int i, const char *text)
{
    if (!op_in(c, i)->ndim)
        return MST_OK;
    return op_fail(c, MST_INVALID_ARGUMENT, "%s", text);
}

/* ---- numbers ---- */

static enum mst_code scalar_summary(struct op_ctx *c)
{
    const struct tensor *tags = op_in(c, 0), *values = op_in(c, 1);
    char a[SHAPE_TEXT_MAX], b[SHAPE_TEXT_MAX];
    struct pb_out o;

    if (!tensor_same_shape(tags, values)) {
        op_fail(c, MST_INVALID_ARGUMENT,
                "tags and values are not the same shape: %s != %s",
                tensor_shape_text(tags, a), tensor_shape_text(values, b));
        if (tags->count == 1)
            status_append(c->st, " (tag '%.*s')",
                          (int)MIN(tensor_str(tags, 0)->len, 500),
                          tensor_str(tags, 0)->data);
        return MST_INVALID_ARGUMENT;
    }
    pb_out_init(&o);
    for (int64_t i = 0; i < tags->count; i++)
        summary_put_scalar(&o, tensor_str(tags, i),
                           (float)summary_number(values, i));
    return give(c, &o, MST_OK);
}

const struct op_def def_scalar_summary = {
    .name = "ScalarSummary",
    .in = "tags: string, values: T",
    .out = "summary: string",
    .attr = "T: " SUMMARY_TYPES,
    .kernel = KERNELS(TYPES_REAL(ALL_ROW, scalar_summary)),
};

static enum mst_code histogram_summary(struct op_ctx *c)
{
    enum mst_code rc = check_scalar(c, 0, "tags must be scalar");
    struct pb_out o;

    pb_out_init(&o);
    if (!rc)
        rc = summary_put_histogram(c, &o, tensor_str(op_in(c, 0), 0),
                                   op_in(c, 1));
    return give(c, &o, rc);
}

const struct op_def def_histogram_summary = {
    .name = "HistogramSummary",
    .in = "tag: string, values: T",
    .out = "summary: string",
    .attr = "T: " SUMMARY_TYPES " = float",
    .kernel = KERNELS(TYPES_REAL(ALL_ROW, histogram_summary)),
};

/* ---- tensors ---- */

static enum mst_code tensor_summary(struct op_ctx *c)
{
    struct pb_out o;

    pb_out_init(&o);
    return give(
        c, &o,
        summary_put_tensor(c, &o, NULL, c->node->name, op_in(c, 0), NULL));
}

const struct op_def def_tensor_summary = {
    .name = "TensorSummary",
    .in = "tensor: T",
    .out = "summary: string",
    .attr = "T: type; description: string = ''; "
            "labels: list(string) >= 0 = []; display_name: string = ''",
    .kernel = (const struct op_kernel[]){ { DT_ANY, tensor_summary }, { 0 } },
};

static enum mst_code tensor_summary_v2(struct op_ctx *c)
{
    enum mst_code rc = check_scalar(c, 0, "tag must be scalar");
    struct pb_out o;

    if (!rc)
        rc = check_scalar(c, 2, "serialized_summary_metadata must be scalar");
    pb_out_init(&o);
    if (!rc)
        rc = summary_put_tensor(c, &o, tensor_str(op_in(c, 0), 0), NULL,
                                op_in(c, 1), tensor_str(op_in(c, 2), 0));
    return give(c, &o, rc);
}

const struct op_def def_tensor_summary_v2 = {
    .name = "TensorSummaryV2",
    .in = "tag: string, tensor: T, serialized_summary_metadata: string",
    .out = "summary: string",
    .attr = "T: type",
    .kernel =
        (const struct op_kernel[]){ { DT_ANY, tensor_summary_v2 }, { 0 } },
};

/* ---- images and sounds ---- */

struct media {
    int64_t most;
    const struct tensor *bad_color;
    struct tensor red;
    float rate;
};

static enum mst_code image_init(struct op_node *n, struct status *st)
{
    struct media *m = ARENA_NEW(n->arena, struct media);
    enum mst_code rc;

    n->state = m;
    m->most = op_attr_int(n, "max_images");
    /* The default, which a master strips. */
    rc = tensor_new(&m->red, DT_UINT8, 1, (int64_t[]){ 4 }, st);
    if (rc)
        return rc;
    memcpy(m->red.data, (uint8_t[]){ 255, 0, 0, 255 }, 4);
    m->bad_color = op_attr_tensor(n, "bad_color");
    if (!m->bad_color)
        m->bad_color = &m->red;
    if (m->bad_color->dtype != DT_UINT8 || m->bad_color->ndim != 1) {
        tensor_unref(&m->red);
        return status_set(st, MST_INVALID_ARGUMENT,
                          "bad_color must be a vector of uint8, got %s",
                          dtype_name(m->bad_color->dtype));
    }
    return MST_OK;
}

static void image_done(struct op_node *n)
{
    struct media *m = n->state;

    tensor_unref(&m->red);
}

static enum mst_code image_summary(struct op_ctx *c)
{
    const struct media *m = c->node->state;
    enum mst_code rc = check_scalar(c, 0, "Tags must be a scalar");
    struct pb_out o;

    pb_out_init(&o);
    if (!rc)
        rc = summary_put_images(c, &o, tensor_str(op_in(c, 0), 0), op_in(c, 1),
                                m->most, m->bad_color);
    return give(c, &o, rc);
}

const struct op_def def_image_summary = {
    .name = "ImageSummary",
    .in = "tag: string, tensor: T",
    .out = "summary: string",
    .attr = "max_images: int >= 1 = 3; "
            "T: {uint8, float, half, double} = float; bad_color: tensor = none",
    .flags = OP_EXPENSIVE,
    .init = image_init,
    .done = image_done,
    .kernel = KERNELS({ DT_UINT8, image_summary }, { DT_HALF, image_summary },
                      TYPES_FLOAT_WIDE(ALL_ROW, image_summary)),
};

static enum mst_code audio_init(struct op_node *n, struct status *st)
{
    struct media *m = ARENA_NEW(n->arena, struct media);

    (void)st;
    m->most = op_attr_int(n, "max_outputs");
    if (!strcmp(n->def->name, "AudioSummary"))
        m->rate = op_attr_float(n, "sample_rate");
    n->state = m;
    return MST_OK;
}

static enum mst_code audio_summary(struct op_ctx *c)
{
    const struct media *m = c->node->state;
    enum mst_code rc = check_scalar(c, 0, "Tag must be a scalar");
    float rate = m->rate;
    struct pb_out o;

    pb_out_init(&o);
    if (!rc && c->node->in_count == 3) {
        rc = check_scalar(c, 2, "sample_rate must be rank-0");
        if (!rc)
            rate = *TENSOR_DATA(op_in(c, 2), float);
    }
    if (!rc)
        rc = summary_put_audio(c, &o, tensor_str(op_in(c, 0), 0), op_in(c, 1),
                               m->most, rate);
    return give(c, &o, rc);
}

const struct op_def def_audio_summary = {
    .name = "AudioSummary",
    .in = "tag: string, tensor: float",
    .out = "summary: string",
    .attr = "sample_rate: float; max_outputs: int >= 1 = 3",
    .init = audio_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, audio_summary }, { 0 } },
};

const struct op_def def_audio_summary_v2 = {
    .name = "AudioSummaryV2",
    .in = "tag: string, tensor: float, sample_rate: float",
    .out = "summary: string",
    .attr = "max_outputs: int >= 1 = 3",
    .init = audio_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, audio_summary }, { 0 } },
};

/* ---- MergeSummary ---- */

/* The tag of a value; false when it is malformed. */
static bool tag_of(const struct pb_field *value, struct pb_field *ret)
{
    struct pb_in in = pb_in(value->data, value->len);
    struct pb_field f;

    ret->len = 0;
    while (pb_next(&in, &f))
        if (f.number == 1 && f.wire == PB_LEN)
            *ret = f;
    return !in.bad;
}

static enum mst_code merge_one(struct op_ctx *c, const struct str *s,
                               struct map *tags, struct pb_out *o)
{
    struct pb_in in = pb_in(s->data, s->len);
    struct pb_field f, tag;
    bool bad = false;

    while (!bad && pb_next(&in, &f)) {
        if (f.number != 1)
            continue;
        bad = f.wire != PB_LEN || !tag_of(&f, &tag);
        if (bad)
            break;
        if (tag.len && map_put(tags, tag.data, tag.len, c))
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Duplicate tag %.*s found in summary inputs",
                           (int)MIN(tag.len, 1000), (const char *)tag.data);
        pb_put_bytes(o, 1, f.data, f.len);
    }
    if (bad || in.bad)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Could not parse one of the summary inputs");
    return MST_OK;
}

static enum mst_code merge_summary(struct op_ctx *c)
{
    enum mst_code rc = MST_OK;
    struct map tags;
    struct pb_out o;

    map_init(&tags);
    pb_out_init(&o);
    for (int i = 0; i < c->node->in_count; i++)
        for (int64_t k = 0; k < op_in(c, i)->count && !rc; k++)
            rc = merge_one(c, tensor_str(op_in(c, i), k), &tags, &o);
    map_done(&tags);
    return give(c, &o, rc);
}

const struct op_def def_merge_summary = {
    .name = "MergeSummary",
    .in = "inputs: N * string",
    .out = "summary: string",
    .attr = "N: int >= 1",
    .kernel = (const struct op_kernel[]){ { DT_ANY, merge_summary }, { 0 } },
};
