#include "kernel/wait.h"

static void append(struct wait_line *line, struct wait *w)
{
    w->prev = line->last;
    w->next = NULL;
    if (line->last)
        line->last->next = w;
    else
        line->first = w;
    line->last = w;
}

static void take_out(struct wait_line *line, struct wait *w)
{
    if (w->prev)
        w->prev->next = w->next;
    else
        line->first = w->next;
    if (w->next)
        w->next->prev = w->prev;
    else
        line->last = w->prev;
}

bool wait_join(struct wait_line *line, struct wait *w,
               void (*cancelled)(struct cancel_item *))
{
    /* In line before the canceller can see it; it waits for the lock. */
    if (!cancel_add(w->c->step->cancel, &w->item, cancelled))
        return false;
    w->line = line;
    append(line, w);
    return true;
}

void wait_leave(struct wait *w, enum mst_code code, struct wait_line *ended)
{
    take_out(w->line, w);
    w->line = NULL;
    w->code = code;
    append(ended, w);
}

void wait_give_up(struct wait *w, pthread_mutex_t *lock, const char *why)
{
    struct wait_line ended = { 0 };

    pthread_mutex_lock(lock);
    if (w->line)
        wait_leave(w, op_fail(w->c, MST_CANCELLED, "%s", why), &ended);
    pthread_mutex_unlock(lock);
    wait_end(&ended);
}

void wait_end(struct wait_line *ended)
{
    struct wait *w, *next;

    for (w = ended->first; w; w = next) {
        struct op_ctx *c = w->c;
        struct object *at = w->at;
        enum mst_code code;

        next = w->next;
        /* A canceller that comes too late finds the wait out of its line. */
        cancel_remove(c->step->cancel, &w->item);
        code = w->complete ? w->complete(w) : w->code;
        object_unref(at);
        op_finish(c, code);
    }
    ended->first = ended->last = NULL;
}
