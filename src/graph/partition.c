#include "graph/partition.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "graph/node_attr.h"

/* A node of the step: one of the client's, or one made here. */
struct piece {
    const struct source_node *src; /* NULL: made here */
    const char *name, *op;
    enum op_kind kind;
    struct graph_input *inputs; /* of pieces */
    int data_count, input_count;
    const uint8_t *attrs; /* fields 5 of a NodeDef, of a made one */
    size_t attrs_len;
    int type; /* of a made one's output */
    int task;
    int frame; /* where it runs */
};

struct frame {
    const char *name;
    size_t name_len;
    int parent;
    int64_t parallel;
    int cond;   /* its LoopCond, or -1 */
    int *merge; /* by task: of the loop that counts along; 0: none yet */
};

struct work {
    const struct source *s;
    const struct place_opts *where;
    const struct part_want *want;
    struct arena arena;
    struct piece *pieces;
    int count, room;
    int *piece_of;   /* by node of the source: index + 1 */
    int *feed_piece; /* by feed */
    int *feed_types;
    struct map fed;      /* (node, output) -> feed + 1 */
    struct map receives; /* (piece, output, task) -> piece + 1 */
    struct frame *frames;
    int frame_count, frame_room;
    int *order; /* pieces, inputs first */
    int edge;   /* numbers of transfers */
    struct status *st;
};

/* ---- pieces ---- */

static const char *fresh_name(struct work *w, const char *base, const char *tag)
{
    const char *name;

    do
        name = arena_printf(&w->arena, "%s/_%s%d", base, tag, ++w->edge);
    while (source_find(w->s, name, strlen(name)) >= 0);
    return name;
}

/* inputs is copied; attrs too, and emptied. */
static int add_piece(struct work *w, const char *name, const char *op,
                     enum op_kind kind, int task, int frame, int type,
                     const struct graph_input *inputs, int data, int control,
                     struct pb_out *attrs)
{
    struct piece *p = MEM_PUSH(w->pieces, w->count, w->room);

    *p = (struct piece){
        .name = name,
        .op = op,
        .kind = kind,
        .task = task,
        .frame = frame,
        .type = type,
        .inputs = arena_copy(&w->arena, inputs,
                             sizeof(*inputs) * (size_t)(data + control)),
        .data_count = data,
        .input_count = data + control,
        .attrs = arena_copy(&w->arena, attrs->data, attrs->len),
        .attrs_len = attrs->len,
    };
    pb_out_done(attrs);
    return w->count - 1;
}

static int out_type(const struct work *w, int piece, int output)
{
    const struct piece *p = &w->pieces[piece];

    return dtype_base(p->src ? p->src->out_types[output] : p->type);
}

/* ---- names of tensors ---- */

static uint64_t tensor_key(int node, int output)
{
    return (uint64_t)(unsigned)node << 32 | (unsigned)output;
}

/* "node" or "node:2"; false when the graph has no such node. */
static bool find_tensor(const struct work *w, const struct part_name *name,
                        int *ret_node, int *ret_output)
{
    size_t len;
    const char *text =
        graph_input_split(name->text, name->len, &len, ret_output);

    *ret_node = *ret_output < 0 ? -1 : source_find(w->s, text, len);
    return *ret_node >= 0;
}

static enum mst_code find_feeds(struct work *w)
{
    const struct part_want *want = w->want;

    for (int i = 0; i < want->feed_count; i++) {
        const struct part_name *name = &want->feeds[i];
        int node, output;

        if (!find_tensor(w, name, &node, &output) ||
            output >= w->s->nodes[node].out_count)
            return status_set(w->st, MST_NOT_FOUND,
                              "FeedInputs: unable to find feed output %.*s",
                              (int)MIN(name->len, 200), name->text);
        if (map_put_num(&w->fed, tensor_key(node, output),
                        (void *)(intptr_t)(i + 1)))
            return status_set(w->st, MST_INVALID_ARGUMENT,
                              "Duplicated feed: %.*s", (int)MIN(name->len, 200),
                              name->text);
        w->feed_types[i] = dtype_base(w->s->nodes[node].out_types[output]);
    }
    return MST_OK;
}

static enum mst_code find_fetch(struct work *w, int i, int *ret_node,
                                int *ret_output)
{
    const struct part_name *name = &w->want->fetches[i];

    if (!find_tensor(w, name, ret_node, ret_output))
        return status_set(w->st, MST_NOT_FOUND,
                          "FetchOutputs node %.*s: not found",
                          (int)MIN(name->len, 200), name->text);
    if (*ret_output >= w->s->nodes[*ret_node].out_count)
        return status_set(w->st, MST_INVALID_ARGUMENT,
                          "FetchOutputs %.*s: output index too large, must be "
                          "< %d",
                          (int)MIN(name->len, 200), name->text,
                          w->s->nodes[*ret_node].out_count);
    if (map_get_num(&w->fed, tensor_key(*ret_node, *ret_output)))
        return status_set(w->st, MST_INVALID_ARGUMENT,
                          "%.*s is both fed and fetched.",
                          (int)MIN(name->len, 200), name->text);
    return MST_OK;
}

/* ---- pruning ---- */

struct reach {
    struct work *w;
    int *stack;
    int count, room;
};

static void visit(struct reach *r, int node)
{
    if (r->w->piece_of[node])
        return;
    r->w->piece_of[node] = 1; /* numbered later */
    *MEM_PUSH(r->stack, r->count, r->room) = node;
}

static bool is_placeholder(const struct source_node *n)
{
    return !strcmp(n->op, "Placeholder") || !strcmp(n->op, "PlaceholderV2");
}

/* The feed that stands for this input: its number + 1, or 0. A control edge
 * from a placeholder that is fed waits for the feed. */
static int feed_of(const struct work *w, const struct graph_input *in)
{
    const struct source_node *n = &w->s->nodes[in->node];

    if (in->output < 0 && !is_placeholder(n))
        return 0;
    return (int)(intptr_t)map_get_num(&w->fed,
                                      tensor_key(in->node, MAX(in->output, 0)));
}

static enum mst_code mark(struct work *w)
{
    struct reach r = { .w = w };
    enum mst_code rc = MST_OK;
    int node, output;

    for (int i = 0; i < w->want->fetch_count && !rc; i++) {
        rc = find_fetch(w, i, &node, &output);
        if (!rc)
            visit(&r, node);
    }
    for (int i = 0; i < w->want->target_count && !rc; i++) {
        const struct part_name *name = &w->want->targets[i];

        if (find_tensor(w, name, &node, &output))
            visit(&r, node);
        else
            rc = status_set(w->st, MST_NOT_FOUND,
                            "PruneForTargets: Some target nodes not found: "
                            "%.*s ",
                            (int)MIN(name->len, 200), name->text);
    }
    while (r.count && !rc) {
        const struct source_node *n = &w->s->nodes[r.stack[--r.count]];

        if (n->foreign)
            rc = status_set(w->st, MST_INVALID_ARGUMENT,
                            "No OpKernel was registered to support Op '%s' "
                            "used by {{node %s}}",
                            n->op, n->name);
        for (int k = 0; k < n->input_count; k++)
            if (!feed_of(w, &n->inputs[k]))
                visit(&r, n->inputs[k].node);
    }
    mem_free(r.stack);
    return rc;
}

/* ---- feeds and fetches ---- */

/* The attributes that a key of the rendezvous is made of. */
static void put_key(struct work *w, struct pb_out *a, const char *name,
                    int from, int to)
{
    const struct place_task *src = &w->where->tasks[from];
    const struct place_task *dst = &w->where->tasks[to];

    node_attr_put_text(a, "tensor_name", name, strlen(name));
    node_attr_put_text(a, "send_device", src->device, strlen(src->device));
    node_attr_put_text(a, "recv_device", dst->device, strlen(dst->device));
    node_attr_put_num(a, "send_device_incarnation", 3, src->incarnation);
}

/* The client and its own task are at its two ends. */
static void put_client_key(struct work *w, struct pb_out *a, const char *name)
{
    put_key(w, a, name, w->where->own, w->where->own);
    node_attr_put_num(a, "client_terminated", 5, true);
}

/* "node:output" also where the client left the output away. */
static const char *full_name(struct work *w, const struct part_name *name)
{
    int output;
    size_t len;
    const char *text = graph_input_split(name->text, name->len, &len, &output);

    return arena_printf(&w->arena, "%.*s:%d", (int)len, text, output);
}

static void add_feed(struct work *w, int i)
{
    const char *text = full_name(w, &w->want->feeds[i]);
    struct pb_out a;

    pb_out_init(&a);
    node_attr_put_num(&a, w->want->partial ? "tensor_type" : "T", 6,
                      (uint64_t)w->feed_types[i]);
    if (w->want->partial)
        put_client_key(w, &a, text);
    else
        node_attr_put_num(&a, "index", 3, (uint64_t)i);
    w->feed_piece[i] = add_piece(
        w, fresh_name(w, "_feed", ""), w->want->partial ? "_Recv" : "_Arg",
        OP_ORDINARY, w->where->own, 0, w->feed_types[i], NULL, 0, 0, &a);
}

static void add_fetch(struct work *w, int i, int node, int output)
{
    struct graph_input in = { w->piece_of[node] - 1, output };
    const char *text = full_name(w, &w->want->fetches[i]);
    struct pb_out a;

    pb_out_init(&a);
    node_attr_put_num(&a, "T", 6, (uint64_t)out_type(w, in.node, output));
    if (w->want->partial)
        put_client_key(w, &a, text);
    else
        node_attr_put_num(&a, "index", 3, (uint64_t)i);
    add_piece(w, fresh_name(w, "_fetch", ""),
              w->want->partial ? "_Send" : "_Retval", OP_ORDINARY,
              w->where->own, 0, 0, &in, 1, 0, &a);
}

/* The pieces that the client's nodes are, with inputs among pieces. */
static enum mst_code make_pieces(struct work *w)
{
    const struct source *s = w->s;
    int node, output;

    for (int i = 0; i < s->count; i++) {
        struct piece *p;

        if (!w->piece_of[i])
            continue;
        p = MEM_PUSH(w->pieces, w->count, w->room);
        *p = (struct piece){ .src = &s->nodes[i],
                             .name = s->nodes[i].name,
                             .op = s->nodes[i].op,
                             .kind = s->nodes[i].def ? s->nodes[i].def->kind
                                                     : OP_ORDINARY,
                             .data_count = s->nodes[i].data_count,
                             .input_count = s->nodes[i].input_count,
                             .task = s->nodes[i].task };
        w->piece_of[i] = w->count;
    }
    for (int i = 0; i < w->want->feed_count; i++)
        add_feed(w, i);
    for (int i = 0; i < w->count; i++) {
        struct piece *p = &w->pieces[i];

        if (!p->src)
            continue;
        p->inputs = ARENA_ARRAY(&w->arena, struct graph_input, p->input_count);
        for (int k = 0; k < p->input_count; k++) {
            const struct graph_input *in = &p->src->inputs[k];
            int feed = feed_of(w, in);

            p->inputs[k] =
                feed ? (struct graph_input){ w->feed_piece[feed - 1],
                                             MIN(in->output, 0) }
                     : (struct graph_input){ w->piece_of[in->node] - 1,
                                             in->output };
        }
    }
    for (int i = 0; i < w->want->fetch_count; i++) {
        enum mst_code rc = find_fetch(w, i, &node, &output);

        if (rc)
            return rc;
        add_fetch(w, i, node, output);
    }
    return MST_OK;
}

/* ---- order and frames ---- */

static bool is_back_edge(const struct work *w, int src, int dst)
{
    return w->pieces[dst].kind == OP_MERGE &&
           w->pieces[src].kind == OP_NEXT_ITERATION;
}

static int frame_of(struct work *w, const struct piece *enter)
{
    struct pb_field f = { 0 };
    struct frame *new;

    (void)node_attr_find(enter->src, "frame_name", 2, &f);
    for (int i = 1; i < w->frame_count; i++)
        if (w->frames[i].parent == enter->frame &&
            w->frames[i].name_len == f.len &&
            !memcmp(w->frames[i].name, f.data, f.len))
            return i;
    new = MEM_PUSH(w->frames, w->frame_count, w->frame_room);
    *new =
        (struct frame){ .name = (const char *)f.data,
                        .name_len = f.len,
                        .parent = enter->frame,
                        .parallel = 10,
                        .cond = -1,
                        .merge = ARENA_ARRAY(&w->arena, int, w->where->count) };
    if (node_attr_find(enter->src, "parallel_iterations", 3, &f))
        new->parallel = (int64_t)f.value;
    return w->frame_count - 1;
}

static int frame_behind(struct work *w, const struct piece *p)
{
    if (p->kind == OP_ENTER && p->src)
        return frame_of(w, p);
    if (p->kind == OP_EXIT && p->frame > 0)
        return w->frames[p->frame].parent;
    return p->frame;
}

/* Readers of each piece, as lists over one array. */
static int *find_readers(const struct work *w, int *first)
{
    int *readers, edges = 0;

    for (int i = 0; i < w->count; i++)
        for (int k = 0; k < w->pieces[i].input_count; k++)
            first[w->pieces[i].inputs[k].node + 1]++;
    for (int i = 0; i < w->count; i++)
        edges = first[i + 1] += first[i];
    readers = mem_array((size_t)edges, sizeof(int));
    for (int i = 0; i < w->count; i++)
        for (int k = 0; k < w->pieces[i].input_count; k++)
            readers[first[w->pieces[i].inputs[k].node]++] = i;
    for (int i = w->count; i > 0; i--)
        first[i] = first[i - 1];
    first[0] = 0;
    return readers;
}

static enum mst_code sort(struct work *w, const int *first, const int *readers)
{
    int *pending = mem_array((size_t)w->count, sizeof(int));
    int head = 0, tail = 0;
    enum mst_code rc = MST_OK;

    *MEM_PUSH(w->frames, w->frame_count, w->frame_room) =
        (struct frame){ .name = "", .parent = -1, .cond = -1 };
    for (int i = 0; i < w->count; i++) {
        for (int k = 0; k < w->pieces[i].input_count; k++)
            pending[i] += !is_back_edge(w, w->pieces[i].inputs[k].node, i);
        if (!pending[i])
            w->order[tail++] = i;
    }
    while (head < tail) {
        int i = w->order[head++], behind;

        if (!strcmp(w->pieces[i].op, "LoopCond"))
            w->frames[w->pieces[i].frame].cond = i;
        behind = frame_behind(w, &w->pieces[i]);
        for (int k = first[i]; k < first[i + 1]; k++) {
            int to = readers[k];

            if (is_back_edge(w, i, to))
                continue;
            w->pieces[to].frame = behind;
            if (!--pending[to])
                w->order[tail++] = to;
        }
    }
    if (tail != w->count)
        rc = status_set(w->st, MST_INVALID_ARGUMENT, "%d nodes in a cycle",
                        w->count - tail);
    mem_free(pending);
    return rc;
}

/* Nodes of control flow go where their values are, so that no back edge and
 * no entrance to a loop lies between tasks. */
static void move_control_flow(struct work *w, const int *first,
                              const int *readers)
{
    for (int o = 0; o < w->count; o++) {
        struct piece *p = &w->pieces[w->order[o]];

        if ((p->kind == OP_SWITCH || p->kind == OP_EXIT) && p->data_count &&
            p->src && !dtype_is_ref(p->src->in_types[0]))
            p->task = w->pieces[p->inputs[0].node].task;
    }
    for (int o = w->count - 1; o >= 0; o--) {
        int i = w->order[o];
        struct piece *p = &w->pieces[i];

        if ((p->kind == OP_ENTER || p->kind == OP_NEXT_ITERATION) && p->src &&
            !dtype_is_ref(p->src->in_types[0]) && first[i] < first[i + 1])
            p->task = w->pieces[readers[first[i]]].task;
    }
}

/* ---- transfers ---- */

static int loop_merge(struct work *w, int frame, int task);

struct transfer_key {
    int piece, output, task;
};

/* A pair of nodes; the receive happens after what `after` names. */
static int add_pair(struct work *w, int src, int output, int task, int frame,
                    const struct graph_input *after, int after_count)
{
    struct graph_input in = { src, output };
    int type = out_type(w, src, output), from = w->pieces[src].task;
    const char *base = w->pieces[src].name, *name;
    struct graph_input *control =
        ARENA_ARRAY(&w->arena, struct graph_input, after_count + 1);
    struct pb_out a;

    name = arena_printf(&w->arena, "edge_%d_%s", ++w->edge, base);
    pb_out_init(&a);
    node_attr_put_num(&a, "T", 6, (uint64_t)type);
    put_key(w, &a, name, from, task);
    add_piece(w, fresh_name(w, base, "S"), "_Send", OP_SEND, from, frame, 0,
              &in, 1, 0, &a);
    pb_out_init(&a);
    node_attr_put_num(&a, "tensor_type", 6, (uint64_t)type);
    put_key(w, &a, name, from, task);
    if (after_count)
        memcpy(control, after, sizeof(*control) * (size_t)after_count);
    if (frame)
        control[after_count++] =
            (struct graph_input){ loop_merge(w, frame, task), -1 };
    return add_piece(w, fresh_name(w, base, "R"), "_Recv", OP_RECV, task, frame,
                     type, control, 0, after_count, &a);
}

/* The piece on that task that has this output; frame is where the edge is. */
static int transfer(struct work *w, int src, int output, int task, int frame)
{
    struct transfer_key key = { src, output, task };
    int recv = (int)(intptr_t)map_get(&w->receives, &key, sizeof(key)) - 1;

    if (recv < 0) {
        recv = add_pair(w, src, output, task, frame, NULL, 0);
        map_put(&w->receives, &key, sizeof(key), (void *)(intptr_t)(recv + 1));
    }
    return recv;
}

/* A reference is read when its reader may run, not when it was made: its
 * receive is the reader's own, and waits for what the reader waits for. */
static int transfer_ref(struct work *w, int dst, int k)
{
    const struct piece *d = &w->pieces[dst];
    struct graph_input in = d->inputs[k];

    return add_pair(w, in.node, in.output, d->task, d->frame,
                    d->inputs + d->data_count, d->input_count - d->data_count);
}

static bool is_ref(const struct work *w, const struct graph_input *in)
{
    const struct source_node *src = w->pieces[in->node].src;

    return src && dtype_is_ref(src->out_types[in->output]);
}

/* An empty tensor that is there when its control input is. */
static int add_token(struct work *w, const char *base, int task, int frame,
                     const struct graph_input *control)
{
    struct pb_out a, t, v;

    pb_out_init(&a);
    pb_out_init(&t);
    pb_out_init(&v);
    node_attr_put_num(&a, "dtype", 6, DT_FLOAT);
    pb_put_uint(&t, 1, DT_FLOAT); /* TensorProto: dtype, shape [0] */
    pb_put_bytes(&t, 2, "\x12\x00", 2);
    pb_put_bytes(&v, 8, t.data, t.len);
    node_attr_put(&a, "value", &v);
    pb_out_done(&t);
    pb_out_done(&v);
    return add_piece(w, fresh_name(w, base, "C"), "Const", OP_ORDINARY, task,
                     frame, DT_FLOAT, control, 0, control != NULL, &a);
}

/* The same for a control edge. */
static int transfer_control(struct work *w, int src, int task, int frame)
{
    struct transfer_key key = { src, -1, task };
    struct graph_input in = { src, -1 };
    int at = (int)(intptr_t)map_get(&w->receives, &key, sizeof(key)) - 1;
    struct pb_out a;
    int token;

    if (at >= 0)
        return at;
    token = add_token(w, w->pieces[src].name, w->pieces[src].task, frame, &in);
    in = (struct graph_input){ transfer(w, token, 0, task, frame), 0 };
    pb_out_init(&a);
    node_attr_put_num(&a, "T", 6, DT_FLOAT);
    at = add_piece(w, fresh_name(w, w->pieces[src].name, "I"), "Identity",
                   OP_ORDINARY, task, frame, DT_FLOAT, &in, 1, 0, &a);
    map_put(&w->receives, &key, sizeof(key), (void *)(intptr_t)(at + 1));
    return at;
}

/* The loop that counts along: token -> Enter -> Merge -> Switch ->
 * NextIteration -> Merge. Its Merge runs once an iteration on that task. */
static int loop_merge(struct work *w, int frame, int task)
{
    struct frame *f = &w->frames[frame];
    struct graph_input in[2] = { { 0, -1 } };
    struct pb_out a;
    int token, enter, merge, sw, cond = f->cond, pred;

    if (f->merge[task])
        return f->merge[task];
    if (f->parent > 0)
        in[0].node = loop_merge(w, f->parent, task);
    token = add_token(w, "_loop", task, f->parent, f->parent > 0 ? in : NULL);
    pb_out_init(&a);
    node_attr_put_num(&a, "T", 6, DT_FLOAT);
    node_attr_put_text(&a, "frame_name", f->name, f->name_len);
    node_attr_put_num(&a, "parallel_iterations", 3, (uint64_t)f->parallel);
    in[0] = (struct graph_input){ token, 0 };
    enter = add_piece(w, fresh_name(w, "_loop", "E"), "Enter", OP_ENTER, task,
                      f->parent, DT_FLOAT, in, 1, 0, &a);
    pb_out_init(&a);
    node_attr_put_num(&a, "T", 6, DT_FLOAT);
    node_attr_put_num(&a, "N", 3, 2);
    in[0] = in[1] = (struct graph_input){ enter, 0 }; /* [1] follows below */
    merge = add_piece(w, fresh_name(w, "_loop", "M"), "Merge", OP_MERGE, task,
                      frame, DT_FLOAT, in, 2, 0, &a);
    f->merge[task] = merge;
    pred =
        w->pieces[cond].task == task ? cond : transfer(w, cond, 0, task, frame);
    pb_out_init(&a);
    node_attr_put_num(&a, "T", 6, DT_FLOAT);
    in[0] = (struct graph_input){ merge, 0 };
    in[1] = (struct graph_input){ pred, 0 };
    sw = add_piece(w, fresh_name(w, "_loop", "W"), "Switch", OP_SWITCH, task,
                   frame, DT_FLOAT, in, 2, 0, &a);
    pb_out_init(&a);
    node_attr_put_num(&a, "T", 6, DT_FLOAT);
    in[0] = (struct graph_input){ sw, 1 };
    w->pieces[merge].inputs[1] =
        (struct graph_input){ add_piece(w, fresh_name(w, "_loop", "N"),
                                        "NextIteration", OP_NEXT_ITERATION,
                                        task, frame, DT_FLOAT, in, 1, 0, &a),
                              0 };
    return merge;
}

static enum mst_code cut_edge(struct work *w, int dst, int k)
{
    struct graph_input in = w->pieces[dst].inputs[k];
    int frame = w->pieces[dst].frame, task = w->pieces[dst].task, recv;

    if (w->pieces[in.node].task == task)
        return MST_OK;
    for (int f = frame; f > 0; f = w->frames[f].parent)
        if (w->frames[f].cond < 0)
            return status_set(w->st, MST_INVALID_ARGUMENT,
                              "A cross-device loop must have a pivot "
                              "predicate: %.*s",
                              (int)w->frames[f].name_len, w->frames[f].name);
    if (in.output >= 0) {
        recv = is_ref(w, &in) ? transfer_ref(w, dst, k)
                              : transfer(w, in.node, in.output, task, frame);
        in = (struct graph_input){ recv, 0 };
    } else {
        in.node = transfer_control(w, in.node, task, frame);
    }
    w->pieces[dst].inputs[k] = in;
    return MST_OK;
}

static enum mst_code cut(struct work *w)
{
    int *first, *readers, count = w->count;
    enum mst_code rc;

    if (w->where->count < 2) /* there is nothing to be cut */
        return MST_OK;
    first = mem_array((size_t)w->count + 1, sizeof(int));
    w->order = mem_array((size_t)w->count, sizeof(int));
    readers = find_readers(w, first);
    rc = sort(w, first, readers);
    if (!rc)
        move_control_flow(w, first, readers);
    for (int i = 0; i < count && !rc; i++) /* control edges first */
        for (int k = w->pieces[i].input_count - 1; k >= 0 && !rc; k--)
            rc = cut_edge(w, i, k);
    mem_free(first);
    mem_free(readers);
    return rc;
}

/* ---- writing ---- */

static void put_input(struct pb_out *o, const struct work *w,
                      const struct graph_input *in)
{
    const char *name = w->pieces[in->node].name;
    size_t len = strlen(name);
    char tail[16] = "";
    int extra = 0;

    if (in->output > 0)
        extra = snprintf(tail, sizeof(tail), ":%d", in->output);
    pb_put_tag(o, 3, PB_LEN);
    pb_put_varint(o, len + (size_t)extra + (in->output < 0));
    if (in->output < 0)
        pb_put_raw(o, "^", 1);
    pb_put_raw(o, name, len);
    pb_put_raw(o, tail, (size_t)extra);
}

static void put_piece(struct pb_out *graph, struct pb_out *node,
                      const struct work *w, const struct piece *p)
{
    const char *device = w->where->tasks[p->task].device;

    node->len = 0;
    pb_put_bytes(node, 1, p->name, strlen(p->name));
    pb_put_bytes(node, 2, p->op, strlen(p->op));
    for (int k = 0; k < p->input_count; k++)
        put_input(node, w, &p->inputs[k]);
    pb_put_bytes(node, 4, device, strlen(device));
    if (p->src) {
        struct pb_in in = pb_in(p->src->wire, p->src->wire_len);
        struct pb_field f;

        while (pb_next(&in, &f))
            if (f.number >= 5 && f.wire == PB_LEN)
                pb_put_bytes(node, f.number, f.data, f.len);
    } else {
        pb_put_raw(node, p->attrs, p->attrs_len);
    }
    pb_put_bytes(graph, 1, node->data, node->len);
}

static void write_parts(const struct work *w, struct parts *ret)
{
    int *part = mem_array((size_t)w->where->count, sizeof(int));
    struct pb_out node;
    bool *calls;

    ret->list = mem_array((size_t)w->where->count, sizeof(*ret->list));
    ret->count = 0;
    for (int i = 0; i < w->count; i++)
        if (!part[w->pieces[i].task]) {
            ret->list[ret->count].task = w->pieces[i].task;
            pb_out_init(&ret->list[ret->count].graph);
            part[w->pieces[i].task] = ++ret->count;
        }
    calls = mem_array((size_t)ret->count, sizeof(bool));
    pb_out_init(&node);
    for (int i = 0; i < w->count; i++) {
        const struct piece *p = &w->pieces[i];
        int at = part[p->task] - 1;

        put_piece(&ret->list[at].graph, &node, w, p);
        ret->list[at].nodes++;
        ret->list[at].transfers |= p->kind == OP_SEND || p->kind == OP_RECV;
        calls[at] |= p->src && p->src->calls;
    }
    for (int i = 0; i < ret->count; i++) {
        struct pb_out *g = &ret->list[i].graph;

        if (calls[i])
            pb_put_bytes(g, 2, w->s->library->data, w->s->library->len);
        if (w->s->versions)
            pb_put_bytes(g, 4, w->s->versions, w->s->versions_len);
    }
    pb_out_done(&node);
    mem_free(calls);
    mem_free(part);
}

enum mst_code partition(const struct source *s, const struct place_opts *where,
                        const struct part_want *want, struct parts *ret,
                        struct status *st)
{
    struct work w = { .s = s, .where = where, .want = want, .st = st };
    enum mst_code rc;

    arena_init(&w.arena);
    map_init(&w.fed);
    map_init(&w.receives);
    w.piece_of = mem_array((size_t)s->count, sizeof(int));
    w.feed_piece = mem_array((size_t)want->feed_count, sizeof(int));
    w.feed_types = mem_array((size_t)want->feed_count, sizeof(int));
    *ret = (struct parts){ 0 };
    rc = want->fetch_count || want->target_count
             ? find_feeds(&w)
             : status_set(st, MST_INVALID_ARGUMENT,
                          "Must specify at least one target to fetch or "
                          "execute.");
    if (!rc)
        rc = mark(&w);
    if (!rc)
        rc = make_pieces(&w);
    if (!rc)
        rc = cut(&w);
    if (!rc) {
        write_parts(&w, ret);
        ret->feed_types = w.feed_types;
        w.feed_types = NULL;
    }
    mem_free(w.piece_of);
    mem_free(w.feed_piece);
    mem_free(w.feed_types);
    mem_free(w.pieces);
    mem_free(w.frames);
    mem_free(w.order);
    map_done(&w.fed);
    map_done(&w.receives);
    arena_done(&w.arena);
    return rc;
}

void parts_done(struct parts *p)
{
    for (int i = 0; i < p->count; i++)
        pb_out_done(&p->list[i].graph);
    mem_free(p->list);
    mem_free(p->feed_types);
}
