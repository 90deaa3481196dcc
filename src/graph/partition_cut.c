/*
 * Cutting a step between its tasks. The nodes are put in order, which also
 * tells the frame of a loop that each is in; then an edge whose ends are on
 * different tasks becomes a _Send and a _Recv, a control edge carries an empty
 * value, and inside of a loop the receives are started by a small loop that
 * counts along on their task (docs/adr/0013-master.md).
 */
#include <string.h>

#include "base/mem.h"
#include "graph/partition_state.h"

/* The loops that count along; TensorFlow's workers know them by it. */
#define LOOP "_cloop"

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
            p->place = w->pieces[p->inputs[0].node].place;
    }
    for (int o = w->count - 1; o >= 0; o--) {
        int i = w->order[o];
        struct piece *p = &w->pieces[i];

        if ((p->kind == OP_ENTER || p->kind == OP_NEXT_ITERATION) && p->src &&
            !dtype_is_ref(p->src->in_types[0]) && first[i] < first[i + 1])
            p->place = w->pieces[readers[first[i]]].place;
    }
}

/* ---- transfers ---- */

static int loop_merge(struct work *w, int frame, int place);

struct transfer_key {
    int piece, output, task;
};

static void note_between(struct work *w, int from, int to)
{
    int own = partition_task(w, w->where->own);

    if (from != own && to != own)
        w->between[from] = w->between[to] = true;
}

/* A pair of nodes; the receive happens after what `after` names. A late value
 * is that of the moment when the receive happens, not the send. */
static int add_pair(struct work *w, int src, int output, int place, int frame,
                    const struct graph_input *after, int after_count, bool late)
{
    struct graph_input in = { src, output };
    int type = partition_type(w, src, output), from = w->pieces[src].place;
    const char *base = w->pieces[src].name, *name;
    struct graph_input *control =
        ARENA_ARRAY(&w->arena, struct graph_input, after_count + 1);
    struct pb_out a;

    note_between(w, partition_task(w, from), partition_task(w, place));
    w->late[partition_task(w, from)] |= late;
    name = arena_printf(&w->arena, "edge_%d_%s", ++w->edge, base);
    pb_out_init(&a);
    node_attr_put_num(&a, "T", 6, (uint64_t)type);
    partition_put_key(w, &a, name, from, place);
    if (late)
        node_attr_put_num(&a, "_late", 5, true);
    partition_add(w, partition_name(w, base, "S"), "_Send", OP_SEND, from,
                  frame, 0, &in, 1, 0, &a);
    pb_out_init(&a);
    node_attr_put_num(&a, "tensor_type", 6, (uint64_t)type);
    partition_put_key(w, &a, name, from, place);
    if (late)
        node_attr_put_num(&a, "_late", 5, true);
    if (after_count)
        memcpy(control, after, sizeof(*control) * (size_t)after_count);
    if (frame)
        control[after_count++] =
            (struct graph_input){ loop_merge(w, frame, place), -1 };
    return partition_add(w, partition_name(w, base, "R"), "_Recv", OP_RECV,
                         place, frame, type, control, 0, after_count, &a);
}

/* The piece on that device's task that has this output; frame is where the edge
 * is. */
static int transfer(struct work *w, int src, int output, int place, int frame)
{
    struct transfer_key key = { src, output, partition_task(w, place) };
    int recv = (int)(intptr_t)map_get(&w->receives, &key, sizeof(key)) - 1;

    if (recv < 0) {
        recv = add_pair(w, src, output, place, frame, NULL, 0, false);
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

    return add_pair(w, in.node, in.output, d->place, d->frame,
                    d->inputs + d->data_count, d->input_count - d->data_count,
                    true);
}

static bool is_ref(const struct work *w, const struct graph_input *in)
{
    const struct source_node *src = w->pieces[in->node].src;

    return src && dtype_is_ref(src->out_types[in->output]);
}

/* An empty tensor that is there when its control input is. */
static int add_token(struct work *w, const char *base, int place, int frame,
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
    return partition_add(w, partition_name(w, base, "C"), "Const", OP_ORDINARY,
                         place, frame, DT_FLOAT, control, 0, control != NULL,
                         &a);
}

/* The same for a control edge. */
static int transfer_control(struct work *w, int src, int place, int frame)
{
    struct transfer_key key = { src, -1, partition_task(w, place) };
    struct graph_input in = { src, -1 };
    int at = (int)(intptr_t)map_get(&w->receives, &key, sizeof(key)) - 1;
    struct pb_out a;
    int token;

    if (at >= 0)
        return at;
    token = add_token(w, w->pieces[src].name, w->pieces[src].place, frame, &in);
    in = (struct graph_input){ transfer(w, token, 0, place, frame), 0 };
    pb_out_init(&a);
    node_attr_put_num(&a, "T", 6, DT_FLOAT);
    at = partition_add(w, partition_name(w, w->pieces[src].name, "I"),
                       "Identity", OP_ORDINARY, place, frame, DT_FLOAT, &in, 1,
                       0, &a);
    map_put(&w->receives, &key, sizeof(key), (void *)(intptr_t)(at + 1));
    return at;
}

/*
 * What comes from another device of the same task is received there too, once
 * an iteration: by a task of TensorFlow's, which cuts its part again. The node
 * waits for the Merge of its device's loop, as TensorFlow's master would have
 * it, and that task knows the Merge by its name.
 */
static void count_along(struct work *w, int dst, int src)
{
    struct piece *d = &w->pieces[dst];
    struct graph_input *inputs;
    int frame = d->frame, count = d->input_count, merge;

    if (!frame || d->place == w->pieces[src].place || w->frames[frame].cond < 0)
        return;
    merge = loop_merge(w, frame, d->place);
    d = &w->pieces[dst];
    inputs = ARENA_ARRAY(&w->arena, struct graph_input, count + 1);
    memcpy(inputs, d->inputs, sizeof(*inputs) * (size_t)count);
    inputs[count] = (struct graph_input){ merge, -1 };
    d->inputs = inputs;
    d->input_count = count + 1;
}

/* The loop that counts along: token -> Enter -> Merge -> Switch ->
 * NextIteration -> Merge. Its Merge runs once an iteration on that task. */
static int loop_merge(struct work *w, int frame, int place)
{
    struct frame *f = &w->frames[frame];
    struct graph_input in[2] = { { 0, -1 } };
    struct pb_out a;
    int token, enter, merge, sw, cond = f->cond, pred;

    if (f->merge[place])
        return f->merge[place];
    if (f->parent > 0)
        in[0].node = loop_merge(w, f->parent, place);
    token = add_token(w, LOOP, place, f->parent, f->parent > 0 ? in : NULL);
    pb_out_init(&a);
    node_attr_put_num(&a, "T", 6, DT_FLOAT);
    node_attr_put_text(&a, "frame_name", f->name, f->name_len);
    node_attr_put_num(&a, "parallel_iterations", 3, (uint64_t)f->parallel);
    in[0] = (struct graph_input){ token, 0 };
    enter = partition_add(w, partition_name(w, LOOP, "E"), "Enter", OP_ENTER,
                          place, f->parent, DT_FLOAT, in, 1, 0, &a);
    pb_out_init(&a);
    node_attr_put_num(&a, "T", 6, DT_FLOAT);
    node_attr_put_num(&a, "N", 3, 2);
    in[0] = in[1] = (struct graph_input){ enter, 0 }; /* [1] follows below */
    merge = partition_add(w, partition_name(w, LOOP, "M"), "Merge", OP_MERGE,
                          place, frame, DT_FLOAT, in, 2, 0, &a);
    f->merge[place] = merge;
    pred = partition_task(w, w->pieces[cond].place) == partition_task(w, place)
               ? cond
               : transfer(w, cond, 0, place, frame);
    pb_out_init(&a);
    node_attr_put_num(&a, "T", 6, DT_FLOAT);
    in[0] = (struct graph_input){ merge, 0 };
    in[1] = (struct graph_input){ pred, 0 };
    sw = partition_add(w, partition_name(w, LOOP, "W"), "Switch", OP_SWITCH,
                       place, frame, DT_FLOAT, in, 2, 0, &a);
    count_along(w, sw, pred);
    pb_out_init(&a);
    node_attr_put_num(&a, "T", 6, DT_FLOAT);
    in[0] = (struct graph_input){ sw, 1 };
    w->pieces[merge].inputs[1] = (struct graph_input){
        partition_add(w, partition_name(w, LOOP, "N"), "NextIteration",
                      OP_NEXT_ITERATION, place, frame, DT_FLOAT, in, 1, 0, &a),
        0
    };
    return merge;
}

static enum mst_code cut_edge(struct work *w, int dst, int k)
{
    struct graph_input in = w->pieces[dst].inputs[k];
    int frame = w->pieces[dst].frame, place = w->pieces[dst].place, recv;

    if (partition_task(w, w->pieces[in.node].place) ==
        partition_task(w, place)) {
        count_along(w, dst, in.node);
        return MST_OK;
    }
    for (int f = frame; f > 0; f = w->frames[f].parent)
        if (w->frames[f].cond < 0)
            return status_set(w->st, MST_INVALID_ARGUMENT,
                              "A cross-device loop must have a pivot "
                              "predicate: %.*s",
                              (int)w->frames[f].name_len, w->frames[f].name);
    if (in.output >= 0) {
        recv = is_ref(w, &in) ? transfer_ref(w, dst, k)
                              : transfer(w, in.node, in.output, place, frame);
        in = (struct graph_input){ recv, 0 };
    } else {
        in.node = transfer_control(w, in.node, place, frame);
    }
    w->pieces[dst].inputs[k] = in;
    count_along(w, dst, in.node);
    return MST_OK;
}

enum mst_code partition_cut(struct work *w)
{
    int *first, *readers, count = w->count;
    enum mst_code rc;

    if (w->where->task_count < 2) /* there is nothing to be cut */
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
