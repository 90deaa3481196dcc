#include "server/master_message.h"

#include <string.h>

#include "base/mem.h"
#include "wire/pb.h"

static struct message_text text(const struct pb_field *f)
{
    return (struct message_text){ (const char *)f->data, f->len };
}

/* ---- RunStep and its kin ---- */

/* Which field has what: 0 for what a message has not. */
struct layout {
    uint32_t session, feed, fetch, target, options, partial, store, id, link;
    bool named; /* feeds are NamedTensorProtos, not names */
};

static const struct layout run_step_layout = {
    .session = 1,
    .feed = 2,
    .fetch = 3,
    .target = 4,
    .options = 5,
    .partial = 6,
    .store = 7,
    .id = 8,
    .named = true,
};

static const struct layout partial_layout = {
    .session = 1, .feed = 2, .fetch = 3, .target = 4, .id = 5
};

/* CallableOptions, inside of the request. */
static const struct layout callable_layout = {
    .feed = 1, .fetch = 2, .target = 3, .options = 4, .link = 5
};

static bool parse_named(const struct pb_field *f, struct message_named *ret)
{
    struct pb_in in = pb_in(f->data, f->len);
    struct pb_field part;

    *ret = (struct message_named){ 0 };
    while (pb_next(&in, &part)) {
        if (part.wire != PB_LEN)
            continue;
        if (part.number == 1)
            ret->name = text(&part);
        if (part.number == 2) {
            ret->tensor = part.data;
            ret->len = part.len;
        }
    }
    return !in.bad;
}

/* A TensorConnection. */
static bool parse_link(const struct pb_field *f, struct part_name *ret)
{
    struct pb_in in = pb_in(f->data, f->len);
    struct pb_field part;

    ret[0] = ret[1] = (struct part_name){ "", 0 };
    while (pb_next(&in, &part))
        if (part.wire == PB_LEN && (part.number == 1 || part.number == 2))
            ret[part.number - 1] =
                (struct part_name){ (const char *)part.data, part.len };
    return !in.bad;
}

static void parse_options(const struct pb_field *f, struct run_step_request *r)
{
    struct pb_in in = pb_in(f->data, f->len);
    struct pb_field part;

    while (pb_next(&in, &part)) {
        if (part.number == 1 && part.wire == PB_VARINT)
            r->trace = part.value != 0;
        if (part.number == 2 && part.wire == PB_VARINT)
            r->timeout_ms = (int64_t)part.value;
        if (part.number == 5 && part.wire == PB_VARINT)
            r->partition_graphs = part.value != 0;
    }
}

static void count(struct run_step_request *r, const struct layout *l,
                  const void *data, size_t len)
{
    struct pb_in in = pb_in(data, len);
    struct pb_field f;

    while (pb_next(&in, &f)) {
        if (f.wire != PB_LEN)
            continue;
        r->feed_count += f.number == l->feed;
        r->fetch_count += f.number == l->fetch;
        r->target_count += f.number == l->target;
        r->link_count += l->link && f.number == l->link ? 2 : 0;
    }
}

static void parse_scalar(struct run_step_request *r, const struct layout *l,
                         const struct pb_field *f)
{
    if (f->number == l->store)
        r->store_errors = f->value != 0;
    if (f->number == l->id)
        r->request_id = (int64_t)f->value;
}

static bool parse_step(struct run_step_request *r, const struct layout *l,
                       const void *data, size_t len)
{
    struct pb_in in = pb_in(data, len);
    struct pb_field f;
    int feeds = 0, fetches = 0, targets = 0, links = 0;
    bool good = true;

    count(r, l, data, len);
    r->memory =
        mem_take((size_t)r->feed_count * sizeof(*r->feeds) +
                 (size_t)(r->fetch_count + r->target_count + r->link_count) *
                     sizeof(*r->fetches));
    r->feeds = r->memory;
    r->fetches = (struct part_name *)(r->feeds + r->feed_count);
    r->targets = r->fetches + r->fetch_count;
    r->links = r->targets + r->target_count;
    while (pb_next(&in, &f)) {
        if (f.wire == PB_VARINT)
            parse_scalar(r, l, &f);
        if (f.wire != PB_LEN || !f.number)
            continue;
        if (f.number == l->session)
            r->session_handle = text(&f);
        else if (f.number == l->feed && l->named)
            good = parse_named(&f, &r->feeds[feeds++]) && good;
        else if (f.number == l->feed)
            r->feeds[feeds++].name = text(&f);
        else if (f.number == l->fetch)
            r->fetches[fetches++] =
                (struct part_name){ (const char *)f.data, f.len };
        else if (f.number == l->target)
            r->targets[targets++] =
                (struct part_name){ (const char *)f.data, f.len };
        else if (f.number == l->options)
            parse_options(&f, r);
        else if (f.number == l->link) {
            good = parse_link(&f, &r->links[links]) && good;
            links += 2;
        } else if (f.number == l->partial)
            r->partial_handle = text(&f);
    }
    if (good && !in.bad)
        return true;
    run_step_free(r);
    return false;
}

bool run_step_parse(struct run_step_request *r, const void *data, size_t len)
{
    *r = (struct run_step_request){ 0 };
    return parse_step(r, &run_step_layout, data, len);
}

bool partial_setup_parse(struct run_step_request *r, const void *data,
                         size_t len)
{
    *r = (struct run_step_request){ 0 };
    return parse_step(r, &partial_layout, data, len);
}

bool make_callable_parse(struct run_step_request *r, const void *data,
                         size_t len)
{
    struct pb_in in = pb_in(data, len);
    struct pb_field f, options = { .data = (const uint8_t *)"" };

    *r = (struct run_step_request){ 0 };
    while (pb_next(&in, &f)) {
        if (f.number == 1 && f.wire == PB_LEN)
            r->session_handle = text(&f);
        if (f.number == 2 && f.wire == PB_LEN)
            options = f;
        if (f.number == 3 && f.wire == PB_VARINT)
            r->request_id = (int64_t)f.value;
    }
    if (in.bad)
        return false;
    return parse_step(r, &callable_layout, options.data, options.len);
}

void run_step_free(struct run_step_request *r)
{
    mem_give(r->memory);
    r->memory = NULL;
}

/* ---- RunCallable ---- */

bool run_callable_parse(struct run_callable_request *r, const void *data,
                        size_t len)
{
    struct pb_in in = pb_in(data, len);
    struct pb_field f;

    *r = (struct run_callable_request){ .data = data, .len = len };
    while (pb_next(&in, &f)) {
        if (f.number == 1 && f.wire == PB_LEN)
            r->session_handle = text(&f);
        if (f.number == 2 && f.wire == PB_VARINT)
            r->handle = (int64_t)f.value;
        if (f.number == 3 && f.wire == PB_LEN)
            r->feed_count++;
        if (f.number == 4 && f.wire == PB_VARINT)
            r->request_id = (int64_t)f.value;
    }
    return !in.bad;
}

bool run_callable_next(const struct run_callable_request *r, size_t *at,
                       struct message_named *ret)
{
    struct pb_in in = pb_in(r->data + *at, r->len - *at);
    struct pb_field f;

    while (pb_next(&in, &f))
        if (f.number == 3 && f.wire == PB_LEN) {
            *at = (size_t)(in.at - r->data);
            *ret = (struct message_named){ .tensor = f.data, .len = f.len };
            return true;
        }
    return false;
}

/* ---- ConfigProto ---- */

enum {
    CONFIG_DEVICES = 1, /* by type: how many */
    CONFIG_INTRA = 2,   /* threads */
    CONFIG_FILTER = 4,
    CONFIG_INTER = 5,
    CONFIG_SOFT = 7,
    CONFIG_LOG = 8,
    CONFIG_OWN_THREADS = 9,
    CONFIG_GRAPH = 10, /* GraphOptions */
    CONFIG_TIMEOUT = 11,
    CONFIG_POOL = 12,
    CONFIG_CLUSTER = 14,
    CONFIG_ISOLATE = 15,
    CONFIG_EXPERIMENTAL = 16,
};

/* The value of field `number`, a message, of a message. */
static struct pb_in inner(struct pb_in in, uint32_t number)
{
    struct pb_in found = pb_in("", 0);
    struct pb_field f;

    while (pb_next(&in, &f))
        if (f.wire == PB_LEN && f.number == number)
            found = pb_in(f.data, f.len);
    return found;
}

/* GraphOptions.optimizer_options.opt_level, if it is given. */
static void parse_level(const struct pb_field *options, bool *plain)
{
    struct pb_in in = inner(pb_in(options->data, options->len), 3);
    struct pb_field f;

    while (pb_next(&in, &f))
        if (f.wire == PB_VARINT && f.number == 3)
            *plain = (int32_t)f.value < 0;
}

#define CPUS_MAX 1000

static void parse_device_count(const struct pb_field *entry, int *cpus)
{
    struct pb_in in = pb_in(entry->data, entry->len);
    bool cpu = false;
    int32_t count = 0;
    struct pb_field f;

    while (pb_next(&in, &f)) {
        if (f.number == 1 && f.wire == PB_LEN)
            cpu = f.len == 3 && !memcmp(f.data, "CPU", 3);
        if (f.number == 2 && f.wire == PB_VARINT)
            count = (int32_t)f.value;
    }
    if (cpu)
        *cpus = MIN(MAX(count, 0), CPUS_MAX);
}

/* Experimental.share_session_state_in_clusterspec_propagation. */
static void parse_share(const struct pb_field *experimental, bool *share)
{
    struct pb_in in = pb_in(experimental->data, experimental->len);
    struct pb_field f;

    while (pb_next(&in, &f))
        if (f.wire == PB_VARINT && f.number == 8)
            *share = f.value != 0;
}

bool session_config_parse(struct session_config *c, const void *data,
                          size_t len)
{
    struct pb_in in = pb_in(data, len);
    int room = 0;
    struct pb_field f;

    *c = (struct session_config){ 0 };
    while (pb_next(&in, &f)) {
        if (f.wire == PB_VARINT) {
            c->soft_placement =
                f.number == CONFIG_SOFT ? f.value != 0 : c->soft_placement;
            c->log_placement =
                f.number == CONFIG_LOG ? f.value != 0 : c->log_placement;
            c->isolate = f.number == CONFIG_ISOLATE ? f.value != 0 : c->isolate;
            c->own_threads |= f.number == CONFIG_OWN_THREADS && f.value;
            if (f.number == CONFIG_TIMEOUT)
                c->timeout_ms = (int64_t)f.value;
            if (f.number == CONFIG_INTRA || f.number == CONFIG_INTER)
                c->threads = MAX(c->threads, (int32_t)f.value);
        }
        if (f.wire == PB_LEN && f.number == CONFIG_DEVICES)
            parse_device_count(&f, &c->cpus);
        if (f.wire == PB_LEN && f.number == CONFIG_FILTER)
            *MEM_PUSH(c->filters, c->filter_count, room) =
                (struct part_name){ (const char *)f.data, f.len };
        if (f.wire == PB_LEN && f.number == CONFIG_CLUSTER)
            c->cluster = text(&f);
        if (f.wire == PB_LEN && f.number == CONFIG_GRAPH)
            parse_level(&f, &c->plain);
        if (f.wire == PB_LEN && f.number == CONFIG_EXPERIMENTAL)
            parse_share(&f, &c->share);
        c->own_threads |= f.wire == PB_LEN && f.number == CONFIG_POOL;
    }
    if (c->cluster.len) /* its state is its own */
        c->isolate = true;
    if (c->share)
        c->isolate = false;
    if (!in.bad)
        return true;
    session_config_free(c);
    return false;
}

void session_config_free(struct session_config *c)
{
    mem_free(c->filters);
    c->filters = NULL;
}
