#include "server/root_error.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define RULE "====================="

void root_errors_done(struct root_errors *e)
{
    mem_free(e->list);
}

/* Whether `known` is this error, of whichever task. */
static bool repeats(const struct status *known, const struct status *st)
{
    return known->code == st->code &&
           !strcmp(strchr(known->msg, '\n') + 1, st->msg);
}

void root_errors_add(struct root_errors *e, const char *task,
                     const struct status *st)
{
    struct status *new;

    for (int i = 0; i < e->count; i++)
        if (repeats(&e->list[i], st))
            return;
    new = MEM_PUSH(e->list, e->count, e->room);
    status_set(new, st->code, "From %s:\n%s", task, st->msg);
    new->worker_restarted = st->worker_restarted;
}

/* By "CODE: text", the last one first. */
static int compare(const void *a, const void *b)
{
    const struct status *x = *(const struct status *const *)a;
    const struct status *y = *(const struct status *const *)b;
    int order = strcmp(status_name(y->code), status_name(x->code));

    return order ? order : strcmp(y->msg, x->msg);
}

void root_errors_join(const struct root_errors *e, struct status *ret)
{
    const struct status **sorted;

    if (e->count == 1)
        status_copy(ret, &e->list[0]);
    if (e->count < 2)
        return;
    sorted = mem_array((size_t)e->count, sizeof(*sorted));
    for (int i = 0; i < e->count; i++)
        sorted[i] = &e->list[i];
    qsort(sorted, (size_t)e->count, sizeof(*sorted), compare);
    status_set(ret, sorted[0]->code, "\n" RULE);
    for (int i = 0; i < e->count; i++) {
        status_append(ret, "\n%s: %s", status_name(sorted[i]->code),
                      sorted[i]->msg);
        ret->worker_restarted |= sorted[i]->worker_restarted;
    }
    status_append(ret, "\n" RULE "\n");
    mem_free(sorted);
}
