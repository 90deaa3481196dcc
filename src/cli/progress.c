#include "cli/progress.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"

#define LIVE_NS 100000000ull
#define LINE_NS 2000000000ull

void progress_init(struct progress *p, bool json, bool quiet, int log_steps,
                   int64_t goal)
{
    *p = (struct progress){ .quiet = quiet,
                            .log_steps = log_steps,
                            .goal = goal,
                            .first = NAN,
                            .last = NAN };
    if (json)
        p->style = PROGRESS_JSON;
    else if (isatty(STDOUT_FILENO) && !log_steps)
        p->style = PROGRESS_LIVE;
}

void progress_begin(struct progress *p)
{
    if (!p->begin_ns)
        p->begin_ns = p->shown_ns = clock_ns();
}

static bool is_due(const struct progress *p, uint64_t now)
{
    if (p->quiet)
        return false;
    if (p->log_steps)
        return p->steps % p->log_steps == 0;
    return now - p->shown_ns >= (p->style == PROGRESS_LIVE ? LIVE_NS : LINE_NS);
}

/* A number as JSON has it. */
static void put_number(double value)
{
    if (isfinite(value))
        printf("%.9g", value);
    else
        fputs("null", stdout);
}

static void show_json(int64_t global_step, double rate,
                      const struct progress_number *n, int count)
{
    printf("{\"step\": %lld, \"steps_per_s\": ", (long long)global_step);
    put_number(rate);
    for (int i = 0; i < count; i++) {
        printf(", \"%s\": ", n[i].name);
        put_number(n[i].value);
    }
    puts("}");
}

static const char *colour(const struct progress *p, const char *code)
{
    const char *no = getenv("NO_COLOR");

    return p->style == PROGRESS_LIVE && !(no && *no) ? code : "";
}

static void show_line(struct progress *p, int64_t global_step, double rate,
                      const struct progress_number *n, int count)
{
    if (p->style == PROGRESS_LIVE)
        fputs("\r\033[K", stdout);
    printf("step %lld", (long long)global_step);
    if (p->goal)
        printf("/%lld", (long long)p->goal);
    for (int i = 0; i < count; i++)
        printf("  %s %s%.4f%s", n[i].name, colour(p, "\033[1m"), n[i].value,
               colour(p, "\033[0m"));
    printf("  %.0f steps/s", rate);
    if (p->style != PROGRESS_LIVE)
        fputc('\n', stdout);
    p->live = p->style == PROGRESS_LIVE;
}

void progress_step(struct progress *p, int64_t global_step,
                   const struct progress_number *numbers, int count)
{
    uint64_t now = clock_ns();
    double rate;

    p->end_ns = now;
    if (!p->steps++ && count)
        p->first = numbers[0].value;
    if (count)
        p->last = numbers[0].value;
    if (!is_due(p, now))
        return;
    rate = (double)(p->steps - p->shown_steps) * 1e9 /
           (double)MAX(now - p->shown_ns, 1);
    p->shown_ns = now;
    p->shown_steps = p->steps;
    if (p->style == PROGRESS_JSON)
        show_json(global_step, rate, numbers, count);
    else
        show_line(p, global_step, rate, numbers, count);
    fflush(stdout);
}

static void end_line(struct progress *p)
{
    if (p->live)
        fputc('\n', stdout);
    p->live = false;
    fflush(stdout);
}

void progress_say(struct progress *p, const char *text)
{
    end_line(p);
    fprintf(stderr, "muster train: %s\n", text);
}

static void end_json(const struct progress *p, int64_t global_step,
                     double seconds, const struct progress_number *n, int count)
{
    printf("{\"done\": true, \"steps\": %lld, \"global_step\": %lld, "
           "\"seconds\": %.3f, \"steps_per_s\": ",
           (long long)p->steps, (long long)global_step, seconds);
    put_number(seconds > 0 ? (double)p->steps / seconds : NAN);
    fputs(", \"first\": ", stdout);
    put_number(p->first);
    fputs(", \"last\": ", stdout);
    put_number(p->last);
    for (int i = 0; i < count; i++) {
        printf(", \"%s\": ", n[i].name);
        put_number(n[i].value);
    }
    puts("}");
}

void progress_end(struct progress *p, int64_t global_step,
                  const struct progress_number *evals, int count)
{
    double seconds = p->steps ? (double)(p->end_ns - p->begin_ns) / 1e9 : 0;

    end_line(p);
    if (p->style == PROGRESS_JSON) {
        end_json(p, global_step, seconds, evals, count);
    } else {
        printf("%lld steps in %.1f s", (long long)p->steps, seconds);
        if (seconds > 0)
            printf(" (%.0f steps/s)", (double)p->steps / seconds);
        printf(", global step %lld", (long long)global_step);
        if (!isnan(p->last))
            printf(", loss %.4f -> %.4f", p->first, p->last);
        for (int i = 0; i < count; i++)
            printf(", %s %.4f", evals[i].name, evals[i].value);
        fputc('\n', stdout);
    }
    fflush(stdout);
}
