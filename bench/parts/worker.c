/*
 * A worker of ours for the benches: a server and a client in one process, whose
 * steps are function calls on its own master. `worker.py` is the same with
 * TensorFlow; both are driven by lines on standard input and answer each with a
 * line of JSON.
 *
 *   bench_worker SERVER_DEF GRAPH CONFIG       (files of messages)
 *
 *   in:  SECONDS OP...   steps that run these ops, one at least, for so long
 *   out: {"steps": N, "begin": S, "seconds": S, "p50_us": ..., "p99_us": ...,
 *         "p999_us": ..., "max_us": ...}
 *
 * It begins at a time of the monotonic clock, which all processes share.
 * Ops that come for the first time are run once before the time begins, so that
 * they are compiled; a request for no time is that one run.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "muster/server.h"
#include "muster/session.h"

#define OPS_MAX     256
#define STEPS_MAX   64
#define SAMPLES_MAX (1 << 21)

struct file {
    void *data;
    size_t len;
};

/* A step by the line that asked for it first. */
struct step {
    char *ops;
    mst_runner *runner;
};

static mst_session *session;
static struct step steps[STEPS_MAX];
static int step_count;
static uint64_t *samples;

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

_Noreturn static void die(const char *what)
{
    fprintf(stderr, "bench_worker: %s\n", what);
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

static void run(mst_runner *runner)
{
    struct mst_error e;

    if (mst_runner_run(runner, NULL, NULL, 0, &e))
        die(e.message);
}

static mst_runner *runner_of(const char *ops)
{
    const char *targets[OPS_MAX];
    struct mst_error e;
    struct step *s;
    char *words;
    int count = 0;

    for (int i = 0; i < step_count; i++) {
        if (!strcmp(steps[i].ops, ops))
            return steps[i].runner;
    }
    if (step_count == STEPS_MAX)
        die("too many steps");
    s = &steps[step_count++];
    s->ops = strdup(ops);
    words = strdup(ops);
    for (char *w = strtok(words, " "); w; w = strtok(NULL, " ")) {
        if (count == OPS_MAX)
            die("too many ops");
        targets[count++] = w;
    }
    if (mst_runner_new(session, NULL, 0, NULL, 0, targets, count, &s->runner,
                       &e))
        die(e.message);
    free(words);
    run(s->runner);
    return s->runner;
}

static int by_time(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Of n samples in order. */
static double quantile_us(size_t n, double q)
{
    return (double)samples[(size_t)((double)(n - 1) * q)] / 1e3;
}

static void request(char *line)
{
    double seconds = strtod(line, &line);
    mst_runner *runner = runner_of(line + strspn(line, " "));
    uint64_t begin = now_ns(), last = begin;
    uint64_t end = begin + (uint64_t)(seconds * 1e9);
    size_t n = 0, kept;

    while (seconds > 0 && (last < end || !n)) {
        uint64_t now;

        run(runner);
        now = now_ns();
        samples[n++ % SAMPLES_MAX] = now - last;
        last = now;
    }
    kept = n < SAMPLES_MAX ? n : SAMPLES_MAX;
    qsort(samples, kept, sizeof(samples[0]), by_time);
    if (!kept)
        samples[kept++] = 0;
    printf("{\"steps\": %zu, \"begin\": %.6f, \"seconds\": %.6f, "
           "\"p50_us\": %.2f, \"p99_us\": %.2f, \"p999_us\": %.2f, "
           "\"max_us\": %.2f}\n",
           n, (double)begin / 1e9, (double)(last - begin) / 1e9,
           quantile_us(kept, 0.5), quantile_us(kept, 0.99),
           quantile_us(kept, 0.999), quantile_us(kept, 1));
}

int main(int argc, char **argv)
{
    struct file def, graph, config;
    struct mst_error e;
    mst_server *server;
    size_t size = 0;
    char *line = NULL;
    ssize_t len;

    if (argc != 4)
        die("SERVER_DEF GRAPH CONFIG");
    def = load(argv[1]);
    graph = load(argv[2]);
    config = load(argv[3]);
    samples = malloc(SAMPLES_MAX * sizeof(samples[0]));
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (mst_server_new(def.data, def.len, &server, &e) ||
        mst_server_start(server, &e) ||
        mst_session_open_in(server, graph.data, graph.len, config.data,
                            config.len, 60000, &session, &e))
        die(e.message);
    printf("{\"ready\": true}\n");
    while ((len = getline(&line, &size, stdin)) > 0) {
        line[strcspn(line, "\n")] = '\0';
        request(line);
    }
    free(line);
    while (step_count)
        mst_runner_free(steps[--step_count].runner);
    mst_session_close(session);
    mst_server_free(server);
    return 0;
}
