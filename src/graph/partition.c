#include "graph/partition_state.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

/* ---- pieces ---- */

const char *partition_name(struct work *w, const char *base, const char *tag)
{
    const char *name;

    do
        name = arena_printf(&w->arena, "%s/_%s%d", base, tag, ++w->edge);
    while (source_find(w->s, name, strlen(name)) >= 0);
    return name;
}

/* inputs is copied; attrs too, and emptied. */
int partition_add(struct work *w, const char *name, const char *op,
                  enum op_kind kind, int place, int frame, int type,
                  const struct graph_input *inputs, int data, int control,
                  struct pb_out *attrs)
{
    struct piece *p = MEM_PUSH(w->pieces, w->count, w->room);

    *p = (struct piece){
        .name = name,
        .op = op,
        .kind = kind,
        .place = place,
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

int partition_type(const struct work *w, int piece, int output)
{
    const struct piece *p = &w->pieces[piece];

    return dtype_base(p->src ? p->src->out_types[output] : p->type);
}

int partition_task(const struct work *w, int place)
{
    return w->where->devices[place].task;
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

static void resolve(const struct work *w, int *node, int *output)
{
    struct graph_input in = { *node, *output };

    source_resolve(w->s, &in);
    *node = in.node;
    *output = in.output;
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
        resolve(w, &node, &output);
        if (map_put_num(&w->fed, tensor_key(node, output),
                        (void *)(intptr_t)(i + 1)))
            return status_set(w->st, MST_INVALID_ARGUMENT,
                              "Duplicated feed: %.*s", (int)MIN(name->len, 200),
                              name->text);
        w->feed_types[i] = dtype_base(w->s->nodes[node].out_types[output]);
    }
    return MST_OK;
}

static enum mst_code find_links(struct work *w)
{
    for (int i = 0; i + 1 < w->want->link_count; i += 2) {
        struct graph_input *ends =
            ARENA_ARRAY(&w->arena, struct graph_input, 2);
        uint64_t key;

        for (int e = 0; e < 2; e++) {
            const struct part_name *name = &w->want->links[i + e];

            if (!find_tensor(w, name, &ends[e].node, &ends[e].output) ||
                ends[e].output >= w->s->nodes[ends[e].node].out_count)
                return status_set(w->st, MST_NOT_FOUND,
                                  "TensorConnection: unable to find tensor "
                                  "%.*s",
                                  (int)MIN(name->len, 200), name->text);
            source_resolve(w->s, &ends[e]);
        }
        key = tensor_key(ends[1].node, ends[1].output);
        if (dtype_base(w->s->nodes[ends[0].node].out_types[ends[0].output]) !=
            dtype_base(w->s->nodes[ends[1].node].out_types[ends[1].output]))
            return status_set(w->st, MST_INVALID_ARGUMENT,
                              "TensorConnection: %.*s has another type",
                              (int)MIN(w->want->links[i].len, 200),
                              w->want->links[i].text);
        if (map_get_num(&w->fed, key) || map_put_num(&w->linked, key, ends))
            return status_set(w->st, MST_INVALID_ARGUMENT,
                              "Cannot feed or connect %.*s twice",
                              (int)MIN(w->want->links[i + 1].len, 200),
                              w->want->links[i + 1].text);
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
    resolve(w, ret_node, ret_output);
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

/* The input as it is once tensors are connected. */
static struct graph_input follow_link(const struct work *w,
                                      const struct graph_input *in)
{
    const struct graph_input *from;

    if (!w->linked.count ||
        (in->output < 0 && !is_placeholder(&w->s->nodes[in->node])))
        return *in;
    from = map_get_num(&w->linked, tensor_key(in->node, MAX(in->output, 0)));
    if (!from)
        return *in;
    return (struct graph_input){ from->node,
                                 in->output < 0 ? -1 : from->output };
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
        for (int k = 0; k < n->input_count; k++) {
            struct graph_input in = follow_link(w, &n->inputs[k]);

            if (!feed_of(w, &in))
                visit(&r, in.node);
        }
    }
    mem_free(r.stack);
    return rc;
}

/* ---- feeds and fetches ---- */

/* The attributes that a key of the rendezvous is made of. */
void partition_put_key(struct work *w, struct pb_out *a, const char *name,
                       int from, int to)
{
    const struct place_device *src = &w->where->devices[from];
    const struct place_device *dst = &w->where->devices[to];

    node_attr_put_text(a, "tensor_name", name, strlen(name));
    node_attr_put_text(a, "send_device", src->device, strlen(src->device));
    node_attr_put_text(a, "recv_device", dst->device, strlen(dst->device));
    node_attr_put_num(a, "send_device_incarnation", 3, src->incarnation);
}

/* The client and its own task are at its two ends. */
static void put_client_key(struct work *w, struct pb_out *a, const char *name)
{
    partition_put_key(w, a, name, w->where->own, w->where->own);
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
    w->feed_piece[i] = partition_add(
        w, partition_name(w, "_feed", ""), w->want->partial ? "_Recv" : "_Arg",
        OP_ORDINARY, w->where->own, 0, w->feed_types[i], NULL, 0, 0, &a);
}

static void add_fetch(struct work *w, int i, int node, int output)
{
    struct graph_input in = { w->piece_of[node] - 1, output };
    const char *text = full_name(w, &w->want->fetches[i]);
    struct pb_out a;

    pb_out_init(&a);
    node_attr_put_num(&a, "T", 6, (uint64_t)partition_type(w, in.node, output));
    if (w->want->partial)
        put_client_key(w, &a, text);
    else
        node_attr_put_num(&a, "index", 3, (uint64_t)i);
    partition_add(w, partition_name(w, "_fetch", ""),
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
                             .place = s->nodes[i].place };
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
            struct graph_input in = follow_link(w, &p->src->inputs[k]);
            int feed = feed_of(w, &in);

            p->inputs[k] = feed
                               ? (struct graph_input){ w->feed_piece[feed - 1],
                                                       MIN(in.output, 0) }
                               : (struct graph_input){ w->piece_of[in.node] - 1,
                                                       in.output };
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
    const char *device = w->where->devices[p->place].device;

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
    int *part = mem_array((size_t)w->where->task_count, sizeof(int));
    struct pb_out node;
    bool *calls;

    ret->list = mem_array((size_t)w->where->task_count, sizeof(*ret->list));
    ret->count = 0;
    for (int i = 0; i < w->count; i++)
        if (!part[partition_task(w, w->pieces[i].place)]) {
            ret->list[ret->count].task = partition_task(w, w->pieces[i].place);
            pb_out_init(&ret->list[ret->count].graph);
            part[ret->list[ret->count].task] = ret->count + 1;
            ret->count++;
        }
    calls = mem_array((size_t)ret->count, sizeof(bool));
    pb_out_init(&node);
    for (int i = 0; i < w->count; i++) {
        const struct piece *p = &w->pieces[i];
        int at = part[partition_task(w, p->place)] - 1;

        put_piece(&ret->list[at].graph, &node, w, p);
        ret->list[at].nodes++;
        ret->list[at].transfers |= p->kind == OP_SEND || p->kind == OP_RECV;
        ret->list[at].between = w->between[ret->list[at].task];
        ret->list[at].late = w->late[ret->list[at].task];
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
    map_init(&w.linked);
    map_init(&w.receives);
    w.between = ARENA_ARRAY(&w.arena, bool, where->task_count);
    w.late = ARENA_ARRAY(&w.arena, bool, where->task_count);
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
        rc = find_links(&w);
    if (!rc)
        rc = mark(&w);
    if (!rc)
        rc = make_pieces(&w);
    if (!rc)
        rc = partition_cut(&w);
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
    map_done(&w.linked);
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
