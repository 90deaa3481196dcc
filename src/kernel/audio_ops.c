/*
 * DecodeWav and EncodeWav. The spectra that models of speech compute of them
 * (AudioSpectrogram, Mfcc) are left out: nobody has asked yet.
 */
#include "kernel/types.h"
#include "kernel/wav.h"

struct decode {
    int64_t channels, samples;
};

static enum mst_code wav_init(struct op_node *n, struct status *st)
{
    struct decode *d = ARENA_NEW(n->arena, struct decode);

    (void)st;
    d->channels = op_attr_int(n, "desired_channels");
    d->samples = op_attr_int(n, "desired_samples");
    n->state = d;
    return MST_OK;
}

/* Missing samples are silence; missing channels repeat the last. */
static void read_samples(const struct wav *w, struct tensor *t)
{
    int64_t channels = t->dims[1], frames = MIN(t->dims[0], w->frames);
    float *to = t->data;

    tensor_zero(t);
    for (int64_t i = 0; i < frames; i++)
        for (int64_t k = 0; k < channels; k++) {
            const uint8_t *p =
                w->samples +
                2 * (i * w->channels + MIN(k, (int64_t)w->channels - 1));

            *to++ = (float)(int16_t)(p[0] | p[1] << 8) * (1.0f / 32768);
        }
}

static enum mst_code decode_wav(struct op_ctx *c)
{
    const struct decode *d = c->node->state;
    const struct tensor *in = op_in(c, 0);
    char text[SHAPE_TEXT_MAX];
    struct wav w;
    enum mst_code rc;

    if (in->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "contents must be scalar, got shape %s",
                       tensor_shape_text(in, text));
    if (tensor_str(in, 0)->len > INT32_MAX)
        return op_fail(c, MST_INVALID_ARGUMENT, "WAV contents are too large");
    rc = wav_parse(tensor_str(in, 0)->data, tensor_str(in, 0)->len, &w, c->st);
    if (!rc)
        rc = op_out_new(
            c, 0, 2,
            (int64_t[]){ d->samples == -1 ? w.frames : d->samples,
                         d->channels == -1 ? w.channels : d->channels });
    if (!rc)
        rc = op_out_new(c, 1, 0, NULL);
    if (rc)
        return rc;
    read_samples(&w, op_out(c, 0));
    *TENSOR_DATA(op_out(c, 1), int32_t) = (int32_t)w.rate;
    return MST_OK;
}

const struct op_def def_decode_wav = {
    .name = "DecodeWav",
    .in = "contents: string",
    .out = "audio: float, sample_rate: int32",
    .attr = "desired_channels: int = -1; desired_samples: int = -1",
    .init = wav_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, decode_wav }, { 0 } },
};

static enum mst_code encode_wav(struct op_ctx *c)
{
    const struct tensor *t = op_in(c, 0), *rate = op_in(c, 1);
    char text[SHAPE_TEXT_MAX];
    struct text wav = { 0 };
    enum mst_code rc;

    if (t->ndim != 2)
        return op_fail(c, MST_INVALID_ARGUMENT, "audio must be 2-dimensional%s",
                       tensor_shape_text(t, text));
    if (rate->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input sample_rate should be a scalar tensor, got %s "
                       "instead.",
                       tensor_shape_text(rate, text));
    rc = op_out_new(c, 0, 0, NULL);
    if (!rc)
        rc = wav_encode(t->data, t->dims[0], t->dims[1],
                        *TENSOR_DATA(rate, int32_t), &wav, c->st);
    if (!rc)
        text_give(&wav, tensor_str(op_out(c, 0), 0));
    text_done(&wav);
    return rc;
}

const struct op_def def_encode_wav = {
    .name = "EncodeWav",
    .in = "audio: float, sample_rate: int32",
    .out = "contents: string",
    .kernel = (const struct op_kernel[]){ { DT_ANY, encode_wav }, { 0 } },
};
