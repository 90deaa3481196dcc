/*
 * Runs of the simulation (sim.h): a while in which everything goes wrong, then
 * everything is mended, and all has to come to one end.
 *
 *   membership_sim --runs=N --first=SEED   N runs from that seed on
 *   membership_sim --seed=SEED --trace     one run, told line by line
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "sim.h"

static struct sim_world world;

/* A mistake that the code itself finds (CHECK) needs its seed, too. */
static void on_abort(int signal_number)
{
    char text[96];
    int len = snprintf(text, sizeof(text), "membership_sim: seed %llu\n",
                       (unsigned long long)world.seed);

    (void)!write(2, text, (size_t)len);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

/* ---- a run ---- */

static void begin(struct sim_world *w, uint64_t seed)
{
    struct sim_stats stats = w->stats;
    bool trace = w->trace;

    w->seed = seed;
    w->rng = seed * 0x2545f4914f6cdd1dull + 1;
    w->quiet = false;
    w->call_count = w->failed_count = w->steps = 0;
    w->tampered = w->used = 0;
    memset(w->flagged, 0, sizeof(w->flagged));
    memset(w->cut, 0, sizeof(w->cut));
    memset(w->exchanges, 0, sizeof(w->exchanges));
    w->stats = stats;
    w->trace = trace;
    w->count = 1 + sim_rnd(w, SIM_PS);
    w->loss = sim_rnd(w, 3) ? sim_rnd(w, 30) : 0;
    w->twice = sim_rnd(w, 3) ? sim_rnd(w, 30) : 0;
    w->late = sim_rnd(w, 3) ? sim_rnd(w, 20) : 0;
    w->crash = sim_rnd(w, 4) ? sim_rnd(w, 80) : 0;
    w->bad_disk = sim_rnd(w, 3) ? 0 : sim_rnd(w, 20);
    w->strangers = !sim_rnd(w, 25);
    w->gentle = !sim_rnd(w, 3);
    sim_net_init(w);
    for (int i = 0; i < w->count; i++) {
        struct sim_ps *ps = &w->ps[i];
        struct sim_disk *d = &ps->disk;

        ps->world = w;
        ps->number = i;
        ps->life = 0;
        ps->foreign = i && !sim_rnd(w, 12);
        memset(ps->seen, 0, sizeof(ps->seen));
        memset(d->has, 0, sizeof(d->has));
        d->exists = d->bad = d->was_full = d->anew = false;
        d->file.len = d->next.len = d->durable = 0;
        d->failed = MST_OK;
        d->phase = SIM_IDLE;
        d->queued = d->group = d->reported = 0;
        sim_ps_start(ps);
    }
}

static void end(struct sim_world *w)
{
    for (int i = 0; i < w->count; i++) {
        membership_free(w->ps[i].ms);
        w->ps[i].ms = NULL;
    }
    w->stats.runs++;
    w->stats.steps += (uint64_t)w->steps;
}

static void check_all(struct sim_world *w)
{
    for (int i = 0; i < w->count; i++)
        if (w->ps[i].ms)
            sim_check_table(&w->ps[i]);
}

/* Something that nobody waits for. */
static void happen(struct sim_world *w)
{
    struct sim_ps *ps = &w->ps[sim_rnd(w, w->count)];
    int n = sim_rnd(w, 100), other = sim_rnd(w, w->count);

    if (n < 45) {
        sim_client_step(w);
    } else if (n < 65) {
        if (ps->ms && !ps->foreign)
            membership_tick(ps->ms);
    } else if (!ps->ms) {
        sim_ps_start(ps);
    } else if (n < 85) {
        if (sim_chance(w, w->crash))
            sim_ps_crash(ps);
        else if (sim_chance(w, w->bad_disk))
            ps->disk.bad = !ps->disk.bad;
    } else if (n < 90) {
        w->cut[ps->number][other] = sim_chance(w, 50);
        w->cut[other][ps->number] = sim_chance(w, 50);
    } else if (n < 94) {
        memset(w->cut, 0, sizeof(w->cut));
    } else if (n == 99 && w->strangers && ps->number) {
        sim_ps_crash(ps);
        ps->foreign = !ps->foreign;
        sim_ps_start(ps);
    }
}

/* What is under way; false when nothing is. */
static bool proceed(struct sim_world *w)
{
    int busy[SIM_PS], n = 0, at;

    for (int i = 0; i < w->count; i++)
        if (w->ps[i].ms && sim_disk_busy(&w->ps[i].disk))
            busy[n++] = i;
    if (!n && !w->packet_count)
        return false;
    at = sim_rnd(w, n + w->packet_count);
    if (at >= n) {
        sim_net_step(w);
        return true;
    }
    sim_disk_step(&w->ps[busy[at]]);
    /* Above all, in the middle of a write. */
    if (sim_chance(w, w->crash / 4))
        sim_ps_crash(&w->ps[busy[at]]);
    return true;
}

static void step(struct sim_world *w)
{
    w->steps++;
    if (sim_rnd(w, 100) < 25 || !proceed(w))
        happen(w);
    check_all(w);
}

/* Nothing new is asked: all that is under way ends. */
static void drain(struct sim_world *w)
{
    for (int n = 0; proceed(w); n++) {
        w->steps++;
        check_all(w);
        if (n > 20000)
            sim_fail(w, "it does not come to rest");
    }
}

static void tick_all(struct sim_world *w)
{
    for (int i = 0; i < w->count; i++)
        if (!w->ps[i].foreign)
            membership_tick(w->ps[i].ms);
    drain(w);
}

static bool all_equal(const struct sim_world *w)
{
    uint64_t digest = membership_table(w->ps[0].ms)->digest;

    for (int i = 1; i < w->count; i++)
        if (!w->ps[i].foreign &&
            membership_table(w->ps[i].ms)->digest != digest)
            return false;
    return true;
}

/* Two ticks are enough: at the first each hears of all, at the second of what
 * others heard meanwhile. */
static void mend(struct sim_world *w)
{
    SIM_TRACE(w, "everything is mended");
    w->quiet = true;
    memset(w->cut, 0, sizeof(w->cut));
    for (int i = 0; i < w->count; i++) {
        w->ps[i].disk.bad = false;
        /* What it was told before it became one may be nowhere else. */
        if (w->strangers && w->ps[i].foreign) {
            if (w->ps[i].ms)
                sim_ps_crash(&w->ps[i]);
            w->ps[i].foreign = false;
        }
        if (!w->ps[i].ms)
            sim_ps_start(&w->ps[i]);
    }
    drain(w);
    tick_all(w);
    if (!all_equal(w))
        tick_all(w);
}

/* All is well: what must work does, and what was said again changes nothing. */
static void use(struct sim_world *w)
{
    int address = sim_rnd(w, SIM_ADDRESSES), task = sim_rnd(w, 7);
    const struct members *t = membership_table(w->ps[0].ms);
    const struct member *m = members_at(t, sim_address(address));
    int had = m ? m->task : -1;
    uint64_t used = w->used;
    struct sim_call *c;

    c = sim_client_call(w, SIM_JOIN, 0, 0, address);
    drain(w);
    if (!c->answers || c->code)
        sim_fail(w, "a join was refused although all is well");
    if (had >= 0 ? c->got != had : used >> c->got & 1)
        sim_fail(w, "a join got %d (it had %d)", c->got, had);
    m = members_get(t, "worker", task);
    if (m && m->version.epoch) {
        uint64_t digest = t->digest;

        c = sim_client_call(w, m->address ? SIM_ADD : SIM_REMOVE, 0, task,
                            sim_entry_of(w, m).address);
        drain(w);
        if (!c->answers || c->code || c->changed || t->digest != digest)
            sim_fail(w, "what was said again was not taken for that");
    }
}

/* Equal tables have nothing to tell. */
static void check_idle(struct sim_world *w)
{
    uint64_t messages = w->stats.messages;
    int askers = 0, asked = 0;

    for (int i = 0; i < w->count; i++)
        askers += !w->ps[i].foreign;
    tick_all(w);
    asked = (int)(w->stats.messages - messages);
    if (asked > askers * (w->count - 1))
        sim_fail(w, "%d messages between ps that are equal", asked);
}

static void start_all_again(struct sim_world *w)
{
    for (int i = 0; i < w->count; i++) {
        sim_ps_crash(&w->ps[i]);
        sim_ps_start(&w->ps[i]);
    }
    drain(w);
    tick_all(w);
}

static void run(struct sim_world *w, uint64_t seed)
{
    begin(w, seed);
    for (int n = 20 + sim_rnd(w, 100); n; n--)
        step(w);
    mend(w);
    sim_check_equal(w);
    sim_check_calls(w);
    if (!sim_rnd(w, 4)) {
        use(w);
        check_idle(w);
        sim_check_equal(w);
        sim_check_calls(w);
    }
    if (!sim_rnd(w, 8)) {
        start_all_again(w);
        sim_check_equal(w);
        sim_check_calls(w);
    }
    end(w);
}

/* ---- the program ---- */

static void print_stats(const struct sim_stats *s, double seconds)
{
    printf("%llu runs, %llu steps (%.0f runs/s)\n"
           "  %llu calls, %llu acknowledged, %llu of them joins, %llu aborted\n"
           "  %llu messages, %llu lost, %llu twice\n"
           "  %llu crashes, %llu of them in a write; %llu writes, %llu failed, "
           "%llu journals written anew\n",
           (unsigned long long)s->runs, (unsigned long long)s->steps,
           (double)s->runs / seconds, (unsigned long long)s->calls,
           (unsigned long long)s->acknowledged, (unsigned long long)s->joins,
           (unsigned long long)s->aborted, (unsigned long long)s->messages,
           (unsigned long long)s->lost, (unsigned long long)s->twice,
           (unsigned long long)s->crashes, (unsigned long long)s->torn,
           (unsigned long long)s->writes, (unsigned long long)s->failed_writes,
           (unsigned long long)s->rewrites);
}

static bool option(const char *arg, const char *name, uint64_t *ret)
{
    size_t len = strlen(name);
    char *rest;

    if (strncmp(arg, name, len) || arg[len] != '=' || !arg[len + 1])
        return false;
    *ret = strtoull(arg + len + 1, &rest, 0);
    return !*rest;
}

/* Of the processor: others may want it, too. */
static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
    uint64_t runs = 10000, first = 1;
    double start = now();

    signal(SIGABRT, on_abort);
    for (int i = 1; i < argc; i++) {
        if (option(argv[i], "--seed", &first))
            runs = 1;
        else if (!strcmp(argv[i], "--trace"))
            world.trace = true;
        else if (!option(argv[i], "--runs", &runs) &&
                 !option(argv[i], "--first", &first)) {
            fprintf(stderr, "usage: membership_sim [--runs=N] [--first=SEED] "
                            "[--seed=SEED] [--trace]\n");
            return 2;
        }
    }
    for (uint64_t i = 0; i < runs; i++)
        run(&world, first + i);
    print_stats(&world.stats, now() - start);
    for (int i = 0; i < SIM_PS; i++) {
        mem_free(world.ps[i].disk.file.data);
        mem_free(world.ps[i].disk.next.data);
    }
    return 0;
}
