/*
 * The reader ops, in both handle forms (see kernel/queue_ops.c): makers, and
 * what is done with a reader. All of them take a turn at it, for TensorFlow's
 * wait for each other as well.
 */
#include "base/mem.h"
#include "kernel/queue.h"
#include "kernel/reader.h"
#include "kernel/types.h"

/* ---- making ---- */

struct maker {
    struct handle *handle;
    struct reader_config config;
};

static enum mst_code check_bytes(const struct reader_config *g,
                                 struct status *st)
{
    const struct {
        const char *name;
        int64_t value;
    } all[] = { { "header_bytes", g->header },
                { "record_bytes", g->record },
                { "footer_bytes", g->footer },
                { "hop_bytes", g->hop } };

    for (size_t i = 0; i < COUNT(all); i++)
        if (all[i].value < 0)
            return status_set(st, MST_INVALID_ARGUMENT,
                              "%s must be >= 0 not %lld", all[i].name,
                              (long long)all[i].value);
    return MST_OK;
}

static enum mst_code reader_init(struct op_node *n,
                                 const struct reader_kind *kind,
                                 struct status *st)
{
    struct maker *m = ARENA_NEW(n->arena, struct maker);
    struct reader_config *g = &m->config;
    const char *packed =
        kind == &reader_tf_record ? "compression_type"
        : kind == &reader_fixed_length && strstr(n->def->name, "V2")
            ? "encoding"
            : NULL;
    enum mst_code rc = MST_OK;

    g->kind = kind;
    if (kind == &reader_text_line)
        g->skip_lines = op_attr_int(n, "skip_header_lines");
    if (g->skip_lines < 0)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "skip_header_lines must be >= 0 not %lld",
                          (long long)g->skip_lines);
    if (kind == &reader_fixed_length) {
        g->header = op_attr_int(n, "header_bytes");
        g->record = op_attr_int(n, "record_bytes");
        g->footer = op_attr_int(n, "footer_bytes");
        g->hop = op_attr_int(n, "hop_bytes");
        rc = check_bytes(g, st);
    }
    if (!rc && packed && !unzip_format_of(op_attr_str(n, packed), &g->format))
        rc =
            status_set(st, MST_UNIMPLEMENTED, "Compression %s is not supported",
                       op_attr_str(n, packed).data);
    if (rc)
        return rc;
    m->handle = op_node_handle(n, &reader_object_kind);
    n->state = m;
    return MST_OK;
}

static void maker_done(struct op_node *n)
{
    struct maker *m = n->state;

    handle_unref(m->handle);
}

static struct object *make_reader(void *arg, struct status *st)
{
    struct maker *m = arg;

    (void)st;
    return &reader_new(m->handle->name, &m->config)->o;
}

static enum mst_code maker_run(struct op_ctx *c)
{
    struct maker *m = c->node->state;
    struct object *o = handle_get_or_make(m->handle, make_reader, m, c->st);

    object_unref(o);
    return op_out_handle(c, 0, m->handle);
}

#define MAKER(stem, text, handle, attrs, kind_)                                \
    static enum mst_code stem##_init(struct op_node *n, struct status *st)     \
    {                                                                          \
        return reader_init(n, kind_, st);                                      \
    }                                                                          \
    const struct op_def def_##stem = {                                         \
        .name = text,                                                          \
        .out = "reader_handle: " handle,                                       \
        .attr = attrs,                                                         \
        .flags = OP_STATEFUL,                                                  \
        .init = stem##_init,                                                   \
        .done = maker_done,                                                    \
        .kernel = (const struct op_kernel[]){ { DT_ANY, maker_run }, { 0 } },  \
    };

#define SHARED "container: string = ''; shared_name: string = ''"
#define LINES  "skip_header_lines: int = 0; " SHARED
#define FIXED                                                                  \
    "header_bytes: int = 0; record_bytes: int; footer_bytes: int = 0; "        \
    "hop_bytes: int = 0; " SHARED
#define PACKED SHARED "; compression_type: string = ''"

MAKER(identity_reader, "IdentityReader", "Ref(string)", SHARED,
      &reader_identity)
MAKER(identity_reader_v2, "IdentityReaderV2", "resource", SHARED,
      &reader_identity)
MAKER(whole_file_reader, "WholeFileReader", "Ref(string)", SHARED,
      &reader_whole_file)
MAKER(whole_file_reader_v2, "WholeFileReaderV2", "resource", SHARED,
      &reader_whole_file)
MAKER(text_line_reader, "TextLineReader", "Ref(string)", LINES,
      &reader_text_line)
MAKER(text_line_reader_v2, "TextLineReaderV2", "resource", LINES,
      &reader_text_line)
MAKER(fixed_length_record_reader, "FixedLengthRecordReader", "Ref(string)",
      FIXED, &reader_fixed_length)
MAKER(fixed_length_record_reader_v2, "FixedLengthRecordReaderV2", "resource",
      FIXED "; encoding: string = ''", &reader_fixed_length)
MAKER(tf_record_reader, "TFRecordReader", "Ref(string)", PACKED,
      &reader_tf_record)
MAKER(tf_record_reader_v2, "TFRecordReaderV2", "resource", PACKED,
      &reader_tf_record)

/* ---- reading ---- */

/* One read op in its turn. */
struct reading {
    struct reader_turn *turn;
    struct queue *queue;
    bool many;
    int64_t most;
    struct reader_record *records;
    int64_t count, room;
    /* The dequeue of a name: an op inside of the op. */
    struct op_ctx dequeue;
    struct op_value name;
    enum mst_code name_code;
    _Alignas(16) uint8_t scratch[OP_SCRATCH];
};

static void reading_free(struct reading *x)
{
    for (int64_t i = 0; i < x->count; i++) {
        text_done(&x->records[i].key);
        text_done(&x->records[i].value);
    }
    mem_free(x->records);
    tensor_unref(&x->name.t);
    object_unref(&x->queue->o);
    mem_free(x);
}

static enum mst_code give_records(struct op_ctx *c, struct reading *x)
{
    enum mst_code rc = op_out_new(c, 0, x->many, &x->count);

    if (!rc)
        rc = op_out_new(c, 1, x->many, &x->count);
    for (int64_t i = 0; i < x->count && !rc; i++) {
        text_give(&x->records[i].key, tensor_str(op_out(c, 0), i));
        text_give(&x->records[i].value, tensor_str(op_out(c, 1), i));
    }
    return rc;
}

static void end_reading(struct reader_turn *t, enum mst_code rc)
{
    struct reading *x = t->arg;

    if (!rc)
        rc = give_records(t->c, x);
    reading_free(x);
    reader_turn_end(t, rc);
}

/* What the queue gave becomes the file to read. */
static enum mst_code start_work(struct reader_turn *t)
{
    struct reading *x = t->arg;
    struct reader *r = t->r;
    const struct tensor *name = &x->name.t;
    enum mst_code rc = x->name_code;

    if (rc)
        return rc;
    if (name->dtype != DT_STRING)
        return op_fail(t->c, MST_INVALID_ARGUMENT,
                       "Expected queue with single string component");
    if (name->count != 1)
        return op_fail(t->c, MST_INVALID_ARGUMENT,
                       "Expected to dequeue a one-element string tensor");
    mem_free(r->work);
    r->work_len = tensor_str(name, 0)->len;
    r->work =
        mem_strn(r->work_len ? tensor_str(name, 0)->data : "", r->work_len);
    tensor_unref(&x->name.t);
    rc = r->config.kind->open(r, t->c->st);
    if (!rc)
        r->started++;
    return rc;
}

/* One read; *ret_done when the op has what it wants. */
static enum mst_code read_one(struct reader_turn *t, bool *ret_done)
{
    struct reading *x = t->arg;
    struct reader *r = t->r;
    struct reader_record record = { 0 };
    enum mst_code rc = r->config.kind->read(r, &record, t->c->st);

    if (rc) {
        text_done(&record.key);
        text_done(&record.value);
        return rc;
    }
    if (record.produced) {
        *MEM_PUSH(x->records, x->count, x->room) = record;
        r->produced++;
    }
    if (record.at_end) {
        r->config.kind->close(r);
        r->finished = r->started;
    }
    *ret_done = x->many ? x->count == x->most || (record.at_end && x->count)
                        : x->count == 1;
    return MST_OK;
}

/* Reads until the op has what it wants, or there is no name to go on with. */
static void read_on(struct reader_turn *t);

static void with_work(struct reader_turn *t)
{
    enum mst_code rc = start_work(t);

    if (rc)
        end_reading(t, rc);
    else
        read_on(t);
}

/* From whatever thread this is, back to one that may read files. */
static void on_name(struct op_ctx *dequeue, enum mst_code code)
{
    struct reading *x = CONTAINER(dequeue, struct reading, dequeue);

    x->name_code = code;
    reader_turn_again(x->turn, with_work);
}

static void read_on(struct reader_turn *t)
{
    struct reading *x = t->arg;
    bool done = x->many && x->most == 0;
    enum mst_code rc = MST_OK;

    for (;;) {
        while (!done && t->r->started > t->r->finished && !rc)
            rc = read_one(t, &done);
        if (rc || done)
            break;
        x->dequeue = (struct op_ctx){ .node = t->c->node,
                                      .step = t->c->step,
                                      .out = &x->name,
                                      .st = t->c->st,
                                      .finish = on_name,
                                      .scratch = x->scratch };
        object_ref(&x->queue->o);
        x->name_code = queue_run(x->queue, &x->dequeue, QUEUE_TAKE, 1);
        if (x->name_code == OP_LATER)
            return; /* x may be gone */
        rc = start_work(t);
    }
    end_reading(t, rc);
}

static void begin_reading(struct reader_turn *t)
{
    struct reading *x = MEM_NEW(struct reading);
    struct object *o;
    enum mst_code rc = op_resource(t->c, 1, &queue_kind, &o);

    if (rc) {
        mem_free(x);
        reader_turn_end(t, rc);
        return;
    }
    x->turn = t;
    x->queue = CONTAINER(o, struct queue, o);
    x->many = t->c->node->in_count == 3;
    x->most = x->many ? tensor_int(op_in(t->c, 2), 0) : 1;
    t->arg = x;
    if (x->queue->config.columns != 1)
        end_reading(t, op_fail(t->c, MST_INVALID_ARGUMENT,
                               "Expected single component queue"));
    else
        read_on(t);
}

static enum mst_code get_reader(struct op_ctx *c, struct reader **ret)
{
    struct object *o;
    enum mst_code rc = op_resource(c, 0, &reader_object_kind, &o);

    if (!rc)
        *ret = CONTAINER(o, struct reader, o);
    return rc;
}

static enum mst_code take_turn(struct op_ctx *c,
                               void (*fn)(struct reader_turn *t), bool pool)
{
    struct reader *r;
    enum mst_code rc = get_reader(c, &r);

    return rc ? rc : reader_turn(r, c, fn, pool);
}

static enum mst_code read_run(struct op_ctx *c)
{
    return take_turn(c, begin_reading, true);
}

static enum mst_code read_up_to_run(struct op_ctx *c)
{
    const struct tensor *n = op_in(c, 2);

    if (n->count != 1 || tensor_int(n, 0) < 0)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "num_records must be a number that is not negative");
    return take_turn(c, begin_reading, true);
}

/* ---- the rest ---- */

static void give_number(struct reader_turn *t, int64_t value)
{
    enum mst_code rc = op_out_new(t->c, 0, 0, NULL);

    if (!rc)
        *TENSOR_DATA(op_out(t->c, 0), int64_t) = value;
    reader_turn_end(t, rc);
}

static void give_produced(struct reader_turn *t)
{
    give_number(t, t->r->produced);
}

static void give_finished(struct reader_turn *t)
{
    give_number(t, t->r->finished);
}

static void reset(struct reader_turn *t)
{
    reader_reset(t->r);
    reader_turn_end(t, MST_OK);
}

/* ReaderBaseState { 1 work_started, 2 work_finished, 3 num_records_produced,
 * 4 current_work }. */
static void serialize(struct reader_turn *t)
{
    const struct reader *r = t->r;
    const int64_t numbers[] = { r->started, r->finished, r->produced };
    struct pb_out o;
    enum mst_code rc = op_out_new(t->c, 0, 0, NULL);

    if (!rc && !r->config.kind->keeps_state)
        rc = op_fail(t->c, MST_UNIMPLEMENTED, "Reader SerializeState");
    if (!rc) {
        pb_out_init(&o);
        for (uint32_t i = 0; i < COUNT(numbers); i++)
            if (numbers[i])
                pb_put_uint(&o, i + 1, (uint64_t)numbers[i]);
        if (r->work_len)
            pb_put_bytes(&o, 4, r->work, r->work_len);
        str_set(tensor_str(op_out(t->c, 0), 0), o.data, o.len);
        pb_out_done(&o);
    }
    reader_turn_end(t, rc);
}

static enum mst_code no_state(struct reader_turn *t, const char *what)
{
    const struct str *s = tensor_str(op_in(t->c, 1), 0);
    struct text text = { 0 };

    reader_reset(t->r);
    text_add_escaped(&text, s);
    op_fail(t->c, MST_INVALID_ARGUMENT, "%s %s '%s': %.*s", what,
            t->r->config.kind->name, t->r->name, (int)MIN(text.len, 500),
            text.data ? text.data : "");
    text_done(&text);
    return MST_INVALID_ARGUMENT;
}

static enum mst_code restore_state(struct reader_turn *t)
{
    const struct str *s = tensor_str(op_in(t->c, 1), 0);
    struct pb_in in = pb_in(s->data, s->len);
    struct reader *r = t->r;
    int64_t numbers[4] = { 0 };
    struct pb_field f;

    if (!r->config.kind->keeps_state)
        return op_fail(t->c, MST_UNIMPLEMENTED, "Reader RestoreState");
    reader_reset(r);
    while (pb_next(&in, &f)) {
        if (f.number >= 1 && f.number <= 3 && f.wire == PB_VARINT)
            numbers[f.number] = (int64_t)f.value;
        if (f.number != 4 || f.wire != PB_LEN)
            continue;
        mem_free(r->work);
        r->work_len = f.len;
        r->work = mem_strn((const char *)f.data, f.len);
    }
    if (in.bad)
        return no_state(t, "Could not parse state for");
    if (numbers[1] < 0 || numbers[2] < 0 || numbers[3] < 0)
        return no_state(t, "Unexpected negative value when restoring in");
    if (numbers[1] > numbers[2])
        return no_state(t, "Inconsistent work started vs. finished when "
                           "restoring in");
    r->started = numbers[1];
    r->finished = numbers[2];
    r->produced = numbers[3];
    return MST_OK;
}

static void restore(struct reader_turn *t)
{
    reader_turn_end(t, restore_state(t));
}

static enum mst_code num_records_produced_run(struct op_ctx *c)
{
    return take_turn(c, give_produced, false);
}

static enum mst_code num_work_units_completed_run(struct op_ctx *c)
{
    return take_turn(c, give_finished, false);
}

static enum mst_code reset_run(struct op_ctx *c)
{
    return take_turn(c, reset, false);
}

static enum mst_code serialize_state_run(struct op_ctx *c)
{
    return take_turn(c, serialize, false);
}

static enum mst_code restore_state_run(struct op_ctx *c)
{
    char text[SHAPE_TEXT_MAX];

    if (op_in(c, 1)->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Reader state must be scalar, but had shape: %s",
                       tensor_shape_text(op_in(c, 1), text));
    return take_turn(c, restore, false);
}

/* Both forms of an op. The old one is not stateful in TensorFlow's eyes, but
 * its results differ from run to run. */
#define READER_OP(stem, text, old_in, new_in, out_)                            \
    const struct op_def def_reader_##stem = {                                  \
        .name = text,                                                          \
        .in = "reader_handle: Ref(string)" old_in,                             \
        .out = out_,                                                           \
        .flags = OP_STATEFUL | OP_ASYNC,                                       \
        .kernel = (const struct op_kernel[]){ { DT_ANY, stem##_run }, { 0 } }, \
    };                                                                         \
    const struct op_def def_reader_##stem##_v2 = {                             \
        .name = text "V2",                                                     \
        .in = "reader_handle: resource" new_in,                                \
        .out = out_,                                                           \
        .flags = OP_STATEFUL | OP_ASYNC,                                       \
        .kernel = (const struct op_kernel[]){ { DT_ANY, stem##_run }, { 0 } }, \
    };

READER_OP(read, "ReaderRead", ", queue_handle: Ref(string)",
          ", queue_handle: resource", "key: string, value: string")
READER_OP(read_up_to, "ReaderReadUpTo",
          ", queue_handle: Ref(string), num_records: int64",
          ", queue_handle: resource, num_records: int64",
          "keys: string, values: string")
READER_OP(num_records_produced, "ReaderNumRecordsProduced", "", "",
          "records_produced: int64")
READER_OP(num_work_units_completed, "ReaderNumWorkUnitsCompleted", "", "",
          "units_completed: int64")
READER_OP(reset, "ReaderReset", "", "", NULL)
READER_OP(serialize_state, "ReaderSerializeState", "", "", "state: string")
READER_OP(restore_state, "ReaderRestoreState", ", state: string",
          ", state: string", NULL)
