/*
 * The body of all queues: who may go on, in what order, and what happens to
 * those who may not. See the header for the invariants.
 *
 * An op first tries by itself, and joins its line only if it has to wait.
 * After each change both lines are flushed until neither head can go on.
 */
#include "kernel/queue.h"

#include "base/mem.h"
#include "base/rng.h"

/* An op that wants something of a queue, in line or about to be. */
struct request {
    struct wait wait;
    enum queue_wish wish;
    int64_t total, left; /* rows */
    struct tensor *kept; /* rows taken so far, before they become a batch */
    int64_t kept_count;
};

_Static_assert(sizeof(struct request) <= OP_SCRATCH, "scratch is too small");

enum progress { STUCK, SOME, ALL };

static void clear_row(const struct queue *q, struct tensor *row)
{
    for (int i = 0; i < q->config.columns; i++)
        tensor_unref(&row[i]);
}

static void queue_free(struct object *o)
{
    struct queue *q = CONTAINER(o, struct queue, o);

    CHECK(!q->puts.first && !q->takes.first);
    for (size_t i = 0; i < q->count; i++)
        clear_row(q, queue_row(q, i));
    pthread_mutex_destroy(&q->lock);
    mem_free(q->rows);
    mem_free(q->spare);
    mem_free((void *)q->config.types);
    mem_free((void *)q->config.shapes);
    mem_free(q->name);
    mem_free(q);
}

const struct object_kind queue_kind = { "queue", queue_free };

struct queue *queue_new(const char *name, const struct queue_config *config)
{
    struct queue *q = MEM_NEW(struct queue);

    object_init(&q->o, &queue_kind);
    pthread_mutex_init(&q->lock, NULL);
    q->name = mem_str(name);
    q->config = *config;
    q->spare = mem_array((size_t)config->columns, sizeof(*q->spare));
    q->config.types = mem_copy(config->types, (size_t)config->columns *
                                                  sizeof(*config->types));
    q->config.shapes = mem_copy(config->shapes, (size_t)config->shape_count *
                                                    sizeof(*config->shapes));
    if (config->seed || config->seed2)
        q->random = philox_words(
            philox_seeded((uint64_t)config->seed, (uint64_t)config->seed2));
    else
        q->random = philox_words(philox_seeded(rng_u64(), rng_u64()));
    return q;
}

struct tensor *queue_row(const struct queue *q, size_t i)
{
    return q->rows +
           ((q->head + i) & (q->room - 1)) * (size_t)q->config.columns;
}

/* ---- putting ---- */

/* Row `at` of the batches in the op's inputs, or the inputs themselves. */
static enum mst_code read_row(struct request *r, int64_t at, int columns,
                              struct tensor *row)
{
    struct op_value *in = r->wait.c->in + 1;

    for (int i = 0; i < columns; i++) {
        const struct tensor *t = &in[i].t;
        enum mst_code rc;

        if (r->wish == QUEUE_PUT) {
            tensor_move(&row[i], &in[i].t);
            continue;
        }
        /* A copy: a view would keep the whole batch in memory. */
        rc = tensor_new(&row[i], (enum dtype)t->dtype, t->ndim - 1, t->dims + 1,
                        r->wait.c->st);
        if (rc) {
            while (i-- > 0)
                tensor_unref(&row[i]);
            return rc;
        }
        tensor_copy_elems(&row[i], 0, t, at * row[i].count, row[i].count);
    }
    return MST_OK;
}

static enum progress put_rows(struct queue *q, struct request *r)
{
    enum progress p = STUCK;

    if (q->closed) {
        r->wait.code = op_fail(r->wait.c, MST_CANCELLED, "%s '%s' is closed.",
                               q->config.order->text_name, q->name);
        return ALL;
    }
    while ((int64_t)q->count < q->config.capacity) {
        r->wait.code =
            read_row(r, r->total - r->left, q->config.columns, q->spare);
        if (r->wait.code)
            return ALL;
        q->config.order->put(q, q->spare);
        p = SOME;
        if (--r->left == 0)
            return ALL;
    }
    return p;
}

static enum progress close_queue(struct queue *q, struct request *r)
{
    if (q->closed)
        r->wait.code = op_fail(r->wait.c, MST_CANCELLED,
                               "Queue '%s' is already closed.", q->name);
    q->closed = true;
    return ALL;
}

/* ---- taking ---- */

static enum mst_code too_few(const struct queue *q, struct request *r,
                             const char *name, int64_t size)
{
    return op_fail(r->wait.c, MST_OUT_OF_RANGE,
                   "%s '%s' is closed and has insufficient elements (requested "
                   "%lld, current size %lld)",
                   name, q->name, (long long)r->left, (long long)size);
}

/* How many rows may be taken: a shuffling queue keeps some to mix. */
static int64_t available(const struct queue *q)
{
    return (int64_t)q->count - (q->closed ? 0 : q->config.min_after_dequeue);
}

static enum progress take_row(struct queue *q, struct request *r)
{
    if (q->closed && !q->count) {
        r->wait.code = too_few(q, r, q->config.order->text_name, 0);
        return ALL;
    }
    if (available(q) <= 0)
        return STUCK;
    q->config.order->take(q, q->spare);
    for (int i = 0; i < q->config.columns; i++)
        tensor_move(op_out(r->wait.c, i), &q->spare[i]);
    return ALL;
}

static struct tensor *kept_row(const struct queue *q, const struct request *r,
                               int64_t i)
{
    return r->kept + i * q->config.columns;
}

static void give_back(struct queue *q, struct request *r)
{
    while (r->kept_count > 0)
        q->config.order->give_back(q, kept_row(q, r, --r->kept_count));
    mem_free(r->kept);
    r->kept = NULL;
    r->left = r->total;
}

/* Copies an element into a place that is larger in some dimensions. */
static void copy_padded(struct tensor *batch, int64_t at,
                        const struct tensor *row)
{
    int last = row->ndim - 1;
    int64_t run = last < 0 ? 1 : row->dims[last];
    int64_t index[TENSOR_RANK_MAX] = { 0 };

    if (row->count * batch->dims[0] == batch->count)
        run = row->count; /* nothing to pad */
    for (int64_t from = 0; from < row->count; from += run) {
        int64_t to = at;

        for (int d = 0; d < row->ndim; d++)
            to = to * batch->dims[d + 1] + index[d];
        tensor_copy_elems(batch, to, row, from, run);
        for (int d = last - 1; d >= 0 && ++index[d] == row->dims[d]; d--)
            index[d] = 0;
    }
}

/* The rows' own shape, or the largest in each dimension. */
static struct shape batch_shape(const struct queue *q, const struct request *r,
                                int column)
{
    struct shape s = { .ndim = r->kept[column].ndim + 1 };

    s.dims[0] = r->kept_count;
    for (int64_t i = 0; i < r->kept_count; i++) {
        const struct tensor *t = kept_row(q, r, i) + column;

        for (int d = 0; d < t->ndim; d++)
            s.dims[d + 1] = MAX(s.dims[d + 1], t->dims[d]);
    }
    return s;
}

/* The batch that the rows make. */
static enum mst_code join_rows(struct queue *q, struct request *r)
{
    struct op_ctx *c = r->wait.c;

    for (int i = 0; i < q->config.columns; i++) {
        struct shape s = batch_shape(q, r, i);
        enum mst_code rc =
            s.ndim > TENSOR_RANK_MAX
                ? op_fail(c, MST_UNIMPLEMENTED, "A batch of rank %d", s.ndim)
                : op_out_new(c, i, s.ndim, s.dims);

        if (rc)
            return rc;
        if (q->config.order->partial_shapes)
            tensor_zero(op_out(c, i));
        for (int64_t k = 0; k < r->kept_count; k++)
            copy_padded(op_out(c, i), k, kept_row(q, r, k) + i);
    }
    return MST_OK;
}

/* Once the rows are there they are the op's own: this needs no lock. */
static enum mst_code end_batch(struct wait *w)
{
    struct request *r = CONTAINER(w, struct request, wait);
    struct queue *q = CONTAINER(w->at, struct queue, o);
    enum mst_code rc = w->code ? w->code : join_rows(q, r);

    while (r->kept_count > 0)
        clear_row(q, kept_row(q, r, --r->kept_count));
    mem_free(r->kept);
    return rc;
}

/* The queue has been closed: what is there is all that will ever be. */
static bool cut_short(struct queue *q, struct request *r)
{
    int64_t size = (int64_t)q->count, left = r->left;

    give_back(q, r);
    if (r->wish == QUEUE_TAKES_UP_TO && q->count) {
        r->total = r->left = (int64_t)q->count;
        return false;
    }
    r->left = left;
    r->wait.code = too_few(q, r, q->config.order->name, size);
    return true;
}

static void keep_row(struct queue *q, struct request *r)
{
    size_t row = (size_t)q->config.columns * sizeof(*r->kept);

    /* Room grows as rows come: a peer may ask for any number of them. */
    if (!(r->kept_count & (r->kept_count - 1)))
        r->kept = mem_grow(r->kept, (size_t)MAX(r->kept_count * 2, 1), row);
    q->config.order->take(q, kept_row(q, r, r->kept_count++));
}

static enum progress take_rows(struct queue *q, struct request *r)
{
    enum progress p = STUCK;

    if (q->closed && (int64_t)q->count < r->left && cut_short(q, r))
        return ALL;
    if (q->config.order->whole_batch && available(q) < r->left)
        return STUCK;
    for (int64_t n = available(q); n > 0; n--) {
        keep_row(q, r);
        p = SOME;
        if (--r->left == 0)
            return ALL;
    }
    return p;
}

/* ---- waiting ---- */

static enum progress attempt(struct queue *q, struct request *r)
{
    switch (r->wish) {
    case QUEUE_PUT:
    case QUEUE_PUTS:
        return put_rows(q, r);
    case QUEUE_CLOSE:
        return close_queue(q, r);
    case QUEUE_TAKE:
        return take_row(q, r);
    default:
        return take_rows(q, r);
    }
}

static bool advance(struct queue *q, struct wait_line *line,
                    struct wait_line *ended)
{
    bool moved = false;

    while (line->first) {
        struct request *r = CONTAINER(line->first, struct request, wait);
        enum progress p = attempt(q, r);

        moved |= p != STUCK;
        if (p != ALL)
            break;
        wait_leave(&r->wait, r->wait.code, ended);
    }
    return moved;
}

static void flush(struct queue *q, struct wait_line *ended)
{
    bool moved;

    do {
        moved = advance(q, &q->puts, ended);
        moved |= advance(q, &q->takes, ended);
    } while (moved);
}

static enum mst_code cancelled(struct queue *q, struct request *r)
{
    bool takes = r->wish >= QUEUE_TAKE;

    if (takes)
        give_back(q, r);
    return op_fail(r->wait.c, MST_CANCELLED, "%s operation was cancelled",
                   takes ? "Dequeue" : "Enqueue");
}

static void on_cancel(struct cancel_item *item)
{
    struct request *r = CONTAINER(item, struct request, wait.item);
    struct queue *q = CONTAINER(r->wait.at, struct queue, o);
    struct wait_line ended = { 0 };

    pthread_mutex_lock(&q->lock);
    if (r->wait.line) {
        wait_leave(&r->wait, cancelled(q, r), &ended);
        flush(q, &ended);
    }
    pthread_mutex_unlock(&q->lock);
    wait_end(&ended);
}

enum mst_code queue_run(struct queue *q, struct op_ctx *c, enum queue_wish wish,
                        int64_t count)
{
    struct wait_line *line = wish >= QUEUE_TAKE ? &q->takes : &q->puts;
    struct wait_line ended = { 0 };
    struct request *r = c->scratch;
    enum mst_code rc = OP_LATER;
    enum progress p;

    *r = (struct request){ .wait = { .c = c, .at = &q->o },
                           .wish = wish,
                           .total = count,
                           .left = count };
    if (wish >= QUEUE_TAKES)
        r->wait.complete = end_batch;
    pthread_mutex_lock(&q->lock);
    p = line->first ? STUCK : attempt(q, r);
    if (p == ALL)
        rc = r->wait.code;
    else if (!wait_join(line, &r->wait, on_cancel))
        rc = cancelled(q, r);
    if (p != STUCK)
        flush(q, &ended);
    pthread_mutex_unlock(&q->lock);
    /* If the op waits, r and q may be gone from here on. */
    wait_end(&ended);
    if (rc == OP_LATER)
        return rc;
    if (r->wait.complete && p == ALL)
        rc = r->wait.complete(&r->wait);
    object_unref(&q->o);
    return rc;
}

void queue_put_now(struct queue *q, struct tensor *row)
{
    struct wait_line ended = { 0 };

    pthread_mutex_lock(&q->lock);
    q->config.order->put(q, row);
    flush(q, &ended);
    pthread_mutex_unlock(&q->lock);
    wait_end(&ended);
}

void queue_close_now(struct queue *q)
{
    struct wait_line ended = { 0 };

    pthread_mutex_lock(&q->lock);
    q->closed = true;
    while (q->puts.first) {
        struct request *r = CONTAINER(q->puts.first, struct request, wait);

        wait_leave(&r->wait, cancelled(q, r), &ended);
    }
    flush(q, &ended);
    pthread_mutex_unlock(&q->lock);
    wait_end(&ended);
}

int64_t queue_size(struct queue *q)
{
    int64_t size;

    pthread_mutex_lock(&q->lock);
    size = (int64_t)q->count;
    pthread_mutex_unlock(&q->lock);
    return size;
}

bool queue_is_closed(struct queue *q)
{
    bool closed;

    pthread_mutex_lock(&q->lock);
    closed = q->closed;
    pthread_mutex_unlock(&q->lock);
    return closed;
}
