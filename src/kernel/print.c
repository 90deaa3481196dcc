/*
 * Print, PrintV2, Timestamp. What is printed goes to the server's own standard
 * error, output or log, as it does in TensorFlow.
 */
#include <stdatomic.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "kernel/summary.h"
#include "kernel/types.h"

struct print {
    struct attr_text message;
    int64_t first_n, summarize;
    atomic_long calls;
};

static enum mst_code print_init(struct op_node *n, struct status *st)
{
    struct print *p = ARENA_NEW(n->arena, struct print);

    (void)st;
    p->message = op_attr_str(n, "message");
    p->first_n = op_attr_int(n, "first_n");
    p->summarize = op_attr_int(n, "summarize");
    n->state = p;
    return MST_OK;
}

static enum mst_code print(struct op_ctx *c)
{
    struct print *p = c->node->state;
    struct text t = { 0 };

    op_out_same(c, 0, 0);
    if (p->first_n >= 0 && atomic_fetch_add(&p->calls, 1) >= p->first_n)
        return MST_OK;
    text_add(&t, p->message.data, p->message.len);
    for (int i = 1; i < c->node->in_count; i++) {
        text_add(&t, "[", 1);
        summary_add_first(&t, op_in(c, i), p->summarize);
        text_add(&t, "]", 1);
    }
    text_add(&t, "\n", 1);
    fwrite(t.data, 1, t.len, stderr);
    text_done(&t);
    return MST_OK;
}

const struct op_def def_print = {
    .name = "Print",
    .in = "input: T, data: U",
    .out = "output: T",
    .attr = "T: type; U: list(type) >= 0; message: string = ''; "
            "first_n: int = -1; summarize: int = 3",
    .flags = OP_STATEFUL,
    .init = print_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, print }, { 0 } },
};

/* ---- PrintV2 ---- */

static const char *const streams[] = { "stdout", "stderr", "log(info)",
                                       "log(warning)", "log(error)" };

struct print_v2 {
    size_t stream;
    const char *path; /* of "file://…", instead of a stream */
    struct attr_text end;
};

static enum mst_code print_v2_init(struct op_node *n, struct status *st)
{
    struct print_v2 *p = ARENA_NEW(n->arena, struct print_v2);
    struct attr_text stream = op_attr_str(n, "output_stream");

    n->state = p;
    p->end = op_attr_str(n, "end");
    if (!strncmp(stream.data, "file://", 7)) {
        p->path = stream.data + 7;
        return MST_OK;
    }
    for (p->stream = 0; p->stream < COUNT(streams); p->stream++)
        if (!strcmp(stream.data, streams[p->stream]))
            return MST_OK;
    status_set(st, MST_INVALID_ARGUMENT,
               "Unknown output stream: %s, Valid streams are:", stream.data);
    for (size_t i = 0; i < COUNT(streams); i++)
        status_append(st, " %s", streams[i]);
    return MST_INVALID_ARGUMENT;
}

static void write_to(FILE *f, const struct str *s, const struct attr_text *end)
{
    flockfile(f);
    if (s->len)
        fwrite(s->data, 1, s->len, f);
    fwrite(end->data, 1, end->len, f);
    fflush(f);
    funlockfile(f);
}

static enum mst_code print_v2(struct op_ctx *c)
{
    static const enum log_level levels[] = { LOG_INFO, LOG_INFO, LOG_INFO,
                                             LOG_WARN, LOG_ERROR };
    const struct print_v2 *p = c->node->state;
    char text[SHAPE_TEXT_MAX];
    const struct str *s;

    if (op_in(c, 0)->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input is expected to be scalar, but got %s",
                       tensor_shape_text(op_in(c, 0), text));
    s = tensor_str(op_in(c, 0), 0);
    if (p->path) {
        FILE *f = fopen(p->path, "ae");

        if (!f)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Failed to write to output file %s", p->path);
        write_to(f, s, &p->end);
        fclose(f);
    } else if (p->stream < 2) {
        write_to(p->stream ? stderr : stdout, s, &p->end);
    } else {
        log_line(levels[p->stream], "%.*s", (int)MIN(s->len, 1 << 20),
                 s->data ? s->data : "");
    }
    return MST_OK;
}

const struct op_def def_print_v2 = {
    .name = "PrintV2",
    .in = "input: string",
    .attr = "output_stream: string = 'stderr'; end: string = '\n'",
    .flags = OP_STATEFUL | OP_BLOCKING,
    .init = print_v2_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, print_v2 }, { 0 } },
};

static enum mst_code timestamp(struct op_ctx *c)
{
    enum mst_code rc = op_out_new(c, 0, 0, NULL);

    if (!rc)
        *TENSOR_DATA(op_out(c, 0), double) = (double)clock_wall_us() / 1e6;
    return rc;
}

const struct op_def def_timestamp = {
    .name = "Timestamp",
    .out = "ts: double",
    .flags = OP_STATEFUL,
    .kernel = (const struct op_kernel[]){ { DT_ANY, timestamp }, { 0 } },
};
