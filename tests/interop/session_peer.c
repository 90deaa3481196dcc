/*
 * A program on the public C API: a session on any master.
 *
 *   session_peer TARGET GRAPH [@OP] [NAME=NUMBER...] [TENSOR...]
 *
 * Runs one step by mst_session_run() and the same one three times by a runner;
 * prints the first number of every fetch, a line a step. Feeds are vectors of
 * one float.
 */
#include <muster/muster.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MANY 16

static const char *feeds[MANY], *fetches[MANY], *targets[MANY];
static mst_tensor *values[MANY];
static int feed_count, fetch_count, target_count;

static int complain(const char *what, const struct mst_error *error)
{
    printf("%s: %s: %s\n", what, mst_code_name(error->code), error->message);
    return 1;
}

static char *read_file(const char *path, size_t *ret_len)
{
    FILE *f = fopen(path, "rb");
    char *data = malloc(16 << 20);

    *ret_len = f ? fread(data, 1, 16 << 20, f) : 0;
    if (f)
        fclose(f);
    return data;
}

static void take_feed(char *word, char *mark)
{
    struct mst_error error;
    int64_t one = 1;

    *mark = 0;
    feeds[feed_count] = word;
    if (!mst_tensor_new(MST_FLOAT, 1, &one, &values[feed_count], &error))
        *(float *)mst_tensor_data(values[feed_count++]) = (float)atof(mark + 1);
}

static void print_results(mst_tensor **results)
{
    for (int i = 0; i < fetch_count; i++) {
        printf("%g%c", (double)*(float *)mst_tensor_data(results[i]),
               i + 1 < fetch_count ? ' ' : '\n');
        mst_tensor_free(results[i]);
    }
    fflush(stdout);
}

static int run(mst_session *s)
{
    const mst_tensor *const *in = (const mst_tensor *const *)values;
    mst_tensor *results[MANY];
    struct mst_error error;
    mst_runner *r;
    int rc = 0;

    if (mst_session_run(s, feeds, in, feed_count, fetches, results, fetch_count,
                        targets, target_count, 20000, &error))
        return complain("run", &error);
    print_results(results);
    if (mst_runner_new(s, feeds, feed_count, fetches, fetch_count, targets,
                       target_count, &r, &error))
        return complain("runner", &error);
    for (int i = 0; i < 3 && !rc; i++) {
        if (mst_runner_run(r, in, results, 20000, &error))
            rc = complain("step", &error);
        else
            print_results(results);
    }
    mst_runner_free(r);
    return rc;
}

int main(int argc, char **argv)
{
    struct mst_error error;
    mst_session *s;
    size_t len;
    char *graph;
    int rc;

    if (argc < 3)
        return 2;
    for (int i = 3; i < argc && i < MANY; i++) {
        char *mark = strchr(argv[i], '=');

        if (mark)
            take_feed(argv[i], mark);
        else if (*argv[i] == '@')
            targets[target_count++] = argv[i] + 1;
        else
            fetches[fetch_count++] = argv[i];
    }
    graph = read_file(argv[2], &len);
    if (mst_session_open(argv[1], graph, len, NULL, 0, 30000, &s, &error))
        return complain("open", &error);
    rc = run(s);
    mst_session_close(s);
    for (int i = 0; i < feed_count; i++)
        mst_tensor_free(values[i]);
    free(graph);
    return rc;
}
