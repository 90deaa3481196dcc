#include "kernel/reader.h"

#include <stdlib.h>

#include "base/mem.h"

_Static_assert(sizeof(struct reader_turn) <= OP_SCRATCH,
               "scratch is too small");

static void reader_free(struct object *o)
{
    struct reader *r = CONTAINER(o, struct reader, o);

    CHECK(!r->line.first && !r->busy);
    r->config.kind->close(r);
    pthread_mutex_destroy(&r->lock);
    free(r->row);
    text_done(&r->bytes);
    mem_free(r->work);
    mem_free(r->name);
    mem_free(r);
}

const struct object_kind reader_object_kind = {
    "N10tensorflow15ReaderInterfaceE", reader_free
};

struct reader *reader_new(const char *name, const struct reader_config *g)
{
    struct reader *r = MEM_NEW(struct reader);

    object_init(&r->o, &reader_object_kind);
    pthread_mutex_init(&r->lock, NULL);
    r->name = mem_str(name);
    r->config = *g;
    r->work = mem_str("");
    return r;
}

void reader_reset(struct reader *r)
{
    r->config.kind->close(r);
    r->started = r->finished = r->produced = 0;
    r->work[0] = '\0';
    r->work_len = 0;
}

/* ---- turns ---- */

static void turn_job(struct pool_job *job)
{
    struct reader_turn *t = CONTAINER(job, struct reader_turn, job);

    t->fn(t);
}

static void turn_run(struct reader_turn *t)
{
    struct pool *pool = t->c->node->env ? t->c->node->env->pool : NULL;

    if (t->pool && pool) {
        t->job.run = turn_job;
        pool_post(pool, &t->job);
    } else {
        t->fn(t);
    }
}

static void on_cancel(struct cancel_item *item)
{
    struct reader_turn *t = CONTAINER(item, struct reader_turn, wait.item);

    wait_give_up(&t->wait, &t->r->lock, "Read operation was cancelled");
}

enum mst_code reader_turn(struct reader *r, struct op_ctx *c,
                          void (*fn)(struct reader_turn *t), bool pool)
{
    struct reader_turn *t = c->scratch;
    enum mst_code rc = OP_LATER;
    bool mine;

    *t = (struct reader_turn){
        .wait = { .c = c, .at = &r->o }, .r = r, .c = c, .fn = fn, .pool = pool
    };
    pthread_mutex_lock(&r->lock);
    mine = !r->busy;
    if (mine)
        r->busy = true;
    else if (!wait_join(&r->line, &t->wait, on_cancel))
        rc = op_fail(c, MST_CANCELLED, "Read operation was cancelled");
    pthread_mutex_unlock(&r->lock);
    if (mine)
        turn_run(t);
    else if (rc != OP_LATER)
        object_unref(&r->o);
    return rc;
}

void reader_turn_again(struct reader_turn *t, void (*fn)(struct reader_turn *))
{
    t->fn = fn;
    turn_run(t);
}

void reader_turn_end(struct reader_turn *t, enum mst_code code)
{
    struct reader *r = t->r;
    struct op_ctx *c = t->c;
    struct reader_turn *next = NULL;
    struct wait_line taken = { 0 };

    pthread_mutex_lock(&r->lock);
    if (r->line.first) {
        next = CONTAINER(r->line.first, struct reader_turn, wait);
        wait_leave(&next->wait, MST_OK, &taken);
    } else {
        r->busy = false;
    }
    pthread_mutex_unlock(&r->lock);
    /* The next turn has a reference of its own. */
    if (next) {
        cancel_remove(next->c->step->cancel, &next->wait.item);
        turn_run(next);
    }
    object_unref(&r->o);
    op_finish(c, code);
}
