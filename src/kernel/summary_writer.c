/*
 * Summary writers: event files that ops write to. SummaryWriter names a place,
 * CreateSummaryFileWriter opens a file in it, the others write.
 *
 * Events are collected and written out when there are more than max_queue, or
 * when the last writing is flush_millis ago; looked at with each event, as
 * TensorFlow does.
 */
#include <errno.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "kernel/summary_value.h"
#include "kernel/types.h"
#include "store/event.h"

struct writer {
    struct object o; /* kind: &writer_kind */
    pthread_mutex_t lock;
    struct event_writer events; /* under lock, like the rest */
    int64_t max_queue, queued;
    uint64_t flush_ms, flushed_ms;
};

static void writer_free(struct object *o)
{
    struct writer *w = CONTAINER(o, struct writer, o);
    struct status ignored;

    (void)!event_writer_close(&w->events, &ignored);
    pthread_mutex_destroy(&w->lock);
    mem_free(w);
}

static const struct object_kind writer_kind = {
    "N10tensorflow22SummaryWriterInterfaceE", writer_free
};

/* ---- making ---- */

static enum mst_code summary_writer_init(struct op_node *n, struct status *st)
{
    (void)st;
    n->state = op_node_handle(n, &writer_kind);
    return MST_OK;
}

static void summary_writer_done(struct op_node *n)
{
    handle_unref(n->state);
}

static enum mst_code summary_writer(struct op_ctx *c)
{
    return op_out_handle(c, 0, c->node->state);
}

const struct op_def def_summary_writer = {
    .name = "SummaryWriter",
    .out = "writer: resource",
    .attr = "shared_name: string = ''; container: string = ''",
    .flags = OP_STATEFUL,
    .init = summary_writer_init,
    .done = summary_writer_done,
    .kernel = (const struct op_kernel[]){ { DT_ANY, summary_writer }, { 0 } },
};

enum { WRITER, LOGDIR, MAX_QUEUE, FLUSH_MILLIS, SUFFIX };

static struct object *open_writer(void *arg, struct status *st)
{
    static atomic_long number; /* of the file, within this process */
    struct op_ctx *c = arg;
    const struct str *dir = tensor_str(op_in(c, LOGDIR), 0);
    const struct str *end = tensor_str(op_in(c, SUFFIX), 0);
    struct writer *w = NULL;
    char *path, *suffix;

    if (file_path(dir->len ? dir->data : "", dir->len, &path, st))
        return NULL;
    suffix =
        mem_printf(".%ld.%ld%.*s", (long)getpid(), atomic_fetch_add(&number, 1),
                   (int)MIN(end->len, 200), end->data ? end->data : "");
    w = MEM_NEW(struct writer);
    if (event_writer_open(&w->events, path, suffix, st)) {
        mem_free(w);
        w = NULL;
    } else {
        object_init(&w->o, &writer_kind);
        pthread_mutex_init(&w->lock, NULL);
        w->max_queue = tensor_int(op_in(c, MAX_QUEUE), 0);
        w->flush_ms = (uint64_t)MAX(tensor_int(op_in(c, FLUSH_MILLIS), 0), 0);
        w->flushed_ms = clock_ms();
    }
    mem_free(path);
    mem_free(suffix);
    return w ? &w->o : NULL;
}

static enum mst_code check_scalars(struct op_ctx *c)
{
    for (int i = 0; i < c->node->in_count; i++)
        if (op_in(c, i)->count != 1)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Input %d of %s must be a scalar", i,
                           c->node->def->name);
    return MST_OK;
}

static enum mst_code create_file_writer(struct op_ctx *c)
{
    struct handle *h;
    struct object *o;
    enum mst_code rc = check_scalars(c);

    if (!rc)
        rc = op_handle(c, WRITER, &writer_kind, &h);
    if (rc)
        return rc;
    o = handle_get_or_make(h, open_writer, c, c->st);
    object_unref(o);
    return o ? MST_OK : c->st->code;
}

const struct op_def def_create_summary_file_writer = {
    .name = "CreateSummaryFileWriter",
    .in = "writer: resource, logdir: string, max_queue: int32, "
          "flush_millis: int32, filename_suffix: string",
    .flags = OP_STATEFUL | OP_BLOCKING,
    .kernel =
        (const struct op_kernel[]){ { DT_ANY, create_file_writer }, { 0 } },
};

/* ---- writing ---- */

static enum mst_code get_writer(struct op_ctx *c, struct writer **ret)
{
    struct object *o;
    enum mst_code rc = op_resource(c, WRITER, &writer_kind, &o);

    if (!rc)
        *ret = CONTAINER(o, struct writer, o);
    return rc;
}

static enum mst_code flush(struct writer *w, struct status *st)
{
    w->queued = 0;
    w->flushed_ms = clock_ms();
    return event_writer_flush(&w->events, st);
}

/* After an event, under the lock. */
static enum mst_code count_event(struct writer *w, struct status *st)
{
    w->queued++;
    if (w->queued <= w->max_queue && clock_ms() - w->flushed_ms <= w->flush_ms)
        return MST_OK;
    return flush(w, st);
}

enum event { EVENT_SUMMARY, EVENT_GRAPH, EVENT_RAW };

static enum mst_code write_event(struct op_ctx *c, enum event what,
                                 const void *data, size_t len)
{
    int64_t step = what == EVENT_RAW ? 0 : tensor_int(op_in(c, 1), 0);
    struct writer *w;
    enum mst_code rc = get_writer(c, &w);

    if (rc)
        return rc;
    pthread_mutex_lock(&w->lock);
    if (what == EVENT_RAW)
        rc = record_writer_add(&w->events.records, data, len, c->st);
    else if (what == EVENT_GRAPH)
        rc = event_writer_graph(&w->events, step, data, len, c->st);
    else
        rc = event_writer_summary(&w->events, step, data, len, c->st);
    if (!rc)
        rc = count_event(w, c->st);
    pthread_mutex_unlock(&w->lock);
    object_unref(&w->o);
    return rc;
}

/* Writes the summary that `put` makes. */
static enum mst_code write_made(struct op_ctx *c,
                                enum mst_code (*put)(struct op_ctx *c,
                                                     struct pb_out *o))
{
    struct pb_out o;
    enum mst_code rc;

    if (op_in(c, 1)->count != 1)
        return op_fail(c, MST_INVALID_ARGUMENT, "step must be a scalar");
    pb_out_init(&o);
    rc = put(c, &o);
    if (!rc)
        rc = write_event(c, EVENT_SUMMARY, o.data, o.len);
    pb_out_done(&o);
    return rc;
}

static enum mst_code tag_of(struct op_ctx *c, int i, const struct str **ret)
{
    if (op_in(c, i)->count != 1)
        return op_fail(c, MST_INVALID_ARGUMENT, "tag must be a scalar");
    *ret = tensor_str(op_in(c, i), 0);
    return MST_OK;
}

static enum mst_code put_tensor(struct op_ctx *c, struct pb_out *o)
{
    const struct str *tag, *metadata;
    enum mst_code rc = tag_of(c, 3, &tag);

    if (!rc)
        rc = tag_of(c, 4, &metadata);
    return rc ? rc
              : summary_put_tensor(c, o, tag, NULL, op_in(c, 2),
                                   metadata->len ? metadata : NULL);
}

static enum mst_code put_scalar(struct op_ctx *c, struct pb_out *o)
{
    const struct str *tag;
    enum mst_code rc = tag_of(c, 2, &tag);

    if (!rc && op_in(c, 3)->count != 1)
        rc = op_fail(c, MST_INVALID_ARGUMENT, "value must be a scalar");
    if (!rc)
        summary_put_scalar(o, tag, (float)summary_number(op_in(c, 3), 0));
    return rc;
}

static enum mst_code put_histogram(struct op_ctx *c, struct pb_out *o)
{
    const struct str *tag;
    enum mst_code rc = tag_of(c, 2, &tag);

    return rc ? rc : summary_put_histogram(c, o, tag, op_in(c, 3));
}

static enum mst_code put_images(struct op_ctx *c, struct pb_out *o)
{
    const struct str *tag;
    enum mst_code rc = tag_of(c, 2, &tag);

    return rc ? rc
              : summary_put_images(c, o, tag, op_in(c, 3),
                                   op_attr_int(c->node, "max_images"),
                                   op_in(c, 4));
}

static enum mst_code put_audio(struct op_ctx *c, struct pb_out *o)
{
    const struct str *tag;
    enum mst_code rc = tag_of(c, 2, &tag);

    if (!rc && op_in(c, 4)->count != 1)
        rc = op_fail(c, MST_INVALID_ARGUMENT, "sample_rate must be a scalar");
    return rc ? rc
              : summary_put_audio(c, o, tag, op_in(c, 3),
                                  op_attr_int(c->node, "max_outputs"),
                                  *TENSOR_DATA(op_in(c, 4), float));
}

#define WRITE_MADE(stem, put)                                                  \
    static enum mst_code stem(struct op_ctx *c)                                \
    {                                                                          \
        return write_made(c, put);                                             \
    }

WRITE_MADE(write_summary, put_tensor)
WRITE_MADE(write_scalar, put_scalar)
WRITE_MADE(write_histogram, put_histogram)
WRITE_MADE(write_image, put_images)
WRITE_MADE(write_audio, put_audio)

static enum mst_code write_bytes(struct op_ctx *c, enum event what, int i)
{
    enum mst_code rc = check_scalars(c);
    const struct str *s;

    if (rc)
        return rc;
    s = tensor_str(op_in(c, i), 0);
    return write_event(c, what, s->data, s->len);
}

static enum mst_code write_graph(struct op_ctx *c)
{
    return write_bytes(c, EVENT_GRAPH, 2);
}

static enum mst_code write_raw_proto(struct op_ctx *c)
{
    return write_bytes(c, EVENT_SUMMARY, 2);
}

static enum mst_code import_event(struct op_ctx *c)
{
    return write_bytes(c, EVENT_RAW, 1);
}

static enum mst_code flush_writer(struct op_ctx *c)
{
    struct writer *w;
    enum mst_code rc = get_writer(c, &w);

    if (rc)
        return rc;
    pthread_mutex_lock(&w->lock);
    rc = flush(w, c->st);
    pthread_mutex_unlock(&w->lock);
    object_unref(&w->o);
    return rc;
}

/* The file ends with the last op that still writes to it. */
static enum mst_code close_writer(struct op_ctx *c)
{
    struct handle *h;
    enum mst_code rc = op_handle(c, WRITER, &writer_kind, &h);

    if (!rc)
        (void)handle_drop(h);
    return rc;
}

#define NUMBERS                                                                \
    "float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, "      \
    "half, "                                                                   \
    "uint32, uint64"
#define WRITER_OP(stem, text, in_, attr_, run_)                                \
    const struct op_def def_##stem = {                                         \
        .name = text,                                                          \
        .in = "writer: resource" in_,                                          \
        .attr = attr_,                                                         \
        .flags = OP_STATEFUL | OP_BLOCKING,                                    \
        .kernel = (const struct op_kernel[]){ { DT_ANY, run_ }, { 0 } },       \
    };

WRITER_OP(flush_summary_writer, "FlushSummaryWriter", "", NULL, flush_writer)
WRITER_OP(close_summary_writer, "CloseSummaryWriter", "", NULL, close_writer)
WRITER_OP(write_summary, "WriteSummary",
          ", step: int64, tensor: T, tag: string, summary_metadata: string",
          "T: type", write_summary)
WRITER_OP(write_scalar_summary, "WriteScalarSummary",
          ", step: int64, tag: string, value: T", "T: {" NUMBERS "}",
          write_scalar)
WRITER_OP(write_histogram_summary, "WriteHistogramSummary",
          ", step: int64, tag: string, values: T",
          "T: {" NUMBERS ", bool} = float", write_histogram)
WRITER_OP(write_image_summary, "WriteImageSummary",
          ", step: int64, tag: string, tensor: T, bad_color: uint8",
          "max_images: int >= 1 = 3; T: {uint8, double, float, half} = float",
          write_image)
WRITER_OP(write_audio_summary, "WriteAudioSummary",
          ", step: int64, tag: string, tensor: float, sample_rate: float",
          "max_outputs: int >= 1 = 3", write_audio)
WRITER_OP(write_graph_summary, "WriteGraphSummary",
          ", step: int64, tensor: string", NULL, write_graph)
WRITER_OP(write_raw_proto_summary, "WriteRawProtoSummary",
          ", step: int64, tensor: string", NULL, write_raw_proto)
WRITER_OP(import_event, "ImportEvent", ", event: string", NULL, import_event)
