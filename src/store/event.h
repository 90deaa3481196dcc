/*
 * Event files, which TensorBoard shows: a TFRecord file of Event messages.
 *
 * Threads: one; events are small, and whoever has them has a lock anyway.
 */
#ifndef STORE_EVENT_H
#define STORE_EVENT_H

#include "store/record.h"

struct event_writer {
    struct record_writer records;
    struct pb_out event, summary, value; /* kept between events */
};

struct event_scalar {
    const char *tag;
    float value;
};

/* Makes DIR/events.out.tfevents.<seconds>.<host name><suffix>, and the
 * directories that it needs. */
enum mst_code event_writer_open(struct event_writer *w, const char *dir,
                                const char *suffix, struct status *st) MUST_USE;
/* One summary with all of these. */
enum mst_code event_writer_scalars(struct event_writer *w, int64_t step,
                                   const struct event_scalar *scalars,
                                   int count, struct status *st) MUST_USE;
/* A serialized Summary message, as the ops of summaries make it. */
enum mst_code event_writer_summary(struct event_writer *w, int64_t step,
                                   const void *summary, size_t len,
                                   struct status *st) MUST_USE;
/* A serialized GraphDef. */
enum mst_code event_writer_graph(struct event_writer *w, int64_t step,
                                 const void *graph, size_t len,
                                 struct status *st) MUST_USE;

enum event_session { EVENT_START = 1, EVENT_STOP = 2, EVENT_CHECKPOINT = 3 };
/* checkpoint_path may be NULL. */
enum mst_code event_writer_session(struct event_writer *w, int64_t step,
                                   enum event_session what,
                                   const char *checkpoint_path,
                                   struct status *st) MUST_USE;
enum mst_code event_writer_flush(struct event_writer *w,
                                 struct status *st) MUST_USE;
enum mst_code event_writer_close(struct event_writer *w,
                                 struct status *st) MUST_USE;

#endif
