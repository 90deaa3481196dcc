#include "graph/place.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

struct placing {
    struct source *s;
    const struct place_opts *opts;
    int first;
    struct device_name *want; /* by node, from first on; of a group's head */
    int *reader;              /* by node: its one reader; -1 none, -2 several */
    struct status *st;
};

/* ---- groups ---- */

/* The smaller index becomes the head, so that what is placed stays a head. */
static void join(struct source *s, int a, int b)
{
    a = source_group(s, a);
    b = source_group(s, b);
    if (a < b)
        s->nodes[b].group = a;
    else
        s->nodes[a].group = b;
}

struct classes {
    struct source *s;
    int node;
};

static void join_class(void *arg, const char *text, size_t len)
{
    struct classes *c = arg;
    int other;

    if (len < 5 || memcmp(text, "loc:@", 5))
        return;
    other = source_find(c->s, text + 5, len - 5);
    if (other < 0) { /* no such node: those that name it are still together */
        other = (int)(intptr_t)map_get(&c->s->classes, text, len) - 1;
        if (other < 0)
            map_put(&c->s->classes, text, len, (void *)(intptr_t)(c->node + 1));
    }
    if (other >= 0 && other < c->s->count)
        join(c->s, c->node, other);
}

/* A reference or a resource cannot leave its task. */
static bool goes_with_input(const struct source *s, const struct source_node *n,
                            int k)
{
    const struct graph_input *in = &n->inputs[k];

    return dtype_is_ref(n->in_types[k]) ||
           s->nodes[in->node].out_types[in->output] == DT_RESOURCE;
}

static void make_groups(struct placing *p)
{
    struct source *s = p->s;

    for (int i = p->first; i < s->count; i++) {
        struct source_node *n = &s->nodes[i];
        struct classes c = { s, i };

        source_each_class(n, join_class, &c);
        for (int k = 0; k < n->data_count; k++) {
            if (goes_with_input(s, n, k))
                join(s, i, n->inputs[k].node);
        }
    }
}

/* ---- what a group wants ---- */

static enum mst_code fail(struct placing *p, const struct source_node *n,
                          const struct device_name *want)
{
    char text[300];

    device_format(want, text, sizeof(text));
    status_set(p->st, MST_INVALID_ARGUMENT,
               "Cannot assign a device for operation %.200s: {{node %.200s}} "
               "was explicitly assigned to %s but available devices are [ ",
               n->name, n->name, text);
    for (int i = 0; i < p->opts->count && i < 20; i++)
        status_append(p->st, "%s%s", i ? ", " : "", p->opts->devices[i].device);
    status_append(p->st,
                  " ]. Make sure the device specification refers to a valid "
                  "device.");
    if (!strcmp(want->type, "GPU"))
        status_append(p->st, " The requested device appears to be a GPU, but "
                             "CUDA is not enabled.");
    status_append(p->st, "\n\t [[%.200s]]", n->name);
    return MST_INVALID_ARGUMENT;
}

static bool fits(const struct placing *p, const struct device_name *want,
                 int place, bool soft)
{
    const struct device_name *name = &p->opts->devices[place].name;
    struct device_name loose;

    if (device_matches(name, want))
        return *want->type || !strcmp(name->type, "CPU");
    if (!soft || strcmp(name->type, "CPU"))
        return false;
    loose = *want;
    loose.type[0] = '\0';
    loose.id = -1;
    return device_matches(name, &loose);
}

static int choose_by(const struct placing *p, const struct device_name *want,
                     bool soft)
{
    const struct place_opts *o = p->opts;
    int task = o->devices[o->own].task;

    if (fits(p, want, o->own, soft))
        return o->own;
    for (int others = 0; others < 2; others++)
        for (int i = 0; i < o->count; i++)
            if ((o->devices[i].task != task) == others &&
                fits(p, want, i, soft))
                return i;
    return -1;
}

static int choose(const struct placing *p, const struct device_name *want)
{
    int place = choose_by(p, want, false);

    return place < 0 && p->opts->soft ? choose_by(p, want, true) : place;
}

/* What one node says, added to what its group wants. */
static enum mst_code merge_want(struct placing *p, int i, bool weak)
{
    struct source *s = p->s;
    struct source_node *n = &s->nodes[i];
    int head = source_group(s, i);
    struct device_name d;

    if (!n->device_len)
        return MST_OK;
    if (!device_parse(n->device, n->device_len, &d))
        return status_set(p->st, MST_INVALID_ARGUMENT,
                          "Malformed device specification '%.*s' in node: "
                          "{{node %.200s}}",
                          (int)MIN(n->device_len, 200), n->device, n->name);
    if (head < p->first) /* it is placed already */
        return weak || p->opts->soft || fits(p, &d, s->nodes[head].place, false)
                   ? MST_OK
                   : fail(p, n, &d);
    if (device_merge(&p->want[head - p->first], &d, p->opts->soft) || weak)
        return MST_OK;
    return status_set(p->st, MST_INVALID_ARGUMENT,
                      "Cannot colocate nodes {{colocation_node %.200s}} and "
                      "{{colocation_node %.200s}} because they were assigned "
                      "to different devices\n\t [[{{node %.200s}}]]",
                      n->name, s->nodes[head].name, n->name);
}

/* Who makes a resource has the say; who takes it is heard where the two do not
 * contradict each other. */
static enum mst_code merge_wants(struct placing *p)
{
    struct source *s = p->s;
    enum mst_code rc = MST_OK;

    for (int i = p->first; i < s->count; i++)
        p->want[i - p->first] =
            (struct device_name){ .replica = -1, .task = -1, .id = -1 };
    for (int weak = 0; weak < 2; weak++)
        for (int i = p->first; i < s->count && !rc; i++) {
            const struct source_node *n = &s->nodes[i];
            bool takes = false;

            for (int k = 0; k < n->data_count; k++)
                takes |= goes_with_input(s, n, k);
            if (takes == weak)
                rc = merge_want(p, i, weak);
        }
    return rc;
}

/* ---- choosing ---- */

static void find_readers(struct placing *p)
{
    struct source *s = p->s;

    for (int i = p->first; i < s->count; i++)
        p->reader[i - p->first] = -1;
    for (int i = p->first; i < s->count; i++)
        for (int k = 0; k < s->nodes[i].input_count; k++) {
            int src = s->nodes[i].inputs[k].node - p->first;

            if (src >= 0)
                p->reader[src] = p->reader[src] == -1 ? i : -2;
        }
}

/* Nobody else is in its group: group heads come first, so it heads it alone
 * when nobody points to it. */
static bool follows_reader(const struct placing *p, int i)
{
    const struct source_node *n = &p->s->nodes[i];

    return !n->input_count && n->out_count == 1 &&
           p->reader[i - p->first] >= 0 && !dtype_is_ref(n->out_types[0]) &&
           n->out_types[0] != DT_RESOURCE;
}

static bool follows_input(const struct source_node *n)
{
    static const char *const ops[] = { "Shape", "Size", "Rank" };

    for (size_t i = 0; i < COUNT(ops); i++)
        if (!strcmp(n->op, ops[i]) && n->data_count)
            return true;
    return false;
}

static int place_of(struct source *s, int node)
{
    return s->nodes[source_group(s, node)].place;
}

static void follow(struct placing *p, int i, int other)
{
    const struct device_name *want = &p->want[i - p->first];
    int place = place_of(p->s, other);

    if (place >= 0 && fits(p, want, place, p->opts->soft))
        p->s->nodes[i].place = place;
}

static enum mst_code assign(struct placing *p)
{
    struct source *s = p->s;

    for (int i = p->first; i < s->count; i++) {
        struct source_node *n = &s->nodes[i];

        if (source_group(s, i) != i)
            continue;
        if (follows_input(n))
            follow(p, i, n->inputs[0].node);
        if (n->place < 0 && !follows_reader(p, i))
            n->place = choose(p, &p->want[i - p->first]);
        if (n->place < 0 && !follows_reader(p, i))
            return fail(p, n, &p->want[i - p->first]);
    }
    for (int i = p->first; i < s->count; i++) {
        struct source_node *n = &s->nodes[i];

        if (n->place < 0 && source_group(s, i) == i)
            follow(p, i, p->reader[i - p->first]);
        if (n->place < 0 && source_group(s, i) == i)
            n->place = choose(p, &p->want[i - p->first]);
        if (n->place < 0 && source_group(s, i) == i)
            return fail(p, n, &p->want[i - p->first]);
    }
    for (int i = p->first; i < s->count; i++)
        s->nodes[i].place = place_of(s, i);
    return MST_OK;
}

enum mst_code place_nodes(struct source *s, int first,
                          const struct place_opts *opts, struct status *st)
{
    size_t n = (size_t)(s->count - first);
    struct placing p = { .s = s,
                         .opts = opts,
                         .first = first,
                         .want = mem_array(n, sizeof(*p.want)),
                         .reader = mem_array(n, sizeof(*p.reader)),
                         .st = st };
    enum mst_code rc;

    make_groups(&p);
    rc = merge_wants(&p);
    if (!rc) {
        find_readers(&p);
        rc = assign(&p);
    }
    mem_free(p.want);
    mem_free(p.reader);
    return rc;
}
