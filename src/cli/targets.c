#include "cli/targets.h"

#include <string.h>

#include "api/cluster_call.h"
#include "base/mem.h"
#include "cluster/spec_parse.h"

enum mst_code targets_add(struct targets *t, const char *list,
                          struct status *st)
{
    char *text = spec_parse_squeeze(list), *rest = text, *item;
    enum mst_code rc = MST_OK;

    while (!rc && (item = strsep(&rest, ","))) {
        char *address;

        if (!*item)
            continue;
        rc = cluster_call_address(item, &address, st);
        if (!rc)
            *MEM_PUSH(t->at, t->count, t->room) = address;
    }
    mem_free(text);
    return rc;
}

void targets_done(struct targets *t)
{
    for (int i = 0; i < t->count; i++)
        mem_free(t->at[i]);
    mem_free(t->at);
    *t = (struct targets){ 0 };
}

bool targets_is_one(const char *word)
{
    return !strncmp(word, "grpc:", strlen("grpc:"));
}

bool targets_try_next(enum mst_code code)
{
    return code == MST_UNAVAILABLE || code == MST_DEADLINE_EXCEEDED ||
           code == MST_UNIMPLEMENTED;
}
