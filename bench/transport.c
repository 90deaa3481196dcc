/*
 * The transport against the wire: latency, calls a second, and throughput of
 * whole messages that are placed, set beside the limit of loopback, which is
 * measured in the same run, cell by cell in turn.
 *
 * The limit is plain TCP between two processes, tuned: blocking recv() in
 * pieces of 128 KB, non-blocking sends from one buffer, SO_SNDBUF of 256 KB.
 * Client and server are processes of their own in both cases. A call asks for n
 * bytes and gets them; the next one is made when the last byte is there.
 *
 *   bench_transport [-r repetitions] [-t seconds a cell] [-s spin us, -1 off]
 *                   [-p latency|rate|size|mixed|parked|conns]
 *   bench_transport -l
 *
 * With -l the limit alone is measured, on request: a line "SECONDS BYTES" is
 * answered as `parts/worker.c` answers, a call being a step.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "rpc/channel.h"
#include "rpc/client.h"
#include "rpc/server.h"

#define BYTES_MAX   ((size_t)256 << 20)
#define SAMPLES_MAX 2000000
#define REPS_MAX    50
#define HEAD        16

static int reps = 7;
static double cell_s = 0.25;
static struct loop_opts loop_opts;
static const char *part; /* NULL: all */
static bool limit;

static uint8_t *payload_new(void)
{
    struct buffer *b = buffer_new(BYTES_MAX);

    CHECK(b);
    for (size_t i = 0; i < BYTES_MAX; i += 8)
        memcpy(b->data + i, &(uint64_t){ (i + 1) * 0x9e3779b97f4a7c15ull }, 8);
    return b->data;
}

/* --- the servers, each in a process of its own --- */

static struct buffer *payload;
static struct rpc_call *parked[200000];
static int parked_count;

static void start_get(struct rpc_call *call, void *arg)
{
    struct rpc_msg msg;
    uint64_t n;

    memcpy(&n, rpc_call_request(call)->data, 8);
    rpc_msg_init(&msg);
    rpc_msg_copy(&msg, "0123456789abcdef", HEAD);
    rpc_msg_ref(&msg, payload->data, n, payload);
    rpc_call_reply(call, &msg);
}

static void start_status(struct rpc_call *call, void *arg)
{
    static const uint8_t bytes[100];
    struct rpc_msg msg;

    rpc_msg_init(&msg);
    rpc_msg_copy(&msg, bytes, sizeof(bytes));
    rpc_call_reply(call, &msg);
}

static void start_park(struct rpc_call *call, void *arg)
{
    parked[parked_count++] = call;
}

static void start_release(struct rpc_call *call, void *arg)
{
    while (parked_count)
        start_status(parked[--parked_count], NULL);
    start_status(call, NULL);
}

static const struct rpc_method methods[] = {
    { .path = "/bench.Service/Get", .start = start_get },
    { .path = "/bench.Service/Status", .start = start_status },
    { .path = "/bench.Service/Park", .start = start_park },
    { .path = "/bench.Service/Release", .start = start_release },
};

static void serve_rpc(int out)
{
    struct loop_group *group = loop_group_new(&loop_opts);
    struct rpc_server_opts opts = { .group = group };
    struct rpc_server *server = rpc_server_new(&opts);
    struct status st = STATUS_INIT;
    uint16_t port;

    payload = buffer_wrap(payload_new(), BYTES_MAX, NULL, NULL);
    rpc_server_add(server, methods, COUNT(methods), NULL);
    CHECK(!rpc_server_listen(server, "127.0.0.1:0", &port, &st));
    CHECK(write(out, &port, sizeof(port)) == sizeof(port));
    for (;;)
        pause();
}

static void raw_reply(int fd, struct iovec *iov, int count)
{
    while (count) {
        struct msghdr m = { .msg_iov = iov, .msg_iovlen = (size_t)count };
        ssize_t n = sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n < 0 && errno == EAGAIN) {
            poll(&(struct pollfd){ fd, POLLOUT, 0 }, 1, -1);
            continue;
        }
        if (n < 0)
            return;
        while (count && (size_t)n >= iov->iov_len) {
            n -= (ssize_t)iov->iov_len;
            iov++;
            count--;
        }
        if (count) {
            iov->iov_base = (uint8_t *)iov->iov_base + n;
            iov->iov_len -= (size_t)n;
        }
    }
}

static void serve_raw(int out)
{
    struct sockaddr_in a = { .sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof(a);
    int one = 1, buf = 256 << 10, fd, ls = socket(AF_INET, SOCK_STREAM, 0);
    uint8_t *data = payload_new();
    uint8_t head[HEAD] = { 0 };
    uint64_t n;
    uint16_t port;

    CHECK(!bind(ls, (struct sockaddr *)&a, len) && !listen(ls, 1));
    CHECK(!getsockname(ls, (struct sockaddr *)&a, &len));
    port = ntohs(a.sin_port);
    CHECK(write(out, &port, sizeof(port)) == sizeof(port));
    fd = accept(ls, NULL, NULL);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buf, sizeof(buf));
    while (recv(fd, &n, sizeof(n), MSG_WAITALL) == sizeof(n)) {
        struct iovec iov[2] = { { head, HEAD }, { data, n } };

        raw_reply(fd, iov, n ? 2 : 1);
    }
}

static uint16_t spawn(void (*serve)(int), pid_t *ret_pid)
{
    uint16_t port;
    int fds[2];

    CHECK(!pipe(fds));
    *ret_pid = fork();
    CHECK(*ret_pid >= 0);
    if (!*ret_pid) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        serve(fds[1]);
        _exit(0);
    }
    CHECK(read(fds[0], &port, sizeof(port)) == sizeof(port));
    close(fds[0]);
    close(fds[1]);
    return port;
}

/* --- the clients --- */

static int raw_fd;
static pid_t rpc_pid, raw_pid;
static struct buffer *dest;
static struct rpc_channel *channel;
static uint64_t *samples;

static void raw_open(uint16_t port)
{
    struct sockaddr_in a = { .sin_family = AF_INET,
                             .sin_port = htons(port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int one = 1;

    raw_fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(!connect(raw_fd, (struct sockaddr *)&a, sizeof(a)));
    setsockopt(raw_fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

static void raw_get(uint64_t n)
{
    uint8_t head[HEAD];
    size_t at = 0;

    CHECK(send(raw_fd, &n, sizeof(n), 0) == sizeof(n));
    CHECK(recv(raw_fd, head, HEAD, MSG_WAITALL) == HEAD);
    while (at < n) {
        ssize_t k = recv(raw_fd, dest->data + at,
                         MIN((size_t)n - at, (size_t)128 << 10), 0);

        CHECK(k > 0);
        at += (size_t)k;
    }
}

/* So many calls in so much time, and what both processes worked for them. */
struct rate {
    uint64_t calls, ns, cpu_ns;
};

static uint64_t cpu_ns(pid_t server)
{
    struct timespec here = { 0 }, there = { 0 };
    clockid_t clock;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &here);
    if (!clock_getcpuclockid(server, &clock))
        clock_gettime(clock, &there);
    return (uint64_t)(here.tv_sec + there.tv_sec) * 1000000000u +
           (uint64_t)(here.tv_nsec + there.tv_nsec);
}

static struct rate raw_run(size_t n)
{
    uint64_t begin = clock_ns(), end = begin + (uint64_t)(cell_s * 1e9);
    struct rate r = { .cpu_ns = 0 - cpu_ns(raw_pid) };

    do {
        uint64_t t = clock_ns();

        raw_get(n);
        samples[r.calls % SAMPLES_MAX] = clock_ns() - t;
        r.calls++;
    } while (clock_ns() < end);
    r.ns = clock_ns() - begin;
    r.cpu_ns += cpu_ns(raw_pid);
    return r;
}

/* Calls that follow each other, made on the loop thread. */
struct chain {
    struct loop_task task;
    const char *path;
    uint64_t n, begin_ns, end_ns, last_ns;
    uint64_t calls;
    bool record;
    sem_t *over;
};

static bool place_get(void *arg, const uint8_t *head, size_t have, size_t total,
                      struct rpc_place *ret)
{
    if (have < HEAD)
        return false;
    *ret =
        (struct rpc_place){ HEAD, dest->data, total - HEAD, buffer_ref(dest) };
    return true;
}

static void chain_call(struct chain *c);

static void chain_done(const struct rpc_reply *reply, void *arg)
{
    struct chain *c = arg;
    uint64_t now = clock_ns();

    if (reply->status->code)
        fprintf(stderr, "%s\n", reply->status->msg);
    CHECK(!reply->status->code);
    if (c->record)
        samples[c->calls % SAMPLES_MAX] = now - c->last_ns;
    c->calls++;
    c->last_ns = now;
    if (now < c->end_ns)
        chain_call(c);
    else
        sem_post(c->over);
}

static void chain_call(struct chain *c)
{
    struct rpc_msg msg;
    struct rpc_request rq = {
        .path = c->path,
        .msg = &msg,
        .place = c->n ? place_get : NULL,
        .done = chain_done,
        .arg = c,
    };

    rpc_msg_init(&msg);
    rpc_msg_copy(&msg, &c->n, sizeof(c->n));
    rpc_client_call_unref(rpc_channel_call(channel, &rq));
}

static void chain_start(struct loop_task *task)
{
    struct chain *c = CONTAINER(task, struct chain, task);

    c->begin_ns = c->last_ns = clock_ns();
    c->end_ns = c->begin_ns + (uint64_t)(cell_s * 1e9);
    chain_call(c);
}

static struct rate chains_run(struct chain *c, int count)
{
    struct rate r = { .cpu_ns = 0 - cpu_ns(rpc_pid) };
    sem_t over;

    sem_init(&over, 0, 0);
    for (int i = 0; i < count; i++) {
        c[i].over = &over;
        c[i].task.run = chain_start;
        loop_post(rpc_channel_loop(channel), &c[i].task);
    }
    for (int i = 0; i < count; i++)
        sem_wait(&over);
    for (int i = 0; i < count; i++) {
        r.calls += c[i].calls;
        r.ns = MAX(r.ns, c[i].last_ns - c[i].begin_ns);
    }
    r.cpu_ns += cpu_ns(rpc_pid);
    sem_destroy(&over);
    return r;
}

static struct rate rpc_run(size_t n)
{
    struct chain c = { .path = "/bench.Service/Get", .n = n, .record = true };

    return chains_run(&c, 1);
}

/* --- figures --- */

static int by_double(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static int by_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

struct spread {
    double median, min, max;
};

static struct spread spread_of(double *v)
{
    qsort(v, (size_t)reps, sizeof(v[0]), by_double);
    return (struct spread){ v[reps / 2], v[0], v[reps - 1] };
}

static void print_spread(const char *what, double *v, const char *unit)
{
    struct spread s = spread_of(v);

    printf("  %-28s %9.3f [%.3f..%.3f] %s\n", what, s.median, s.min, s.max,
           unit);
}

static double percentile_us(uint64_t calls, double p)
{
    uint64_t n = MIN(calls, (uint64_t)SAMPLES_MAX);

    qsort(samples, n, sizeof(samples[0]), by_u64);
    return (double)samples[(uint64_t)((double)(n - 1) * p)] / 1e3;
}

static void verify(size_t n)
{
    for (size_t i = 0; i + 8 <= n; i += 8) {
        uint64_t v;

        memcpy(&v, dest->data + i, 8);
        CHECK(v == (i + 1) * 0x9e3779b97f4a7c15ull);
    }
}

static void bench_latency(void)
{
    double raw50[REPS_MAX], raw99[REPS_MAX], rpc50[REPS_MAX], rpc99[REPS_MAX];

    for (int i = 0; i < reps; i++) {
        struct chain c = { .path = "/bench.Service/Status", .record = true };
        struct rate r = raw_run(0);

        raw50[i] = percentile_us(r.calls, 0.5);
        raw99[i] = percentile_us(r.calls, 0.99);
        r = chains_run(&c, 1);
        rpc50[i] = percentile_us(r.calls, 0.5);
        rpc99[i] = percentile_us(r.calls, 0.99);
    }
    printf("latency, one call at a time\n");
    print_spread("raw, 16 B, p50", raw50, "us");
    print_spread("raw, 16 B, p99", raw99, "us");
    print_spread("rpc, 100 B, p50", rpc50, "us");
    print_spread("rpc, 100 B, p99", rpc99, "us");
}

static void bench_rate(void)
{
    double rate[REPS_MAX], reads[REPS_MAX], writes[REPS_MAX];

    for (int i = 0; i < reps; i++) {
        struct chain c[64] = { { .path = NULL } };
        uint64_t r0 = atomic_load(&channel->io.reads);
        uint64_t w0 = atomic_load(&channel->io.writes);
        struct rate r;

        for (size_t k = 0; k < COUNT(c); k++)
            c[k].path = "/bench.Service/Status";
        r = chains_run(c, COUNT(c));
        rate[i] = (double)r.calls / (double)r.ns * 1e6;
        reads[i] =
            (double)(atomic_load(&channel->io.reads) - r0) / (double)r.calls;
        writes[i] =
            (double)(atomic_load(&channel->io.writes) - w0) / (double)r.calls;
    }
    printf("calls of 100 B, 64 outstanding, one connection\n");
    print_spread("calls", rate, "k/s");
    print_spread("reads a call, client", reads, "");
    print_spread("writes a call, client", writes, "");
}

/* Small calls while large messages come in on the same connection. */
static void bench_mixed(void)
{
    double p50[REPS_MAX], p99[REPS_MAX], bulk[REPS_MAX];

    for (int i = 0; i < reps; i++) {
        struct chain c[2] = {
            { .path = "/bench.Service/Status", .record = true },
            { .path = "/bench.Service/Get", .n = 16 << 20 },
        };

        chains_run(c, 2);
        p50[i] = percentile_us(c[0].calls, 0.5);
        p99[i] = percentile_us(c[0].calls, 0.99);
        bulk[i] = (double)(c[1].calls * c[1].n) /
                  (double)(c[1].last_ns - c[1].begin_ns);
    }
    printf("small calls while 16 MB replies come in\n");
    print_spread("small call, p50", p50, "us");
    print_spread("small call, p99", p99, "us");
    print_spread("bulk", bulk, "GB/s");
}

static void bench_size(size_t n)
{
    double raw[REPS_MAX], rpc[REPS_MAX], ratio[REPS_MAX];
    double raw_cpu[REPS_MAX], rpc_cpu[REPS_MAX];
    struct spread r, b, q;

    for (int i = 0; i < reps; i++) {
        struct rate one, two;

        /* Who goes first changes. */
        if (i % 2) {
            one = raw_run(n);
            two = rpc_run(n);
        } else {
            two = rpc_run(n);
            one = raw_run(n);
        }
        raw[i] = (double)(one.calls * n) / (double)one.ns;
        rpc[i] = (double)(two.calls * n) / (double)two.ns;
        ratio[i] = rpc[i] / raw[i];
        raw_cpu[i] = (double)one.cpu_ns / (double)(one.calls * n);
        rpc_cpu[i] = (double)two.cpu_ns / (double)(two.calls * n);
        memset(dest->data, 0, MIN(n, (size_t)1 << 20));
    }
    rpc_run(n);
    verify(n);
    r = spread_of(raw);
    b = spread_of(rpc);
    q = spread_of(ratio);
    printf("  %8zu KB  raw %6.3f [%.3f..%.3f]  rpc %6.3f [%.3f..%.3f]  "
           "ratio %5.2f [%.2f..%.2f]  cpu %.2f, %.2f\n",
           n >> 10, r.median, r.min, r.max, b.median, b.min, b.max, q.median,
           q.min, q.max, spread_of(raw_cpu).median, spread_of(rpc_cpu).median);
    fflush(stdout);
}

static void bench_sizes(void)
{
    static const size_t sizes[] = { 4 << 10, 64 << 10, 256 << 10, 1 << 20,
                                    4 << 20, 16 << 20, 64 << 20,  256 << 20 };

    printf("GB/s, one call at a time, placed; median [min..max] of %d; CPU "
           "seconds a GB, raw and rpc, both sides\n",
           reps);
    for (size_t i = 0; i < COUNT(sizes); i++)
        bench_size(sizes[i]);
}

static long rss_kb(pid_t pid)
{
    char path[64];
    long pages = 0;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
    f = fopen(path, "r");
    if (f && fscanf(f, "%*d %ld", &pages) != 1)
        pages = 0;
    if (f)
        fclose(f);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

#define PARKED 10000

static void bench_parked(void)
{
    long here = rss_kb(getpid()), there = rss_kb(rpc_pid);
    static struct chain c[PARKED];
    struct chain small = { .path = "/bench.Service/Status", .record = true };
    struct chain last = { .path = "/bench.Service/Release" };
    struct rate r;
    sem_t over;

    sem_init(&over, 0, 0);
    for (int i = 0; i < PARKED; i++) {
        c[i] = (struct chain){ .path = "/bench.Service/Park", .over = &over };
        chain_call(&c[i]);
    }
    r = chains_run(&small, 1);
    printf("%d calls parked on the connection\n", PARKED);
    printf("  memory a call                client %.2f KB, server %.2f KB\n",
           (double)(rss_kb(getpid()) - here) / PARKED,
           (double)(rss_kb(rpc_pid) - there) / PARKED);
    printf("  small call meanwhile, p50    %9.3f us, p99 %.3f us\n",
           percentile_us(r.calls, 0.5), percentile_us(r.calls, 0.99));
    last.end_ns = 0;
    last.over = &over;
    chain_call(&last);
    for (int i = 0; i < PARKED + 1; i++)
        sem_wait(&over);
    sem_destroy(&over);
}

static void post_sem(void *arg)
{
    sem_post(arg);
}

#define CONNS 200

/* Connections that have made a call, and then do nothing. */
static void bench_conns(struct loop_group *group, const char *target)
{
    struct chain small = { .path = "/bench.Service/Status", .record = true };
    struct rpc_channel *all[CONNS], *mine = channel;
    long there = rss_kb(rpc_pid);
    struct rate r;
    sem_t over;

    sem_init(&over, 0, 0);
    for (int i = 0; i < CONNS; i++) {
        struct chain once = { .path = small.path, .over = &over };

        channel = all[i] = rpc_channel_new(group, target, NULL);
        chain_call(&once);
        sem_wait(&over);
    }
    channel = mine;
    r = chains_run(&small, 1);
    printf("%d connections\n", CONNS);
    printf("  memory a connection, server  %9.3f KB\n",
           (double)(rss_kb(rpc_pid) - there) / CONNS);
    printf("  small call meanwhile, p50    %9.3f us, p99 %.3f us\n",
           percentile_us(r.calls, 0.5), percentile_us(r.calls, 0.99));
    for (int i = 0; i < CONNS; i++) {
        rpc_channel_close(all[i], post_sem, &over);
        sem_wait(&over);
        rpc_channel_unref(all[i]);
    }
    sem_destroy(&over);
}

static void serve_limit(void)
{
    char line[64], *rest;

    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("{\"ready\": true}");
    while (fgets(line, sizeof(line), stdin)) {
        uint64_t begin = clock_ns();
        struct rate r;
        size_t n;

        cell_s = strtod(line, &rest);
        n = MIN((size_t)strtoull(rest, NULL, 10), BYTES_MAX);
        r = raw_run(n);
        printf("{\"steps\": %llu, \"begin\": %.6f, \"seconds\": %.6f, "
               "\"p50_us\": %.2f, \"p99_us\": %.2f}\n",
               (unsigned long long)r.calls, (double)begin / 1e9,
               (double)r.ns / 1e9, percentile_us(r.calls, 0.5),
               percentile_us(r.calls, 0.99));
    }
}

static bool wanted(const char *name)
{
    return !part || !strcmp(part, name);
}

static void parse(int argc, char **argv)
{
    int opt;

    while ((opt = getopt(argc, argv, "r:t:s:p:l")) != -1) {
        if (opt == 'r')
            reps = MAX(1, MIN(atoi(optarg), REPS_MAX));
        else if (opt == 't')
            cell_s = atof(optarg);
        else if (opt == 's')
            loop_opts.spin_us_max = atoi(optarg);
        else if (opt == 'p')
            part = optarg;
        else if (opt == 'l')
            limit = true;
        else
            exit(2);
    }
}

static void bench_all(void)
{
    uint16_t port = spawn(serve_rpc, &rpc_pid); /* before there are threads */
    struct loop_group *group = loop_group_new(&loop_opts);
    char target[32];
    sem_t over;

    snprintf(target, sizeof(target), "127.0.0.1:%u", port);
    channel = rpc_channel_new(group, target, NULL);
    rpc_run(1 << 20);

    if (wanted("latency"))
        bench_latency();
    if (wanted("rate"))
        bench_rate();
    if (wanted("size"))
        bench_sizes();
    if (wanted("mixed"))
        bench_mixed();
    if (wanted("parked"))
        bench_parked();
    if (wanted("conns"))
        bench_conns(group, target);

    sem_init(&over, 0, 0);
    rpc_channel_close(channel, post_sem, &over);
    sem_wait(&over);
    sem_destroy(&over);
    rpc_channel_unref(channel);
    loop_group_free(group);
    kill(rpc_pid, SIGTERM);
}

int main(int argc, char **argv)
{
    parse(argc, argv);
    samples = mem_array(SAMPLES_MAX, sizeof(samples[0]));
    dest = buffer_new(BYTES_MAX);
    memset(dest->data, 0, BYTES_MAX);
    raw_open(spawn(serve_raw, &raw_pid));
    if (limit)
        serve_limit();
    else
        bench_all();
    buffer_unref(dest);
    mem_free(samples);
    close(raw_fd);
    kill(raw_pid, SIGTERM);
    while (wait(NULL) > 0)
        ;
    return 0;
}
