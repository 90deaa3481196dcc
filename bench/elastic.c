/*
 * A worker of bench/elastic.py: a server of its own and a client in the same
 * process, driven by lines on standard input.
 *
 *   bench_elastic SERVER_DEF GRAPH CONFIG [chief]
 *
 *   in:  step   runs one step            out:  step NS   when it was applied
 *        go     steps without end              rate NS COUNT   every 50 ms
 *        stop   until then                     error NS CODE   and tries again
 *        (end of input: ends)
 *
 * NS is the monotonic clock, which all processes of the machine share. After an
 * error the session is made anew; the chief then initialises the variables, the
 * others wait until it has.
 */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "muster/server.h"
#include "muster/session.h"

#define BUCKET_NS 50000000ull

struct file {
    void *data;
    size_t len;
};

struct driver {
    mst_server *server;
    mst_session *session;
    mst_runner *step;
    struct file graph, config;
    bool chief, going;
    unsigned long long bucket_ns;
    int count;
    char line[64];
    size_t line_len;
};

static unsigned long long now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (unsigned long long)t.tv_sec * 1000000000 +
           (unsigned long long)t.tv_nsec;
}

static void die(const char *what)
{
    fprintf(stderr, "bench_elastic: %s\n", what);
    exit(1);
}

static struct file load(const char *path)
{
    struct file f = { 0 };
    FILE *in = fopen(path, "rb");
    long len;

    if (!in || fseek(in, 0, SEEK_END) || (len = ftell(in)) < 0)
        die(path);
    rewind(in);
    f.len = (size_t)len;
    f.data = malloc(f.len + 1);
    if (fread(f.data, 1, f.len, in) != f.len)
        die(path);
    fclose(in);
    return f;
}

static void close_session(struct driver *d)
{
    mst_runner_free(d->step);
    mst_session_close(d->session);
    d->step = NULL;
    d->session = NULL;
}

static void failed(struct driver *d, const struct mst_error *e)
{
    printf("error %llu %d\n", now_ns(), (int)e->code);
    fprintf(stderr, "%d: %.300s\n", (int)e->code, e->message);
    close_session(d);
    if (e->code == MST_FAILED_PRECONDITION)
        usleep(5000); /* until the chief has initialised */
}

static bool open_session(struct driver *d)
{
    const char *step = "step", *init = "init";
    struct mst_error e;

    if (mst_session_open_in(d->server, d->graph.data, d->graph.len,
                            d->config.data, d->config.len, 10000, &d->session,
                            &e) ||
        (d->chief && mst_session_run(d->session, NULL, NULL, 0, NULL, NULL, 0,
                                     &init, 1, 10000, &e)) ||
        mst_runner_new(d->session, NULL, 0, NULL, 0, &step, 1, &d->step, &e)) {
        failed(d, &e);
        return false;
    }
    return true;
}

static bool one_step(struct driver *d)
{
    struct mst_error e;

    if (!d->session && !open_session(d))
        return false;
    if (mst_runner_run(d->step, NULL, NULL, 10000, &e)) {
        failed(d, &e);
        return false;
    }
    return true;
}

static void command(struct driver *d)
{
    if (!strcmp(d->line, "step")) {
        while (!one_step(d))
            ;
        printf("step %llu\n", now_ns());
    } else {
        d->going = !strcmp(d->line, "go");
        d->bucket_ns = now_ns();
        d->count = 0;
    }
}

/* False at the end of the input. */
static bool read_commands(struct driver *d)
{
    struct pollfd in = { .fd = 0, .events = POLLIN };
    char c;

    while (poll(&in, 1, d->going ? 0 : -1) > 0) {
        if (read(0, &c, 1) != 1)
            return false;
        if (c != '\n') {
            if (d->line_len < sizeof(d->line) - 1)
                d->line[d->line_len++] = c;
            continue;
        }
        d->line[d->line_len] = '\0';
        d->line_len = 0;
        command(d);
    }
    return true;
}

int main(int argc, char **argv)
{
    struct driver d = { 0 };
    struct mst_error e;
    struct file def;

    if (argc < 4)
        die("SERVER_DEF GRAPH CONFIG [chief]");
    setvbuf(stdout, NULL, _IOLBF, 0);
    def = load(argv[1]);
    d.graph = load(argv[2]);
    d.config = load(argv[3]);
    d.chief = argc > 4;
    if (mst_server_new(def.data, def.len, &d.server, &e) ||
        mst_server_start(d.server, &e))
        die(e.message);
    printf("ready\n");
    while (read_commands(&d)) {
        if (!d.going)
            continue;
        d.count += one_step(&d);
        if (now_ns() - d.bucket_ns >= BUCKET_NS) {
            d.bucket_ns = now_ns();
            printf("rate %llu %d\n", d.bucket_ns, d.count);
            d.count = 0;
        }
    }
    close_session(&d);
    mst_server_free(d.server);
    return 0;
}
