#include "server/stats.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

/* A message that is made apart, because its length comes first. */
static void put_message(struct pb_out *o, uint32_t number,
                        const struct pb_out *inner)
{
    pb_put_bytes(o, number, inner->data, inner->len);
}

struct span {
    const char *name, *label;
    uint64_t start_ns, end_ns; /* of the wall clock */
    uint32_t thread;
};

static void put_node(struct pb_out *o, const struct span *s)
{
    struct pb_out n;
    uint64_t took = s->end_ns - s->start_ns;

    pb_out_init(&n);
    pb_put_bytes(&n, 1, s->name, strlen(s->name));
    pb_put_uint(&n, 2, s->start_ns / 1000);
    pb_put_uint(&n, 4, took / 1000);
    pb_put_uint(&n, 5, took / 1000);
    pb_put_bytes(&n, 8, s->label, strlen(s->label));
    pb_put_uint(&n, 9, s->start_ns / 1000);
    pb_put_uint(&n, 10, s->thread);
    pb_put_uint(&n, 13, s->start_ns);
    pb_put_uint(&n, 15, took);
    pb_put_uint(&n, 16, took);
    pb_put_uint(&n, 17, s->start_ns);
    put_message(o, 2, &n);
    pb_out_done(&n);
}

static void put_device(struct pb_out *o, uint32_t number,
                       const struct pb_out *device)
{
    struct pb_out stats;

    pb_out_init(&stats);
    put_message(&stats, 1, device);
    put_message(o, number, &stats);
    pb_out_done(&stats);
}

void stats_put(struct pb_out *o, uint32_t number, const char *device,
               const struct step_stat *stats, int count)
{
    /* The executor's clock does not know what time it is. */
    uint64_t shift = clock_wall_us() * 1000 - clock_ns();
    struct pb_out d;

    pb_out_init(&d);
    pb_put_bytes(&d, 1, device, strlen(device));
    for (int i = 0; i < count; i++) {
        const struct op_node *n = &stats[i].node->op;
        char label[1024];

        snprintf(label, sizeof(label), "%s = %s()", n->name, n->def->name);
        put_node(&d,
                 &(struct span){ n->name, label, stats[i].start_ns + shift,
                                 stats[i].end_ns + shift, stats[i].thread });
    }
    put_device(o, number, &d);
    pb_out_done(&d);
}

void stats_put_transfers(struct pb_out *o, uint32_t number, const char *device,
                         const struct exchange_transfer *list, int64_t step_id)
{
    struct pb_out d;

    pb_out_init(&d);
    pb_put_bytes(&d, 1, device, strlen(device));
    for (; list; list = list->next) {
        char label[1024];

        if (list->step_id != step_id)
            continue;
        snprintf(label, sizeof(label), "[%zuB] %s", list->bytes, list->key);
        put_node(&d, &(struct span){ "RecvTensor", label, list->start_us * 1000,
                                     list->end_us * 1000, 0 });
    }
    put_device(o, number, &d);
    pb_out_done(&d);
}
