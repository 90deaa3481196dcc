/*
 * A journal as server/journal.c keeps it, on a disk that forgets.
 *
 * What is appended is volatile until it is synced. A crash keeps any beginning
 * of it, and may garble the end of that. A write may fail after any number of
 * bytes; then it is cut off again. Now and then the journal is written anew: a
 * crash leaves the old one or the new one, and so does a folder that cannot be
 * synced, which is why the new one is then cut to what the old one says.
 *
 * Writes that come while one is under way wait and go together. Each step is
 * one of the points at which a crash can come.
 */
#include <string.h>

#include "base/mem.h"
#include "cluster/record.h"
#include "sim.h"

bool sim_disk_busy(const struct sim_disk *d)
{
    return d->queued || d->phase != SIM_IDLE;
}

static void text_put(struct sim_text *t, const char *data, size_t len)
{
    if (t->len + len > t->room) {
        t->room = (t->len + len) * 2;
        t->data = mem_grow(t->data, t->room, 1);
    }
    memcpy(t->data + t->len, data, len);
    t->len += len;
}

void sim_disk_write(struct sim_ps *ps, const struct member *m, size_t count,
                    uint64_t ticket)
{
    struct sim_disk *d = &ps->disk;
    struct sim_write *q;

    if (d->queued == SIM_QUEUE)
        sim_fail(ps->world, "too many writes at once");
    q = &d->queue[d->queued++];
    q->ticket = ticket;
    sim_list_of(ps->world, &q->list, m, count);
    if (!q->list.count)
        sim_fail(ps->world, "ps %d writes nothing", ps->number);
    q->own = count == 1 && m->version.origin == ps->origin;
    ps->world->stats.writes++;
    SIM_TRACE(ps->world, "ps %d writes %s%s", ps->number,
              sim_text(&q->list.e[0]), count > 1 ? " and more" : "");
    for (struct sim_write *o = d->queue; o < q; o++)
        if (q->own && o->own && o - d->queue >= d->reported &&
            o->list.e[0].task == q->list.e[0].task)
            sim_fail(ps->world, "ps %d has two changes of task %d under way",
                     ps->number, m->task);
}

/* ---- writing ---- */

static void put_group(const struct sim_disk *d, struct record_text *text)
{
    for (int i = 0; i < d->group; i++)
        for (int k = 0; k < d->queue[i].list.count; k++) {
            struct member m = sim_member(&d->queue[i].list.e[k]);

            record_put(text, &m);
        }
}

/* The new file has what the old one had, and what is being written. */
static void begin_anew(struct sim_ps *ps)
{
    struct sim_disk *d = &ps->disk;
    struct record_text text = { 0 };
    struct record_report report;
    struct members all;
    struct status st;

    members_init(&all);
    if (d->exists && record_scan(d->file.data, d->file.len, &all, &report, &st))
        sim_fail(ps->world, "ps %d: %s", ps->number, st.msg);
    record_put_all(&text, &all);
    d->kept = text.len;
    put_group(d, &text);
    d->next.len = 0;
    text_put(&d->next, text.text, text.len);
    record_text_done(&text);
    members_done(&all);
    d->phase = SIM_ANEW;
    ps->world->stats.rewrites++;
    SIM_TRACE(ps->world, "ps %d writes its journal anew", ps->number);
}

static void begin_append(struct sim_ps *ps, bool fails)
{
    struct sim_disk *d = &ps->disk;
    struct record_text text = { 0 };

    put_group(d, &text);
    if (fails)
        text.len = (size_t)sim_rnd(ps->world, (int)text.len + 1);
    text_put(&d->file, text.text, text.len);
    record_text_done(&text);
    d->phase = fails ? SIM_TORN : SIM_APPENDED;
}

/* The new file is the file. */
static void swap(struct sim_disk *d)
{
    struct sim_text old = d->file;

    d->file = d->next;
    d->next = old;
    d->exists = true;
}

/* It is on the disk, whatever comes. */
static void settle(struct sim_ps *ps)
{
    struct sim_disk *d = &ps->disk;

    d->durable = d->file.len;
    d->failed = MST_OK;
    d->phase = SIM_REPORT;
    for (int i = 0; i < d->group; i++)
        for (int k = 0; k < d->queue[i].list.count; k++) {
            const struct sim_entry *e = &d->queue[i].list.e[k];

            if (!sim_newer(e->version, d->has[e->task]))
                continue;
            d->has[e->task] = e->version;
            d->address[e->task] = e->address;
        }
}

/* What was said to have failed must never be seen, until it is tried again. */
static void note_failed(struct sim_ps *ps, const struct sim_write *q)
{
    struct sim_world *w = ps->world;

    if (q->own && w->failed_count < SIM_FAILED)
        w->failed[w->failed_count++] = q->list.e[0];
}

static void forget_failed(struct sim_ps *ps, const struct sim_write *q)
{
    struct sim_world *w = ps->world;

    for (int i = 0; i < w->failed_count && q->own; i++)
        if (w->failed[i].task == q->list.e[0].task &&
            !member_version_compare(w->failed[i].version, q->list.e[0].version))
            w->failed[i--] = w->failed[--w->failed_count];
}

/* Those who wait hear of it one after the other. */
static void report(struct sim_ps *ps)
{
    struct sim_disk *d = &ps->disk;
    struct status st = STATUS_INIT;
    const struct sim_write *q = &d->queue[d->reported];
    uint64_t ticket = q->ticket;

    if (d->failed) {
        d->was_full = true;
        note_failed(ps, q);
        ps->world->stats.failed_writes++;
        (void)!status_set(&st, d->failed, "No space left on device");
        SIM_TRACE(ps->world, "ps %d could not write %s", ps->number,
                  sim_text(&q->list.e[0]));
    }
    d->reported++;
    membership_written(ps->ms, ticket, &st);
    if (d->reported < d->group)
        return;
    d->queued -= d->group;
    memmove(d->queue, d->queue + d->group,
            (size_t)d->queued * sizeof(*d->queue));
    d->group = d->reported = 0;
    d->phase = SIM_IDLE;
}

static void begin(struct sim_ps *ps)
{
    struct sim_disk *d = &ps->disk;
    struct sim_world *w = ps->world;
    bool fails = d->bad && sim_chance(w, 80);

    d->group = d->queued;
    for (int i = 0; i < d->group; i++)
        forget_failed(ps, &d->queue[i]);
    if (!d->exists || d->anew || sim_chance(w, 8)) {
        begin_anew(ps);
        if (fails) {
            d->failed = MST_RESOURCE_EXHAUSTED;
            d->phase = SIM_REPORT;
        }
        return;
    }
    begin_append(ps, fails);
}

void sim_disk_step(struct sim_ps *ps)
{
    struct sim_disk *d = &ps->disk;

    switch (d->phase) {
    case SIM_IDLE:
        begin(ps);
        break;
    case SIM_APPENDED:
        settle(ps);
        break;
    case SIM_TORN:
        d->file.len = d->durable;
        d->failed = MST_RESOURCE_EXHAUSTED;
        d->phase = SIM_REPORT;
        break;
    case SIM_ANEW:
        d->phase = SIM_RENAMED;
        break;
    case SIM_RENAMED:
        if (d->bad && sim_chance(ps->world, 50)) {
            d->phase = SIM_UNSURE;
            break;
        }
        swap(d);
        d->anew = false;
        settle(ps);
        break;
    case SIM_UNSURE:
        d->next.len = d->kept;
        if (sim_rnd(ps->world, 2))
            swap(d);
        d->durable = d->file.len;
        d->anew = true;
        d->failed = MST_RESOURCE_EXHAUSTED;
        d->phase = SIM_REPORT;
        break;
    case SIM_REPORT:
        report(ps);
        break;
    }
}

/* ---- crashing ---- */

static void tear(struct sim_ps *ps)
{
    struct sim_disk *d = &ps->disk;
    struct sim_world *w = ps->world;
    size_t open = d->file.len - d->durable, kept;

    if (!open)
        return;
    kept = (size_t)sim_rnd(w, (int)open + 1);
    if (sim_chance(w, 20))
        kept = open;
    d->file.len = d->durable + kept;
    w->stats.torn++;
    for (size_t n = (size_t)sim_rnd(w, 12); n && kept; n--)
        if (sim_chance(w, 30))
            d->file.data[d->durable + (size_t)sim_rnd(w, (int)kept)] =
                sim_chance(w, 30) ? '\0' : (char)sim_rnd(w, 256);
    SIM_TRACE(w, "ps %d: %zu of %zu bytes of its last write are there",
              ps->number, kept, open);
}

void sim_disk_crash(struct sim_ps *ps)
{
    struct sim_disk *d = &ps->disk;

    if (d->phase == SIM_APPENDED || d->phase == SIM_TORN)
        tear(ps);
    if ((d->phase == SIM_RENAMED || d->phase == SIM_UNSURE) &&
        sim_rnd(ps->world, 2))
        swap(d);
    d->phase = SIM_IDLE;
    d->queued = d->group = d->reported = 0;
}

void sim_disk_mount(struct sim_ps *ps, struct members *into)
{
    struct sim_disk *d = &ps->disk;
    struct record_report report;
    struct status st;

    if (!d->exists)
        return;
    if (record_scan(d->file.data, d->file.len, into, &report, &st))
        sim_fail(ps->world, "ps %d's journal: %s", ps->number, st.msg);
    d->durable = d->file.len;
    d->anew = report.good < d->file.len || report.damaged;
    if (!report.damaged && sim_rnd(ps->world, 2)) {
        d->file.len = d->durable = report.good;
        d->anew = false;
    }
    SIM_TRACE(ps->world,
              "ps %d reads %d entries, %d lines damaged, %zu of %zu "
              "bytes good",
              ps->number, report.entries, report.damaged, report.good,
              d->file.len);
}
