/*
 * The transport as a program of its own, for tests that set it beside another
 * gRPC: a server or a client that does as it is told on its standard input and
 * says what happened on its standard output, one line each.
 *
 *   rpc_peer serve           says `port N`, then `started METHOD`,
 *                            `cancelled METHOD`, `done METHOD`
 *       drain GRACE_MS       stops, says `stopped`, ends
 *   rpc_peer call TARGET
 *       call ID PATH SIZE DEADLINE_MS WAIT PLACE
 *       stream ID PATH SIZE DEADLINE_MS
 *                            says `message ID LEN CRC` for each
 *       cancel ID            says `result ID CODE LEN CRC DETAILS MESSAGE`
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/mem.h"
#include "rpc/channel.h"
#include "rpc/server.h"

static void say(const char *what, const char *more)
{
    printf("%s %s\n", what, more);
    fflush(stdout);
}

/* Byte i of every payload. */
static void fill(uint8_t *data, size_t len)
{
    for (size_t i = 0; i < len; i++)
        data[i] = (uint8_t)(i * 7 + (i >> 8));
}

static void start_echo(struct rpc_call *call, void *arg)
{
    const struct rpc_data *rq = rpc_call_request(call);
    struct rpc_msg msg;

    rpc_msg_init(&msg);
    rpc_msg_ref(&msg, rq->data, rq->len, rq->owner);
    rpc_call_reply(call, &msg);
}

/* The request is a code, a blank, and the message. */
static void start_fail(struct rpc_call *call, void *arg)
{
    const struct rpc_data *rq = rpc_call_request(call);
    char *text = mem_strn((const char *)rq->data, rq->len), *msg;
    struct status st;

    st.code = (enum mst_code)strtol(text, &msg, 10);
    status_set(&st, st.code, "%s", *msg ? msg + 1 : "");
    rpc_call_fail(call, &st, "\0\1\2\377", 4);
    mem_free(text);
}

static void on_cancel(void *arg)
{
    struct status st;

    say("cancelled", rpc_call_path(arg));
    status_set(&st, MST_CANCELLED, "nobody listens");
    rpc_call_fail(arg, &st, NULL, 0);
}

static void on_done(void *arg)
{
    say("done", rpc_call_path(arg));
}

#define PARKED_MAX 10000
static struct rpc_call *parked[PARKED_MAX];
static int parked_count;

static void start_park(struct rpc_call *call, void *arg)
{
    rpc_call_hooks(call, on_cancel, on_done, call);
    CHECK(parked_count < PARKED_MAX);
    parked[parked_count++] = call;
    say("started", rpc_call_path(call));
}

/* Answers every call that is parked and not cancelled, and itself. */
static void start_release(struct rpc_call *call, void *arg)
{
    while (parked_count)
        if (!rpc_call_cancelled(parked[--parked_count]))
            start_echo(parked[parked_count], NULL);
    start_echo(call, NULL);
}

static void start_about(struct rpc_call *call, void *arg)
{
    char text[200];
    struct rpc_msg msg;
    int n =
        snprintf(text, sizeof(text), "%lld %s",
                 (long long)rpc_call_deadline_ms(call), rpc_call_peer(call));

    rpc_msg_init(&msg);
    rpc_msg_copy(&msg, text, (size_t)n);
    rpc_call_reply(call, &msg);
}

/* The request says how many messages of which size, and the code of the end. */
struct count {
    struct rpc_call *call;
    unsigned long left, size, sent;
    int code;
};

static void count_next(void *arg)
{
    struct count *c = arg;
    struct rpc_msg msg;
    struct status st;

    if (c->left) {
        c->left--;
        c->sent++;
        rpc_msg_init(&msg);
        fill(rpc_msg_reserve(&msg, c->size), c->size);
        rpc_call_send(c->call, &msg);
    } else if (c->code) {
        status_set(&st, (enum mst_code)c->code, "no more");
        rpc_call_fail(c->call, &st, "\0\1\2\377", 4);
    } else {
        rpc_call_end(c->call);
    }
}

static void count_cancelled(void *arg)
{
    on_cancel(((struct count *)arg)->call);
}

static void count_done(void *arg)
{
    char text[32];

    snprintf(text, sizeof(text), "%lu", ((struct count *)arg)->sent);
    say("sent", text);
    mem_free(arg);
}

static void start_count(struct rpc_call *call, void *arg)
{
    const struct rpc_data *rq = rpc_call_request(call);
    char *text = mem_strn((const char *)rq->data, rq->len);
    struct count *c = MEM_NEW(struct count);

    c->call = call;
    CHECK(sscanf(text, "%lu %lu %d", &c->left, &c->size, &c->code) == 3);
    mem_free(text);
    rpc_call_hooks(call, count_cancelled, count_done, c);
    rpc_call_on_sent(call, count_next);
    say("started", rpc_call_path(call));
    count_next(c);
}

static const struct rpc_method methods[] = {
    { .path = "/peer.Test/Echo", .start = start_echo },
    { .path = "/peer.Test/Fail", .start = start_fail },
    { .path = "/peer.Test/Park", .start = start_park },
    { .path = "/peer.Test/Release", .start = start_release },
    { .path = "/peer.Test/About", .start = start_about },
    { .path = "/peer.Test/Small", .start = start_echo, .request_max = 1000 },
    { .path = "/peer.Test/Count", .start = start_count, .streams = true },
};

static void post_sem(void *arg)
{
    sem_post(arg);
}

static int serve(struct loop_group *group)
{
    struct rpc_server_opts opts = { .group = group };
    struct rpc_server *server = rpc_server_new(&opts);
    struct status st = STATUS_INIT;
    unsigned grace_ms = 0;
    uint16_t port;
    char line[200];
    sem_t stopped;

    rpc_server_add(server, methods, COUNT(methods), NULL);
    if (rpc_server_listen(server, "127.0.0.1:0", &port, &st)) {
        fprintf(stderr, "%s\n", st.msg);
        return 1;
    }
    snprintf(line, sizeof(line), "%u", port);
    say("port", line);
    if (fgets(line, sizeof(line), stdin))
        (void)sscanf(line, "drain %u", &grace_ms);
    sem_init(&stopped, 0, 0);
    rpc_server_stop(server, grace_ms, post_sem, &stopped);
    sem_wait(&stopped);
    rpc_server_free(server);
    say("stopped", "");
    return 0;
}

/* --- the client --- */

#define CALLS_MAX 10000

struct job {
    int id;
    bool place;
    struct rpc_client_call *call;
};

static struct job jobs[CALLS_MAX];
static sem_t job_over;

static void on_result(const struct rpc_reply *r, void *arg)
{
    struct job *job = arg;
    uint32_t crc = crc32c(0, r->msg.data, r->msg.len);
    size_t len = r->msg.len + r->placed.len;
    char details[41] = "-";

    /* What was placed is the end of the message. */
    if (r->placed.dest)
        crc = crc32c(crc, r->placed.dest, r->placed.len);
    for (size_t i = 0; i < MIN(r->details_len, (size_t)20); i++)
        snprintf(details + 2 * i, 3, "%02x", r->details[i]);
    flockfile(stdout);
    printf("result %d %d %zu %08x %s ", job->id, r->status->code, len, crc,
           details);
    for (const char *p = r->status->msg; *p; p++)
        printf(*p == '\n' ? "\\n" : "%c", *p);
    printf("\n");
    fflush(stdout);
    funlockfile(stdout);
    sem_post(&job_over);
}

static void on_message(const struct rpc_data *msg, void *arg)
{
    char text[64];

    snprintf(text, sizeof(text), "%d %zu %08x", ((struct job *)arg)->id,
             msg->len, crc32c(0, msg->data, msg->len));
    say("message", text);
}

/* Leaves the first ten bytes and has the rest placed. */
static bool on_place(void *arg, const uint8_t *head, size_t have, size_t total,
                     struct rpc_place *ret)
{
    struct buffer *to;

    if (total <= 10)
        return true;
    to = buffer_new(total - 10);
    CHECK(to);
    *ret = (struct rpc_place){ 10, to->data, total - 10, to };
    return true;
}

static void start_call(struct rpc_channel *channel, const char *line)
{
    static char paths[CALLS_MAX][64];
    int id, wait = 0, place = 0, streams;
    unsigned long size, deadline_ms;
    struct rpc_msg msg;
    struct buffer *b;
    char path[64];

    streams = sscanf(line, "stream %d %63s %lu %lu", &id, path, &size,
                     &deadline_ms) == 4;
    if (!streams && sscanf(line, "call %d %63s %lu %lu %d %d", &id, path, &size,
                           &deadline_ms, &wait, &place) != 6)
        return;
    strcpy(paths[id], path);
    jobs[id] = (struct job){ .id = id, .place = place };
    b = buffer_new(size);
    CHECK(b);
    fill(b->data, size);
    rpc_msg_init(&msg);
    rpc_msg_ref(&msg, b->data, size, b);
    buffer_unref(b);
    jobs[id].call =
        rpc_channel_call(channel, &(struct rpc_request){
                                      .path = paths[id],
                                      .msg = &msg,
                                      .deadline_ms = deadline_ms,
                                      .wait_for_ready = wait,
                                      .place = place ? on_place : NULL,
                                      .message = streams ? on_message : NULL,
                                      .done = on_result,
                                      .arg = &jobs[id],
                                  });
}

static int call(struct loop_group *group, const char *target)
{
    struct rpc_channel *channel = rpc_channel_new(group, target, NULL);
    char line[200];
    sem_t closed;
    int id;

    sem_init(&job_over, 0, 0);
    sem_init(&closed, 0, 0);
    while (fgets(line, sizeof(line), stdin)) {
        if (sscanf(line, "cancel %d", &id) == 1)
            rpc_client_call_cancel(jobs[id].call);
        else
            start_call(channel, line);
    }
    rpc_channel_close(channel, post_sem, &closed);
    sem_wait(&closed);
    for (int i = 0; i < CALLS_MAX; i++)
        rpc_client_call_unref(jobs[i].call);
    rpc_channel_unref(channel);
    return 0;
}

int main(int argc, char **argv)
{
    struct loop_group *group = loop_group_new(NULL);
    int code = 2;

    if (argc == 2 && !strcmp(argv[1], "serve"))
        code = serve(group);
    else if (argc == 3 && !strcmp(argv[1], "call"))
        code = call(group, argv[2]);
    else
        fprintf(stderr, "usage: rpc_peer serve | rpc_peer call TARGET\n");
    loop_group_free(group);
    return code;
}
