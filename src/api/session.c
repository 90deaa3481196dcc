/*
 * Sessions of the public API: those of client/, with tensors and errors as the
 * API has them.
 */
#include "muster/session.h"

#include <stdio.h>

#include "api/error.h"
#include "api/server.h"
#include "api/tensor.h"
#include "base/mem.h"
#include "client/runner.h"

#define CLOSE_MS 10000
#define FEW      16

struct mst_session {
    struct client_session *session;
};

struct mst_runner {
    struct client_runner *runner;
    int feed_count, fetch_count;
};

static uint64_t ms(int timeout_ms)
{
    return (uint64_t)MAX(timeout_ms, 0);
}

/* ---- life ---- */

static enum mst_code open_session(const char *target, struct server *server,
                                  const struct client_session_opts *opts,
                                  mst_session **ret, struct mst_error *error)
{
    struct client_session *s;
    struct status st = STATUS_INIT;

    if (client_session_new(target, server, &s, &st))
        return error_tell(error, &st);
    if (client_session_open(s, opts, &st)) {
        client_session_close(s, 0);
        return error_tell(error, &st);
    }
    *ret = MEM_NEW(mst_session);
    (*ret)->session = s;
    return MST_OK;
}

enum mst_code mst_session_open(const char *target, const void *graph,
                               size_t graph_len, const void *config,
                               size_t config_len, int timeout_ms,
                               mst_session **ret, struct mst_error *error)
{
    return open_session(target, NULL,
                        &(struct client_session_opts){ graph, graph_len, config,
                                                       config_len,
                                                       ms(timeout_ms) },
                        ret, error);
}

enum mst_code mst_session_open_in(mst_server *server, const void *graph,
                                  size_t graph_len, const void *config,
                                  size_t config_len, int timeout_ms,
                                  mst_session **ret, struct mst_error *error)
{
    return open_session(NULL, server_of_api(server),
                        &(struct client_session_opts){ graph, graph_len, config,
                                                       config_len,
                                                       ms(timeout_ms) },
                        ret, error);
}

void mst_session_close(mst_session *session)
{
    if (!session)
        return;
    client_session_close(session->session, CLOSE_MS);
    mem_free(session);
}

void mst_session_cancel(mst_session *session)
{
    client_session_cancel(session->session);
}

enum mst_code mst_session_extend(mst_session *session, const void *graph,
                                 size_t graph_len, int timeout_ms,
                                 struct mst_error *error)
{
    struct status st = STATUS_INIT;

    if (client_session_extend(session->session, graph, graph_len,
                              ms(timeout_ms), &st))
        return error_tell(error, &st);
    return MST_OK;
}

/* ---- steps ---- */

/* Tensors of the API as those of ours and back, around one run. */
struct values {
    struct tensor few_in[FEW], few_out[FEW];
    struct tensor *in, *out;
};

static void values_init(struct values *v, const mst_tensor *const *feeds,
                        int feed_count, int fetch_count)
{
    v->in = feed_count > FEW ? mem_array((size_t)feed_count, sizeof(*v->in))
                             : v->few_in;
    v->out = fetch_count > FEW ? mem_array((size_t)fetch_count, sizeof(*v->out))
                               : v->few_out;
    for (int i = 0; i < feed_count; i++)
        v->in[i] = feeds[i]->t; /* the caller's reference */
}

static void values_done(struct values *v, bool good, mst_tensor **fetches,
                        int fetch_count)
{
    for (int i = 0; good && i < fetch_count; i++)
        fetches[i] = tensor_to_api(&v->out[i]);
    if (v->in != v->few_in)
        mem_free(v->in);
    if (v->out != v->few_out)
        mem_free(v->out);
}

enum mst_code mst_session_run(mst_session *session,
                              const char *const *feed_names,
                              const mst_tensor *const *feeds, int feed_count,
                              const char *const *fetch_names,
                              mst_tensor **fetches, int fetch_count,
                              const char *const *targets, int target_count,
                              int timeout_ms, struct mst_error *error)
{
    struct client_want want = { feed_names, fetch_names, targets,
                                feed_count, fetch_count, target_count };
    struct status st = STATUS_INIT;
    struct values v;
    enum mst_code rc;

    values_init(&v, feeds, feed_count, fetch_count);
    rc = client_session_run(session->session, &want, v.in, v.out,
                            ms(timeout_ms), &st);
    values_done(&v, !rc, fetches, fetch_count);
    return rc ? error_tell(error, &st) : MST_OK;
}

enum mst_code mst_runner_new(mst_session *session,
                             const char *const *feed_names, int feed_count,
                             const char *const *fetch_names, int fetch_count,
                             const char *const *targets, int target_count,
                             mst_runner **ret, struct mst_error *error)
{
    struct client_want want = { feed_names, fetch_names, targets,
                                feed_count, fetch_count, target_count };
    struct status st = STATUS_INIT;
    struct client_runner *runner;

    if (client_runner_new(session->session, &want, 0, &runner, &st))
        return error_tell(error, &st);
    *ret = MEM_NEW(mst_runner);
    **ret = (mst_runner){ runner, feed_count, fetch_count };
    return MST_OK;
}

enum mst_code mst_runner_run(mst_runner *runner, const mst_tensor *const *feeds,
                             mst_tensor **fetches, int timeout_ms,
                             struct mst_error *error)
{
    struct status st = STATUS_INIT;
    struct values v;
    enum mst_code rc;

    values_init(&v, feeds, runner->feed_count, runner->fetch_count);
    rc = client_runner_run(runner->runner, v.in, v.out, ms(timeout_ms), &st);
    values_done(&v, !rc, fetches, runner->fetch_count);
    return rc ? error_tell(error, &st) : MST_OK;
}

void mst_runner_free(mst_runner *runner)
{
    if (!runner)
        return;
    client_runner_free(runner->runner);
    mem_free(runner);
}

/* ---- the rest ---- */

struct wanted_device {
    int i, count;
    char *name;
    size_t len;
};

static void take_device(void *arg, const char *name)
{
    struct wanted_device *w = arg;

    if (w->count++ == w->i)
        snprintf(w->name, w->len, "%s", name);
}

int mst_session_device(mst_session *session, int i, char *name, size_t len,
                       struct mst_error *error)
{
    struct wanted_device w = { i, 0, name, len };
    struct status st = STATUS_INIT;

    if (client_session_devices(session->session, take_device, &w, 0, &st)) {
        (void)error_tell(error, &st);
        return -1;
    }
    return w.count;
}

enum mst_code mst_session_reset(const char *target,
                                const char *const *containers, int count,
                                int timeout_ms, struct mst_error *error)
{
    struct status st = STATUS_INIT;

    if (client_session_reset(target, containers, count, ms(timeout_ms), &st))
        return error_tell(error, &st);
    return MST_OK;
}
