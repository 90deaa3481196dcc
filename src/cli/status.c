/*
 * `muster status`: who is in a running job and how each task is, once or again
 * and again.
 *
 * On a terminal --watch draws over what it drew before; elsewhere it prints one
 * table, or one line of JSON, after the other. It is drawn anew when the table
 * of members changes, which the server tells, and every two seconds for the
 * rates. A server that is away is waited for.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "api/cluster_watch.h"
#include "base/clock.h"
#include "base/mem.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/status_print.h"
#include "wire/control.h"

#define TIMEOUT_S 10
#define REDRAW_MS 2000

struct flags {
    char *ps_hosts;
    int timeout_s;
    bool all, json, watch, help;
};

#define ROW(name, kind, field, value, help)                                    \
    {                                                                          \
        name, kind, offsetof(struct flags, field), value, help                 \
    }

static const struct option table[] = {
    ROW("ps_hosts", OPTION_TEXT, ps_hosts, "HOSTS",
        "whom to ask, in place of the word: host:port,host:port; the first "
        "that answers"),
    ROW("watch", OPTION_SWITCH, watch, NULL,
        "go on, and show every change when it comes"),
    ROW("all", OPTION_SWITCH, all, NULL, "also the members that were removed"),
    ROW("json", OPTION_SWITCH, json, NULL,
        "all that is known, for programs; with --watch one line a time"),
    ROW("timeout", OPTION_INT, timeout_s, "SECONDS",
        "how long to wait for the answer; 10 if not given"),
    ROW("help", OPTION_HELP, help, NULL, "this text"),
    ROW("target", OPTION_TEXT, ps_hosts, "HOSTS", NULL),
    ROW("ps", OPTION_TEXT, ps_hosts, "HOSTS", NULL),
    { 0 },
};

static void print_help(FILE *out)
{
    fputs("Usage: muster status [options] grpc://HOST:PORT\n\n"
          "Shows who is in a running job, as the server that is asked sees it, "
          "and how each\ntask is. Any task of muster's can be asked; a "
          "parameter server knows best.\n\n",
          out);
    options_help(table, out);
}

/* To a terminal, over what is there; the rest of the screen is cleared. */
static void print(const struct flags *f, const struct status_view *v)
{
    bool terminal = isatty(STDOUT_FILENO);
    const char *no_color = getenv("NO_COLOR");

    if (f->watch && terminal)
        fputs("\033[H\033[2J", stdout);
    if (f->json)
        status_print_json(v, f->watch, stdout);
    else
        status_print_table(v, terminal && !(no_color && *no_color), stdout);
    if (f->watch && !terminal && !f->json)
        putchar('\n');
    fflush(stdout);
}

static enum mst_code show(const struct flags *f, const struct targets *targets,
                          const char **asked, struct status *st)
{
    struct status_view v;
    enum mst_code rc;

    rc = status_view_load(&v, targets, f->all, (uint64_t)f->timeout_s * 1000,
                          st);
    if (!rc) {
        *asked = v.target;
        print(f, &v);
    }
    status_view_done(&v);
    return rc;
}

/* Until something is new, or for a while. False if the stream is lost. */
static bool wait_for_news(struct cluster_watch *w)
{
    uint64_t end_ms = clock_ms() + REDRAW_MS;
    Muster__WatchResponse *r;
    struct status st;
    bool is_new;

    do {
        if (cluster_watch_next(w, end_ms, &r, &st))
            return false;
        is_new = !r || r->n_members;
        control_free(r);
    } while (!is_new);
    return true;
}

/* Its first message is what was shown just before. NULL if it is lost. */
static struct cluster_watch *watch_open(const char *asked)
{
    struct cluster_watch *w = NULL;
    Muster__WatchResponse *first;
    struct status st;

    if (cluster_watch_open(asked, 0, 0, &w, &st) ||
        cluster_watch_next(w, clock_ms() + REDRAW_MS, &first, &st)) {
        cluster_watch_close(w);
        return NULL;
    }
    control_free(first);
    return w;
}

static int watch(const struct flags *f, const struct targets *targets,
                 const char *asked)
{
    struct cluster_watch *w = NULL;
    struct status st = STATUS_INIT;

    while (!ferror(stdout)) {
        if (!w)
            w = watch_open(asked);
        if (!w || !wait_for_news(w)) {
            cluster_watch_close(w);
            w = NULL;
            usleep(REDRAW_MS / 2 * 1000);
        }
        if (show(f, targets, &asked, &st))
            fprintf(stderr, "muster status: %s\n", st.msg);
    }
    cluster_watch_close(w);
    return EXIT_FAILURE;
}

static enum mst_code parse(struct flags *f, struct targets *targets, int argc,
                           char **argv, struct status *st)
{
    struct option_words words = { 0 };
    enum mst_code rc;

    rc = options_parse_words(table, argc, argv, f, &words, st);
    if (!rc && !f->help) {
        if (f->ps_hosts)
            rc = targets_add(targets, f->ps_hosts, st);
        for (int i = 0; i < words.count && !rc; i++)
            rc = targets_add(targets, words.at[i], st);
        if (!rc && !targets->count)
            rc = status_set(st, MST_INVALID_ARGUMENT,
                            "Whom to ask? Give grpc://host:port of any task");
    }
    option_words_done(&words);
    return rc;
}

int status_main(int argc, char **argv)
{
    struct flags f = { .timeout_s = TIMEOUT_S };
    struct status st = STATUS_INIT;
    struct targets targets = { 0 };
    const char *asked;
    int rc = EXIT_SUCCESS;

    if (parse(&f, &targets, argc, argv, &st)) {
        fprintf(stderr, "muster status: %s\n", st.msg);
        rc = EXIT_USAGE;
    } else if (f.help) {
        print_help(stdout);
    } else if (show(&f, &targets, &asked, &st)) {
        fprintf(stderr, "muster status: %s\n", st.msg);
        rc = EXIT_FAILURE;
    } else if (f.watch) {
        rc = watch(&f, &targets, asked);
    }
    mem_free(f.ps_hosts);
    targets_done(&targets);
    return rc;
}
