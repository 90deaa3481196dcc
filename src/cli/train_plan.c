#include "cli/train_plan.h"

#include <string.h>

#include "base/mem.h"
#include "kernel/cast.h"

static void push(struct train_names *n, const char *name)
{
    *MEM_PUSH(n->list, n->count, n->room) = name;
}

/* "name=value": the name, in the graph's memory; *ret_value points into it. */
static const char *split(struct train_plan *p, const char *pair,
                         const char **ret_value)
{
    size_t len = strcspn(pair, "=");

    *ret_value = arena_str(&p->graph.arena, pair + len + 1);
    return arena_strn(&p->graph.arena, pair, len);
}

static enum mst_code take_feeds(struct train_plan *p,
                                const struct option_words *pairs,
                                struct train_names *names,
                                struct data_feed **ret, struct status *st)
{
    struct data_feed *list =
        ARENA_ARRAY(&p->graph.arena, struct data_feed, pairs->count + 1);

    for (int i = 0; i < pairs->count; i++) {
        const char *source, *name = split(p, pairs->at[i], &source), *tensor;

        if (meta_graph_tensor(&p->graph, name, &tensor, st))
            return st->code;
        list[i] = (struct data_feed){ .name = tensor, .source = source };
        if (!meta_graph_placeholder(&p->graph, tensor, &list[i].type,
                                    &list[i].shape))
            list[i].type = DT_INVALID;
        push(names, tensor);
    }
    *ret = list;
    return MST_OK;
}

static enum mst_code take_numbers(struct train_plan *p,
                                  const struct option_words *pairs,
                                  struct train_names *tensors,
                                  struct train_names *labels, struct status *st)
{
    for (int i = 0; i < pairs->count; i++) {
        const char *value, *label = split(p, pairs->at[i], &value), *tensor;

        if (meta_graph_tensor(&p->graph, value, &tensor, st))
            return st->code;
        push(tensors, tensor);
        push(labels, label);
    }
    return MST_OK;
}

/* The loss, as the graph's signature or its collection has it. */
static void take_loss(struct train_plan *p)
{
    const char *loss = map_get_str(&p->graph.outputs, "loss");

    if (!loss)
        loss = meta_graph_first(&p->graph, "losses");
    if (!loss)
        return;
    push(&p->fetches, loss);
    push(&p->labels, "loss");
}

/* The last train_op counts: an optimizer within another adds its own first. */
static enum mst_code take_targets(struct train_plan *p,
                                  const struct option_words *words,
                                  struct status *st)
{
    const char *op = meta_graph_last(&p->graph, "train_op");

    for (int i = 0; i < words->count; i++) {
        if (meta_graph_op(&p->graph, words->at[i], &op, st))
            return st->code;
        push(&p->targets, op);
    }
    if (words->count)
        return MST_OK;
    if (!op)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "The graph does not say what trains it (it has no "
                          "collection train_op): give --target");
    if (meta_graph_op(&p->graph, op, &op, st))
        return st->code;
    push(&p->targets, op);
    return MST_OK;
}

static enum mst_code take_all(struct train_plan *p,
                              const struct train_options *o, struct status *st)
{
    const struct meta_variable *global = p->graph.global_step;

    if (take_feeds(p, &o->feeds, &p->feeds, &p->sources, st) ||
        take_targets(p, &o->targets, st) ||
        take_numbers(p, &o->fetches, &p->fetches, &p->labels, st))
        return st->code;
    if (!o->fetches.count)
        take_loss(p);
    if (global && global->snapshot)
        push(&p->fetches, global->snapshot);
    if (take_feeds(p, o->eval_feeds.count ? &o->eval_feeds : &o->feeds,
                   &p->eval_feeds, &p->eval_sources, st))
        return st->code;
    return take_numbers(p, &o->evals, &p->evals, &p->eval_labels, st);
}

enum mst_code train_plan_read(struct train_plan *p,
                              const struct train_options *o, struct status *st)
{
    enum mst_code rc;

    *p = (struct train_plan){ 0 };
    rc = meta_graph_read(&p->graph, o->meta_graph, st);
    if (rc)
        return rc;
    rc = take_all(p, o, st);
    if (rc)
        train_plan_done(p);
    return rc;
}

void train_plan_done(struct train_plan *p)
{
    mem_free(p->feeds.list);
    mem_free(p->fetches.list);
    mem_free(p->labels.list);
    mem_free(p->targets.list);
    mem_free(p->evals.list);
    mem_free(p->eval_labels.list);
    mem_free(p->eval_feeds.list);
    meta_graph_done(&p->graph);
    *p = (struct train_plan){ 0 };
}

struct client_want train_plan_step(const struct train_plan *p)
{
    return (struct client_want){ .feeds = p->feeds.list,
                                 .fetches = p->fetches.list,
                                 .targets = p->targets.list,
                                 .feed_count = p->feeds.count,
                                 .fetch_count = p->fetches.count,
                                 .target_count = p->targets.count };
}

struct client_want train_plan_eval(const struct train_plan *p)
{
    return (struct client_want){ .feeds = p->eval_feeds.list,
                                 .fetches = p->evals.list,
                                 .feed_count = p->eval_feeds.count,
                                 .fetch_count = p->evals.count };
}

enum mst_code train_plan_number(const struct tensor *t, const char *name,
                                double *ret, struct status *st)
{
    char shape[SHAPE_TEXT_MAX];
    void (*loop)(void *, const void *, int64_t) = NULL;

    if (dtype_is_plain((enum dtype)t->dtype))
        loop = cast_loop((enum dtype)t->dtype, DT_DOUBLE);
    if (t->dtype == DT_FLOAT && t->count == 1)
        *ret = *TENSOR_DATA(t, float);
    else if (t->dtype == DT_DOUBLE && t->count == 1)
        *ret = *TENSOR_DATA(t, double);
    else if (loop && t->count == 1)
        loop(ret, t->data, 1);
    else
        return status_set(st, MST_INVALID_ARGUMENT,
                          "%s is no number, but of type %s and shape %s", name,
                          dtype_name(t->dtype), tensor_shape_text(t, shape));
    return MST_OK;
}
