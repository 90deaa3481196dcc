/*
 * Prints where a graph's nodes are put over some ps tasks, for worker 0: name,
 * tab, device.
 *
 *   placer_peer FILE PS_TASKS
 */
#include <stdio.h>
#include <stdlib.h>

#include "client/placer.h"

static void print_nodes(const struct pb_out *def)
{
    struct pb_in in = pb_in(def->data, def->len);
    struct pb_field f, part;

    while (pb_next(&in, &f)) {
        struct pb_in node = pb_in(f.data, f.len);
        struct pb_field name = { 0 }, device = { 0 };

        if (f.number != 1)
            continue;
        while (pb_next(&node, &part)) {
            if (part.number == 1)
                name = part;
            if (part.number == 4)
                device = part;
        }
        printf("%.*s\t%.*s\n", (int)name.len, (const char *)name.data,
               (int)device.len, (const char *)device.data);
    }
}

int main(int argc, char **argv)
{
    struct status st = STATUS_INIT;
    struct meta_graph g;
    struct pb_out def;

    if (argc != 3)
        return 2;
    pb_out_init(&def);
    if (meta_graph_read(&g, argv[1], &st) ||
        placer_place(&g,
                     &(struct placer_opts){ .job = "worker",
                                            .ps_job = "ps",
                                            .ps_tasks = atoi(argv[2]),
                                            .workers = 1 },
                     &def, &st)) {
        fprintf(stderr, "%s\n", st.msg);
        return 1;
    }
    print_nodes(&def);
    pb_out_done(&def);
    meta_graph_done(&g);
    return 0;
}
