/* Lanes between two ends in one process, over both kinds of sockets, and peers
 * that send nonsense. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "rpc/lane.h"

#define PREFACE LANE_MAGIC "abcdefghijklmnop"

static struct loop_group *group;

static int setup(void **state)
{
    group = loop_group_new(NULL);
    return 0;
}

static int teardown(void **state)
{
    loop_group_free(group);
    return 0;
}

/* One end, and what came to it. */
struct end {
    struct lane *lane;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int frames, lost;
    uint64_t bulk_bytes;
    bool wrong;
    uint8_t last[64];
    size_t last_len;
    struct buffer *held; /* the last bulk, if keep */
    bool keep;
};

/* Bulks of the tests count up from their length. */
static void fill(uint8_t *data, size_t len)
{
    for (size_t i = 0; i < len; i++)
        data[i] = (uint8_t)(len + i * 7);
}

static bool is_filled(const uint8_t *data, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (data[i] != (uint8_t)(len + i * 7))
            return false;
    return true;
}

static void on_frame(struct lane *lane, struct lane_frame *f, void *arg)
{
    struct end *e = arg;

    pthread_mutex_lock(&e->lock);
    e->frames++;
    e->last_len = MIN(f->len, sizeof(e->last));
    memcpy(e->last, f->data, e->last_len);
    if (f->bulk) {
        e->bulk_bytes += f->bulk->size;
        e->wrong |= !is_filled(f->bulk->data, f->bulk->size);
        if (e->keep) {
            buffer_unref(e->held);
            e->held = buffer_ref(f->bulk);
        }
    }
    pthread_cond_broadcast(&e->changed);
    pthread_mutex_unlock(&e->lock);
}

static void on_lost(struct lane *lane, const char *why, void *arg)
{
    struct end *e = arg;

    pthread_mutex_lock(&e->lock);
    e->lost++;
    pthread_cond_broadcast(&e->changed);
    pthread_mutex_unlock(&e->lock);
}

static const struct lane_ops ops = { on_frame, on_lost };

static void wait_frames(struct end *e, int count)
{
    pthread_mutex_lock(&e->lock);
    while (e->frames < count)
        pthread_cond_wait(&e->changed, &e->lock);
    pthread_mutex_unlock(&e->lock);
}

static void wait_lost(struct end *e)
{
    pthread_mutex_lock(&e->lock);
    while (!e->lost)
        pthread_cond_wait(&e->changed, &e->lock);
    pthread_mutex_unlock(&e->lock);
}

static void end_open(struct end *e, int fd, bool opens, bool local, bool shared)
{
    struct lane_opts opts = { .loop = loop_group_next(group),
                              .fd = fd,
                              .local = local,
                              .shared = shared,
                              .opens = opens,
                              .ops = &ops,
                              .arg = e };

    *e = (struct end){ 0 };
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->changed, NULL);
    memcpy(opts.preface, PREFACE, LANE_PREFACE);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    e->lane = lane_new(&opts);
    assert_non_null(e->lane);
}

static void end_done(struct end *e)
{
    lane_shut(e->lane, "over");
    wait_lost(e);
    assert_int_equal(e->lost, 1);
    assert_false(e->wrong);
    buffer_unref(e->held);
    lane_unref(e->lane);
    pthread_mutex_destroy(&e->lock);
    pthread_cond_destroy(&e->changed);
}

static void tcp_pair(int fd[2])
{
    struct sockaddr_in a = { .sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof(a);
    int l = socket(AF_INET, SOCK_STREAM, 0);

    assert_int_equal(bind(l, (struct sockaddr *)&a, len), 0);
    assert_int_equal(listen(l, 1), 0);
    assert_int_equal(getsockname(l, (struct sockaddr *)&a, &len), 0);
    fd[0] = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd[0], (struct sockaddr *)&a, len), 0);
    fd[1] = accept(l, NULL, NULL);
    close(l);
}

static void send_bulk(struct end *e, const char *text, size_t len)
{
    struct buffer *b = len ? buffer_new(len) : NULL;

    if (b)
        fill(b->data, len);
    lane_send(e->lane,
              &(struct lane_out){
                  .kind = 5,
                  .control = &(struct iovec){ (void *)text, strlen(text) },
                  .control_count = 1,
                  .bulk = b ? b->data : NULL,
                  .bulk_len = len,
                  .owner = b });
    buffer_unref(b);
}

static const size_t sizes[] = { 0,     1,       100,     4096,    4097,
                                16384, 65536,   65537,   1000000, 5000000,
                                3,     9000000, 1 << 20, 0,       70000 };

static void both_ways(bool unix_socket, bool shared)
{
    struct end a, b;
    int fd[2];

    if (unix_socket)
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
    else
        tcp_pair(fd);
    end_open(&a, fd[0], true, unix_socket, shared);
    end_open(&b, fd[1], false, unix_socket, shared);
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < COUNT(sizes); i++) {
            send_bulk(&a, "there", sizes[i]);
            send_bulk(&b, "back", sizes[i]);
        }
        lane_flush(a.lane);
        lane_flush(b.lane);
        wait_frames(&a, (round + 1) * (int)COUNT(sizes));
        wait_frames(&b, (round + 1) * (int)COUNT(sizes));
    }
    assert_memory_equal(a.last, "back", 4);
    assert_memory_equal(b.last, "there", 5);
    assert_true(a.bulk_bytes == b.bulk_bytes);
    end_done(&a);
    wait_lost(&b);
    end_done(&b);
}

static void test_frames_of_all_sizes_over_tcp(void **state)
{
    both_ways(false, false);
}

static void test_frames_of_all_sizes_over_a_local_socket(void **state)
{
    both_ways(true, false);
}

static void test_frames_of_all_sizes_through_shared_memory(void **state)
{
    both_ways(true, true);
}

static void test_small_frames_travel_together(void **state)
{
    struct end a, b;
    uint64_t in = 0, out = 0;
    int fd[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
    end_open(&a, fd[0], true, true, false);
    end_open(&b, fd[1], false, true, false);
    for (int i = 0; i < 5000; i++)
        send_bulk(&a, "small", 11);
    lane_flush(a.lane);
    wait_frames(&b, 5000);
    lane_bytes(a.lane, &in, &out);
    assert_int_equal(out, LANE_PREFACE + 5000 * (24 + 5 + 11));
    end_done(&a);
    end_done(&b);
}

static void test_shared_bulk_outlives_its_lane(void **state)
{
    struct end a, b;
    struct buffer *held;
    int fd[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
    end_open(&a, fd[0], true, true, true);
    end_open(&b, fd[1], false, true, true);
    assert_true(lane_is_shared(a.lane));
    b.keep = true;
    send_bulk(&a, "keep", 200000);
    lane_flush(a.lane);
    wait_frames(&b, 1);
    held = buffer_ref(b.held);
    end_done(&a);
    end_done(&b);
    assert_true(is_filled(held->data, 200000));
    buffer_unref(held);
}

/* What a peer by hand sends, and whether the lane stands it. */
static void nonsense(const void *data, size_t len)
{
    struct end b;
    int fd[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
    end_open(&b, fd[1], false, true, true);
    assert_int_equal(send(fd[0], data, len, MSG_NOSIGNAL), (ssize_t)len);
    wait_lost(&b);
    assert_int_equal(b.frames, 0);
    end_done(&b);
    close(fd[0]);
}

static void test_nonsense_ends_the_lane(void **state)
{
    uint8_t text[LANE_PREFACE + 24] = PREFACE;
    uint8_t *head = text + LANE_PREFACE;

    nonsense(LANE_MAGIC "ABCDEFGHIJKLMNOP", LANE_PREFACE);
    memset(head, 0xff, 24);
    nonsense(text, sizeof(text));
    memset(head, 0, 24);
    head[1] = 2; /* shared, but nothing is */
    head[8] = 9;
    nonsense(text, sizeof(text));
    head[0] = 128; /* a segment without a descriptor */
    head[1] = head[8] = 0;
    nonsense(text, sizeof(text));
    head[0] = 5;
    head[1] = 1;
    memset(head + 8, 0x7f, 8); /* more than there is memory */
    nonsense(text, sizeof(text));
}

/* What comes in one piece with the end of the connection. */
static void test_end_behind_data_is_seen(void **state)
{
    uint8_t text[LANE_PREFACE + 24] = PREFACE;
    struct end b;
    int fd[2];

    text[LANE_PREFACE] = 5;
    for (int i = 0; i < 50; i++) {
        tcp_pair(fd);
        assert_int_equal(send(fd[0], text, sizeof(text), MSG_NOSIGNAL),
                         (ssize_t)sizeof(text));
        shutdown(fd[0], SHUT_WR);
        end_open(&b, fd[1], false, false, false);
        wait_lost(&b);
        assert_int_equal(b.frames, 1);
        end_done(&b);
        close(fd[0]);
    }
}

static void test_peer_that_closes_is_told(void **state)
{
    struct end b;
    int fd[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
    end_open(&b, fd[1], false, true, true);
    close(fd[0]);
    wait_lost(&b);
    send_bulk(&b, "nobody", 100000);
    lane_flush(b.lane);
    end_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frames_of_all_sizes_over_tcp),
        cmocka_unit_test(test_frames_of_all_sizes_over_a_local_socket),
        cmocka_unit_test(test_frames_of_all_sizes_through_shared_memory),
        cmocka_unit_test(test_small_frames_travel_together),
        cmocka_unit_test(test_shared_bulk_outlives_its_lane),
        cmocka_unit_test(test_nonsense_ends_the_lane),
        cmocka_unit_test(test_end_behind_data_is_seen),
        cmocka_unit_test(test_peer_that_closes_is_told),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
