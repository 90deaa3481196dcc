/*
 * Event { 1 wall_time: double, 2 step: int64, 3 file_version, 4 graph_def,
 * 5 summary, 7 session_log }; Summary { 1 value { 1 tag, 2 simple_value } };
 * SessionLog { 1 status, 2 checkpoint_path }.
 */
#include "store/event.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

static void begin(struct event_writer *w, int64_t step)
{
    double now = (double)clock_wall_us() / 1e6;

    w->event.len = 0;
    pb_put_tag(&w->event, 1, PB_FIXED64);
    pb_put_raw(&w->event, &now, sizeof(now));
    if (step)
        pb_put_uint(&w->event, 2, (uint64_t)step);
}

/* An event of one field more. */
static enum mst_code add(struct event_writer *w, int64_t step, uint32_t field,
                         const void *data, size_t len, struct status *st)
{
    begin(w, step);
    pb_put_bytes(&w->event, field, data, len);
    return record_writer_add(&w->records, w->event.data, w->event.len, st);
}

enum mst_code event_writer_open(struct event_writer *w, const char *dir,
                                const char *suffix, struct status *st)
{
    static const char version[] = "brain.Event:2";
    char host[256] = "localhost", *path;
    enum mst_code rc;

    pb_out_init(&w->event);
    pb_out_init(&w->summary);
    pb_out_init(&w->value);
    (void)gethostname(host, sizeof(host) - 1);
    path = mem_printf("%s/events.out.tfevents.%010llu.%s%s", dir,
                      (unsigned long long)(clock_wall_us() / 1000000), host,
                      suffix ? suffix : "");
    rc = record_writer_open(&w->records, path, st);
    mem_free(path);
    if (rc)
        return rc;
    rc = add(w, 0, 3, version, sizeof(version) - 1, st);
    if (!rc)
        rc = record_writer_flush(&w->records, st);
    if (rc) {
        struct status ignored;

        (void)!event_writer_close(w, &ignored);
    }
    return rc;
}

enum mst_code event_writer_scalars(struct event_writer *w, int64_t step,
                                   const struct event_scalar *scalars,
                                   int count, struct status *st)
{
    w->summary.len = 0;
    for (int i = 0; i < count; i++) {
        w->value.len = 0;
        pb_put_bytes(&w->value, 1, scalars[i].tag, strlen(scalars[i].tag));
        pb_put_tag(&w->value, 2, PB_FIXED32);
        pb_put_raw(&w->value, &scalars[i].value, sizeof(float));
        pb_put_bytes(&w->summary, 1, w->value.data, w->value.len);
    }
    return add(w, step, 5, w->summary.data, w->summary.len, st);
}

enum mst_code event_writer_summary(struct event_writer *w, int64_t step,
                                   const void *summary, size_t len,
                                   struct status *st)
{
    return add(w, step, 5, summary, len, st);
}

enum mst_code event_writer_graph(struct event_writer *w, int64_t step,
                                 const void *graph, size_t len,
                                 struct status *st)
{
    return add(w, step, 4, graph, len, st);
}

enum mst_code event_writer_session(struct event_writer *w, int64_t step,
                                   enum event_session what,
                                   const char *checkpoint_path,
                                   struct status *st)
{
    w->value.len = 0;
    pb_put_uint(&w->value, 1, (uint64_t)what);
    if (checkpoint_path)
        pb_put_bytes(&w->value, 2, checkpoint_path, strlen(checkpoint_path));
    return add(w, step, 7, w->value.data, w->value.len, st);
}

enum mst_code event_writer_flush(struct event_writer *w, struct status *st)
{
    return record_writer_flush(&w->records, st);
}

enum mst_code event_writer_close(struct event_writer *w, struct status *st)
{
    enum mst_code rc = record_writer_close(&w->records, st);

    pb_out_done(&w->event);
    pb_out_done(&w->summary);
    pb_out_done(&w->value);
    return rc;
}
