/*
 * A C program that changes who is in a running job: adds a worker, sees it in
 * the list, waits for the change that another makes, and removes the worker.
 *
 * Usage: elastic_peer TARGET INDEX ADDRESS
 * Prints a line a step; ends with 1 at the first that fails.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "muster/muster.h"

static struct mst_error error;

static void need(enum mst_code code, const char *what)
{
    if (!code)
        return;
    printf("%s: %s: %s\n", what, mst_code_name(code), error.message);
    exit(1);
}

static void print(const struct mst_members *members, const char *what)
{
    printf("%s:", what);
    for (size_t i = 0; i < members->count; i++)
        if (!strcmp(members->at[i].job, "worker"))
            printf(" %d=%s", members->at[i].task,
                   members->at[i].address ? members->at[i].address : "removed");
    putchar('\n');
    fflush(stdout);
}

int main(int argc, char **argv)
{
    struct mst_members *first, *next;
    struct mst_change change;
    int task;

    if (argc != 4)
        return 2;
    task = atoi(argv[2]);
    need(mst_cluster_watch(argv[1], NULL, 10000, &first, &error), "watch");
    need(mst_cluster_add_worker(argv[1], task, argv[3], NULL, &change, &error),
         "add");
    printf("added: %d %u %u\n", change.changed, change.reached, change.missed);
    need(mst_cluster_watch(argv[1], first, 10000, &next, &error), "watch");
    print(next, "seen");
    mst_members_free(first);
    need(mst_cluster_watch(argv[1], next, 60000, &first, &error), "watch");
    print(first, "seen");
    mst_members_free(first);
    mst_members_free(next);
    need(mst_cluster_remove_worker(argv[1], task, NULL, &change, &error),
         "remove");
    need(mst_cluster_list(argv[1], 0, &first, &error), "list");
    print(first, "list");
    mst_members_free(first);
    return 0;
}
